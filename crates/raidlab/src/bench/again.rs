//! The command that repeats a session: all that its figures depend on, spelled out, so that a later raidlab
//! with other defaults does the same.
use super::plan::Plan;
use super::schedule::Enough;
use crate::args::{EngineChoice, STALL};
use crate::commands::quoted;
use raidlab_core::profile::Profile;
use raidlab_core::time::Span;
use std::path::Path;

/// The command line. It is a whole session's: trials of several places or profiles are taken in turn, and
/// the order of a round depends on how many there are.
pub(crate) fn command(plan: &Plan) -> String {
    let mut words = vec!["raidlab bench".to_owned()];
    words.extend(places(plan));
    let profiles = profiles(plan);
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name()).collect();
    words.push(format!("--profile {}", names.join(",")));
    match plan.enough {
        Enough::Rounds { rounds } => words.push(format!("--repeats {rounds}")),
        Enough::Width { width, most } => words.push(format!(
            "--repeats auto --width {width} --max-repeats {most}"
        )),
    }
    if let Some(budget) = plan.budget {
        words.push(format!("--budget {}", exact(budget)));
    }
    words.push(format!("--seed {} --data {}", plan.seed, plan.data));
    match plan.engine {
        EngineChoice::Auto => {}
        EngineChoice::Uring => words.push("--engine uring".to_owned()),
        EngineChoice::Blocking => words.push("--engine blocking".to_owned()),
    }
    let stall = exact(plan.stall);
    if stall != STALL {
        words.push(format!("--stall {stall}"));
    }
    if plan.allow_global {
        words.push("--allow-global".to_owned());
    }
    match &plan.job_file {
        Some(path) => words.push(format!("--job-file {}", quoted(&path.to_string_lossy()))),
        None => words.extend(settings(&profiles)),
    }
    words.join(" ")
}

/// Each place once, in the order in which they were named.
fn places(plan: &Plan) -> Vec<String> {
    let mut known = Vec::new();
    let mut words = Vec::new();
    for arm in &plan.arms {
        if known.contains(&&arm.label) {
            continue;
        }
        known.push(&arm.label);
        let path = arm.path.to_string_lossy();
        // A name is kept; a label with a stroke is a path as it was typed, which may have been a link's.
        let word = if *arm.label == path || arm.label.contains(['/', '=']) {
            match Path::new(&arm.label).is_absolute() {
                true => arm.label.clone(),
                false => path.into_owned(),
            }
        } else {
            format!("{}={path}", arm.label)
        };
        words.push(quoted(&word));
    }
    words
}

/// Each profile once: all places have the same.
fn profiles(plan: &Plan) -> Vec<&Profile> {
    let mut profiles: Vec<&Profile> = Vec::new();
    for arm in &plan.arms {
        if profiles
            .iter()
            .all(|known| known.name() != arm.profile.name())
        {
            profiles.push(&arm.profile);
        }
    }
    profiles
}

/// Every setting that is decided: the others are left to the place again.
fn settings(profiles: &[&Profile]) -> Vec<String> {
    let mut words = Vec::new();
    for profile in profiles {
        let prefix = match profiles.len() {
            1 => String::new(),
            _ => format!("{}.", profile.name()),
        };
        for (key, value) in profile.settings() {
            if value != "auto" {
                words.push(format!(
                    "--set {}",
                    quoted(&format!("{prefix}{key}={value}"))
                ));
            }
        }
    }
    words
}

/// A time as it is read back, to the nanosecond.
fn exact(time: Span) -> String {
    match time.0 {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    /// The words of a line as a shell divides them; only `'…'` quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().expect("one at least").push(c),
            }
        }
        words
    }

    fn plan(words: impl IntoIterator<Item = String>) -> Plan {
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Bench(args) = cli.command else {
            panic!("a bench command")
        };
        Plan::from_args(&args).unwrap()
    }

    /// What is typed comes back from the command that repeats it.
    fn comes_back(typed: &[&str]) {
        let words_typed = ["raidlab", "bench"].iter().chain(typed);
        let meant = plan(words_typed.map(|word| (*word).to_owned()));
        let told = command(&meant);
        assert_eq!(plan(words(&told)), meant, "{told}");
    }

    #[test]
    fn the_command_is_read_back_as_what_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path.to_string_lossy().into_owned()
        };
        let (a, b) = (make("a"), make("two words"));
        comes_back(&[&a]);
        comes_back(&[&a, &b, "-n", "7", "--seed", "9"]);
        comes_back(&[&format!("old={a}"), &format!("my new one={b}"), "-n", "1"]);
        comes_back(&[
            &a,
            &b,
            "--profile",
            "dd,tiobench,bonnie",
            "--repeats",
            "auto",
            "--width",
            "2.5%",
            "--max-repeats",
            "17",
            "--budget",
            "90m",
            "--stall",
            "1500ms",
            "--engine",
            "blocking",
            "--data",
            "compressible=40",
            "--allow-global",
            "--fsync",
        ]);
        comes_back(&[
            &a,
            "--profile",
            "random",
            "--depth",
            "32",
            "--runtime",
            "2.5s",
            "--block-size",
            "4KiB",
            "--read",
            "70",
            "--rate",
            "1000",
            "--direct",
            "--size",
            "64MiB",
            "--engine",
            "uring",
        ]);
        for profile in Profile::NAMES {
            comes_back(&[&a, "--profile", profile]);
        }
        let job = folder.path().join("job.fio");
        std::fs::write(&job, "[one]\nrw=randread\nsize=1m\n").unwrap();
        comes_back(&[&a, "--job-file", &job.to_string_lossy(), "-n", "2"]);
    }
}
