//! The experiment language: from the text of a file to cells and trials, or to everything that is
//! wrong with the text.
//!
//! [`parse`] reads a file and resolves it: all defaults filled, every cell checked. Nothing is read
//! but the text, and what the caller says it knows ([`Known`]). [`expand`] gives the trials of an
//! [`Experiment`] in an order that depends on the seed alone. The language is described in
//! `docs/experiments.md`.
//!
//! | module | holds |
//! |---|---|
//! | [`experiment`], [`setup`], [`hardware`], [`kernel`] | the resolved form, as stored |
//! | [`plan`] | trials in rounds |
//! | [`diagnostic`] | what is wrong, with place and remedy |
//! | [`caution`] | what makes figures doubtful |
//! | `read`, `check` | from text to declarations, from declarations to cells |
#![forbid(unsafe_code)]

pub mod caution;
pub mod diagnostic;
pub mod dirty;
pub mod experiment;
pub mod hardware;
pub mod kernel;
pub mod plan;
pub mod prices;
pub mod setup;

mod check;
mod read;
mod resize;
mod words;

pub use caution::{Caution, Own, cautions};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use experiment::{Cell, Experiment};
pub use plan::{Plan, Trial, expand};

use diagnostic::Problems;
use hardware::Link;
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use toml::de::DeTable;

/// A disk model of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDisk<'k> {
    /// The name that experiments use.
    pub name: &'k str,
    /// Its capacity; layouts are checked against it.
    pub capacity: Option<Bytes>,
    /// Its link; controllers are checked against it.
    pub link: Option<Link>,
}

/// A model file that an experiment names by its path, see [`model_files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile<'k> {
    /// The path as the experiment has it.
    pub path: &'k str,
    /// What it holds, or why it cannot be used.
    pub model: Result<OwnModel<'k>, String>,
}

/// A disk model of the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnModel<'k> {
    /// Under the path as its name.
    pub disk: KnownDisk<'k>,
    /// The text of its file, which becomes part of the experiment.
    pub text: &'k str,
}

/// A file with a controller's model that an experiment names by its path, see [`controller_files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerFile<'k> {
    /// The path as the experiment has it.
    pub path: &'k str,
    /// Its text, which becomes part of the experiment, or why it cannot be used.
    pub text: Result<&'k str, String>,
}

/// A published study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownStudy<'k> {
    /// Its id.
    pub id: &'k str,
    /// The names of its rows.
    pub rows: Vec<&'k str>,
}

/// Tells what is wrong with a model that has other values in it: its name, the text of its file when it is the user's own,
/// and the values.
pub type OverrideCheck = fn(&str, Option<&str>, &hardware::Overrides) -> Result<(), String>;

/// What the caller knows and files refer to by name.
#[derive(Clone, Debug, Default)]
pub struct Known<'k> {
    /// Disk models.
    pub disks: Vec<KnownDisk<'k>>,
    /// The model files that the experiment names.
    pub files: Vec<ModelFile<'k>>,
    /// Controller models.
    pub controllers: Vec<&'k str>,
    /// The files with controllers' models that the experiment names.
    pub controller_files: Vec<ControllerFile<'k>>,
    /// Published studies.
    pub studies: Vec<KnownStudy<'k>>,
    /// Tells of overrides that make no disk; nothing is told without it.
    pub override_check: Option<OverrideCheck>,
}

impl<'k> Known<'k> {
    /// The disk model of that name or path.
    fn disk(&self, name: &str) -> Option<&KnownDisk<'k>> {
        let own = || self.own(name).map(|model| &model.disk);
        self.disks
            .iter()
            .find(|disk| disk.name == name)
            .or_else(own)
    }

    /// The model of the file with that path.
    fn own(&self, path: &str) -> Option<&OwnModel<'k>> {
        let file = self.files.iter().find(|file| file.path == path)?;
        file.model.as_ref().ok()
    }
}

/// The paths of the model files that an experiment names in `[disks]`, as it has them: the values of
/// `model` that look like a path. The caller reads them, relative to the experiment's own file, and
/// gives them in [`Known::files`]. Whatever else is wrong with the text is left to [`parse`].
#[must_use]
pub fn model_files(text: &str) -> Vec<String> {
    let (document, _) = DeTable::parse_recoverable(text);
    read::disks::model_files(document.get_ref())
}

/// The same of controllers: the values of `model` in `[topology.controllers]` that look like a path, which the
/// caller gives in [`Known::controller_files`].
#[must_use]
pub fn controller_files(text: &str) -> Vec<String> {
    let (document, _) = DeTable::parse_recoverable(text);
    read::topology::controller_files(document.get_ref())
}

/// Whether an experiment says how often each cell is to run. Where it does not, the caller may know better
/// than [`parse`] what a trial costs. Whatever else is wrong with the text is left to [`parse`].
#[must_use]
pub fn says_repeats(text: &str) -> bool {
    let (document, _) = DeTable::parse_recoverable(text);
    let design = document.get_ref().get("design");
    design.is_some_and(|design| {
        let table = design.get_ref().as_table();
        table.is_some_and(|table| table.get("repeats").is_some())
    })
}

/// A text with more mistakes of syntax than this is another kind of file.
const MOST_SYNTAX: usize = 8;
/// Of those, so many are told.
const TOLD_SYNTAX: usize = 2;

/// Reads and resolves an experiment. `file` is what diagnostics call it.
///
/// # Errors
/// All that is wrong with the text, never only the first of it: each with its place, the text
/// underlined, and the remedy.
pub fn parse(text: &str, file: &str, known: &Known<'_>) -> Result<Experiment, Diagnostics> {
    let problems = Problems::default();
    let (document, syntax) = DeTable::parse_recoverable(text);
    let place = |error: &toml::de::Error| error.span().unwrap_or(0..0);
    let told = if syntax.len() > MOST_SYNTAX {
        TOLD_SYNTAX
    } else {
        syntax.len()
    };
    for error in &syntax[..told] {
        let what = format!("not TOML: {}", error.message());
        let problem = Diagnostic::new(place(error), what);
        problems.push(match error.message() {
            "duplicate key" if text.get(place(error)) == Some("profile") => problem.help(
                "a name stands once: with a section [profile], what was profile = \"bonnie\" is name = \"bonnie\" in it",
            ),
            "duplicate key" => problem.help("a name stands once in its section: drop one of the two"),
            _ => problem,
        });
    }
    if let Some(next) = syntax.get(told) {
        let more = syntax.len() - told;
        let what = format!(
            "and {} from here on that are not TOML: is this an experiment at all?",
            count(more, "more place")
        );
        problems.push(Diagnostic::new(place(next), what));
        return Err(problems.into_diagnostics(file, text));
    }
    let draft = read::read(&problems, document.get_ref(), known, syntax.is_empty());
    let experiment = draft.and_then(|draft| check::check(&problems, draft, known));
    match experiment {
        Some(experiment) if problems.is_empty() => Ok(experiment),
        _ => Err(problems.into_diagnostics(file, text)),
    }
}

/// All that can be done with a text, for fuzzing: it is read, and either what is wrong is told in both
/// forms, or the experiment is stored, read back and expanded.
///
/// # Panics
/// When one of the promises of this crate does not hold; never for a text as such.
#[doc(hidden)]
pub fn exercise(text: &str, known: &Known<'_>) {
    match parse(text, "fuzz.toml", known) {
        Err(diagnostics) => {
            assert!(!diagnostics.items().is_empty(), "refused without a reason");
            let told = [diagnostics.render(false), diagnostics.render(true)];
            assert!(told.iter().all(|t| !t.is_empty()));
            assert!(!diagnostics.to_string().is_empty());
        }
        Ok(experiment) => {
            let stored = experiment.to_json();
            let read = stored.and_then(|json| Experiment::from_json(&json));
            assert_eq!(read.as_ref(), Ok(&experiment), "the stored form differs");
            let plan = expand(&experiment, experiment.design.seed);
            let trials = experiment.cells.len() * experiment.design.repeats as usize;
            assert_eq!(plan.trials.len(), trials, "trials are lost");
            assert!(!plan.describe().is_empty());
        }
    }
}
