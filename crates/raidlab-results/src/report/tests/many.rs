//! Experiments of so many cells that bars are no picture.
use super::experiments::request;
use super::synthetic;
use crate::record::{Explained, Resource, TrialRecord};
use crate::report::document::{Block, Cell, Chart, Document, Scale};
use crate::report::experiment::{ChartForm, WantedChart, WantedTable};
use crate::report::{TerminalOptions, experiment_report, render_images, render_terminal};
use raidlab_core::rng::Stream;

const LAYOUTS: [&str; 5] = ["raid0", "raid5", "raid6", "raid10", "raid10-f2"];

/// A trial of each combination; what follows from the layout is among the factors, as experiments have it.
fn trials(factors: &[(&str, &[&str])], phases: &[&str]) -> Vec<TrialRecord> {
    let mut cells: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for (name, levels) in factors {
        let with = |cell: &Vec<_>| {
            levels
                .iter()
                .map(|level| [&cell[..], &[(*name, *level)]].concat())
                .collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(with).collect();
    }
    let trial = |(number, mut cell): (usize, Vec<(&'static str, &'static str)>)| {
        let label: Vec<String> = cell
            .iter()
            .map(|(name, level)| format!("{name} {level}"))
            .collect();
        let layout = cell
            .iter()
            .find(|(name, _)| *name == "layout")
            .map_or("raid0", |(_, level)| level);
        cell.push(("level", layout.split('-').next().unwrap_or(layout)));
        cell.push(("capacity-disks", if layout == "raid0" { "6" } else { "4" }));
        let mut trial = synthetic::trial(&label.join(", "), &cell, "dd", 0);
        let rate = 50.0 + number as f64;
        trial.phases = phases
            .iter()
            .map(|phase| synthetic::phase(phase, rate, Stream::new(number as u64)))
            .collect();
        trial
    };
    let leak = |cell: Vec<(&str, &str)>| -> Vec<(&'static str, &'static str)> {
        cell.iter()
            .map(|(name, level)| (&*name.to_string().leak(), &*level.to_string().leak()))
            .collect()
    };
    cells.into_iter().map(leak).enumerate().map(trial).collect()
}

fn document(trials: Vec<TrialRecord>) -> Document {
    let mut request = request(trials);
    request.base.baseline = None;
    request.tables.clear();
    request.charts = vec![WantedChart {
        form: ChartForm::Bars,
        title: None,
        x: None,
        y: None,
        lines: None,
        per: None,
    }];
    experiment_report(&request).unwrap()
}

fn charts(document: &Document) -> Vec<&Chart> {
    let blocks = document.blocks.iter();
    blocks
        .filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
        .collect()
}

fn told(document: &Document) -> String {
    let of = |block: &Block| match block {
        Block::Paragraph { text } if text.starts_with("Charts: ") => Some(text.clone()),
        _ => None,
    };
    document.blocks.iter().find_map(of).unwrap_or_default()
}

#[test]
fn sixty_cells_are_lines_along_the_number_that_is_varied_most() {
    let depths = ["1", "4", "16", "64"];
    let all = trials(
        &[
            ("layout", &LAYOUTS),
            ("chunk", &["65536", "131072", "524288"]),
            ("queue-depth", &depths),
        ],
        &["read", "write"],
    );
    assert_eq!(all.len(), 60);
    let document = document(all);
    let charts = charts(&document);
    assert_eq!(charts.len(), 6, "of each phase and chunk one");
    let Chart::Lines(first) = charts[0] else {
        panic!("no lines: {:?}", charts[0]);
    };
    assert_eq!(first.title, "dd: read, chunk 64 KiB");
    assert_eq!(
        (first.x.label.as_str(), &first.x.scale),
        ("queue-depth", &Scale::Log2Count)
    );
    let lines: Vec<(&str, usize)> = first
        .series
        .iter()
        .map(|line| (line.name.as_str(), line.points.len()))
        .collect();
    assert_eq!(lines, LAYOUTS.map(|layout| (layout, 4)));
    // Of requests, not of bytes.
    let text = render_terminal(&document, TerminalOptions::new(100, false));
    assert!(
        text.contains("dd: read, chunk 64 KiB (read, MiB/s, by queue-depth)"),
        "{text}"
    );
    let images = render_images(&document).unwrap();
    for shown in [&text, &images[0].svg] {
        assert!(shown.contains("64") && !shown.contains("64 B"), "{shown}");
    }
    let ids: std::collections::BTreeSet<&str> = charts.iter().map(|chart| chart.id()).collect();
    assert_eq!(ids.len(), 6);
    assert!(
        told(&document).starts_with("Charts: 60 cells are too many for bars of all. Those"),
        "{}",
        told(&document)
    );
}

#[test]
fn many_cells_without_a_number_are_bars_in_parts() {
    let all = trials(
        &[
            ("layout", &LAYOUTS),
            ("filesystem", &["ext4", "xfs"]),
            ("scheduler", &["none", "bfq", "kyber"]),
        ],
        &["read"],
    );
    assert_eq!(all.len(), 30);
    let document = document(all);
    let charts = charts(&document);
    assert!(
        charts
            .iter()
            .all(|chart| matches!(chart, Chart::Bars(bars) if bars.groups.len() == 15)),
        "{charts:?}"
    );
    assert_eq!(
        charts.len(),
        2,
        "of each file system, the first factor by name"
    );
}

/// An axis of powers has no place for a zero.
#[test]
fn a_number_that_may_be_zero_is_no_axis() {
    let axis = |least: &'static str| {
        let levels = [least, "8", "16", "32", "64", "128"];
        let all = trials(&[("layout", &LAYOUTS), ("read-ahead", &levels)], &["read"]);
        let document = document(all);
        let charts = charts(&document);
        assert!(!charts.is_empty());
        charts.iter().all(|chart| matches!(chart, Chart::Lines(_)))
    };
    assert!(axis("4"));
    assert!(!axis("0"));
}

#[test]
fn what_is_left_out_is_counted_and_few_cells_are_bars() {
    let depths = ["1", "2", "4", "8", "16", "32"];
    let phases = ["a", "b", "c", "d", "e", "f", "g"];
    let many = document(trials(
        &[
            ("layout", &LAYOUTS),
            ("queue-depth", &depths),
            ("state", &["x", "y"]),
        ],
        &phases,
    ));
    assert_eq!(charts(&many).len(), 12);
    assert!(
        told(&many).contains("2 more are left out"),
        "{}",
        told(&many)
    );
    let few = document(trials(
        &[("layout", &LAYOUTS), ("queue-depth", &depths[..4])],
        &["read"],
    ));
    assert!(matches!(charts(&few)[..], [Chart::Bars(_)]));
    assert_eq!(told(&few), "");
}

/// The table of limits of as many cells: its caption, and of each line the first columns.
fn limits(
    depths: &[&str],
    why: impl Fn(usize, &str, u64) -> Explained,
) -> (String, Vec<[String; 4]>) {
    let mut all = trials(
        &[("layout", &LAYOUTS), ("queue-depth", depths)],
        &["read", "write"],
    );
    for (number, trial) in all.iter_mut().enumerate() {
        for phase in &mut trial.phases {
            let elapsed = phase.elapsed_ns.unwrap();
            phase.explained = Some(why(number, &trial.cell.label, elapsed));
        }
    }
    let mut request = request(all);
    request.base.baseline = None;
    request.tables = vec![WantedTable::Limits];
    request.charts.clear();
    let document = experiment_report(&request).unwrap();
    let mut tables = document.tables();
    let table = tables.find(|table| table.id == "dd-limits").unwrap();
    let row = |row: &Vec<Cell>| [0, 1, 2, 3].map(|column| row[column].value.text());
    let rows = table.rows.iter().map(row).collect();
    (table.caption.clone(), rows)
}

fn because(why: String) -> Explained {
    Explained {
        why,
        resources: Vec::new(),
        members: Vec::new(),
    }
}

/// A thousand sentences are read by nobody: those of the ends tell what more speed would take.
#[test]
fn what_limits_many_cells_is_told_of_the_best_and_the_worst() {
    let own = |_: usize, label: &str, _: u64| because(format!("why of {label}"));
    let (caption, rows) = limits(&["1", "2", "3", "4", "5", "6"], own);
    assert!(
        caption.contains("of 30 cells the best and the worst"),
        "{caption}"
    );
    let [best, worst] = [
        "layout raid10-f2, queue-depth 6",
        "layout raid0, queue-depth 1",
    ];
    let expected = ["read", "write"].map(|phase| [[phase, best], [phase, worst]]);
    let rows: Vec<[&str; 2]> = rows.iter().map(|row| [&*row[0], &*row[1]]).collect();
    assert_eq!(rows, expected.concat());
    let (caption, rows) = limits(&["1", "2", "3", "4"], own);
    assert_eq!((caption.contains("best"), rows.len()), (false, 40));
}

/// What is so of several cells is told once, however many there are.
#[test]
fn cells_that_the_same_thing_limits_share_a_line() {
    // A layout more, a per cent more; the last layout's disks are all that is busy.
    let same = |number: usize, _: &str, elapsed: u64| {
        let resource = |name: &str, percent: usize| Resource {
            name: name.into(),
            kind: "cpu".into(),
            units: 1,
            busy_ns: elapsed / 100 * percent as u64,
            parts: Vec::new(),
        };
        let mut explained = because("both disks are 99 % busy".to_owned());
        explained.resources = vec![resource("disk0", 5)];
        if number < 24 {
            let share = 50 + number / 6;
            explained.why = format!("the CPU is {share} % busy of 4 cores");
            explained.resources.push(resource("CPU", share));
        }
        explained
    };
    let (caption, rows) = limits(&["1", "2", "3", "4", "5", "6"], same);
    assert!(!caption.contains("best"), "{caption}");
    let named =
        |layout| ["1", "2", "3"].map(|depth| format!("layout {layout}, queue-depth {depth}"));
    let [many, some] = [("raid0", 21), ("raid10-f2", 3)]
        .map(|(layout, rest)| format!("{}; and {rest} more", named(layout).join("; ")));
    let expected = ["read", "write"].map(|phase| {
        let cpu = [
            "the CPU is 50-53 % busy of 4 cores",
            "CPU 50-53 %, disk0 5 %",
        ];
        let disks = ["both disks are 99 % busy", "disk0 5 %"];
        [
            [phase, &many, cpu[0], cpu[1]],
            [phase, &some, disks[0], disks[1]],
        ]
    });
    assert_eq!(rows, expected.concat());

    let all = |number: usize, _: &str, _: u64| because(format!("{number} % of it"));
    let (_, rows) = limits(&["1"], all);
    let all = |phase: &str| [phase, "all 5", "0-4 % of it", ""].map(str::to_owned);
    assert_eq!(rows, ["read", "write"].map(all));
}
