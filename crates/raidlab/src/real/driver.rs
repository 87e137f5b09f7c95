//! The tools that profiles are named after, run themselves in the place that was built; their output becomes the
//! trial's phases by the importers.
mod fio;

use super::host_failure;
use super::trial::Watch;
use crate::commands::quoted;
use crate::exit::{BAD_REQUEST, Failure, MISSING, TRIAL_FAILED};
use raidlab_core::profile::{Bonnie, Conv, Dd, Hdparm, Plan, Profile, Tiobench};
use raidlab_host::HostError;
use raidlab_host::tool::{Output, Tool};
use raidlab_io::observe::cache::evict;
use raidlab_io::run::{Place, RunOptions};
use raidlab_results::import::{Format, Source, import};
use raidlab_results::record::{PhaseRecord, Provenance};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What carries out a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    /// raidlab's own phases
    #[default]
    Raidlab,
    /// The tool that the profile is named after (bonnie++, dd, hdparm, tiotest) or made like (fio: random, sequential)
    Tool,
}

/// What a tool said.
pub(crate) struct Said {
    /// As its importer reads it.
    pub(crate) phases: Vec<PhaseRecord>,
    /// Which tool, and its version where it prints one.
    pub(crate) provenance: Provenance,
    /// Its command lines and all that it wrote.
    pub(crate) text: String,
}

/// Where a tool runs, and how.
pub(crate) struct Ground<'a> {
    /// The profile as it was resolved for the place.
    pub(crate) plan: &'a Plan,
    /// The place.
    pub(crate) place: &'a Place,
    /// The seed, and what ends it.
    pub(crate) options: &'a RunOptions,
    /// A device there is one of a guest's, and nobody has it open.
    pub(crate) guest: bool,
    /// A resync or rebuild goes on in an array of md beneath.
    pub(crate) busy: bool,
}

/// Which tool a profile is named after, or made like.
fn tool_of(profile: &Profile) -> Result<(&'static str, Format), Failure> {
    match profile {
        Profile::Bonnie(_) => Ok(("bonnie++", Format::Bonnie)),
        Profile::Dd(_) => Ok(("dd", Format::Dd)),
        Profile::Hdparm(_) => Ok(("hdparm", Format::Hdparm)),
        Profile::Tiobench(_) => Ok(("tiotest", Format::Tiotest)),
        Profile::Random(_) | Profile::Sequential(_) | Profile::Fio(_) => Ok(("fio", Format::FioJson)),
        other => Err(Failure::new(
            BAD_REQUEST,
            format!("profile {} has no tool that could carry it out", other.name()),
        )
        .remedy(
            "leave --driver out, or use the profile bonnie, dd, hdparm, tiobench, random, sequential or fio",
        )),
    }
}

/// The tool of a profile.
///
/// # Errors
/// When it has none, or it is not installed.
pub(crate) fn check(profile: &Profile) -> Result<&'static str, Failure> {
    let (name, _) = tool_of(profile)?;
    raidlab_host::tool::need(name).map_err(|error| host_failure(&error))?;
    Ok(name)
}

/// Runs the tool of a profile.
pub(crate) fn run(
    profile: &Profile,
    ground: &Ground<'_>,
    watch: &mut dyn Watch,
) -> Result<Said, Failure> {
    let (name, format) = tool_of(profile)?;
    if format == Format::FioJson {
        return fio::run(ground, watch);
    }
    let (plan, place) = (ground.plan, ground.place);
    let one_call = !matches!(profile, Profile::Dd(_));
    if one_call {
        watch.phase(0, 1, "the tool itself");
    }
    let mut calls = Calls::new(&ground.options.cancel, watch);
    match profile {
        Profile::Bonnie(settings) => calls.bonnie(settings, plan, directory(place, name)?)?,
        Profile::Dd(settings) => {
            let file = match place.directory() {
                // On a device of one's own; on this machine's disks raidlab holds on to it, and dd is not the last to
                // close it.
                None if !ground.guest => directory(place, name)?.to_owned(),
                _ => directory_or_device(ground, name)?,
            };
            calls.dd(settings, plan, &file, place.directory().is_some())?;
        }
        Profile::Hdparm(settings) => calls.hdparm(settings, place)?,
        Profile::Tiobench(settings) => calls.tiotest(settings, plan, directory(place, name)?)?,
        _ => {}
    }
    let (mut phases, provenance) = imported(&calls.text, name, format)?;
    if let Profile::Dd(_) = profile {
        passes(&mut phases);
    }
    Ok(Said {
        phases,
        provenance,
        text: calls.text,
    })
}

/// The phases that a tool tells of, and where they come from.
fn imported(
    text: &str,
    name: &str,
    format: Format,
) -> Result<(Vec<PhaseRecord>, Provenance), Failure> {
    let unreadable = |why: String| {
        Failure::new(
            TRIAL_FAILED,
            format!("what {name} wrote cannot be read: {why}"),
        )
    };
    let source = Source::new(name).format(format);
    let read = import(text.as_bytes(), &source).map_err(|error| unreadable(error.to_string()))?;
    let mut trials = read.trials.into_iter();
    let first = trials
        .next()
        .ok_or_else(|| unreadable("there is nothing in it".to_owned()))?;
    let mut phases = first.phases;
    phases.extend(trials.flat_map(|trial| trial.phases));
    Ok((phases, first.provenance))
}

/// The first pass pays for what the second does not: it has names of its own, as in the profile.
fn passes(phases: &mut [PhaseRecord]) {
    for name in ["write", "read"] {
        let mut same = phases.iter_mut().filter(|phase| phase.phase == name);
        if let (Some(first), Some(_)) = (same.next(), same.next()) {
            first.phase = format!("{name}-first");
        }
    }
}

fn directory<'p>(place: &'p Place, tool: &str) -> Result<&'p Path, Failure> {
    place.directory().ok_or_else(|| {
        Failure::new(
            BAD_REQUEST,
            format!("{tool} makes files, and there is no file system"),
        )
        .remedy("give the cell a file system, or leave --driver out")
    })
}

/// The data file that phases have in a directory, or the device itself.
fn directory_or_device(ground: &Ground<'_>, tool: &str) -> Result<PathBuf, Failure> {
    let place = ground.place;
    if place.directory().is_none() && !place.is_writable() {
        return directory(place, tool).map(Path::to_owned);
    }
    Ok(place.data(0))
}

/// Calls of tools, with what they wrote.
struct Calls<'c> {
    cancel: &'c AtomicBool,
    watch: &'c mut dyn Watch,
    text: String,
}

impl<'c> Calls<'c> {
    fn new(cancel: &'c AtomicBool, watch: &'c mut dyn Watch) -> Self {
        Self {
            cancel,
            watch,
            text: String::new(),
        }
    }

    fn call(&self, words: &[String]) -> Result<Output, Failure> {
        let tool = Tool::new(words.iter().cloned()).cancelled_by(self.cancel);
        tool.run().map_err(|error| match error {
            HostError::Interrupted => Failure::new(TRIAL_FAILED, "interrupted"),
            HostError::Missing { .. } => host_failure(&error),
            other => Failure::from_error(TRIAL_FAILED, &other),
        })
    }

    fn bonnie(&mut self, settings: &Bonnie, plan: &Plan, directory: &Path) -> Result<(), Failure> {
        let size = resolved(plan, "size")? >> 20;
        let mut words = vec![
            "bonnie++".to_owned(),
            format!("-d{}", directory.display()),
            format!("-s{size}:{}", settings.chunk.0),
            format!(
                "-n{}:{}:{}:{}",
                settings.files,
                settings.file_size_max.0,
                settings.file_size_min.0,
                settings.directories
            ),
            // It refuses files that memory could hold unless it is told of less memory.
            format!("-r{}", size / 2),
            "-mraidlab".to_owned(),
            "-q".to_owned(),
        ];
        if is_root() {
            words.push("-u0:0".to_owned());
        }
        for (switch, wanted) in [
            ("-f", settings.fast),
            ("-b", settings.fsync_writes),
            ("-D", settings.direct),
        ] {
            words.extend(wanted.then(|| switch.to_owned()));
        }
        let output = self.call(&words)?;
        // With -q the row for machines goes to standard output, and the table for people to standard error.
        self.text.push_str(&output.out);
        Ok(())
    }

    /// A call that does the work of one phase.
    fn phase(&mut self, words: &[String]) -> Result<Output, Failure> {
        self.watch.at_work();
        let output = self.call(words);
        self.watch.at_work();
        output
    }

    fn dd(&mut self, settings: &Dd, plan: &Plan, file: &Path, own: bool) -> Result<(), Failure> {
        let titles = plan.phases.iter().map(|phase| phase.title.as_str());
        let mut titles = titles.enumerate();
        let path = file.display();
        let size = [
            format!("bs={}", settings.bs.0),
            format!("count={}", settings.count),
        ];
        let conv = match settings.conv {
            Conv::None => None,
            Conv::Fdatasync => Some("conv=fdatasync"),
            Conv::Fsync => Some("conv=fsync"),
        };
        let words = |from: String, to: String, rest: [Option<&str>; 2]| -> Vec<String> {
            let rest = rest.into_iter().flatten().map(str::to_owned);
            let words = ["dd".to_owned(), from, to].into_iter();
            words.chain(size.clone()).chain(rest).collect()
        };
        let direct = |flag| settings.direct.then_some(flag);
        for _ in 0..2 {
            let write = words(
                "if=/dev/zero".to_owned(),
                format!("of={path}"),
                [conv, direct("oflag=direct")],
            );
            let read = words(
                format!("if={path}"),
                "of=/dev/null".to_owned(),
                [direct("iflag=direct"), None],
            );
            if own {
                let _ = std::fs::remove_file(file);
            }
            for (words, reads) in [(write, false), (read, true)] {
                if settings.cold && reads {
                    evict(file).map_err(|error| Failure::from_error(MISSING, &error))?;
                }
                if let Some((number, title)) = titles.next() {
                    self.watch.phase(number, plan.phases.len(), title);
                }
                let output = self.phase(&words)?;
                // As a shell takes it, and the importer of such lines.
                let word = |word: &String| match word.split_once('=') {
                    Some((key, value)) => format!("{key}={}", quoted(value)),
                    None => word.clone(),
                };
                let words: Vec<String> = words.iter().map(word).collect();
                let _ = write!(self.text, "+ {}\n{}", words.join(" "), output.error);
            }
        }
        Ok(())
    }

    fn hdparm(&mut self, settings: &Hdparm, place: &Place) -> Result<(), Failure> {
        let device = match place.directory() {
            None => place.resolved().path.display().to_string(),
            Some(_) => {
                let stack = place.resolved().stack();
                let top = stack.and_then(|stack| stack.top_names().next());
                let none =
                    || Failure::new(BAD_REQUEST, "hdparm reads devices, and none is known here");
                format!("/dev/{}", top.ok_or_else(none)?)
            }
        };
        // With --direct it leaves the buffered ones out.
        let calls: &[&[&str]] = match settings.direct {
            false => &[&["-tT"]],
            true => &[&["-tT"], &["-tT", "--direct"]],
        };
        for options in calls {
            let words = ["hdparm"].into_iter().chain(options.iter().copied());
            let words: Vec<String> = words.chain([device.as_str()]).map(str::to_owned).collect();
            let output = self.call(&words)?;
            self.text.push_str(&output.out);
        }
        Ok(())
    }

    fn tiotest(
        &mut self,
        settings: &Tiobench,
        plan: &Plan,
        directory: &Path,
    ) -> Result<(), Failure> {
        let size = resolved(plan, "size")? >> 20;
        let threads = u64::from(settings.threads.max(1));
        let words = [
            "tiotest".to_owned(),
            "-d".to_owned(),
            directory.display().to_string(),
            "-t".to_owned(),
            threads.to_string(),
            "-f".to_owned(),
            (size / threads).max(1).to_string(),
            "-b".to_owned(),
            settings.block.0.to_string(),
            "-r".to_owned(),
            (settings.random / threads).max(1).to_string(),
        ];
        let output = self.call(&words)?;
        self.text.push_str(&output.out);
        Ok(())
    }
}

/// A size of the profile as it was resolved for this place, in bytes.
fn resolved(plan: &Plan, setting: &str) -> Result<u64, Failure> {
    let text = plan
        .settings
        .get(setting)
        .and_then(|text| text.parse().ok());
    text.ok_or_else(|| {
        Failure::new(
            BAD_REQUEST,
            format!("the profile has no '{setting}' in bytes"),
        )
    })
}

/// bonnie++ refuses to run as root unless it is told to.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| {
        use std::os::unix::fs::MetadataExt as _;
        found.uid() == 0
    })
}

#[cfg(test)]
mod tests;
