//! The tools that profiles are named after, run themselves in the place that was built; their output becomes the
//! trial's phases by the importers.
use super::host_failure;
use crate::commands::quoted;
use crate::exit::{BAD_REQUEST, Failure, MISSING, TRIAL_FAILED};
use raidlab_core::profile::{Bonnie, Conv, Dd, Hdparm, Plan, Profile, Tiobench};
use raidlab_host::HostError;
use raidlab_host::tool::{Output, Tool};
use raidlab_io::observe::cache::evict;
use raidlab_io::run::Place;
use raidlab_results::import::{Format, Source, import};
use raidlab_results::record::{PhaseRecord, Provenance};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What carries out a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    /// raidlab's own phases
    #[default]
    Raidlab,
    /// The tool that the profile is named after: bonnie++, dd, hdparm, tiotest
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

/// Which tool a profile is named after.
fn tool_of(profile: &Profile) -> Result<(&'static str, Format), Failure> {
    match profile {
        Profile::Bonnie(_) => Ok(("bonnie++", Format::Bonnie)),
        Profile::Dd(_) => Ok(("dd", Format::Dd)),
        Profile::Hdparm(_) => Ok(("hdparm", Format::Hdparm)),
        Profile::Tiobench(_) => Ok(("tiotest", Format::Tiotest)),
        other => Err(Failure::new(
            BAD_REQUEST,
            format!("profile {} has no tool of its name", other.name()),
        )
        .remedy("leave --driver out, or use the profile bonnie, dd, hdparm or tiobench")),
    }
}

/// Fails when a profile has no tool, or it is not installed.
pub(crate) fn check(profile: &Profile) -> Result<(), Failure> {
    let (name, _) = tool_of(profile)?;
    raidlab_host::tool::need(name)
        .map(drop)
        .map_err(|error| host_failure(&error))
}

/// Runs the tool of a profile in a place. `guest`: a device there is one of a guest's, and nobody has it open.
pub(crate) fn run(
    profile: &Profile,
    plan: &Plan,
    place: &Place,
    cancel: &AtomicBool,
    guest: bool,
) -> Result<Said, Failure> {
    let (name, format) = tool_of(profile)?;
    let mut calls = Calls {
        cancel,
        text: String::new(),
    };
    match profile {
        Profile::Bonnie(settings) => calls.bonnie(settings, plan, directory(place, name)?)?,
        Profile::Dd(settings) => {
            let (file, own) = match place.directory() {
                Some(directory) => (directory.join("data0"), true),
                // On a device of one's own; on this machine's disks raidlab holds on to it, and dd is not the last to
                // close it.
                None if guest => (place.resolved().path.clone(), false),
                None => (directory(place, name)?.to_owned(), false),
            };
            calls.dd(settings, &file, own)?;
        }
        Profile::Hdparm(settings) => calls.hdparm(settings, place)?,
        Profile::Tiobench(settings) => calls.tiotest(settings, plan, directory(place, name)?)?,
        _ => {}
    }
    let unreadable = |why: String| {
        Failure::new(
            TRIAL_FAILED,
            format!("what {name} wrote cannot be read: {why}"),
        )
    };
    let source = Source {
        format: Some(format),
        ..Source::new(name)
    };
    let read =
        import(calls.text.as_bytes(), &source).map_err(|error| unreadable(error.to_string()))?;
    let mut trials = read.trials.into_iter();
    let first = trials
        .next()
        .ok_or_else(|| unreadable("there is nothing in it".to_owned()))?;
    let mut phases = first.phases;
    phases.extend(trials.flat_map(|trial| trial.phases));
    if let Profile::Dd(_) = profile {
        passes(&mut phases);
    }
    Ok(Said {
        phases,
        provenance: first.provenance,
        text: calls.text,
    })
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

/// Calls of tools, with what they wrote.
struct Calls<'c> {
    cancel: &'c AtomicBool,
    text: String,
}

impl Calls<'_> {
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

    fn dd(&mut self, settings: &Dd, file: &Path, own: bool) -> Result<(), Failure> {
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
                let output = self.call(&words)?;
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
mod tests {
    use super::*;
    use raidlab_core::profile::{Place as Where, ProfileContext};
    use raidlab_core::units::Bytes;
    use std::io::Write as _;

    fn ran(profile: &Profile) -> Option<Said> {
        if check(profile).is_err() {
            let name = profile.name();
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED the tool of {name}: not installed"
            );
            assert!(std::env::var_os("CI").is_none());
            return None;
        }
        // A home directory may have a space in its name.
        let directory = tempfile::Builder::new().prefix("of a tool").tempdir();
        let directory = directory.expect("a directory");
        let place = Place::open(directory.path()).expect("a place");
        let context = ProfileContext {
            memory: Bytes::gib(1),
            place: Where::Directory {
                free: Bytes::gib(100),
            },
            writable: true,
            alignment: 512,
        };
        let plan = profile.plan(&context).expect("a plan");
        Some(run(profile, &plan, &place, &AtomicBool::new(false), false).expect("it runs"))
    }

    #[test]
    fn dd_writes_and_reads_twice() {
        let mut profile = Profile::named("dd").expect("dd");
        profile.set("count", "4").expect("set");
        let said = ran(&profile).expect("dd is everywhere");
        let names: Vec<&str> = said
            .phases
            .iter()
            .map(|phase| phase.phase.as_str())
            .collect();
        assert_eq!(
            names,
            ["write-first", "read-first", "write", "read"],
            "{}",
            said.text
        );
        assert!(said.phases.iter().all(|phase| phase.bytes == Some(4 << 20)));
        assert!(matches!(said.provenance, Provenance::Imported { ref tool, .. } if tool == "dd"));
    }

    #[test]
    fn bonnie_itself_gives_the_phases_of_its_profile() {
        let mut profile = Profile::named("bonnie").expect("bonnie");
        for (name, value) in [("size", "16MiB"), ("files", "0"), ("fast", "yes")] {
            profile.set(name, value).expect("set");
        }
        let Some(said) = ran(&profile) else { return };
        let names: Vec<&str> = said
            .phases
            .iter()
            .map(|phase| phase.phase.as_str())
            .collect();
        for wanted in ["block-write", "rewrite", "block-read", "seeks"] {
            assert!(names.contains(&wanted), "{names:?}");
        }
    }

    #[test]
    fn a_profile_without_a_tool_is_told() {
        let failure = check(&Profile::named("random").expect("random")).expect_err("none");
        assert_eq!(failure.code(), BAD_REQUEST);
    }
}
