//! Disks whose sectors are of 4 KiB for whoever talks to them: what an experiment says of its disks is what the guest's
//! kernel has.
use crate::guest::{assert_gone, may, run};
use crate::lab::Lab;
use serde_json::Value;

const LARGE: &str = r#"title = "Sectors of 4 KiB"
disks = { model = "nearline-24tb", count = 3, override = { sector-logical = "4KiB" } }

[profile]
name = "sequential"
size = "16MiB"
block = "256KiB"
depth = 2
total = "4MiB"

[array]
member-size = "64MiB"
chunk = "64KiB"

[host]
memory = "384MiB"

[factors]
layout = ["raid1", "raid5"]
filesystem = ["none", "ext4"]

[design]
repeats = 1
"#;

/// All values of this name in a document.
fn all<'v>(document: &'v Value, name: &str) -> Vec<&'v Value> {
    match document {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match key == name {
                true => vec![value],
                false => all(value, name),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(|value| all(value, name)).collect(),
        _ => Vec::new(),
    }
}

#[track_caller]
fn trials_had_sectors_of_4_kib(lab: &Lab, number: usize) {
    let shown = lab.run("show --json").done().json();
    let trials = shown["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), number);
    for trial in trials {
        assert_eq!(trial["status"], "complete", "{trial:#}");
        let id = trial["environment"].as_str().expect("an environment");
        let logical = all(&shown["environments"][id], "logical_sector");
        assert!(!logical.is_empty(), "{}", shown["environments"][id]);
        assert!(logical.iter().all(|size| **size == 4096), "{logical:?}");
    }
}

#[test]
fn arrays_of_disks_with_large_sectors_are_built_and_measured() {
    if !may("arrays_of_disks_with_large_sectors_are_built_and_measured") {
        return;
    }
    let lab = Lab::new();
    lab.write("large.toml", LARGE);
    run(&lab, "run large.toml --on vm").done();
    trials_had_sectors_of_4_kib(&lab, 4);
    assert_gone(&lab);
}

/// By the host's clock disks stand behind QEMU's hardware, whose ports of SATA know sectors of 512 bytes alone.
#[test]
fn disks_with_large_sectors_are_served_from_outside_too() {
    if !may("disks_with_large_sectors_are_served_from_outside_too") {
        return;
    }
    let lab = Lab::new();
    let one = LARGE.replace("[\"raid1\", \"raid5\"]", "[\"raid1\"]");
    let one = one
        .replace("[\"none\", \"ext4\"]", "[\"ext4\"]")
        .replace("chunk = \"64KiB\"\n", "");
    lab.write("large.toml", one);
    run(&lab, "run large.toml --on vm --time real --early 0s").done();
    trials_had_sectors_of_4_kib(&lab, 1);
    assert_gone(&lab);
}
