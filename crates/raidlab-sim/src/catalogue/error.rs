//! What is wrong with a model file.
use super::MODELS;
use raidlab_core::suggest::{meant, nearest};
use std::fmt;

/// One thing wrong with a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte and the byte after the last of what it is about, for underlining.
    pub span: (usize, usize),
    /// What is wrong and what to do.
    pub message: String,
}

/// All that is wrong with a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The file.
    pub file: String,
    /// In the order of the file, at least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Problem {
                line,
                column,
                message,
                ..
            } = problem;
            write!(f, "{}:{line}:{column}: {message}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}

/// A name that no model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    /// As asked for.
    pub name: String,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = MODELS.iter().map(|(name, _)| *name).collect();
        write!(
            f,
            "there is no disk model '{}'{}: write the path of a model file, or one of {}",
            self.name,
            meant(nearest(&self.name, known.iter().copied())),
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownModel {}
