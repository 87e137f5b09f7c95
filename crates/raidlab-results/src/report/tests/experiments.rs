//! The report of an experiment as a reader sees it, and predictions beside published figures.
use super::synthetic;
use crate::record::{
    BusyPart, Explained, Figure, PhaseRecord, Provenance, Resource, TrialRecord, Unit,
};
use crate::reference::study;
use crate::report::blocks::rebuild::{GivesWay, SyncFloor};
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
        sync_floors: BTreeMap::from([(
            "raid5, noop".to_owned(),
            SyncFloor {
                least: 1000 << 10,
                way: GivesWay::Sleeps,
            },
        )]),
        rebuild_rates: BTreeMap::new(),
        states: BTreeMap::new(),
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

/// Points of several layouts at one place of one line would be a picture of none of them.
#[test]
fn what_varies_beside_the_axis_makes_lines_or_charts() {
    let with_jobs = |jobs: &str| {
        let mut all = trials();
        for trial in &mut all {
            trial.cell.label.push_str(&format!(", jobs {jobs}"));
            let factors = &mut trial.cell.factors;
            factors.insert("jobs".to_owned(), jobs.to_owned());
        }
        all
    };
    let drawn = |trials: Vec<TrialRecord>| -> Vec<(String, Vec<String>)> {
        let mut request = request(trials);
        request.charts = vec![WantedChart {
            x: Some("block-size".to_owned()),
            ..wanted(ChartForm::Lines)
        }];
        let document = experiment_report(&request).unwrap();
        let of = |chart: &Chart| match chart {
            Chart::Lines(chart) => {
                assert!(chart.series.iter().all(|line| line.points.len() == 2));
                let names = chart.series.iter().map(|line| line.name.clone());
                (chart.title.clone(), names.collect())
            }
            other => panic!("{other:?}"),
        };
        document.charts().map(of).collect()
    };
    let layouts = vec!["raid5".to_owned(), "raid10".to_owned()];
    assert_eq!(drawn(trials()), [("dd: read".to_owned(), layouts.clone())]);
    let both = [with_jobs("1"), with_jobs("2")].concat();
    let jobs = vec!["1".to_owned(), "2".to_owned()];
    assert_eq!(
        drawn(both),
        [
            ("dd: read, layout raid5".to_owned(), jobs.clone()),
            ("dd: read, layout raid10".to_owned(), jobs)
        ]
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

/// At calls of 1 MiB, MiB and operations a second are the same number.
#[test]
fn what_stands_beside_a_rate_is_joined_as_it_is() {
    let mut trials = Vec::new();
    for (round, mib) in [(0, 500.0), (1, 510.0), (2, 700.0)] {
        let factors = [("layout", "raid5"), ("level", "raid5"), ("disks", "4")];
        let mut trial = synthetic::trial("raid5", &factors, "sequential", round);
        let mut read = synthetic::phase("read", mib, Stream::new(round.into()));
        let elapsed = 10_000_000_000;
        (read.rate, read.ops) = (Some(mib * 1_048_576.0), Some(mib as u64 * 10));
        (read.elapsed_ns, read.cpu_percent) = (Some(elapsed), Some(mib / 10.0));
        trial.phases = vec![read];
        trials.push(trial);
    }
    for (joined, figures, caption) in [
        (
            Joined::Mean,
            ["570.0", "570", "57.0"],
            "mean of the runs; response times of all runs",
        ),
        (
            Joined::Median,
            ["510.0", "510", "51.0"],
            "median of the runs; response times of all runs",
        ),
    ] {
        let request = ExperimentRequest {
            joined,
            ..request(trials.clone())
        };
        let document = experiment_report(&request).unwrap();
        let table = document.tables().find(|t| t.id == "sequential-figures");
        let table = table.unwrap();
        let of = |title: &str| {
            let place = table.columns.iter().position(|c| c.title == title);
            table.rows[0][place.unwrap()].value.text()
        };
        assert_eq!(["MiB/s", "IOPS", "CPU %"].map(of), figures, "{joined:?}");
        assert!(table.caption.contains(caption), "{}", table.caption);
    }
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

/// 24 TB and 1 TB one after the other are not 25 disks of two.
#[test]
fn no_array_holds_more_disks_than_it_has() {
    let trials = trials();
    let mut request = request(trials);
    let facts = |capacity: &str| ArrayFacts {
        cells: Vec::new(),
        name: capacity.to_owned(),
        disks: 4,
        price: None,
        capacity_disks: capacity.to_owned(),
        capacity: Some(3 << 40),
        survives: 1,
        second: None,
        tolerance: Vec::new(),
    };
    request.arrays = vec![facts("3"), facts("4"), facts("25")];
    let document = experiment_report(&request).unwrap();
    let table = document.tables().find(|t| t.id == "arrays").unwrap();
    let column = table
        .columns
        .iter()
        .position(|c| c.title == "capacity (disks)")
        .unwrap();
    let shown: Vec<_> = table
        .rows
        .iter()
        .map(|row| row[column].value.text())
        .collect();
    assert_eq!(shown, ["3", "4", ""]);
}
