//! What is asked for, and what comes of it.
use super::super::document::Document;
use super::super::percentile::Percentile;
use super::tails::TailGate;
use crate::record::{Session, TrialRecord};
use raidlab_core::flag::FlagKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Two sets of trials to compare.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// What the report calls the sides: baseline, candidate.
    pub names: [String; 2],
    /// The baseline's trials.
    pub baseline: Vec<TrialRecord>,
    /// The candidate's trials.
    pub candidate: Vec<TrialRecord>,
    /// The sessions of both sides, whose plans tell what their cells are; those that are missing tell nothing.
    pub sessions: Vec<Session>,
    /// Environment records by digest.
    pub environments: BTreeMap<String, serde_json::Value>,
    /// Least gain (candidate over baseline, or its inverse where lower is better) that passes, such
    /// as 0.95; none: nothing is gated.
    pub gate: Option<f64>,
    /// The most that percentiles of response times may come to (candidate over baseline) to pass, such as 1.10; empty: none is
    /// gated.
    pub gate_latency: BTreeMap<Percentile, f64>,
    /// Practical margin: differences within it are equivalent.
    pub margin: f64,
    /// Confidence of all intervals.
    pub confidence: raidlab_stats::Confidence,
    /// Compare although the sides ran different operation streams.
    pub allow_mixed_streams: bool,
    /// Whether the candidate is some of its cells only: what it lacks of the baseline's was left out on purpose.
    pub candidate_narrowed: bool,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateResult {
    /// No gate was asked for.
    NotAsked,
    /// Not shown to be below the gate, nor does it look so.
    Pass,
    /// It looks below the gate, but the interval does not prove it (with n=1 nothing can); of several figures also: one
    /// of them could not be judged.
    Warn,
    /// No figure to judge: withheld, invalid, refused, without a ratio or missing on one side.
    NotJudged,
    /// The whole interval is below the gate.
    Fail,
}

impl GateResult {
    /// The word for a report.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotAsked => "not asked",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::NotJudged => "not judged",
            Self::Fail => "fail",
        }
    }
}

/// One phase of one cell, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseGate {
    /// The profile.
    pub profile: String,
    /// The candidate's cell.
    pub cell: String,
    /// The phase.
    pub phase: String,
    /// Candidate over baseline; `None` when there is no ratio.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Digits after the point with which the interval bears out verdict and gate, when two do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<usize>,
    /// `better`, `worse`, `equivalent`, `different, small`, `inconclusive`, or why there is none.
    pub verdict: String,
    /// The reason in a sentence.
    pub why: String,
    /// Valid runs of the baseline and of the candidate; `None` when there is no ratio.
    #[serde(default)]
    pub runs: Option<[usize; 2]>,
    /// The rounds that both have valid, where runs of a round are compared with each other.
    #[serde(default)]
    pub rounds: Option<usize>,
    /// What the ratio is of, where that is not simply all runs of both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// Kinds of doubt about the valid runs of the baseline and of the candidate.
    #[serde(default)]
    pub flags: [BTreeSet<FlagKind>; 2],
    /// The doubts in words, for the table: the side, the kind and the note.
    #[serde(skip)]
    pub(crate) remarks: Vec<(&'static str, FlagKind, String)>,
    /// What the gate says.
    pub gate: GateResult,
    /// Why it does not say what it would say of this figure alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_why: Option<String>,
}

/// A cell that has none to be compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// The profile.
    pub profile: String,
    /// The cell.
    pub cell: String,
    /// The reason in a sentence.
    pub why: String,
    /// Whether the other side has cells that it may belong to.
    pub ambiguous: bool,
    /// Whether it is one of the baseline's that the candidate should have.
    #[serde(default)]
    pub missing: bool,
}

impl NotCompared {
    /// Whether a gate would have to judge it, and cannot.
    #[must_use]
    pub const fn leaves_open(&self) -> bool {
        self.ambiguous || self.missing
    }
}

/// A comparison with its document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareReport {
    /// For a reader.
    pub document: Document,
    /// One a phase.
    pub phases: Vec<PhaseGate>,
    /// Percentiles of response times, of each phase that was timed on both sides.
    pub response_times: Vec<TailGate>,
    /// Cells that the other side lacks, or has more than once.
    pub not_compared: Vec<NotCompared>,
    /// Sessions of either side that have more trials to run, a sentence each.
    #[serde(default)]
    pub unfinished: Vec<String>,
    /// The worst of all phases. A phase that could not be judged does not fail the gate, but does not let it pass without a
    /// warning either; when none was, the whole is [`GateResult::NotJudged`].
    pub throughput: GateResult,
    /// The worst of all gated percentiles, by the same rule for each percentile.
    pub latency: GateResult,
    /// The worse of both gates.
    pub overall: GateResult,
}
