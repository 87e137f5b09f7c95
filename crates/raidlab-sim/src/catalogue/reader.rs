//! Reading TOML with the place and the source of every value, collecting all that is wrong.
mod bounds;
mod table;

pub(super) use table::Table;

use super::error::{ModelError, Problem};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// How far a value can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Measured on the drive (`M`).
    Measured,
    /// In a published source that was read (`S`).
    Source,
    /// From a datasheet that was not read again (`K`).
    Known,
    /// The same, but remembered with doubt (`K-low`).
    KnownLow,
    /// By arithmetic from other values (`D`).
    Derived,
    /// Chosen so that published rows come out (`fitted`).
    Fitted,
    /// A usual value for drives of the kind (`assumed`).
    Assumed,
}

impl Mark {
    const ALL: [(&'static str, Self); 7] = [
        ("M", Self::Measured),
        ("S", Self::Source),
        ("K-low", Self::KnownLow),
        ("K", Self::Known),
        ("D", Self::Derived),
        ("fitted", Self::Fitted),
        ("assumed", Self::Assumed),
    ];

    /// The mark that a source begins with, and what follows it.
    fn split(source: &str) -> Option<(Self, &str)> {
        let (head, rest) = source.split_once(':').unwrap_or((source, ""));
        let (_, mark) = Self::ALL.iter().find(|(name, _)| *name == head.trim())?;
        Some((*mark, rest.trim()))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, mark)| mark == self);
        f.pad(found.map_or("", |(name, _)| name))
    }
}

/// A value of a model with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Where it stands: `seek.average_ms`.
    pub key: String,
    /// The value in words.
    pub value: String,
    /// How far it can be trusted.
    pub mark: Mark,
    /// Where it is from.
    pub source: String,
}

#[derive(Default)]
struct Notes {
    problems: Vec<Problem>,
    facts: Vec<(usize, Fact)>,
    spans: BTreeMap<String, Range<usize>>,
}

/// Collects what is wrong and what is known while a file is lowered.
pub(super) struct Reader<'s> {
    file: &'s str,
    text: &'s str,
    notes: RefCell<Notes>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(file: &'s str, text: &'s str) -> Self {
        Self {
            file,
            text,
            notes: RefCell::default(),
        }
    }

    pub(super) fn report(&self, at: &Range<usize>, message: impl Into<String>) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        self.notes.borrow_mut().problems.push(Problem {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            span: (at.start, at.end),
            message: message.into(),
        });
    }

    /// Reports at the value of `path`, or at the closest table above it that the file has.
    pub(super) fn report_at(&self, path: &str, message: impl Into<String>) {
        let mut path = path;
        let span = loop {
            if let Some(span) = self.notes.borrow().spans.get(path) {
                break span.clone();
            }
            match path.rfind('.') {
                Some(dot) => path = &path[..dot],
                None => break 0..0,
            }
        };
        self.report(&span, message);
    }

    /// Whether the file gives the value of `path`, and nothing was said against it so far.
    pub(super) fn is_unchallenged(&self, path: &str) -> bool {
        let notes = self.notes.borrow();
        notes.spans.get(path).is_some_and(|span| {
            let of_it = |problem: &Problem| problem.span == (span.start, span.end);
            !notes.problems.iter().any(of_it)
        })
    }

    /// Books a value that the file does not give.
    pub(super) fn conclude(
        &self,
        key: &str,
        value: impl Into<String>,
        mark: Mark,
        source: impl Into<String>,
    ) {
        let fact = Fact {
            key: key.to_owned(),
            value: value.into(),
            mark,
            source: source.into(),
        };
        self.notes.borrow_mut().facts.push((usize::MAX, fact));
    }

    /// The model when nothing was wrong, with its facts.
    pub(super) fn finish<T>(self, model: Option<T>) -> Result<(T, Vec<Fact>), ModelError> {
        let Notes {
            mut problems,
            mut facts,
            ..
        } = self.notes.into_inner();
        if let Some(model) = model.filter(|_| problems.is_empty()) {
            facts.sort_by_key(|(at, _)| *at);
            return Ok((model, facts.into_iter().map(|(_, fact)| fact).collect()));
        }
        if problems.is_empty() {
            // Each path to no model has said why; this is for one that was overlooked.
            problems.push(Problem {
                line: 1,
                column: 1,
                span: (0, 0),
                message: "the file does not describe a model".to_owned(),
            });
        }
        problems.sort_by_key(|p| (p.line, p.column));
        problems.dedup();
        Err(ModelError {
            file: self.file.to_owned(),
            problems,
        })
    }
}
