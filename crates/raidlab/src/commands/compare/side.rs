//! What a side of a comparison is made of.
use crate::bench::{open_store, store_failure};
use crate::commands::reference;
use crate::exit::Failure;
use crate::place;
use raidlab_results::record::TrialRecord;
use raidlab_results::report::labels;
use raidlab_results::store::{Bundle, Store, StoreError, TrialFilter};
use std::collections::BTreeSet;

/// `SESSION`, `SESSION:LABEL`, `STUDY` or `STUDY:ROW`, or of several of these by commas (labels may have some); `:LABEL` of all
/// sessions.
pub(super) fn side(
    text: &str,
    place: &place::Store,
    store: &mut Option<Store>,
) -> Result<Bundle, Failure> {
    let (names, label) = match text.split_once(':') {
        Some(("", label)) => return of_all_sessions(label, opened(place, store)?),
        Some((names, label)) => (names, Some(label)),
        None => (text, None),
    };
    let mut bundle = Bundle::default();
    let mut known = BTreeSet::new();
    let mut lack = None;
    for name in names.split(',') {
        let one = source(name, place, store)?;
        if !one
            .trials
            .iter()
            .all(|trial| known.insert(trial.id.clone()))
        {
            let message = format!("'{text}' names the trials of '{name}' twice");
            return Err(Failure::bad_request(message).remedy("name each session once"));
        }
        let mut own = one.trials.iter().map(|trial| &trial.cell.label);
        if label.is_some_and(|label| own.all(|own| own != label)) {
            lack.get_or_insert((name, labels_of(&one.trials)));
        }
        bundle.trials.extend(one.trials);
        bundle.sessions.extend(one.sessions);
        bundle.environments.extend(one.environments);
    }
    if let Some(label) = label {
        bundle.trials = called(label, bundle.trials, lack)?;
    }
    Ok(bundle)
}

/// The trials of the cells that are called `label`, by whoever ran them or by a report of all of them; `lack` is the first
/// session that has none of that name, with what it has.
fn called(
    label: &str,
    mut trials: Vec<TrialRecord>,
    lack: Option<(&str, BTreeSet<String>)>,
) -> Result<Vec<TrialRecord>, Failure> {
    let Some((session, mut known)) = lack else {
        trials.retain(|trial| trial.cell.label == label);
        return Ok(trials);
    };
    let told = labels(&trials);
    let of_label = told.iter().filter(|(told, _)| told == label);
    let ids: BTreeSet<String> = of_label
        .flat_map(|(_, ids)| ids)
        .map(|id| (*id).to_owned())
        .collect();
    let ran_as = trials.iter().any(|trial| trial.cell.label == label);
    if ids.is_empty() || ran_as {
        if !ran_as {
            known.extend(told.into_iter().map(|(label, _)| label));
        }
        let known: Vec<String> = known.into_iter().collect();
        let message = format!("{session} has no cell '{label}'");
        return Err(Failure::bad_request(message).remedy(format!("it has: {}", known.join("; "))));
    }
    trials.retain(|trial| ids.contains(&trial.id));
    Ok(trials)
}

/// What the cells of trials were run as.
fn labels_of(trials: &[TrialRecord]) -> BTreeSet<String> {
    trials
        .iter()
        .map(|trial| trial.cell.label.clone())
        .collect()
}

/// The store, opened when the first is asked for.
fn opened<'a>(
    place: &place::Store,
    store: &'a mut Option<Store>,
) -> Result<&'a mut Store, Failure> {
    Ok(match store {
        Some(store) => store,
        None => store.insert(open_store(place)?),
    })
}

/// The trials of all cells that are called `label`.
fn of_all_sessions(label: &str, store: &mut Store) -> Result<Bundle, Failure> {
    // A label is no pattern here: what would be one stands for itself.
    let mut pattern = String::new();
    for letter in label.chars() {
        match letter {
            '*' | '?' | '[' => pattern.extend(['[', letter, ']']),
            letter => pattern.push(letter),
        }
    }
    let filter = TrialFilter {
        label: Some(pattern),
        ..TrialFilter::default()
    };
    let bundle = store.bundle(&filter).map_err(store_failure)?;
    if bundle.trials.is_empty() {
        return Err(
            Failure::bad_request(format!("no session has a cell '{label}'")).remedy(
                "'raidlab list' shows the sessions, 'raidlab show SESSION' the cells of one",
            ),
        );
    }
    Ok(bundle)
}

/// The trials of a session or study.
fn source(name: &str, place: &place::Store, store: &mut Option<Store>) -> Result<Bundle, Failure> {
    if let Ok(study) = reference::find(name) {
        return Ok(Bundle {
            trials: study.trials(),
            ..Bundle::default()
        });
    }
    let store = opened(place, store)?;
    let session = match store.find_session(name) {
        Ok(session) => session,
        Err(error) => return Err(no_source(name, store, error)),
    };
    store
        .bundle(&TrialFilter::of_session(&session.id))
        .map_err(store_failure)
}

/// Why there is no such session, and what would do.
fn no_source(name: &str, store: &mut Store, error: StoreError) -> Failure {
    let no_session = matches!(error, StoreError::NoSuchSession(_) | StoreError::NotAnId(_));
    if no_session && of_all_sessions(name, store).is_ok() {
        return Failure::bad_request(format!("no session '{name}'")).remedy(format!(
            "':{name}' means the cells of that name, of all sessions"
        ));
    }
    match error {
        StoreError::NotAnId(_) => {
            Failure::bad_request(format!("'{name}' is neither a session nor a study"))
                .remedy("'raidlab list' shows the sessions, 'raidlab reference list' the studies")
        }
        other => store_failure(other),
    }
}
