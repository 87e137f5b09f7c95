//! The names of what is varied, and choices of cells by them.
use super::product::Combination;
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::experiment::Baseline;
use crate::read::design::CellChoice;
use crate::read::factors::{DraftFactor, Level, Selection};
use crate::read::key::Key;
use crate::read::setting::{Bound, What};
use crate::read::tree::shown;
use raidlab_core::suggest::{list, nearest};
use raidlab_core::words::count;
use std::cell::Cell as Flag;
use std::collections::BTreeMap;

/// A list that leaves combinations out, and which of its entries did anything.
struct Rule<'d> {
    selection: &'d Selection,
    matched: Flag<bool>,
}

/// The names that choices of cells may use, with their levels.
pub(super) struct Words<'d> {
    /// Settings that named levels vary.
    settings: Vec<(String, What)>,
    levels: BTreeMap<String, Vec<String>>,
    only: Vec<Rule<'d>>,
    exclude: Vec<Rule<'d>>,
}

fn full_name(bound: &Bound) -> String {
    match &bound.what {
        What::Key(key) => key.name().to_owned(),
        What::Setting {
            scope: Some(scope),
            name,
        } => format!("{scope}.{name}"),
        What::Setting { name, .. } => name.clone(),
    }
}

/// The label of a setting that some named levels vary and others leave alone.
fn unsaid(what: &What) -> &'static str {
    match what {
        What::Key(Key::State) => "clean",
        _ => "default",
    }
}

impl<'d> Words<'d> {
    pub(super) fn new(
        problems: &Problems,
        factors: &[DraftFactor],
        fixed: &[Bound],
        only: &'d [Selection],
        exclude: &'d [Selection],
    ) -> Self {
        let mut levels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut settings: Vec<(String, What)> = Vec::new();
        for factor in factors {
            let labels = factor.levels.iter().map(|l| l.label.value.clone());
            levels.insert(factor.name.value.clone(), labels.collect());
        }
        for factor in factors.iter().filter(|f| f.named) {
            for bound in factor.levels.iter().flat_map(|l| &l.bounds) {
                let name = full_name(bound);
                if factors.iter().any(|f| f.name.value == name) {
                    continue;
                }
                if !settings.iter().any(|(_, what)| *what == bound.what) {
                    settings.push((name.clone(), bound.what.clone()));
                    let same = fixed.iter().filter(|b| b.what == bound.what);
                    levels
                        .entry(name.clone())
                        .or_default()
                        .extend(same.map(|b| b.label.clone()));
                }
                let known = levels.entry(name).or_default();
                if !known.contains(&bound.label) {
                    known.push(bound.label.clone());
                }
            }
            for (name, what) in &settings {
                let sets = |l: &Level| l.bounds.iter().any(|b| b.what == *what);
                let given = fixed.iter().any(|b| b.what == *what);
                let known = levels.entry(name.clone()).or_default();
                let unsaid = unsaid(what).to_owned();
                let some = factor.levels.iter().any(sets) && !factor.levels.iter().all(sets);
                if !given && some && !known.contains(&unsaid) {
                    known.push(unsaid);
                }
            }
        }
        let rules = |all: &'d [Selection], words: &Self| {
            let sound = all.iter().filter(|s| words.knows(problems, s));
            let rule = |selection| Rule {
                selection,
                matched: Flag::new(false),
            };
            sound.map(rule).collect::<Vec<_>>()
        };
        let mut words = Self {
            settings,
            levels,
            only: Vec::new(),
            exclude: Vec::new(),
        };
        words.only = rules(only, &words);
        words.exclude = rules(exclude, &words);
        words
    }

    /// Whether all names and levels of a choice exist; told when not.
    fn knows(&self, problems: &Problems, selection: &Selection) -> bool {
        let mut whole = true;
        for (name, any) in &selection.levels {
            let Some(levels) = self.levels.get(&name.value) else {
                let known = self.levels.keys().map(String::as_str);
                problems.unknown(&name.at, "factor", &name.value, known);
                whole = false;
                continue;
            };
            for label in any {
                if !levels.contains(&label.value) {
                    let place = format!("of '{}'", shown(&name.value));
                    let known = levels.iter().map(String::as_str);
                    problems.unknown_of(&label.at, "level", &label.value, &place, known);
                    whole = false;
                }
            }
        }
        whole
    }

    /// The level of every name in one combination.
    pub(super) fn of_cell(
        &self,
        factors: &[DraftFactor],
        levels: &[&Level],
        view: &View<'_>,
    ) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = factors
            .iter()
            .zip(levels)
            .map(|(factor, level)| (factor.name.value.clone(), level.label.value.clone()))
            .collect();
        for (name, what) in &self.settings {
            let label = view.label(what).unwrap_or(unsaid(what));
            all.insert(name.clone(), label.to_owned());
        }
        all
    }

    /// Whether a combination is a cell: one of `only` if there are any, and none of `exclude`.
    pub(super) fn keeps(&self, levels: &BTreeMap<String, String>) -> bool {
        let hit = |rules: &[Rule<'_>]| {
            let mut any = false;
            for rule in rules {
                if matches(rule.selection, levels) {
                    rule.matched.set(true);
                    any = true;
                }
            }
            any
        };
        let excluded = hit(&self.exclude);
        (self.only.is_empty() || hit(&self.only)) && !excluded
    }

    /// Tells of entries of `only` and `exclude` that no combination is.
    pub(super) fn tell_unmatched(&self, problems: &Problems) {
        for (key, rules) in [("only", &self.only), ("exclude", &self.exclude)] {
            for rule in rules.iter().filter(|r| !r.matched.get()) {
                let message = format!("[[{key}]] matches no combination of levels");
                let help = "drop it, or mend its levels";
                problems.wrong(&rule.selection.at, message, help);
            }
        }
    }

    /// What cells are compared with; told when it is none of them.
    pub(super) fn baseline(
        &self,
        problems: &Problems,
        choice: &CellChoice,
        cells: &[Combination<'_>],
    ) -> Option<Baseline> {
        match choice {
            CellChoice::Label(label) => {
                let found = cells.iter().any(|c| c.label == label.value);
                if !found {
                    let message = format!("the baseline '{}' is no cell", shown(&label.value));
                    let problem = Diagnostic::new(label.at.clone(), message);
                    problems.push(problem.help(which(&label.value, cells)));
                }
                found.then(|| Baseline::Cell(label.value.clone()))
            }
            CellChoice::Levels(selection) => {
                if !self.knows(problems, selection) {
                    return None;
                }
                let mut levels = BTreeMap::new();
                for (name, any) in &selection.levels {
                    let [one] = any.as_slice() else {
                        let message =
                            format!("the baseline has several levels of '{}'", name.value);
                        problems.wrong(&name.at, message, "name one");
                        return None;
                    };
                    levels.insert(name.value.clone(), one.value.clone());
                }
                if !cells.iter().any(|c| matches(selection, &c.levels)) {
                    let message = "the baseline matches no cell";
                    let help = "the combination is left out by [[only]] or [[exclude]]";
                    problems.wrong(&selection.at, message, help);
                    return None;
                }
                Some(Baseline::Levels(levels))
            }
        }
    }

    /// The one cell that is meant; told when there is none or more.
    pub(super) fn one(
        &self,
        problems: &Problems,
        choice: &CellChoice,
        cells: &[Combination<'_>],
    ) -> Option<String> {
        match choice {
            CellChoice::Label(label) => {
                let found = cells.iter().find(|c| c.label == label.value);
                if found.is_none() {
                    let message = format!("'{}' is no cell", shown(&label.value));
                    let problem = Diagnostic::new(label.at.clone(), message);
                    problems.push(problem.help(which(&label.value, cells)));
                }
                found.map(|c| c.label.clone())
            }
            CellChoice::Levels(selection) => {
                if !self.knows(problems, selection) {
                    return None;
                }
                let found = cells.iter().filter(|c| matches(selection, &c.levels));
                let found: Vec<&Combination<'_>> = found.collect();
                let [one] = found.as_slice() else {
                    let message = format!("this matches {}, not one", count(found.len(), "cell"));
                    let help = "name more levels, or the cell's label";
                    problems.wrong(&selection.at, message, help);
                    return None;
                };
                Some(one.label.clone())
            }
        }
    }

    /// Whether a name is varied with at least two levels; told when not.
    pub(super) fn factor(&self, problems: &Problems, name: &crate::read::tree::At<String>) -> bool {
        let known = self.levels.keys().map(String::as_str);
        problems.reference(name, "factor", known)
    }
}

/// The nearest label, and which there are.
fn which(typed: &str, cells: &[Combination<'_>]) -> String {
    let labels = cells.iter().map(|c| c.label.as_str());
    let meant = nearest(typed, labels.clone());
    let meant = meant.map_or_else(String::new, |label| format!("did you mean '{label}'? "));
    let shown: Vec<String> = labels.map(|label| format!("'{label}'")).collect();
    let few = shown.iter().map(String::as_str);
    format!("{meant}the cells are {}", list(few))
}

fn matches(selection: &Selection, levels: &BTreeMap<String, String>) -> bool {
    selection.levels.iter().all(|(name, any)| {
        let level = levels.get(&name.value);
        level.is_some_and(|level| any.iter().any(|wanted| wanted.value == *level))
    })
}
