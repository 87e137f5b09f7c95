//! `raidlab run --on vm`: real arrays on a real kernel, and what is left when something is killed.
use crate::guest::{PATIENCE, assert_gone, command, has, left, may, processes, run};
use crate::lab::{Lab, Running};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Small enough for a guest whose raidlab has been built for tests.
const SMALL: &str = r#"title = "Small"
disks = { model = "ST3250624AS", count = 2 }

[profile]
name = "sequential"
block = "256KiB"
depth = 2
total = "8MiB"

[array]
member-size = "64MiB"
chunk = "64KiB"

[host]
memory = "384MiB"

[factors]
layout = ["single", "raid0", "raid1"]

[design]
repeats = 2
"#;

fn small() -> Lab {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    lab
}

/// Waits until a command that boots guests has said this.
#[track_caller]
fn wait_for(running: &mut Running, part: &str) {
    let begun = Instant::now();
    while !running.said().contains(part) {
        assert!(running.is_running(), "it ended: {}", running.said());
        assert!(
            begun.elapsed() < PATIENCE,
            "'{part}' in vain: {}",
            running.said()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn complete(trials: &[Value]) -> usize {
    trials
        .iter()
        .filter(|trial| trial["status"] == "complete")
        .count()
}

#[test]
fn trials_run_on_a_real_kernel_and_are_kept_with_where_they_ran() {
    if !may("trials_run_on_a_real_kernel_and_are_kept_with_where_they_ran") {
        return;
    }
    let lab = small();
    let ran = run(&lab, "run small.toml --on vm --with-sim -n 1").done();
    ran.prints(&["Measured by a real kernel", "predicted", "raid1"]);
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (3, 3), "{trials:#?}");
    for trial in &trials {
        assert_eq!(trial["provenance"]["place"], "vm");
        let phases = trial["phases"].as_array().expect("phases");
        let names: Vec<_> = phases.iter().map(|phase| phase["phase"].clone()).collect();
        assert_eq!(names, ["read", "write"]);
        for phase in phases {
            let rate = phase["rate"].as_f64().expect("a figure");
            // The outer tracks of this disk give 67 MB/s, and two of them twice that; what is written here goes into
            // the disks' caches, by links of 300 MB/s.
            let most = if phase["phase"] == "read" {
                150e6
            } else {
                600e6
            };
            assert!((1e6..most).contains(&rate), "{phase:#?}");
        }
    }
    lab.run("plan small.toml").done().prints(&[
        "With --on vm about",
        "by the time of 3 earlier trials of these cells in the store",
    ]);
    let shown = lab.run("show --json").done().json();
    let environments = shown["environments"].to_string();
    for part in ["\"virtual\"", "cloud-amd64", "QEMU emulator", "mdadm"] {
        assert!(environments.contains(part), "{part}");
    }
    assert!(left(&lab).is_empty());
    assert_gone(&lab);
}

/// Degraded and being filled, in a guest whose raidlab has been built for tests.
const STATES: &str = r#"title = "States"
disks = { model = "ST3250624AS", count = 4 }

[profile]
name = "sequential"
block = "256KiB"
depth = 2
total = "16MiB"
read-percent = 100

[array]
layout = "raid6"
member-size = "64MiB"
chunk = "64KiB"
sync-speed-max = "20MiB/s"
sync-speed-min = "1MiB/s"

[host]
memory = "384MiB"

[factors]
state = ["degraded 1", "rebuilding 1"]

[design]
repeats = 1
"#;

#[test]
fn arrays_are_degraded_and_rebuilt_as_the_cell_says() {
    if !may("arrays_are_degraded_and_rebuilt_as_the_cell_says") {
        return;
    }
    let lab = Lab::new();
    lab.write("states.toml", STATES);
    let ran = run(&lab, "run states.toml --on vm --with-sim").done();
    ran.prints(&["rebuild under the load of the phases", "degraded 1"]);
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (2, 2), "{trials:#?}");
    for trial in &trials {
        let phases = trial["phases"].as_array().expect("phases");
        let figure = |phase: &Value, name: &str| {
            let figures = phase["figures"].as_array().expect("figures");
            let figure = figures.iter().find(|figure| figure["name"] == name);
            figure.and_then(|figure| figure["value"].as_f64())
        };
        let (rate, read) = (
            phases[0]["rate"].as_f64(),
            figure(&phases[0], "member-read"),
        );
        let times = read.expect("members are watched") / rate.expect("a figure");
        assert!(times >= 1.0, "{times}: {phases:#?}");
        if trial["cell"]["factors"]["state"] == "degraded 1" {
            assert_eq!(phases.len(), 1);
            // In half of the rows a block of data is lost, which is computed from the three others.
            assert!((1.2..1.3).contains(&times), "{times}: {phases:#?}");
            continue;
        }
        // 64 MiB at 20 MiB a second, the superblock's share aside.
        let alone = figure(&phases[1], "rebuild-time").expect("measured");
        assert!((2.0..8.0).contains(&alone), "{alone}: {phases:#?}");
        assert!(figure(&phases[1], "rebuild-rate-loaded").expect("measured") > 1e5);
    }
}

/// The second member fails when 160 MiB are there, and is filled with that and no more, in the guest as in the prediction.
const REPLACED: &str = r#"title = "Replaced"
disks = { model = "ST3250624AS", count = 2 }

[profile]
name = "sequential"
size = "32MiB"
total = "16MiB"
read-percent = 100

[array]
engine = "btrfs"
layout = "raid1"
member-size = "512MiB"
state = "rebuilding 1"
failed = [1]
allocated = "160MiB"

[host]
memory = "384MiB"

[design]
repeats = 1
verify = true
"#;

#[test]
fn a_member_of_btrfs_is_replaced_beside_the_phases() {
    if !may("a_member_of_btrfs_is_replaced_beside_the_phases") {
        return;
    }
    replaced(REPLACED, 160 << 20);
}

/// Of three disks with parity each has half as much as there is data, and of that a third is parity, which the kernel does not count.
#[test]
fn a_member_of_btrfs_is_filled_from_parity() {
    if !may("a_member_of_btrfs_is_filled_from_parity") {
        return;
    }
    let text = REPLACED.replace("raid1", "raid5");
    replaced(&text.replace("count = 2", "count = 3"), 80 << 20);
}

/// Predicts and runs an experiment in which one member is to be filled with about so many bytes.
fn replaced(text: &str, least: u32) {
    let lab = Lab::new();
    lab.write("replaced.toml", text);
    let rebuilt = |line: &str| {
        run(&lab, line).done();
        let trials = lab.trials();
        assert_eq!((trials.len(), complete(&trials)), (1, 1), "{trials:#?}");
        let phases = trials[0]["phases"].as_array().expect("phases");
        let rebuild = phases.iter().find(|phase| phase["phase"] == "rebuild");
        let rebuild = rebuild.unwrap_or_else(|| panic!("not rebuilt: {phases:#?}"));
        let figure = |name: &str| rebuild[name].as_f64().expect("a figure");
        // The phase is over before the member is whole.
        let figures = rebuild["figures"].as_array().expect("figures");
        let beside = |figure: &Value| figure["name"] == "rebuild-rate-loaded";
        assert!(figures.iter().any(beside), "{phases:#?}");
        let checked = trials[0]["checks"][0]["consistent"].as_bool();
        (figure("bytes"), figure("rate"), checked)
    };
    let (predicted, at, _) = rebuilt("run replaced.toml --on sim");
    let least = f64::from(least);
    assert!((least..1.05 * least).contains(&predicted), "{predicted}");
    let (bytes, rate, checked) = rebuilt("run replaced.toml --on vm");
    // What was done since it was asked last is not counted.
    assert!(
        (0.9..1.05).contains(&(bytes / predicted)),
        "{bytes} and {predicted}"
    );
    assert!((0.7..1.3).contains(&(rate / at)), "{rate} and {at}");
    assert_eq!(checked, Some(true));
}

/// What the trials of the last session ran on.
fn environments(lab: &Lab) -> String {
    let said = lab.run("show --json").done().json()["environments"].to_string();
    assert!(said.contains("\"kernel"), "{said}");
    said
}

/// Each write is of four chunks, which md lets in one by one while it rebuilds: io_uring's first try, which must not wait, then
/// ends with EAGAIN, and not in a thread where the kernel tries it again (seen with Linux 6.1, in each of 16 trials).
const PUT_OFF: &str = r#"title = "Put off"
disks = { model = "ST3250624AS", count = 4 }

[array]
layout = "raid10"
state = "rebuilding 1"
member-size = "128MiB"
chunk = "64KiB"
sync-speed-min = "20MiB/s"

[host]
memory = "384MiB"

[profile]
name = "random"
block = "256KiB"
depth = 16
time = "2s"
read-percent = 0

[design]
repeats = 1
"#;

#[test]
fn writes_that_an_array_puts_off_while_it_rebuilds_are_submitted_again() {
    if !may("writes_that_an_array_puts_off_while_it_rebuilds_are_submitted_again") {
        return;
    }
    let lab = Lab::new();
    lab.write("off.toml", PUT_OFF);
    // Whether it puts anything off in a trial is a matter of chance; that every trial comes to its end is not.
    let mut reasons: Vec<String> = Vec::new();
    for seed in 1..=8 {
        run(&lab, &format!("run off.toml --on vm --seed {seed}")).done();
        let trials = lab.trials();
        assert_eq!((trials.len(), complete(&trials)), (1, 1), "{trials:#?}");
        let write = &trials[0]["phases"][0];
        let flags = write["flags"].as_array().expect("flags");
        let told = flags.iter().filter_map(|f| f["reason"].as_str());
        reasons.extend(told.map(str::to_owned));
        // Kernels whose md waits, or refuses at once, put nothing off.
        let known = environments(&lab).contains("\"6.1.");
        if !known || reasons.iter().any(|reason| reason.contains("(EAGAIN)")) {
            return;
        }
    }
    panic!("nothing was put off: {reasons:?}");
}

/// fio asks no second time: beside a rebuild it waits for the device by libaio (with io_uring one of two such trials failed).
#[test]
fn fio_waits_for_what_an_array_puts_off_while_it_rebuilds() {
    let name = "fio_waits_for_what_an_array_puts_off_while_it_rebuilds";
    if !may(name) || !has(name, "fio") {
        return;
    }
    let lab = Lab::new();
    lab.write(
        "off.toml",
        PUT_OFF
            .replace("repeats = 1", "repeats = 3")
            .replace("384MiB", "512MiB"),
    );
    run(&lab, "run off.toml --on vm --driver tool").done();
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (3, 3), "{trials:#?}");
    let said = environments(&lab);
    assert!(said.contains("--ioengine=libaio"), "{said}");
    assert!(!said.contains("--ioengine=io_uring"), "{said}");
}

/// Which disk has failed is a matter of the roles that the experiment gives, in the RAIDs of BIOSes, too.
#[test]
fn a_bios_raid_loses_the_member_that_the_experiment_names() {
    if !may("a_bios_raid_loses_the_member_that_the_experiment_names") {
        return;
    }
    let lab = Lab::new();
    let text = SMALL
        .replace("count = 2", "count = 4")
        .replace("repeats = 2", "repeats = 1")
        .replace(
            "chunk = \"64KiB\"",
            "chunk = \"64KiB\"\nlayout = \"raid5-la\"\nfailed = [2]\nstate = \"degraded 1\"",
        );
    let text = text.replace(
        "layout = [\"single\", \"raid0\", \"raid1\"]",
        "array = [\n  { name = \"intel\", metadata = \"imsm\" },\n  \
         { name = \"filled\", metadata = \"imsm\", state = \"rebuilding 1\" },\n  \
         { name = \"ddf 5\", metadata = \"ddf\" },\n  \
         { name = \"ddf 6\", metadata = \"ddf\", layout = \"raid6-ddf-N-continue\" },\n  \
         { name = \"ddf 10\", metadata = \"ddf\", layout = \"raid10\" },\n]",
    );
    lab.write("bios.toml", text);
    run(&lab, "run bios.toml --on vm").done();
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (5, 5), "{trials:#?}");
    let shown = lab.run("show --json").done().json();
    for trial in &trials {
        let id = trial["environment"].as_str().expect("an environment");
        let environment = shown["environments"][id].to_string();
        // The third of the disks, and no other.
        let lost = "Disk failure on nbd2";
        assert!(environment.contains(lost), "{environment}");
        for kept in [0, 1, 3] {
            assert!(!environment.contains(&format!("Disk failure on nbd{kept}")));
        }
        let degraded = trial["phases"][0]["flags"].to_string();
        assert!(degraded.contains("as the cell asks for"), "{trial:#}");
    }
    assert_gone(&lab);
}

#[test]
fn a_killed_run_leaves_nothing_and_loses_no_trial() {
    if !may("a_killed_run_leaves_nothing_and_loses_no_trial") {
        return;
    }
    let lab = small();
    let mut running = lab.start_command(command(&lab, "run small.toml --on vm"));
    wait_for(&mut running, "[1/6]");
    running.signal(Signal::KILL);
    running.end();
    // The kernel ends QEMU with raidlab; the directory is for the next run to remove.
    assert_gone(&lab);
    assert_eq!(left(&lab).len(), 1);
    let kept = complete(&lab.trials());
    assert!(kept >= 1);
    let again = run(&lab, "run small.toml --on vm").done();
    let again = again.says(&["left by a run that was killed", "going on with session"]);
    assert!(
        again
            .err
            .contains(&format!(": {kept} of 6 trials are there")),
        "{}",
        again.err
    );
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (6, 6));
    assert!(left(&lab).is_empty());
}

#[test]
fn a_guest_that_is_killed_ends_its_trial_alone() {
    if !may("a_guest_that_is_killed_ends_its_trial_alone") {
        return;
    }
    let lab = small();
    let mut running = lab.start_command(command(&lab, "run small.toml --on vm -n 1"));
    wait_for(&mut running, "[1/3]");
    let qemu = processes(&lab);
    let qemu = qemu.iter().find(|(_, line)| line.contains("qemu-system"));
    let (pid, _) = qemu.expect("QEMU runs");
    kill_process(Pid::from_raw(*pid).expect("a process id"), Signal::KILL).expect("it is there");
    let begun = Instant::now();
    while running.is_running() {
        assert!(begun.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(running.end().code(), Some(5), "{}", running.said());
    let said = running.said();
    assert!(said.contains("QEMU ended with signal: 9"), "{said}");
    let trials = lab.trials();
    assert_eq!((trials.len(), complete(&trials)), (3, 2), "{said}");
    assert_gone(&lab);
    assert!(left(&lab).is_empty());
}

#[test]
fn ctrl_c_leaves_nothing() {
    if !may("ctrl_c_leaves_nothing") {
        return;
    }
    let lab = small();
    let mut running = lab.start_command(command(&lab, "run small.toml --on vm"));
    wait_for(&mut running, "[1/6]");
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    assert_gone(&lab);
    assert!(left(&lab).is_empty());
    assert!(complete(&lab.trials()) >= 1);
}

#[test]
fn what_a_guest_cannot_have_is_refused_before_it_boots() {
    if !may("what_a_guest_cannot_have_is_refused_before_it_boots") {
        return;
    }
    let lab = Lab::new();
    lab.write("large.toml", SMALL.replace("member-size = \"64MiB\"\n", ""));
    run(&lab, "run large.toml --on vm")
        .refused(4)
        .says(&["in memory", "member-size"]);
    assert!(!lab.store().exists());
}
