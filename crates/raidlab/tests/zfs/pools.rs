//! Pools in a guest: built as asked for, verified, measured, and taken apart.
use crate::lab::Lab;
use crate::run;
use serde_json::Value;

pub(crate) const SMALL: &str = r#"title = "Small pools"
disks = { model = "ST3250624AS", count = 4 }

[profile]
name = "bonnie"
size = "16MiB"
fast = true
files = 0
seeks = 50
seek-time = "0s"

[array]
member-size = "128MiB"

[host]
memory = "512MiB"

[factors]
pool = [
  { name = "mirror, ashift 9", layout = "zfs-mirror", members = 2, ashift = 9 },
  { name = "mirror, ashift 12", layout = "zfs-mirror", members = 2, ashift = 12 },
  { name = "raidz", layout = "raidz1", ashift = 12, record-size = "64KiB" },
  { name = "raidz2", layout = "raidz2", ashift = 9 },
  { name = "striped mirrors", layout = "zfs-mirror 2x2", ashift = 13 },
  { name = "stripe", layout = "zfs-stripe", members = 3, ashift = 12 },
  { name = "one disk", layout = "single", engine = "zfs", ashift = 12 },
]

[design]
repeats = 1
"#;

/// What the tools of the guest said of a pool.
fn said<'v>(environment: &'v Value, tool: &str) -> Vec<&'v str> {
    let said = environment["array"]["facts"]["said"].as_object();
    let said = said.expect("what the tools said").iter();
    let of = said.filter(|(command, _)| command.starts_with(tool));
    of.filter_map(|(_, text)| text.as_str()).collect()
}

#[test]
fn pools_are_what_was_asked_for() {
    let lab = Lab::new();
    lab.write("pools.toml", SMALL);
    run(&lab, "run pools.toml --on vm")
        .done()
        .prints(&["raidz2"]);
    let shown = lab.run("show --json").done().json();
    let trials = shown["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 7);
    for (label, ashift, parts, kinds) in [
        ("mirror, ashift 9", 9, 2, &["type: 'mirror'"][..]),
        ("mirror, ashift 12", 12, 2, &["type: 'mirror'"]),
        ("raidz", 12, 4, &["type: 'raidz'", "nparity: 1"]),
        ("raidz2", 9, 4, &["type: 'raidz'", "nparity: 2"]),
        (
            "striped mirrors",
            13,
            4,
            &["type: 'mirror'", "vdev_children: 2"],
        ),
        ("stripe", 12, 3, &["type: 'disk'", "vdev_children: 3"]),
        ("one disk", 12, 1, &["type: 'disk'", "vdev_children: 1"]),
    ] {
        let trial = trials.iter().find(|trial| trial["cell"]["label"] == label);
        let trial = trial.unwrap_or_else(|| panic!("no trial of {label}"));
        assert_eq!(trial["status"], "complete", "{trial:#}");
        let phases = trial["phases"].as_array().expect("phases");
        assert_eq!(phases.len(), 4, "{label}");
        assert!(
            phases
                .iter()
                .all(|phase| phase["rate"].as_f64().is_some_and(|rate| rate > 1.0))
        );
        let id = trial["environment"].as_str().expect("an environment");
        let environment = &shown["environments"][id];
        let labels = said(environment, "zdb -l");
        assert_eq!(labels.len(), parts, "{label}: {environment:#}");
        for text in labels {
            assert!(
                text.contains(&format!("ashift: {ashift}\n")),
                "{label}: {text}"
            );
            for kind in kinds {
                assert!(text.contains(kind), "{label}: no {kind} in {text}");
            }
        }
        let properties = said(environment, "zfs get all").concat();
        let record = if label == "raidz" { "64K" } else { "128K" };
        let line = properties.lines().find(|line| line.contains("recordsize"));
        assert!(
            line.is_some_and(|line| line.contains(record)),
            "{label}: {line:?}"
        );
        assert!(
            said(environment, "zpool status")
                .concat()
                .contains("state: ONLINE")
        );
    }
    assert!(crate::guest::left(&lab).is_empty());
}

#[test]
fn the_simulator_has_the_same_pools_and_says_what_it_has_no_model_of() {
    let lab = Lab::new();
    lab.write("pools.toml", SMALL);
    lab.run("run pools.toml --on sim --repeats 1")
        .done()
        .prints(&["raidz2", "striped mirrors"]);
    let in_state = |state: &str| {
        let text = SMALL.replace("[host]", &format!("state = \"{state}\"\n\n[host]"));
        // Of those that survive a disk.
        let redundant = |line: &&str| !line.contains("one disk") && !line.contains("zfs-stripe");
        let lines = text.lines().filter(redundant);
        lines.collect::<Vec<_>>().join("\n")
    };
    lab.write("rebuilding.toml", in_state("rebuilding 1"));
    lab.run("run rebuilding.toml --on sim --repeats 1")
        .done()
        .prints(&["rebuild", "striped mirrors"]);
    lab.write("resyncing.toml", in_state("resyncing"));
    lab.run("run resyncing.toml --on sim --repeats 1")
        .refused(2)
        .says(&["is of ZFS, which is never resyncing"]);
}
