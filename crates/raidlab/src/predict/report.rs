//! From a stored run of an experiment to the report that its file asks for.
use super::arrays;
use super::run::{StoredRun, results_digest};
use super::unmodelled;
use crate::args::Output;
use crate::bench::store_failure;
use crate::commands::{output, reference};
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use raidlab_core::units::Bytes;
use raidlab_core::words::count;
use raidlab_experiment::Experiment;
use raidlab_experiment::experiment::{Aggregate, Baseline, Chart, ChartKind, Design, TableKind};
use raidlab_results::id;
use raidlab_results::record::{Session, TrialRecord};
use raidlab_results::report::document::Block;
use raidlab_results::report::experiment::{
    ArrayFacts, Beside, ChartForm, ExperimentRequest, Joined, WantedChart, WantedTable,
};
use raidlab_results::report::{Baseline as Against, ReportRequest, Selector, experiment_report};
use raidlab_results::store::{Bundle, Store, TrialFilter};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Prints the report of a session that is a run of an experiment, and writes the files asked for.
pub(crate) fn of_session(store: &mut Store, id: &str, to: &Output) -> Result<(), Failure> {
    of_session_beside(store, id, Vec::new(), to)
}

/// How a report is judged otherwise than its experiment says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judged {
    /// Instead of the experiment's margin.
    pub(crate) margin: Option<f64>,
    /// Compare trials although they did different operations.
    pub(crate) allow_mixed_streams: bool,
}

/// The same with blocks at its end.
pub(crate) fn of_session_beside(
    store: &mut Store,
    id: &str,
    beside: Vec<Block>,
    to: &Output,
) -> Result<(), Failure> {
    let request = stored(store, id, &Judged::default())?;
    let mut document =
        experiment_report(&request).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    document.blocks.extend(beside);
    output::emit(&document, to)
}

/// What the report of a stored session is made of, judged as is asked for.
///
/// # Errors
/// When it is no run of an experiment, or has no trial yet.
pub(crate) fn stored(
    store: &mut Store,
    id: &str,
    judged: &Judged,
) -> Result<ExperimentRequest, Failure> {
    let session = store.session(id).map_err(store_failure)?;
    let bundle = store
        .bundle(&TrialFilter::of_session(id))
        .map_err(store_failure)?;
    of_bundle(&session, bundle, judged)
}

/// The same of a session and what belongs to it, which may be in no store: in an export.
///
/// # Errors
/// When it is no run of an experiment, or has no trial yet.
pub(crate) fn of_bundle(
    session: &Session,
    bundle: Bundle,
    judged: &Judged,
) -> Result<ExperimentRequest, Failure> {
    let run = StoredRun::of(session).ok_or_else(|| {
        Failure::new(
            MISSING,
            format!("session {} has no experiment that can be read", session.id),
        )
    })?;
    if bundle.trials.is_empty() {
        return Err(nothing_yet(session));
    }
    let there = bundle.trials.len();
    let mut request = request(&run, bundle)?;
    if let Some(planned) = session.planned.filter(|planned| there < *planned as usize) {
        let _ = write!(
            request.identity,
            " Unfinished: {there} of {}; the same command goes on with it.",
            count(planned as usize, "trial")
        );
    }
    request.base.margin = judged.margin.unwrap_or(request.base.margin);
    request.base.allow_mixed_streams |= judged.allow_mixed_streams;
    Ok(request)
}

/// A session whose first trial has not ended.
pub(crate) fn nothing_yet(session: &Session) -> Failure {
    let id = id::short(&session.id);
    Failure::new(
        MISSING,
        format!("no trial of session {id} has ended: there is nothing to report yet"),
    )
    .remedy("'raidlab list' shows all sessions; 'raidlab report ID' prints another one")
}

/// What the report of a run is made of.
pub(crate) fn request(run: &StoredRun, bundle: Bundle) -> Result<ExperimentRequest, Failure> {
    let experiment = &run.experiment;
    let trials = in_order_of_cells(experiment, bundle.trials);
    let beside = match &experiment.expected {
        Some(expected) => Some(Beside {
            study: reference::find(&expected.study)?,
            rows: expected.rows.clone(),
        }),
        None => None,
    };
    let mut arrays = arrays::facts(experiment);
    for facts in &mut arrays {
        if let Some(found) = found_usable(facts, &trials, &bundle.environments) {
            hold(facts, found);
        }
    }
    let identity = if run.on == "sim" {
        let same = format!(
            "Seed {}; digest of the results {}: the same on any machine and any number of threads.",
            run.seed,
            results_digest(&trials)
        );
        let mut told = vec![same];
        told.extend(unmodelled::told(experiment));
        told.join(" ")
    } else {
        format!("Seed {}; measured on {}.", run.seed, run.on)
    };
    Ok(ExperimentRequest {
        base: ReportRequest {
            environments: bundle.environments,
            baseline: baseline(experiment),
            margin: experiment.design.margin,
            ..ReportRequest::new(experiment.title.clone(), trials)
        },
        question: experiment.question.clone(),
        joined: joined(&experiment.design),
        tables: experiment.report.tables.iter().map(|t| table(*t)).collect(),
        charts: experiment.report.charts.iter().map(chart).collect(),
        beside,
        arrays,
        sync_floors: arrays::sync_floors(experiment),
        rebuild_rates: arrays::rebuild_rates(experiment),
        states: arrays::states(experiment),
        identity,
    })
}

/// Has an array hold what it was found to hold: the capacity of its models is no part of its name any more.
fn hold(facts: &mut ArrayFacts, found: u64) {
    if let Some(modelled) = facts.capacity.replace(found)
        && let Some(name) = facts.name.strip_suffix(&format!(", {}", Bytes(modelled)))
    {
        facts.name = name.to_owned();
    }
}

/// Bytes that could be used of an array that was built, as its trials found it: the experiment only knows what its
/// models would hold.
fn found_usable(
    facts: &ArrayFacts,
    trials: &[TrialRecord],
    environments: &BTreeMap<String, serde_json::Value>,
) -> Option<u64> {
    let of_array = |trial: &&TrialRecord| facts.cells.contains(&trial.cell.label);
    let usable = |trial: &TrialRecord| {
        let environment = environments.get(trial.environment.as_ref()?)?;
        environment["array"]["usable_bytes"].as_u64()
    };
    trials.iter().filter(of_array).filter_map(usable).min()
}

/// The order of execution is drawn by lot; a reader wants that of the file.
fn in_order_of_cells(experiment: &Experiment, mut trials: Vec<TrialRecord>) -> Vec<TrialRecord> {
    let place = |trial: &TrialRecord| {
        let cells = &mut experiment.cells.iter();
        cells.position(|cell| cell.label == trial.cell.label)
    };
    trials.sort_by_cached_key(|trial| (place(trial), trial.round, trial.order));
    trials
}

fn joined(design: &Design) -> Joined {
    match design.aggregate {
        Aggregate::Mean => Joined::Mean,
        Aggregate::Median => Joined::Median,
        Aggregate::Trimmed => Joined::Trimmed(design.trim),
    }
}

fn baseline(experiment: &Experiment) -> Option<Against> {
    match experiment.design.baseline.as_ref()? {
        Baseline::Cell(label) => Some(Against::Cell(Selector::Label(label.clone()))),
        Baseline::Levels(_) => experiment.baseline_factors().map(Against::Factor),
    }
}

fn table(kind: TableKind) -> WantedTable {
    match kind {
        TableKind::Figures => WantedTable::Figures,
        TableKind::Ratios => WantedTable::Ratios,
        TableKind::Aggregate => WantedTable::Aggregate,
        TableKind::Distribution => WantedTable::Distribution,
        TableKind::Capacity => WantedTable::Capacity,
        TableKind::Worth => WantedTable::Worth,
        TableKind::Survival => WantedTable::Survival,
        TableKind::Limits => WantedTable::Limits,
        TableKind::Published => WantedTable::Published,
        TableKind::Rebuild => WantedTable::Rebuild,
        TableKind::Environment => WantedTable::Environment,
    }
}

fn chart(chart: &Chart) -> WantedChart {
    // Trials have the call size under the name that all tools' results have it.
    let factor = |name: &Option<String>| {
        name.as_ref().map(|name| match name.as_str() {
            "call-size" => "block-size".to_owned(),
            other => other.to_owned(),
        })
    };
    WantedChart {
        form: match chart.kind {
            ChartKind::Bars => ChartForm::Bars,
            ChartKind::Lines => ChartForm::Lines,
            ChartKind::Distribution => ChartForm::Distribution,
        },
        title: chart.title.clone(),
        x: factor(&chart.x),
        y: chart.y.clone(),
        lines: factor(&chart.lines),
        per: factor(&chart.per),
    }
}
