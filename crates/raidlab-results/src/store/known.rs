//! What is in a store of trials that are to be imported.
use super::{Store, StoreError};
use crate::id;
use crate::record::TrialRecord;
use rusqlite::Row;
use std::collections::BTreeMap;

/// Where a trial is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Label of its cell.
    pub label: String,
    /// The session it belongs to.
    pub session: String,
}

impl Store {
    /// Which of these trials are in the store, by their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn kept(&self, trials: &[&str]) -> Result<BTreeMap<String, Kept>, StoreError> {
        let query = "SELECT id, label, session FROM trials
             WHERE id IN (SELECT value FROM json_each(?))";
        // One value however long the list: SQLite limits the number of values.
        let list = serde_json::json!(trials).to_string();
        self.sql(|c| {
            let mut statement = c.prepare(query)?;
            let rows = statement.query_map([&list], |row| {
                let kept = Kept {
                    label: row.get(1)?,
                    session: row.get(2)?,
                };
                Ok((row.get(0)?, kept))
            })?;
            rows.collect()
        })
    }

    /// The first trial of each of the figures that were imported of these tools, by
    /// [`figures_digest`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn kept_figures(&self, tools: &[&str]) -> Result<BTreeMap<String, Kept>, StoreError> {
        let query = "SELECT t.number, t.label, t.session, t.tool, p.phase, p.rate, p.elapsed_ns
             FROM trials AS t JOIN phases AS p ON p.trial = t.id
             WHERE t.source = 'imported' AND t.tool IN (SELECT value FROM json_each(?))
             ORDER BY t.number, p.position";
        let list = serde_json::json!(tools).to_string();
        self.sql(|c| {
            let mut all = BTreeMap::new();
            let mut open: Option<(i64, Kept, Figures)> = None;
            let mut close = |trial: Option<(i64, Kept, Figures)>| {
                if let Some((_, kept, figures)) = trial
                    && let Some(digest) = figures.digest()
                {
                    all.entry(digest).or_insert(kept);
                }
            };
            let mut statement = c.prepare(query)?;
            let mut rows = statement.query([&list])?;
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                if open.as_ref().is_none_or(|(of, _, _)| *of != number) {
                    close(open.take());
                }
                let (_, _, figures) = match &mut open {
                    Some(open) => open,
                    none => none.insert(begin(number, row)?),
                };
                let rate: Option<f64> = row.get(5)?;
                let elapsed: Option<i64> = row.get(6)?;
                figures.add(&row.get::<_, String>(4)?, rate, elapsed);
            }
            close(open);
            Ok(all)
        })
    }
}

fn begin(number: i64, row: &Row<'_>) -> rusqlite::Result<(i64, Kept, Figures)> {
    let kept = Kept {
        label: row.get(1)?,
        session: row.get(2)?,
    };
    Ok((number, kept, Figures::of(&row.get::<_, String>(3)?)))
}

/// What two runs with the same figures share: tool, phases, rates and times. `None` when there is no
/// figure, which tells nothing.
#[must_use]
pub fn figures_digest(trial: &TrialRecord) -> Option<String> {
    let tool = super::rows::Origin::of(&trial.provenance).tool?;
    let mut figures = Figures::of(tool);
    for phase in &trial.phases {
        let elapsed = phase.elapsed_ns.and_then(|ns| i64::try_from(ns).ok());
        figures.add(&phase.phase, phase.rate, elapsed);
    }
    figures.digest()
}

struct Figures {
    parts: Vec<Vec<u8>>,
    any: bool,
}

impl Figures {
    fn of(tool: &str) -> Self {
        Self {
            parts: vec![tool.as_bytes().to_vec()],
            any: false,
        }
    }

    fn add(&mut self, phase: &str, rate: Option<f64>, elapsed: Option<i64>) {
        self.any |= rate.is_some();
        let rate = rate.map_or(Vec::new(), |rate| rate.to_bits().to_le_bytes().to_vec());
        let elapsed = elapsed.map_or(Vec::new(), |ns| ns.to_le_bytes().to_vec());
        self.parts
            .extend([phase.as_bytes().to_vec(), rate, elapsed]);
    }

    fn digest(&self) -> Option<String> {
        self.any
            .then(|| id::of_content("raidlab figures", &self.parts))
    }
}
