//! Two cells beside each other: whether one beats the other, and in what.
use super::money::{Money, amount};
use super::{Beaten, Entry, Figure, are_rivals};
use crate::record::Better;
use crate::report::analysis::{Judging, Outcome, adjust, compare_phase, is_better};
use crate::report::experiment::ArrayFacts;
use crate::report::format;
use raidlab_stats::Comparison;

/// Capacities within this share are the same: what is left over of a chunk is no reason.
const SAME_CAPACITY: f64 = 1e-3;

/// Who beats a cell; of several the one that gains most.
pub(super) fn beaten(
    place: usize,
    entries: &[Entry<'_>],
    phases: &[&str],
    money: &Money,
    judging: &Judging,
) -> Option<Beaten> {
    let loser = &entries[place];
    let mut best: Option<Beaten> = None;
    for (by, winner) in entries.iter().enumerate() {
        if !are_rivals(winner, loser) || !costs_no_more_and_holds_no_less(winner, loser) {
            continue;
        }
        let Some(gain) = gain(winner, loser, phases, judging) else {
            continue;
        };
        let reasons = better_in(winner, loser, phases, money, judging);
        if !reasons.is_empty() && best.as_ref().is_none_or(|best| gain > best.gain) {
            best = Some(Beaten { by, reasons, gain });
        }
    }
    best
}

fn costs_no_more_and_holds_no_less(winner: &Entry<'_>, loser: &Entry<'_>) -> bool {
    let second = |entry: &Entry<'_>| entry.facts.second.unwrap_or(0.0);
    let survives = (winner.facts.survives, loser.facts.survives);
    winner.cost <= loser.cost
        && capacity(winner, loser) >= 1.0 - SAME_CAPACITY
        && survives.0 >= survives.1
        && (survives.0 > survives.1 || second(winner) >= second(loser) - 1e-9)
}

/// Usable capacity as a ratio: of bytes, or of disks where the bytes of one are not known; no number where those are not either.
fn capacity(winner: &Entry<'_>, loser: &Entry<'_>) -> f64 {
    let (one, other) = (winner.facts, loser.facts);
    match (one.capacity, other.capacity) {
        (Some(one), Some(other)) => one as f64 / other as f64,
        _ => {
            let disks = |facts: &ArrayFacts| facts.capacity_disks.parse().unwrap_or(f64::NAN);
            disks(one) / disks(other)
        }
    }
}

/// Whether a phase tells two cells apart: not where both figures are doubted. Where one alone is, the other one was timed
/// soundly, and what was over sooner is not beaten for that.
fn decides(one: Option<Figure>, other: Option<Figure>) -> bool {
    let doubted = |figure: Option<Figure>| figure.is_some_and(|figure| figure.doubted);
    !(doubted(one) && doubted(other))
}

/// Phases that decide between no two cells, each figure being doubted.
pub(super) fn doubted<'p>(entries: &[Entry<'_>], phases: &[&'p str]) -> Vec<&'p str> {
    let of_all = |number: usize| {
        let mut figures = entries.iter().filter_map(|entry| entry.figures[number]);
        figures.all(|figure| figure.doubted)
    };
    let numbered = phases.iter().enumerate();
    let doubted = numbered.filter(|(number, _)| of_all(*number));
    doubted.map(|(_, phase)| *phase).collect()
}

/// Logarithm of the product of all gains; `None` when a phase is slower by more than the margin, or was not measured
/// on both sides.
fn gain(winner: &Entry<'_>, loser: &Entry<'_>, phases: &[&str], judging: &Judging) -> Option<f64> {
    let (mut sum, mut compared) = (0.0, false);
    for (number, phase) in phases.iter().enumerate() {
        let (one, other) = (winner.figures[number], loser.figures[number]);
        if !decides(one, other) {
            continue;
        }
        let (one, other) = match (one, other) {
            (Some(one), Some(other)) => (one.value, other.value),
            (None, None) => continue,
            _ => return None,
        };
        let ratio = match winner.group.unit(phase)?.better() {
            Better::Higher => one / other,
            Better::Lower => other / one,
        };
        if !(ratio.is_finite() && ratio >= 1.0 - judging.margin) {
            return None;
        }
        sum += ratio.ln();
        compared = true;
    }
    compared.then_some(sum)
}

/// What the winner is better in, for certain; the most first.
fn better_in(
    winner: &Entry<'_>,
    loser: &Entry<'_>,
    phases: &[&str],
    money: &Money,
    judging: &Judging,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if winner.cost < loser.cost {
        let less = loser.cost - winner.cost;
        reasons.push(match money {
            Money::Currency(letters) => format!("{} {letters} less", amount(less)),
            Money::Disks => format!("{} less", format::plural(less as usize, "disk")),
        });
    }
    let more = capacity(winner, loser);
    if more > 1.0 + SAME_CAPACITY {
        reasons.push(format!("{}x the capacity", format::ratio(more)));
    }
    let survives = (winner.facts.survives, loser.facts.survives);
    let second = (winner.facts.second, loser.facts.second);
    if survives.0 > survives.1 {
        let more = format::plural(survives.0 - survives.1, "more failure");
        reasons.push(format!("survives {more}"));
    } else if let (Some(one), Some(other)) = second
        && one > other + 1e-9
    {
        let (one, other) = (100.0 * one, 100.0 * other);
        reasons.push(format!(
            "survives {one:.0} % of second failures, not {other:.0} %"
        ));
    }
    let mut faster = faster_in(winner, loser, phases, judging);
    faster.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = |(phase, gain): &(&str, f64)| match gain.is_finite() {
        true => format!("{phase} {}x", format::ratio(*gain)),
        false => format!("{phase} takes no time"),
    };
    reasons.extend(faster.iter().map(words));
    reasons
}

/// Phases in which the winner is better by more than the margin, for certain where there is more than one run: 95 %
/// over all phases of the two together.
fn faster_in<'p>(
    winner: &Entry<'_>,
    loser: &Entry<'_>,
    phases: &[&'p str],
    judging: &Judging,
) -> Vec<(&'p str, f64)> {
    let against = |phase: &&str| compare_phase(loser.group, winner.group, phase, judging);
    let decide = |number: &usize| decides(winner.figures[*number], loser.figures[*number]);
    let deciding = (0..phases.len()).filter(decide);
    let phases: Vec<&'p str> = deciding.map(|number| phases[number]).collect();
    let mut outcomes: Vec<Outcome> = phases.iter().map(against).collect();
    adjust(outcomes.iter_mut(), judging);
    let better = |comparison: &Comparison| {
        let sure = is_better(comparison, judging);
        comparison.gain().filter(|_| sure).map(|gain| gain.value)
    };
    let phases = phases.iter().zip(&outcomes);
    phases
        .filter_map(|(phase, outcome)| match outcome {
            Outcome::Ratio(comparison) => Some((*phase, better(comparison)?)),
            _ => None,
        })
        .collect()
}
