//! Writing: each call is one transaction, which is on the medium when the call returns.
use super::check::{bad, stored_form};
use super::rows::append;
use super::runner::Runner;
use super::{Store, StoreError, check_session, environment_digest};
use crate::id;
use crate::record::{Session, TrialRecord};
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde_json::Value;
use std::borrow::Cow;

/// What became of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the store now.
    Added,
    /// The same record was in the store before; nothing was changed.
    Skipped,
}

/// What a removal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Trials removed with the session.
    pub trials: usize,
    /// Environments removed that no other trial refers to.
    pub environments: usize,
}

impl Store {
    /// Stores a session that begins now. When it is unfinished, this process is noted as the one at
    /// work on it.
    ///
    /// # Errors
    /// When it is in the store already, must not be stored, or the store cannot be written.
    pub fn begin_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let (created_us, plan) = check_session(session)?;
        self.writing(|t| {
            if session_is_there(t, &session.id)? {
                return Err(StoreError::SessionExists(session.id.clone()).into());
            }
            insert_session(t, session, created_us, plan.as_deref())?;
            if !session.finished {
                set_runner(t, &session.id)?;
            }
            Ok(())
        })
    }

    /// Takes over a session that was interrupted. One that had ended is unfinished again.
    ///
    /// # Errors
    /// When another process is at work on it, there is none, or the store cannot be written.
    pub fn resume_session(&mut self, id: &str) -> Result<(), StoreError> {
        self.writing(|t| {
            expect_free(t, id)?;
            t.execute("UPDATE sessions SET finished = 0 WHERE id = ?", [id])?;
            Ok(set_runner(t, id)?)
        })
    }

    /// Stores a trial. When this returns, the trial is on the medium.
    ///
    /// With an `environment` the record refers to its digest
    /// ([`environment_digest`]), which [`TrialRecord::environment`] may hold or leave out; equal
    /// environments are stored once. Without one, the record may refer to a stored one.
    ///
    /// # Errors
    /// When the session or the environment is not in the store, the record must not be stored (a
    /// figure that is not a number, a time that is not RFC 3339), another one has its identifier,
    /// or the store cannot be written.
    pub fn append_trial(
        &mut self,
        trial: &TrialRecord,
        environment: Option<&Value>,
    ) -> Result<Appended, StoreError> {
        let mut trial = Cow::Borrowed(trial);
        if let Some(environment) = environment {
            let digest = environment_digest(environment);
            match &trial.environment {
                None => trial.to_mut().environment = Some(digest),
                Some(given) if *given == digest => {}
                Some(given) => {
                    let reason = format!("refers to the environment {given}, not to {digest}");
                    return Err(bad(&format!("trial {}", id::short(&trial.id)), reason));
                }
            }
            stored_form("environment", environment)?;
        }
        self.writing(|t| append(t, &trial, environment))
    }

    /// Stores several trials at once, all of them or, on an error, none: one wait for the medium instead
    /// of one for each. When this returns, they are on the medium.
    ///
    /// # Errors
    /// As [`Self::append_trial`], for any of them.
    pub fn append_trials(
        &mut self,
        trials: &[TrialRecord],
        environment: &Value,
    ) -> Result<(), StoreError> {
        let digest = environment_digest(environment);
        stored_form("environment", environment)?;
        for trial in trials {
            if trial.environment.as_ref() != Some(&digest) {
                let reason = format!("does not refer to the environment {digest}");
                return Err(bad(&format!("trial {}", id::short(&trial.id)), reason));
            }
        }
        self.writing(|t| {
            for trial in trials {
                append(t, trial, Some(environment))?;
            }
            Ok(())
        })
    }

    /// Marks a session as ended: nothing is left to resume.
    ///
    /// # Errors
    /// When there is none, or the store cannot be written.
    pub fn finish_session(&mut self, id: &str) -> Result<(), StoreError> {
        self.writing(|t| {
            let query = "UPDATE sessions SET finished = 1, runner = NULL WHERE id = ?";
            match t.execute(query, [id])? {
                0 => Err(StoreError::NoSuchSession(id.to_owned()).into()),
                _ => Ok(()),
            }
        })
    }

    /// Keeps another plan with a session.
    ///
    /// # Errors
    /// When there is none, or the store cannot be written.
    pub fn replan(&mut self, id: &str, plan: &Value) -> Result<(), StoreError> {
        self.writing(|t| {
            let query = "UPDATE sessions SET plan = ? WHERE id = ?";
            match t.execute(query, [&plan.to_string(), id])? {
                0 => Err(StoreError::NoSuchSession(id.to_owned()).into()),
                _ => Ok(()),
            }
        })
    }

    /// Adds a note to a session.
    ///
    /// # Errors
    /// When there is none, or the store cannot be written.
    pub fn annotate(&mut self, session: &str, note: &str) -> Result<(), StoreError> {
        self.writing(|t| {
            expect_session(t, session)?;
            Ok(add_note(t, session, note)?)
        })
    }

    /// Removes a session with its trials and the environments that nothing else refers to. Asking
    /// the user is the caller's part.
    ///
    /// # Errors
    /// When there is none, another process is at work on it, or the store cannot be written.
    pub fn remove_session(&mut self, id: &str) -> Result<Removed, StoreError> {
        self.writing(|t| {
            expect_free(t, id)?;
            let query = "SELECT count(*) FROM trials WHERE session = ?";
            let trials: u32 = t.query_row(query, [id], |row| row.get(0))?;
            t.execute("DELETE FROM sessions WHERE id = ?", [id])?;
            let environments = t.execute(
                "DELETE FROM environments WHERE NOT EXISTS
                 (SELECT 1 FROM trials AS t WHERE t.environment = environments.digest)",
                [],
            )?;
            Ok(Removed {
                trials: trials as usize,
                environments,
            })
        })
    }

    /// Runs `write` in a transaction and commits it; an error undoes all of it.
    pub(super) fn writing<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let run = |connection: &mut rusqlite::Connection| {
            // The write lock at once: two that read first and then want to write would block each
            // other, and SQLite would fail one of them without waiting.
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = write(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        match run(&mut self.connection) {
            Ok(value) => Ok(value),
            Err(Failure::Store(error)) => Err(*error),
            Err(Failure::Sqlite(error)) => Err(StoreError::of_sqlite(&self.path, self.busy, error)),
        }
    }

    /// Runs several reads on one state of the store.
    pub(crate) fn in_one_view<T, E: From<StoreError>>(
        &mut self,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.sql(|c| c.execute_batch("BEGIN"))?;
        let value = read(self);
        let ended = self.sql(|c| c.execute_batch("ROLLBACK"));
        // The first error counts: a severe one has ended the transaction already.
        let value = value?;
        ended?;
        Ok(value)
    }
}

/// An error within a transaction.
pub(super) enum Failure {
    Store(Box<StoreError>),
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) fn session_is_there(t: &Transaction<'_>, id: &str) -> rusqlite::Result<bool> {
    t.prepare_cached("SELECT 1 FROM sessions WHERE id = ?")?
        .exists([id])
}

pub(super) fn expect_session(t: &Transaction<'_>, id: &str) -> Result<(), Failure> {
    if session_is_there(t, id)? {
        Ok(())
    } else {
        Err(StoreError::NoSuchSession(id.to_owned()).into())
    }
}

/// The session is there and no other process is at work on it.
pub(super) fn expect_free(t: &Transaction<'_>, id: &str) -> Result<(), Failure> {
    let query = "SELECT runner FROM sessions WHERE id = ?";
    let runner: Option<Option<String>> = t.query_row(query, [id], |row| row.get(0)).optional()?;
    let runner = runner.ok_or_else(|| StoreError::NoSuchSession(id.to_owned()))?;
    let other = runner
        .as_deref()
        .and_then(Runner::parse)
        .filter(|r| r.process != std::process::id() && r.is_alive());
    match other {
        None => Ok(()),
        Some(other) => Err(StoreError::SessionRunning {
            session: id.to_owned(),
            process: other.process,
        }
        .into()),
    }
}

fn set_runner(t: &Transaction<'_>, id: &str) -> rusqlite::Result<()> {
    let runner = Runner::current().map(|r| r.to_string());
    t.execute(
        "UPDATE sessions SET runner = ? WHERE id = ?",
        params![runner, id],
    )?;
    Ok(())
}

pub(super) fn insert_session(
    t: &Transaction<'_>,
    session: &Session,
    created_us: i64,
    plan: Option<&str>,
) -> rusqlite::Result<()> {
    t.execute(
        "INSERT INTO sessions
             (id, title, created, created_us, command, raidlab, plan, planned, finished)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            session.id,
            session.title,
            session.created,
            created_us,
            session.command,
            session.raidlab,
            plan,
            session.planned,
            session.finished
        ],
    )?;
    for note in &session.notes {
        add_note(t, &session.id, note)?;
    }
    Ok(())
}

/// Adds a note behind those that a session has.
pub(super) fn add_note(t: &Transaction<'_>, session: &str, note: &str) -> rusqlite::Result<()> {
    t.prepare_cached(
        "INSERT INTO notes (session, position, note)
         SELECT ?1, coalesce(max(position) + 1, 0), ?2 FROM notes WHERE session = ?1",
    )?
    .execute([session, note])?;
    Ok(())
}
