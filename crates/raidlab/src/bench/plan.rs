//! What a `bench` command comes to: the arms to be measured, how often, and what is said first.
mod room;

use super::schedule::Enough;
use super::settings;
use crate::args::{BenchArgs, EngineChoice, Rounds};
use crate::commands::text::text;
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use crate::patience;
use crate::talk;
use raidlab_core::data::DataPolicy;
use raidlab_core::profile::{
    Fio, Place, Plan as ProfilePlan, Profile, ProfileContext, ProfileError,
};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_io::engine::direct_alignment_at;
use raidlab_io::observe::environment::{Environment, TargetRecord};
use raidlab_io::observe::{PathKind, Resolved, Roots, privilege, quota, resolve};
use raidlab_io::run::holes;
use raidlab_results::record::Cell;
use room::{enough_files, free};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// One thing to measure: a profile in a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arm {
    /// Label of its cell.
    pub(crate) label: String,
    /// The place, without symbolic links.
    pub(crate) path: PathBuf,
    /// What is done there.
    pub(crate) profile: Profile,
}

impl Arm {
    /// What a report calls it.
    pub(crate) fn cell(&self) -> Cell {
        let place = self.path.to_string_lossy().into_owned();
        Cell {
            label: self.label.clone(),
            factors: BTreeMap::from([("place".to_owned(), place)]),
        }
    }
}

/// A whole `bench` command, as stored for resuming.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// What is measured in each round.
    pub(crate) arms: Vec<Arm>,
    /// When it is enough.
    pub(crate) enough: Enough,
    /// No further round is begun after this time.
    pub(crate) budget: Option<Span>,
    /// Seed of order, operations and data.
    pub(crate) seed: u64,
    /// What is written.
    pub(crate) data: DataPolicy,
    /// What carries out block operations.
    pub(crate) engine: EngineChoice,
    /// When a phase counts as stalled.
    pub(crate) stall: Span,
    /// The fio job file that the profile was read from.
    pub(crate) job_file: Option<PathBuf>,
    /// Whether the whole page cache may be dropped.
    pub(crate) allow_global: bool,
}

/// An arm with what its profile comes to in its place.
pub(crate) struct Prepared {
    pub(crate) arm: Arm,
    pub(crate) plan: ProfilePlan,
}

impl Plan {
    /// From what was typed.
    ///
    /// # Errors
    /// Anything about it that makes no sense.
    pub(crate) fn from_args(args: &BenchArgs) -> Result<Self, Failure> {
        let job_file = job_file(args)?;
        let profiles = match &job_file {
            Some(fio) => vec![Profile::Fio(fio.clone())],
            None => settings::profiles(&args.profile, &args.settings)?,
        };
        let paths = paths(args, job_file.as_ref())?;
        let mut arms: Vec<Arm> = Vec::new();
        for text in &paths {
            let (label, path) = labelled(text).map_err(|failure| in_job_file(failure, args))?;
            if arms.iter().any(|arm| arm.label == label) {
                return Err(Failure::bad_request(format!("'{label}' is named twice"))
                    .remedy("give each place a name of its own: NAME=PATH"));
            }
            arms.extend(profiles.iter().map(|profile| Arm {
                label: label.clone(),
                path: path.clone(),
                profile: profile.clone(),
            }));
        }
        Ok(Self {
            arms,
            enough: enough(args)?,
            budget: args.budget,
            seed: args
                .seed
                .or_else(|| job_file.as_ref().and_then(Fio::seed))
                .unwrap_or(1),
            // The command that repeats a trial may be given in another directory.
            job_file: (args.settings.job_file.as_ref())
                .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            data: args.data,
            engine: args.engine,
            stall: args.stall,
            allow_global: args.allow_global,
        })
    }

    /// Resolves each arm where it is to run.
    ///
    /// # Errors
    /// A place that cannot be used, or settings that it does not allow.
    pub(crate) fn prepare(&self) -> Result<Vec<Prepared>, Failure> {
        let patiently = |arm: &Arm| patience::asking(&arm.path, || prepare(arm));
        self.arms.iter().map(patiently).collect()
    }

    /// Trials that there will be at most.
    pub(crate) fn most_trials(&self) -> u32 {
        self.enough.most().saturating_mul(self.arms.len() as u32)
    }
}

fn enough(args: &BenchArgs) -> Result<Enough, Failure> {
    let only_auto = [
        ("--width", args.width.is_some()),
        ("--max-repeats", args.max_repeats.is_some()),
    ];
    match args.repeats {
        Rounds::Auto => Ok(Enough::Width {
            width: args.width.unwrap_or(0.05),
            most: args.max_repeats.unwrap_or(30),
        }),
        Rounds::Fixed(rounds) => match only_auto.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::bad_request(format!(
                "{option} means nothing to a fixed number of repeats"
            ))
            .remedy("add --repeats auto, or leave it out")),
            None => Ok(Enough::Rounds { rounds }),
        },
    }
}

/// The jobs of `--job-file`.
fn job_file(args: &BenchArgs) -> Result<Option<Fio>, Failure> {
    let Some(path) = &args.settings.job_file else {
        if args.profile.iter().any(|name| name == "fio") {
            return Err(Failure::bad_request("profile fio runs a job file")
                .remedy("name it: --job-file FILE"));
        }
        return Ok(None);
    };
    // 'bonnie' is the default, so it is not something that was asked for.
    if args
        .profile
        .iter()
        .any(|name| name != "fio" && name != "bonnie")
    {
        return Err(Failure::bad_request(
            "a job file is run by itself: leave the other profiles out",
        ));
    }
    as_text(path)?;
    let text = text(path)?;
    let fio = Fio::read(&text).map_err(|wrong| {
        let lines: Vec<String> = wrong
            .iter()
            .map(|error| format!("{}: {error}", path.display()))
            .collect();
        Failure::bad_request(lines.join("\n"))
            .remedy("docs/profiles/fio.md says which options are understood")
    })?;
    Ok(Some(fio))
}

/// The places that were named, or the one that the job file names.
fn paths(args: &BenchArgs, job_file: Option<&Fio>) -> Result<Vec<String>, Failure> {
    let Some(fio) = job_file.filter(|_| args.paths.is_empty()) else {
        return Ok(args.paths.clone());
    };
    match fio
        .target()
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?
    {
        Some(path) => Ok(vec![path]),
        None => Err(
            Failure::bad_request("the job file names no filename and no directory")
                .remedy("name the place to measure: raidlab bench PATH --job-file FILE"),
        ),
    }
}

/// Where a place that is not right comes from, when it was not typed.
fn in_job_file(mut failure: Failure, args: &BenchArgs) -> Failure {
    let file = args.settings.job_file.as_ref();
    if let Some(file) = file.filter(|_| args.paths.is_empty()) {
        let line = text(file).ok().as_deref().and_then(Fio::target_line);
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        failure.message = format!("{}: {line}{}", file.display(), failure.message);
    }
    failure
}

/// `LABEL=PATH` or a path, which is then its own label. A path that exists as typed is a path.
fn labelled(text: &str) -> Result<(String, PathBuf), Failure> {
    let (label, path) = match text.split_once('=') {
        Some((label, path)) if !Path::new(text).exists() && !label.contains('/') => {
            (label.trim(), path)
        }
        _ => (text, text),
    };
    if label.is_empty() || path.is_empty() {
        return Err(Failure::bad_request(format!("'{text}' names no place"))
            .remedy("write PATH or NAME=PATH"));
    }
    let found = patience::asking(Path::new(path), || std::fs::canonicalize(path));
    let found = found.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::bad_request(format!(
            "{path}: no such file or directory"
        ))
        .remedy(
            "name an existing directory, file or block device; raidlab makes its own files inside",
        ),
        std::io::ErrorKind::PermissionDenied => Failure::new(MISSING, format!("{path}: {error}"))
            .remedy(privilege::remedy(
                privilege::is_root(),
                "run as a user who may, or name another path",
            )),
        _ => Failure::bad_request(format!("{path}: {error}")),
    })?;
    as_text(&found)?;
    Ok((talk::one_line(label), found))
}

/// Results are kept with the paths they belong to, as text; another path than the one measured must not be
/// on record.
fn as_text(path: &Path) -> Result<(), Failure> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Failure::bad_request(format!(
            "{}: its name is not UTF-8, and results are kept with the path they belong to",
            path.display()
        ))
        .remedy("rename it, or mount it where the path is UTF-8 (mount --bind)")),
    }
}

fn prepare(arm: &Arm) -> Result<Prepared, Failure> {
    let roots = Roots::system();
    let bad = |error: &dyn std::error::Error| Failure::from_error(BAD_REQUEST, error);
    let resolved = resolve(&roots, &arm.path).map_err(|error| bad(&error))?;
    let environment = Environment::capture(&roots, Some(&resolved)).map_err(|error| bad(&error))?;
    let memory = Bytes(environment.memory.usable());
    let target = environment.target.ok_or_else(|| {
        Failure::new(
            MISSING,
            format!("{}: cannot be looked at", arm.path.display()),
        )
    })?;
    let context = context(&resolved, &target, memory)?;
    let mut plan = arm.profile.plan(&context).map_err(|error| {
        let code = if matches!(error, ProfileError::Space { .. }) {
            MISSING
        } else {
            BAD_REQUEST
        };
        let mut told = format!("the place is {}", arm.path.display());
        if let ProfileError::Space { free, .. } = &error
            && let Some(quota) = quota::limiting(&roots, &arm.path, free.0)
        {
            told.push_str(&format!(", and {quota} allows no more there"));
        }
        Failure::from_error(code, &error).remedy(told)
    })?;
    let space = (target.filesystem.as_ref()).and_then(|filesystem| filesystem.space);
    enough_files(arm, &plan, space)?;
    let holes = plan
        .phases
        .iter()
        .filter_map(|phase| holes(phase, &resolved));
    let most = holes.max_by(|a, b| a.share.total_cmp(&b.share));
    plan.notes.extend(
        most.map(|holes| format!("{holes}; write all of it first, or measure a directory")),
    );
    Ok(Prepared {
        arm: arm.clone(),
        plan,
    })
}

fn context(
    resolved: &Resolved,
    target: &TargetRecord,
    memory: Bytes,
) -> Result<ProfileContext, Failure> {
    let read_only = resolved
        .mount
        .as_ref()
        .is_some_and(raidlab_io::observe::mountinfo::Mount::read_only);
    let place = match resolved.kind {
        PathKind::Directory => Place::Directory {
            free: free(&resolved.path, target)?,
        },
        kind => {
            if kind == PathKind::CharacterDevice {
                endless(&resolved.path)?;
            }
            let size = raidlab_io::run::size_of_place(&resolved.path)
                .map_err(|error| Failure::from_error(MISSING, &error))?;
            if kind == PathKind::File {
                Place::File { size }
            } else {
                Place::Device { size }
            }
        }
    };
    if resolved.kind == PathKind::Directory && read_only {
        return Err(Failure::new(
            MISSING,
            format!(
                "{}: the file system is mounted read-only",
                resolved.path.display()
            ),
        )
        .remedy("remount it for writing, or name another directory"));
    }
    Ok(ProfileContext {
        memory,
        place,
        writable: resolved.kind == PathKind::Directory,
        alignment: alignment(resolved),
    })
}

/// What direct I/O wants of offsets and lengths. Where that cannot be told before a file is made it is the least that is
/// taken anywhere: an operation that is not aligned is refused when the file is there.
fn alignment(resolved: &Resolved) -> u32 {
    const LEAST: u32 = 512;
    match resolved.kind {
        // To open one may set something going.
        PathKind::CharacterDevice => LEAST,
        _ => direct_alignment_at(&resolved.path).map_or(LEAST, |found| found.max(LEAST)),
    }
}

/// Of character devices only those that give bytes for ever and do nothing else are measured: to
/// open some (a watchdog, a tape) is to set something going.
fn endless(path: &Path) -> Result<(), Failure> {
    const ENDLESS: [&str; 4] = ["/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    let number = |path: &Path| std::fs::metadata(path).map(|found| found.rdev());
    let wanted = number(path).map_err(|error| {
        Failure::bad_request(format!("cannot look at {}: {error}", path.display()))
    })?;
    let known = |name: &str| number(Path::new(name)).is_ok_and(|number| number == wanted);
    if ENDLESS.iter().any(|name| known(name)) {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "{} is a character device, which is no storage",
        path.display()
    ))
    .remedy("name a directory, a file or a block device; /dev/zero measures raidlab itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_have_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let text = path.to_str().unwrap();
        assert_eq!(labelled(text).unwrap(), (text.to_owned(), path.clone()));
        assert_eq!(
            labelled(&format!("old={text}")).unwrap(),
            ("old".to_owned(), path.clone())
        );
        let odd = path.join("a=b");
        std::fs::create_dir(&odd).unwrap();
        assert_eq!(
            labelled(odd.to_str().unwrap()).unwrap().1,
            odd,
            "an existing path is a path"
        );
        let broken = path.join("a\nb");
        std::fs::create_dir(&broken).unwrap();
        let (label, place) = labelled(broken.to_str().unwrap()).unwrap();
        assert!(
            label.ends_with("a\u{fffd}b"),
            "a label is one line: {label:?}"
        );
        assert_eq!(place, broken);
    }

    #[test]
    fn a_place_that_is_not_there_is_a_bad_request() {
        let failure = labelled("/nowhere/at/all").unwrap_err();
        assert_eq!(failure.code(), BAD_REQUEST);
        assert!(failure.message.contains("/nowhere/at/all"));
        assert!(labelled("=x").is_err());
    }
}
