//! Phases whose rate changes within runs.
use super::synthetic::{phase, trial};
use crate::record::{Provenance, TrialRecord};
use crate::report::document::{Block, Table};
use crate::report::{Document, ReportRequest, TerminalOptions, course_of, render_terminal, report};
use raidlab_core::rng::Stream;
use raidlab_core::units::MIB;

/// A run with one phase of so many seconds at each rate (MiB/s), with 2 % of scatter.
fn run(label: &str, round: u32, parts: &[(usize, f64)]) -> TrialRecord {
    let stream = Stream::new(u64::from(round) + 17 * label.len() as u64);
    let rates: Vec<f64> = parts
        .iter()
        .flat_map(|(seconds, rate)| vec![*rate; *seconds])
        .collect();
    let mut record = phase("write", 100.0, stream.child(1));
    record.series_bytes = (0..)
        .zip(&rates)
        .map(|(i, rate)| {
            let share = (stream.at(i) >> 11) as f64 / (1_u64 << 53) as f64;
            (rate * MIB as f64 * (0.98 + 0.04 * share)) as u64
        })
        .collect();
    record.elapsed_ns = Some(rates.len() as u64 * 1_000_000_000);
    let mut trial = trial(label, &[], "random", round);
    trial.phases = vec![record];
    trial
}

fn made(trials: Vec<TrialRecord>) -> Document {
    report(&ReportRequest::new("courses", trials)).unwrap()
}

fn table(document: &Document) -> Option<&Table> {
    document.tables().find(|table| table.id == "random-courses")
}

#[test]
fn a_full_cache_is_told_with_its_time_and_what_was_even_is_not() {
    let trials = (0..5).flat_map(|round| {
        // One of the five runs had nothing in its cache, and one stood still for a while.
        let written = match round {
            3 => vec![(60, 95.0)],
            4 => vec![(20, 480.0), (6, 0.0), (34, 95.0)],
            _ => vec![(12, 480.0), (48, 95.0)],
        };
        [
            run("cached", round, &written),
            run("plain", round, &[(60, 100.0)]),
            run("short", round, &[(4, 100.0), (5, 50.0)]),
            run(
                "long",
                round,
                &[(15, 260.0), (15, 240.0), (15, 210.0), (15, 180.0)],
            ),
            run(
                "shared",
                round,
                &[(10, 100.0), (10, 50.0), (10, 90.0), (10, 40.0)],
            ),
        ]
    });
    let document = made(trials.collect());
    let mut alone = Document::new("t");
    let after = document.blocks.iter().skip_while(|block| match block {
        Block::Table(table) => table.id != "random-courses",
        _ => true,
    });
    alone.blocks.extend(after.take(2).cloned());
    insta::assert_snapshot!(render_terminal(&alone, TerminalOptions::new(100, false)));
}

#[test]
fn nothing_is_told_of_even_runs() {
    let trials = (0..20).map(|round| run("plain", round, &[(40, 100.0)]));
    assert!(table(&made(trials.collect())).is_none());
}

#[test]
fn void_runs_are_not_looked_at() {
    let mut trials: Vec<TrialRecord> = vec![
        run("one", 0, &[(12, 480.0), (48, 95.0)]),
        run("one", 1, &[(60, 95.0)]),
    ];
    trials[0].phases[0]
        .flags
        .push(raidlab_core::flag::Flag::new(
            raidlab_core::flag::FlagKind::ServedFromCache,
            "the device read nothing",
        ));
    assert!(table(&made(trials)).is_none());
}

#[test]
fn of_many_the_greatest_changes_are_told() {
    let trials = (0..50_u32).map(|cell| {
        let after = 90.0 - f64::from(cell);
        let mut trial = run(&format!("cell {cell:02}"), 0, &[(30, 100.0), (30, after)]);
        trial.provenance = Provenance::Simulated;
        trial
    });
    let document = made(trials.collect());
    let table = table(&document).unwrap();
    assert_eq!(table.rows.len(), 40);
    assert_eq!(table.rows[0][1].value.text(), "cell 10");
    let told = document.blocks.iter().any(|block| match block {
        Block::Paragraph { text } => text.ends_with("10 lesser changes are left out."),
        _ => false,
    });
    assert!(told);
}

#[test]
fn one_run_has_words_of_its_own() {
    let of = |parts: &[(usize, f64)]| course_of(&run("one", 0, parts).phases[0]);
    assert_eq!(
        of(&[(12, 480.0), (48, 95.0)]).as_deref(),
        Some("479.1 MiB/s, from 12.0 s on 94.94 MiB/s")
    );
    assert_eq!(of(&[(60, 95.0)]), None);
    assert_eq!(of(&[(4, 480.0), (4, 95.0)]), None);
}
