//! Arguments of `raidlab bench`.
use super::StoreArgs;
use super::results::{Output, percent};
use clap::Args;
use raidlab_core::data::DataPolicy;
use raidlab_core::time::Span;
use std::path::PathBuf;
use std::str::FromStr;

/// What `--stall` is when nothing is said.
pub(crate) const STALL: &str = "60s";

/// How often to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// So many times.
    Fixed(u32),
    /// Until the intervals are narrow enough.
    Auto,
}

impl FromStr for Rounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            number => match number.parse::<u32>() {
                Ok(0) => Err("nothing would be measured: write 1 or more, or 'auto'".into()),
                Ok(n) if n <= 10_000 => Ok(Self::Fixed(n)),
                _ => Err(format!(
                    "'{text}' is not a number of repeats: write 1 to 10000, or 'auto'"
                )),
            },
        }
    }
}

/// The engine that carries out block operations.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EngineChoice {
    /// io_uring when the kernel offers it, else blocking calls
    #[default]
    Auto,
    /// io_uring, or an error
    Uring,
    /// One blocking system call at a time
    Blocking,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Profiles: bonnie, tiobench, hdbench, hdparm, dd, random, sequential, fio (a page each in
docs/profiles). Sizes say whether they are binary (64KiB) or decimal (64kB). A directory gets a
working directory of raidlab's own, removed at the end; a file or block device named here is only
read.

Several paths or profiles are measured in turn, in a random order within each round, so that drift
cannot favour one of them. Every finished trial is in the store at once: after an interruption,
--resume goes on where it stopped.

Examples:
  raidlab bench /mnt/array                                    bonnie's phases, five rounds
  raidlab bench /mnt/a /mnt/b --profile bonnie,tiobench       two places, two profiles, interleaved
  raidlab bench /mnt/a --profile random --depth 32 --runtime 10s --repeats auto --width 2%
  raidlab bench /dev/sdb --profile hdparm                     read rates of a disk, nothing written
  raidlab bench --resume                                      go on with what was interrupted")]
pub(crate) struct BenchArgs {
    /// Directories, files or block devices to measure (LABEL=PATH gives one a name)
    #[arg(value_name = "PATH", required_unless_present_any = ["resume", "job_file"])]
    pub(crate) paths: Vec<String>,

    /// What to do there (several by commas)
    #[arg(
        long,
        short,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "bonnie"
    )]
    pub(crate) profile: Vec<String>,

    /// How often to measure each: a number, or 'auto' until --width is reached
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value = "5",
        help_heading = "Repeats"
    )]
    pub(crate) repeats: Rounds,

    /// With --repeats auto: half-width of the 95 % interval to reach [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Repeats")]
    pub(crate) width: Option<f64>,

    /// With --repeats auto: at most so many [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = "Repeats")]
    pub(crate) max_repeats: Option<u32>,

    /// Begin no further round after this time
    #[arg(long, value_name = "TIME", value_parser = some_time, help_heading = "Repeats")]
    pub(crate) budget: Option<Span>,

    /// Seed of operations and data: the same seed asks for the same operations [default: 1, or what
    /// a job file says]
    #[arg(long, value_name = "N", help_heading = "Repeats")]
    pub(crate) seed: Option<u64>,

    /// Go on with an interrupted session (the last one, or by id)
    ///
    /// It goes on as it was planned, so nothing of the plan can be given with it.
    #[arg(
        long,
        value_name = "SESSION",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = [
            "profile", "repeats", "width", "max_repeats", "budget", "seed", "SettingArgs", "data",
            "engine", "stall", "allow_global",
        ],
        help_heading = "Repeats"
    )]
    pub(crate) resume: Option<String>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// What the data is: zeros, seeded (incompressible), compressible=N
    #[arg(
        long,
        value_name = "KIND",
        default_value = "seeded",
        help_heading = "How"
    )]
    pub(crate) data: DataPolicy,

    /// What carries out block operations
    #[arg(long, value_enum, default_value = "auto", help_heading = "How")]
    pub(crate) engine: EngineChoice,

    /// A phase in which nothing ends for this long has failed
    #[arg(long, value_name = "TIME", default_value = STALL, value_parser = some_time, help_heading = "How")]
    pub(crate) stall: Span,

    /// May drop the page cache of the whole machine (needs root) instead of the files' own
    #[arg(long, help_heading = "How")]
    pub(crate) allow_global: bool,

    /// Say what would be done and how long it may take, and do nothing
    #[arg(long, help_heading = "How")]
    pub(crate) plan: bool,

    /// The cell that ratios are taken to, by its label [default: the first]
    #[arg(long, value_name = "LABEL", help_heading = "Report")]
    pub(crate) baseline: Option<String>,

    /// Differences smaller than this do not matter: the margin of "equivalent"
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent, help_heading = "Report")]
    pub(crate) margin: f64,

    /// Print the figures as CSV, one phase a row (as 'raidlab export --format csv'), instead of a report
    #[arg(long, conflicts_with_all = ["json", "markdown"], help_heading = "Report")]
    pub(crate) csv: bool,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Parameters of the profiles. Each applies to the profiles that know it; one that none of the
/// chosen profiles knows is an error.
#[derive(Debug, Args)]
#[command(next_help_heading = "What (each for the profiles that know it)")]
pub(crate) struct SettingArgs {
    /// Size of the data [bonnie: twice the memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,

    /// Size of each read or write call
    #[arg(long, value_name = "SIZE")]
    pub(crate) block_size: Option<String>,

    /// Number of blocks (dd) or operations (tiobench random phases)
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<String>,

    /// Threads (tiobench)
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<String>,

    /// Small files to create, in units of 1024 (bonnie); 0 for none
    #[arg(long, value_name = "N[:MAX[:MIN[:DIRS]]]")]
    pub(crate) files: Option<String>,

    /// Leave out the one-byte phases (bonnie)
    #[arg(long)]
    pub(crate) fast: bool,

    /// Make every write durable before the next (bonnie, dd)
    #[arg(long)]
    pub(crate) fsync: bool,

    /// Operations in flight for each job
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<String>,

    /// Jobs at once
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<String>,

    /// Share of reads
    #[arg(long, value_name = "PERCENT")]
    pub(crate) read: Option<String>,

    /// Length of a time-limited phase
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,

    /// Fixed arrival rate in operations a second, instead of as fast as possible
    #[arg(long, value_name = "OPS")]
    pub(crate) rate: Option<String>,

    /// Make writes durable after every N
    #[arg(long, value_name = "N")]
    pub(crate) fsync_every: Option<String>,

    /// Past the page cache
    #[arg(long, conflicts_with = "buffered")]
    pub(crate) direct: bool,

    /// Through the page cache
    #[arg(long)]
    pub(crate) buffered: bool,

    /// A plain fio job file; runs as profile fio, where it says or at PATH
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "size", "block_size", "count", "threads", "files", "fast", "fsync", "depth", "jobs",
            "read", "runtime", "rate", "fsync_every", "direct", "buffered", "set",
        ]
    )]
    pub(crate) job_file: Option<PathBuf>,

    /// Any other setting of a profile: KEY=VALUE or PROFILE.KEY=VALUE
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// A time that is not nothing.
fn some_time(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err(format!("in '{text}' nothing would be measured")),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_a_number_or_auto() {
        assert_eq!("5".parse(), Ok(Rounds::Fixed(5)));
        assert_eq!("auto".parse(), Ok(Rounds::Auto));
        assert!(
            "0".parse::<Rounds>()
                .unwrap_err()
                .contains("nothing would be measured")
        );
        for wrong in ["", "-1", "many", "1e3", "10001"] {
            assert!(wrong.parse::<Rounds>().is_err(), "{wrong}");
        }
    }
}
