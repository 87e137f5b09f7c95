//! Reading a study's TOML with the place of every value, so that all that is wrong with a file is
//! reported at once and with its line.
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing wrong with a study's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What can be wrong with a study's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// Not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that every study or row must have.
    #[error("'{0}' is missing")]
    Missing(String),
    /// A value of another type.
    #[error("'{key}' is of type {found}, but {expected} is needed")]
    WrongType {
        /// The key.
        key: String,
        /// What is needed.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A key that nothing reads: most often a slip of the pen.
    #[error("'{0}' is not known here")]
    Unknown(String),
    /// A value of the right type that cannot be.
    #[error("'{key}': {why}")]
    Invalid {
        /// The key.
        key: String,
        /// Why it cannot be.
        why: String,
    },
}

/// All that is wrong with one study's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyError {
    /// The file.
    pub file: String,
    /// In the order of the file, at least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Problem { line, column, kind } = problem;
            write!(f, "{}:{line}:{column}: {kind}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for StudyError {}

/// Collects what is wrong while a file is lowered.
pub(super) struct Reader<'s> {
    file: &'s str,
    text: &'s str,
    problems: RefCell<Vec<Problem>>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(file: &'s str, text: &'s str) -> Self {
        Self {
            file,
            text,
            problems: RefCell::default(),
        }
    }

    pub(super) fn report(&self, at: &Range<usize>, kind: ProblemKind) {
        // A span may end inside a character when the file is cut; count from what is whole.
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        self.problems
            .borrow_mut()
            .push(Problem { line, column, kind });
    }

    pub(super) fn invalid(&self, at: &Range<usize>, key: &str, why: impl Into<String>) {
        let (key, why) = (key.to_owned(), why.into());
        self.report(at, ProblemKind::Invalid { key, why });
    }

    /// `value` when nothing was wrong.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, StudyError> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|p| (p.line, p.column));
        match value {
            Some(value) if problems.is_empty() => Ok(value),
            _ => Err(StudyError {
                file: self.file.to_owned(),
                problems,
            }),
        }
    }
}

/// One table of the file; remembers which keys were read.
pub(super) struct Node<'r, 'i> {
    reader: &'r Reader<'r>,
    table: &'r DeTable<'i>,
    pub(super) at: Range<usize>,
    used: RefCell<BTreeSet<String>>,
}

type Entry<'r, 'i> = &'r Spanned<DeValue<'i>>;

impl<'r, 'i> Node<'r, 'i> {
    pub(super) fn new(reader: &'r Reader<'r>, table: &'r DeTable<'i>, at: Range<usize>) -> Self {
        Self {
            reader,
            table,
            at,
            used: RefCell::default(),
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<Entry<'r, 'i>> {
        self.used.borrow_mut().insert(key.to_owned());
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn wrong<T>(&self, key: &str, expected: &'static str, entry: Entry<'_, '_>) -> Option<T> {
        let kind = ProblemKind::WrongType {
            key: key.to_owned(),
            expected,
            found: entry.get_ref().type_str(),
        };
        self.reader.report(&entry.span(), kind);
        None
    }

    pub(super) fn needed<T>(&self, key: &str, value: Option<T>) -> Option<T> {
        if !self.has(key) {
            self.reader
                .report(&self.at, ProblemKind::Missing(key.to_owned()));
        }
        value
    }

    pub(super) fn string(&self, key: &str) -> Option<String> {
        let entry = self.entry(key)?;
        match entry.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Datetime(date) => Some(date.to_string()),
            _ => self.wrong(key, "a string", entry),
        }
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let entry = self.entry(key)?;
        self.number_of(key, entry)
    }

    /// A finite number that is not negative.
    pub(super) fn number_of(&self, key: &str, entry: Entry<'_, '_>) -> Option<f64> {
        let text = match entry.get_ref() {
            DeValue::Integer(n) => n.as_str(),
            DeValue::Float(n) => n.as_str(),
            _ => return self.wrong(key, "a number", entry),
        };
        match text.parse::<f64>() {
            Ok(n) if n.is_finite() && n >= 0.0 => Some(n),
            _ => {
                let why = format!("{text} is not a figure of a measurement");
                self.reader.invalid(&entry.span(), key, why);
                None
            }
        }
    }

    pub(super) fn count(&self, key: &str) -> Option<u32> {
        let entry = self.entry(key)?;
        self.count_of(key, entry)
    }

    pub(super) fn count_of(&self, key: &str, entry: Entry<'_, '_>) -> Option<u32> {
        match entry.get_ref() {
            DeValue::Integer(n) => n
                .as_str()
                .parse()
                .ok()
                .or_else(|| self.wrong(key, "a count", entry)),
            _ => self.wrong(key, "a count", entry),
        }
    }

    pub(super) fn items(&self, key: &str) -> Option<Vec<Entry<'r, 'i>>> {
        let entry = self.entry(key)?;
        match entry.get_ref() {
            DeValue::Array(items) => Some(items.iter().collect()),
            _ => self.wrong(key, "a list", entry),
        }
    }

    /// A list of strings; one string counts as a list of one.
    pub(super) fn strings(&self, key: &str) -> Vec<String> {
        if let Some(DeValue::String(text)) = self.entry(key).map(Spanned::get_ref) {
            return vec![text.to_string()];
        }
        let items = self.items(key).unwrap_or_default();
        items
            .into_iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => self.wrong(key, "a string", item),
            })
            .collect()
    }

    pub(super) fn table(&self, key: &str) -> Option<Node<'r, 'i>> {
        let entry = self.entry(key)?;
        match entry.get_ref() {
            DeValue::Table(table) => Some(Node::new(self.reader, table, entry.span())),
            _ => self.wrong(key, "a table", entry),
        }
    }

    pub(super) fn tables(&self, key: &str) -> Vec<Node<'r, 'i>> {
        let items = self.items(key).unwrap_or_default();
        items
            .into_iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::Table(table) => Some(Node::new(self.reader, table, item.span())),
                _ => self.wrong(key, "a table", item),
            })
            .collect()
    }

    /// The keys in the order of the file.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        keys.iter().map(|key| key.get_ref().to_string()).collect()
    }

    /// A value of any shape in words: `model PERC3/Di, cache 128MiB`.
    pub(super) fn words(&self, key: &str) -> Option<String> {
        self.entry(key).map(|entry| words(entry.get_ref()))
    }

    /// Reports the keys that nothing has read.
    pub(super) fn deny_unknown(&self) {
        let used = self.used.borrow();
        for key in self.table.keys() {
            if !used.contains(key.get_ref().as_ref()) {
                let kind = ProblemKind::Unknown(key.get_ref().to_string());
                self.reader.report(&key.span(), kind);
            }
        }
    }
}

fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(n) => n.as_str().to_owned(),
        DeValue::Float(n) => n.as_str().to_owned(),
        DeValue::Boolean(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let all: Vec<_> = items.iter().map(|item| words(item.get_ref())).collect();
            all.join(", ")
        }
        DeValue::Table(table) => {
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_by_key(|(key, _)| key.span().start);
            let all: Vec<_> = keys
                .iter()
                .map(|(key, value)| {
                    format!(
                        "{} {}",
                        key.get_ref().replace('_', " "),
                        words(value.get_ref())
                    )
                })
                .collect();
            all.join(", ")
        }
    }
}
