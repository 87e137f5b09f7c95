//! What the store keeps: one record a trial, with where it came from and all that is needed to
//! judge, repeat and compare it. Reports are computed from records, never from text.
//!
//! Field names carry their units; this is the exported schema, so a change of meaning is a new
//! [`SCHEMA_VERSION`]. A field that older records do not have is left out where it says nothing, so that
//! they stay what they were.
use raidlab_core::flag::Flag;
use raidlab_core::histogram::Latencies;
use raidlab_core::outcome::{CpuTime, DeviceBytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the records below, of the export, and of the store's tables.
pub const SCHEMA_VERSION: u32 = 1;

/// Where a figure came from. Figures of different kinds are never averaged, and a report that
/// compares them says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Provenance {
    /// Measured by raidlab on this or another machine.
    Measured {
        /// `host` or `vm`.
        place: Place,
    },
    /// Computed on modelled disks in virtual time.
    Simulated,
    /// Read from another tool's output.
    Imported {
        /// `bonnie++`, `tiotest`, `hdparm`, `dd`, `fio` …
        tool: String,
        /// As the tool prints it, `None` when it does not.
        tool_version: Option<String>,
        /// The file it was read from.
        file: String,
    },
    /// Taken from a published study.
    Published {
        /// The study's id, such as `pata-raid0`.
        study: String,
        /// Its date.
        date: String,
    },
}

/// Where raidlab measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On the machine itself.
    Host,
    /// In a virtual machine on modelled disks.
    Vm,
}

/// Whether a larger or a smaller figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Rates.
    Higher,
    /// Times, processor use.
    Lower,
}

/// The unit a figure is kept in. Tools' own units are a matter of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes a second.
    BytesPerSecond,
    /// Operations (seeks, files, I/Os) a second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Per cent, 0 to 100 (and above, for several processors).
    Percent,
}

impl Unit {
    /// What is better when nothing else is known.
    #[must_use]
    pub const fn better(self) -> Better {
        match self {
            Self::BytesPerSecond | Self::PerSecond => Better::Higher,
            Self::Seconds | Self::Percent => Better::Lower,
        }
    }
}

/// One figure of a phase besides its rate: a latency, a share, another tool's column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Stable name, such as `latency-max` or `share-above-2s`.
    pub name: String,
    /// The value in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// One phase of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Stable name of the phase, such as `block-write`; the same for raidlab's own profile and for
    /// the imported tool of that name, so that they can be compared.
    pub phase: String,
    /// The phase's one primary figure. `None`: measured, but there is no figure (bonnie++'s
    /// `+++++`, a failed or withheld one); the flags say why.
    pub rate: Option<f64>,
    /// Unit of `rate`.
    pub unit: Unit,
    /// Counted bytes; `None` when the source does not tell.
    pub bytes: Option<u64>,
    /// Counted operations; `None` when the source does not tell.
    pub ops: Option<u64>,
    /// Length of the phase in nanoseconds; `None` when the source does not tell.
    pub elapsed_ns: Option<u64>,
    /// Share of one processor in per cent, as the tool of that name prints it.
    pub cpu_percent: Option<f64>,
    /// Processor time in detail, where raidlab measured it.
    pub cpu: Option<CpuTime>,
    /// Response times of the operations that move data (of all when none does).
    pub latency: Option<Latencies>,
    /// Mean number of operations in flight.
    pub mean_in_flight: Option<f64>,
    /// Bytes claimed and bytes that the device moved.
    pub device: Option<DeviceBytes>,
    /// Counted bytes of each second of the phase (of each `series_width_ns`).
    pub series_bytes: Vec<u64>,
    /// Counted operations of each window of the phase.
    pub series_ops: Vec<u64>,
    /// Width of each window in nanoseconds; 0 without a series.
    pub series_width_ns: u64,
    /// Further figures.
    pub figures: Vec<Figure>,
    /// Doubts about this phase.
    pub flags: Vec<Flag>,
    /// What limited it; only a model can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
}

/// Where the time of a modelled phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The limit in a sentence.
    pub why: String,
    /// All that can be busy.
    pub resources: Vec<Resource>,
    /// The disks, in the order of the model.
    pub members: Vec<MemberIo>,
}

/// Something that can be busy: a disk, a channel, a bus, a controller, the processors, a kernel thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// What a report calls it.
    pub name: String,
    /// `disk`, `channel`, `bus`, `controller`, `cpu` or `thread`.
    pub kind: String,
    /// How many of it there are.
    pub units: u32,
    /// Time in use during the phase in nanoseconds, added over the units.
    pub busy_ns: u64,
    /// Of that, by what it was in use for.
    pub parts: Vec<BusyPart>,
}

/// A part of a busy time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyPart {
    /// What for: `seek`, `rotation`, `transfer` …
    pub name: String,
    /// How long, in nanoseconds.
    pub ns: u64,
}

/// What one disk did during a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberIo {
    /// The disk.
    pub disk: String,
    /// Its model.
    pub model: String,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Bytes read from it.
    pub read_bytes: u64,
    /// Bytes written to it.
    pub written_bytes: u64,
}

impl PhaseRecord {
    /// A phase of which only the rate is known.
    #[must_use]
    pub fn bare(phase: &str, rate: Option<f64>, unit: Unit) -> Self {
        Self {
            phase: phase.to_owned(),
            rate,
            unit,
            bytes: None,
            ops: None,
            elapsed_ns: None,
            cpu_percent: None,
            cpu: None,
            latency: None,
            mean_in_flight: None,
            device: None,
            series_bytes: Vec::new(),
            series_ops: Vec::new(),
            series_width_ns: 0,
            figures: Vec::new(),
            flags: Vec::new(),
            explained: None,
        }
    }

    /// The phase of which this is a part: of `mixed` the reads are `mixed: read`, and the writes `mixed: write`.
    #[must_use]
    pub fn whole(&self) -> Option<&str> {
        whole_of(&self.phase)
    }

    /// Whether the rate may enter an aggregate.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.rate.is_some() && !self.flags.iter().any(|flag| flag.voids)
    }
}

/// The name of a part of a phase: `read` or `write`.
#[must_use]
pub fn part_of(whole: &str, direction: &str) -> String {
    format!("{whole}: {direction}")
}

/// The phase of which the one of that name is a part.
#[must_use]
pub fn whole_of(phase: &str) -> Option<&str> {
    let mut directions = ["read", "write"].into_iter();
    directions.find_map(|direction| phase.strip_suffix(direction)?.strip_suffix(": "))
}

/// What was measured: a combination of an experiment's factors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// What a report calls it, such as `raid0, 2 disks` or the path measured.
    pub label: String,
    /// The factors and their levels: `level = raid0`, `disks = 2`, `block-size = 4096`. Levels that
    /// are sizes are written in bytes.
    pub factors: BTreeMap<String, String>,
}

/// One check of an array after the phases: its copies and parity, or the checksums of what it holds. What was
/// found wrong is among the trial's flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked: `md119`, or the name of a pool or file system.
    pub of: String,
    /// By what: `md check`, `zpool scrub`, `btrfs scrub`.
    pub by: String,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// What it went through: of md bytes of each member, of a scrub bytes of all. `None` when that was not told.
    pub bytes: Option<u64>,
    /// What was counted, by the names that md and the tools have for it: `mismatch_cnt` in sectors, `csum_errors` ...
    pub counts: BTreeMap<String, u64>,
    /// Whether nothing was found that does not agree.
    pub consistent: bool,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Status {
    /// All phases ran.
    Complete,
    /// It ended early; the phases that had ended are kept but do not enter an aggregate.
    Failed {
        /// Why.
        reason: String,
    },
}

/// One run of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Unique: 32 hexadecimal digits. The importers derive it from the content, so that importing
    /// the same file twice adds nothing.
    pub id: String,
    /// The session (one command, one import, one study) it belongs to.
    pub session: String,
    /// Its place in the order of execution within the session, from 0.
    pub order: u32,
    /// Its block: trials of the same round are paired in comparisons. From 0.
    pub round: u32,
    /// What was measured.
    pub cell: Cell,
    /// Of a cell of an experiment: the digest of all that makes it, by which its trials are found again
    /// whatever it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_digest: Option<String>,
    /// The workload's name: `bonnie`, `tiobench`, `hdbench`, `hdparm`, `dd`, `random`, `sequential`, `fio`.
    pub profile: String,
    /// The resolved parameters of the workload, defaults included. Sizes in bytes.
    pub settings: BTreeMap<String, String>,
    /// Where the figures came from.
    pub provenance: Provenance,
    /// When it began: RFC 3339 in UTC, `None` when the source does not tell.
    pub started: Option<String>,
    /// Wall (or virtual) time of the whole trial, preparations included, in nanoseconds.
    pub elapsed_ns: Option<u64>,
    /// Seed of the operation streams and the data.
    pub seed: Option<u64>,
    /// Digest of the operation streams; comparing trials of different digests is refused unless
    /// asked for. `None` when unknown.
    pub digest: Option<u64>,
    /// Digest of the environment record (see the store), `None` when unknown.
    pub environment: Option<String>,
    /// A command line that repeats it, `None` when there is none.
    pub command: Option<String>,
    /// The phases in order.
    pub phases: Vec<PhaseRecord>,
    /// Whether the array was still consistent after the phases, where that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// How it ended.
    #[serde(flatten)]
    pub status: Status,
    /// Doubts about the whole trial.
    pub flags: Vec<Flag>,
}

impl TrialRecord {
    /// Whether its phases may enter an aggregate.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.status == Status::Complete && !self.flags.iter().any(|flag| flag.voids)
    }

    /// Parts of phases have the doubts of the whole, whenever these came up.
    pub fn doubt_parts(&mut self) {
        for number in 0..self.phases.len() {
            let whole = self.phases[number].whole();
            let found = self.phases.iter().find(|p| Some(p.phase.as_str()) == whole);
            if let Some(flags) = found.map(|whole| whole.flags.clone()) {
                self.phases[number].flags = flags;
            }
        }
    }
}

/// Trials that belong together: one `bench` command, one import, one reference study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Unique: 32 hexadecimal digits.
    pub id: String,
    /// What a listing calls it.
    pub title: String,
    /// When it was begun: RFC 3339 in UTC.
    pub created: String,
    /// The command line that made it.
    pub command: String,
    /// Version of raidlab that made it.
    pub raidlab: String,
    /// The plan, for resuming: the resolved request as JSON; `None` for imports and studies.
    pub plan: Option<serde_json::Value>,
    /// Trials that the plan comes to; `None` when it is adaptive or not planned.
    pub planned: Option<u32>,
    /// Ended: nothing is left to resume.
    pub finished: bool,
    /// What a person wrote about it.
    pub notes: Vec<String>,
}
