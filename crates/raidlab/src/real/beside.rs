//! What a real kernel measured beside what was predicted and, of a published study, what was published.
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::words::count;
use raidlab_results::record::{PhaseRecord, TrialRecord, Unit};
use raidlab_results::reference::{Checked, Prediction, Published as Given, Study};
use raidlab_results::report::document::{Block, Cell, Column, Table};
use std::collections::BTreeMap;

/// The study that an experiment carries out.
pub(super) struct Published {
    pub(super) study: Study,
    /// Label of the cell by name of the row.
    pub(super) rows: BTreeMap<String, String>,
    /// Share of second failures that the array of a cell survives, by the cell's label.
    pub(super) second: BTreeMap<String, f64>,
}

/// One figure: a phase of a cell.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    cell: String,
    phase: String,
    unit: Unit,
    measured: Vec<f64>,
    predicted: Vec<f64>,
    published: Option<f64>,
}

/// The table, a sentence that sums it up, doubts, and the study's findings on both; nothing without a figure
/// that was measured.
pub(super) fn blocks(
    measured: &[TrialRecord],
    predicted: &[TrialRecord],
    published: Option<&Published>,
) -> Vec<Block> {
    let pairs = pairs(measured, predicted, published);
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Table(table(&pairs, published.is_some()))];
    let of = |f: fn(&Pair) -> Option<(f64, f64)>| -> Vec<f64> {
        let both = pairs.iter().filter_map(f);
        both.map(|(said, was)| said / was - 1.0).collect()
    };
    let errors = of(|pair| Some((mean(&pair.predicted)?, mean(&pair.measured)?)));
    let sentences = [
        sentence(errors, "predictions are off from what was measured"),
        sentence(
            of(|pair| Some((mean(&pair.measured)?, pair.published?))),
            "what was measured is off from what was published",
        ),
        sentence(
            of(|pair| Some((mean(&pair.predicted)?, pair.published?))),
            "predictions are off from what was published",
        ),
    ];
    blocks.extend(sentences.into_iter().flatten().map(Block::paragraph));
    let doubts = doubts(measured);
    if !doubts.is_empty() {
        blocks.push(Block::paragraph("Doubts about what was measured:"));
        blocks.push(Block::List { items: doubts });
    }
    blocks.extend(published.map(|published| {
        let told = |trials: &[TrialRecord]| -> Prediction {
            let Published {
                study,
                rows,
                second,
            } = published;
            let fit = |trial: &TrialRecord| {
                let mut fit = trial.clone();
                fit.phases.retain(|phase| counts(trial, phase, true));
                fit
            };
            let trials: Vec<TrialRecord> = trials.iter().map(fit).collect();
            study.predicted(rows, second, &trials)
        };
        Block::Table(findings(
            &told(measured).findings,
            &told(predicted).findings,
        ))
    }));
    blocks
}

fn table(pairs: &[Pair], study: bool) -> Table {
    let mut columns = vec![
        Column::text("cell"),
        Column::text("phase"),
        Column::text("unit"),
        Column::number("measured").under("real kernel"),
        Column::number("lowest").under("real kernel"),
        Column::number("highest").under("real kernel"),
        Column::number("n").under("real kernel"),
        Column::number("predicted").under("simulator"),
        Column::number("n").under("simulator"),
        Column::number("error %"),
    ];
    let mut caption = "Measured by a real kernel in a virtual machine, beside predicted. Each figure is the mean of \
                       its valid runs; the error is predicted / measured - 1"
        .to_owned();
    if study {
        columns.extend([
            Column::number("published").under("study"),
            Column::number("measured off %").under("study"),
            Column::number("predicted off %").under("study"),
        ]);
        caption = "Measured by a real kernel in a virtual machine, predicted, and published. Each figure is the mean \
                   of its runs, caches and all, as the tool prints it; the error is predicted / measured - 1"
            .to_owned();
    }
    let mut table = Table::new("beside", caption, columns).named_by(3);
    table.rows = pairs.iter().map(|pair| row(pair, study)).collect();
    table.drop_empty_columns();
    table
}

fn row(pair: &Pair, study: bool) -> Vec<Cell> {
    let (scale, unit, least) = shown(pair.unit);
    let (was, said) = (mean(&pair.measured), mean(&pair.predicted));
    // Of a megabyte a second a tenth is 10 %; what stands in a line has the same digits.
    let small = was.or(said).is_some_and(|value| value.abs() < 10.0 * scale);
    let decimals = if small { least.max(2) } else { least };
    let number = |value: Option<f64>| match value {
        Some(value) => Cell::number(value / scale, decimals),
        None => Cell::absent(),
    };
    let off = |said: Option<f64>, was: Option<f64>| {
        let error = said.zip(was).map(|(said, was)| said / was - 1.0);
        error.map_or_else(Cell::absent, |e| Cell::text(format!("{:+.1}", 100.0 * e)))
    };
    let mut row = vec![
        Cell::text(pair.cell.clone()),
        Cell::text(pair.phase.clone()),
        Cell::text(unit),
        number(was),
        number(pair.measured.iter().copied().reduce(f64::min)),
        number(pair.measured.iter().copied().reduce(f64::max)),
        Cell::number(pair.measured.len() as f64, 0),
        number(said),
        Cell::number(pair.predicted.len() as f64, 0),
        off(said, was),
    ];
    if study {
        row.extend([
            number(pair.published),
            off(was, pair.published),
            off(said, pair.published),
        ]);
    }
    row
}

/// How far figures are off.
fn sentence(errors: Vec<f64>, what: &str) -> Option<String> {
    let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let worst = sizes.last()?;
    let half = sizes.len() / 2;
    let median = if sizes.len() % 2 == 1 {
        sizes[half]
    } else {
        0.5 * (sizes[half - 1] + sizes[half])
    };
    Some(format!(
        "{}: {what} by {:.1} % in the median and {:.1} % at worst.",
        count(sizes.len(), "figure"),
        100.0 * median,
        100.0 * worst
    ))
}

/// Flags that tell of the laboratory and not of the disks, each once with the figures that have it.
fn doubts(measured: &[TrialRecord]) -> Vec<String> {
    let tells = |flag: &Flag| {
        let limit = matches!(flag.kind, FlagKind::Late | FlagKind::GeneratorBound);
        limit || flag.voids || flag.kind == FlagKind::Other
    };
    let mut doubts: Vec<String> = Vec::new();
    for trial in measured {
        let of_phase = |phase: &PhaseRecord| -> Vec<(String, Flag)> {
            let flags = phase.flags.iter().filter(|flag| tells(flag));
            flags
                .map(|flag| (format!(", {}", phase.phase), flag.clone()))
                .collect()
        };
        let own = trial.flags.iter().filter(|flag| tells(flag));
        let own = own.map(|flag| (String::new(), flag.clone()));
        for (phase, flag) in own.chain(trial.phases.iter().flat_map(of_phase)) {
            let (cell, round) = (&trial.cell.label, trial.round + 1);
            doubts.push(format!("{cell}{phase}, round {round}: {flag}"));
        }
    }
    doubts
}

/// Findings part by part, on the figures of both.
fn findings(measured: &[Checked], predicted: &[Checked]) -> Table {
    let columns = vec![
        Column::text("finding"),
        Column::text("claim"),
        Column::text("figures").under("real kernel"),
        Column::text("told").under("real kernel"),
        Column::text("figures").under("simulator"),
        Column::text("told").under("simulator"),
    ];
    let caption = "Does what the study found hold on a real kernel, and in the model?";
    let mut table = Table::new("findings-beside", caption, columns).named_by(2);
    for (real, model) in measured.iter().zip(predicted) {
        table.rows.push(vec![
            Cell::text(real.finding.to_string()),
            Cell::text(real.claim.clone()),
            Cell::text(real.evidence.clone()),
            Cell::text(real.told.text()),
            Cell::text(model.evidence.clone()),
            Cell::text(model.told.text()),
        ]);
    }
    table
}

/// What the table calls the rate of a rebuild beside the phases.
const LOADED: &str = "rebuild under the load of the phases";

fn pairs(
    measured: &[TrialRecord],
    predicted: &[TrialRecord],
    published: Option<&Published>,
) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let all = measured.iter().map(|t| (t, true));
    for (trial, real) in all.chain(predicted.iter().map(|t| (t, false))) {
        for phase in trial.phases.iter().flat_map(with_loaded) {
            let same = |p: &&mut Pair| p.cell == trial.cell.label && p.phase == phase.phase;
            let at = pairs.iter_mut().find(same);
            let pair = match at {
                Some(pair) => pair,
                // What only the simulator has is no comparison.
                None if !real => continue,
                None => {
                    pairs.push(Pair {
                        cell: trial.cell.label.clone(),
                        phase: phase.phase.clone(),
                        unit: phase.unit,
                        measured: Vec::new(),
                        predicted: Vec::new(),
                        published: published
                            .and_then(|p| p.figure(&trial.cell.label, &phase.phase)),
                    });
                    let last = pairs.len() - 1;
                    &mut pairs[last]
                }
            };
            let valid = counts(trial, &phase, published.is_some()) && phase.unit == pair.unit;
            let rate = phase
                .rate
                .filter(|rate| valid && rate.is_finite() && *rate > 0.0);
            if real {
                pair.measured.extend(rate);
            } else {
                pair.predicted.extend(rate);
            }
        }
    }
    pairs
}

/// A phase, and after a rebuild by itself the one under the load of the phases as a phase of its own.
fn with_loaded(phase: &PhaseRecord) -> Vec<PhaseRecord> {
    let loaded = phase
        .figures
        .iter()
        .filter(|f| f.name == "rebuild-rate-loaded");
    let loaded = loaded.map(|figure| PhaseRecord {
        flags: phase.flags.clone(),
        ..PhaseRecord::bare(LOADED, Some(figure.value), figure.unit)
    });
    std::iter::once(phase.clone()).chain(loaded).collect()
}

/// Whether a figure counts. Tools print what caches gave them, and so were studies made; a laboratory that did not
/// keep its time is no figure for anyone.
fn counts(trial: &TrialRecord, phase: &PhaseRecord, study: bool) -> bool {
    if !study {
        return trial.is_valid() && phase.is_valid();
    }
    let unfit =
        |flag: &Flag| flag.voids && matches!(flag.kind, FlagKind::Late | FlagKind::Interrupted);
    !trial.flags.iter().chain(&phase.flags).any(unfit)
}

impl Published {
    /// The published figure of a cell's phase.
    fn figure(&self, label: &str, phase: &str) -> Option<f64> {
        let row = self.rows.iter().find(|(_, cell)| *cell == label);
        match self
            .study
            .figure(row.map_or(label, |(row, _)| row), phase)?
        {
            Given::Value(value) => Some(value),
            Given::TooFast | Given::Withheld => None,
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What a unit is shown as: divisor, name, decimals.
fn shown(unit: Unit) -> (f64, &'static str, usize) {
    match unit {
        Unit::BytesPerSecond => (1e6, "MB/s", 1),
        Unit::PerSecond => (1.0, "/s", 1),
        Unit::Seconds => (1.0, "s", 2),
        Unit::Percent => (1.0, "%", 1),
    }
}

#[cfg(test)]
mod tests;
