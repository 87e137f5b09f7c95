//! Commands and options that other programs have, and what does that here.
use clap::Command;
use raidlab_core::suggest;

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

/// Options of `run` that are a command of its own here.
const ONLY_LOOKS: [&str; 4] = ["dry-run", "check", "what-if", "simulate"];

/// What is said here instead of an option of this command (`--bs`), or nothing of others.
pub(crate) fn option(command: &Command, option: &str) -> Option<String> {
    let word = option.strip_prefix("--")?;
    let word = word.split('=').next().unwrap_or(word);
    if ONLY_LOOKS.contains(&word) && command.get_name() == "run" {
        return Some("'raidlab plan FILE' tells what an experiment comes to, with --on host what would be done to devices; 'raidlab run FILE --on sim' predicts it".to_owned());
    }
    let known = |name: &&&str| {
        let mut all = command.get_arguments();
        all.any(|arg| arg.get_long() == Some(**name))
    };
    let name = suggest::named_here(word).iter().find(known)?;
    Some(format!("it is called --{name} here"))
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

    #[test]
    fn options_go_by_what_settings_are_called_elsewhere() {
        let cli = Cli::command();
        let of = |command: &str, word: &str| option(cli.find_subcommand(command).unwrap(), word);
        for (word, name) in [
            ("--bs", "block-size"),
            ("--iterations", "repeats"),
            ("--iodepth=4", "depth"),
            ("--numjobs", "jobs"),
            ("--duration", "runtime"),
            ("--time", "runtime"),
            ("--rwmixread", "read"),
        ] {
            let told = format!("it is called --{name} here");
            assert_eq!(of("bench", word), Some(told), "{word}");
            assert_eq!(of("list", word), None, "{word}");
        }
        assert!(of("run", "--dry-run").is_some_and(|told| told.contains("raidlab plan")));
        assert_eq!(of("clean", "--dry-run"), None);
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
