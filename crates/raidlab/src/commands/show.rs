//! `raidlab show`.
use super::{print_json, print_text};
use crate::args::ShowArgs;
use crate::bench::{open_store, store_failure};
use crate::exit::{BAD_REQUEST, Failure, Outcome};
use crate::talk::{one_line, plain};
use crate::{place, screen};
use raidlab_core::words::count;
use raidlab_results::id;
use raidlab_results::record::{Explained, PhaseRecord, Session, Status, TrialRecord, Unit};
use raidlab_results::store::{Store, StoreError, TrialFilter};
use serde_json::{Value, json};

pub(crate) fn run(args: &ShowArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let store = open_store(store)?;
    let (session, trials) = match &args.id {
        None => {
            let session = last_session(&store)?;
            let trials = of_session(&store, &session)?;
            (session, trials)
        }
        Some(wanted) => find(&store, wanted)?,
    };
    let mut environments = serde_json::Map::new();
    for digest in trials
        .iter()
        .filter_map(|trial| trial.environment.as_deref())
    {
        if !environments.contains_key(digest)
            && let Some(environment) = store.environment(digest).map_err(store_failure)?
        {
            environments.insert(digest.to_owned(), environment);
        }
    }
    if args.json {
        print_json(&json!({ "session": session, "trials": trials, "environments": environments }))?;
    } else {
        print_text(&folded(&plain(&text(&session, &trials, &environments))))?;
    }
    Ok(Outcome::Done)
}

/// Folded to the screen, but for commands, which are there to be copied.
fn folded(text: &str) -> String {
    let width = screen::width();
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| match line.trim_start().split_once(' ') {
            Some(("command" | "repeat", _)) => line.to_owned(),
            _ => screen::folded(line, width),
        })
        .collect()
}

/// The session that came into the store last.
pub(crate) fn last_session(store: &Store) -> Result<Session, Failure> {
    store.find_session("last").map_err(|error| match error {
        StoreError::NoSuchSession(_) => Failure::new(BAD_REQUEST, "the store is empty")
            .remedy("measure something with 'raidlab bench PATH' first"),
        other => store_failure(other),
    })
}

/// Sessions by id or as `last~1`, as they were named. One that is named twice is meant once.
pub(super) fn sessions(store: &Store, wanted: &[String]) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    for name in wanted {
        let session = store.find_session(name).map_err(store_failure)?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

fn of_session(store: &Store, session: &Session) -> Result<Vec<TrialRecord>, Failure> {
    store
        .trials(&TrialFilter::of_session(&session.id))
        .map_err(store_failure)
}

fn find(store: &Store, wanted: &str) -> Result<(Session, Vec<TrialRecord>), Failure> {
    match store.find_session(wanted) {
        Ok(session) => {
            let trials = of_session(store, &session)?;
            Ok((session, trials))
        }
        Err(StoreError::NoSuchSession(_)) => {
            let trial = store.find_trial(wanted).map_err(|error| match error {
                StoreError::NoSuchTrial(_) => {
                    Failure::bad_request(format!("no session and no trial '{wanted}'"))
                        .remedy("'raidlab list' shows the sessions")
                }
                other => store_failure(other),
            })?;
            Ok((
                store.session(&trial.session).map_err(store_failure)?,
                vec![trial],
            ))
        }
        Err(error) => Err(store_failure(error)),
    }
}

/// A line of its own, whatever is in it: a name that ends it would write the next as it likes.
fn line(out: &mut String, text: String) {
    out.push_str(&one_line(&text));
    out.push('\n');
}

fn text(
    session: &Session,
    trials: &[TrialRecord],
    environments: &serde_json::Map<String, Value>,
) -> String {
    let mut out = String::new();
    let state = if session.finished {
        "finished"
    } else {
        "unfinished"
    };
    line(&mut out, format!("session {} ({state})", session.id));
    line(&mut out, format!("  {}", session.title));
    line(&mut out, format!("  begun    {}", session.created));
    line(&mut out, format!("  command  {}", session.command));
    for note in &session.notes {
        line(&mut out, format!("  note     {note}"));
    }
    for trial in trials {
        one_trial(&mut out, trial);
    }
    for (digest, environment) in environments {
        out.push('\n');
        line(&mut out, format!("environment {}", id::short(digest)));
        indented(&mut out, environment, 2);
    }
    out
}

fn one_trial(out: &mut String, trial: &TrialRecord) {
    out.push('\n');
    let head = format!(
        "trial {}  {} · {} · round {} · order {}",
        id::short(&trial.id),
        trial.cell.label,
        trial.profile,
        // Counted from 1, as while it was measured.
        trial.round + 1,
        trial.order + 1
    );
    line(out, head);
    if let Status::Failed { reason } = &trial.status {
        line(out, format!("  FAILED   {reason}"));
    }
    if let Some(command) = &trial.command {
        line(out, format!("  repeat   {command}"));
    }
    for flag in &trial.flags {
        line(out, format!("  {}", marked(flag)));
    }
    for phase in &trial.phases {
        line(out, format!("  {:<20} {}", phase.phase, rate(phase)));
        if let Some(course) = raidlab_results::report::course_of(phase) {
            line(out, format!("    rate   {course}"));
        }
        if let Some(explained) = &phase.explained {
            explain(out, explained, phase.elapsed_ns.unwrap_or(0));
        }
        for flag in &phase.flags {
            line(out, format!("    {}", marked(flag)));
        }
    }
}

/// What limited a simulated phase: the sentence, how busy each resource was, what each disk did.
fn explain(out: &mut String, explained: &Explained, elapsed_ns: u64) {
    line(out, format!("    limit  {}", explained.why));
    let share = |part: u64, of: f64| 100.0 * part as f64 / of.max(1.0);
    for resource in &explained.resources {
        let all = elapsed_ns as f64 * f64::from(resource.units.max(1));
        let parts: Vec<String> = resource
            .parts
            .iter()
            .map(|part| format!("{} {:.0} %", part.name, share(part.ns, all)))
            .collect();
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        let busy = share(resource.busy_ns, all);
        line(
            out,
            format!("    busy   {} {busy:.0} %{parts}", resource.name),
        );
    }
    for member in &explained.members {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let moved = format!(
            "    moved  {} {}: {}, {:.1} MiB; {}, {:.1} MiB",
            member.disk,
            member.model,
            count(member.reads, "read"),
            mib(member.read_bytes),
            count(member.writes, "write"),
            mib(member.written_bytes)
        );
        line(out, moved);
    }
}

fn marked(flag: &raidlab_core::flag::Flag) -> String {
    format!("{} {flag}", if flag.voids { "VOID  " } else { "remark" })
}

fn rate(phase: &PhaseRecord) -> String {
    match (phase.rate, phase.unit) {
        (None, _) => "no figure".into(),
        (Some(rate), Unit::BytesPerSecond) => format!("{:.1} MiB/s", rate / 1_048_576.0),
        (Some(rate), Unit::PerSecond) => format!("{rate:.1} /s"),
        (Some(seconds), Unit::Seconds) => format!("{seconds:.3} s"),
        (Some(percent), Unit::Percent) => format!("{percent:.1} %"),
    }
}

/// A JSON value as an indented outline; unknown values are left out.
fn indented(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(_, field)| !field.is_null()) {
                leaf_or_branch(out, name, field, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                leaf_or_branch(out, "-", item, depth);
            }
        }
        other => {
            line(out, format!("{:depth$}{other}", ""));
        }
    }
}

fn leaf_or_branch(out: &mut String, name: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(_) | Value::Array(_) => {
            line(out, format!("{:depth$}{name}", ""));
            indented(out, value, depth + 2);
        }
        Value::String(text) if text.contains('\n') => {
            line(out, format!("{:depth$}{name}:", ""));
            for part in text.lines() {
                line(out, format!("{:depth$}  {part}", ""));
            }
        }
        Value::String(text) => {
            line(out, format!("{:depth$}{name}: {text}", ""));
        }
        other => {
            line(out, format!("{:depth$}{name}: {other}", ""));
        }
    }
}
