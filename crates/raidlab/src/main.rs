//! raidlab: a laboratory for disk arrays.
//!
//! `main` reads as the program: parse what was typed, do it, and turn the outcome into an exit code
//! that scripts can use. Data goes to standard output, talk to standard error.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod commands;
mod exit;
mod patience;
mod place;
mod predict;
mod real;
mod screen;
mod signals;
mod talk;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser};
use exit::Outcome;
use std::process::ExitCode;

/// The exit code of a program of Rust that panicked.
const PANICKED: u8 = 101;
/// Bytes of stack for what the program does: what the first thread mostly has.
const STACK: usize = 8 << 20;

/// The first thread only waits. The kernel gives it the signals of the process as long as it blocks none, also when it is held by a
/// dead disk: then nobody hears of Ctrl-C until the disk answers. To block them there would have all that is started block them,
/// too, and tools that hang could not be ended.
fn main() -> ExitCode {
    // In a guest that raidlab booted, this program is the whole system.
    if let Some(role) = raidlab_vm::guest::role() {
        return real::agent::run(&role);
    }
    let second = std::thread::Builder::new().name("raidlab".to_owned());
    match second.stack_size(STACK).spawn(program) {
        // What made it panic has been told by then.
        Ok(second) => second.join().unwrap_or(PANICKED.into()),
        // Better heard late than not at all.
        Err(_) => program(),
    }
}

/// What was typed, done.
fn program() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            talk::failure(&not_text());
            return exit::BAD_REQUEST.into();
        }
        Err(error) if let Some(failure) = told_better(&error) => {
            talk::failure(&failure);
            return exit::BAD_REQUEST.into();
        }
        Err(error) => {
            // Help and version are answers, not errors; clap prints each where it belongs.
            if error.use_stderr() {
                let _ = error.print();
                return exit::BAD_REQUEST.into();
            }
            return match commands::printed(error.print()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => {
                    talk::failure(&failure);
                    failure.code().into()
                }
            };
        }
    };
    let code = match run(cli) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            talk::failure(&failure);
            failure.code().into()
        }
    };
    patience::tell_of_left_behind();
    code
}

/// What the parser says less clearly than it can be said.
fn told_better(error: &clap::Error) -> Option<exit::Failure> {
    negative(error)
        .or_else(|| no_number(error))
        .or_else(|| no_store(error))
        .or_else(|| no_command(error))
        .or_else(|| no_option(error))
}

/// What was typed that is text: paths need not be.
fn typed() -> impl Iterator<Item = String> {
    let words = std::env::args_os().skip(1);
    words.filter_map(|word| word.into_string().ok())
}

/// An option that other programs have: clap's tip is one that is spelled alike, such as `--baseline` for `--bs`.
fn no_option(error: &clap::Error) -> Option<exit::Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let cli = Cli::command();
    let command = typed().find_map(|typed| cli.find_subcommand(typed))?;
    let meant = args::elsewhere::option(command, word)?;
    let message = format!("'raidlab {}' has no option '{word}'", command.get_name());
    Some(exit::Failure::bad_request(message).remedy(meant))
}

/// A command that other programs have: clap's tip is one that is spelled alike, such as `clean` for `create`.
fn no_command(error: &clap::Error) -> Option<exit::Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // Not one of a command's own.
    let meant = typed().find(|typed| !typed.starts_with('-') || typed == word);
    let meant = meant
        .filter(|typed| typed == word)
        .and_then(|_| args::elsewhere::meant(word))?;
    Some(exit::Failure::bad_request(format!("there is no command '{word}'")).remedy(meant))
}

/// `--store` behind a command that has none: clap's tip makes an option of it that is spelled alike, such as `--sector`.
fn no_store(error: &clap::Error) -> Option<exit::Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    (error.kind() == ErrorKind::UnknownArgument && word == "--store").then(|| {
        exit::Failure::bad_request(
            "this command neither reads nor keeps results, and has no --store",
        )
        .remedy("leave --store out")
    })
}

/// What stands where a number is wanted, with what a number looks like; the parser's own words are of digits and strings.
fn no_number(error: &clap::Error) -> Option<exit::Failure> {
    use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
    let source = std::error::Error::source(error)?;
    let wanted = match source.downcast_ref::<ParseIntError>() {
        Some(error) if *error.kind() == IntErrorKind::PosOverflow => "it is too large",
        Some(_) => "a whole number is wanted, such as 4",
        None if source.is::<ParseFloatError>() => "a number is wanted, such as 0.95",
        None => return None,
    };
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (value, argument) = (of(ContextKind::InvalidValue)?, of(ContextKind::InvalidArg)?);
    Some(exit::Failure::bad_request(format!(
        "invalid value '{value}' for '{argument}': {wanted}"
    )))
}

/// A number below zero looks like an option, and clap's tip makes another argument of it.
fn negative(error: &clap::Error) -> Option<exit::Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let number: f64 = word.parse().ok()?;
    (error.kind() == ErrorKind::UnknownArgument && number < 0.0).then(|| {
        exit::Failure::bad_request(format!("'{word}' is below zero, and nothing here can be"))
            .remedy(format!(
                "give a number without the sign; a path of that name is ./{word}"
            ))
    })
}

/// What clap does not say: which of the arguments it is, and what helps.
fn not_text() -> exit::Failure {
    let words = std::env::args_os().skip(1);
    let odd = words.filter(|word| word.to_str().is_none());
    let odd: Vec<String> = odd.map(|word| format!("'{}'", word.display())).collect();
    exit::Failure::bad_request(format!("not UTF-8: {}", odd.join(", "))).remedy(
        "results are kept with the paths they belong to, as text; rename it, or mount it where the path is \
         UTF-8 (mount --bind)",
    )
}

fn run(cli: Cli) -> Result<Outcome, exit::Failure> {
    let store = place::Store::new(&cli);
    match cli.command {
        Command::Bench(args) => bench::run(&args, &store),
        Command::Plan(args) => predict::plan::run(&args, &store),
        Command::Run(args) => predict::run::run(&args, &store),
        Command::Report(args) => commands::report::run(&args, &store),
        Command::Compare(args) => commands::compare::run(&args, &store),
        Command::List(args) => commands::list::run(&args, &store),
        Command::Show(args) => commands::show::run(&args, &store),
        Command::Export(args) => commands::export::run(&args, &store),
        Command::Import(args) => commands::import::run(&args, &store),
        Command::Remove(args) => commands::remove::run(&args, &store),
        Command::Reference(args) => commands::reference::run(&args, &store),
        Command::Disk(args) => predict::disk::run(&args),
        Command::Vm(args) => real::machine(&args),
        Command::Replay(args) => predict::replay::run(&args),
        Command::Devices(args) => commands::devices::run(&args),
        Command::Clean(args) => commands::clean::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Layout(args) => commands::layout::run(&args),
        Command::Completions(args) => commands::shell::completions(&args),
        Command::Man(args) => commands::shell::man(&args),
    }
}
