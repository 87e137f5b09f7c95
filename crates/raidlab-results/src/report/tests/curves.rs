//! Cumulative curves of response times.
use super::synthetic::{phase, trial};
use crate::record::TrialRecord;
use crate::report::document::{Chart, Curve, DistributionChart};
use crate::report::{ReportRequest, render_html, render_images, report};
use raidlab_core::histogram::Latencies;
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;

/// A run whose phase took these times: so many operations of so many microseconds.
fn run(label: &str, round: u32, times: &[(u64, u64)]) -> TrialRecord {
    let mut latency = Latencies::new();
    for (micros, count) in times {
        latency.record_n(Span::from_micros(*micros), *count);
    }
    let mut record = phase("read", 100.0, Stream::new(u64::from(round)));
    record.latency = Some(latency);
    let mut trial = trial(label, &[], "random", round);
    trial.phases = vec![record];
    trial
}

fn charts(trials: Vec<TrialRecord>) -> Vec<DistributionChart> {
    let document = report(&ReportRequest::new("curves", trials)).unwrap();
    let charts = document.charts().filter_map(|chart| match chart {
        Chart::Distribution(chart) => Some(chart.clone()),
        _ => None,
    });
    charts.collect()
}

fn steps(curve: &Curve) -> Vec<(f64, u64)> {
    let micros = |seconds: f64| (seconds * 1e6).round();
    let steps = curve.steps.iter();
    steps.map(|s| (micros(s.seconds), s.slower)).collect()
}

/// Nothing between the buckets is made up, and nothing beyond the longest.
#[test]
fn a_curve_has_what_the_buckets_have() {
    let one = [(100, 890), (8000, 100), (30_000, 9), (77_777, 1)];
    let [chart] = &charts(vec![run("a", 0, &one), run("b", 0, &one)])[..] else {
        panic!("one phase");
    };
    let curve = &chart.curves[0];
    assert_eq!((curve.name.as_str(), curve.operations), ("a", 1000));
    // Upper ends of buckets less than 1 % wide; the longest is exact.
    assert_eq!(
        steps(curve),
        [(100.0, 110), (8028.0, 10), (30_015.0, 1), (77_777.0, 0)]
    );
    let shares: Vec<f64> = curve.steps.iter().map(|s| curve.share(s)).collect();
    assert_eq!(shares, [0.89, 0.99, 0.999, 0.999]);
    assert!(curve.spread.is_empty(), "one run has no spread");
    assert!(!chart.description.contains("Shaded"));
}

/// Runs are merged, and the area around shows each of them as far as it has operations.
#[test]
fn the_spread_is_that_of_the_runs() {
    let trials = [(0, 1000), (1, 2000), (2, 1500)].map(|(round, micros)| {
        let times = [(micros, 90), (10 * micros, 10)];
        [run("a", round, &times), run("b", round, &times[..1])]
    });
    let [chart] = &charts(trials.concat())[..] else {
        panic!("one phase");
    };
    let curve = &chart.curves[0];
    assert_eq!(curve.operations, 300);
    assert!(chart.description.contains("Shaded"));
    let at = |share: f64| {
        let mut near = curve.spread.iter().filter(|s| s.share >= share);
        let runs = near.next().expect("a level");
        (
            (runs.least * 1e5).round() * 10.0,
            (runs.greatest * 1e5).round() * 10.0,
        )
    };
    assert_eq!(at(0.01), (1000.0, 2010.0));
    assert_eq!(at(0.5), (1000.0, 2010.0));
    // Those of the slowest tenth are the longest of their runs, and exact.
    assert_eq!(at(0.95), (10_000.0, 20_000.0));
    let last = curve.spread.last().expect("a level");
    assert!(
        (last.share - 0.99).abs() < 1e-12,
        "one of a hundred is beyond"
    );
    assert!(
        curve
            .spread
            .windows(2)
            .all(|two| two[0].share < two[1].share)
    );
}

#[test]
fn more_cells_than_can_be_told_apart_are_said_and_few_operations_are_no_distribution() {
    let cells = |count: u64| -> Vec<TrialRecord> {
        let cell = |n: u64| run(&format!("cell {n}"), 0, &[(100 * n, 500), (900 * n, 500)]);
        (1..=count).map(cell).collect()
    };
    let drawn = &charts(cells(13))[0];
    assert_eq!(drawn.curves.len(), 12);
    assert!(drawn.description.ends_with("The first 12 of 13 are drawn."));
    assert!(!charts(cells(12))[0].description.contains("first"));
    assert_eq!(
        charts(vec![run("a", 0, &[(5, 9)]), run("b", 0, &[(5, 9)])]),
        []
    );
}

/// The picture: nines on the axis, dashes where colours come again, thin lines for the last ten, colours that turn in the dark.
#[test]
fn curves_are_drawn() {
    let cell = |n: u64| {
        let times: Vec<(u64, u64)> = (1..200)
            .map(|step| (step * n * 40, 1 + 20_000 / step.pow(2)))
            .collect();
        [
            run(&format!("cell {n}"), 0, &times),
            run(&format!("cell {n}"), 1, &times[1..]),
        ]
    };
    let trials: Vec<TrialRecord> = (1..=10).flat_map(cell).collect();
    let document = report(&ReportRequest::new("curves", trials)).unwrap();
    let images = render_images(&document).unwrap();
    let image = images
        .iter()
        .find(|i| i.name == "random-latency-read")
        .unwrap();
    for text in [
        "1 %", "10 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "1 ms", "cell 10",
    ] {
        assert!(image.svg.contains(&format!("\n{text}\n")), "{text}");
    }
    let of = |line: &str, name: &str| -> Option<String> {
        let rest = line.split(&format!(" {name}=\"")).nth(1)?;
        Some(rest.split('"').next()?.to_owned())
    };
    let lines = |stroke: &str, width: &str| {
        let of_colour = |line: &&str| of(line, "stroke").as_deref() == Some(stroke);
        let lines = image.svg.lines().filter(of_colour);
        lines
            .filter(|line| of(line, "stroke-width").as_deref() == Some(width))
            .count()
    };
    // In units of the drawing: 2 CSS pixels, and 1 where few are beyond.
    assert_eq!((lines("#2A9D8F", "8"), lines("#2A9D8F", "4")), (1, 1));
    assert!(
        lines("#1F5FA8", "8") > 20,
        "the ninth is dashed, in the colour of the first"
    );
    assert_eq!(
        image.svg.matches("<polygon").count(),
        10,
        "a spread for each"
    );
    let html = render_html(&document).unwrap();
    assert!(
        html.contains("<polygon opacity=\"0.16\" fill=\"#1F5FA8\""),
        "as the rules for the dark have it"
    );
    assert!(image.svg.len() < 150_000, "{}", image.svg.len());
}
