//! What a guest is asked to do, and what it answers.
use super::death::Death;
use raidlab_experiment::{Experiment, Trial};
use raidlab_host::provision::Stage;
use raidlab_results::record::TrialRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One job of a guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum Job {
    /// Say hello, and end.
    Greet,
    /// Measure modelled disks.
    Disks(super::disks::Order),
    /// Go wrong, so that it can be seen that this is noticed.
    Misbehave {
        /// In which way.
        how: Wrong,
    },
    /// Run trials, one after the other.
    Trials(Box<Trials>),
    /// Look where md puts what.
    Maps(Box<super::maps::Order>),
    /// Give a person a shell with the disks of a cell.
    Shell(Box<Shell>),
    /// Run a program of the image.
    Program(Program),
}

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Program {
    /// Its name and its arguments.
    pub(super) words: Vec<String>,
    /// Variables of its environment.
    pub(super) environment: Vec<(String, String)>,
    /// Kernel modules that are loaded before.
    pub(super) modules: Vec<String>,
}

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Ran {
    /// What it ended with; `None`: it was ended by a signal.
    pub(super) code: Option<i32>,
    /// What it wrote to standard output.
    pub(super) out: String,
    /// To standard error.
    pub(super) error: String,
}

/// Ways to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wrong {
    /// The kernel panics.
    Panic,
    /// Nothing more is said.
    Hang,
    /// All memory is used up.
    Memory,
}

/// Where the guest's disks come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Disks {
    /// The guest models them; what they hold is in memory that its kernel leaves alone.
    Modelled {
        /// How much of it there is.
        bytes: u64,
    },
    /// They are there, behind controllers; in the order of members their serial numbers are these.
    Given {
        /// Modules of their drivers.
        modules: Vec<String>,
        /// Serial numbers.
        serials: Vec<String>,
    },
}

/// Trials of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Trials {
    /// The experiment with all defaults filled.
    pub(super) experiment: Experiment,
    /// The disks.
    pub(super) disks: Disks,
    /// The trials, in order.
    pub(super) trials: Vec<Asked>,
    /// The session that they belong to.
    pub(super) session: String,
    /// The command that repeats the run.
    pub(super) command: String,
    /// Whether new arrays are synced.
    pub(super) sync: bool,
    /// Whether the tools that profiles are named after carry them out.
    pub(super) tools: bool,
    /// Disks that die in each trial, so long after its first phase began.
    pub(super) deaths: Vec<Death>,
}

/// A trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Asked {
    /// Its place in the order.
    pub(super) order: u32,
    /// Its round.
    pub(super) round: u32,
    /// Its cell: a place in the experiment's.
    pub(super) cell: usize,
    /// Its seed.
    pub(super) seed: u64,
}

impl From<Trial> for Asked {
    fn from(trial: Trial) -> Self {
        Self {
            order: trial.order,
            round: trial.round,
            cell: trial.cell,
            seed: trial.seed,
        }
    }
}

/// A shell with the disks of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Shell {
    /// The experiment.
    pub(super) experiment: Experiment,
    /// Its cell.
    pub(super) cell: usize,
    /// The disks.
    pub(super) disks: Disks,
}

/// What came of a trial. Without a tag inside: sums of response times are wider than what serde holds back
/// while it looks for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Came {
    /// A record: all phases ran, or it failed and says why.
    Record {
        /// The record.
        record: Box<TrialRecord>,
        /// The guest, the array, the kernel's words.
        environment: Value,
    },
    /// It could not even begin.
    Nothing {
        /// Why.
        reason: String,
    },
}

/// How far the guest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "kebab-case")]
pub(super) enum At {
    /// A trial begins.
    Trial {
        /// Its place in the order.
        order: u32,
    },
    /// Something is built, waited for or undone.
    Stage {
        /// In a few words.
        what: String,
    },
    /// A phase begins.
    Phase {
        /// Its number.
        number: usize,
        /// How many there are.
        of: usize,
        /// Its title.
        title: String,
    },
    /// The last phase has ended.
    Ended,
}

impl At {
    /// A stage in words, as [`Self::Stage`] has them.
    pub(super) fn of_stage(stage: &Stage) -> String {
        match (stage.done, stage.of) {
            (done, of) if of > 0 => format!("{} {} %", stage.what, 100 * done / of),
            _ => stage.what.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::histogram::Latencies;
    use raidlab_core::time::Span;
    use raidlab_results::record::{Cell, PhaseRecord, Place, Provenance, Status, Unit};

    #[test]
    fn a_record_crosses_the_channel_as_it_is() {
        let mut latency = Latencies::new();
        latency.record_n(Span::from_secs(20), 1000);
        let record = TrialRecord {
            id: "1".to_owned(),
            session: "2".to_owned(),
            order: 3,
            round: 4,
            cell: Cell {
                label: "raid1".to_owned(),
                factors: Default::default(),
            },
            cell_digest: Some("d".to_owned()),
            profile: "random".to_owned(),
            settings: Default::default(),
            provenance: Provenance::Measured { place: Place::Vm },
            started: None,
            elapsed_ns: Some(u64::MAX),
            seed: Some(u64::MAX),
            digest: Some(u64::MAX),
            environment: None,
            command: None,
            phases: vec![PhaseRecord {
                latency: Some(latency),
                ..PhaseRecord::bare("read", Some(1.5), Unit::PerSecond)
            }],
            checks: Vec::new(),
            status: Status::Failed {
                reason: "no".to_owned(),
            },
            flags: Vec::new(),
        };
        let came = Came::Record {
            record: Box::new(record),
            environment: serde_json::json!({ "kernel": "6.1" }),
        };
        let text = serde_json::to_string(&came).unwrap();
        assert_eq!(serde_json::from_str::<Came>(&text).unwrap(), came);
    }
}
