//! Commands and options that other programs have, and what does that here.
use clap::Command;

/// Words, the likeliest to be typed first, and what is meant by them.
const ELSEWHERE: [(&[&str], &str); 11] = [
    (
        &["predict", "simulate", "sim", "model", "estimate"],
        "'raidlab run FILE --on sim' predicts the experiment of a file",
    ),
    (
        &["measure", "benchmark", "test", "perf", "speed", "time"],
        "'raidlab bench PATH' measures a directory, file or device, and 'raidlab run FILE --on host' the experiment of a file",
    ),
    (
        &["create", "build", "make", "assemble", "array", "provision"],
        "'raidlab run FILE --on host' makes the arrays of an experiment, measures them and takes them apart; 'raidlab plan FILE' tells what that comes to",
    ),
    (
        &["check", "validate", "lint", "explain", "dry-run"],
        "'raidlab plan FILE' tells what an experiment comes to, or all that is wrong with its file; 'raidlab doctor' whether the machine is fit",
    ),
    (
        &["sessions", "results", "history", "ls", "runs", "log"],
        "'raidlab list' lists the sessions, and 'raidlab report' prints one",
    ),
    (
        &["delete", "rm", "del", "forget", "drop"],
        "'raidlab remove SESSION' removes a session from the store",
    ),
    (
        &["diff", "versus", "vs", "gate"],
        "'raidlab compare A B' compares two sessions, or cells of them",
    ),
    (
        &["undo", "cleanup", "destroy", "stop", "recover", "umount"],
        "'raidlab clean' undoes what a raidlab that was killed left",
    ),
    (
        &["disks", "drives", "models", "lsblk"],
        "'raidlab disk list' lists modelled disks, and 'raidlab devices' those of this machine",
    ),
    (
        &["print", "html", "chart", "plot", "table"],
        "'raidlab report' prints results as tables and charts, with --html as a page",
    ),
    (&["version"], "'raidlab --version' tells it"),
];

/// Options, and what they are called here, where a command has that.
const OPTIONS: [(&[&str], &str); 8] = [
    (
        &["bs", "blocksize", "block", "iosize", "call-size"],
        "block-size",
    ),
    (
        &["runs", "iterations", "loops", "rounds", "times", "trials"],
        "repeats",
    ),
    (&["iodepth", "qd", "queue-depth"], "depth"),
    (&["numjobs", "processes", "parallel"], "jobs"),
    (&["time", "duration", "seconds"], "runtime"),
    (&["rwmixread", "read-percent", "mix"], "read"),
    (&["output", "output-file"], "out"),
    (&["filesize", "file-size"], "size"),
];
/// Options of `run` that are a command of its own here.
const ONLY_LOOKS: [&str; 4] = ["dry-run", "check", "what-if", "simulate"];

/// What is said here instead of an option of this command (`--bs`), or nothing of others.
pub(crate) fn option(command: &Command, option: &str) -> Option<String> {
    let word = option.strip_prefix("--")?;
    let word = word.split('=').next().unwrap_or(word);
    if ONLY_LOOKS.contains(&word) && command.get_name() == "run" {
        return Some("'raidlab plan FILE' tells what an experiment comes to, with --on host what would be done to devices; 'raidlab run FILE --on sim' predicts it".to_owned());
    }
    let has = |(words, _): &&(&[&str], &str)| words.contains(&word);
    let (_, name) = OPTIONS.iter().find(has)?;
    let known = |name: &str| {
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(name))
    };
    known(name).then(|| format!("it is called --{name} here"))
}

/// What does here what such a command does elsewhere.
pub(crate) fn meant(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let has = |(words, _): &&(&[&str], &str)| words.contains(&word.as_str());
    ELSEWHERE.iter().find(has).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory as _;

    /// No word is an option already where the one that is meant is, and each one that is meant is somewhere.
    #[test]
    fn what_is_meant_is_an_option() {
        let cli = Cli::command();
        for (words, name) in OPTIONS {
            let mut with = 0;
            for command in cli.get_subcommands() {
                let has = |name: &str| {
                    command
                        .get_arguments()
                        .any(|arg| arg.get_long() == Some(name))
                };
                with += usize::from(has(name));
                assert!(
                    !has(name) || !words.iter().any(|word| has(word)),
                    "{words:?}"
                );
            }
            assert!(with > 0, "{name}");
        }
    }

    /// What is told is there, and no word is a command already.
    #[test]
    fn what_is_meant_is_a_command() {
        let cli = Cli::command();
        let names: Vec<&str> = cli.get_subcommands().map(|sub| sub.get_name()).collect();
        for (words, meant) in ELSEWHERE {
            assert!(words.iter().all(|word| !names.contains(word)), "{words:?}");
            let mut commands = meant.split("'raidlab ").skip(1);
            assert!(commands.all(|rest| {
                let word = rest.split([' ', '\'']).next().unwrap_or_default();
                names.contains(&word) || word == "--version"
            }));
        }
    }
}
