//! The closing table: what layouts give, cost and hold, and the picks.
use super::experiments::request;
use super::synthetic;
use crate::record::{PhaseRecord, Unit};
use crate::report::document::{Block, Table};
use crate::report::experiment::{ArrayFacts, ExperimentRequest, WantedTable};
use crate::report::{
    Baseline, ReportRequest, Selector, TerminalOptions, experiment_report, render_terminal,
};

/// The closing table of one disk and arrays of five: level, state, usable disks, MiB/s, and what `arrays` says that
/// they survive.
fn closing(cells: &[(&str, &str, &str, f64, usize)]) -> (Vec<String>, Vec<String>) {
    let mut all = Vec::new();
    let mut arrays = Vec::new();
    for (level, state, capacity, mib, survives) in cells {
        let label = format!("{level}, {state}");
        let disks = if *level == "single" { "1" } else { "5" };
        let factors = [
            ("level", *level),
            ("state", *state),
            ("disks", disks),
            ("capacity-disks", *capacity),
        ];
        let mut trial = synthetic::trial(&label, &factors, "random", 0);
        let phase =
            |name: &str| PhaseRecord::bare(name, Some(mib * 1048576.0), Unit::BytesPerSecond);
        trial.phases = vec![phase("read"), phase("write")];
        all.push(trial);
        let mut facts = request(Vec::new()).arrays.remove(0);
        (facts.cells, facts.survives) = (vec![label], *survives);
        let tebibytes: f64 = capacity.parse().unwrap();
        facts.capacity = Some((tebibytes * f64::from(1_u32 << 20)) as u64 * (1 << 20));
        arrays.push(facts);
    }
    let request = ExperimentRequest {
        tables: vec![WantedTable::Capacity],
        arrays,
        ..request(all)
    };
    let base = Selector::Label(format!("{}, {}", cells[0].0, cells[0].1));
    let request = ExperimentRequest {
        base: ReportRequest {
            baseline: Some(Baseline::Cell(base)),
            ..request.base.clone()
        },
        ..request
    };
    let document = experiment_report(&request).unwrap();
    let table = document
        .tables()
        .find(|t| t.id == "random-closing")
        .unwrap();
    let capacity = table
        .columns
        .iter()
        .position(|c| c.title == "capacity (disks)");
    let capacity = table
        .rows
        .iter()
        .map(|row| row[capacity.unwrap()].value.text());
    let picks = document.blocks.iter().find_map(|block| match block {
        Block::List { items } if items[0].starts_with("Best value") => Some(items.clone()),
        _ => None,
    });
    (capacity.collect(), picks.unwrap())
}

#[test]
fn what_survives_a_failure_is_picked_by_what_is_known_of_the_arrays() {
    let (capacity, picks) = closing(&[
        ("single", "clean", "1", 100.0, 0),
        ("raid0", "clean", "5", 500.0, 0),
        ("raid10", "clean", "2.5", 200.0, 1),
        ("raidz2", "clean", "2.96", 300.0, 2),
    ]);
    // Halves of disks are told, and count.
    assert_eq!(capacity, ["1", "5", "2.5", "2.96"]);
    let [value, fastest] = &picks[..] else {
        panic!("{picks:?}");
    };
    // 3 x 2.96 / 5; and RAID-Z survives failures, whatever levels of md do.
    assert!(
        value.ends_with(
            "raid0, clean (5.00); of those that survive a failed disk: raidz2, clean (1.78)"
        ),
        "{value}"
    );
    assert!(fastest.ends_with("raidz2, clean (3.00)"), "{fastest}");
}

#[test]
fn a_degraded_array_survives_less() {
    let (_, picks) = closing(&[
        ("single", "clean", "1", 100.0, 0),
        ("raid0", "clean", "5", 900.0, 0),
        ("raid5", "degraded 1", "4", 500.0, 1),
        ("raid6", "degraded 1", "3", 300.0, 2),
    ]);
    let fastest = picks.last().unwrap();
    assert!(
        fastest.ends_with("of those that survive a failed disk: raid6, degraded 1 (3.00)"),
        "{fastest}"
    );
}

/// While it is degraded, rebuilding or resyncing an array has less than its layout tells.
#[test]
fn second_failures_are_told_of_clean_arrays() {
    let labels = ["clean", "resyncing", "degraded 1"];
    let mut all = Vec::new();
    for state in labels {
        let factors = [("level", "raid10"), ("disks", "4"), ("state", state)];
        let mut trial = synthetic::trial(state, &factors, "random", 0);
        let phase = |name: &str| PhaseRecord::bare(name, Some(1e8), Unit::BytesPerSecond);
        trial.phases = vec![phase("read"), phase("write")];
        all.push(trial);
    }
    let mut facts = request(Vec::new()).arrays.remove(1);
    (facts.cells, facts.second) = (labels.map(str::to_owned).to_vec(), Some(2.0 / 3.0));
    let base = Selector::Label("clean".to_owned());
    let plain = request(all);
    let request = ExperimentRequest {
        tables: vec![WantedTable::Capacity],
        arrays: vec![facts],
        base: ReportRequest {
            baseline: Some(Baseline::Cell(base)),
            ..plain.base.clone()
        },
        ..plain
    };
    let document = experiment_report(&request).unwrap();
    let text = render_terminal(&document, TerminalOptions::new(120, false));
    let told = |state: &str| {
        let mut lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with(state));
        lines.next().unwrap().contains("67 %")
    };
    assert_eq!(labels.map(told), [true, false, false], "{text}");
}

/// A cell of the table: its factors, the usable bytes, and MiB/s.
struct Of {
    label: &'static str,
    factors: [(&'static str, &'static str); 4],
    bytes: u64,
    mib: f64,
}

fn table_of(cells: &[Of], states: &[(&str, &str)]) -> (Table, Vec<String>) {
    let mut trials = Vec::new();
    let mut arrays = Vec::new();
    for cell in cells {
        let mut trial = synthetic::trial(cell.label, &cell.factors, "random", 0);
        let phase =
            |name: &str| PhaseRecord::bare(name, Some(cell.mib * 1048576.0), Unit::BytesPerSecond);
        trial.phases = vec![phase("read"), phase("write")];
        trials.push(trial);
        arrays.push(ArrayFacts {
            cells: vec![cell.label.to_owned()],
            capacity: Some(cell.bytes),
            survives: usize::from(!matches!(cell.factors[0].1, "raid0" | "linear")),
            ..request(Vec::new()).arrays.remove(0)
        });
    }
    let plain = request(trials);
    let states = states
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    let wanted = ExperimentRequest {
        tables: vec![WantedTable::Capacity],
        arrays,
        states: states.collect(),
        base: ReportRequest {
            baseline: Some(Baseline::Cell(Selector::Label(cells[0].label.to_owned()))),
            ..plain.base.clone()
        },
        ..plain
    };
    let document = experiment_report(&wanted).unwrap();
    let table = document.tables().find(|t| t.id == "random-closing");
    let picks = document.blocks.iter().find_map(|block| match block {
        Block::List { items } if items[0].starts_with("Best value") => Some(items.clone()),
        _ => None,
    });
    (table.unwrap().clone(), picks.unwrap())
}

const TB: u64 = 1_000_000_000_000;

fn of(
    level: &'static str,
    disks: &'static str,
    in_disks: &'static str,
) -> [(&'static str, &'static str); 4] {
    [
        ("level", level),
        ("disks", disks),
        ("capacity-disks", in_disks),
        ("engine", "md"),
    ]
}

/// Six disks of 3 TB are not as much as six of 12 TB, and eleven disks whose smallest one has 160 GB are not six hundred.
#[test]
fn capacities_of_different_disks_are_compared_by_bytes() {
    let cells = [
        Of {
            label: "large",
            factors: of("raid0", "6", "6"),
            bytes: 72 * TB,
            mib: 100.0,
        },
        Of {
            label: "mixed",
            factors: of("raid6", "8", "6"),
            bytes: 18 * TB,
            mib: 100.0,
        },
        Of {
            label: "unequal",
            factors: of("linear", "4", "306.25"),
            bytes: 49 * TB,
            mib: 100.0,
        },
    ];
    let (table, picks) = table_of(&cells, &[]);
    let column = |title: &str| {
        let place = table.columns.iter().position(|c| c.title == title);
        let cells = table
            .rows
            .iter()
            .map(|row| row[place.unwrap()].value.text());
        cells.collect::<Vec<_>>()
    };
    assert_eq!(column("capacity (TiB)"), ["65.48", "16.37", "44.57"]);
    let champions = column("champion of");
    let champion = |place: usize| champions[place].contains("capacity");
    assert_eq!(
        [0, 1, 2].map(champion),
        [true, false, false],
        "{champions:?}"
    );
    let value = "× TiB / disks, arrays only): unequal (11.1)";
    assert!(picks[0].contains(value), "{picks:?}");
}

/// The rule of md's raid10 is none of a pool.
#[test]
fn a_pool_of_mirrors_is_not_called_raid10() {
    let zfs = [
        ("level", "raid10"),
        ("disks", "6"),
        ("capacity-disks", "3"),
        ("engine", "zfs"),
    ];
    let cells = [
        Of {
            label: "r10",
            factors: of("raid10", "6", "3"),
            bytes: 36 * TB,
            mib: 100.0,
        },
        Of {
            label: "zmir",
            factors: zfs,
            bytes: 36 * TB,
            mib: 100.0,
        },
    ];
    let half = "two copies of everything: half of the disks";
    let notes = table_of(&cells, &[]).0.footnotes;
    assert_eq!(
        notes,
        [
            format!("raid10: {half}"),
            format!("a pool of mirrors: {half}")
        ]
    );
}

/// A state that all cells have is no factor, and they survive less all the same.
#[test]
fn an_array_that_is_degraded_in_all_cells_survives_less() {
    let cells = [
        Of {
            label: "fast",
            factors: of("raid0", "3", "3"),
            bytes: 3 * TB,
            mib: 900.0,
        },
        Of {
            label: "safe",
            factors: of("raid5", "3", "2"),
            bytes: 2 * TB,
            mib: 100.0,
        },
    ];
    let safe =
        |states: &[(&str, &str)]| table_of(&cells, states).1[0].contains("survive a failed disk");
    assert!(safe(&[("safe", "clean")]));
    assert!(!safe(&[("safe", "degraded 1")]));
}

/// Five rounds of one disk, and of arrays of two whose reads differ by less than they scatter.
#[test]
fn what_is_not_told_apart_shares_the_title() {
    let scatter = [1.0, 0.97, 1.03, 0.96, 1.04];
    let cells = [
        ("one", "single", "1", 60.0, 0),
        ("small", "raid0", "2", 101.0, 2),
        ("large", "raid0", "2", 100.0, 3),
        ("safe", "raid1", "2", 80.0, 4),
    ];
    let mut all = Vec::new();
    for (label, level, disks, mib, turn) in cells {
        for round in 0..5_u32 {
            let factors = [("level", level), ("disks", disks)];
            let mut trial = synthetic::trial(label, &factors, "random", round);
            let rate = mib * scatter[(round as usize + turn) % 5] * 1048576.0;
            let phase =
                |name: &str, rate| PhaseRecord::bare(name, Some(rate), Unit::BytesPerSecond);
            trial.phases = vec![phase("read", rate), phase("write", 0.5 * rate)];
            all.push(trial);
        }
    }
    let wanted = |trials| {
        let plain = request(trials);
        let base = Selector::Label("one".to_owned());
        let request = ExperimentRequest {
            tables: vec![WantedTable::Capacity],
            base: ReportRequest {
                baseline: Some(Baseline::Cell(base)),
                ..plain.base.clone()
            },
            ..plain
        };
        let document = experiment_report(&request).unwrap();
        let mut tables = document.tables();
        let table = tables.find(|t| t.id == "random-closing").unwrap();
        let champion = |row: &Vec<crate::report::document::Cell>| row.last().unwrap().value.text();
        let picks = document.blocks.iter().find_map(|block| match block {
            Block::List { items } if items[0].starts_with("Best value") => Some(items.clone()),
            _ => None,
        });
        let champions: Vec<String> = table.rows.iter().map(champion).collect();
        (champions, picks.unwrap())
    };
    let (champions, picks) = wanted(all.clone());
    assert_eq!(
        champions,
        ["cost", "read, write, capacity", "read, write, capacity", ""]
    );
    let fastest = picks.last().unwrap();
    assert!(
        fastest.contains("small (1.68), not told apart from large (1.67); of those that survive a failed disk: safe (1.33)"),
        "{fastest}"
    );
    // Single runs are what they are, but for the margin.
    all.retain(|trial| trial.round == 0);
    all[2].phases[0].rate = all[2].phases[0].rate.map(|rate| 0.9 * rate);
    let (champions, picks) = wanted(all);
    assert_eq!(champions[1..3], ["read, write, capacity", "capacity"]);
    assert!(
        !picks.last().unwrap().contains("not told apart"),
        "{picks:?}"
    );
}
