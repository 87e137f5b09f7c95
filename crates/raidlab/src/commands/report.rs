//! `raidlab report`, and the report at the end of `raidlab bench`.
use super::import::name_of;
use super::output::{check_stdout, emit, write_files};
use super::print_json;
use super::show::{last_session, sessions};
use crate::args::{BenchArgs, Output, ReportArgs};
use crate::bench::{self, open_store, store_failure};
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome};
use crate::place;
use crate::predict::report::Judged;
use crate::predict::{self, StoredRun};
use raidlab_results::export::{import_jsonl, write_csv};
use raidlab_results::id;
use raidlab_results::record::{Session, TrialRecord};
use raidlab_results::report::experiment::{ExperimentRequest, WantedTable};
use raidlab_results::report::{
    Answers, Baseline, Document, ReportError, ReportRequest, Selector, answers, experiment_answers,
    experiment_report, labels as labels_of, report,
};
use raidlab_results::store::{Bundle, Store, TrialFilter};
use raidlab_stats::compare::DEFAULT_MARGIN;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

pub(crate) fn run(args: &ReportArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let mut exported = args.from_export.as_deref().map(exported).transpose()?;
    if let Some(request) = experiment(args, &mut exported, store)? {
        let request = overridden(request, args)?;
        let document = || experiment_report(&request);
        if args.answers {
            return answer(experiment_answers(&request), document, &args.output);
        }
        return print(document(), &args.output);
    }
    let (title, mut bundle) = match (exported, &args.from_export) {
        (Some(bundle), Some(path)) => (name_of(path), bundle),
        _ => stored(&args.sessions, store)?,
    };
    if let Some(profile) = &args.profile {
        keep_profile(&mut bundle.trials, profile, &title)?;
    }
    let request = ReportRequest {
        allow_mixed_streams: args.allow_different_streams,
        ..request(
            args.title.clone().unwrap_or(title),
            bundle,
            args.baseline.as_deref(),
            args.margin.unwrap_or(DEFAULT_MARGIN),
        )?
    };
    if args.answers {
        return answer(answers(&request), || report(&request), &args.output);
    }
    print(report(&request), &args.output)
}

/// Leaves the trials of one profile.
fn keep_profile(trials: &mut Vec<TrialRecord>, profile: &str, title: &str) -> Result<(), Failure> {
    let there: BTreeSet<String> = trials.iter().map(|t| t.profile.clone()).collect();
    trials.retain(|trial| trial.profile == profile);
    if !trials.is_empty() {
        return Ok(());
    }
    let there: Vec<String> = there.into_iter().collect();
    Err(Failure::bad_request(format!(
        "there are no trials of profile '{profile}' in '{title}'"
    ))
    .remedy(format!(
        "it has {}; 'raidlab list --profile {profile}' tells which sessions have it, and any can be named here",
        there.join(", ")
    )))
}

/// An experiment's report with what the command line says otherwise; all else is as its file has it.
fn overridden(
    mut request: ExperimentRequest,
    args: &ReportArgs,
) -> Result<ExperimentRequest, Failure> {
    let base = &mut request.base;
    if let Some(profile) = &args.profile {
        keep_profile(&mut base.trials, profile, &base.title)?;
    }
    if let Some(title) = &args.title {
        base.title.clone_from(title);
    }
    if let Some(text) = &args.baseline {
        base.baseline = Some(Baseline::Cell(selector(text, &base.trials)?));
        // Whoever names a baseline wants to see what it is one of.
        if !request.tables.contains(&WantedTable::Ratios) {
            let figures = request
                .tables
                .iter()
                .position(|table| *table == WantedTable::Figures);
            let place = figures.map_or(0, |place| place + 1);
            request.tables.insert(place, WantedTable::Ratios);
        }
    }
    Ok(request)
}

fn selector(text: &str, trials: &[TrialRecord]) -> Result<Selector, Failure> {
    let told = labels_of(trials);
    let own = trials.iter().map(|trial| &trial.cell.label[..]);
    let labels = told.iter().map(|(label, _)| &label[..]).chain(own);
    Selector::among(text, labels).map_err(|error| Failure::from_error(BAD_REQUEST, &error))
}

/// Prints answers; the report itself is made for files alone.
fn answer(
    answers: Result<Answers, ReportError>,
    document: impl FnOnce() -> Result<Document, ReportError>,
    output: &Output,
) -> Result<Outcome, Failure> {
    let bad = |error: ReportError| Failure::from_error(BAD_REQUEST, &error);
    check_stdout(output, true)?;
    print_json(&answers.map_err(bad)?)?;
    if output.html.is_some() || output.images.is_some() {
        write_files(&document().map_err(bad)?, output)?;
    }
    Ok(Outcome::Done)
}

/// What is to be reported when it is one run of an experiment, of the store or of an export (which is taken then).
fn experiment(
    args: &ReportArgs,
    exported: &mut Option<Bundle>,
    place: &place::Store,
) -> Result<Option<ExperimentRequest>, Failure> {
    if args.sessions.len() > 1 {
        return Ok(None);
    }
    let judged = Judged {
        margin: args.margin,
        allow_mixed_streams: args.allow_different_streams,
    };
    let is_experiment = |session: &Session| StoredRun::of(session).is_some();
    let is_one_run =
        |bundle: &mut Bundle| matches!(&bundle.sessions[..], [session] if is_experiment(session));
    if args.from_export.is_some() {
        let bundle = exported.take_if(is_one_run);
        return bundle
            .map(|bundle| predict::report::of_bundle(&bundle.sessions[0].clone(), bundle, &judged))
            .transpose();
    }
    let mut store = open_store(place)?;
    let session = match &args.sessions[..] {
        [id] => store.find_session(id).map_err(store_failure)?,
        _ => last_session(&store)?,
    };
    match is_experiment(&session) {
        true => predict::report::stored(&mut store, &session.id, &judged).map(Some),
        false => Ok(None),
    }
}

/// The report at the end of a session, or its figures as CSV.
pub(crate) fn of_session(
    store: &mut Store,
    session: &str,
    args: &BenchArgs,
) -> Result<(), Failure> {
    let title = store.session(session).map_err(store_failure)?.title;
    let bundle = store
        .bundle(&TrialFilter::of_session(session))
        .map_err(store_failure)?;
    if args.csv {
        let mut text = Vec::new();
        write_csv(&mut text, &bundle).map_err(|error| Failure::from_error(MISSING, &error))?;
        super::print(&String::from_utf8_lossy(&text))?;
    }
    let request = request(title, bundle, args.baseline.as_deref(), args.margin)?;
    if args.csv {
        let document =
            report(&request).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
        return write_files(&document, &args.output);
    }
    print(report(&request), &args.output).map(|_| ())
}

fn print(document: Result<Document, ReportError>, output: &Output) -> Result<Outcome, Failure> {
    let document = document.map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    emit(&document, output)?;
    Ok(Outcome::Done)
}

fn exported(path: &Path) -> Result<Bundle, Failure> {
    let name = name_of(path);
    let bundle = if path == Path::new("-") {
        import_jsonl(&name, std::io::stdin().lock())
    } else {
        let file = super::files::open(path)
            .map_err(|error| Failure::bad_request(format!("cannot read {name}: {error}")))?;
        import_jsonl(&name, BufReader::new(file))
    };
    bundle.map_err(|error| Failure::from_error(BAD_REQUEST, &error))
}

/// The trials of sessions by id, of the last one without.
fn stored(wanted: &[String], place: &place::Store) -> Result<(String, Bundle), Failure> {
    let mut store = open_store(place)?;
    let sessions = match wanted {
        [] => vec![last_session(&store)?],
        wanted => sessions(&store, wanted)?,
    };
    let title = match &sessions[..] {
        [only] if only.finished => only.title.clone(),
        [only] => {
            let filter = TrialFilter::of_session(&only.id);
            let there = store.trials(&filter).map_err(store_failure)?.len();
            let of = only
                .planned
                .map_or_else(String::new, |n| format!(" of {n}"));
            format!("{}, unfinished: {there}{of} trials", only.title)
        }
        several => {
            let ids: Vec<&str> = several
                .iter()
                .map(|session| id::short(&session.id))
                .collect();
            format!("Sessions {}", ids.join(", "))
        }
    };
    let filter = TrialFilter {
        sessions: sessions.iter().map(|s| s.id.clone()).collect(),
        ..TrialFilter::default()
    };
    let bundle = Bundle {
        sessions,
        ..store.bundle(&filter).map_err(store_failure)?
    };
    if bundle.trials.is_empty() {
        return Err(Failure::new(
            MISSING,
            "no trial of this was finished: there is nothing to report",
        ));
    }
    Ok((title, bundle))
}

/// A request with the baseline asked for; else the first cell when there are several.
fn request(
    title: String,
    bundle: Bundle,
    baseline: Option<&str>,
    margin: f64,
) -> Result<ReportRequest, Failure> {
    let trials = in_order_of_cells(&bundle.sessions, bundle.trials);
    let baseline = match baseline {
        Some(text) => Some(selector(text, &trials)?),
        None => first_of_several(&trials),
    };
    Ok(ReportRequest {
        environments: bundle.environments,
        baseline: baseline.map(Baseline::Cell),
        margin,
        ..ReportRequest::new(title, trials)
    })
}

fn first_of_several(trials: &[TrialRecord]) -> Option<Selector> {
    let first = trials.first()?;
    let label = &first.cell.label;
    trials
        .iter()
        .any(|trial| trial.cell.label != *label)
        .then(|| Selector::Label(label.clone()))
}

/// The order of execution is drawn by lot; a reader wants the order in which the cells were named. Cells that nobody
/// named, such as imported ones, come after those, as they came.
fn in_order_of_cells(sessions: &[Session], mut trials: Vec<TrialRecord>) -> Vec<TrialRecord> {
    let named: Vec<String> = sessions.iter().flat_map(labels).collect();
    let place = |trial: &TrialRecord| {
        let place = named.iter().position(|label| *label == trial.cell.label);
        place.unwrap_or(named.len())
    };
    trials.sort_by_cached_key(|trial| {
        (
            trial.profile.clone(),
            place(trial),
            trial.round,
            trial.order,
        )
    });
    trials
}

/// The labels of a session's cells in the order in which its command or its file has them.
fn labels(session: &Session) -> Vec<String> {
    if let Some(run) = StoredRun::of(session) {
        let cells = run.experiment.cells.into_iter();
        return cells.map(|cell| cell.label).collect();
    }
    bench::labels_of(session)
}
