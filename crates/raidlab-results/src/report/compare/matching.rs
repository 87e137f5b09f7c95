//! Which cells of two sides belong together.
use super::NotCompared;
use super::setups::Setups;
use crate::report::group::{Group, provenance_kind};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Pair<'g, 'a> = (&'g Group<'a>, &'g Group<'a>);

/// The cells of both sides that belong together, and what is to be said of the others.
pub(super) struct Matching<'g, 'a> {
    /// Baseline and candidate, in the candidate's order.
    pub(super) pairs: Vec<Pair<'g, 'a>>,
    /// What stays alone.
    pub(super) alone: Vec<NotCompared>,
    /// Of pairs that differ in what they are although they are called the same, or in their settings: in what.
    pub(super) differing: Vec<String>,
}

/// Whether two cells of a profile belong together, the surest way first.
const WAYS: [fn(&Group<'_>, &Group<'_>) -> bool; 9] = [
    |a, b| same_cell(a, b) && a.settings == b.settings && same_kind(a, b) && !a.counts_otherwise(b),
    |a, b| same_cell(a, b) && a.settings == b.settings && same_kind(a, b),
    |a, b| same_cell(a, b) && a.settings == b.settings,
    same_cell,
    |a, b| same_factors(a, b) && a.settings == b.settings,
    same_factors,
    // One disk more, another model of disk: what is called the same is what is to be compared.
    |a, b| same_label(a, b) && a.settings == b.settings,
    same_label,
    // The only ones of their profile.
    |_, _| true,
];

fn same_cell(a: &Group<'_>, b: &Group<'_>) -> bool {
    a.cell == b.cell
}

fn same_kind(a: &Group<'_>, b: &Group<'_>) -> bool {
    provenance_kind(a.provenance) == provenance_kind(b.provenance)
}

/// Cells that are called otherwise may be the same.
fn same_factors(a: &Group<'_>, b: &Group<'_>) -> bool {
    !a.cell.factors.is_empty() && a.cell.factors == b.cell.factors
}

fn same_label(a: &Group<'_>, b: &Group<'_>) -> bool {
    a.cell.label == b.cell.label
}

/// Pairs cells by the surest way that leaves no choice; where one is left, nothing is guessed. With `whole` the candidate
/// should have all that the baseline has.
pub(super) fn matched<'g, 'a>(
    base: &'g [Group<'a>],
    new: &'g [Group<'a>],
    setups: &Setups,
    whole: bool,
) -> Matching<'g, 'a> {
    let mut of_candidate: Vec<Option<usize>> = vec![None; new.len()];
    for way in WAYS {
        let fits = |a: &Group<'_>, b: &Group<'_>| a.profile == b.profile && way(a, b);
        for (at, candidate) in new.iter().enumerate() {
            let Some(found) = only(base, |baseline| fits(baseline, candidate)) else {
                continue;
            };
            let taken = of_candidate[at].is_some() || of_candidate.contains(&Some(found));
            if !taken && only(new, |other| fits(&base[found], other)).is_some() {
                of_candidate[at] = Some(found);
            }
        }
    }
    let left_base = |at: usize| !of_candidate.contains(&Some(at));
    let left_new = |at: usize| of_candidate[at].is_none();
    let mut alone = Vec::new();
    let candidates = new.iter().enumerate().filter(|(at, _)| left_new(*at));
    alone.extend(candidates.map(|(_, group)| lonely(group, base, left_base, "baseline")));
    let baselines = base.iter().enumerate().filter(|(at, _)| left_base(*at));
    alone.extend(baselines.map(|(_, group)| NotCompared {
        missing: whole,
        ..lonely(group, new, left_new, "candidate")
    }));
    let pairs: Vec<Pair<'g, 'a>> = (new.iter().zip(&of_candidate))
        .filter_map(|(candidate, found)| Some((&base[(*found)?], candidate)))
        .collect();
    Matching {
        differing: differing(&pairs, setups),
        pairs,
        alone,
    }
}

/// The place of the one group that fits; `None` of none and of several.
fn only(groups: &[Group<'_>], fits: impl Fn(&Group<'_>) -> bool) -> Option<usize> {
    let mut places = (0..groups.len()).filter(|at| fits(&groups[*at]));
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

/// Why a cell has none to be compared with on the other side.
fn lonely(
    group: &Group<'_>,
    others: &[Group<'_>],
    left: impl Fn(usize) -> bool,
    side: &str,
) -> NotCompared {
    let alike = |other: &Group<'_>| {
        group.profile == other.profile && (same_cell(group, other) || same_factors(group, other))
    };
    let mut found = (0..others.len())
        .filter(|at| alike(&others[*at]))
        .peekable();
    let known = found.peek().is_some();
    let ambiguous = found.any(left);
    let same = |other: &&Group<'_>| alike(other) && group.settings == other.settings;
    let other_unit = others
        .iter()
        .filter(same)
        .any(|o| o.counts_otherwise(group));
    let why = match (known, ambiguous) {
        (false, _) => format!("no such cell in the {side}"),
        (true, false) if other_unit => format!("counted in another unit in the {side}"),
        (true, false) => format!("not with these settings in the {side}"),
        (true, true) => format!(
            "the {side} has such cells with other settings only, and which one it belongs to cannot be told"
        ),
    };
    NotCompared {
        profile: group.profile.to_owned(),
        cell: group.label.clone(),
        why,
        ambiguous,
        missing: false,
    }
}

/// In what the sides of each pair differ, in words; what is the same of all pairs is told once.
fn differing(pairs: &[Pair<'_, '_>], setups: &Setups) -> Vec<String> {
    let mut each: Vec<Vec<String>> = pairs
        .iter()
        .map(|pair| {
            let mut parts = in_cell(pair);
            let told = |part: &String| parts.contains(part);
            let news: Vec<String> = in_setup(pair, setups)
                .into_iter()
                .filter(|part| !told(part))
                .collect();
            parts.extend(news);
            parts
        })
        .collect();
    let mut shared = Vec::new();
    if let [first, rest @ ..] = each.as_slice()
        && !rest.is_empty()
    {
        let of_all = |part: &&String| rest.iter().all(|parts| parts.contains(part));
        shared = first.iter().filter(of_all).cloned().collect();
    }
    for parts in &mut each {
        parts.retain(|part| !shared.contains(part));
    }
    let all = (!shared.is_empty()).then(|| format!("all: {}", shared.join(", ")));
    let told = pairs
        .iter()
        .zip(each)
        .filter_map(|((_, candidate), parts)| {
            let (profile, label) = (candidate.profile, &candidate.label);
            (!parts.is_empty()).then(|| format!("{profile} of {label}: {}", parts.join(", ")))
        });
    all.into_iter().chain(told).collect()
}

/// In what the arrays and hosts of a pair differ that are called the same, where both sessions tell.
fn in_setup((base, candidate): &Pair<'_, '_>, setups: &Setups) -> Vec<String> {
    let (Some(a), Some(b)) = (setups.get(base), setups.get(candidate)) else {
        return Vec::new();
    };
    if same_label(base, candidate) {
        unlike(a, b)
    } else {
        Vec::new()
    }
}

/// In what the sides of a pair differ by their settings and factors. Cells that are called otherwise say it by their names.
fn in_cell((base, candidate): &Pair<'_, '_>) -> Vec<String> {
    let mut parts = unlike(&base.settings, &candidate.settings);
    if same_label(base, candidate) {
        let factors = unlike(&base.cell.factors, &candidate.cell.factors).into_iter();
        // Importers keep what a factor says as a setting, too.
        let news: Vec<String> = factors.filter(|part| !parts.contains(part)).collect();
        parts.extend(news);
    }
    parts
}

/// What is not the same in both, the candidate's value first.
fn unlike(base: &BTreeMap<String, String>, candidate: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = base.keys().chain(candidate.keys()).collect();
    let value = |of: Option<&String>| of.map_or("none", String::as_str).to_owned();
    names
        .into_iter()
        .filter(|name| base.get(*name) != candidate.get(*name))
        .map(|name| {
            let (a, b) = (value(base.get(name)), value(candidate.get(name)));
            format!("{name} {b} against {a}")
        })
        .collect()
}
