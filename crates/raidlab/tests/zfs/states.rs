//! Pools in a guest that have lost disks, and that get new ones: built so, measured, scrubbed, and taken apart.
use crate::lab::Lab;
use crate::run;
use serde_json::Value;

const STATES: &str = r#"title = "Pools without disks"
disks = { model = "ST3250624AS", count = 4 }

[array]
member-size = "512MiB"

[profile]
name = "random"
size = "32MiB"
total = "256KiB"

[host]
memory = "512MiB"

[factors]
pool = [
  { name = "mirror without the first", layout = "zfs-mirror", members = 2, failed = [0] },
  { name = "raidz2 without two", layout = "raidz2", state = "degraded 2", failed = [1, 3] },
  { name = "new in a mirror", layout = "zfs-mirror", members = 2, ashift = 9, state = "rebuilding 1", failed = [1], allocated = "96MiB" },
  { name = "two new in raidz2", layout = "raidz2", state = "rebuilding 2", failed = [0, 2], allocated = "96MiB" },
  { name = "new in both mirrors", layout = "zfs-mirror 2x2", ashift = 12, state = "rebuilding 2", failed = [0, 3], allocated = "96MiB" },
  { name = "what the phases read alone", layout = "raidz1", members = 3, state = "rebuilding 1" },
]

[design]
repeats = 1
verify = true
"#;

/// Bytes of the files that one new disk of each vdev gets.
const FILLED: [(&str, u64); 4] = [
    ("new in a mirror", 96 << 20),
    ("two new in raidz2", 48 << 20),
    ("new in both mirrors", 96 << 20),
    ("what the phases read alone", 16 << 20),
];

fn of<'t>(trials: &'t [Value], label: &str) -> &'t Value {
    let trial = trials.iter().find(|trial| trial["cell"]["label"] == label);
    let trial = trial.unwrap_or_else(|| panic!("no trial of {label}"));
    assert_eq!(trial["status"], "complete", "{trial:#}");
    assert_eq!(trial["checks"][0]["consistent"], true, "{trial:#}");
    trial
}

#[test]
fn pools_lose_disks_and_get_new_ones() {
    let lab = Lab::new();
    lab.write("states.toml", STATES);
    run(&lab, "run states.toml --on vm")
        .done()
        .prints(&["rebuilding 2", "to do"]);
    let shown = lab.run("show --json").done().json();
    let trials = shown["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 6);
    for (label, missing) in [("mirror without the first", 1), ("raidz2 without two", 2)] {
        let trial = of(trials, label);
        let id = trial["environment"].as_str().expect("an environment");
        let said = &shown["environments"][id]["array"]["facts"]["said"];
        let said = said.as_object().expect("what the tools said");
        let status = said
            .iter()
            .find(|(line, _)| line.starts_with("zpool status"));
        let status = status.and_then(|(_, text)| text.as_str()).expect("said");
        assert!(status.contains("state: DEGRADED"), "{status}");
        assert_eq!(status.matches("OFFLINE").count(), missing, "{status}");
        // What is on it is gone: nobody has a label of it to show.
        let labels = said.keys().filter(|line| line.starts_with("zdb -l"));
        assert_eq!(labels.count() + missing, if missing == 1 { 2 } else { 4 });
    }
    for (label, files) in FILLED {
        let trial = of(trials, label);
        let phases = trial["phases"].as_array().expect("phases");
        let rebuild = phases.last().expect("the last");
        assert_eq!(rebuild["phase"], "rebuild", "{trial:#}");
        let bytes = rebuild["bytes"].as_u64().expect("bytes");
        // With labels, metadata and what transaction groups write meanwhile.
        assert!(
            (files..files + (24 << 20)).contains(&bytes),
            "{label}: {bytes}"
        );
        assert!(rebuild["rate"].as_f64() > Some(1e6), "{rebuild:#}");
    }
    assert!(crate::guest::left(&lab).is_empty());
}
