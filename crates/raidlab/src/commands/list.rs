//! `raidlab list`.
use super::{print, print_folded, print_json};
use crate::args::ListArgs;
use crate::bench::store_failure;
use crate::exit::{Failure, Outcome};
use crate::place;
use crate::screen;
use crate::talk;
use raidlab_results::id;
use raidlab_results::store::{SessionFilter, SessionInfo, Store, TrialFilter};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) fn run(args: &ListArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let sessions = match Store::open_read_only(&store.path()?) {
        Ok(store) => matching(&store, args)?,
        Err(raidlab_results::store::StoreError::Missing { .. }) if !store.is_given() => Vec::new(),
        Err(error) => return Err(store_failure(error)),
    };
    if args.json {
        let listed: Vec<_> = sessions.iter().map(listed).collect();
        print_json(&listed)?;
        return Ok(Outcome::Done);
    }
    if args.names {
        print(&names(&sessions))?;
        return Ok(Outcome::Done);
    }
    if sessions.is_empty() {
        talk::note(&none_such(args));
        return Ok(Outcome::Done);
    }
    print_folded(&talk::plain(&table(&sessions, screen::width())))?;
    Ok(Outcome::Done)
}

/// What is to be done where nothing is listed.
fn none_such(args: &ListArgs) -> String {
    let of = [
        args.profile
            .as_ref()
            .map(|name| format!("of profile '{name}'")),
        args.label
            .as_ref()
            .map(|label| format!("with a cell that matches '{label}'")),
    ];
    let of: Vec<String> = of.into_iter().flatten().collect();
    if of.is_empty() {
        return "no sessions; 'raidlab bench PATH' measures, 'raidlab run FILE --on sim' predicts, \
                'raidlab import FILE' reads other tools' output"
            .to_owned();
    }
    format!(
        "no sessions {}; 'raidlab list' shows all of them",
        of.join(" ")
    )
}

/// `last`, and the sessions by the beginnings of their ids, the last one first: what shells complete.
fn names(sessions: &[SessionInfo]) -> String {
    let digits = id::digits_needed(sessions.iter().map(|info| info.session.id.as_str()));
    let line = |name: &str, info: &SessionInfo| {
        format!("{name}\t{}\n", talk::one_line(&info.session.title))
    };
    let last = sessions.last().map(|info| line("last", info));
    let each = sessions.iter().rev().map(|info| {
        let id = &info.session.id;
        line(&id[..digits.min(id.len())], info)
    });
    last.into_iter().chain(each).collect()
}

/// What a script wants to know of a session; `raidlab show --json` has its plan and its trials.
fn listed(info: &SessionInfo) -> serde_json::Value {
    json!({
        "id": info.session.id,
        "title": info.session.title,
        "created": info.session.created,
        "state": state(info),
        "process": info.running,
        "places": info.places,
        "profiles": info.profiles,
        "trials": info.complete(),
        "failed": info.failed,
        "valid": info.valid,
        "planned": info.session.planned,
        "command": info.session.command,
    })
}

fn state(info: &SessionInfo) -> &'static str {
    match (info.session.finished, info.running) {
        (_, Some(_)) => "running",
        (true, None) => "finished",
        (false, None) => "unfinished",
    }
}

fn matching(store: &Store, args: &ListArgs) -> Result<Vec<SessionInfo>, Failure> {
    let filter = SessionFilter {
        profile: args.profile.clone(),
        ..SessionFilter::default()
    };
    let sessions = store.sessions(&filter).map_err(store_failure)?;
    let Some(label) = &args.label else {
        return Ok(sessions);
    };
    let filter = TrialFilter {
        label: Some(label.clone()),
        ..TrialFilter::default()
    };
    let with_label: BTreeSet<String> = store
        .trials(&filter)
        .map_err(store_failure)?
        .into_iter()
        .map(|trial| trial.session)
        .collect();
    Ok(sessions
        .into_iter()
        .filter(|info| with_label.contains(&info.session.id))
        .collect())
}

/// A line a session where all lines fit, and else the titles on lines of their own.
fn table(sessions: &[SessionInfo], width: usize) -> String {
    let digits = id::digits_needed(sessions.iter().map(|info| info.session.id.as_str()));
    let lines: Vec<(String, String)> = sessions.iter().map(|info| line(info, digits)).collect();
    let columns = |text: &str| text.chars().count();
    let facts = lines
        .iter()
        .map(|(facts, _)| columns(facts))
        .max()
        .unwrap_or(0);
    let titles = lines
        .iter()
        .map(|(_, title)| columns(title))
        .max()
        .unwrap_or(0);
    let one = facts + 2 + titles <= width;
    let told = lines.iter().map(|(line, title)| match one {
        true => format!("{line:<facts$}  {title}\n"),
        false => format!("{line}\n{:indent$}{title}\n", "", indent = digits + 2),
    });
    told.collect()
}

/// What is known of a session, and its title.
fn line(info: &SessionInfo, digits: usize) -> (String, String) {
    let state = match info.running {
        Some(process) => format!("{} ({process})", state(info)),
        None => state(info).to_owned(),
    };
    let trials = match info.session.planned {
        Some(planned) if !info.session.finished => format!("{} of {planned}", info.complete()),
        _ => info.complete().to_string(),
    };
    // Kept, but no trial that the session has: it is run anew.
    let failed = match info.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let when = info
        .session
        .created
        .get(..16)
        .unwrap_or(&info.session.created)
        .replace('T', " ");
    let line = format!(
        "{}  {when}  {state:<10}  {trials:>9} {}{failed}  {}",
        &info.session.id[..digits.min(info.session.id.len())],
        match (trials.as_str(), info.failed) {
            ("1", 0) => "trial ",
            ("1", _) => "trial",
            _ => "trials",
        },
        info.profiles.join(","),
    );
    (talk::one_line(&line), talk::one_line(&info.session.title))
}
