//! Runs that are compared one by one: those of a round.
use super::compared::{request, session};
use crate::record::{Provenance, TrialRecord};
use crate::report::compare_request;

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
