//! Experiments on real arrays of loop devices, as root: built, measured, taken apart; whatever ends them.
use crate::lab::{Lab, Ran, ended, ended_within, names, until};
use crate::root::{self, Loop, may};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const BTRFS: &str = r#"
title = "Who keeps the copies?"
disks = { model = "nearline-24tb", count = 4 }

[array]
engine = "btrfs"

[profile]
name = "dd"
bs = "256KiB"
count = 32

[factors]
layout = ["raid0", "raid1", "raid10"]

[design]
repeats = 2
"#;

/// One disk, written to without a file system.
const RAW: &str = r#"
title = "A disk as it is"
disks = { model = "nearline-24tb", count = 1 }
filesystem = "none"

[array]
layout = "single"

[profile]
name = "sequential"
size = "16MiB"
read-percent = 0
time = "300ms"

[design]
repeats = 1
"#;

const ON_FILES: &str = "--on host --loop-dir place --loop-size 160MiB";

/// Several trials of btrfs, and what the machine does beside, take a while.
fn slowly(lab: &Lab, line: &str) -> Ran {
    ended_within(lab.command(line), Duration::from_secs(300))
}

/// Nothing of this lab's is left on the machine.
#[track_caller]
fn assert_taken_apart(lab: &Lab) {
    lab.assert_clean();
    let root = lab.path("");
    let root = root
        .to_str()
        .expect("a path of plain text")
        .trim_end_matches('/');
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(root), "still mounted:\n{mounts}");
    for device in names(Path::new("/sys/block")) {
        let file = format!("/sys/block/{device}/loop/backing_file");
        let file = std::fs::read_to_string(file).unwrap_or_default();
        assert!(!file.starts_with(root), "{device} still shows {file}");
    }
    let journals = lab.path("state/raidlab/journal");
    if journals.exists() {
        assert_eq!(names(&journals), [""; 0], "journals are left");
    }
    assert!(!lab.path("state/raidlab/mnt").exists());
}

#[test]
fn btrfs_on_loop_files_is_built_measured_and_taken_apart() {
    if !may("btrfs_on_loop_files_is_built_measured_and_taken_apart") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    slowly(&lab, &format!("run lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "measured by raidlab on a host",
            "raid10",
            "loop files of 160 MiB",
        ])
        .says(&["[6/6]"]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!(trial["status"], "complete");
        assert_eq!(trial["provenance"]["place"], "host");
        assert_eq!(trial["phases"].as_array().map(Vec::len), Some(4), "{trial}");
        let moved = trial["phases"][0]["device"]["device_written"].as_u64();
        let copies = if trial["cell"]["label"] == "raid0" {
            1
        } else {
            2
        };
        let least = copies * (32 << 18);
        assert!(
            moved.is_some_and(|moved| moved >= least),
            "{moved:?} of {least} reached the disks"
        );
    }
    let shown = lab.run("show --json").done().out;
    assert!(
        shown.contains("mkfs.btrfs -f -q -K -U UUID-1"),
        "the commands are kept"
    );
    assert!(
        shown.contains("btrfs filesystem df"),
        "what was built is kept"
    );
    assert_taken_apart(&lab);
    lab.run("clean").done().says(&["nothing was left behind"]);
}

#[test]
fn a_disk_is_measured_past_file_systems_only_while_it_is_held() {
    if !may("a_disk_is_measured_past_file_systems_only_while_it_is_held") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    slowly(
        &lab,
        "run lab.toml --on host --loop-dir place --loop-size 64MiB",
    )
    .done();
    let trial = &lab.trials()[0];
    assert_eq!(trial["phases"][0]["phase"], "write", "{trial}");
    assert!(
        trial["phases"][0]["rate"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0)
    );
    assert_taken_apart(&lab);
}

#[test]
fn the_tool_itself_runs_where_its_profile_would() {
    if !may("the_tool_itself_runs_where_its_profile_would") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS.replace("repeats = 2", "repeats = 1"));
    slowly(&lab, &format!("run lab.toml {ON_FILES} --driver tool")).done();
    for trial in lab.trials() {
        assert_eq!(trial["provenance"]["tool"], "dd", "{trial}");
        let phases = trial["phases"].as_array().expect("phases");
        let names: Vec<_> = phases
            .iter()
            .filter_map(|phase| phase["phase"].as_str())
            .collect();
        assert_eq!(names, ["write-first", "read-first", "write", "read"]);
    }
    assert!(
        lab.run("show --json")
            .done()
            .out
            .contains("+ dd if=/dev/zero"),
        "its output is kept"
    );
    assert_taken_apart(&lab);
    lab.write("random.toml", RAW);
    lab.run("run random.toml --on host --loop-dir place --driver tool")
        .refused(2)
        .says(&["profile sequential has no tool of its name"]);
}

#[test]
fn a_plan_tells_the_exact_commands() {
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    lab.run(&format!("plan lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "mkfs.btrfs -f -q -K -U UUID-1 -s 4096 -d raid10 -m raid10 /dev/loopN0",
            "mount -t btrfs -o device=/dev/loopN1",
            "afterwards: umount",
            "no device of yours is written to",
        ]);
    lab.assert_nothing_but(&["lab.toml"]);
}

/// The lines that `raidlab devices` offers for a device.
fn offered(lab: &Lab, path: &Path) -> String {
    let devices = lab.run("devices --json").done().json();
    let all = devices.as_array().expect("a list");
    let path = path.to_str().expect("a path");
    let device = all.iter().find(|one| one["device"]["path"] == path);
    let device = device.unwrap_or_else(|| panic!("no {path} in {devices}"));
    assert_eq!(device["usable"], false, "{device}");
    device["entry"]
        .as_str()
        .map(str::to_owned)
        .unwrap_or_default()
}

fn allow(lab: &Lab, text: &str) {
    let directory = lab.path("config/raidlab");
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("expendable.toml");
    std::fs::write(&path, text).expect("a list");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
}

fn digest(plan: &str) -> String {
    let (_, rest) = plan
        .split_once("--yes ")
        .unwrap_or_else(|| panic!("no digest in {plan}"));
    let digest = rest.split_whitespace().next().expect("a digest");
    digest.trim_end_matches('\'').to_owned()
}

#[test]
fn a_device_of_the_allow_list_is_overwritten_only_by_the_plan_that_was_seen() {
    if !may("a_device_of_the_allow_list_is_overwritten_only_by_the_plan_that_was_seen") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    let file = lab.write("disk", vec![0; 64 << 20]);
    let device = Loop::on(&file);
    let run = "run lab.toml --on host";
    lab.run(run)
        .refused(4)
        .says(&["needs 1 devices", "allows none"]);
    let entry = offered(&lab, &device.path);
    allow(&lab, &entry);
    lab.run("devices").done().prints(&["may be overwritten"]);
    let plan = lab.run("plan lab.toml --on host").done();
    let plan = plan.prints(&[
        "ALL of these is overwritten",
        device.path.to_str().expect("a path"),
    ]);
    let yes = digest(&plan.out);
    lab.run(run)
        .refused(3)
        .says(&["nobody is there to agree", &yes]);
    lab.run(&format!("{run} --yes 0123456789ab"))
        .refused(3)
        .says(&["the plan has changed"]);
    assert_eq!(
        std::fs::read(&file).expect("the file"),
        vec![0; 64 << 20],
        "not a byte is written"
    );
    slowly(&lab, &format!("{run} --yes {yes}")).done();
    assert_eq!(lab.trials().len(), 1);
    assert_taken_apart_but(&lab, &device);
}

/// The test's own loop device is still there, and free.
#[track_caller]
fn assert_taken_apart_but(lab: &Lab, device: &Loop) {
    let journals = lab.path("state/raidlab/journal");
    assert_eq!(names(&journals), [""; 0], "journals are left");
    let devices = lab.run("devices --json").done().json();
    let all = devices.as_array().expect("a list");
    let path = device.path.to_str().expect("a path");
    let found = all
        .iter()
        .find(|one| one["device"]["path"] == path)
        .expect("the device");
    assert_eq!(found["usable"], true, "free again: {found}");
}

/// Arrays of a controller: they are there, each as one device, and the allow-list says what it is made of.
const VOLUMES: &str = r#"
title = "Behind the controller"

[disks.bay]
model = "ST336706LW"
count = 4

[topology.controllers.card]
kind = "hardware-raid"
link = "scsi"
rate = "160MB/s"
cache = "128MiB"
disks = [["bay"]]

[profile]
name = "sequential"
size = "16MiB"
read-percent = 0
time = "300ms"

[factors]
array = [
  { name = "five", layout = "raid5", members = "4 bay", chunk = "64KiB" },
  { name = "pair", layout = "raid1", members = "2 bay" },
]

[design]
repeats = 1

[report]
tables = ["figures", "capacity"]
"#;

#[test]
fn arrays_of_a_controller_are_devices_that_the_list_says_are_such() {
    if !may("arrays_of_a_controller_are_devices_that_the_list_says_are_such") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", VOLUMES);
    lab.run(&format!("run lab.toml {ON_FILES}"))
        .refused(2)
        .says(&[
            "raid5 of 4 disks, chunk 64 KiB is made by its controller",
            "engine = \"md\"",
        ]);
    let files: Vec<_> = ["one", "two", "three"]
        .map(|name| lab.write(name, vec![0; 64 << 20]))
        .into();
    let devices: Vec<Loop> = files.iter().map(|file| Loop::on(file)).collect();
    let entries: Vec<String> = devices
        .iter()
        .map(|device| offered(&lab, &device.path))
        .collect();
    // A disk of its own is no array, and an array of other disks is another.
    let five = "array = { layout = \"raid5\", disks = 4, chunk = \"64KiB\" }\n";
    let wide = five.replace("64KiB", "128KiB");
    allow(&lab, &format!("{}{}{wide}", entries[0], entries[1]));
    lab.run("plan lab.toml --on host").refused(4).says(&[
        "needs a raid5 of 4 disks, chunk 64 KiB made by its controller",
        "needs a raid1 of 2 disks made by its controller",
        "array = { layout = \"raid5\", disks = 4, chunk = \"64 KiB\" }",
    ]);
    let pair = "array = { layout = \"raid1\", disks = 2 }\n";
    let list = format!("{}{}{five}{}{pair}", entries[0], entries[1], entries[2]);
    allow(&lab, &list);
    let path = |number: usize| devices[number].path.display().to_string();
    let plan = lab.run("plan lab.toml --on host").done();
    let text = plan.out.clone();
    plan.prints(&[
        &format!(
            "{} is taken to be the raid5 of 4 disks, chunk 64 KiB",
            path(1)
        ),
        "the controller is not asked",
    ]);
    assert!(
        !text.contains(&path(0)),
        "a disk stands for no array: {text}"
    );
    // What it holds is what the devices hold, and not what the disks of the models would.
    lab.run(&format!("run lab.toml --on host --yes {}", digest(&text)))
        .done()
        .prints(&["64 MiB"]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{trials:?}");
    drop(devices);
    let written = |file: &std::path::PathBuf| {
        let content = std::fs::read(file).expect("the file");
        content.iter().any(|byte| *byte != 0)
    };
    assert_eq!(
        files.iter().map(written).collect::<Vec<_>>(),
        [false, true, true]
    );
}

#[test]
fn what_is_on_a_device_or_does_not_fit_the_list_refuses_it() {
    if !may("what_is_on_a_device_or_does_not_fit_the_list_refuses_it") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RAW);
    let file = lab.write("disk", vec![0; 64 << 20]);
    let device = Loop::on(&file);
    let path = device.path.to_str().expect("a path");
    let entry = offered(&lab, &device.path);
    let run = "run lab.toml --on host --yes 0123456789ab";
    for (changed, says) in [
        (entry.replace("file-", "file-9"), "its serial number is"),
        (
            entry.replace("67108864", "67108352"),
            "its size is 67108864 bytes",
        ),
        (entry.replace("loop:", "loop:/elsewhere"), "is not here"),
    ] {
        assert_ne!(changed, entry);
        allow(&lab, &changed);
        lab.run(run).refused(3).says(&[says]);
    }
    allow(&lab, "[[device]]\nid = 7\n");
    lab.run(run)
        .refused(2)
        .says(&["expendable.toml:2: id is a text in quotes"]);
    allow(&lab, &entry);
    root::system("mkfs.ext4", &["-q", "-F", path]);
    lab.run(run)
        .refused(3)
        .says(&["ext2/3/4 file system", "no one uses it now"]);
    let mounted = root::Mounted::ext4(&lab.path("theirs"), &device);
    let before = std::fs::read(&file).expect("the file");
    lab.run(run).refused(3).says(&["is mounted at"]);
    lab.run("clean").done();
    assert_eq!(
        std::fs::read(&file).expect("the file"),
        before,
        "not a byte is written"
    );
    drop(mounted);
}

#[test]
fn a_normal_user_is_told_what_needs_root() {
    if !may("a_normal_user_is_told_what_needs_root") {
        return;
    }
    let lab = Lab::new();
    let copy = lab.path("raidlab");
    std::fs::copy(crate::lab::program(), &copy).expect("a copy for another user");
    lab.write("lab.toml", BTRFS);
    for path in ["", "raidlab", "lab.toml", "place"] {
        std::fs::set_permissions(lab.path(path), PermissionsExt::from_mode(0o755)).expect("set");
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy);
    command.args(format!("run lab.toml {ON_FILES}").split_whitespace());
    lab.settle(&mut command);
    ended(command)
        .refused(4)
        .says(&["takes root", "sudo raidlab", "--on sim"]);
    assert_taken_apart(&lab);
}

#[test]
fn a_kernel_without_md_is_told_before_anything_is_made() {
    if !may("a_kernel_without_md_is_told_before_anything_is_made") {
        return;
    }
    if Path::new("/proc/mdstat").exists() {
        // There is nothing to be refused; what md does is tested in the virtual machine.
        return;
    }
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        BTRFS.replace("engine = \"btrfs\"", "engine = \"md\""),
    );
    lab.run(&format!("run lab.toml {ON_FILES}"))
        .refused(4)
        .says(&["this kernel has no md", "--on vm", "engine = \"btrfs\""]);
    lab.assert_nothing_but(&["lab.toml"]);
}

#[test]
fn ctrl_c_takes_everything_apart_and_the_run_can_go_on() {
    if !may("ctrl_c_takes_everything_apart_and_the_run_can_go_on") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    let line = format!("run lab.toml {ON_FILES}");
    let mut running = lab.start(&line);
    running.wait_for("[1/6]");
    running.signal(Signal::INT);
    let status = running.end();
    assert_eq!(status.code(), Some(130), "{}", running.said());
    assert_taken_apart(&lab);
    let before = lab.trials().len();
    assert!((1..6).contains(&before), "{before}");
    slowly(&lab, &line)
        .done()
        .says(&["going on with session", "[6/6]"]);
    assert_eq!(lab.trials().len(), 6);
    assert_taken_apart(&lab);
}

/// Finished trials of all sessions: on a fast machine a run may end before it is killed, and the next begins a
/// session of its own.
fn complete(lab: &Lab) -> usize {
    if !lab.store().exists() {
        return 0;
    }
    let done = |trial: &&Value| trial["status"] == "complete";
    let of_session = |listed: &Value| {
        let id = listed["session"]["id"].as_str().expect("an id");
        let mut shown = lab.run(&format!("show {id} --json")).done().json();
        let Value::Array(trials) = shown["trials"].take() else {
            panic!("show --json has trials");
        };
        trials.iter().filter(done).count()
    };
    lab.sessions().iter().map(of_session).sum()
}

/// Whatever raidlab was doing when it was killed: `raidlab clean`, or the next run, leaves nothing of it, and no
/// finished trial is lost.
#[test]
fn kill_9_at_any_moment_is_undone() {
    if !may("kill_9_at_any_moment_is_undone") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", BTRFS);
    let line = format!("run lab.toml {ON_FILES}");
    let mut kept = 0;
    for moment in 0..10_u64 {
        let mut running = lab.start(&line);
        // From before the first loop file to the middle of a trial: prime steps, so that no two fall into the same.
        std::thread::sleep(Duration::from_millis(40 + 193 * moment));
        if running.is_running() {
            running.signal(Signal::KILL);
        }
        until("its end", || !running.is_running());
        if moment % 2 == 0 {
            slowly(&lab, "clean").done();
            assert_taken_apart(&lab);
        }
        let now = complete(&lab);
        assert!(now >= kept, "{now} of {kept} finished trials are left");
        kept = now;
    }
    slowly(&lab, &line).done().says(&["[6/6]"]);
    let now = complete(&lab);
    assert!(
        now > 0 && now.is_multiple_of(6),
        "{now} trials are no whole runs"
    );
    assert!(now >= kept, "{now} of {kept} finished trials are left");
    assert_taken_apart(&lab);
}
