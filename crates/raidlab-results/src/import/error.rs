//! What an importer says when it refuses a file, and what it says beside what it took.
use std::fmt;

/// Why nothing of a file was imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {found}; expected {expected}. {remedy}")]
pub struct ImportError {
    /// The file, as [`Source`](super::Source) names it.
    pub file: String,
    /// Line of the trouble, from 1.
    pub line: usize,
    /// Column of the trouble in characters, from 1.
    pub column: usize,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
    /// What to do about it.
    pub remedy: String,
}

/// Something to know about what was imported: a defect of the tool that was worked around, a line
/// that was left out, a precision that is less than it looks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The line it is about, from 1; `None` when it is about the whole file.
    pub line: Option<usize>,
    /// The remark.
    pub text: String,
}

impl Remark {
    pub(super) fn on(line: usize, text: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            text: text.into(),
        }
    }

    pub(super) fn general(text: impl Into<String>) -> Self {
        Self {
            line: None,
            text: text.into(),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// An [`ImportError`] before the file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) found: String,
    pub(super) expected: String,
    pub(super) remedy: String,
}

/// The usual remedy: nothing can be done about a damaged file but to make it again.
pub(super) const SAVE_AGAIN: &str =
    "Save the tool's whole output again, or remove the damaged part";

impl Fault {
    pub(super) fn at(line: usize, column: usize, found: impl Into<String>) -> Self {
        Self {
            line,
            column,
            found: found.into(),
            expected: "the tool's own output".to_owned(),
            remedy: SAVE_AGAIN.to_owned(),
        }
    }

    pub(super) fn expected(mut self, what: impl Into<String>) -> Self {
        self.expected = what.into();
        self
    }

    pub(super) fn remedy(mut self, what: impl Into<String>) -> Self {
        self.remedy = what.into();
        self
    }

    pub(super) fn in_file(self, file: &str) -> ImportError {
        ImportError {
            file: file.to_owned(),
            line: self.line,
            column: self.column,
            found: self.found,
            expected: self.expected,
            remedy: self.remedy,
        }
    }
}
