//! Reports: from trial records to a [`Document`], and from a document to a terminal, Markdown, HTML,
//! images or JSON. Reports are computed from records, never from text.
//!
//! | function | makes |
//! |---|---|
//! | [`report`] | the document of any set of trials |
//! | [`experiment_report`] | the document of an experiment, as its file wants it |
//! | [`prediction_report`] | a model's figures of a study beside the published ones |
//! | [`study_report`] | the document of a published study, beside other trials if wanted |
//! | [`compare_request`] | baseline against candidate with a gate, for scripts |
//! | [`answers()`], [`experiment_answers`] | the same for programs |
//! | [`course_of`] | how the rate of one run changed |
//! | [`render_terminal`], [`render_markdown`], [`render_html`], [`render_images`], [`to_json`] | what is read |
mod analysis;
pub mod answers;
mod blocks;
pub mod capacity;
mod columns;
mod compare;
pub mod document;
pub mod experiment;
mod format;
mod group;
mod incidental;
mod load;
mod percentile;
mod prediction;
mod render;
mod select;
mod study;

#[cfg(test)]
mod tests;

pub use analysis::aggregate_of;
pub use answers::{Answers, answers, experiment_answers};
pub use blocks::courses::course_of;
pub use blocks::rebuild::{GivesWay, SyncFloor};
pub use compare::{
    CompareReport, CompareRequest, GateResult, NotCompared, PhaseGate, TailGate, compare_request,
};
pub use document::Document;
pub use experiment::{ExperimentRequest, experiment_report};
pub use percentile::{ParsePercentileError, Percentile};
pub use prediction::{prediction_report, predictions_report};
pub use render::{
    ImageError, RenderedImage, TerminalOptions, render_html, render_images, render_markdown,
    render_terminal, spelled, to_json,
};
pub use select::{Baseline, ParseSelectorError, Selector};
pub use study::study_report;

use crate::record::TrialRecord;
use analysis::Judging;
use blocks::closing::Closing;
use blocks::ratios::Ratios;
use document::{Block, Chart};
use group::Group;
use raidlab_stats::Confidence;
use raidlab_stats::compare::DEFAULT_MARGIN;
use std::collections::{BTreeMap, BTreeSet};

/// A request that no report can be made of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReportError {
    /// Nothing to report on.
    #[error("no trials: nothing to report on")]
    NoTrials,
    /// The baseline names nothing.
    #[error("the baseline '{wanted}' is none of the cells: {}", format::names(known.iter().cloned()))]
    NoBaseline {
        /// What was asked for.
        wanted: String,
        /// The labels there are.
        known: Vec<String>,
    },
    /// A margin outside 0 to 1.
    #[error("the margin is {0}: it is a share above 0 and below 1, such as 0.02 for 2 %")]
    Margin(f64),
    /// A gate that is no ratio.
    #[error("the gate is {0}: it is a ratio above 0, such as 0.95 to let 5 % pass")]
    Gate(f64),
    /// A gate of response times that is no ratio.
    #[error("the gate of {0} is {1}: it is a ratio above 0, such as 1.10 to let 10 % pass")]
    TailGate(Percentile, f64),
    /// The two sides of a comparison have nothing in common.
    #[error("{why}: {baseline} | {candidate}")]
    NothingInCommon {
        /// What they lack, with the remedy where there is one.
        why: &'static str,
        /// The baseline's cells.
        baseline: String,
        /// The candidate's.
        candidate: String,
    },
}

/// What a report is made of.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// Its title.
    pub title: String,
    /// The trials, in the order in which cells shall be shown.
    pub trials: Vec<TrialRecord>,
    /// Environment records by digest.
    pub environments: BTreeMap<String, serde_json::Value>,
    /// What the cells are compared with; none: no ratios.
    pub baseline: Option<Baseline>,
    /// Practical margin: differences within it are equivalent.
    pub margin: f64,
    /// Confidence of all intervals.
    pub confidence: Confidence,
    /// Compare cells although they ran different operation streams.
    pub allow_mixed_streams: bool,
    /// Leave the charts out.
    pub charts: bool,
}

impl ReportRequest {
    /// All cells in the order of the trials, no baseline, margin 2 %, confidence 95 %.
    #[must_use]
    pub fn new(title: impl Into<String>, trials: Vec<TrialRecord>) -> Self {
        Self {
            title: title.into(),
            trials,
            environments: BTreeMap::new(),
            baseline: None,
            margin: DEFAULT_MARGIN,
            confidence: Confidence::P95,
            allow_mixed_streams: false,
            charts: true,
        }
    }

    fn judging(&self) -> Result<Judging, ReportError> {
        let usable = self.margin > 0.0 && self.margin < 1.0;
        if !usable {
            return Err(ReportError::Margin(self.margin));
        }
        Ok(Judging {
            margin: self.margin,
            confidence: self.confidence,
            allow_mixed_streams: self.allow_mixed_streams,
            joined: None,
        })
    }
}

/// The report of a set of trials.
///
/// # Errors
/// [`ReportError`]: no trials, a baseline that none of them is, a margin that is none.
pub fn report(request: &ReportRequest) -> Result<Document, ReportError> {
    if request.trials.is_empty() {
        return Err(ReportError::NoTrials);
    }
    let judging = request.judging()?;
    let groups = group::group(&request.trials);
    check_baseline(request.baseline.as_ref(), &groups)?;
    let mut document = Document::new(request.title.clone());
    let out = &mut document.blocks;
    out.extend(blocks::context::provenance(&groups));
    out.extend(blocks::context::streams(
        &groups,
        request.allow_mixed_streams,
    ));
    for groups in by_profile(&groups) {
        let profile = groups[0].profile;
        out.push(Block::heading(format!("Results: {profile}")));
        out.push(blocks::context::sources(&groups));
        out.extend(blocks::context::settings(&groups));
        figures(out, profile, &groups, &judging);
        if let Some(baseline) = &request.baseline {
            let what = Ratios {
                id: format!("{profile}-ratios"),
                title: profile,
                baseline,
            };
            out.extend(blocks::ratios::ratios(&what, &groups, &judging).map(Block::Table));
            out.extend(blocks::tails::tails(profile, baseline, &groups, &judging));
        }
        if request.charts {
            charts(out, profile, &groups, &judging);
        }
        if let Some(Baseline::Cell(baseline)) = &request.baseline {
            let what = Closing {
                profile,
                baseline,
                size: largest_size(profile),
                arrays: &[],
            };
            out.extend(blocks::closing::closing(&what, &groups, &judging));
        }
    }
    finish(out, &groups, &request.environments);
    document.settle_ids();
    Ok(document)
}

/// The file size of a closing table where a profile measures several.
fn largest_size(profile: &str) -> &'static str {
    if profile == "hdbench" { "2GB" } else { "" }
}

fn figures(out: &mut Vec<Block>, profile: &str, groups: &[Group<'_>], judging: &Judging) {
    if group::phases(groups).is_empty() {
        out.push(Block::warning("No trial got as far as its first figure."));
        return;
    }
    let table = blocks::tool_table::tool_table(profile, groups, judging);
    out.push(Block::Table(table));
    let aggregates = blocks::aggregate::aggregates(profile, groups, judging);
    out.extend(aggregates.map(Block::Table));
    let latency = blocks::distribution::latency_table(profile, groups);
    out.extend(latency.map(Block::Table));
    out.extend(blocks::courses::courses(profile, groups));
}

fn charts(out: &mut Vec<Block>, profile: &str, groups: &[Group<'_>], judging: &Judging) {
    let sweeps = blocks::sweep::sweeps(profile, groups, judging);
    if sweeps.is_empty() {
        let bars = blocks::bars::bars(profile, groups, judging);
        out.extend(bars.into_iter().map(Block::Chart));
    }
    let curves = blocks::cumulative::curves(profile, groups, None);
    let rest = [
        sweeps,
        curves.into_iter().map(Chart::Distribution).collect(),
        blocks::distribution::series_charts(profile, groups),
    ];
    out.extend(rest.into_iter().flatten().map(Block::Chart));
}

fn finish(
    out: &mut Vec<Block>,
    groups: &[Group<'_>],
    environments: &BTreeMap<String, serde_json::Value>,
) {
    out.extend(blocks::context::kept_out(groups));
    out.extend(blocks::environment::environments(groups, environments));
    out.extend(blocks::context::repeat(groups));
}

/// What a report of these trials calls their cells, each with the ids of its trials. Labels that cells share are told apart by
/// what the cells differ in: "one (size=4GiB)".
#[must_use]
pub fn labels<'a>(trials: &'a [TrialRecord]) -> Vec<(String, BTreeSet<&'a str>)> {
    let groups = group::group(trials);
    let labelled = |group: &Group<'a>| {
        let again = group.again.iter().map(|(_, trial)| trial);
        let ids = group
            .trials
            .iter()
            .chain(again)
            .map(|trial| trial.id.as_str());
        (group.label.clone(), ids.collect())
    };
    groups.iter().map(labelled).collect()
}

/// Groups by profile, in the order in which the profiles come.
fn by_profile<'a>(groups: &[Group<'a>]) -> Vec<Vec<Group<'a>>> {
    let mut all: Vec<Vec<Group<'a>>> = Vec::new();
    for group in groups {
        match all.iter_mut().find(|list| list[0].profile == group.profile) {
            Some(list) => list.push(group.clone()),
            None => all.push(vec![group.clone()]),
        }
    }
    all
}

fn check_baseline(baseline: Option<&Baseline>, groups: &[Group<'_>]) -> Result<(), ReportError> {
    let Some(Baseline::Cell(selector)) = baseline else {
        return Ok(());
    };
    if groups.iter().any(|g| selector.names(g)) {
        return Ok(());
    }
    Err(ReportError::NoBaseline {
        wanted: selector.to_string(),
        known: groups.iter().map(|g| g.label.clone()).collect(),
    })
}
