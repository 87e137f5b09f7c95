//! `raidlab reference run`: published studies on the simulator, beside their figures.
use super::arrays;
use super::catalogue;
use super::choose::{self, matches};
use super::estimate;
use super::machine::Machines;
use super::run::{Failed, Recorder, results_digest, simulate};
use super::unheard;
use crate::args::{ReferenceRunArgs, StudyOn};
use crate::commands::{output, print_json, reference};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::place;
use crate::real;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::words::count;
use raidlab_experiment::{Experiment, expand};
use raidlab_results::record::TrialRecord;
use raidlab_results::reference::{Prediction, Study, median_error};
use raidlab_results::report::{prediction_report, predictions_report};
use serde_json::json;
use std::collections::BTreeMap;

/// All studies.
const ALL: &str = "all";

/// A study on the simulator.
struct Predicted {
    study: Study,
    prediction: Prediction,
    digest: String,
    failed: Vec<Failed>,
}

pub(crate) fn run(args: &ReferenceRunArgs, place: &place::Store) -> Result<Outcome, Failure> {
    unheard::study(args)?;
    let studies = studies(&args.studies)?;
    output::check(&args.output)?;
    if args.on == StudyOn::Vm {
        return real::study::run(args, &studies, place);
    }
    let stop = Stop::listen()
        .map_err(|error| Failure::new(MISSING, format!("cannot listen for signals: {error}")))?;
    let mut all = Vec::new();
    for study in studies {
        match predict(args, study, &stop)? {
            Some(predicted) => all.push(predicted),
            None if stop.asked() => {
                talk::note("interrupted; nothing was kept");
                return Ok(Outcome::Interrupted);
            }
            None => {}
        }
    }
    if all.is_empty() {
        let rows = args.rows.as_deref().unwrap_or_default();
        return Err(
            Failure::bad_request(format!("no row matches '{rows}'")).remedy(
                "'raidlab reference report STUDY' lists the rows; * and ? stand for anything",
            ),
        );
    }
    print(args, &all)?;
    let failed: Vec<&Failed> = all.iter().flat_map(|p| &p.failed).collect();
    match failed.first() {
        None => Ok(Outcome::Done),
        Some(first) => Err(Failure::new(
            TRIAL_FAILED,
            format!(
                "{} failed; the first: {}: {}",
                count(failed.len(), "trial"),
                first.cell,
                first.reason
            ),
        )),
    }
}

fn studies(wanted: &[String]) -> Result<Vec<Study>, Failure> {
    if wanted.iter().any(|id| id == ALL) {
        return reference::all();
    }
    wanted.iter().map(|id| reference::find(id)).collect()
}

/// The study's experiment on the simulator; `None` when no row matches, or it was stopped.
fn predict(
    args: &ReferenceRunArgs,
    study: Study,
    stop: &Stop,
) -> Result<Option<Predicted>, Failure> {
    let Some(experiment) = experiment(args, &study)? else {
        return Ok(None);
    };
    let plan = expand(&experiment, experiment.design.seed);
    let rows = experiment
        .expected
        .as_ref()
        .map(|e| e.rows.clone())
        .unwrap_or_default();
    let trials: Vec<_> = plan
        .trials
        .iter()
        .filter(|trial| is_wanted(args, &rows, &experiment.cells[trial.cell].label))
        .copied()
        .collect();
    if trials.is_empty() {
        return Ok(None);
    }
    let jobs = args.jobs.unwrap_or_else(estimate::processors) as usize;
    let machines = Machines::new(&experiment, !args.no_fast_forward);
    let recorder = Recorder::new(&plan, "", "");
    let (records, failed) = simulate(&plan, &trials, &machines, &recorder, jobs, stop)?;
    if stop.asked() {
        return Ok(None);
    }
    for one in &failed {
        talk::warn(&format!("{}: {}: {}", study.id, one.cell, one.reason));
    }
    Ok(Some(Predicted {
        prediction: study.predicted(
            &rows,
            &arrays::second_failures(&experiment),
            &in_order(&experiment, &records),
        ),
        digest: results_digest(&records),
        study,
        failed,
    }))
}

/// The study's experiment, with what the command line decides; `None` when it has none.
pub(crate) fn experiment(
    args: &ReferenceRunArgs,
    study: &Study,
) -> Result<Option<Experiment>, Failure> {
    let Some(mut experiment) = catalogue::of_study(&study.id)? else {
        return Ok(None);
    };
    experiment.design.repeats = args.design.repeats.unwrap_or(1);
    if let Some(seed) = args.design.seed {
        experiment.design.seed = seed;
    }
    choose::members(&mut experiment, args.design.member_size)?;
    Ok(Some(experiment))
}

/// Whether a cell is among the rows that are asked for, by its label or by its row's name.
pub(crate) fn is_wanted(
    args: &ReferenceRunArgs,
    rows: &BTreeMap<String, String>,
    label: &str,
) -> bool {
    let row = rows.iter().find(|(_, cell)| *cell == label);
    let fits = |name: &str| args.rows.as_deref().is_none_or(|p| matches(p, name));
    fits(label) || row.is_some_and(|(row, _)| fits(row))
}

fn in_order(experiment: &Experiment, records: &[TrialRecord]) -> Vec<TrialRecord> {
    let cells = experiment.cells.iter();
    cells
        .flat_map(|cell| records.iter().filter(|r| r.cell.label == cell.label))
        .cloned()
        .collect()
}

fn print(args: &ReferenceRunArgs, all: &[Predicted]) -> Result<(), Failure> {
    let predictions: Vec<Prediction> = all.iter().map(|p| p.prediction.clone()).collect();
    if args.output.json {
        let of_study = |p: &Predicted| {
            json!({
                "study": p.study.id, "digest": p.digest,
                "compared": p.prediction.errors().len(),
                "median_absolute_error": p.prediction.median_error(),
                "worst_absolute_error": p.prediction.worst_error(),
                "ordering": p.prediction.ordering(), "kendall_tau": p.prediction.ordering().tau(),
                "figures": p.prediction.figures, "findings": p.prediction.findings,
                "failed": p.failed.iter().map(|f| json!({ "cell": f.cell, "reason": f.reason }))
                    .collect::<Vec<_>>(),
            })
        };
        return print_json(&json!({
            "median_absolute_error": median_error(&predictions),
            "studies": all.iter().map(of_study).collect::<Vec<_>>(),
        }));
    }
    let identity = |p: &Predicted| format!("{}: digest of the results {}.", p.study.id, p.digest);
    let document = match all {
        [one] => prediction_report(&one.study, &one.prediction, &identity(one)),
        several => {
            let all: Vec<String> = several.iter().map(identity).collect();
            predictions_report(&predictions, &all.join(" "))
        }
    };
    output::emit(&document, &args.output)
}
