//! What was typed. What it means is decided by the commands.
mod bench;
mod datasheet;
mod disk;
pub(crate) mod elsewhere;
mod layout;
mod predict;
mod real;
mod results;
mod shell;
mod vm;

pub(crate) use bench::{BenchArgs, EngineChoice, Rounds, STALL, SettingArgs};
pub(crate) use datasheet::{NewArgs, NewDisk, NewHdd, NewSsd};
pub(crate) use disk::{DiskAction, DiskArgs, ServeArgs};
pub(crate) use layout::LayoutArgs;
pub(crate) use predict::{
    DesignArgs, On, PlanArgs, ReferenceRunArgs, ReplayArgs, RunArgs, StudyOn,
};
pub(crate) use results::{
    CompareArgs, DoctorArgs, ExportArgs, ExportFormat, ImportArgs, ListArgs, Output,
    ReferenceAction, ReferenceArgs, RemoveArgs, ReportArgs, ShowArgs,
};

pub(crate) use real::{CleanArgs, DevicesArgs, RealArgs};
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use vm::{
    ExecArgs, GuestTime, Hardware, KernelChoice, MapsArgs, Misbehave, SetupArgs, ShellArgs,
    VmAction, VmArgs, VmDisksArgs, VmRunArgs,
};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A laboratory for disk arrays: which layout is fastest for these disks, how much faster, and is
/// that difference real?
#[derive(Debug, Parser)]
#[command(
    name = "raidlab",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    after_help = "\
Start here:
  raidlab doctor /mnt/array                       is this machine fit to measure?
  raidlab bench /mnt/array                        how fast is it? (bonnie's phases, five rounds)
  raidlab bench /mnt/a /mnt/b --profile tiobench  which of the two is faster?
  raidlab report --html report.html               the last session as a page
  raidlab run experiments/home-lab.toml --on sim  which layout would be how fast?
  raidlab reference report pata-raid0             a published study, with its findings checked
  raidlab reference run pata-raid0                the same study predicted, figure by figure

Exit codes: 0 done; 1 a gate found 'worse'; 2 bad request; 3 refused for safety;
4 something needed is missing; 5 a trial failed, or something was left behind; 6 a gate cannot tell
(--require-interval, or unverified trials); 130 interrupted, cleaned up"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where results are kept: an option of the commands that read or keep some, and before any of them.
///
/// The environment is read where the two meet, so that it does not win over the one before the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// File that results are kept in [default: raidlab/results.sqlite in the XDG data directory] [env: RAIDLAB_STORE]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

impl Command {
    /// What `--store` says after the command; `None` where results are neither read nor kept.
    pub(crate) fn store(&self) -> Option<&StoreArgs> {
        match self {
            Self::Bench(args) => Some(&args.store),
            Self::Plan(args) => Some(&args.store),
            Self::Run(args) => Some(&args.store),
            Self::Report(args) => Some(&args.store),
            Self::Compare(args) => Some(&args.store),
            Self::List(args) => Some(&args.store),
            Self::Show(args) => Some(&args.store),
            Self::Export(args) => Some(&args.store),
            Self::Import(args) => Some(&args.store),
            Self::Remove(args) => Some(&args.store),
            Self::Reference(ReferenceArgs {
                action: ReferenceAction::Run(args),
            }) => Some(&args.store),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure directories, files or block devices with a profile
    Bench(Box<BenchArgs>),
    /// What an experiment comes to: cells, trials, order, time; or all that is wrong with its file
    Plan(PlanArgs),
    /// Carry out an experiment on modelled or real disks, and print its report
    Run(RunArgs),
    /// Print results as tables and charts: terminal, Markdown, HTML, images
    Report(ReportArgs),
    /// Compare two sets of results; with --gate, for scripts and CI
    Compare(CompareArgs),
    /// List the sessions in the store
    List(ListArgs),
    /// Show one session or trial in full, with its environment
    Show(ShowArgs),
    /// Write results as JSON lines or CSV
    Export(ExportArgs),
    /// Read the output of bonnie++, tiotest, hdparm, dd, fio and others into the store
    Import(ImportArgs),
    /// Remove a session from the store
    Remove(RemoveArgs),
    /// Published studies: list them, print them as reports, and run them on the simulator
    Reference(ReferenceArgs),
    /// Modelled disks: list them, show their parameters with their sources, serve them over NBD
    Disk(DiskArgs),
    /// The virtual machine that '--on vm' boots: set up, tried, looked around in
    Vm(VmArgs),
    /// Replay a trace on a modelled disk or array
    Replay(ReplayArgs),
    /// List the block devices: may raidlab overwrite them, and if not why not?
    Devices(DevicesArgs),
    /// Undo what a raidlab that was killed left on the machine
    Clean(CleanArgs),
    /// Is this machine fit to measure, and what is under a path?
    Doctor(DoctorArgs),
    /// Draw an array layout, find a sector, count the failures it survives
    Layout(LayoutArgs),
    /// Print a script that lets a shell complete raidlab's command lines
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// What is below each command's options, with the command's name.
    fn below(command: &clap::Command, all: &mut Vec<(String, String)>) {
        if let Some(text) = command.get_after_help() {
            all.push((command.get_name().to_owned(), text.to_string()));
        }
        for inner in command.get_subcommands() {
            below(inner, all);
        }
    }

    fn all_below() -> Vec<(String, String)> {
        let mut all = Vec::new();
        below(&Cli::command(), &mut all);
        assert!(all.len() >= 20, "{}", all.len());
        all
    }

    /// Words of an example as a shell reads them, as far as examples go: what is quoted is one word.
    fn words(line: &str) -> Vec<String> {
        let pieces = line.split('\'').enumerate();
        let mut words = vec![String::new()];
        for (number, piece) in pieces {
            if number % 2 == 1 {
                words.last_mut().unwrap().push_str(piece);
                continue;
            }
            let mut parts = piece.split(' ');
            words
                .last_mut()
                .unwrap()
                .push_str(parts.next().unwrap_or(""));
            words.extend(parts.map(str::to_owned));
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// Where it is not known how wide the terminal is, clap breaks lines at 100 characters, in the midst of examples.
    #[test]
    fn no_line_below_the_options_is_broken() {
        for (name, text) in all_below() {
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{name}: {line}");
            }
        }
    }

    /// An example is understood as it stands. What it does is told after two spaces or more.
    #[test]
    fn examples_are_understood() {
        let mut tried = 0;
        for (name, text) in all_below() {
            // A long one goes on in the next line, as a shell has it.
            let mut pieces = text.split(" \\\n");
            let mut whole = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                whole.push(' ');
                whole.push_str(piece.trim_start());
            }
            for line in whole.lines() {
                let Some(example) = line.strip_prefix("  raidlab ") else {
                    continue;
                };
                let typed = example.split("  ").next().unwrap_or(example);
                let typed = typed.split(" > ").next().unwrap_or(typed);
                let words = words(&format!("raidlab {typed}"));
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{name}: {line}\n{error}");
                }
                tried += 1;
            }
        }
        assert!(tried >= 50, "{tried}");
    }
}
