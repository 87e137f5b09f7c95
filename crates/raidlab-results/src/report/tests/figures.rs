//! The figure of several runs, what is said of it, and what its error bars are.
use super::decided::cells;
use super::experiments::request;
use crate::record::TrialRecord;
use crate::report::document::{Chart, Table};
use crate::report::experiment::{ChartForm, ExperimentRequest, Joined, WantedChart, WantedTable};
use crate::report::{
    Baseline, Document, ReportRequest, TerminalOptions, experiment_report, render_terminal, report,
};
use raidlab_core::histogram::Latencies;
use raidlab_core::time::Span;

const RATES: [f64; 8] = [40.0, 57.0, 74.0, 91.0, 108.0, 125.0, 142.0, 160.0];

fn document(trials: Vec<TrialRecord>, joined: Joined, charts: Vec<WantedChart>) -> Document {
    let request = ExperimentRequest {
        tables: vec![WantedTable::Aggregate],
        joined,
        charts,
        ..request(trials)
    };
    experiment_report(&request).unwrap()
}

fn aggregates(trials: Vec<TrialRecord>, joined: Joined) -> Table {
    let document = document(trials, joined, Vec::new());
    let mut tables = document.tables();
    tables
        .find(|t| t.id.ends_with("-aggregates"))
        .unwrap()
        .clone()
}

fn figure(table: &Table) -> String {
    let place = table.columns.iter().position(|c| c.title == "figure");
    table.rows[0][place.unwrap()].value.text()
}

#[test]
fn drift_is_told_whatever_the_figure_is() {
    for joined in [
        Joined::Mean,
        Joined::Median,
        Joined::Trimmed(1),
        Joined::Trimmed(2),
    ] {
        let table = aggregates(cells(&[("A", &RATES)], "dd"), joined);
        let notes = &table.footnotes;
        assert!(
            notes.contains(&"drift over the order of runs".to_owned()),
            "{joined:?}: {notes:?}"
        );
    }
}

/// Of dd the times are averaged: 1 / scipy.stats.trim_mean(1 / x, 2 / 8) is 95.78, of the rates it is 99.50.
#[test]
fn however_many_are_dropped_the_times_are_averaged() {
    let harmonic = |kept: &[f64]| {
        let times: f64 = kept.iter().map(|rate| 1.0 / rate).sum();
        format!("{:.2}", kept.len() as f64 / times)
    };
    let of = |rates: &[f64], drop| {
        let table = aggregates(cells(&[("A", rates)], "dd"), Joined::Trimmed(drop));
        assert!(table.caption.contains("of the times"), "{}", table.caption);
        (figure(&table), table)
    };
    assert_eq!(of(&RATES, 2).0, harmonic(&RATES[2..6]));
    assert_eq!(of(&RATES, 1).0, harmonic(&RATES[1..7]));
    // Four valid runs of which one is dropped at each end.
    assert_eq!(of(&RATES[..4], 1).0, harmonic(&RATES[1..3]));
    // Too few are left: that it is the median is said.
    let (_, table) = of(&RATES[..4], 2);
    let note = "the median: too few valid runs to drop any".to_owned();
    assert!(table.footnotes.contains(&note), "{:?}", table.footnotes);
}

#[test]
fn sessions_that_differ_are_told_with_their_interval() {
    let (one, two) = ([99.0, 100.0, 101.0, 100.0], [119.0, 120.0, 121.0, 120.0]);
    let both = |second: &[f64]| {
        let mut trials = cells(&[("A", &one)], "random");
        let mut later = cells(&[("A", second)], "random");
        for trial in &mut later {
            trial.session = "1".repeat(32);
        }
        trials.append(&mut later);
        aggregates(trials, Joined::Mean)
    };
    let table = both(&two);
    let interval = table.columns.iter().position(|c| c.title == "interval");
    let interval = table.rows[0][interval.unwrap()].value.text();
    assert_eq!(
        (&figure(&table)[..], &interval[..]),
        ("110.0", "[0.0, 237.1]")
    );
    let has = |table: &Table, note: &str| table.footnotes.iter().any(|n| n.starts_with(note));
    assert!(
        has(&table, "2 sessions differ by more"),
        "{:?}",
        table.footnotes
    );
    // Sessions that are alike are one sample; of a single run nothing can be known.
    let alike = both(&one);
    assert!(
        alike.footnotes.iter().all(|n| !n.contains("session")),
        "{:?}",
        alike.footnotes
    );
    let single = both(&[120.0]);
    assert!(
        has(&single, "some of several sessions have one run"),
        "{:?}",
        single.footnotes
    );
}

fn bars(lines: Option<&str>) -> WantedChart {
    WantedChart {
        form: ChartForm::Bars,
        title: None,
        x: None,
        y: Some("read".to_owned()),
        lines: lines.map(str::to_owned),
        per: None,
    }
}

#[test]
fn error_bars_have_the_confidence_that_they_have() {
    let chart = |trials: Vec<TrialRecord>, joined, wanted| {
        let document = document(trials, joined, vec![wanted]);
        let chart: Chart = document.charts().next().unwrap().clone();
        let text = render_terminal(&document, TerminalOptions::new(100, false));
        (chart.description().to_owned(), text)
    };
    let rates = [("A", &RATES[..2]), ("B", &RATES[..2])];
    let (told, text) = chart(cells(&rates, "random"), Joined::Median, bars(None));
    assert!(told.ends_with("; error bars: 50 % intervals."), "{told}");
    assert!(text.contains("read (MiB/s; 50 % intervals)"), "{text}");
    let rates = [("A", &RATES[..4]), ("B", &RATES[..2]), ("C", &RATES[..1])];
    let mut trials = cells(&rates, "random");
    let (told, _) = chart(trials.clone(), Joined::Median, bars(None));
    assert!(
        told.ends_with("; error bars: intervals of 50 to 87.5 % confidence."),
        "{told}"
    );
    // Bars with colours and lines say the same.
    for trial in &mut trials {
        let level = trial.cell.label.clone();
        trial.cell.factors.insert("layout".to_owned(), level);
    }
    let (told, _) = chart(trials.clone(), Joined::Median, bars(Some("layout")));
    assert!(
        told.ends_with(
            "a colour for each layout; error bars: intervals of 50 to 87.5 % confidence."
        ),
        "{told}"
    );
    let lines = WantedChart {
        form: ChartForm::Lines,
        x: Some("layout".to_owned()),
        ..bars(None)
    };
    let (told, _) = chart(trials.clone(), Joined::Median, lines.clone());
    assert!(
        told.ends_with("; error bars: intervals of 50 to 87.5 % confidence."),
        "{told}"
    );
    let (told, _) = chart(trials.clone(), Joined::Mean, lines.clone());
    assert!(told.ends_with("; error bars: 95 % intervals."), "{told}");
    trials.retain(|trial| trial.round == 0);
    let (told, _) = chart(trials, Joined::Mean, lines);
    assert!(told.ends_with("; n=1, no interval."), "{told}");
}

/// The 99th percentile of 32 operations is the longest of them under another name, in whichever table.
#[test]
fn percentiles_without_an_operation_beyond_are_in_no_table() {
    let table_of = |ops: u64| {
        let mut trials = cells(&[("A", &[50.0])], "random");
        let mut latency = Latencies::new();
        (1..=ops).for_each(|n| latency.record(Span(100_000 * n)));
        trials[0].phases[0].latency = Some(latency);
        let text = render_terminal(
            &report(&ReportRequest::new("t", trials)).unwrap(),
            TerminalOptions::new(160, false),
        );
        let rows = text
            .lines()
            .filter(|line| line.contains(" A ") || line.trim_start().starts_with("A "));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let few = table_of(32);
    insta::assert_snapshot!(few.join("\n"));
}

/// One run in ten far below the others is not in a figure and moves the ratio below one: that is said where it is seen.
#[test]
fn a_ratio_that_the_figures_contradict_says_why() {
    let notes = |slowest: f64| {
        let mut rates = [
            101.0, 101.2, 100.9, 101.1, 101.0, 101.0, 101.1, 100.9, 101.2, 101.0,
        ];
        rates[4] = slowest;
        let trials = cells(&[("A", &[100.0; 10]), ("B", &rates)], "random");
        let baseline = Baseline::Cell("A".parse().unwrap());
        let mut request = ReportRequest::new("t", trials);
        request.baseline = Some(baseline);
        let document = report(&request).unwrap();
        let mut tables = document.tables();
        let ratios = tables.find(|t| t.id.contains("-ratios")).unwrap();
        let odd = ratios
            .footnotes
            .iter()
            .filter(|note| note.contains("the medians"));
        odd.cloned().collect::<Vec<_>>()
    };
    assert!(notes(101.0).is_empty());
    insta::assert_snapshot!(notes(20.0).join("\n"), @"the figures are 1.010 to 1 and the medians 1.010 to 1, where the ratio is 0.859: a figure is the mean of the runs without best and worst (median below 5 runs), and the ratio is of the geometric means of the runs with the best and the worst, which a run far from the others moves");
}
