//! `raidlab reference run`: published studies on the simulator, beside their figures.
use super::arrays;
use super::catalogue;
use super::estimate;
use super::machine::Machines;
use super::run::{Failed, Recorder, results_digest, simulate};
use crate::args::ReferenceRunArgs;
use crate::commands::{output, print_json, reference};
use crate::exit::{Failure, MISSING, Outcome, TRIAL_FAILED};
use crate::signals::Stop;
use crate::talk;
use raidlab_experiment::{Experiment, expand};
use raidlab_results::record::TrialRecord;
use raidlab_results::reference::{Prediction, Study, median_error};
use raidlab_results::report::{prediction_report, predictions_report};
use serde_json::json;

/// All studies.
const ALL: &str = "all";

/// A study on the simulator.
struct Predicted {
    study: Study,
    prediction: Prediction,
    digest: String,
    failed: Vec<Failed>,
}

pub(crate) fn run(args: &ReferenceRunArgs) -> Result<Outcome, Failure> {
    let studies = studies(&args.studies)?;
    output::check(&args.output)?;
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
                "{} trials failed; the first: {}: {}",
                failed.len(),
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
    let Some(mut experiment) = catalogue::of_study(&study.id)? else {
        return Ok(None);
    };
    experiment.design.repeats = args.design.repeats.unwrap_or(1);
    if let Some(seed) = args.design.seed {
        experiment.design.seed = seed;
    }
    let plan = expand(&experiment, experiment.design.seed);
    let rows = experiment
        .expected
        .as_ref()
        .map(|e| e.rows.clone())
        .unwrap_or_default();
    let trials: Vec<_> = plan
        .trials
        .iter()
        .filter(|trial| {
            let label = &experiment.cells[trial.cell].label;
            let row = rows
                .iter()
                .find(|(_, cell)| *cell == label)
                .map(|(row, _)| row);
            let fits = |name: &String| args.rows.as_deref().is_none_or(|p| matches(p, name));
            fits(label) || row.is_some_and(fits)
        })
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

/// Whether a name fits a pattern with `*` and `?`; without either, whether it contains it. Case does not
/// matter.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    if !pattern.contains(['*', '?']) {
        return name.contains(&pattern);
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Places of the name that the pattern so far can have led to.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for c in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match c {
                '*' => reached[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && reached[at - 1],
                c => at > 0 && reached[at - 1] && name[at - 1] == c,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_patterns() {
        for (pattern, fits) in [
            ("md raid0", true),
            ("MD", true),
            ("bios", false),
            ("md*disk", true),
            ("*disk", true),
            ("md*channel", false),
            ("md raid? 1 disk", true),
            ("*", true),
            ("", true),
        ] {
            assert_eq!(matches(pattern, "md raid0 1 disk"), fits, "{pattern}");
        }
    }
}
