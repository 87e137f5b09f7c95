//! The report of an experiment as a reader sees it, and predictions beside published figures.
use super::synthetic;
use crate::record::{
    BusyPart, Explained, Figure, PhaseRecord, Provenance, Resource, TrialRecord, Unit,
};
use crate::reference::study;
use crate::report::document::{Block, Chart, Scale};
use crate::report::experiment::{
    ArrayFacts, ChartForm, ExperimentRequest, Joined, WantedChart, WantedTable,
};
use crate::report::{
    Baseline, ReportRequest, TerminalOptions, experiment_report, prediction_report,
    predictions_report, render_terminal,
};
use raidlab_core::rng::Stream;
use std::collections::BTreeMap;

fn explained(elapsed: u64) -> Explained {
    let resource = |name: &str, kind: &str, share: u64| Resource {
        name: name.to_owned(),
        kind: kind.to_owned(),
        units: 1,
        busy_ns: elapsed * share / 100,
        parts: vec![BusyPart {
            name: "transfer".to_owned(),
            ns: elapsed * share / 200,
        }],
    };
    Explained {
        why: "channel 0 of card is 97 % busy".to_owned(),
        resources: vec![
            resource("disk0", "disk", 61),
            resource("channel 0 of card", "channel", 97),
            resource("CPU", "cpu", 9),
        ],
        members: Vec::new(),
    }
}

/// Two layouts under two schedulers, three rounds.
pub(super) fn trials() -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for round in 0..3 {
        for (number, (layout, mib)) in [("raid5", 80.0), ("raid10", 120.0)].iter().enumerate() {
            for (other, scheduler) in ["noop", "cfq"].iter().enumerate() {
                let label = format!("{layout}, {scheduler}");
                let factors = [
                    ("layout", *layout),
                    ("level", *layout),
                    ("disks", "4"),
                    ("scheduler", *scheduler),
                    ("block-size", if other == 0 { "4096" } else { "65536" }),
                ];
                let mut trial = synthetic::trial(&label, &factors, "dd", round);
                let stream = Stream::new(u64::from(round) * 4 + (2 * number + other) as u64);
                let mut read = synthetic::phase("read", mib + 10.0 * other as f64, stream);
                read.explained = read.elapsed_ns.map(explained);
                trial.phases = vec![read];
                trial.provenance = Provenance::Simulated;
                trial.started = None;
                trial.command = Some("raidlab run lab.toml --on sim".to_owned());
                all.push(trial);
            }
        }
    }
    let rebuild = PhaseRecord {
        figures: vec![
            Figure {
                name: "rebuild-time".to_owned(),
                value: 90_000.0,
                unit: Unit::Seconds,
            },
            Figure {
                name: "rebuild-rate-loaded".to_owned(),
                value: 1e7,
                unit: Unit::BytesPerSecond,
            },
        ],
        ..PhaseRecord::bare("rebuild", Some(2e8), Unit::BytesPerSecond)
    };
    all[0].phases.push(rebuild);
    all
}

fn wanted(form: ChartForm) -> WantedChart {
    WantedChart {
        form,
        title: None,
        x: None,
        y: Some("read".to_owned()),
        lines: None,
        per: None,
    }
}

pub(super) fn request(trials: Vec<TrialRecord>) -> ExperimentRequest {
    let baseline = ["layout", "level"].map(|name| (name.to_owned(), "raid5".to_owned()));
    let array = |name: &str, capacity: &str| ArrayFacts {
        cells: Vec::new(),
        name: name.to_owned(),
        disks: 4,
        price: None,
        capacity_disks: capacity.to_owned(),
        capacity: Some(3 << 40),
        survives: 1,
        second: Some(0.0),
        tolerance: vec!["survives any 1 failure".to_owned()],
    };
    ExperimentRequest {
        base: ReportRequest {
            baseline: Some(Baseline::Factor(BTreeMap::from(baseline))),
            ..ReportRequest::new("Two layouts", trials)
        },
        question: Some("Which is faster?".to_owned()),
        joined: Joined::Mean,
        tables: vec![
            WantedTable::Figures,
            WantedTable::Ratios,
            WantedTable::Aggregate,
            WantedTable::Limits,
            WantedTable::Rebuild,
            WantedTable::Survival,
        ],
        charts: Vec::new(),
        beside: None,
        arrays: vec![
            array("raid5 of 4 disks", "3"),
            array("raid10 of 4 disks", "2"),
        ],
        least_sync: BTreeMap::from([("raid5, noop".to_owned(), 1000 << 10)]),
        identity: "Seed 1; digest 0123.".to_owned(),
    }
}

#[test]
fn what_the_file_wants_is_shown() {
    let document = experiment_report(&request(trials())).unwrap();
    let text = render_terminal(&document, TerminalOptions::new(110, false));
    insta::assert_snapshot!(text);
}

#[test]
fn one_trial_each_is_said_to_have_no_interval() {
    let mut once = trials();
    once.retain(|trial| trial.round == 0);
    let document = experiment_report(&request(once)).unwrap();
    let text = render_terminal(&document, TerminalOptions::new(200, false));
    assert!(
        text.contains("a figure of the model without an interval"),
        "{text}"
    );
    assert!(text.contains("n=1, no interval"), "{text}");
}

fn charts(wanted: WantedChart) -> Vec<Chart> {
    let mut request = request(trials());
    request.charts = vec![wanted];
    let document = experiment_report(&request).unwrap();
    document.charts().cloned().collect()
}

#[test]
fn charts_are_divided_and_coloured_by_factors() {
    let lines = charts(WantedChart {
        x: Some("block-size".to_owned()),
        lines: Some("layout".to_owned()),
        ..wanted(ChartForm::Lines)
    });
    let [Chart::Lines(chart)] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(chart.x.scale, Scale::Log2);
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["raid5", "raid10"]);
    assert!(chart.series.iter().all(|s| s.points.len() == 2));
    let bars = charts(WantedChart {
        lines: Some("scheduler".to_owned()),
        per: Some("layout".to_owned()),
        ..wanted(ChartForm::Bars)
    });
    assert_eq!(bars.len(), 2, "a chart for each layout");
    let Chart::Bars(chart) = &bars[1] else {
        panic!("{bars:?}");
    };
    assert_eq!(chart.title, "dd: read, layout raid10");
    assert_eq!(chart.series, ["noop", "cfq"]);
    assert_eq!(chart.groups.len(), 1);
    assert_eq!(chart.groups[0].label, "raid10");
    assert!(
        chart.groups[0]
            .bars
            .iter()
            .all(|bar| bar.interval.is_some())
    );
    // What is not a number stands at named places.
    let named = charts(WantedChart {
        x: Some("scheduler".to_owned()),
        lines: Some("layout".to_owned()),
        ..wanted(ChartForm::Lines)
    });
    let [Chart::Lines(chart)] = &named[..] else {
        panic!("{named:?}");
    };
    assert_eq!(
        chart.x.scale,
        Scale::Named(vec!["noop".to_owned(), "cfq".to_owned()])
    );
}

/// The phase, the title and the levels that the file wants are those of distributions, too.
#[test]
fn distributions_are_of_the_phase_that_is_wanted() {
    let mut all = trials();
    for trial in &mut all {
        let mut latency = raidlab_core::histogram::Latencies::new();
        for number in 1..2000 {
            latency.record(raidlab_core::time::Span::from_micros(number));
        }
        trial.phases[0].latency = Some(latency);
        let mut write = trial.phases[0].clone();
        write.phase = "write".to_owned();
        trial.phases.push(write);
    }
    let titles = |wanted: WantedChart| -> Vec<String> {
        let mut request = request(all.clone());
        request.charts = vec![wanted];
        let document = experiment_report(&request).unwrap();
        let charts = document.charts();
        charts
            .map(|chart| match chart {
                Chart::Distribution(chart) => chart.title.clone(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        titles(wanted(ChartForm::Distribution)),
        ["dd: response time of read"]
    );
    let divided = WantedChart {
        per: Some("layout".to_owned()),
        ..wanted(ChartForm::Distribution)
    };
    assert_eq!(
        titles(divided),
        [
            "dd: response time of read, layout raid5",
            "dd: response time of read, layout raid10"
        ]
    );
    let named = WantedChart {
        title: Some("How long a read takes".to_owned()),
        ..wanted(ChartForm::Distribution)
    };
    assert_eq!(titles(named), ["How long a read takes"]);
}

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
        arrays.push(facts);
    }
    let request = ExperimentRequest {
        tables: vec![WantedTable::Capacity],
        arrays,
        ..request(all)
    };
    let base = crate::report::Selector::Label(format!("{}, {}", cells[0].0, cells[0].1));
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

#[test]
fn runs_are_joined_as_the_design_says() {
    let figure = |joined: Joined| {
        let mut request = request(trials());
        request.joined = joined;
        request.tables = vec![WantedTable::Aggregate];
        let document = experiment_report(&request).unwrap();
        let table = document.tables().find(|table| table.id == "dd-aggregates");
        let table = table.unwrap().clone();
        (table.caption.clone(), table.rows[0][4].value.text())
    };
    let (mean, _) = figure(Joined::Mean);
    assert!(mean.contains("the mean of the runs of the times"), "{mean}");
    let (median, value) = figure(Joined::Median);
    assert!(median.contains("median of the runs"));
    let middle = figure(Joined::Trimmed(1));
    assert!(middle.0.contains("without best and worst"));
    assert_eq!(middle.1, value, "one of three is left, which is the median");
}

#[test]
fn predictions_stand_beside_published_figures() {
    let study = study("pata-raid0").unwrap().unwrap();
    let mut trials = study.trials();
    for (number, trial) in trials.iter_mut().enumerate() {
        for phase in &mut trial.phases {
            phase.flags.clear();
            let off = 1.0 + 0.02 * (number % 5) as f64;
            phase.rate = Some(phase.rate.unwrap_or(2e7) * off);
            phase.explained = Some(explained(1_000_000_000));
        }
    }
    let rows = study.rows.iter().map(|r| (r.name.clone(), r.name.clone()));
    let prediction = study.predicted(&rows.collect(), &BTreeMap::new(), &trials);
    let options = TerminalOptions::new(150, false);
    let one = prediction_report(&study, &prediction, "digest 0123.");
    insta::assert_snapshot!("a-study-predicted", render_terminal(&one, options));
    let several = predictions_report(&[prediction.clone(), prediction], "two digests");
    let text = render_terminal(&several, TerminalOptions::new(150, false));
    insta::assert_snapshot!("studies-predicted", text);
    assert!(
        several
            .blocks
            .iter()
            .any(|b| matches!(b, Block::Table(t) if t.id == "accuracy"))
    );
}

/// md counts a resync of raid10 otherwise than one of the other levels, and that is told.
#[test]
fn a_resync_of_raid10_is_told_to_be_counted_by_the_array() {
    let told = |level: &str, state: &[(&str, &str)]| {
        let factors: Vec<_> = [("level", level), ("engine", "md")]
            .iter()
            .chain(state)
            .copied()
            .collect();
        let mut trial = synthetic::trial("cell", &factors, "random", 0);
        trial.phases.push(PhaseRecord {
            bytes: Some(1 << 40),
            ..PhaseRecord::bare("rebuild", Some(2e8), Unit::BytesPerSecond)
        });
        let trials = [trial];
        let groups = crate::report::group::group(&trials);
        let table = crate::report::blocks::rebuild::rebuilds(&groups).unwrap();
        table
            .footnotes
            .iter()
            .any(|note| note.contains("in sectors of the array"))
    };
    assert!(told("raid10", &[("state", "resyncing")]));
    assert!(told("raid10", &[]));
    assert!(told("raid10", &[("layout", "raid10-f2")]));
    // Mirrors below stripes are arrays of their own.
    assert!(!told("raid10", &[("layout", "raid10 2x2")]));
    assert!(!told("raid10", &[("state", "rebuilding 1")]));
    assert!(!told("raid5", &[("state", "resyncing")]));
}

/// What members get is no rate of the profile: its bars would dwarf random reads.
#[test]
fn a_rebuild_is_no_bar_beside_the_profile_s() {
    let request = ExperimentRequest {
        charts: vec![WantedChart {
            y: None,
            ..wanted(ChartForm::Bars)
        }],
        ..request(trials())
    };
    let document = experiment_report(&request).unwrap();
    let bars: Vec<Vec<String>> = document
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Chart(Chart::Bars(bars)) => Some(bars.series.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(bars, [vec!["read".to_owned()], vec!["rebuild".to_owned()]]);
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
    let base = crate::report::Selector::Label("clean".to_owned());
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
