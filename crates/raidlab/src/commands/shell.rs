//! `raidlab completions` and `raidlab man`: both are made of what the command line is, at the time when they are asked
//! for, so that they never lag behind.
mod fish;
mod sessions;

use super::{files, printed, reference};
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{Failure, MISSING, Outcome};
use crate::talk;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use raidlab_core::profile::Profile;
use raidlab_sim::catalogue::{MODELS, controller, cpu};
use raidlab_sim::trace::Format;

/// Levels as `raidlab layout` takes them; shapes of nested ones are typed.
const LEVELS: [&str; 22] = [
    "linear",
    "raid0",
    "raid1",
    "raid4",
    "raid5",
    "raid5-la",
    "raid5-ra",
    "raid5-ls",
    "raid5-rs",
    "raid6",
    "raid10",
    "raid10-n2",
    "raid10-f2",
    "raid10-o2",
    "raid01",
    "raid50",
    "raid60",
    "zfs-stripe",
    "zfs-mirror",
    "raidz1",
    "raidz2",
    "raidz3",
];

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let mut command = sessions::mark(Cli::command());
    let names = names()?;
    for Names {
        path,
        argument,
        names,
    } in &names
    {
        command = offer(command, path, argument, names);
    }
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "raidlab", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Fish {
        script.push_str(&fish::rest(&command, &names));
    }
    printed(talk::data(&sessions::asking(args.shell, &script)))?;
    Ok(Outcome::Done)
}

/// What an argument may be called. The parser itself does without: it takes paths there, too, or tells what is nearest.
struct Names {
    /// The words of the command.
    path: &'static [&'static str],
    /// The argument's name in the parser.
    argument: &'static str,
    names: Vec<String>,
}

fn names() -> Result<Vec<Names>, Failure> {
    let of = |models: &[&[(&str, &str)]]| -> Vec<String> {
        let names = models.iter().copied().flatten().map(|(name, _)| *name);
        // A shell divides what it is offered at spaces.
        let names = names.filter(|name| !name.contains(' '));
        names.map(str::to_owned).collect()
    };
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let published: Vec<String> = reference::all()?
        .into_iter()
        .map(|study| study.id)
        .collect();
    let mut studies = published.clone();
    studies.push("all".to_owned());
    let mut all = vec![
        (
            &["disk", "show"][..],
            "model",
            of(&[MODELS, controller::MODELS, cpu::MODELS]),
        ),
        (&["disk", "serve"], "models", of(&[MODELS])),
        (&["replay"], "disk", of(&[MODELS])),
        (
            &["replay"],
            "format",
            strings(&Format::ALL.map(|(name, _)| name)),
        ),
        (&["reference", "report"], "study", published),
        (&["reference", "run"], "studies", studies),
        (&["layout"], "level", strings(&LEVELS)),
        (&["import"], "format", formats()),
    ];
    let profiles: Vec<&str> = Profile::all_names().collect();
    for path in [&["bench"], &["report"], &["compare"], &["list"]] {
        all.push((path, "profile", strings(&profiles)));
    }
    let named = |(path, argument, names)| Names {
        path,
        argument,
        names,
    };
    Ok(all.into_iter().map(named).collect())
}

/// What files are imported from: formats, and tools that have several.
fn formats() -> Vec<String> {
    let formats = raidlab_results::import::Format::ALL;
    let names = formats
        .iter()
        .flat_map(|format| [format.tool(), format.name()]);
    // A shell divides what it is offered at spaces.
    let names: std::collections::BTreeSet<&str> =
        names.filter(|name| !name.contains(' ')).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn offer(
    command: Command,
    path: &[&'static str],
    argument: &'static str,
    names: &[String],
) -> Command {
    match path {
        [] => command.mut_arg(argument, |arg: Arg| {
            arg.value_parser(PossibleValuesParser::new(names.to_vec()))
        }),
        [first, rest @ ..] => {
            command.mut_subcommand(first, |inner| offer(inner, rest, argument, names))
        }
    }
}

pub(crate) fn man(args: &ManArgs) -> Result<Outcome, Failure> {
    let pages = pages(Cli::command().disable_help_subcommand(true))?;
    let Some(directory) = &args.dir else {
        let (_, page) = &pages[0];
        printed(talk::data(&String::from_utf8_lossy(page)))?;
        return Ok(Outcome::Done);
    };
    files::directory(directory)?;
    for (name, page) in &pages {
        files::write(&directory.join(format!("{name}.1")), page)?;
    }
    talk::note(&format!(
        "wrote {} pages into {}",
        pages.len(),
        directory.display()
    ));
    Ok(Outcome::Done)
}

/// The pages of a command and of all below it, each with its name; that of the command comes first.
fn pages(mut command: Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    command.build();
    let mut pages = Vec::new();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        left.extend(below.cloned().collect::<Vec<_>>().into_iter().rev());
        let name = command.get_display_name().unwrap_or(command.get_name());
        let page = page(&command).map_err(|error| Failure::new(MISSING, error.to_string()));
        pages.push((name.to_owned(), page?));
    }
    Ok(pages)
}

/// One page. What stands below the options in the help is laid out by hand, and kept so.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let manual = Man::new(command.clone()).source(concat!("raidlab ", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    manual.render_title(&mut out)?;
    manual.render_name_section(&mut out)?;
    manual.render_synopsis_section(&mut out)?;
    manual.render_description_section(&mut out)?;
    manual.render_options_section(&mut out)?;
    if command.has_subcommands() {
        manual.render_subcommands_section(&mut out)?;
    }
    if let Some(notes) = command.get_after_help() {
        let mut roff = Roff::new();
        roff.control("SH", ["NOTES"]).control("nf", []);
        for line in notes.to_string().lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
        roff.to_writer(&mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::pool;
    use raidlab_layout::spec::Spec;

    /// A level that is offered is one; nested ones want a shape.
    #[test]
    fn levels_are_known() {
        for level in LEVELS {
            let shaped = format!("{level} 2x4");
            let known = pool::is_of_zfs(level)
                || [level, &shaped]
                    .iter()
                    .any(|text| text.parse::<Spec>().is_ok());
            assert!(known, "{level}");
        }
    }

    /// An argument that is renamed would be completed no more, and clap's scripts may change.
    #[test]
    fn sessions_are_asked_for() {
        let mut command = sessions::mark(Cli::command());
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "raidlab", &mut script);
            let script = sessions::asking(shell, &String::from_utf8_lossy(&script));
            assert!(script.contains("raidlab list --names"), "{shell}");
            match shell {
                Shell::Bash => assert!(script.contains("complete -F _raidlab_asking -o nosort")),
                Shell::Zsh => {
                    let found = script.matches(":_raidlab_sessions'").count();
                    assert_eq!(found, sessions::ARGUMENTS.len());
                    // Of plan, run and vm shell.
                    assert_eq!(script.matches("_files -g \"*.toml\"").count(), 3);
                }
                _ => assert!(script.contains("function __fish_raidlab_using_subcommand")),
            }
        }
    }

    /// clap's script for fish ends with commands of two words.
    #[test]
    fn fish_knows_the_options_of_commands_of_three_words() {
        let script = fish::rest(&Cli::command(), &[]);
        let of_hdd = "-n \"__fish_raidlab_using_subcommand disk; and __fish_seen_subcommand_from new; \
                      and __fish_seen_subcommand_from hdd\"";
        assert!(script.contains(&format!("{of_hdd} -l capacity -d 'Capacity as")));
        assert!(script.contains(&format!("{of_hdd} -l interface ")));
        for line in script.lines().filter(|line| line.contains(" -n ")) {
            assert_eq!(
                line.matches("__fish_seen_subcommand_from").count(),
                2,
                "{line}"
            );
        }
    }

    /// An argument that is renamed would be completed no more.
    #[test]
    fn names_are_offered_to_arguments() {
        for Names {
            path,
            argument,
            names,
        } in names().unwrap()
        {
            let mut command = offer(Cli::command(), path, argument, &names);
            command.build();
            let found = path.iter().fold(&command, |command, word| {
                command.find_subcommand(word).unwrap()
            });
            let found = found
                .get_arguments()
                .find(|found| found.get_id() == argument)
                .unwrap();
            let values = found.get_possible_values();
            let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            assert!(!names.is_empty());
            assert_eq!(values, names, "{path:?}");
        }
    }
}
