//! Design, report and expected figures, with all defaults.
use super::product::Combination;
use super::refer::Words;
use crate::diagnostic::{Diagnostic, Problems};
use crate::experiment::{
    Aggregate, Cell, Chart, ChartKind, Design, Expected, Order, Report, TableKind,
};
use crate::read::design::{DraftChart, DraftDesign, DraftExpected, DraftReport};
use crate::read::tree::At;
use crate::{Known, KnownStudy};
use raidlab_core::suggest::list;
use raidlab_core::words::count;
use std::collections::BTreeMap;

/// Trials of a cell when nothing is said.
const REPEATS: u32 = 3;
/// Differences within 2 % are equivalent when nothing is said.
const MARGIN: f64 = 0.02;
/// The seed when nothing is said.
const SEED: u64 = 1;

/// What is referred to.
pub(super) struct Parts<'p> {
    pub(super) words: &'p Words<'p>,
    /// The cells by their names, whether they could be resolved or not.
    pub(super) named: &'p [Combination<'p>],
    /// `None` when a cell could not be resolved.
    pub(super) cells: Option<&'p [Cell]>,
}

/// What a file has that a table may need.
#[derive(Clone, Copy)]
pub(super) struct Has {
    pub(super) baseline: bool,
    pub(super) published: bool,
}

impl Parts<'_> {
    pub(super) fn design(&self, problems: &Problems, draft: &DraftDesign) -> Design {
        let repeats = draft.repeats.as_ref().map_or(REPEATS, |r| r.value);
        let trimmed = draft.aggregate == Some(Aggregate::Trimmed);
        if let (Some(trim), false) = (&draft.trim, trimmed) {
            let message = "'trim' is taken by one aggregation alone";
            problems.wrong(
                &trim.at,
                message,
                "write aggregate = \"trimmed\", or drop it",
            );
        }
        let trim = match (&draft.trim, trimmed) {
            (Some(trim), true) => trim.value,
            (None, true) => 1,
            (_, false) => 0,
        };
        if trimmed && repeats <= trim.saturating_mul(2) {
            let given = draft.trim.as_ref().or(draft.repeats.as_ref());
            let at = given.map_or(0..0, |g| g.at.clone());
            let message = format!(
                "of {} nothing is left without {trim} at each end",
                count(repeats, "trial")
            );
            let help = format!(
                "write repeats = {}",
                trim.saturating_mul(2).saturating_add(3)
            );
            problems.wrong(&at, message, &help);
        }
        let baseline = draft.baseline.as_ref();
        let baseline =
            baseline.and_then(|choice| self.words.baseline(problems, choice, self.named));
        let repeats_at = draft.repeats.as_ref().map_or(0..0, |r| r.at.clone());
        let trials = self.named.len() as u64 * u64::from(repeats);
        if trials > 1_000_000 {
            let message = format!("{trials} trials are too many");
            problems.wrong(&repeats_at, message, "at most 1000000");
        }
        Design {
            repeats,
            order: draft.order.unwrap_or(Order::Randomised),
            aggregate: draft.aggregate.unwrap_or(Aggregate::Mean),
            trim,
            margin: draft.margin.unwrap_or(MARGIN),
            seed: draft.seed.unwrap_or(SEED),
            verify: draft.verify.unwrap_or(false),
            baseline,
        }
    }

    pub(super) fn report(&self, problems: &Problems, draft: DraftReport, has: Has) -> Report {
        let cells = self.cells.unwrap_or_default();
        let rebuilt = cells.iter().any(|cell| cell.setup.array.state.syncs());
        let differ = cells.iter().any(|cell| {
            let (one, other) = (&cells[0].setup.array, &cell.setup.array);
            one.layout != other.layout || one.members.len() != other.members.len()
        });
        let tables = match draft.tables {
            Some(tables) => {
                for table in &tables {
                    useful(problems, table, has, rebuilt || self.cells.is_none());
                }
                tables.into_iter().map(|t| t.value).collect()
            }
            None => [
                (TableKind::Figures, true),
                (TableKind::Ratios, has.baseline),
                (TableKind::Worth, differ),
                (TableKind::Published, has.published),
                (TableKind::Rebuild, rebuilt),
                (TableKind::Limits, true),
            ]
            .into_iter()
            .filter_map(|(table, shown)| shown.then_some(table))
            .collect(),
        };
        let mut phases: Vec<&str> = Vec::new();
        for phase in cells.iter().flat_map(|c| &c.setup.phases) {
            if !phases.contains(&phase.as_str()) {
                phases.push(phase);
            }
        }
        if rebuilt {
            phases.push("rebuild");
        }
        let charts = match draft.charts {
            Some(charts) => charts
                .into_iter()
                .map(|c| self.chart(problems, c, &phases))
                .collect(),
            None => vec![Chart {
                kind: ChartKind::Bars,
                title: None,
                x: None,
                y: None,
                lines: None,
                per: None,
            }],
        };
        Report { tables, charts }
    }

    fn chart(&self, problems: &Problems, draft: DraftChart, phases: &[&str]) -> Chart {
        for name in [&draft.x, &draft.lines, &draft.per].into_iter().flatten() {
            self.words.factor(problems, name);
        }
        if let (Some(y), true) = (&draft.y, self.cells.is_some()) {
            problems.reference(y, "phase", phases.iter().copied());
        }
        match (draft.kind, &draft.x) {
            (ChartKind::Lines, None) => {
                let message = "a chart of lines has no 'x'";
                let help = "name the factor along it: x = \"chunk\"";
                problems.wrong(&draft.at, message, help);
            }
            (ChartKind::Bars | ChartKind::Distribution, Some(x)) => {
                let message = format!("a chart of kind '{}' has no 'x'", draft.kind);
                problems.wrong(&x.at, message, "drop it, or write kind = \"lines\"");
            }
            _ => {}
        }
        let text = |name: Option<At<String>>| name.map(|n| n.value);
        Chart {
            kind: draft.kind,
            title: draft.title,
            x: text(draft.x),
            y: text(draft.y),
            lines: text(draft.lines),
            per: text(draft.per),
        }
    }

    pub(super) fn expected(
        &self,
        problems: &Problems,
        draft: Option<&DraftExpected>,
        known: &Known<'_>,
    ) -> Option<Expected> {
        let (draft, cells) = (draft?, self.named);
        let study = known.studies.iter().find(|s| s.id == draft.study.value)?;
        let rows = match &draft.rows {
            Some(rows) => self.mapped(problems, rows, study, cells),
            None => {
                let same = |row: &&str| cells.iter().any(|c| c.label == **row);
                let named = study.rows.iter().copied().filter(same);
                named.map(|r| (r.to_owned(), r.to_owned())).collect()
            }
        };
        if rows.is_empty() && !study.rows.is_empty() && draft.rows.is_none() {
            let message = format!("no cell is named as a row of study '{}'", study.id);
            let problem = Diagnostic::new(draft.study.at.clone(), message);
            let rows = list(study.rows.iter().copied());
            problems.push(problem.help(format!(
                "name levels so, or map them in [expected.rows]; the rows are {rows}"
            )));
        }
        Some(Expected {
            study: draft.study.value.clone(),
            rows,
        })
    }

    fn mapped(
        &self,
        problems: &Problems,
        rows: &[(At<String>, crate::read::design::CellChoice)],
        study: &KnownStudy<'_>,
        cells: &[Combination<'_>],
    ) -> BTreeMap<String, String> {
        let mut mapped = BTreeMap::new();
        for (row, choice) in rows {
            let known = study.rows.contains(&row.value.as_str());
            if !known {
                let place = format!("of study '{}'", study.id);
                let rows = study.rows.iter().copied();
                problems.unknown_of(&row.at, "row", &row.value, &place, rows);
            }
            let cell = self.words.one(problems, choice, cells);
            if let (true, Some(cell)) = (known, cell) {
                mapped.insert(row.value.clone(), cell);
            }
        }
        mapped
    }
}

/// Tells of a table that would be empty.
fn useful(problems: &Problems, table: &At<TableKind>, has: Has, rebuilt: bool) {
    let lacks = match table.value {
        TableKind::Ratios if !has.baseline => "a baseline: write baseline = \"…\" in [design]",
        TableKind::Published if !has.published => {
            "published figures: write study = \"…\" in [expected]"
        }
        TableKind::Rebuild if !rebuilt => "a cell that resyncs or rebuilds",
        _ => return,
    };
    let message = format!("the table '{}' needs {lacks}", table.value);
    problems.push(Diagnostic::from_error(table.at.clone(), &message));
}
