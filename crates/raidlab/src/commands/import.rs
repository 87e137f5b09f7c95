//! `raidlab import`.
mod input;
mod known;

use super::print_json;
use crate::args::ImportArgs;
use crate::bench::store_failure;
use crate::exit::{Failure, Outcome};
use crate::place;
use crate::talk;
pub(super) use input::name_of;
use input::{InFile, once};
use known::Known;
use raidlab_core::words::count;
use raidlab_results::id;
use raidlab_results::import::Wanted;
use raidlab_results::store::{Store, StoreError};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) fn run(args: &ImportArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let wanted = args
        .format
        .as_deref()
        .map(str::parse::<Wanted>)
        .transpose()
        .map_err(Failure::bad_request)?;
    // All files are read before any is stored: an error in one imports nothing of it, and the user
    // sees it before half of the list is in.
    let files = once(&args.files)
        .into_iter()
        .map(|path| InFile::read(path, wanted, args))
        .collect::<Result<Vec<_>, _>>()?;
    let mut store = if args.dry_run {
        place_to_look(store)?
    } else {
        Some(Store::open(&store.to_write()?).map_err(store_failure)?)
    };
    let mut known = Known::of(store.as_ref(), &files)?;
    let mut imported = Vec::new();
    for file in files {
        let came = take(file, args, &mut store, &mut known)?;
        imported.push(json!({
            "file": came.name,
            "trials": came.added,
            "skipped": came.skipped,
            "sessions": came.sessions,
        }));
    }
    known.tell_of_the_same(args);
    if args.json {
        print_json(&imported)?;
    }
    Ok(Outcome::Done)
}

/// The store for a run that changes nothing: none when there is none yet, or one that a change would
/// bring up to date first.
fn place_to_look(store: &place::Store) -> Result<Option<Store>, Failure> {
    match Store::open_read_only(&store.path()?) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing { .. } | StoreError::Older { .. }) => Ok(None),
        Err(error) => Err(store_failure(error)),
    }
}

/// What came of a file.
struct Came {
    name: String,
    added: usize,
    skipped: usize,
    /// Those that have its trials, whether they were there before or not.
    sessions: BTreeSet<String>,
}

/// Stores what is new of a file, and tells of it.
fn take(
    file: InFile,
    args: &ImportArgs,
    store: &mut Option<Store>,
    known: &mut Known,
) -> Result<Came, Failure> {
    let name = name_of(&file.path);
    for remark in &file.remarks {
        talk::note(&format!("{name}: {remark}"));
    }
    let mut news = known.news(&name, file, args, store.as_ref())?;
    let mut added = news.bundle.trials.len();
    let mut finished = 0;
    if let (false, Some(store)) = (args.dry_run, store) {
        let came = store.import(&news.bundle).map_err(store_failure)?;
        // Another process may have been faster.
        news.skipped += came.skipped;
        added = came.trials;
        finished = came.finished;
        tell_of_others(&name, &came.others);
    }
    let new = news
        .bundle
        .sessions
        .iter()
        .map(|session| session.id.clone());
    news.sessions.extend(new);
    let verb = if args.dry_run {
        "would import"
    } else {
        "imported"
    };
    let before = match news.skipped {
        0 => String::new(),
        1 => ", 1 was there before".to_owned(),
        more => format!(", {more} were there before"),
    };
    // What reports and comparisons name them by.
    let ids: Vec<&str> = news.sessions.iter().map(|s| id::short(s)).collect();
    let session = match ids[..] {
        _ if args.dry_run => String::new(),
        [only] => format!(", session {only}"),
        [first, .., last] => format!(", {} sessions from {first} to {last}", ids.len()),
        [] => String::new(),
    };
    talk::note(&format!(
        "{name}: {verb} {}{before}{session}{}",
        count(added, "trial"),
        match finished {
            0 => String::new(),
            1 if ids.len() == 1 => ", which is finished with that".to_owned(),
            more => format!(", {} finished with that", count(more, "session")),
        }
    ));
    news.notes.iter().for_each(|note| talk::note(note));
    Ok(Came {
        name,
        added,
        skipped: news.skipped,
        sessions: news.sessions,
    })
}

/// Tells of trials that are kept as they are here, although the file has others under their ids.
fn tell_of_others(name: &str, others: &[String]) {
    if let [first, rest @ ..] = others {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        talk::warn(&format!(
            "{name}: trial {}{more} is here with another content, which was kept: one of the two was altered, or \
             made by another version of raidlab",
            id::short(first)
        ));
    }
}
