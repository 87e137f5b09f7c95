//! What models drew twice counts once.
use super::{Group, drawn};
use crate::id;
use crate::record::TrialRecord;
use raidlab_core::words::count;
use std::collections::BTreeMap;

/// Sets aside the runs of models that an earlier session has: the same draw with the same outcome. Counted again they would
/// make any figure look as sure as one likes. What came out otherwise is of another model, and stays.
pub(super) fn once_each(group: &mut Group<'_>) {
    let mut known: BTreeMap<(u64, u64), Vec<&TrialRecord>> = BTreeMap::new();
    let mut again = Vec::new();
    group.trials.retain(|trial| {
        let Some(draw) = drawn(trial).filter(|_| trial.is_valid()) else {
            return true;
        };
        let before = known.entry(draw).or_default();
        let same = |one: &&&TrialRecord| one.session != trial.session && came_out_as(one, trial);
        if let Some(first) = before.iter().find(same) {
            again.push((first.session.as_str(), *trial));
            return false;
        }
        before.push(trial);
        true
    });
    group.again = again;
}

/// Whether two runs have the same rates, to the last digit.
fn came_out_as(one: &TrialRecord, other: &TrialRecord) -> bool {
    let rates = |trial: &TrialRecord| -> Vec<(String, Option<u64>)> {
        let phases = trial.phases.iter();
        phases
            .map(|p| (p.phase.clone(), p.rate.map(f64::to_bits)))
            .collect()
    };
    rates(one) == rates(other)
}

/// The runs that a session has from an earlier one, a line for each such session.
pub(super) fn drawn_again(group: &Group<'_>) -> Vec<String> {
    let mut sessions: Vec<(&str, &str, usize)> = Vec::new();
    for (first, trial) in &group.again {
        let same = |one: &&mut (&str, &str, usize)| (one.0, one.1) == (*first, &*trial.session);
        match sessions.iter_mut().find(same) {
            Some(one) => one.2 += 1,
            None => sessions.push((first, &trial.session, 1)),
        }
    }
    let line = |(first, session, number): (&str, &str, usize)| {
        let (runs, repeat) = match number {
            1 => ("1 run".to_owned(), "repeats one"),
            n => (count(n, "run"), "repeat those"),
        };
        format!(
            "{}: {runs} of session {} {repeat} of {}: the same seed gave the same figures",
            group.label,
            id::short(session),
            id::short(first)
        )
    };
    sessions.into_iter().map(line).collect()
}
