//! The experiments of the repository: each parses, has the cells that it should have, and covers the
//! rows of its study.
mod common;

use common::{STUDIES, known, root, rows};
use raidlab_experiment::{Experiment, expand, parse};
use std::collections::{BTreeMap, BTreeSet};

/// File, cells and trials.
const EXPERIMENTS: [(&str, usize, usize); 34] = [
    ("bitmap", 18, 90),
    ("btrfs-rebuilding", 12, 36),
    ("controller-rebuilding", 12, 36),
    ("home-lab", 8, 24),
    ("partitions", 6, 30),
    ("pata-blocksize", 2 * 6 * 4 * 11, 2 * 6 * 4 * 11 * 10),
    ("pata-channels", 3, 9),
    ("pata-raid0", 11, 11),
    ("sata-md-levels", 14 * 3, 14 * 3 * 3),
    ("scsi-hdbench", 11, 11),
    ("state-clean", 5, 15),
    ("state-degraded", 11, 33),
    ("state-initial-sync", 6, 18),
    ("state-rebuilding", 6, 18),
    ("state-resyncing", 6, 18),
    ("vm-all-levels", 16, 48),
    ("vm-btrfs", 20, 20),
    ("vm-btrfs-degraded", 15, 15),
    ("vm-btrfs-parity", 30, 30),
    ("vm-btrfs-parity-rebuilding", 9, 9),
    ("vm-btrfs-rebuilding", 12, 12),
    ("vm-cached", 8, 8),
    ("vm-calls", 4, 4),
    ("vm-chunks", 32, 32),
    ("vm-levels", 10, 10),
    ("vm-raidz", 4, 12),
    ("vm-readers", 8, 8),
    ("vm-states", 8, 24),
    ("vm-zfs-ashift", 2, 6),
    ("vm-zfs-states", 24, 24),
    ("what-to-buy", 8, 40),
    ("write-back", 12, 60),
    ("zfs-ashift", 2, 6),
    ("zfs-rebuilding", 6, 18),
];

fn read(name: &str) -> Experiment {
    let file = format!("experiments/{name}.toml");
    let text = std::fs::read_to_string(root().join(&file)).expect("the experiment is there");
    parse(&text, &file, &known()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

#[test]
fn every_experiment_has_its_cells_and_trials() {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("experiments")).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        found.insert(name.to_owned());
    }
    let listed: BTreeSet<String> = EXPERIMENTS.iter().map(|e| e.0.to_owned()).collect();
    assert_eq!(found, listed);
    for (name, cells, trials) in EXPERIMENTS {
        let experiment = read(name);
        assert_eq!(experiment.cells.len(), cells, "{name}");
        let plan = expand(&experiment, experiment.design.seed);
        assert_eq!(plan.trials.len(), trials, "{name}");
    }
}

#[test]
fn every_row_of_every_study_is_a_cell() {
    for (id, text) in STUDIES {
        let experiment = read(id);
        let expected = experiment.expected.as_ref().expect("published figures");
        let mapped: BTreeSet<&str> = expected.rows.keys().map(String::as_str).collect();
        assert_eq!(mapped, rows(text).into_iter().collect(), "{id}");
        let labels: BTreeSet<&String> = experiment.cells.iter().map(|c| &c.label).collect();
        assert!(
            expected.rows.values().all(|label| labels.contains(label)),
            "{id}"
        );
    }
}

/// The factors that the studies' own rows have are those of the cells that they are mapped to.
#[test]
fn cells_have_the_factors_of_the_published_rows() {
    let factors = |name: &str, label: &str| -> BTreeMap<String, String> {
        let experiment = read(name);
        let cell = experiment.cells.iter().find(|c| c.label == label);
        cell.expect("the cell is there").factors()
    };
    let pata = factors("pata-raid0", "bios raid0 3 disks");
    for (name, value) in [
        ("level", "raid0"),
        ("disks", "3"),
        ("engine", "controller"),
        ("channels", "2+1"),
        ("capacity-disks", "3"),
    ] {
        assert_eq!(pata[name], value, "{name}");
    }
    let scsi = factors("scsi-hdbench", "raid50 8 mixed");
    for (name, value) in [("level", "raid50"), ("disks", "8"), ("capacity-disks", "6")] {
        assert_eq!(scsi[name], value, "{name}");
    }
    let zfs = factors("zfs-ashift", "ashift 12");
    for (name, value) in [("level", "raid1"), ("engine", "zfs"), ("ashift", "12")] {
        assert_eq!(zfs[name], value, "{name}");
    }
    let label = "tiobench, raid0 3 disks, cfq, call-size 64KiB";
    let sweep = factors("pata-blocksize", label);
    for (name, value) in [
        ("block-size", "65536"),
        ("layout", "raid0 3 disks"),
        ("scheduler", "cfq"),
    ] {
        assert_eq!(sweep[name], value, "{name}");
    }
}

#[test]
fn a_home_lab_user_writes_fifteen_lines_at_most() {
    let text = std::fs::read_to_string(root().join("experiments/home-lab.toml")).expect("a file");
    assert!(text.lines().count() <= 15);
}

#[test]
fn plans_are_described() {
    let describe = |name: &str| {
        let experiment = read(name);
        expand(&experiment, experiment.design.seed)
            .describe()
            .join("\n")
    };
    insta::assert_snapshot!("describe-home-lab", describe("home-lab"));
    insta::assert_snapshot!("describe-pata-blocksize", describe("pata-blocksize"));
    insta::assert_snapshot!("describe-state-degraded", describe("state-degraded"));
}

#[test]
fn the_stored_form_is_whole_and_comes_back() {
    for (name, ..) in EXPERIMENTS {
        let experiment = read(name);
        let toml = experiment.to_toml().expect("TOML");
        assert_eq!(
            Experiment::from_toml(&toml),
            Ok(experiment.clone()),
            "{name}"
        );
        let json = experiment.to_json().expect("JSON");
        assert_eq!(
            Experiment::from_json(&json),
            Ok(experiment.clone()),
            "{name}"
        );
        assert_eq!(experiment.digest(), read(name).digest(), "{name}");
    }
    let stored = read("home-lab").to_toml().expect("TOML");
    insta::assert_snapshot!("stored-home-lab", stored);
}

#[test]
fn a_cell_is_known_again_after_words_have_changed() {
    let text = std::fs::read_to_string(root().join("experiments/home-lab.toml")).expect("a file");
    let before = parse(&text, "before", &known()).expect("sound");
    let reworded = text
        .replace("Four disks:", "For my basement:")
        .replace("repeats = 3", "repeats = 9")
        .replace("\"raid10-f2\"]", "\"raid10-o2\", \"raid10-f2\"]");
    let after = parse(&reworded, "after", &known()).expect("sound");
    assert_ne!(before.digest(), after.digest());
    let digests = |e: &Experiment| -> BTreeMap<String, String> {
        let all = e.cells.iter().map(|c| (c.label.clone(), e.cell_digest(c)));
        all.collect()
    };
    let (before, after) = (digests(&before), digests(&after));
    let distinct: BTreeSet<&String> = after.values().collect();
    assert_eq!(distinct.len(), after.len());
    for (label, digest) in before {
        assert_eq!(after[&label], digest, "{label}");
    }
}

/// Each cell of a factorial design has one fellow among the baseline's cells: the one that differs in
/// what the baseline names, and in what follows from it, alone.
#[test]
fn every_cell_has_one_baseline() {
    for name in [
        "home-lab",
        "pata-blocksize",
        "sata-md-levels",
        "state-rebuilding",
    ] {
        let experiment = read(name);
        let base = experiment.baseline_factors().expect("a baseline by levels");
        let rest = |factors: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let rest = factors.iter().filter(|(k, _)| !base.contains_key(*k));
            rest.map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let all: Vec<_> = experiment.cells.iter().map(|c| c.factors()).collect();
        for factors in &all {
            let is_base =
                |c: &&BTreeMap<String, String>| base.iter().all(|(k, v)| c.get(k) == Some(v));
            let fellows = all
                .iter()
                .filter(is_base)
                .filter(|c| rest(c) == rest(factors));
            assert_eq!(fellows.count(), 1, "{name}: {factors:?} against {base:?}");
        }
    }
}

/// The catalogue is the simulator's; this crate knows only names, so they are compared here.
#[test]
fn every_model_is_in_the_catalogue() {
    let models = root().join("crates/raidlab-sim/models");
    for (name, ..) in EXPERIMENTS {
        for disk in read(name).disks {
            let file = models.join(format!("{}.toml", disk.model));
            assert!(file.is_file(), "{name}: {} is no model", disk.model);
        }
    }
}
