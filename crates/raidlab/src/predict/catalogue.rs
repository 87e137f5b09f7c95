//! What experiments and users refer to by name: disk models, controllers, published studies; and the
//! experiment files themselves.
use super::choose;
use crate::args::DesignArgs;
use crate::commands::reference;
use crate::commands::text::{text, told};
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use crate::talk;
use raidlab_core::suggest::{meant, nearest};
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::experiment::Aggregate;
use raidlab_experiment::hardware::Link;
use raidlab_experiment::{
    ControllerFile, Experiment, Known, KnownDisk, KnownStudy, ModelFile, OwnModel,
    controller_files, model_files, parse,
};
use raidlab_results::reference::Study;
use raidlab_sim::catalogue::{
    self, Fact, MODELS, Model, ModelError, UnknownModel, controller, cpu,
};
use raidlab_sim::machine::overrides;
use std::path::Path;

/// The experiment that carries out a published study: its id and the text of its file.
const STUDIES: [(&str, &str); 5] = [
    (
        "pata-raid0",
        include_str!("../../../../experiments/pata-raid0.toml"),
    ),
    (
        "pata-blocksize",
        include_str!("../../../../experiments/pata-blocksize.toml"),
    ),
    (
        "scsi-hdbench",
        include_str!("../../../../experiments/scsi-hdbench.toml"),
    ),
    (
        "sata-md-levels",
        include_str!("../../../../experiments/sata-md-levels.toml"),
    ),
    (
        "zfs-ashift",
        include_str!("../../../../experiments/zfs-ashift.toml"),
    ),
];

/// A model that a user names.
pub(super) enum Named {
    /// A disk.
    Disk(Model),
    /// A controller.
    Controller(Box<controller::Model>),
    /// A processor of the catalogue; experiments do not read those of files.
    Processor(Box<cpu::Model>),
}

/// The value of a model's fact.
pub(super) fn fact<'m>(facts: &'m [Fact], key: &str) -> Option<&'m str> {
    let found = facts.iter().find(|fact| fact.key == key);
    found.map(|fact| fact.value.as_str())
}

/// The link of a model, where experiments have such a one.
pub(super) fn link(model: &Model) -> Option<Link> {
    match fact(&model.facts, "interface.kind")? {
        "PATA" => Some(Link::Pata),
        "SATA" => Some(Link::Sata),
        "SCSI" => Some(Link::Scsi),
        "NVMe" => Some(Link::Nvme),
        _ => None,
    }
}

/// The models of the catalogue, by name.
pub(super) fn models() -> Result<Vec<(&'static str, Model)>, Failure> {
    let read = |(name, text): &(&'static str, &str)| match catalogue::parse(name, text) {
        Ok(model) => Ok((*name, model)),
        Err(error) => Err(Failure::from_error(MISSING, &error)),
    };
    MODELS.iter().map(read).collect()
}

/// The controllers of the catalogue.
pub(super) fn controllers() -> Result<Vec<controller::Model>, Failure> {
    let read = |(name, text): &(&str, &str)| controller::parse(name, text);
    let read = |model| read(model).map_err(|error| Failure::from_error(MISSING, &error));
    controller::MODELS.iter().map(read).collect()
}

/// The processors of the catalogue.
pub(super) fn processors() -> Result<Vec<cpu::Model>, Failure> {
    let read = |(name, text): &(&str, &str)| cpu::parse(name, text);
    let read = |model| read(model).map_err(|error| Failure::from_error(MISSING, &error));
    cpu::MODELS.iter().map(read).collect()
}

/// The disk that a user names: one of the catalogue, or a file by its path.
pub(crate) fn disk(name: &str) -> Result<Model, Failure> {
    let unknown = |error: UnknownModel| Failure::from_error(BAD_REQUEST, &error);
    match named(name, unknown)? {
        Named::Disk(model) => Ok(model),
        Named::Controller(_) => Err(no_disk(name, "controller")),
        Named::Processor(_) => Err(no_disk(name, "processor")),
    }
}

/// A model that is something else.
fn no_disk(name: &str, what: &str) -> Failure {
    Failure::bad_request(format!("'{name}' is a {what}, and a disk is needed"))
        .remedy("'raidlab disk list' tells which models are disks")
}

/// The model that a user names: one of the catalogue, or a file by its path.
pub(super) fn model(name: &str) -> Result<Named, Failure> {
    named(name, |_| unknown(name))
}

/// A name that no disk, controller or processor has.
fn unknown(name: &str) -> Failure {
    let names = |all: &[(&str, &str)]| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let all = [MODELS, controller::MODELS, cpu::MODELS];
    let known = all.iter().flat_map(|models| models.iter());
    Failure::bad_request(format!(
        "there is no model '{name}'{}: write the path of a model file, a disk ({}), a controller ({}) or a processor ({})",
        meant(nearest(name, known.map(|(name, _)| *name))),
        names(MODELS),
        names(controller::MODELS),
        names(cpu::MODELS)
    ))
}

/// The model of a name; `unknown` tells that there is none.
fn named(name: &str, unknown: impl FnOnce(UnknownModel) -> Failure) -> Result<Named, Failure> {
    let path = Path::new(name);
    if let Ok(model) = controller::find(name) {
        return Ok(Named::Controller(Box::new(model)));
    }
    if let Some(model) = cpu::find(name) {
        return Ok(Named::Processor(Box::new(model)));
    }
    let unknown = match catalogue::find(name) {
        Ok(model) => return Ok(Named::Disk(model)),
        Err(error) => unknown(error),
    };
    if !(path.exists() || name.ends_with(".toml") || name.contains('/')) {
        return Err(unknown);
    }
    let text = text(path)?;
    // Controllers say what they connect, disks what they are.
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let read = if has("link") && !has("kind") {
        controller::parse(name, &text).map(|model| Named::Controller(Box::new(model)))
    } else {
        catalogue::parse(name, &text).map(Named::Disk)
    };
    read.map_err(|error| wrong_model(&error))
}

/// One thing that is wrong on the line of the error, more below it.
fn wrong_model(error: &ModelError) -> Failure {
    let told = error.to_string();
    Failure::bad_request(match error.problems.len() {
        0 | 1 => told,
        n => format!(
            "{n} things are wrong with {}\n  {}",
            error.file,
            told.replace('\n', "\n  ")
        ),
    })
}

/// The text of the file of the model that a user names.
pub(super) fn file(name: &str) -> Result<String, Failure> {
    let same = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(name);
    let mut all = controller::MODELS.iter().chain(cpu::MODELS).chain(MODELS);
    match all.find(same) {
        Some((_, text)) => Ok((*text).to_owned()),
        None => text(Path::new(name)),
    }
}

/// Trials of each cell on the simulator when nothing is said. They cost little there, and with fewer,
/// differences of a few per cent among a dozen comparisons are hardly ever more than may be chance.
const SIMULATED_REPEATS: u32 = 10;

/// The experiment of a file, as it is simulated.
pub(crate) fn simulated(path: &Path, design: &DesignArgs) -> Result<Experiment, Failure> {
    let text = text(path)?;
    let repeats = if raidlab_experiment::says_repeats(&text) {
        design.repeats
    } else {
        design.repeats.or(Some(SIMULATED_REPEATS))
    };
    let design = DesignArgs { repeats, ..*design };
    resolved(&text, path, &design)
}

/// The experiment of a file, with what the command line decides.
pub(crate) fn experiment(path: &Path, design: &DesignArgs) -> Result<Experiment, Failure> {
    resolved(&text(path)?, path, design)
}

fn resolved(text: &str, path: &Path, design: &DesignArgs) -> Result<Experiment, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut experiment = read(text, &path.display().to_string(), folder)?;
    if let Some(seed) = design.seed {
        experiment.design.seed = seed;
    }
    if let Some(repeats) = design.repeats {
        experiment.design.repeats = repeats;
    }
    experiment.design.verify |= design.verify;
    choose::members(&mut experiment, design.member_size)?;
    let design = &mut experiment.design;
    if design.aggregate == Aggregate::Trimmed && design.repeats <= 2 * design.trim {
        // Fewer than the file was made for: nothing would be left.
        (design.aggregate, design.trim) = (Aggregate::Median, 0);
    }
    Ok(experiment)
}

/// The experiment that carries out a published study; `None` when there is no such study.
pub(crate) fn of_study(id: &str) -> Result<Option<Experiment>, Failure> {
    let Some((_, text)) = STUDIES.iter().find(|(known, _)| *known == id) else {
        return Ok(None);
    };
    // What is built in names no files.
    read(text, &format!("experiments/{id}.toml"), Path::new("")).map(Some)
}

/// The experiment of a text; the model files that it names are looked for in `folder`.
pub(crate) fn read(text: &str, file: &str, folder: &Path) -> Result<Experiment, Failure> {
    let models = models()?;
    let studies = reference::all()?;
    let own: Vec<OwnFile> = model_files(text)
        .into_iter()
        .map(|path| OwnFile::read(path, folder))
        .collect();
    let cards: Vec<OwnCard> = controller_files(text)
        .into_iter()
        .filter(|path| controller::find(path).is_err())
        .map(|path| OwnCard::read(path, folder))
        .collect();
    let known = Known {
        files: own.iter().map(OwnFile::known).collect(),
        controller_files: cards.iter().map(OwnCard::known).collect(),
        ..known(&models, &studies)
    };
    parse(text, file, &known).map_err(|error| Failure::bad_file(error.render(talk::coloured())))
}

/// A model file of the user's own.
struct OwnFile {
    /// As the experiment names it.
    path: String,
    /// Its model and text, or why it cannot be used.
    model: Result<(Model, String), String>,
}

impl OwnFile {
    fn read(path: String, folder: &Path) -> Self {
        let model = told(&folder.join(&path)).and_then(|text| {
            let model = catalogue::parse(&path, &text);
            let model = model.map_err(|error| talk::plain(&error.to_string()))?;
            Ok((model, text))
        });
        Self { path, model }
    }

    fn known(&self) -> ModelFile<'_> {
        ModelFile {
            path: &self.path,
            model: match &self.model {
                Ok((model, text)) => Ok(OwnModel {
                    disk: known_disk(&self.path, model),
                    text,
                }),
                Err(reason) => Err(reason.clone()),
            },
        }
    }
}

/// A controller's model file of the user's own.
struct OwnCard {
    /// As the experiment names it.
    path: String,
    /// Its text, or why it cannot be used.
    text: Result<String, String>,
}

impl OwnCard {
    fn read(path: String, folder: &Path) -> Self {
        let text = told(&folder.join(&path)).and_then(|text| {
            let model = controller::parse(&path, &text);
            model.map_err(|error| talk::plain(&error.to_string()))?;
            Ok(text)
        });
        Self { path, text }
    }

    fn known(&self) -> ControllerFile<'_> {
        ControllerFile {
            path: &self.path,
            text: self.text.as_deref().map_err(Clone::clone),
        }
    }
}

fn known_disk<'k>(name: &'k str, model: &Model) -> KnownDisk<'k> {
    KnownDisk {
        name,
        capacity: Some(Bytes(model.disk.sectors() * SECTOR)),
        link: link(model),
    }
}

fn known<'k>(models: &'k [(&'static str, Model)], studies: &'k [Study]) -> Known<'k> {
    let disks = models.iter().map(|(name, model)| known_disk(name, model));
    let studies = studies.iter().map(|study| KnownStudy {
        id: &study.id,
        rows: study.rows.iter().map(|row| row.name.as_str()).collect(),
    });
    Known {
        disks: disks.collect(),
        controllers: controller::MODELS.iter().map(|(name, _)| *name).collect(),
        studies: studies.collect(),
        files: Vec::new(),
        controller_files: Vec::new(),
        override_check: Some(overrides::check),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_has_its_experiment() {
        for study in reference::all().unwrap() {
            let experiment = of_study(&study.id).unwrap().expect("an experiment");
            let expected = experiment.expected.expect("published figures");
            assert_eq!(expected.study, study.id);
        }
        assert!(of_study("nowhere").unwrap().is_none());
    }

    #[test]
    fn the_simulator_repeats_more_often_unless_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let text = "title = 't'\ndisks = { model = 'nvme-ssd', count = 2 }\nprofile = 'random'\n\
                    [factors]\nlayout = ['raid0', 'raid1']\n";
        let said = folder.path().join("said.toml");
        let silent = folder.path().join("silent.toml");
        std::fs::write(&said, format!("{text}[design]\nrepeats = 3\n")).unwrap();
        std::fs::write(&silent, text).unwrap();
        let as_asked = |repeats| DesignArgs {
            repeats,
            ..DesignArgs::default()
        };
        for (path, asked, simulated_ones, others) in [
            (&silent, None, SIMULATED_REPEATS, 3),
            (&said, None, 3, 3),
            (&silent, Some(2), 2, 2),
            (&said, Some(2), 2, 2),
        ] {
            let design = as_asked(asked);
            let repeats = simulated(path, &design).unwrap().design.repeats;
            assert_eq!(repeats, simulated_ones, "{}", path.display());
            let repeats = experiment(path, &design).unwrap().design.repeats;
            assert_eq!(repeats, others, "{}", path.display());
        }
    }

    #[test]
    fn models_know_their_link() {
        for (name, model) in models().unwrap() {
            assert!(link(&model).is_some(), "{name}");
        }
    }
}
