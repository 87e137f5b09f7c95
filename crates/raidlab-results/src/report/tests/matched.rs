//! Which cells of two sides are compared: those that are called the same, whatever else differs, and what is told of it.
use super::compared::{STEADY, request, session, told};
use crate::record::{TrialRecord, Unit};
use crate::report::{ReportError, compare_request};

/// Two layouts of so many disks.
fn disks(name: char, disks: &str) -> Vec<TrialRecord> {
    let of = |label: &str| {
        let mut trials = session(name, label, &STEADY);
        for trial in &mut trials {
            let factors = &mut trial.cell.factors;
            factors.insert("level".to_owned(), label.to_owned());
            factors.insert("disks".to_owned(), disks.to_owned());
        }
        trials
    };
    [of("raid5"), of("raid10")].concat()
}

/// Four disks against five: neither cell nor factors are the same, and there is more than one of the profile.
#[test]
fn cells_of_one_name_are_compared_and_what_differs_is_told() {
    let report = compare_request(&request(disks('a', "4"), disks('b', "5"))).unwrap();
    let cells: Vec<&str> = report.phases.iter().map(|p| &p.cell[..]).collect();
    assert_eq!(cells, ["raid5", "raid10"]);
    assert!(report.not_compared.is_empty());
    let text = told(&report);
    assert!(text.contains("Compared although they differ:"), "{text}");
    // What is the same of all is told once.
    assert!(text.contains("  - all: disks 5 against 4\n"), "{text}");
}

/// What is surer goes first: a cell that is the same but for its name keeps its own.
#[test]
fn a_name_is_the_last_that_cells_are_told_by() {
    let mut renamed = disks('b', "4");
    for trial in &mut renamed {
        let other = match &trial.cell.label[..] {
            "raid5" => "raid10",
            _ => "raid5",
        };
        trial.cell.label = other.to_owned();
    }
    let report = compare_request(&request(disks('a', "4"), renamed)).unwrap();
    assert!(!told(&report).contains("although"), "{}", told(&report));
}

#[test]
fn what_cannot_be_told_says_what_would_do() {
    let named = |name, from: &str, to: &str| {
        let mut trials = disks(name, "4");
        for trial in &mut trials {
            trial.cell.label = trial.cell.label.replace(from, to);
            trial.cell.factors.insert("disks".to_owned(), to.to_owned());
        }
        trials
    };
    let sides = request(named('a', "raid", "A"), named('b', "raid", "B"));
    let error = compare_request(&sides).unwrap_err();
    insta::assert_snapshot!(error, @"which cells of the two sides belong together cannot be told by their labels, factors and settings (name one of each, as A:LABEL B:LABEL, and they are compared whatever they are): random of A5; random of A10 | random of B5; random of B10");
    let mut other = disks('b', "4");
    let all = other.iter_mut();
    all.for_each(|trial| trial.profile = "sequential".to_owned());
    let error = compare_request(&request(disks('a', "4"), other)).unwrap_err();
    insta::assert_snapshot!(error, @"the two sides ran different profiles: random of raid5; random of raid10 | sequential of raid5; sequential of raid10");
    let mut none = disks('b', "4");
    none.iter_mut().for_each(|trial| trial.phases.clear());
    let error = compare_request(&request(none.clone(), none)).unwrap_err();
    let ReportError::NothingInCommon { why, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(
        why,
        "no trial of either side got as far as its first figure"
    );
}

/// Of runs of one cell that count different things, those are compared that count what the other side does.
#[test]
fn only_what_is_counted_in_the_same_unit_is_compared() {
    let baseline = session('a', "raid5", &STEADY);
    let mut other = session('b', "raid5", &STEADY[..3]);
    for phase in other.iter_mut().flat_map(|trial| &mut trial.phases) {
        phase.unit = Unit::PerSecond;
        phase.rate = phase.rate.map(|rate| rate / 4096.0);
    }
    let candidate = [session('c', "raid5", &STEADY), other].concat();
    let report = compare_request(&request(baseline, candidate)).unwrap();
    let ratios: Vec<Option<f64>> = report.phases.iter().map(|phase| phase.ratio).collect();
    assert!(ratios.iter().all(|ratio| *ratio == Some(1.0)), "{ratios:?}");
    let text = told(&report);
    let told = "  - random of raid5 (read in 1/s): counted in another unit in the baseline\n";
    assert!(text.contains(told), "{text}");
}
