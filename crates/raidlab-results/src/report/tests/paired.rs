//! Runs that are compared one by one: those of a round.
use super::compared::{request, session};
use crate::record::{Provenance, TrialRecord};
use crate::report::compare_request;
use crate::report::group::{exclusions, group};

/// A session of models whose rates change from round to round by what was drawn.
fn simulated(name: char, rates: &[f64]) -> Vec<TrialRecord> {
    let mut trials = session(name, "x", rates);
    for (number, trial) in (1..).zip(&mut trials) {
        trial.provenance = Provenance::Simulated;
        trial.seed = Some(number);
        trial.digest = Some(100 + number);
    }
    trials
}

const DRAWN: [f64; 5] = [1e8, 1.3e8, 0.8e8, 1.1e8, 0.9e8];

/// The same operations on the same angles of the same disks: what differs is the model, to the last digit.
#[test]
fn models_are_compared_by_what_they_were_given() {
    let compared = compare_request(&request(simulated('a', &DRAWN), simulated('b', &DRAWN)));
    let phase = &compared.unwrap().phases[0];
    assert_eq!(phase.verdict, "equivalent", "{phase:?}");
    assert_eq!((phase.ratio, phase.rounds), (Some(1.0), Some(5)));
    // A model that is slower, run for fewer rounds.
    let slower: Vec<f64> = DRAWN[..3].iter().map(|rate| 0.97 * rate).collect();
    let compared = compare_request(&request(simulated('a', &DRAWN), simulated('b', &slower)));
    let phase = &compared.unwrap().phases[0];
    assert_eq!(phase.verdict, "worse", "{phase:?}");
    assert_eq!((phase.runs, phase.rounds), (Some([5, 3]), Some(3)));
    assert_eq!(
        phase.basis.as_deref(),
        Some("ratio of the 3 rounds that both have valid")
    );
}

/// Other seeds are other rounds, and what was measured has more in it than what was drawn.
#[test]
fn runs_of_other_draws_and_of_real_disks_are_not_paired() {
    let mut other = simulated('b', &DRAWN);
    other.iter_mut().for_each(|trial| trial.seed = Some(9));
    let compared = compare_request(&request(simulated('a', &DRAWN), other)).unwrap();
    assert_eq!(compared.phases[0].rounds, None);
    let measured = |name| {
        let mut trials = simulated(name, &DRAWN);
        let real = session(name, "x", &DRAWN);
        let places = trials.iter_mut().zip(real);
        places.for_each(|(trial, real)| trial.provenance = real.provenance);
        trials
    };
    let compared = compare_request(&request(measured('a'), measured('b'))).unwrap();
    assert_eq!(compared.phases[0].rounds, None);
    assert!(compared.phases[0].verdict.starts_with("inconclusive"));
}

/// A model that is run again with the same seed says what it said: it is no further measurement, in no table and no
/// comparison.
#[test]
fn what_was_drawn_twice_counts_once() {
    let twice = || [simulated('b', &DRAWN), simulated('c', &DRAWN)].concat();
    let trials = twice();
    let groups = group(&trials);
    assert_eq!(groups[0].runs("read").len(), 5);
    assert!(
        groups[0]
            .trials
            .iter()
            .all(|trial| trial.session == trials[0].session)
    );
    assert_eq!(
        exclusions(&groups),
        [
            "x: 5 runs of session cccccccc repeat those of bbbbbbbb: the same seed gave the same figures"
        ]
    );
    let compared = compare_request(&request(simulated('a', &DRAWN), twice())).unwrap();
    let phase = &compared.phases[0];
    assert_eq!((phase.runs, phase.rounds), (Some([5, 5]), Some(5)));
    let compared = compare_request(&request(twice(), simulated('a', &[0.97e8, 1.2e8]))).unwrap();
    assert_eq!(compared.phases[0].runs, Some([5, 2]));
}

/// What came out otherwise was not the same model, and real disks may well repeat themselves.
#[test]
fn what_came_out_otherwise_or_was_measured_counts() {
    let mut other = simulated('c', &DRAWN);
    other[3].phases[0].rate = Some(1.15e8);
    let trials = [simulated('b', &DRAWN), other].concat();
    let groups = group(&trials);
    assert_eq!(groups[0].trials.len(), 6);
    let measured = [session('b', "x", &DRAWN), session('c', "x", &DRAWN)].concat();
    assert_eq!(group(&measured)[0].trials.len(), 10);
    // A session may draw what it drew before: then its rounds are what was asked for.
    let mut rounds = simulated('b', &[1e8, 1e8]);
    rounds
        .iter_mut()
        .for_each(|trial| (trial.seed, trial.digest) = (Some(1), Some(1)));
    assert_eq!(group(&rounds)[0].trials.len(), 2);
}
