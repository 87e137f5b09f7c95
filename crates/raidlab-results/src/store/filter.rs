//! Which sessions and trials a query is for.
use crate::record::Place;
use jiff::Timestamp;
use rusqlite::types::Value;
use std::collections::BTreeMap;

/// Which sessions; the default passes all. All given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Begun at that time or later.
    pub since: Option<Timestamp>,
    /// Begun before that time.
    pub until: Option<Timestamp>,
    /// Ended, or not.
    pub finished: Option<bool>,
    /// Title, with `*`, `?` and `[…]` as in a shell.
    pub title: Option<String>,
    /// Has a trial of that profile.
    pub profile: Option<String>,
}

/// The kind of [`Provenance`](crate::record::Provenance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Measured by raidlab, there or anywhere.
    Measured(Option<Place>),
    /// Computed on modelled disks.
    Simulated,
    /// From another tool's output.
    Imported,
    /// From a published study.
    Published,
}

/// Which trials; the default passes all. All given conditions must hold; an empty list sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFilter {
    /// Of one of these sessions (whole identifiers).
    pub sessions: Vec<String>,
    /// One of these trials (whole identifiers).
    pub trials: Vec<String>,
    /// Of one of these profiles.
    pub profiles: Vec<String>,
    /// With each of these factors at that level.
    pub factors: BTreeMap<String, String>,
    /// Label of the cell, with `*`, `?` and `[…]` as in a shell.
    pub label: Option<String>,
    /// From there.
    pub source: Option<Source>,
    /// Begun at that time or later. A trial of unknown time does not pass.
    pub since: Option<Timestamp>,
    /// Begun before that time. A trial of unknown time does not pass.
    pub until: Option<Timestamp>,
    /// Complete and without a voiding flag on the whole trial.
    pub valid_only: bool,
}

/// Conditions of a query with their values.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    clauses: Vec<&'static str>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, clause: &'static str, values: impl IntoIterator<Item = Value>) {
        self.clauses.push(clause);
        self.values.extend(values);
    }

    fn add_list(&mut self, clause: &'static str, list: &[String]) {
        if !list.is_empty() {
            // One value however long the list: SQLite limits the number of values.
            self.add(clause, [Value::from(serde_json::json!(list).to_string())]);
        }
    }

    /// The condition as SQL.
    pub(super) fn to_sql(&self) -> String {
        if self.clauses.is_empty() {
            "TRUE".to_owned()
        } else {
            self.clauses.join(" AND ")
        }
    }
}

fn time(time: Timestamp) -> [Value; 1] {
    [Value::from(time.as_microsecond())]
}

impl SessionFilter {
    pub(super) fn conditions(&self) -> Conditions {
        let mut all = Conditions::default();
        if let Some(since) = self.since {
            all.add("s.created_us >= ?", time(since));
        }
        if let Some(until) = self.until {
            all.add("s.created_us < ?", time(until));
        }
        if let Some(finished) = self.finished {
            all.add("s.finished = ?", [Value::from(finished)]);
        }
        if let Some(title) = &self.title {
            all.add("s.title GLOB ?", [Value::from(title.clone())]);
        }
        if let Some(profile) = &self.profile {
            all.add(
                "s.id IN (SELECT session FROM trials WHERE profile = ?)",
                [Value::from(profile.clone())],
            );
        }
        all
    }
}

impl TrialFilter {
    /// All trials of one session.
    #[must_use]
    pub fn of_session(id: &str) -> Self {
        Self {
            sessions: vec![id.to_owned()],
            ..Self::default()
        }
    }

    pub(super) fn conditions(&self) -> Conditions {
        let mut all = Conditions::default();
        all.add_list(
            "t.session IN (SELECT value FROM json_each(?))",
            &self.sessions,
        );
        all.add_list("t.id IN (SELECT value FROM json_each(?))", &self.trials);
        all.add_list(
            "t.profile IN (SELECT value FROM json_each(?))",
            &self.profiles,
        );
        for (name, level) in &self.factors {
            all.add(
                "EXISTS (SELECT 1 FROM factors AS f
                         WHERE f.trial = t.id AND f.name = ? AND f.level = ?)",
                [Value::from(name.clone()), Value::from(level.clone())],
            );
        }
        if let Some(label) = &self.label {
            all.add("t.label GLOB ?", [Value::from(label.clone())]);
        }
        match self.source {
            None => {}
            Some(Source::Measured(None)) => all.add("t.source = 'measured'", []),
            Some(Source::Measured(Some(Place::Host))) => all.add("t.place = 'host'", []),
            Some(Source::Measured(Some(Place::Vm))) => all.add("t.place = 'vm'", []),
            Some(Source::Simulated) => all.add("t.source = 'simulated'", []),
            Some(Source::Imported) => all.add("t.source = 'imported'", []),
            Some(Source::Published) => all.add("t.source = 'published'", []),
        }
        if let Some(since) = self.since {
            all.add("t.started_us >= ?", time(since));
        }
        if let Some(until) = self.until {
            all.add("t.started_us < ?", time(until));
        }
        if self.valid_only {
            all.add("t.valid", []);
        }
        all
    }
}
