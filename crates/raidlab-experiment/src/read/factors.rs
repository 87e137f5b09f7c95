//! `[factors]`: what is varied; `[[only]]` and `[[exclude]]`: which combinations.
use super::key::Key;
use super::setting::{Bound, What, bound, of_profile, one_choice, own_setting, profile_name};
use super::tree::{At, Entry, Node, shown};
use super::value::label;
use crate::diagnostic::{Diagnostic, Problems};
use std::ops::Range;
use toml::de::DeValue;

/// What is varied.
#[derive(Clone, Debug)]
pub(crate) struct DraftFactor {
    pub(crate) name: At<String>,
    pub(crate) levels: Vec<Level>,
    /// Its levels have names of their own and set several things each.
    pub(crate) named: bool,
}

/// One level of a factor.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) label: At<String>,
    pub(crate) bounds: Vec<Bound>,
}

/// Levels that a combination must have to be meant.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) at: Range<usize>,
    /// Name, and the labels any of which will do.
    pub(crate) levels: Vec<(At<String>, Vec<At<String>>)>,
}

/// The most levels of one factor.
const MOST_LEVELS: usize = 1000;

pub(crate) fn read(root: &Node<'_, '_>) -> Vec<DraftFactor> {
    let Some(node) = root.node("factors") else {
        return Vec::new();
    };
    let mut factors = Vec::new();
    for (name, entry) in node.pairs() {
        match entry.get_ref() {
            DeValue::Array(items) => {
                let items: Vec<Entry<'_, '_>> = items.iter().collect();
                factors.extend(factor(&node, &name, &items, entry));
            }
            DeValue::Table(table) if profile_name(&name.value).is_some() => {
                let path = format!("factors.{}", name.value);
                let child = node.child(&path, table, name.at.clone());
                factors.extend(of_one_profile(&child, &name));
            }
            _ => {
                let help = format!(
                    "write {0} = [\"…\", \"…\"]; a value that is not varied stands in its own section",
                    shown(&name.value)
                );
                let wanted = "a list of levels";
                root.problems.of_type(&name.value, wanted, entry, &help);
            }
        }
    }
    set_once(root.problems, &factors);
    factors
}

/// `bonnie.seeks = [...]`: settings of one profile by its own names.
fn of_one_profile(node: &Node<'_, '_>, profile: &At<String>) -> Vec<DraftFactor> {
    let scope = profile_name(&profile.value);
    let mut factors = Vec::new();
    for (name, entry) in node.pairs() {
        let DeValue::Array(items) = entry.get_ref() else {
            let help = "write a list: [\"…\", \"…\"]";
            node.problems
                .of_type(&name.value, "a list of levels", entry, help);
            continue;
        };
        let levels = items.iter().filter_map(|item| {
            let bound = own_setting(node.problems, scope, &name, item)?;
            Some(level(bound, item))
        });
        let levels: Vec<Level> = levels.collect();
        let full = format!("{}.{}", profile.value, name.value);
        let name = At::new(full, name.at);
        let whole = levels.len() == items.len();
        factors.extend(checked(node.problems, name, levels, false, entry).filter(|_| whole));
    }
    factors
}

fn level(bound: Bound, item: Entry<'_, '_>) -> Level {
    Level {
        label: At::new(bound.label.clone(), item.span()),
        bounds: vec![bound],
    }
}

fn factor(
    node: &Node<'_, '_>,
    name: &At<String>,
    items: &[Entry<'_, '_>],
    entry: Entry<'_, '_>,
) -> Option<DraftFactor> {
    let problems = node.problems;
    let named = !items.is_empty() && items.iter().all(|i| i.get_ref().is_table());
    let mut levels = Vec::new();
    for item in items.iter().take(MOST_LEVELS + 1) {
        match item.get_ref() {
            DeValue::Table(table) if named => {
                let path = format!("factors.{}", name.value);
                levels.extend(named_level(&node.child(&path, table, item.span())));
            }
            DeValue::Table(_) => {
                let help = "give every level a name and settings: { name = \"…\", … }";
                let message = format!("'{}' mixes values and named levels", shown(&name.value));
                problems.wrong(&item.span(), message, help);
            }
            _ => levels.push(level(bound(problems, name, item)?, item)),
        }
    }
    checked(problems, name.clone(), levels, named, entry)
}

/// `{ name = "md on two disks", layout = "raid0", members = 2 }`.
fn named_level(node: &Node<'_, '_>) -> Option<Level> {
    let problems = node.problems;
    node.missing("name", "give the level a name: { name = \"…\", … }");
    let label = node.entry("name").and_then(|e| problems.text("name", e));
    let mut bounds = Vec::new();
    for (name, entry) in node.pairs() {
        if name.value == "name" {
            continue;
        }
        match entry.get_ref().as_table() {
            Some(table) => {
                let child = node.child(&name.value, table, name.at.clone());
                bounds.extend(of_profile(&name, &child));
            }
            None => bounds.extend(bound(problems, &name, entry)),
        }
    }
    one_choice(problems, &bounds);
    Some(Level {
        label: label?,
        bounds,
    })
}

/// A factor with at least one level, each once, and not too many.
fn checked(
    problems: &Problems,
    name: At<String>,
    levels: Vec<Level>,
    named: bool,
    entry: Entry<'_, '_>,
) -> Option<DraftFactor> {
    if levels.is_empty() {
        if entry.get_ref().as_array().is_some_and(|a| a.is_empty()) {
            let message = format!("factor '{}' has no levels", shown(&name.value));
            let help = "list at least one, or drop the factor";
            problems.wrong(&entry.span(), message, help);
        }
        return None;
    }
    if levels.len() > MOST_LEVELS {
        let message = format!("factor '{}' has too many levels", shown(&name.value));
        let help = format!("at most {MOST_LEVELS}");
        problems.wrong(&name.at, message, &help);
        return None;
    }
    for (index, level) in levels.iter().enumerate() {
        let earlier = levels[..index]
            .iter()
            .find(|l| l.label.value == level.label.value);
        if let Some(earlier) = earlier {
            let message = format!(
                "level '{}' of '{}' is there twice",
                level.label.value,
                shown(&name.value)
            );
            let problem = Diagnostic::new(level.label.at.clone(), message);
            let problem = problem.also(earlier.label.at.clone(), "first here");
            problems.push(problem.help("drop one of them"));
        }
    }
    Some(DraftFactor {
        name,
        levels,
        named,
    })
}

/// Two factors that set the same thing would overrule one another.
fn set_once(problems: &Problems, factors: &[DraftFactor]) {
    let mut seen: Vec<(What, &At<String>)> = Vec::new();
    for factor in factors {
        let mut own: Vec<(What, &Bound)> = Vec::new();
        for bound in factor.levels.iter().flat_map(|l| &l.bounds) {
            if !own.iter().any(|(what, _)| *what == bound.what) {
                own.push((bound.what.clone(), bound));
            }
        }
        for (what, bound) in own {
            match seen.iter().find(|(known, _)| *known == what) {
                Some((_, other)) => {
                    let message = format!(
                        "'{}' is varied by two factors, '{}' and '{}'",
                        shown(&bound.name),
                        shown(&other.value),
                        shown(&factor.name.value)
                    );
                    let problem = Diagnostic::new(bound.key_at.clone(), message);
                    let problem = problem.also(other.at.clone(), "varied here too");
                    problems.push(problem.help("vary it in one of them"));
                }
                None => seen.push((what, &factor.name)),
            }
        }
    }
}

/// `[[only]]` and `[[exclude]]`.
pub(crate) fn selections(root: &Node<'_, '_>, key: &str) -> Vec<Selection> {
    let nodes = root.nodes(key);
    nodes
        .iter()
        .filter_map(|node| {
            let selection = selection(node);
            if selection.levels.is_empty() {
                let message = format!("[[{key}]] names no levels");
                let help = "name at least one: layout = \"raid1\"";
                root.problems.wrong(&node.at, message, help);
                return None;
            }
            Some(selection)
        })
        .collect()
}

/// Factors with one level each or with several, any of which will do. They are matched by label.
pub(crate) fn selection(node: &Node<'_, '_>) -> Selection {
    let mut levels = Vec::new();
    for (name, entry) in node.pairs() {
        let several = match entry.get_ref() {
            // `channels = [1, 1]` is one level, `chunk = ["4KiB", "8KiB"]` are two.
            DeValue::Array(items) => {
                items
                    .iter()
                    .all(|i| i.get_ref().is_str() || i.get_ref().is_array())
                    || Key::named(&name.value) != Some(Key::Channels)
            }
            _ => false,
        };
        match entry.get_ref() {
            DeValue::Array(items) if several => {
                let any = items.iter().map(|i| At::new(selected(&name, i), i.span()));
                levels.push((name.clone(), any.collect()));
            }
            _ => {
                let one = At::new(selected(&name, entry), entry.span());
                levels.push((name.clone(), vec![one]));
            }
        }
    }
    Selection {
        at: node.at.clone(),
        levels,
    }
}

/// The label that a level written so has. A value that cannot be read keeps its words, and is then
/// told as an unknown level.
fn selected(name: &At<String>, entry: Entry<'_, '_>) -> String {
    if entry.get_ref().is_table() {
        return label(entry.get_ref());
    }
    let silent = Problems::default();
    bound(&silent, name, entry).map_or_else(|| label(entry.get_ref()), |b| b.label)
}
