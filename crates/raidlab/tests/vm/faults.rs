//! What is left when raidlab, QEMU or the server of the disks is killed at any moment, and what is said of a member that
//! dies.
use crate::guest::{PATIENCE, assert_gone, command, left, may, processes, run};
use crate::lab::{Lab, Running};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::{Duration, Instant};

const SMALL: &str = r#"title = "Small"
disks = { model = "ST3250624AS", count = 2 }

[profile]
name = "sequential"
block = "256KiB"
depth = 2
total = "4MiB"

[array]
member-size = "32MiB"
chunk = "64KiB"

[host]
memory = "384MiB"

[factors]
layout = ["single", "raid0", "raid1"]

[design]
repeats = 1
"#;

/// So many times each of them is killed.
const KILLS: usize = 10;

/// Moments by a seed: shares of the time from a run's start to its end.
fn moments(seed: u64) -> impl Iterator<Item = f64> {
    // SplitMix64.
    let next = move |n: u64| {
        let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (1..=KILLS as u64).map(move |n| next(n) as f64 / u64::MAX as f64)
}

/// A lab with the experiment, and how long a whole run of it takes on this machine, as busy as it is.
fn measured(line: &str) -> (Lab, Duration) {
    let lab = Lab::new();
    lab.write("small.toml", SMALL);
    let begun = Instant::now();
    run(&lab, line).done();
    (lab, begun.elapsed())
}

/// Sleeps, but no longer than a run lasts.
fn sleep_while(running: &mut Running, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time && running.is_running() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills raidlab at ten moments: `raidlab clean`, or the next run, leaves nothing, and no finished trial is lost.
fn raidlab_is_killed(line: &str, seed: u64) {
    let (lab, whole) = measured(line);
    let mut kept = lab.complete();
    assert_eq!(kept, 3);
    for (number, moment) in moments(seed).enumerate() {
        let mut running = lab.start_command(command(&lab, line));
        sleep_while(&mut running, whole.mul_f64(moment));
        if running.is_running() {
            running.signal(Signal::KILL);
        }
        running.end();
        // The kernel ends QEMU with raidlab; its directory, with the sockets, is for others to remove.
        assert_gone(&lab);
        if number % 2 == 0 {
            run(&lab, "clean").done();
            assert!(left(&lab).is_empty(), "{:?}", left(&lab));
            assert!(
                run(&lab, "clean")
                    .done()
                    .err
                    .contains("nothing was left behind")
            );
        }
        let now = lab.complete();
        assert!(now >= kept, "{now} of {kept} finished trials are left");
        kept = now;
    }
    run(&lab, line).done();
    assert!(left(&lab).is_empty(), "the next run removes what is there");
    let now = lab.complete();
    assert!(
        now >= kept && now.is_multiple_of(3),
        "{now} of {kept}: no whole runs"
    );
    assert_gone(&lab);
}

#[test]
fn raidlab_killed_at_ten_moments_leaves_nothing_and_loses_no_trial() {
    if may("raidlab_killed_at_ten_moments_leaves_nothing_and_loses_no_trial") {
        raidlab_is_killed("run small.toml --on vm", 1);
    }
}

/// In real time raidlab is the server of the disks, too: sockets, and a guest that hangs on them.
#[test]
fn the_server_of_a_guests_disks_killed_at_ten_moments_leaves_nothing() {
    if may("the_server_of_a_guests_disks_killed_at_ten_moments_leaves_nothing") {
        raidlab_is_killed("run small.toml --on vm --time real", 2);
    }
}

/// The number of QEMU's process, as soon as there is one; `None` when raidlab has ended.
fn qemu(lab: &Lab, running: &mut Running) -> Option<Pid> {
    let begun = Instant::now();
    while running.is_running() {
        let all = processes(lab);
        let found = all.iter().find(|(_, line)| line.contains("qemu-system"));
        if let Some((pid, _)) = found {
            return Pid::from_raw(*pid);
        }
        assert!(begun.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn qemu_killed_at_ten_moments_ends_its_trial_alone() {
    if !may("qemu_killed_at_ten_moments_ends_its_trial_alone") {
        return;
    }
    let line = "run small.toml --on vm";
    let (lab, whole) = measured(line);
    let mut kept = lab.complete();
    let mut running = lab.start_command(command(&lab, line));
    for moment in moments(3) {
        sleep_while(&mut running, whole.mul_f64(moment));
        let pid = loop {
            if let Some(pid) = qemu(&lab, &mut running) {
                break pid;
            }
            // It ended by itself; or gave up after guests that died one after the other, or one that died while it
            // booted (before it spoke at all, that is a QEMU that does not work here): it says so.
            let code = running.end().code();
            assert!(
                matches!(code, Some(0 | 4 | 5)),
                "{code:?}: {}",
                running.said()
            );
            assert_gone(&lab);
            assert!(left(&lab).is_empty());
            running = lab.start_command(command(&lab, line));
        };
        // It may end by itself at this very moment.
        let _ = kill_process(pid, Signal::KILL);
        let now = lab.complete();
        assert!(now >= kept, "{now} of {kept} finished trials are left");
        kept = now;
    }
    let begun = Instant::now();
    while running.is_running() {
        assert!(begun.elapsed() < PATIENCE, "{}", running.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    running.end();
    assert_gone(&lab);
    run(&lab, line).done();
    assert!(left(&lab).is_empty());
    assert!(lab.complete() >= kept.max(6));
}

/// The trial of each layout, with the kinds of its flags and of those of its last phase.
fn trial<'t>(trials: &'t [Value], label: &str) -> (&'t Value, Vec<&'t str>, Vec<&'t str>) {
    fn kinds(flags: &Value) -> Vec<&str> {
        let all = flags.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter()
            .filter_map(|flag| flag["kind"].as_str())
            .collect()
    }
    let found = trials.iter().find(|trial| trial["cell"]["label"] == label);
    let trial = found.unwrap_or_else(|| panic!("no {label} in {trials:#?}"));
    let last = trial["phases"].as_array().and_then(|phases| phases.last());
    let of_phase = last.map_or_else(Vec::new, |phase| kinds(&phase["flags"]));
    (trial, kinds(&trial["flags"]), of_phase)
}

#[test]
fn a_member_that_dies_in_the_middle_of_a_trial_is_reported_by_name() {
    if !may("a_member_that_dies_in_the_middle_of_a_trial_is_reported_by_name") {
        return;
    }
    let lab = Lab::new();
    let more = [("total = \"4MiB\"", "total = \"24MiB\"")];
    let small = more
        .iter()
        .fold(SMALL.to_owned(), |text, (a, b)| text.replace(a, b));
    lab.write("small.toml", small);
    let line = "run small.toml --on vm --fail disk1@100ms";
    let ran = run(&lab, line).code(5);
    ran.says(&["2 of 3 trials failed"]);
    let trials = lab.trials();
    // raid1 goes on without it, and md says so; raid0 cannot.
    for (label, says) in [
        ("raid1", "member disk1 (nbd1) failed after "),
        ("raid0", "member disk1 (nbd1) "),
    ] {
        let (trial, flags, of_phase) = trial(&trials, label);
        assert_eq!(trial["status"], "failed", "{trial:#}");
        let reason = trial["reason"].as_str().expect("a reason");
        assert!(
            reason.contains(says) && reason.contains("the kernel said '"),
            "{trial:#}"
        );
        assert_eq!(flags, ["member-failed"], "{trial:#}");
        if label == "raid1" {
            assert!(of_phase.contains(&"member-failed"), "{trial:#}");
            assert!(reason.contains("Disk failure on nbd1"), "{reason}");
        }
    }
    // It has no such member.
    let (single, flags, _) = trial(&trials, "single");
    assert_eq!(
        (&single["status"], flags.len()),
        (&"complete".into(), 0),
        "{single:#}"
    );
    assert!(left(&lab).is_empty());
    run(&lab, "run small.toml --on vm --fail disk7@1s")
        .refused(2)
        .says(&["no cell has a member 'disk7'"]);
    run(&lab, "run small.toml --on sim --fail disk1@1s")
        .refused(2)
        .says(&["--fail means nothing to --on sim", "--on vm"]);
}
