//! `raidlab remove`.
use crate::args::RemoveArgs;
use crate::bench::store_failure;
use crate::exit::{Failure, Outcome, REFUSED};
use crate::place;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::id;
use raidlab_results::store::Store;
use std::io::{BufRead, IsTerminal};

pub(crate) fn run(args: &RemoveArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let path = store.path()?;
    // Not made when it is not there: removing from nothing is a mistake.
    Store::open_read_only(&path).map_err(store_failure)?;
    let mut store = Store::open(&path).map_err(store_failure)?;
    let sessions = super::show::sessions(&store, &args.sessions)?;
    for session in &sessions {
        talk::note(&format!(
            "{}  {}  {}",
            id::short(&session.id),
            session.created,
            session.title
        ));
    }
    if !args.yes && !confirmed()? {
        talk::note("nothing was removed");
        return Ok(Outcome::Done);
    }
    for session in sessions {
        let removed = store.remove_session(&session.id).map_err(store_failure)?;
        talk::note(&format!(
            "removed session {} with {}",
            id::short(&session.id),
            count(removed.trials, "trial")
        ));
    }
    Ok(Outcome::Done)
}

fn confirmed() -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(
            Failure::new(REFUSED, "results are removed only when that is confirmed")
                .remedy("add --yes"),
        );
    }
    talk::note("remove these for good? [y/N]");
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::bad_request(format!("no answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
