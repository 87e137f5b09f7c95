//! The combinations of levels, less those that are left out.
use super::refer::Words;
use super::view::{Used, View};
use crate::diagnostic::Problems;
use crate::read::factors::{DraftFactor, Level};
use crate::read::setting::Bound;
use crate::read::tree::At;
use std::collections::BTreeMap;

/// The most combinations before some are left out, and the most cells after.
pub(super) const MOST_COMBINATIONS: u64 = 100_000;
pub(super) const MOST_CELLS: usize = 10_000;

/// One combination.
pub(super) struct Combination<'d> {
    pub(super) label: String,
    /// Of every name of [`Words`].
    pub(super) levels: BTreeMap<String, String>,
    pub(super) view: View<'d>,
}

/// All combinations that are not left out, the first factor varying slowest, and how many are.
pub(super) fn product<'d>(
    problems: &Problems,
    factors: &'d [DraftFactor],
    fixed: &'d [Bound],
    words: &Words<'d>,
    used: &'d Used,
) -> Option<(Vec<Combination<'d>>, u64)> {
    let lengths = factors.iter().map(|f| f.levels.len() as u64);
    let all = lengths.fold(1_u64, u64::saturating_mul);
    if all > MOST_COMBINATIONS {
        let last = factors.last().map_or(0..0, |f| f.name.at.clone());
        let message = format!("{all} combinations of levels are too many");
        let help = format!("at most {MOST_COMBINATIONS}: use fewer levels, or two experiments");
        problems.wrong(&last, message, &help);
        return None;
    }
    let mut kept = Vec::new();
    for number in 0..all {
        let levels = levels_of(factors, number);
        let bounds = fixed.iter().chain(levels.iter().flat_map(|l| &l.bounds));
        let view = View::new(bounds, used);
        let by_name = words.of_cell(factors, &levels, &view);
        if words.keeps(&by_name) {
            kept.push(Combination {
                label: label(factors, &levels),
                levels: by_name,
                view,
            });
        }
    }
    words.tell_unmatched(problems);
    let left_out = all - kept.len() as u64;
    if kept.is_empty() {
        let at = factors.first().map_or(0..0, |f| f.name.at.clone());
        let help = "loosen [[only]] or [[exclude]]";
        problems.wrong(&at, "no combination of levels is left", help);
        return None;
    }
    if kept.len() > MOST_CELLS {
        let at = factors.last().map_or(0..0, |f| f.name.at.clone());
        let message = format!("{} cells are too many", kept.len());
        let help = format!("at most {MOST_CELLS}: use fewer levels, or two experiments");
        problems.wrong(&at, message, &help);
        return None;
    }
    distinct(&mut kept);
    Some((kept, left_out))
}

/// The levels of a combination: the digits of its number.
fn levels_of(factors: &[DraftFactor], number: u64) -> Vec<&Level> {
    let mut left = number;
    let mut levels = Vec::with_capacity(factors.len());
    for factor in factors.iter().rev() {
        let n = factor.levels.len() as u64;
        levels.push(&factor.levels[(left % n) as usize]);
        left /= n;
    }
    levels.reverse();
    levels
}

/// The levels that vary; a number or a yes says what of.
fn label(factors: &[DraftFactor], levels: &[&Level]) -> String {
    let mut parts = Vec::new();
    let varied = factors.iter().any(|f| f.levels.len() > 1);
    for (factor, level) in factors.iter().zip(levels) {
        if varied && factor.levels.len() == 1 {
            continue;
        }
        let At { value, .. } = &level.label;
        let bare = value.starts_with(|c: char| c.is_ascii_digit())
            || matches!(value.as_str(), "yes" | "no" | "auto");
        parts.push(match bare && !factor.named {
            true => format!("{} {value}", factor.name.value),
            false => value.clone(),
        });
    }
    match parts.is_empty() {
        true => "the cell".to_owned(),
        false => parts.join(", "),
    }
}

/// Gives labels that happen to be the same a number.
fn distinct(cells: &mut [Combination<'_>]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for cell in cells {
        let count = seen.entry(cell.label.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            cell.label = format!("{} ({count})", cell.label);
        }
    }
}
