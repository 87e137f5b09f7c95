//! Devices of the allow-list: overwritten by the plan that was seen, and refused for whatever does not fit.
use crate::lab::{Lab, names, until};
use crate::real::{ON_FILES, RAW, slowly};
use crate::root::{self, Loop, has, may};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

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
        .says(&["needs 1 device,", "allows none"]);
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

/// A check of md reads all of its members, which may take longer than all phases.
#[test]
fn a_plan_tells_what_checks_read_and_how_long_that_takes() {
    let name = "a_plan_tells_what_checks_read_and_how_long_that_takes";
    if !may(name) {
        return;
    }
    let lab = Lab::new();
    let mirror = RAW
        .replace("count = 1", "count = 2")
        .replace("single", "raid1");
    lab.write("lab.toml", &mirror);
    let plan = "plan lab.toml --on host --verify";
    // Files have the rate of the disk that they are on, whatever the experiment's are.
    let files = lab
        .run(&format!("{plan} --loop-dir . --loop-size 64MiB"))
        .done();
    files.prints(&["compares 64 MiB of each member\n"]);
    let devices = ["one", "other"].map(|name| Loop::on(&lab.write(name, vec![0; 64 << 20])));
    let entries = devices.each_ref().map(|device| offered(&lab, &device.path));
    allow(&lab, &entries.concat());
    lab.run(plan).done().prints(&[
        "compares 64 MiB of each member, which takes at least ",
        "MiB/s (the mean of nearline-24tb)",
    ]);
    lab.write(
        "lab.toml",
        mirror
            .replace("filesystem = \"none\"\n", "")
            .replace("[array]", "[array]\nengine = \"btrfs\""),
    );
    lab.run(plan)
        .done()
        .prints(&["with that: the scrub reads all copies"]);
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

const RANDOM: &str = r#"
title = "A disk that dies"
disks = { model = "ST3250624AS", count = 1 }
filesystem = "ext4"

[array]
layout = "single"

[profile]
name = "random"
block = "64KiB"
depth = 4
size = "64MiB"
time = "2s"
read-percent = 100

[design]
repeats = 2
"#;

/// The file beneath a loop device becomes shorter: what is not there any more cannot be read (writes would make it longer again). Disks that go altogether, and
/// arrays of which one goes, are tried in a guest.
#[test]
fn a_device_that_dies_in_a_trial_is_named_and_the_run_goes_on_when_it_is_back() {
    let name = "a_device_that_dies_in_a_trial_is_named_and_the_run_goes_on_when_it_is_back";
    if !may(name) || !has(name, "mkfs.ext4") {
        return;
    }
    let lab = Lab::new();
    lab.write("lab.toml", RANDOM);
    let file = lab.write("disk", vec![0; 160 << 20]);
    let device = Loop::on(&file);
    let entry = offered(&lab, &device.path);
    allow(&lab, &entry);
    let plan = lab.run("plan lab.toml --on host").done();
    let line = format!("run lab.toml --on host --yes {}", digest(&plan.out));
    let mut running = lab.start(&line);
    running.wait_for("[1/2]");
    let mount = lab.path("state/raidlab/mnt");
    let data = || {
        let inside = std::fs::read_dir(&mount).into_iter().flatten().flatten();
        inside
            .into_iter()
            .any(|one| one.path().join("data-0").exists())
    };
    until("the second trial", data);
    std::thread::sleep(Duration::from_millis(500));
    let disk = std::fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .expect("the file");
    disk.set_len(512 << 10).expect("it is cut off");
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(5), "{said}");
    let kernel = device
        .path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    assert!(
        said.contains(&format!(" member disk0 ({kernel})")),
        "{said}"
    );
    assert!(
        said.contains("when it is sound again, the same command goes on"),
        "{said}"
    );
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(
        !mounts.contains(mount.to_str().expect("a path")),
        "{mounts}"
    );
    let trials = lab.trials();
    let status = |trial: &serde_json::Value| trial["status"].as_str().map(str::to_owned);
    let all: Vec<_> = trials.iter().filter_map(status).collect();
    assert_eq!(all, ["complete", "failed"], "{trials:#?}");
    // What cannot be read cannot be cleared, and is kept in mind until it can.
    if said.contains("is not cleared") {
        lab.run("clean").code(3).prints(&["is not cleared"]);
    }
    disk.set_len(160 << 20).expect("it is back");
    // What somebody has the file of open is neither cleared nor taken.
    drop(disk);
    lab.run("clean").done();
    slowly(&lab, &line)
        .done()
        .says(&["going on with session", "[2/2]"]);
    assert_taken_apart_but(&lab, &device);
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
