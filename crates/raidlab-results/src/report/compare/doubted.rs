//! Doubts about the runs that are compared.
use super::{CompareReport, GateResult};
use crate::report::group::Group;
use raidlab_core::flag::FlagKind;
use std::collections::BTreeSet;

/// Kinds of doubt about the valid runs of a phase, of the baseline and of the candidate.
pub(super) fn kinds(sides: [&Group<'_>; 2], phase: &str) -> [BTreeSet<FlagKind>; 2] {
    let of = |group: &Group<'_>| {
        let remarks = group.remarks(phase).into_iter();
        remarks.map(|(kind, _)| kind).collect()
    };
    sides.map(of)
}

/// The same in words, of each side by its name.
pub(super) fn remarks(
    sides: [&Group<'_>; 2],
    phase: &str,
) -> Vec<(&'static str, FlagKind, String)> {
    let named = ["baseline", "candidate"].into_iter().zip(sides);
    let of = |(side, group): (&'static str, &Group<'_>)| {
        let remarks = group.remarks(phase).into_iter();
        remarks.map(move |(kind, text)| (side, kind, format!("{side}: {text}")))
    };
    named.flat_map(of).collect()
}

impl CompareReport {
    /// Of the figures that gates judge: how many have doubts about their runs, how many there are, and the kinds of doubt.
    #[must_use]
    pub fn doubted(&self) -> (usize, usize, BTreeSet<FlagKind>) {
        let phases = self.phases.iter().map(|one| (one.gate, &one.flags));
        let timed = self.response_times.iter().map(|one| (one.gate, &one.flags));
        let judged = |(gate, _): &(GateResult, &_)| {
            ![GateResult::NotAsked, GateResult::NotJudged].contains(gate)
        };
        let (mut number, mut all, mut kinds) = (0, 0, BTreeSet::new());
        for (_, flags) in phases.chain(timed).filter(judged) {
            all += 1;
            number += usize::from(flags.iter().any(|side| !side.is_empty()));
            kinds.extend(flags.iter().flatten());
        }
        (number, all, kinds)
    }
}
