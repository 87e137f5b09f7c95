//! What a real kernel measured beside what was predicted, in one table.
use raidlab_results::record::{TrialRecord, Unit};
use raidlab_results::report::document::{Block, Cell, Column, Table};

/// One figure: a phase of a cell.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    cell: String,
    phase: String,
    unit: Unit,
    measured: Vec<f64>,
    predicted: Vec<f64>,
}

/// The table, and a sentence that sums it up; nothing without a figure that both have.
pub(super) fn blocks(measured: &[TrialRecord], predicted: &[TrialRecord]) -> Vec<Block> {
    let pairs = pairs(measured, predicted);
    if pairs.is_empty() {
        return Vec::new();
    }
    let columns = vec![
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
    let caption = "Measured by a real kernel in a virtual machine, beside predicted. Each figure is the mean of its \
                   valid runs; the error is predicted / measured - 1";
    let mut table = Table::new("beside", caption, columns).named_by(3);
    let mut errors: Vec<f64> = Vec::new();
    for pair in &pairs {
        let (scale, unit, decimals) = shown(pair.unit);
        let number = |value: Option<f64>| match value {
            Some(value) => Cell::number(value / scale, decimals),
            None => Cell::absent(),
        };
        let (was, said) = (mean(&pair.measured), mean(&pair.predicted));
        let error = was.zip(said).map(|(was, said)| said / was - 1.0);
        errors.extend(error);
        table.rows.push(vec![
            Cell::text(pair.cell.clone()),
            Cell::text(pair.phase.clone()),
            Cell::text(unit),
            number(was),
            number(pair.measured.iter().copied().reduce(f64::min)),
            number(pair.measured.iter().copied().reduce(f64::max)),
            Cell::number(pair.measured.len() as f64, 0),
            number(said),
            Cell::number(pair.predicted.len() as f64, 0),
            error.map_or_else(Cell::absent, |e| Cell::text(format!("{:+.1}", 100.0 * e))),
        ]);
    }
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(sentence(errors).map(Block::paragraph));
    blocks
}

/// How far off predictions are.
fn sentence(errors: Vec<f64>) -> Option<String> {
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
        "{} figures: predictions are off by {:.1} % in the median and {:.1} % at worst.",
        sizes.len(),
        100.0 * median,
        100.0 * worst
    ))
}

fn pairs(measured: &[TrialRecord], predicted: &[TrialRecord]) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let all = measured.iter().map(|t| (t, true));
    for (trial, real) in all.chain(predicted.iter().map(|t| (t, false))) {
        for phase in &trial.phases {
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
                    });
                    let last = pairs.len() - 1;
                    &mut pairs[last]
                }
            };
            let valid = trial.is_valid() && phase.is_valid() && phase.unit == pair.unit;
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
mod tests {
    use super::*;
    use raidlab_core::flag::{Flag, FlagKind};
    use raidlab_results::record::{PhaseRecord, Place, Provenance, Status};

    fn trial(label: &str, round: u32, rates: &[(&str, f64)]) -> TrialRecord {
        let cell = raidlab_results::record::Cell {
            label: label.to_owned(),
            factors: Default::default(),
        };
        let phase =
            |(name, rate): &(&str, f64)| PhaseRecord::bare(name, Some(*rate), Unit::BytesPerSecond);
        TrialRecord {
            id: format!("{label}{round}"),
            session: String::new(),
            order: round,
            round,
            cell,
            cell_digest: None,
            profile: "dd".to_owned(),
            settings: Default::default(),
            provenance: Provenance::Measured { place: Place::Vm },
            started: None,
            elapsed_ns: None,
            seed: None,
            digest: None,
            environment: None,
            command: None,
            phases: rates.iter().map(phase).collect(),
            status: Status::Complete,
            flags: Vec::new(),
        }
    }

    #[test]
    fn each_figure_has_both_means_and_the_error() {
        let mut doubtful = trial("raid0", 2, &[("read", 1e9)]);
        doubtful.phases[0].flags = vec![Flag::new(FlagKind::ServedFromCache, "memory answered")];
        let measured = [
            trial("raid0", 0, &[("read", 100e6), ("write", 50e6)]),
            trial("raid0", 1, &[("read", 120e6), ("write", 50e6)]),
            doubtful,
        ];
        let predicted = [
            trial("raid0", 0, &[("read", 121e6), ("rebuild", 1.0)]),
            trial("raid1", 0, &[("read", 1.0)]),
        ];
        let blocks = blocks(&measured, &predicted);
        let Some(Block::Table(table)) = blocks.first() else {
            panic!("a table");
        };
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.value.text()).collect())
            .collect();
        assert_eq!(
            rows[0],
            [
                "raid0", "read", "MB/s", "110.0", "100.0", "120.0", "2", "121.0", "1", "+10.0"
            ]
        );
        assert_eq!(rows[1][7], rows[1][9], "nothing was predicted");
        assert_eq!(rows.len(), 2);
        assert!(super::blocks(&[], &predicted).is_empty());
    }
}
