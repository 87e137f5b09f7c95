//! The reports of a model's figures beside those of published studies.
use super::blocks::published::{Source, accuracy, beside, overview, own_rows};
use super::document::{Block, Cell, Column, Document, Table, Tone};
use crate::reference::{Prediction, Study, Told};

/// Figures of the overall table that are off by most.
const WORST: usize = 12;

/// The report of one study: every figure with its error, and the findings one by one.
#[must_use]
pub fn prediction_report(study: &Study, prediction: &Prediction, identity: &str) -> Document {
    let mut document = Document::new(format!("{} ({}), predicted", study.title, study.date));
    document.blocks.push(Block::paragraph(identity));
    document
        .blocks
        .extend(beside(study, prediction, Source::Model));
    document.blocks.push(Block::heading("What the study found"));
    document.blocks.push(Block::List {
        items: study
            .findings
            .iter()
            .map(|finding| format!("Finding {}: {}", finding.number, finding.text))
            .collect(),
    });
    document.settle_ids();
    document
}

/// The report of several studies: one table of accuracy, the figures that are off by most, and the
/// claims that do not hold in the model.
#[must_use]
pub fn predictions_report(all: &[Prediction], identity: &str) -> Document {
    let mut document = Document::new("The published studies, predicted");
    document.blocks.push(Block::paragraph(identity));
    document.blocks.push(Block::Table(overview(all)));
    let lines = all.iter().map(|p| format!("{}: {}", p.study, accuracy(p)));
    document.blocks.push(Block::List {
        items: lines.collect(),
    });
    document.blocks.extend(worst(all).map(Block::Table));
    document.blocks.extend(refuted(all).map(Block::Table));
    document.settle_ids();
    document
}

fn worst(all: &[Prediction]) -> Option<Table> {
    let mut errors: Vec<_> = all
        .iter()
        .flat_map(|p| p.errors().into_iter().map(move |figure| (p, figure)))
        .collect();
    let size = |error: Option<f64>| error.map_or(0.0, f64::abs);
    errors.sort_by(|a, b| size(b.1.error).total_cmp(&size(a.1.error)));
    let columns = vec![
        Column::text("study"),
        Column::text("row"),
        Column::text("phase"),
        Column::number("error %"),
    ];
    let mut table = Table::new("worst", "The figures that are off by most", columns).named_by(3);
    for (prediction, figure) in errors.iter().take(WORST) {
        table.rows.push(vec![
            Cell::text(prediction.study.clone()),
            Cell::text(figure.row.clone()),
            Cell::text(figure.phase.clone()),
            Cell::text(format!("{:+.1}", 100.0 * figure.error.unwrap_or_default())),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn refuted(all: &[Prediction]) -> Option<Table> {
    let columns = vec![
        Column::text("study"),
        Column::text("finding"),
        Column::text("claim"),
        Column::text("figures"),
        Column::text("in its own rows"),
    ];
    let caption = "Claims that do not hold in the model";
    let mut table = Table::new("refuted", caption, columns);
    for prediction in all {
        let wrong = |told: Told| told == Told::DoesNot;
        for checked in prediction.findings.iter().filter(|c| wrong(c.told)) {
            table.rows.push(vec![
                Cell::text(prediction.study.clone()),
                Cell::text(checked.finding.to_string()),
                Cell::text(checked.claim.clone()),
                Cell::text(checked.evidence.clone()).tone(Tone::Bad),
                own_rows(checked),
            ]);
        }
    }
    table.drop_empty_columns();
    (!table.rows.is_empty()).then_some(table)
}
