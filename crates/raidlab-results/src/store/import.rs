//! What comes from elsewhere: the output of tools, and exports of other stores.
use super::rows::append;
use super::write::{Appended, Failure, add_note, expect_free, insert_session, session_is_there};
use super::{Bundle, Imported, Store, StoreError, check_bundle, check_session};
use crate::record::{Session, TrialRecord};
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::collections::BTreeSet;

impl Store {
    /// Stores what was imported: all of it or, on an error, nothing. Trials that are in the store
    /// already are skipped and counted, so that importing the same file twice adds nothing; a
    /// session of which all trials are skipped is not added either. What is told of a session that is there
    /// is brought up to the bundle where that came further, unless a process is at work on it.
    ///
    /// # Errors
    /// When the bundle does not fit together, a record must not be stored, or the store cannot be
    /// written.
    pub fn import(&mut self, bundle: &Bundle) -> Result<Imported, StoreError> {
        check_bundle(bundle)?;
        self.writing(|t| {
            let mut imported = Imported::default();
            let mut new = Vec::new();
            for trial in &bundle.trials {
                match is_there(t, trial)? {
                    None => new.push(trial),
                    Some(is_same) => {
                        imported.skipped += 1;
                        if !is_same {
                            imported.others.push(trial.id.clone());
                        }
                    }
                }
            }
            let needed: BTreeSet<&str> = new.iter().map(|t| t.session.as_str()).collect();
            let used: BTreeSet<&str> = bundle.trials.iter().map(|t| t.session.as_str()).collect();
            for session in &bundle.sessions {
                let id = session.id.as_str();
                if session_is_there(t, id)? {
                    if follow(t, session, needed.contains(id))? {
                        imported.finished += 1;
                    }
                } else if needed.contains(id) || !used.contains(id) {
                    let (created_us, plan) = check_session(session)?;
                    insert_session(t, session, created_us, plan.as_deref())?;
                    imported.sessions += 1;
                }
            }
            for trial in new {
                let environment = trial.environment.as_ref();
                let environment = environment.and_then(|d| bundle.environments.get(d));
                match append(t, trial, environment)? {
                    Appended::Added => imported.trials += 1,
                    Appended::Skipped => imported.skipped += 1,
                }
            }
            Ok(imported)
        })
    }
}

/// Whether a trial of this id is in the store, and if so, whether it is this one. The same run may have been
/// imported into another session, from another directory.
fn is_there(t: &Transaction<'_>, trial: &TrialRecord) -> Result<Option<bool>, Failure> {
    let kept: Option<String> = t
        .prepare_cached("SELECT record FROM trials WHERE id = ?")?
        .query_row([&trial.id], |row| row.get(0))
        .optional()?;
    Ok(kept.map(|kept| {
        serde_json::from_str(&kept).is_ok_and(|kept: TrialRecord| {
            let kept = TrialRecord {
                session: trial.session.clone(),
                provenance: trial.provenance.clone(),
                ..kept
            };
            kept == *trial
        })
    }))
}

/// Brings a session that is there up to one that came with more: with trials that are new here, or with its end.
/// Returns whether it is finished by that.
fn follow(t: &Transaction<'_>, came: &Session, has_new: bool) -> Result<bool, Failure> {
    match expect_free(t, &came.id) {
        Err(Failure::Store(error)) if matches!(*error, StoreError::SessionRunning { .. }) => {
            return Ok(false);
        }
        free => free?,
    }
    let finished: bool = t
        .prepare_cached("SELECT finished FROM sessions WHERE id = ?")?
        .query_row([&came.id], |row| row.get(0))?;
    let ends = came.finished && !finished;
    if !(ends || has_new) {
        return Ok(false);
    }
    let (_, plan) = check_session(came)?;
    t.execute(
        "UPDATE sessions SET plan = coalesce(?2, plan), planned = coalesce(?3, planned), finished = ?4,
             runner = NULL WHERE id = ?1",
        params![came.id, plan, came.planned, came.finished || finished],
    )?;
    for note in &came.notes {
        let mut known = t.prepare_cached("SELECT 1 FROM notes WHERE session = ? AND note = ?")?;
        if !known.exists([&came.id, note])? {
            add_note(t, &came.id, note)?;
        }
    }
    Ok(ends)
}
