//! What a gate says of what it cannot judge, and of what is in doubt.
use super::compared::{STEADY, request, session, told};
use crate::report::{CompareReport, CompareRequest, GateResult, Percentile, compare_request};
use raidlab_core::flag::{Flag, FlagKind};

/// Two cells against the first of them.
fn vanished() -> CompareRequest {
    let both = [session('a', "x", &STEADY), session('a', "y", &STEADY)].concat();
    request(both, session('b', "x", &STEADY))
}

fn alone(report: &CompareReport) -> Vec<(&str, bool)> {
    let cells = report.not_compared.iter();
    cells.map(|one| (&one.cell[..], one.missing)).collect()
}

/// A cell that the candidate lacks is one that cannot be judged, as a phase that it lacks is.
#[test]
fn a_cell_that_the_candidate_lacks_is_no_pass() {
    let report = compare_request(&vanished()).unwrap();
    assert_eq!(report.overall, GateResult::Warn);
    assert_eq!(alone(&report), [("y", true)]);
    let text = told(&report);
    assert!(text.contains("no such cell in the candidate"), "{text}");
    assert!(text.contains("1 figure could not be judged"), "{text}");
    // Left out by who asks, it is not missed.
    let narrowed = CompareRequest {
        candidate_narrowed: true,
        ..vanished()
    };
    let report = compare_request(&narrowed).unwrap();
    assert_eq!(report.overall, GateResult::Pass);
    assert_eq!(alone(&report), [("y", false)]);
}

/// Nobody has asked whether a new cell has become slower.
#[test]
fn a_cell_that_only_the_candidate_has_is_told_and_no_failure() {
    let sides = vanished();
    let report = compare_request(&request(sides.candidate, sides.baseline)).unwrap();
    assert_eq!(report.overall, GateResult::Pass);
    assert_eq!(alone(&report), [("y", false)]);
    assert!(told(&report).contains("no such cell in the baseline"));
}

#[test]
fn nor_is_it_one_of_response_times() {
    let timed = |name| {
        let mut trials = super::synthetic::repeats();
        trials.iter_mut().for_each(|trial| {
            trial.id = format!("{name}{}", &trial.id[1..]);
        });
        trials
    };
    let mut less = timed('b');
    less.retain(|trial| trial.cell.label == "one");
    let mut sides = request(timed('a'), less);
    sides.gate = None;
    sides.gate_latency.insert(Percentile::P50, 2.0);
    let report = compare_request(&sides).unwrap();
    assert_eq!(report.overall, GateResult::Warn);
    sides.candidate_narrowed = true;
    assert_eq!(compare_request(&sides).unwrap().overall, GateResult::Pass);
}

/// What the trials are doubted for is told beside what is judged of them, of each side.
#[test]
fn doubts_about_the_trials_are_told() {
    let (mut base, mut new) = (session('a', "x", &STEADY), session('b', "x", &STEADY));
    let flag = |kind| Flag {
        kind,
        voids: false,
        reason: "for a test".to_owned(),
    };
    base[1].flags.push(flag(FlagKind::ForeignIo));
    for trial in &mut new {
        trial.phases[0].flags.push(flag(FlagKind::TooShort));
    }
    let report = compare_request(&request(base, new)).unwrap();
    assert_eq!(
        report.phases[0].flags,
        [[FlagKind::ForeignIo].into(), [FlagKind::TooShort].into()]
    );
    assert_eq!(
        report.doubted(),
        (1, 1, [FlagKind::ForeignIo, FlagKind::TooShort].into())
    );
    let text = told(&report);
    for note in [
        "baseline: foreign-io (1 of 5 runs): for a test",
        "candidate: too-short (5 of 5 runs): for a test",
    ] {
        assert!(text.contains(note), "{text}");
    }
}
