//! Arguments of the commands that work on results.
use super::StoreArgs;
use super::predict::ReferenceRunArgs;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use raidlab_results::report::Percentile;
use std::path::PathBuf;

/// Where a report goes, and in which form.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Print Markdown instead of terminal tables
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,

    /// Print the report as JSON; nothing else goes to standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write one self-contained HTML file ('-' for standard output; the text goes to standard error then)
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Also write every chart as SVG and PNG into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab report                                  the last session
  raidlab report 3f9a 71c0 --baseline /mnt/old    two sessions, ratios to the cell called /mnt/old
  raidlab report --html r.html --images charts    a page, and its charts for a blog
  raidlab report --from-export results.jsonl      someone else's exported results
  raidlab report --answers | jq '.best[] | select(.phase == \"block-read\") | .cell'")]
pub(crate) struct ReportArgs {
    /// Sessions by id (a unique beginning is enough), or last, last~1 (the one before), ... [default: the last one]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,

    /// Take the trials from an exported JSON-lines file instead of the store ('-' for standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "sessions")]
    pub(crate) from_export: Option<PathBuf>,

    /// Only trials of this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// The cell that ratios are taken to, by its label [default: the experiment's, else the first cell of the
    /// first session]
    #[arg(long, value_name = "LABEL")]
    pub(crate) baseline: Option<String>,

    /// Differences smaller than this do not matter: the margin of "equivalent" [default: the experiment's, else 2%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) margin: Option<f64>,

    /// Title of the report
    #[arg(long)]
    pub(crate) title: Option<String>,

    /// Print what it comes to as JSON for scripts instead: the figure of each cell, the best of each phase, which
    /// cells others beat (docs/schema/answers-v1.md)
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub(crate) answers: bool,

    /// Compare trials although they did different operations
    #[arg(long)]
    pub(crate) allow_different_streams: bool,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("gates").multiple(true))]
#[command(after_help = "\
A and B are sessions (by id, or last, last~1, ...), cells of them (3f9a:/mnt/old), or reference
studies, with a row (pata-raid0:'md raid0 1 disk') or without. B is the candidate, A the baseline.
Several sessions make a side by commas, of which a cell may be named once: 3f9a,71c0:/mnt/old. The
cells of that name of all sessions are :/mnt/old.

A gate fails what is surely worse, also as one of all figures that it looks at: of many, some look
worse by chance, and what is not sure among so many passes with a warning. So does a single trial on
a side, of which nothing is sure, and what cannot be judged, unless --require-interval is given; in
CI, measure both sides more than once (--repeats) and give it. Response times want four trials of
each side, and of every trial so many operations that ten are slower than the percentile (p99:
1000). An interval however wide is one: what passes is not surely worse, but may be worse. The
verdicts equivalent and better say more. With trials that were to be verified and could not be, no
gate passes: exit code 6.

Repeats within one session do not show what changes from session to session: measure both sides in
one, where they alternate (bench A B), or several sessions of each, whose scatter then counts.
Simulated runs of one seed are compared one by one, in whatever sessions they are.

Examples:
  raidlab compare 3f9a 71c0                       is the second better than the first?
  raidlab compare 3f9a 71c0 --gate 0.95           exit 1 when a figure is surely below 95 %
  raidlab compare :old-array :new-array           all that was imported with these labels
  raidlab compare 3f9a 71c0 --gate 0.95 --require-interval   and 6 when a figure has no interval
  raidlab compare 3f9a 71c0 --gate-latency 1.10   exit 1 when p99 is surely more than 10 % longer
  raidlab compare 3f9a 71c0 --gate-latency p50=1.05,p99.9=1.25
  raidlab compare last~1 last --gate 0.95         what was measured last, against the one before
  raidlab compare 3f9a:/mnt/a 3f9a:/mnt/b         two cells of one session
  raidlab compare 3f9a,5e01 71c0,88d2             two sessions of each")]
pub(crate) struct CompareArgs {
    /// The baseline (several sessions by commas)
    #[arg(value_name = "A")]
    pub(crate) baseline: String,

    /// The candidate (several sessions by commas)
    #[arg(value_name = "B")]
    pub(crate) candidate: String,

    /// Fail (exit 1) when the whole interval of a ratio B/A lies below this, and that is no chance among all ratios (Holm)
    #[arg(long, value_name = "RATIO", value_parser = gate, group = "gates")]
    pub(crate) gate: Option<f64>,

    /// Fail (exit 1) when the whole interval of a ratio B/A of response times lies above this: of p99, or of p50, p99 and p99.9 by
    /// name (several by commas)
    #[arg(long, value_name = "[PERCENTILE=]RATIO", value_parser = gate_latency, value_delimiter = ',', group = "gates")]
    pub(crate) gate_latency: Vec<(Percentile, f64)>,

    /// With a gate: fail (exit 6) when a figure has no interval to judge by, such as one of a single trial, when B lacks a
    /// cell of A (unless B names a label), or when a cell may be one of several of the other side
    #[arg(long, requires = "gates")]
    pub(crate) require_interval: bool,

    /// Only this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Only these phases (several by commas)
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    pub(crate) phase: Vec<String>,

    /// Differences smaller than this do not matter: the margin of "equivalent"
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub(crate) margin: f64,

    /// Compare trials although they did different operations
    #[arg(long)]
    pub(crate) allow_different_streams: bool,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab list                                    all of them, the last one at the end
  raidlab list --label '/mnt/*'                   those with a cell of such a label")]
pub(crate) struct ListArgs {
    /// Only sessions with trials of this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Only sessions with a cell whose label matches (with * and ?)
    #[arg(long, value_name = "GLOB")]
    pub(crate) label: Option<String>,

    /// Print what sessions may be called, the last one first, each with its title behind a tab
    #[arg(long, conflicts_with = "json")]
    pub(crate) names: bool,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab show                                    the last session
  raidlab show 3f9a                               a session or a trial by the beginning of its id")]
pub(crate) struct ShowArgs {
    /// Session or trial by id (a unique beginning is enough), or last, last~1, ... [default: the last session]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Print the whole record as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One trial a line, complete; `raidlab import` reads it back
    Jsonl,
    /// One phase a row, for spreadsheets
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab export > all.jsonl                      everything; 'raidlab import' reads it back
  raidlab export 3f9a --format csv -o figures.csv")]
pub(crate) struct ExportArgs {
    /// Sessions by id, or last, last~1, ... [default: all]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,

    /// The form
    #[arg(long, value_enum, default_value = "jsonl")]
    pub(crate) format: ExportFormat,

    /// Write here instead of standard output ('-')
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Known formats: bonnie++ 1.03 to 2.00a (text and CSV), tiotest, tiobench.pl, hdparm, dd, fio (JSON,
JSON+, client, terse v3), iozone, HDBENCH, elbencho, vdbench, sysbench, and raidlab's own export.
Defects of a tool are not passed on. A file with an error imports nothing.

What was imported before is known by its text and its label, and not imported again. Under another
--label it is imported as other runs. Different files of one call with the same text are repeats,
unless a time stamp or seed in it tells that they are one run; a file named twice is read once.

Examples:
  raidlab import bonnie.txt --label old-array     label: what it is called in reports
  raidlab import results/*.json --dry-run         what would be imported
  raidlab import -                                from standard input")]
pub(crate) struct ImportArgs {
    /// Files to read ('-' for standard input)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The format, or the tool, when it cannot be told from the content
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,

    /// Label of the cell [default: what the file says, or its name]
    #[arg(long)]
    pub(crate) label: Option<String>,

    /// Random operations of a tiotest run, all threads together: tiotest 0.3.5 to 0.4.2 credits
    /// random phases with the whole file, and without this their rates are voided
    #[arg(long, value_name = "N")]
    pub(crate) tiotest_random_ops: Option<u64>,

    /// Import what is in the store already under the same label as further runs: repeats in files of
    /// their own whose figures are equal
    #[arg(long)]
    pub(crate) again: bool,

    /// Say what would be imported, and import nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print what was imported as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Sessions by id, or last, last~1, ...
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab reference list                          their ids
  raidlab reference report pata-raid0             as published, with its ratios
  raidlab reference run pata-raid0                predicted, beside what was published")]
pub(crate) struct ReferenceArgs {
    #[command(subcommand)]
    pub(crate) action: ReferenceAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReferenceAction {
    /// List the studies
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a study's published figures as a report, with its findings checked
    Report {
        /// The study's id
        study: String,
        #[command(flatten)]
        output: Output,
    },
    /// Run studies on the simulator, and print the predicted figures beside the published ones
    Run(ReferenceRunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab doctor                                  this machine, and what is under this directory
  raidlab doctor /mnt/array /dev/sdb")]
pub(crate) struct DoctorArgs {
    /// Paths to look under [default: the current directory]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `2%`, `2 %` or `0.02` as a share.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (number, scale) = match trimmed.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (trimmed, 1.0),
    };
    match number.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 && n / scale < 1.0 => Ok(n / scale),
        Ok(n) if scale == 1.0 && n >= 1.0 => Err(format!(
            "'{text}' is ambiguous: write '{n}%' or a share below 1"
        )),
        _ => Err(format!("'{text}' is not a share: write '2%' or '0.02'")),
    }
}

fn gate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio > 0.0 && ratio <= 10.0 => Ok(ratio),
        _ => Err(format!(
            "'{text}' is not a ratio: write a number such as 0.95 (at least 95 % of the baseline)"
        )),
    }
}

/// `1.10`, which is of p99, or `p50=1.05`.
fn gate_latency(text: &str) -> Result<(Percentile, f64), String> {
    let (of, ratio) = match text.split_once('=') {
        Some((of, ratio)) => (
            of.trim().parse().map_err(|error| format!("{error}"))?,
            ratio,
        ),
        None => (Percentile::P99, text),
    };
    match ratio.trim().parse::<f64>() {
        Ok(most) if most.is_finite() && most > 0.0 && most < 1.0 => Err(format!(
            "'{text}' lets only what is faster pass: response times are to be short, so write 1.10 to let 10 % more pass"
        )),
        Ok(most) if (1.0..=100.0).contains(&most) => Ok((of, most)),
        _ => Err(format!(
            "'{text}' is not a ratio: write a number such as 1.10 (at most 110 % of the baseline), or p99.9=1.25"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_both_spellings() {
        assert_eq!(percent("2%"), Ok(0.02));
        assert_eq!(percent(" 2.5 %"), Ok(0.025));
        assert_eq!(percent("0.02"), Ok(0.02));
        assert!(percent("2").unwrap_err().contains("'2%'"));
        for wrong in ["", "%", "-1%", "nan", "0", "120%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_gate_is_a_ratio() {
        assert_eq!(gate("0.95"), Ok(0.95));
        for wrong in ["95%", "0", "-1", "inf", "95"] {
            assert!(gate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_gate_of_response_times_is_a_ratio_of_a_percentile() {
        assert_eq!(gate_latency("1.10"), Ok((Percentile::P99, 1.10)));
        assert_eq!(gate_latency("p99.9=2"), Ok((Percentile::P999, 2.0)));
        for (wrong, told) in [
            ("0.9", "only what is faster"),
            ("p98=1.1", "p50, p99 and p99.9"),
            ("10%", "not a ratio"),
            ("p99=", "not a ratio"),
        ] {
            let error = gate_latency(wrong).unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
