//! Tools, file systems and controllers in the guest; a published study beside the simulator.
use crate::guest::{left, may, run};
use crate::lab::Lab;
use serde_json::Value;

/// dd itself on arrays and on a file system, and an array that is synced first.
const TOOLS: &str = r#"title = "Tools"
disks = { model = "ST3250624AS", count = 2 }

[profile]
name = "dd"
bs = "1MiB"
count = 16
cold = false
conv = "none"

[array]
member-size = "64MiB"
chunk = "64KiB"

[host]
memory = "384MiB"
kernel = "2.6.21"

[factors]
array = [
  { name = "single", layout = "single", members = 1 },
  { name = "raid1", layout = "raid1" },
  { name = "raid0 ext4", layout = "raid0", filesystem = "ext4" },
]
"#;

fn phases(trial: &Value) -> Vec<(String, f64)> {
    let phases = trial["phases"].as_array().expect("phases");
    let one = |phase: &Value| {
        let name = phase["phase"].as_str().unwrap_or_default().to_owned();
        (name, phase["rate"].as_f64().unwrap_or_default())
    };
    phases.iter().map(one).collect()
}

#[test]
fn tools_run_on_synced_arrays_and_on_file_systems() {
    if !may("tools_run_on_synced_arrays_and_on_file_systems") {
        return;
    }
    let lab = Lab::new();
    lab.write("tools.toml", TOOLS);
    let ran = run(&lab, "run tools.toml --on vm --driver tool --sync -n 1").done();
    // The scheduler of that kernel is gone; what came after it is in the guest.
    ran.says(&["bfq, which came after it, is set"]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 3, "{trials:#?}");
    for trial in &trials {
        let tool = trial["provenance"].to_string();
        assert!(tool.contains("\"dd\""), "{tool}");
        let phases = phases(trial);
        let names: Vec<&str> = phases.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["write-first", "read-first", "write", "read"]);
        // How busy the guest's processor was is told of each call of dd.
        for phase in trial["phases"].as_array().expect("phases") {
            assert!(
                phase["figures"].to_string().contains("guest-cpu"),
                "{phase:#}"
            );
        }
        if trial["cell"]["label"] != "raid0 ext4" {
            // dd was the last to close the array, or the disk: what it wrote had to go to the disks, and what it read
            // came from there.
            for (name, rate) in &phases {
                assert!((1e6..150e6).contains(rate), "{name}: {rate}");
            }
        }
    }
    let shown = lab.run("show --json").done().json();
    let environments = shown["environments"].to_string();
    for part in ["of=/dev/md", "\"initial_sync_ns\":[[\"md", "mkfs.ext4"] {
        assert!(environments.contains(part), "{part}: {environments}");
    }
    assert!(left(&lab).is_empty());
}

#[test]
fn two_drives_of_a_channel_are_slower_than_two_of_two() {
    if !may("two_drives_of_a_channel_are_slower_than_two_of_two") {
        return;
    }
    let lab = Lab::new();
    let text = include_str!("../../../../experiments/pata-channels.toml");
    lab.write("channels.toml", text.replace("96MiB", "16MiB"));
    run(&lab, "run channels.toml --on vm --with-sim -n 1").done();
    let trials = lab.trials();
    let read = |label: &str| {
        let trial = trials.iter().find(|trial| trial["cell"]["label"] == label);
        let phases = phases(trial.unwrap_or_else(|| panic!("{label}: {trials:#?}")));
        let read = phases.into_iter().find(|(name, _)| name == "read");
        read.expect("it is read").1
    };
    let (one, two) = (read("2 disks, 1 channel"), read("2 disks, 2 channels"));
    assert!(one < 0.8 * two, "{one} on one channel, {two} on two");
    assert!(one < read("1 disk"), "as in the study");
}

#[test]
fn in_real_time_the_way_to_the_disks_is_told() {
    if !may("in_real_time_the_way_to_the_disks_is_told") {
        return;
    }
    let lab = Lab::new();
    let text = r#"title = "One channel"
disks = { model = "ST340015A", count = 2 }

[topology.controllers.card]
kind = "pata"
disks = [["disk0", "disk1"]]

[profile]
name = "random"
block = "4KiB"
total = "256KiB"

[array]
layout = "raid0"
member-size = "64MiB"
chunk = "64KiB"

[host]
memory = "384MiB"
"#;
    lab.write("channel.toml", text);
    // The way is measured in a guest of its own first, and made up for.
    run(&lab, "run channel.toml --on vm --time real -n 1")
        .done()
        .says(&["the way to the disks and back takes"]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 1, "{trials:#?}");
    for phase in trials[0]["phases"].as_array().expect("phases") {
        let figures = phase["figures"].as_array().expect("figures");
        let way = figures
            .iter()
            .find(|figure| figure["name"] == "way-to-disks");
        let share = way
            .and_then(|way| way["value"].as_f64())
            .expect("it is told");
        let late = phase["flags"].to_string().contains("\"late\"");
        // More than 3 % of the time makes it no figure of the disks.
        assert_eq!(share.abs() > 3.0, late, "{phase:#?}");
    }
    let shown = lab.run("show --json").done().json();
    let environments = shown["environments"].to_string();
    for part in ["\"ide\"", "\"replies\":", "\"waited\":", "\"early_us\":"] {
        assert!(environments.contains(part), "{part}: {environments}");
    }
    assert!(left(&lab).is_empty());
}

#[test]
fn a_study_is_printed_beside_the_simulator_and_what_was_published() {
    if !may("a_study_is_printed_beside_the_simulator_and_what_was_published") {
        return;
    }
    let lab = Lab::new();
    let line = "reference run sata-md-levels --on vm --member-size 64MiB --rows 'raid0 sda sdb, dd count=10'";
    let ran = run(&lab, line).done();
    ran.prints(&[
        "64 MiB of each disk used",
        "Measured by a real kernel",
        "raid0 sda sdb, dd count=10",
        "Does what the study found hold on a real kernel, and in the model?",
        "Finding 1:",
    ]);
    assert_eq!(lab.trials().len(), 1);
    run(&lab, "reference run pata-raid0 --on vm --rows bios")
        .refused(2)
        .says(&["left out", "no row that a kernel can run"]);
    assert!(left(&lab).is_empty());
}
