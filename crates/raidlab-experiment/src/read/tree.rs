//! Tables of the file with the place of every key, and which keys were asked for.
use super::key::Key;
use crate::diagnostic::{Diagnostic, Problems};
use raidlab_core::suggest::{list, named_here, nearest};
use raidlab_core::words::steers;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value in the file.
pub(crate) type Entry<'a, 'i> = &'a Spanned<DeValue<'i>>;

/// Something read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) at: Range<usize>,
}

impl<T> At<T> {
    pub(crate) fn new(value: T, at: Range<usize>) -> Self {
        Self { value, at }
    }
}

/// One table.
pub(crate) struct Node<'a, 'i> {
    pub(crate) problems: &'a Problems,
    table: &'a DeTable<'i>,
    /// Its key or header.
    pub(crate) at: Range<usize>,
    /// What a sentence calls it: `[design]`.
    name: String,
    asked: RefCell<BTreeSet<String>>,
    /// The file could not be read whole: what is missing may be in the rest.
    pub(crate) whole: bool,
}

/// A key of a table with its place, and its value.
pub(crate) type Pair<'a, 'i> = (At<String>, Entry<'a, 'i>);

impl<'a, 'i> Node<'a, 'i> {
    pub(crate) fn new(
        problems: &'a Problems,
        table: &'a DeTable<'i>,
        at: Range<usize>,
        name: impl Into<String>,
        whole: bool,
    ) -> Self {
        Self {
            problems,
            table,
            at,
            name: name.into(),
            asked: RefCell::default(),
            whole,
        }
    }

    /// The value of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<Entry<'a, 'i>> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where a key stands; the table when it has none.
    pub(crate) fn key_at(&self, key: &str) -> Range<usize> {
        let found = self.table.get_key_value(key);
        found.map_or_else(|| self.at.clone(), |(k, _)| k.span())
    }

    /// All keys and values in the order of the file. They count as asked for.
    pub(crate) fn pairs(&self) -> Vec<Pair<'a, 'i>> {
        let mut pairs: Vec<Pair<'a, 'i>> = self
            .table
            .iter()
            .map(|(key, value)| (At::new(key.get_ref().to_string(), key.span()), value))
            .collect();
        pairs.sort_by_key(|(key, _)| key.at.start);
        let mut asked = self.asked.borrow_mut();
        asked.extend(pairs.iter().map(|(key, _)| key.value.clone()));
        pairs
    }

    /// A table in it.
    pub(crate) fn node(&self, key: &str) -> Option<Node<'a, 'i>> {
        let entry = self.entry(key)?;
        let Some(table) = entry.get_ref().as_table() else {
            let help = match (key, entry.get_ref()) {
                ("disks", DeValue::String(model)) => format!(
                    "write {{ model = \"{}\", count = 4 }}, or a section [disks]",
                    shown(model)
                ),
                _ => format!("write a section [{key}]"),
            };
            self.problems.of_type(key, "a table", entry, &help);
            return None;
        };
        Some(self.child(key, table, self.key_at(key)))
    }

    /// The tables of an array of tables; one table counts as an array of one.
    pub(crate) fn nodes(&self, key: &str) -> Vec<Node<'a, 'i>> {
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        let items: Vec<Entry<'a, 'i>> = match entry.get_ref() {
            DeValue::Table(_) => vec![entry],
            DeValue::Array(items) => items.iter().collect(),
            _ => {
                let help = format!("write one or more sections [[{key}]]");
                self.problems.of_type(key, "tables", entry, &help);
                return Vec::new();
            }
        };
        let mut nodes = Vec::new();
        for item in items {
            match item.get_ref().as_table() {
                Some(table) => nodes.push(self.child(key, table, item.span())),
                None => {
                    let help = format!("write one or more sections [[{key}]]");
                    self.problems.of_type(key, "a table", item, &help);
                }
            }
        }
        nodes
    }

    /// A table that stands in this one.
    pub(crate) fn child(
        &self,
        name: &str,
        table: &'a DeTable<'i>,
        at: Range<usize>,
    ) -> Node<'a, 'i> {
        Node::new(self.problems, table, at, format!("[{name}]"), self.whole)
    }

    /// Tells that a key is missing, unless the file was read in part.
    pub(crate) fn missing(&self, key: &str, help: &str) {
        let misspelt = |name: &str| nearest(name, [key]).is_some();
        let keys = self.table.keys();
        if self.whole && !self.has(key) && !keys.into_iter().any(|k| misspelt(k.get_ref())) {
            let message = format!("{} has no '{key}'", self.name);
            self.problems.wrong(&self.at, message, help);
        }
    }

    /// Tells of every key that nothing asked for, with the nearest one that something did.
    pub(crate) fn close(&self) {
        let asked = self.asked.borrow();
        for (key, _) in self.table {
            let name: &str = key.get_ref();
            if !asked.contains(name) {
                let known = asked.iter().map(String::as_str);
                let place = format!("in {}", self.name);
                match home_of(name).filter(|(home, _)| *home != self.name) {
                    Some((home, spelt)) => {
                        self.problems.not_known(name);
                        let message = format!(
                            "unknown key '{}' {place}: '{spelt}' belongs in {home}",
                            shown(name)
                        );
                        let help = format!("known: {}", list(known));
                        self.problems.wrong(&key.span(), message, &help);
                    }
                    None => self
                        .problems
                        .unknown_of(&key.span(), "key", name, &place, known),
                }
            }
        }
    }
}

impl Problems {
    /// A word that is none of the known ones.
    pub(crate) fn unknown<'k>(
        &self,
        at: &Range<usize>,
        what: &str,
        typed: &str,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) {
        self.unknown_of(at, what, typed, "", known);
    }

    /// The same, with what may be written in place of a known one.
    pub(crate) fn unknown_or<'k>(
        &self,
        at: &Range<usize>,
        what: &str,
        typed: &str,
        known: impl IntoIterator<Item = &'k str> + Clone,
        or: &str,
    ) {
        self.not_known(typed);
        let all = list(known.clone());
        let problem = unknown(at, what, typed, "", known);
        self.push(match all.is_empty() {
            true => problem.help("none is declared"),
            false => problem.help(format!("known: {all}; {or}")),
        });
    }

    /// The same, with a phrase that says where it is unknown.
    pub(crate) fn unknown_of<'k>(
        &self,
        at: &Range<usize>,
        what: &str,
        typed: &str,
        place: &str,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) {
        self.not_known(typed);
        let place = match place {
            "" => String::new(),
            place => format!(" {place}"),
        };
        let all = list(known.clone());
        let problem = unknown(at, what, typed, &place, known);
        self.push(match all.is_empty() {
            true => problem.help("none is declared"),
            false => problem.help(format!("known: {all}")),
        });
    }

    /// A value of another type.
    pub(crate) fn of_type(&self, key: &str, wanted: &str, entry: Entry<'_, '_>, help: &str) {
        let found = type_name(entry.get_ref());
        let message = format!("'{}' is {wanted}, not {found}", shown(key));
        self.push(Diagnostic::new(entry.span(), message).help(help));
    }
}

fn unknown<'k>(
    at: &Range<usize>,
    what: &str,
    typed: &str,
    place: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Diagnostic {
    let meant =
        nearest(typed, known).map_or_else(String::new, |name| format!(": did you mean '{name}'?"));
    let message = format!("unknown {what} '{}'{place}{meant}", shown(typed));
    Diagnostic::new(at.clone(), message)
}

/// What the language calls the type of a value.
const fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "a yes or no",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Where keys stand that are looked for elsewhere at times, beside those of [`Key`].
const HOMES: [(&str, &[&str]); 3] = [
    (
        "the file, before its first section",
        &["disks", "filesystem", "profile", "question", "title"],
    ),
    (
        "[design]",
        &[
            "aggregate",
            "baseline",
            "margin",
            "order",
            "repeats",
            "seed",
            "trim",
            "verify",
        ],
    ),
    ("[report]", &["charts", "tables"]),
];

/// Where a key belongs that is written with hyphens or without, or as other tools call it, and how it is spelt there.
fn home_of(key: &str) -> Option<(String, &'static str)> {
    let here = named_here(key).iter().copied();
    std::iter::once(key).chain(here).find_map(home_of_name)
}

fn home_of_name(key: &str) -> Option<(String, &'static str)> {
    let bare = |text: &str| text.replace(['-', '_'], "");
    // Names that a section shares with others, such as `kind`, say nothing.
    let own = Key::ALL.iter().filter(|key| key.name() == key.short());
    let own = own.map(|key| (format!("[{}]", key.section()), key.short()));
    let others = HOMES
        .iter()
        .flat_map(|(home, keys)| keys.iter().map(|k| ((*home).to_owned(), *k)));
    own.chain(others)
        .find(|(_, known)| bare(known) == bare(key))
}

/// What a user wrote, short enough and printable for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(60)
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}
