//! Whether a phase is decided, as programs are told: nothing is decided by what cannot be compared.
use super::experiments::request;
use super::synthetic;
use crate::record::{PhaseRecord, Status, TrialRecord, Unit};
use crate::report::answers::{Answers, BestAnswer, BestVerdict};
use crate::report::{ReportRequest, answers, experiment_report};
use raidlab_core::flag::{Flag, FlagKind};

/// Runs of cells whose single phase `read` goes at so many MiB/s in each round.
pub(super) fn cells(rates: &[(&str, &[f64])], profile: &str) -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for (label, rates) in rates {
        for (round, rate) in (0..).zip(*rates) {
            let mut trial = synthetic::trial(label, &[], profile, round);
            let rate = Some(rate * 1048576.0);
            trial.phases = vec![PhaseRecord::bare("read", rate, Unit::BytesPerSecond)];
            all.push(trial);
        }
    }
    all
}

fn of_cell<'t>(
    trials: &'t mut [TrialRecord],
    label: &str,
) -> impl Iterator<Item = &'t mut TrialRecord> {
    trials
        .iter_mut()
        .filter(move |trial| trial.cell.label == label)
}

fn told(trials: Vec<TrialRecord>, change: impl FnOnce(&mut ReportRequest)) -> BestAnswer {
    let mut request = ReportRequest::new("t", trials);
    change(&mut request);
    let Answers { best, .. } = answers(&request).unwrap();
    let [best] = &best[..] else {
        panic!("{best:?}");
    };
    best.clone()
}

fn not_compared(best: &BestAnswer) -> Vec<(&str, &str)> {
    let pairs = best.not_compared.iter();
    pairs
        .map(|other| (&other.cell[..], &other.why[..]))
        .collect()
}

const STEADY: [f64; 6] = [95.5, 95.6, 95.7, 95.4, 95.6, 95.5];
const TWICE: [f64; 6] = [191.0, 191.2, 190.8, 191.1, 190.9, 191.0];
const NOISE: [[f64; 6]; 2] = [
    [80.0, 105.0, 98.0, 112.0, 76.0, 101.0],
    [108.0, 79.0, 92.0, 84.0, 103.0, 97.0],
];

#[test]
fn different_streams_decide_nothing() {
    let mut trials = cells(&[("A", &STEADY), ("B", &TWICE)], "random");
    of_cell(&mut trials, "B").for_each(|trial| trial.digest = Some(0xd2));
    let best = told(trials.clone(), |_| {});
    assert_eq!(
        (best.verdict, &best.cell[..]),
        (BestVerdict::CannotBeTold, "B")
    );
    assert_eq!((&best.not_told_apart, &best.next), (&Vec::new(), &None));
    assert_eq!(not_compared(&best), [("A", "different streams")]);
    let allowed = told(trials, |request| request.allow_mixed_streams = true);
    assert_eq!(allowed.verdict, BestVerdict::Decided);
    assert!(allowed.next.is_some() && allowed.not_compared.is_empty());
}

#[test]
fn a_cell_without_a_figure_decides_nothing() {
    let mut trials = cells(
        &[("A", &NOISE[0]), ("B", &NOISE[1]), ("C", &STEADY)],
        "random",
    );
    for trial in of_cell(&mut trials, "C") {
        let flags = &mut trial.phases[0].flags;
        let mut flag = Flag::new(FlagKind::ServedFromCache, "the cache");
        flag.voids = true;
        flags.push(flag);
    }
    let best = told(trials.clone(), |_| {});
    assert_eq!(
        (best.verdict, &best.cell[..]),
        (BestVerdict::CannotBeTold, "A")
    );
    assert_eq!(best.not_told_apart, ["B"]);
    assert_eq!(not_compared(&best), [("C", "no valid run")]);
    // Nor does one that failed, of which there is no phase at all.
    for trial in of_cell(&mut trials, "C") {
        trial.phases.clear();
        trial.status = Status::Failed {
            reason: "a disk died".to_owned(),
        };
    }
    let best = told(trials.clone(), |_| {});
    assert_eq!(best.verdict, BestVerdict::CannotBeTold);
    assert_eq!(not_compared(&best), [("C", "no valid run")]);
    // Of what ran without that phase it was not wanted.
    for trial in of_cell(&mut trials, "C") {
        trial.status = Status::Complete;
    }
    assert!(told(trials.clone(), |_| {}).not_compared.is_empty());
    // Those that are left may be as good as each other, or one better.
    of_cell(&mut trials, "C").for_each(|trial| {
        trial.status = Status::Failed {
            reason: String::new(),
        }
    });
    for (label, factor, verdict) in [
        ("A", 1.0, BestVerdict::NoDifference),
        ("A", 2.0, BestVerdict::Decided),
    ] {
        for (trial, rate) in trials
            .iter_mut()
            .filter(|t| !t.phases.is_empty())
            .zip(STEADY.iter().cycle())
        {
            let factor = if trial.cell.label == label {
                factor
            } else {
                1.0
            };
            trial.phases[0].rate = Some(factor * rate);
        }
        assert_eq!(told(trials.clone(), |_| {}).verdict, verdict);
    }
}

/// One run in which nothing was done has no logarithm, and a cell with it no ratio.
#[test]
fn an_impossible_comparison_decides_nothing() {
    let mut with_zero = STEADY;
    with_zero[2] = 0.0;
    let trials = cells(
        &[("A", &NOISE[0]), ("B", &NOISE[1]), ("C", &with_zero)],
        "random",
    );
    let best = told(trials, |_| {});
    assert_ne!(best.verdict, BestVerdict::Decided, "{best:?}");
    assert!(best.next.is_none(), "{best:?}");
}

/// The table says the same, and names all of them.
#[test]
fn the_table_names_what_is_not_compared() {
    let mut trials = cells(
        &[("A", &NOISE[0]), ("B", &NOISE[1]), ("C", &STEADY)],
        "random",
    );
    for trial in of_cell(&mut trials, "C") {
        trial.phases.clear();
        trial.status = Status::Failed {
            reason: "a disk died".to_owned(),
        };
    }
    let document = experiment_report(&request(trials)).unwrap();
    let mut tables = document.tables();
    let table = tables.find(|table| table.id == "random-fastest").unwrap();
    let row: Vec<String> = table.rows[0].iter().map(|cell| cell.value.text()).collect();
    assert_eq!(row[1], "cannot be told");
    assert_eq!(row[4..], ["A; B", "C"]);
    assert_eq!(
        table.footnotes,
        ["not compared with the best figure: no valid run"]
    );
}

/// 22 % more are more than a fifth better, though 18 % less are not a fifth worse.
#[test]
fn the_margin_is_of_the_gain() {
    let more = STEADY.map(|rate| 1.22 * rate);
    let trials = cells(&[("A", &STEADY), ("C", &more)], "random");
    let single: Vec<_> = trials.iter().filter(|t| t.round == 0).cloned().collect();
    for trials in [trials, single] {
        let best = told(trials, |request| request.margin = 0.2);
        assert_eq!((best.verdict, &best.cell[..]), (BestVerdict::Decided, "C"));
        assert!(best.not_told_apart.is_empty());
        assert_eq!(best.next.map(|next| next.cell).as_deref(), Some("A"));
    }
}

/// An interval from the least to the greatest of a few runs holds the median less often than 95 % say.
#[test]
fn each_figure_has_the_confidence_of_its_own_interval() {
    let of = |rates: &[f64]| {
        let request = ReportRequest::new("t", cells(&[("A", rates)], "random"));
        let answers = answers(&request).unwrap();
        assert!((answers.confidence - 0.95).abs() < 1e-12);
        answers.cells[0].figures["read"].confidence
    };
    assert_eq!(of(&[95.0]), None);
    for (rates, confidence) in [
        (&STEADY[..2], 0.5),
        (&STEADY[..3], 0.75),
        (&STEADY[..4], 0.875),
        (&STEADY[..6], 0.95),
    ] {
        let told = of(rates).expect("an interval");
        assert!(
            (told - confidence).abs() < 1e-12,
            "{told} of {}",
            rates.len()
        );
    }
}
