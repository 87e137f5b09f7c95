//! Model files: disks as data, with the source of every value.
//!
//! A file is TOML. A value is written `{ value = 5400, source = "S: title of the manual" }`, or plainly
//! in a table that has a `source` for all of its values. A source begins with a [`Mark`] that says how
//! far it can be trusted. What a file leaves out is derived or assumed, and listed with the other
//! [`Fact`]s, so that nothing a prediction rests on is hidden.
pub mod controller;
pub mod cpu;
pub mod datasheet;
mod derive;
mod duplex;
mod error;
mod hdd;
mod reader;
mod ssd;

pub use duplex::full_duplex;
pub use error::{ModelError, Problem, UnknownModel};
pub use reader::{Fact, Mark};

use crate::disk::DiskModel;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::{Known, KnownDisk};
use reader::{Reader, Table};
use toml::de::DeTable;

/// A disk of the catalogue or of a file.
#[derive(Clone, Debug)]
pub struct Model {
    /// What disks are made of.
    pub disk: DiskModel,
    /// One line on what it is.
    pub description: String,
    /// Every value with its source: those of the file in its order, then what was derived or assumed.
    pub facts: Vec<Fact>,
}

macro_rules! models {
    ($($name:literal),* $(,)?) => {
        /// The models that come with the program: name and text of the file.
        pub const MODELS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../models/", $name, ".toml")))),*
        ];
    };
}

models!(
    "ST340015A",
    "ST3250624AS",
    "ST3160812AS",
    "ST3000DM001",
    "u160-10k-2002",
    "ST336706LW",
    "ST336752LW",
    "MAN3367MP",
    "KW036",
    "HP-C3323A",
    "nearline-24tb",
    "sata-ssd",
    "nvme-ssd",
);

/// Reads a model file; `file` is how messages name it.
///
/// # Errors
/// All that is wrong with it, each with its line and what to do.
pub fn parse(file: &str, text: &str) -> Result<Model, ModelError> {
    let reader = Reader::new(file, text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        for error in syntax {
            reader.report(&error.span().unwrap_or_default(), error.message());
        }
        return reader.finish(None::<(DiskModel, String)>).map(model);
    }
    let root = Table::root(&reader, document.get_ref());
    let name = root.text("name").unwrap_or_default();
    let description = root.text("description").unwrap_or_default();
    let disk = match root.choice("kind", &["hdd", "ssd"]) {
        Some("ssd") => ssd::lower(&root, name),
        Some(_) => hdd::lower(&root, name),
        None => return reader.finish(None).map(model),
    };
    root.deny_unknown();
    drop(root);
    reader
        .finish(disk.map(|disk| (disk, description)))
        .map(model)
}

fn model(((disk, description), facts): ((DiskModel, String), Vec<Fact>)) -> Model {
    Model {
        disk,
        description,
        facts,
    }
}

/// A model that comes with the program, by its name in any case.
///
/// # Errors
/// When there is none of that name; the message lists those there are.
pub fn find(name: &str) -> Result<Model, UnknownModel> {
    let found = MODELS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    let unknown = || UnknownModel {
        name: name.to_owned(),
    };
    let (known, text) = found.ok_or_else(unknown)?;
    // The files of the catalogue are checked by a test.
    parse(known, text).map_err(|_| unknown())
}

/// What an experiment may name: the disks and controllers that come with the program. Nothing is known of how a disk is
/// connected, of studies, and of files.
#[must_use]
pub fn known() -> Known<'static> {
    let disks = MODELS.iter().map(|(name, text)| KnownDisk {
        name,
        capacity: parse(name, text)
            .ok()
            .map(|model| Bytes(model.disk.sectors() * SECTOR)),
        link: None,
    });
    Known {
        disks: disks.collect(),
        controllers: controller::MODELS.iter().map(|(name, _)| *name).collect(),
        ..Known::default()
    }
}

#[cfg(test)]
mod tests;
