//! From a study to trial records.
use super::{Published, Row, Study};
use crate::id;
use crate::record::{Cell, PhaseRecord, Provenance, Session, Status, TrialRecord};
use raidlab_core::flag::{Flag, FlagKind};
use std::collections::BTreeMap;

/// Reason of the flag of a figure that was measured but is not given. Reports look for it.
pub const WITHHELD: &str = "withheld: measured, but the figure is not given";

impl Study {
    /// One trial a row, in the order of the file. Studies without figures have none.
    #[must_use]
    pub fn trials(&self) -> Vec<TrialRecord> {
        let session = self.session_id();
        self.rows
            .iter()
            .zip(0..)
            .map(|(row, order)| self.trial(row, order, &session))
            .collect()
    }

    /// The session that holds the study's trials in a store.
    #[must_use]
    pub fn session(&self) -> Session {
        Session {
            id: self.session_id(),
            title: format!("study {}: {}", self.id, self.title),
            created: format!("{}T00:00:00Z", self.date),
            command: self.commands.join("; "),
            raidlab: env!("CARGO_PKG_VERSION").to_owned(),
            plan: None,
            planned: None,
            finished: true,
            notes: self
                .findings
                .iter()
                .map(|finding| format!("finding {}: {}", finding.number, finding.text))
                .collect(),
        }
    }

    fn session_id(&self) -> String {
        id::of_content("study", &[&self.id])
    }

    fn trial(&self, row: &Row, order: u32, session: &str) -> TrialRecord {
        let mut settings = BTreeMap::new();
        if let Some(size) = self.file_size {
            settings.insert("file-size".to_owned(), size.0.to_string());
        }
        if let Some(runs) = self.runs {
            settings.insert("runs".to_owned(), runs.to_string());
        }
        TrialRecord {
            id: id::of_content("study trial", &[&self.id, &row.name]),
            session: session.to_owned(),
            order,
            round: 0,
            cell: Cell {
                label: row.name.clone(),
                factors: row.factors.clone(),
            },
            cell_digest: None,
            profile: self.profile.clone().unwrap_or_default(),
            settings,
            provenance: Provenance::Published {
                study: self.id.clone(),
                date: self.date.clone(),
            },
            started: None,
            elapsed_ns: None,
            seed: None,
            digest: None,
            environment: None,
            command: self.commands.first().cloned(),
            phases: row
                .figures
                .iter()
                .map(|figure| {
                    let mut phase = PhaseRecord::bare(&figure.phase, None, figure.unit);
                    phase.cpu_percent = figure.cpu_percent;
                    let flag = match figure.value {
                        Published::Value(value) => {
                            phase.rate = Some(value);
                            None
                        }
                        Published::TooFast => Some(Flag::new(
                            FlagKind::TooShort,
                            "+++++: shorter than the tool can time",
                        )),
                        Published::Withheld => Some(Flag::new(FlagKind::Other, WITHHELD).remark()),
                    };
                    phase.flags.extend(flag);
                    phase
                })
                .collect(),
            checks: Vec::new(),
            status: Status::Complete,
            flags: Vec::new(),
        }
    }
}
