//! Going on with a session that was interrupted.
use super::plan::Plan;
use super::session::store_failure;
use crate::args::BenchArgs;
use crate::commands::quoted;
use crate::exit::{Failure, MISSING};
use crate::place;
use crate::predict::StoredRun;
use crate::signals::Stop;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::id;
use raidlab_results::record::Session;
use raidlab_results::store::Store;
use std::io::IsTerminal;

/// A session to be resumed, with its plan as it was.
pub(crate) struct Resumed {
    pub(crate) session: Session,
    pub(crate) plan: Plan,
}

/// The session that `--resume` names; `None` without the option.
pub(crate) fn asked(args: &BenchArgs, place: &place::Store) -> Result<Option<Resumed>, Failure> {
    let Some(wanted) = &args.resume else {
        return Ok(None);
    };
    if !args.paths.is_empty() {
        return Err(Failure::bad_request(
            "--resume goes on with what was planned: leave the paths out",
        )
        .remedy(format!(
            "put --resume last, or write 'raidlab bench --resume {wanted}'"
        )));
    }
    let store = super::open_store(place)?;
    let session = if wanted.is_empty() {
        match newest_unfinished(&store)? {
            Some(session) => session,
            None => return Err(nothing_unfinished(&store)?),
        }
    } else {
        store.find_session(wanted).map_err(store_failure)?
    };
    if session.finished {
        return Err(Failure::bad_request(format!(
            "session {} is finished",
            id::short(&session.id)
        ))
        .remedy(format!(
            "'raidlab report {}' prints it",
            id::short(&session.id)
        )));
    }
    if let Some(run) = StoredRun::of(&session) {
        return Err(Failure::bad_request(format!(
            "session {} is an experiment",
            id::short(&session.id)
        ))
        .remedy(format!("'{}' goes on with it", goes_on(&run))));
    }
    let plan = plan_of(&session)?.ok_or_else(|| {
        Failure::bad_request(format!(
            "session {} was not measured here",
            id::short(&session.id)
        ))
    })?;
    Ok(Some(Resumed { session, plan }))
}

/// The command that goes on with an experiment.
fn goes_on(run: &StoredRun) -> String {
    let on = run.on.split(',').next().unwrap_or(&run.on);
    format!("raidlab run {} --on {on}", quoted(&run.file))
}

/// Why there is nothing to go on with, and what else there is.
fn nothing_unfinished(store: &Store) -> Result<Failure, Failure> {
    let unfinished = store.unfinished_sessions().map_err(store_failure)?;
    let mut newest = unfinished.into_iter().rev();
    let experiment = newest.find_map(|info| {
        let run = StoredRun::of(&info.session)?;
        info.running.is_none().then_some((info.session.id, run))
    });
    Ok(match experiment {
        Some((session, run)) => Failure::bad_request("there is no unfinished session of bench")
            .remedy(format!(
                "session {} is an experiment: '{}' goes on with it",
                id::short(&session),
                goes_on(&run)
            )),
        None => Failure::bad_request("there is no unfinished session")
            .remedy("'raidlab list' shows all"),
    })
}

/// The labels of the places of a session in the order in which they were named; none of a session that is none of
/// `bench`.
pub(crate) fn labels_of(session: &Session) -> Vec<String> {
    let plan = plan_of(session).ok().flatten();
    let arms = plan.into_iter().flat_map(|plan| plan.arms);
    arms.map(|arm| arm.label).collect()
}

fn plan_of(session: &Session) -> Result<Option<Plan>, Failure> {
    session
        .plan
        .as_ref()
        .map(|plan| serde_json::from_value(plan.clone()))
        .transpose()
        .map_err(|error| {
            Failure::new(
                MISSING,
                format!(
                    "the plan of session {} cannot be read: {error}",
                    id::short(&session.id)
                ),
            )
        })
}

/// The unfinished session that came into the store last and that no process is at work on.
fn newest_unfinished(store: &Store) -> Result<Option<Session>, Failure> {
    let unfinished = store.unfinished_sessions().map_err(store_failure)?;
    Ok(unfinished
        .into_iter()
        .filter(|info| info.running.is_none() && info.session.plan.is_some())
        .map(|info| info.session)
        // Experiments are gone on with by 'raidlab run'.
        .rfind(|session| StoredRun::of(session).is_none()))
}

/// An unfinished session of the very same plan: asked about on a terminal, mentioned elsewhere. `None` also when a
/// signal came instead of an answer.
pub(crate) fn offered(store: &Store, plan: &Plan, stop: &Stop) -> Result<Option<Session>, Failure> {
    let unfinished = store.unfinished_sessions().map_err(store_failure)?;
    let same = unfinished.into_iter().rev().find(|info| {
        info.running.is_none()
            && plan_of(&info.session)
                .ok()
                .flatten()
                .is_some_and(|stored| stored == *plan)
    });
    let Some(info) = same else { return Ok(None) };
    let short = id::short(&info.session.id).to_owned();
    let mut done = match info.session.planned {
        Some(planned) => format!("{} of {}", info.complete(), count(planned, "trial")),
        None => count(info.complete(), "trial"),
    };
    if info.failed > 0 {
        done.push_str(&format!(" ({} failed)", info.failed));
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        talk::note(&format!(
            "the same was interrupted after {done}: 'raidlab bench --resume {short}' goes on with it; this begins anew"
        ));
        return Ok(None);
    }
    talk::note(&format!(
        "the same was interrupted after {done} (session {short}). Go on with it? [Y/n]"
    ));
    let answer = stop
        .or_line()
        .map_err(|error| Failure::bad_request(format!("no answer: {error}")))?;
    let Some(answer) = answer else {
        return Ok(None);
    };
    Ok((!matches!(answer.trim(), "n" | "N" | "no")).then_some(info.session))
}
