//! What clap's script for fish lacks: values of positional arguments, and the options of commands of three words.
use super::{Cli, Names};
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

/// Both, to stand behind clap's script.
pub(super) fn rest(command: &Command, names: &[Names]) -> String {
    let values = names.iter().filter_map(positional);
    values.chain(deep(command)).collect()
}

/// Values of a positional argument; clap's script has those of options alone.
fn positional(names: &Names) -> Option<String> {
    let command = names
        .path
        .iter()
        .try_fold(Cli::command(), |command, word| {
            command.find_subcommand(word).cloned()
        })?;
    let mut arguments = command.get_arguments();
    let argument = arguments.find(|argument| argument.get_id() == names.argument)?;
    argument.is_positional().then(|| {
        let seen: Vec<String> = names.path.iter().map(|word| seen(word)).collect();
        format!(
            "complete -c raidlab -n \"{}\" -a \"{}\"\n",
            seen.join("; and "),
            names.names.join(" ")
        )
    })
}

fn seen(word: &str) -> String {
    format!("__fish_seen_subcommand_from {word}")
}

/// Options of commands of three words, at which clap's script ends.
fn deep(command: &Command) -> Vec<String> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut all = Vec::new();
    for first in command.get_subcommands() {
        for second in first.get_subcommands() {
            let words = [first.get_name(), second.get_name()];
            all.extend(
                second
                    .get_subcommands()
                    .filter_map(|third| options(words, third)),
            );
        }
    }
    all
}

/// Those of one. clap writes them for a command line without the word in the middle, which is put between afterwards.
fn options([first, second]: [&str; 2], third: &Command) -> Option<String> {
    let outer = Command::new(first.to_owned())
        .disable_help_flag(true)
        .disable_help_subcommand(true);
    let mut short = Command::new("raidlab")
        .disable_help_subcommand(true)
        .subcommand(outer.subcommand(third.clone()));
    let mut script = Vec::new();
    clap_complete::generate(Shell::Fish, &mut short, "raidlab", &mut script);
    let script = String::from_utf8_lossy(&script);
    let (last, middle) = (seen(third.get_name()), seen(second));
    let found = format!("_using_subcommand {first}; and {last}\"");
    let wanted = format!("_using_subcommand {first}; and {middle}; and {last}\"");
    // The command's lines are the last ones: it is the innermost.
    let at = script.find(&found)?;
    let begin = script[..at].rfind('\n')? + 1;
    Some(script[begin..].replace(&found, &wanted))
}
