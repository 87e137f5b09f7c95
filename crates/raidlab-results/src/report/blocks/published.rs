//! Predicted figures beside published ones, with their errors, and the study's findings checked on the
//! predictions.
use crate::record::Unit;
use crate::reference::{Checked, Ordering, PredictedFigure, Prediction, Study, Told};
use crate::report::document::{Block, Cell, Column, Table, Tone, Value};
use crate::report::format;
use raidlab_core::units::KIB;

/// Errors above this are set off: the limit for any published figure.
const LARGE: f64 = 0.15;

/// Where figures that stand beside published ones come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The simulator.
    Model,
    /// Real runs, some or all of them.
    Measured,
}

impl Source {
    fn figures(self) -> &'static str {
        match self {
            Self::Model => "predicted",
            Self::Measured => "measured",
        }
    }

    fn place(self) -> &'static str {
        match self {
            Self::Model => "in the model",
            Self::Measured => "where it was measured",
        }
    }
}

/// Figures, errors and findings of one study.
pub(crate) fn beside(study: &Study, prediction: &Prediction, source: Source) -> Vec<Block> {
    let heading = match source {
        Source::Model => "Predicted beside published",
        Source::Measured => "Measured beside published",
    };
    let mut blocks = vec![Block::heading(heading)];
    blocks.push(Block::Table(figures(study, prediction, source)));
    blocks.push(Block::paragraph(accuracy(prediction)));
    blocks.extend(order(prediction, source));
    let id = format!("{}-findings", prediction.study);
    let caption = format!("Does what the study found hold {}?", source.place());
    let held = findings(&id, &caption, source.place(), &prediction.findings);
    blocks.push(Block::Table(held));
    blocks
}

/// How far the model is off, in a sentence.
pub(crate) fn accuracy(prediction: &Prediction) -> String {
    let errors = prediction.errors();
    if prediction.figures.is_empty() {
        return "Nothing was predicted.".to_owned();
    }
    let (Some(median), Some(worst)) = (prediction.median_error(), errors.first()) else {
        return "No figure of these rows is published: there is nothing to be off from.".to_owned();
    };
    format!(
        "{}: median absolute error {:.1} %, worst {:+.1} % ({}, {}).",
        format::plural(errors.len(), "published figure"),
        100.0 * median,
        100.0 * worst.error.unwrap_or_default(),
        worst.row,
        worst.phase
    )
}

/// Pairs of rows that are named, at most, where they are in another order.
const NAMED: usize = 6;

/// Whether the rows are in the order that was published, and which are not.
fn order(prediction: &Prediction, source: Source) -> Vec<Block> {
    let told = prediction.ordering();
    let Some(sentence) = ordered(&told, source) else {
        return Vec::new();
    };
    let mut blocks = vec![Block::paragraph(sentence)];
    // The pairs that the study found furthest apart say most.
    let mut wrong: Vec<_> = told.misordered.iter().collect();
    wrong.sort_by(|a, b| b.published.total_cmp(&a.published));
    let mut items: Vec<String> = wrong
        .iter()
        .take(NAMED)
        .map(|pair| {
            format!(
                "{}, {} over {}: published {:.2}x, {} {:.2}x",
                pair.phase,
                pair.higher,
                pair.lower,
                pair.published,
                source.place(),
                pair.predicted
            )
        })
        .collect();
    if wrong.len() > NAMED {
        items.push(format!("and {} more", wrong.len() - NAMED));
    }
    if !items.is_empty() {
        blocks.push(Block::List { items });
    }
    blocks
}

/// How many pairs of rows are in the published order; `None` when the study tells no two apart.
pub(crate) fn ordered(told: &Ordering, source: Source) -> Option<String> {
    Some(format!(
        "Which row has the higher figure: of {} that are published as more than 5 % apart, {} in that order {} \
         (Kendall's tau {:.2}).",
        format::plural(told.pairs, "pair"),
        match told.alike {
            all if all == told.pairs && all > 1 => "all are".to_owned(),
            1 => "1 is".to_owned(),
            some => format!("{some} are"),
        },
        source.place(),
        told.tau()?,
    ))
}

fn figures(study: &Study, prediction: &Prediction, source: Source) -> Table {
    let columns = vec![
        Column::text("row"),
        Column::text("phase"),
        Column::text("unit"),
        Column::number(source.figures()),
        Column::number("published"),
        Column::number("error %"),
        Column::number(source.figures()).under("%CP"),
        Column::number("published").under("%CP"),
        Column::text("what limits it in the model"),
    ];
    let of = match source {
        Source::Model => "the model's",
        Source::Measured => "measured",
    };
    let caption = format!("{}: {of} figures and the study's", study.id);
    let mut table = Table::new(format!("{}-predicted", study.id), caption, columns).named_by(2);
    let mut last = "";
    for figure in &prediction.figures {
        table.rows.push(line(figure, last));
        last = &figure.row;
    }
    table.drop_empty_columns();
    table
}

fn line(figure: &PredictedFigure, last: &str) -> Vec<Cell> {
    let (unit, scale) = match figure.unit {
        Unit::BytesPerSecond => ("KiB/s", KIB as f64),
        Unit::PerSecond => ("1/s", 1.0),
        Unit::Seconds => ("s", 1.0),
        Unit::Percent => ("%", 1.0),
    };
    let number = |value: f64| {
        let value = value / scale;
        Cell::number(value, if value.abs() >= 1000.0 { 0 } else { 1 })
    };
    let optional = |value: Option<f64>| value.map_or_else(Cell::absent, |v| Cell::number(v, 0));
    let published = match figure.published {
        Some(value) => number(value),
        None if figure.withheld => Value::Withheld.into(),
        None => Cell::absent(),
    };
    let error = figure.error.map_or_else(Cell::absent, |error| {
        let text = format!("{:+.1}", 100.0 * error);
        let tone = if error.abs() > LARGE {
            Tone::Bad
        } else {
            Tone::Plain
        };
        Cell::text(text).tone(tone)
    });
    let name = if figure.row == last { "" } else { &figure.row };
    vec![
        Cell::text(name),
        Cell::text(figure.phase.clone()),
        Cell::text(unit),
        figure
            .predicted
            .map_or_else(|| Value::Invalid.into(), number),
        published,
        error,
        optional(figure.cpu_percent.0),
        optional(figure.cpu_percent.1),
        figure.why.clone().map_or_else(Cell::absent, Cell::text),
    ]
}

/// Findings part by part, and what is told of each `by` the figures of the caption; beside it what the study's own
/// figures tell, which may contradict its words.
pub(crate) fn findings(id: &str, caption: &str, by: &str, all: &[Checked]) -> Table {
    let columns = vec![
        Column::text("finding"),
        Column::text("claim"),
        Column::text("figures"),
        Column::text(by),
        Column::text("in its own rows"),
    ];
    let mut table = Table::new(id, caption, columns);
    for checked in all {
        table.rows.push(vec![
            Cell::text(checked.finding.to_string()),
            Cell::text(checked.claim.clone()),
            Cell::text(checked.evidence.clone()),
            told(checked.told),
            own_rows(checked),
        ]);
    }
    table.drop_empty_columns();
    table
}

fn told(told: Told) -> Cell {
    Cell::text(told.text()).tone(tone(told))
}

fn tone(told: Told) -> Tone {
    match told {
        Told::Holds => Tone::Good,
        Told::DoesNot => Tone::Bad,
        Told::Withheld | Told::NoFigures => Tone::Muted,
    }
}

/// What the study's own figures tell of a claim, and the ratio where it is one.
pub(crate) fn own_rows(checked: &Checked) -> Cell {
    let Some(own) = &checked.own else {
        return Cell::absent();
    };
    let text = match (own.told, own.evidence.rsplit_once(" = ")) {
        (Told::Withheld, _) => "withheld".to_owned(),
        (told, Some((_, ratio))) => format!("{}: {ratio}", told.text()),
        (told, None) => format!("{}: {}", told.text(), own.evidence),
    };
    Cell::text(text).tone(tone(own.told))
}

/// Accuracy and findings, a line a study.
pub(crate) fn overview(all: &[Prediction]) -> Table {
    let columns = vec![
        Column::text("study"),
        Column::number("figures compared"),
        Column::number("median").under("absolute error, %"),
        Column::number("worst").under("absolute error, %"),
        Column::text("worst figure"),
        Column::number("predicted only"),
        Column::number("pairs").under("order of rows"),
        Column::number("alike").under("order of rows"),
        Column::number("hold").under("claims"),
        Column::number("do not").under("claims"),
        Column::number("cannot be told").under("claims"),
    ];
    let mut table = Table::new(
        "accuracy",
        "How far the model is off, study by study",
        columns,
    );
    for prediction in all {
        table.rows.push(overview_line(prediction));
    }
    if all.len() > 1 {
        let compared: usize = all.iter().map(|p| p.errors().len()).sum();
        let count = |told: &[Told]| all.iter().map(|p| claims(p, told)).sum::<usize>();
        let worst = all
            .iter()
            .filter_map(Prediction::worst_error)
            .max_by(f64::total_cmp);
        let percent = |error: Option<f64>| match error {
            Some(error) => Cell::number(100.0 * error, 1).tone(Tone::Strong),
            None => Cell::absent(),
        };
        let order = Ordering::of_all(all);
        let alone: usize = all.iter().map(predicted_only).sum();
        table.rows.push(vec![
            Cell::text("all").tone(Tone::Strong),
            Cell::number(compared as f64, 0),
            percent(crate::reference::median_error(all)),
            percent(worst),
            Cell::absent(),
            Cell::number(alone as f64, 0),
            Cell::number(order.pairs as f64, 0),
            Cell::number(order.alike as f64, 0),
            Cell::number(count(&[Told::Holds]) as f64, 0),
            Cell::number(count(&[Told::DoesNot]) as f64, 0),
            Cell::number(count(&[Told::Withheld, Told::NoFigures]) as f64, 0),
        ]);
    }
    table
}

fn claims(prediction: &Prediction, told: &[Told]) -> usize {
    let found = prediction.findings.iter();
    found.filter(|checked| told.contains(&checked.told)).count()
}

fn predicted_only(prediction: &Prediction) -> usize {
    let figures = prediction.figures.iter();
    figures
        .filter(|f| f.predicted.is_some() && f.published.is_none())
        .count()
}

fn overview_line(prediction: &Prediction) -> Vec<Cell> {
    let errors = prediction.errors();
    let percent = |error: Option<f64>, limit: f64| {
        error.map_or_else(Cell::absent, |error| {
            let tone = if error > limit { Tone::Bad } else { Tone::Good };
            Cell::number(100.0 * error, 1).tone(tone)
        })
    };
    let worst = errors.first();
    let order = prediction.ordering();
    vec![
        Cell::text(prediction.study.clone()),
        Cell::number(errors.len() as f64, 0),
        percent(prediction.median_error(), 0.05),
        percent(prediction.worst_error(), LARGE),
        worst.map_or_else(Cell::absent, |f| {
            Cell::text(format!("{}, {}", f.row, f.phase))
        }),
        Cell::number(predicted_only(prediction) as f64, 0),
        Cell::number(order.pairs as f64, 0),
        Cell::number(order.alike as f64, 0),
        Cell::number(claims(prediction, &[Told::Holds]) as f64, 0),
        Cell::number(claims(prediction, &[Told::DoesNot]) as f64, 0),
        Cell::number(
            claims(prediction, &[Told::Withheld, Told::NoFigures]) as f64,
            0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_not_called_predicted() {
        let study = crate::reference::study("zfs-ashift")
            .expect("studies that can be read")
            .expect("a study of the catalogue");
        let prediction = Prediction {
            study: study.id.clone(),
            figures: Vec::new(),
            findings: Vec::new(),
        };
        let told = |source| format!("{:?}", beside(&study, &prediction, source));
        let measured = told(Source::Measured);
        assert!(measured.contains("Measured beside published"), "{measured}");
        assert!(!measured.contains("the model"), "{measured}");
        assert!(told(Source::Model).contains("hold in the model?"));
    }
}
