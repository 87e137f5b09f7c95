//! Which cell is the baseline of which.
use crate::record::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Names a cell by its label or by some of its factors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selector {
    /// The label, as a report prints it.
    Label(String),
    /// Every factor named has this level.
    Factors(BTreeMap<String, String>),
}

/// A selector that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no cell: write its label, or factors such as 'level=raid0,disks=2'")]
pub struct ParseSelectorError(String);

impl std::str::FromStr for Selector {
    type Err = ParseSelectorError;

    /// `level=raid0,disks=2` names factors; anything else is a label.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let wrong = || ParseSelectorError(text.to_owned());
        if text.is_empty() {
            return Err(wrong());
        }
        if !text.contains('=') {
            return Ok(Self::Label(text.to_owned()));
        }
        let factors: Option<BTreeMap<_, _>> = text
            .split(',')
            .map(|part| {
                let (name, level) = part.split_once('=')?;
                let (name, level) = (name.trim(), level.trim());
                (!name.is_empty() && !level.is_empty()).then(|| (name.to_owned(), level.to_owned()))
            })
            .collect();
        factors.map(Self::Factors).ok_or_else(wrong)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => f.write_str(label),
            Self::Factors(factors) => {
                let all: Vec<_> = factors.iter().map(|(k, v)| format!("{k}={v}")).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}

impl Selector {
    /// What `text` names among cells of these labels: the one that is called so, though it look like factors; else as
    /// [`FromStr`](std::str::FromStr) reads it.
    ///
    /// # Errors
    /// [`ParseSelectorError`]: neither.
    pub fn among<'l>(
        text: &str,
        mut labels: impl Iterator<Item = &'l str>,
    ) -> Result<Self, ParseSelectorError> {
        match labels.any(|label| label == text) {
            true => Ok(Self::Label(text.to_owned())),
            false => text.parse(),
        }
    }

    /// Whether a cell is meant.
    #[must_use]
    pub fn matches(&self, cell: &Cell) -> bool {
        match self {
            Self::Label(label) => cell.label == *label,
            Self::Factors(factors) => factors
                .iter()
                .all(|(name, level)| cell.factors.get(name) == Some(level)),
        }
    }

    /// Whether this one is meant, by either of its labels.
    pub(crate) fn names(&self, one: &impl Named) -> bool {
        let by_label = matches!(self, Self::Label(label) if one.label() == label);
        by_label || self.matches(one.cell())
    }
}

/// What has a cell, and a label that tells it from others of the same cell: a report calls by it what differs in more than
/// its cell.
pub(crate) trait Named {
    fn cell(&self) -> &Cell;

    fn label(&self) -> &str;
}

/// What the cells of a report are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// One cell for all. Factors that several cells have mean [`Baseline::Factor`].
    Cell(Selector),
    /// Each cell with the one that differs from it in these factors alone: `engine=md`,
    /// `channels=1+1`. Cells without such a fellow have no baseline.
    Factor(BTreeMap<String, String>),
    /// The first case that a cell matches says its baseline.
    Cases(Vec<(Selector, Selector)>),
}

/// Factors that follow from others and so need not agree.
const DERIVED: [&str; 1] = ["capacity-disks"];
/// What a layout follows from, but for its variants: whoever names one of these as the baseline's means other layouts.
const OF_LAYOUT: [&str; 2] = ["layout", "level"];

impl Baseline {
    /// The place among `cells` of the baseline of `cell`; `None` when it has none.
    pub(crate) fn of<N: Named>(&self, cell: &N, cells: &[N]) -> Option<usize> {
        match self {
            Self::Cell(Selector::Factors(factors)) => {
                let selector = Selector::Factors(factors.clone());
                let matching = cells.iter().filter(|c| selector.names(*c)).count();
                if matching > 1 {
                    return Self::Factor(factors.clone()).of(cell, cells);
                }
                cells.iter().position(|c| selector.names(c))
            }
            Self::Cell(selector) => cells.iter().position(|c| selector.names(c)),
            Self::Factor(factors) => {
                let rest = |c: &Cell| -> BTreeMap<String, String> {
                    let mut rest = c.factors.clone();
                    rest.retain(|name, _| {
                        !factors.contains_key(name)
                            && !DERIVED.contains(&name.as_str())
                            && name != "layout"
                    });
                    rest
                };
                let cell = cell.cell();
                let wanted = rest(cell);
                let named = OF_LAYOUT.iter().any(|name| factors.contains_key(*name));
                let same_layout = |c: &Cell| named || are_of_one_layout(cell, c);
                cells.iter().map(Named::cell).position(|c| {
                    factors
                        .iter()
                        .all(|(name, level)| c.factors.get(name) == Some(level))
                        && rest(c) == wanted
                        && same_layout(c)
                })
            }
            Self::Cases(cases) => {
                let (_, base) = cases.iter().find(|(when, _)| when.names(cell))?;
                cells.iter().position(|c| base.names(c))
            }
        }
    }
}

/// Whether two cells have the same variant of a level: RAID10 with near and with far copies are two. A cell that does
/// not tell its layout, because nothing else was run with it, has that of its level.
fn are_of_one_layout(one: &Cell, other: &Cell) -> bool {
    let layout = |cell: &Cell| cell.factors.get("layout").cloned();
    match (layout(one), layout(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Named for &Cell {
        fn cell(&self) -> &Cell {
            self
        }

        fn label(&self) -> &str {
            &self.label
        }
    }

    fn cell(label: &str, factors: &[(&str, &str)]) -> Cell {
        Cell {
            label: label.into(),
            factors: factors
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn selectors_are_labels_or_factors() {
        let raid0: Selector = "level=raid0, disks=2".parse().unwrap();
        assert!(raid0.matches(&cell(
            "x",
            &[("level", "raid0"), ("disks", "2"), ("chunk", "1")]
        )));
        assert!(!raid0.matches(&cell("x", &[("level", "raid0"), ("disks", "4")])));
        let label: Selector = "md raid0 1 disk".parse().unwrap();
        assert!(label.matches(&cell("md raid0 1 disk", &[])));
        assert_eq!(raid0.to_string(), "disks=2,level=raid0");
        for wrong in ["", " ", "level=", "=raid0", "level=raid0,,"] {
            assert!(wrong.parse::<Selector>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_factor_baseline_is_the_fellow_that_differs_in_it_alone() {
        let md = cell(
            "md",
            &[("engine", "md"), ("disks", "2"), ("capacity-disks", "2")],
        );
        let bios = cell("bios", &[("engine", "controller"), ("disks", "2")]);
        let other = cell("four", &[("engine", "controller"), ("disks", "4")]);
        let cells = [&md, &bios, &other];
        let rule = Baseline::Factor(BTreeMap::from([("engine".into(), "md".into())]));
        assert_eq!(rule.of(&&bios, &cells), Some(0));
        assert_eq!(rule.of(&&md, &cells), Some(0));
        assert_eq!(rule.of(&&other, &cells), None);
        // As typed: one cell with these factors is the baseline of all, of several each has its own.
        let typed = |text: &str| Baseline::Cell(text.parse().unwrap());
        assert_eq!(typed("engine=md").of(&&other, &cells), Some(0));
        assert_eq!(typed("engine=controller").of(&&md, &cells), Some(1));
        assert_eq!(typed("engine=controller").of(&&other, &cells), Some(2));
    }

    #[test]
    fn a_label_that_looks_like_factors_is_a_label() {
        let labels = ["size=4GiB", "=1", " old"];
        for text in labels {
            let read = Selector::among(text, labels.into_iter());
            assert_eq!(read, Ok(Selector::Label(text.to_owned())));
        }
        let factors = Selector::among("size=8GiB", labels.into_iter());
        assert_eq!(factors, "size=8GiB".parse());
        assert!(Selector::among("=2", labels.into_iter()).is_err());
    }

    /// Near and far copies, symmetric and asymmetric parity are of one level, and not the same.
    #[test]
    fn a_factor_baseline_has_the_layout_of_its_cell() {
        let of = |layout: &str, state: &str| {
            let level = layout.split('-').next().unwrap();
            let label = format!("{layout}, {state}");
            let factors = [("level", level), ("layout", layout), ("state", state)];
            cell(&label, &factors)
        };
        let layouts = ["raid10", "raid10-f2", "raid5", "raid5-ra"];
        let all = layouts.map(|layout| [of(layout, "clean"), of(layout, "degraded 1")]);
        let cells: Vec<&Cell> = all.iter().flatten().collect();
        let rule = Baseline::Factor(BTreeMap::from([("state".into(), "clean".into())]));
        for [clean, degraded] in &all {
            let base = rule.of(&degraded, &cells).map(|place| &cells[place].label);
            assert_eq!(base, Some(&clean.label));
        }
        // Whoever names the level means another layout; and a cell may not tell its own.
        let typed = |text: &str| Baseline::Cell(text.parse().unwrap());
        assert_eq!(typed("level=raid10").of(&cells[5], &cells), Some(1));
        let plain = cell("plain", &[("level", "raid5"), ("state", "degraded 1")]);
        assert_eq!(rule.of(&&plain, &cells), Some(4));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,30}") {
            if let Ok(selector) = text.parse::<Selector>() {
                prop_assert_eq!(selector.to_string().parse(), Ok(selector));
            }
        }
    }
}
