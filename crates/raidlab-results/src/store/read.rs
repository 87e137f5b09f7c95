//! Reading sessions, trials and environments.
use super::filter::Conditions;
use super::runner::Runner;
use super::{SessionFilter, Store, StoreError, TrialFilter, environment_digest};
use crate::id;
use crate::record::{Session, TrialRecord};
use rusqlite::{OptionalExtension as _, Row, params_from_iter};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// A session as a listing shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// The session.
    pub session: Session,
    /// Its trials in the store.
    pub trials: u32,
    /// Those of them that are complete and without a voiding flag on the whole trial.
    pub valid: u32,
    /// Those of them that failed: kept with the reason, and to be run anew.
    pub failed: u32,
    /// The profiles of its trials, sorted.
    pub profiles: Vec<String>,
    /// Where its trials come from, sorted: `host`, `vm`, `simulated`, `imported`, `published`.
    pub places: Vec<String>,
    /// The process that is at work on it right now (this one included).
    pub running: Option<u32>,
}

/// How many sessions before the last one a word means: none of `last`, two of `last~2`. No identifier begins with an `l`.
fn from_the_last(word: &str) -> Option<u32> {
    match word.strip_prefix("last")? {
        "" => Some(0),
        back => back.strip_prefix('~')?.parse().ok(),
    }
}

/// Trials with their sessions, in the order in which they are handed out.
fn in_order(conditions: &Conditions) -> String {
    format!(
        "trials AS t JOIN sessions AS s ON s.id = t.session
         WHERE {} ORDER BY s.number, t.position, t.number",
        conditions.to_sql()
    )
}

/// The columns of a session as [`RawSession::read`] takes them.
const SESSION: &str = "s.id, s.title, s.created, s.command, s.raidlab, s.plan, s.planned,
    s.finished, s.runner,
    (SELECT json_group_array(note ORDER BY position) FROM notes WHERE session = s.id)";

struct RawSession {
    session: Session,
    plan: Option<String>,
    notes: String,
    runner: Option<String>,
}

impl RawSession {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            session: Session {
                id: row.get(0)?,
                title: row.get(1)?,
                created: row.get(2)?,
                command: row.get(3)?,
                raidlab: row.get(4)?,
                plan: None,
                planned: row.get(6)?,
                finished: row.get(7)?,
                notes: Vec::new(),
            },
            plan: row.get(5)?,
            runner: row.get(8)?,
            notes: row.get(9)?,
        })
    }

    fn finish(self, store: &Store) -> Result<Session, StoreError> {
        let mut session = self.session;
        let name = || format!("session {}", session.id);
        let notes = store.parse(name, &self.notes)?;
        let plan = match &self.plan {
            Some(text) => Some(store.parse(name, text)?),
            None => None,
        };
        (session.plan, session.notes) = (plan, notes);
        Ok(session)
    }
}

impl SessionInfo {
    /// Trials that came to their end: how far the session is.
    #[must_use]
    pub fn complete(&self) -> u32 {
        self.trials - self.failed
    }
}

impl Store {
    /// The session of that identifier.
    ///
    /// # Errors
    /// When there is none, or the store cannot be read.
    pub fn session(&self, id: &str) -> Result<Session, StoreError> {
        let query = format!("SELECT {SESSION} FROM sessions AS s WHERE s.id = ?");
        self.sql(|c| c.query_row(&query, [id], RawSession::read).optional())?
            .ok_or_else(|| StoreError::NoSuchSession(id.to_owned()))?
            .finish(self)
    }

    /// The session whose identifier begins with `prefix`, of which there must be one only; or the one that came into the
    /// store last (`last`), or so many before it (`last~1`): a clock that was set back changes nothing.
    ///
    /// # Errors
    /// When there is none or several, or `prefix` cannot begin an identifier.
    pub fn find_session(&self, prefix: &str) -> Result<Session, StoreError> {
        if let Some(back) = from_the_last(prefix) {
            return self.session_from_the_last(prefix, back);
        }
        let found = self.find("SELECT id, title FROM sessions", prefix)?;
        let id = found.ok_or_else(|| StoreError::NoSuchSession(prefix.to_owned()))?;
        self.session(&id)
    }

    fn session_from_the_last(&self, word: &str, back: u32) -> Result<Session, StoreError> {
        let query = "SELECT id FROM sessions ORDER BY number DESC LIMIT 1 OFFSET ?";
        let found: Option<String> =
            self.sql(|c| c.query_row(query, [back], |row| row.get(0)).optional())?;
        let id = found.ok_or_else(|| StoreError::NoSuchSession(word.to_owned()))?;
        self.session(&id)
    }

    /// The trial whose identifier begins with `prefix`, of which there must be one only.
    ///
    /// # Errors
    /// When there is none or several, or `prefix` cannot begin an identifier.
    pub fn find_trial(&self, prefix: &str) -> Result<TrialRecord, StoreError> {
        let found = self.find("SELECT id, profile || ', ' || label FROM trials", prefix)?;
        let none = || StoreError::NoSuchTrial(prefix.to_owned());
        let filter = TrialFilter {
            trials: vec![found.ok_or_else(none)?],
            ..TrialFilter::default()
        };
        self.trials(&filter)?.pop().ok_or_else(none)
    }

    /// The sessions that pass `filter`, in the order in which they came into the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionInfo>, StoreError> {
        self.session_infos(&filter.conditions())
    }

    /// The sessions with a plan that have not ended, in the order of [`sessions`](Self::sessions). One whose `running` is `None`
    /// was interrupted and can be resumed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn unfinished_sessions(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let filter = SessionFilter {
            finished: Some(false),
            ..SessionFilter::default()
        };
        let mut all = self.sessions(&filter)?;
        all.retain(|info| info.session.plan.is_some());
        Ok(all)
    }

    fn session_infos(&self, conditions: &Conditions) -> Result<Vec<SessionInfo>, StoreError> {
        let query = format!(
            "SELECT {SESSION},
                (SELECT count(*) FROM trials WHERE session = s.id),
                (SELECT count(*) FROM trials WHERE session = s.id AND valid),
                (SELECT count(*) FROM trials WHERE session = s.id AND status = 'failed'),
                (SELECT json_group_array(DISTINCT profile ORDER BY profile) FROM trials
                 WHERE session = s.id),
                (SELECT json_group_array(place ORDER BY place) FROM
                 (SELECT DISTINCT coalesce(place, source) AS place FROM trials WHERE session = s.id))
             FROM sessions AS s WHERE {} ORDER BY s.number",
            conditions.to_sql()
        );
        let rows = self.sql(|c| {
            c.prepare(&query)?
                .query_map(params_from_iter(&conditions.values), |row| {
                    Ok((
                        RawSession::read(row)?,
                        row.get::<_, u32>(10)?,
                        row.get::<_, u32>(11)?,
                        row.get::<_, u32>(12)?,
                        row.get::<_, String>(13)?,
                        row.get::<_, String>(14)?,
                    ))
                })?
                .collect::<Result<Vec<_>, _>>()
        })?;
        rows.into_iter()
            .map(|(raw, trials, valid, failed, profiles, places)| {
                let running = raw.runner.as_deref().and_then(Runner::parse);
                let session = raw.finish(self)?;
                Ok(SessionInfo {
                    profiles: self.parse(|| format!("session {}", session.id), &profiles)?,
                    places: self.parse(|| format!("session {}", session.id), &places)?,
                    running: running.filter(Runner::is_alive).map(|r| r.process),
                    session,
                    trials,
                    valid,
                    failed,
                })
            })
            .collect()
    }

    /// The trials that pass `filter`: sessions in the order of [`sessions`](Self::sessions), the trials of each in the order of
    /// execution. Each holds up to 40 KiB for every histogram; [`each_trial`](Self::each_trial) has
    /// one in memory at a time.
    ///
    /// # Errors
    /// When the store cannot be read or a record in it is damaged.
    pub fn trials(&self, filter: &TrialFilter) -> Result<Vec<TrialRecord>, StoreError> {
        let mut trials = Vec::new();
        self.each_trial(filter, |trial| {
            trials.push(trial);
            Ok::<_, StoreError>(())
        })?;
        Ok(trials)
    }

    /// Hands over the trials that pass `filter` one after another, in the order of
    /// [`trials`](Self::trials).
    ///
    /// # Errors
    /// When the store cannot be read, a record in it is damaged, or `each` fails, which ends it.
    pub fn each_trial<E: From<StoreError>>(
        &self,
        filter: &TrialFilter,
        mut each: impl FnMut(TrialRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let conditions = filter.conditions();
        let query = format!(
            "SELECT t.id, t.session, t.record FROM {}",
            in_order(&conditions)
        );
        let failed = |error| E::from(StoreError::of_sqlite(&self.path, self.busy, error));
        let mut statement = self.connection.prepare(&query).map_err(failed)?;
        let mut rows = statement
            .query(params_from_iter(&conditions.values))
            .map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (id, session, record): (String, String, String) = row.try_into().map_err(failed)?;
            let trial: TrialRecord = self.parse(|| format!("trial {id}"), &record)?;
            if trial.id != id || trial.session != session {
                let detail = format!("the record of trial {id} is that of another");
                return Err(self.corrupt(detail).into());
            }
            each(trial)?;
        }
        Ok(())
    }

    /// The sessions and environments that the trials of `filter` refer to, each once.
    pub(super) fn referred_to(
        &self,
        filter: &TrialFilter,
    ) -> Result<(Vec<String>, BTreeSet<String>), StoreError> {
        let conditions = filter.conditions();
        let query = format!(
            "SELECT t.session, t.environment FROM {}",
            in_order(&conditions)
        );
        let (mut sessions, mut environments) = (Vec::<String>::new(), BTreeSet::new());
        self.sql(|c| {
            let mut statement = c.prepare(&query)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            while let Some(row) = rows.next()? {
                let session: String = row.get(0)?;
                // The trials of a session come together.
                if sessions.last() != Some(&session) {
                    sessions.push(session);
                }
                environments.extend(row.get::<_, Option<String>>(1)?);
            }
            Ok(())
        })?;
        Ok((sessions, environments))
    }

    /// The environment of that digest; `None` when there is none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn environment(&self, digest: &str) -> Result<Option<Value>, StoreError> {
        let query = "SELECT environment FROM environments WHERE digest = ?";
        let text: Option<String> =
            self.sql(|c| c.query_row(query, [digest], |row| row.get(0)).optional())?;
        let Some(text) = text else { return Ok(None) };
        let environment = self.parse(|| format!("environment {digest}"), &text)?;
        if environment_digest(&environment) == digest {
            Ok(Some(environment))
        } else {
            Err(self.corrupt(format!("environment {digest} has another digest")))
        }
    }

    fn find(&self, from: &str, prefix: &str) -> Result<Option<String>, StoreError> {
        let low = prefix.to_ascii_lowercase();
        if !id::is_prefix(&low) {
            return Err(StoreError::NotAnId(prefix.to_owned()));
        }
        // `g` is behind the last digit: a range, so that the index serves.
        let query = format!("{from} WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 6");
        let found: Vec<(String, String)> = self.sql(|c| {
            c.prepare(&query)?
                .query_map([&low], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        if found.len() < 2 {
            return Ok(found.into_iter().next().map(|(id, _)| id));
        }
        let digits = id::digits_needed(found.iter().map(|(id, _)| id.as_str()));
        let mut candidates: Vec<String> = found
            .iter()
            .take(5)
            .map(|(id, what)| format!("{} ({what})", &id[..digits]))
            .collect();
        if found.len() > 5 {
            candidates.push("and more".to_owned());
        }
        Err(StoreError::Ambiguous {
            prefix: prefix.to_owned(),
            candidates,
        })
    }

    fn parse<T: DeserializeOwned>(
        &self,
        what: impl Fn() -> String,
        text: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| self.corrupt(format!("{}: {e}", what())))
    }
}
