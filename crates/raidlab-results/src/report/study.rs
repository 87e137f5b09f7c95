//! The report of a published study: its figures, its ratios, what it concluded and whether its rows
//! bear that out.
use super::analysis::Judging;
use super::blocks::closing::{Closing, closing};
use super::blocks::context;
use super::blocks::published::findings;
use super::blocks::ratios::{Ratios, ratios};
use super::document::{Block, Cell, Column, Document, Table};
use super::group::{Group, group};
use super::select::{Baseline, Selector};
use super::{ReportError, ReportRequest, by_profile, charts, figures, finish};
use crate::record::TrialRecord;
use crate::reference::Study;
use std::collections::BTreeMap;

/// The report of a study. `beside` are further trials of the same profile (measured, simulated or
/// imported) that are shown with the published rows.
///
/// # Errors
/// [`ReportError::Margin`] cannot occur with the default margin; the type is that of
/// [`report`](super::report).
pub fn study_report(study: &Study, beside: Vec<TrialRecord>) -> Result<Document, ReportError> {
    let mut trials = study.trials();
    trials.extend(beside);
    let request = ReportRequest::new(study.title.clone(), trials);
    let judging = request.judging()?;
    let mut document = Document::new(format!("{} ({})", study.title, study.date));
    let out = &mut document.blocks;
    out.extend(setup(study));
    let groups = group(&request.trials);
    if groups.is_empty() {
        out.push(Block::warning(
            "The study's file gives no figures: what was compared, how, and what was found is all \
             that can be shown.",
        ));
    } else {
        out.push(Block::heading("Where the figures come from"));
        out.extend(context::provenance(&groups));
    }
    for groups in by_profile(&groups) {
        let profile = groups[0].profile;
        out.push(Block::heading(format!("Results: {profile}")));
        out.push(context::sources(&groups));
        out.extend(context::settings(&groups));
        figures(out, profile, &groups, &judging);
        out.extend(comparisons(study, &groups, &judging));
        charts(out, profile, &groups, &judging);
        if let Some((baseline, size)) = &study.closing {
            let what = Closing {
                profile,
                baseline: &Selector::Label(baseline.clone()),
                size,
                arrays: &[],
            };
            out.extend(closing(&what, &groups, &judging));
        }
    }
    out.push(Block::heading("What the study found"));
    out.push(Block::List {
        items: study
            .findings
            .iter()
            .map(|finding| format!("Finding {}: {}", finding.number, finding.text))
            .collect(),
    });
    out.push(Block::Table(checked(study)));
    finish(out, &groups, &BTreeMap::new());
    if groups.is_empty() && !study.commands.is_empty() {
        out.push(Block::heading("As it was measured"));
        let lines = study.commands.clone();
        out.push(Block::Commands { lines });
    }
    document.settle_ids();
    Ok(document)
}

fn setup(study: &Study) -> Vec<Block> {
    let columns = vec![Column::text(""), Column::text("")];
    let mut table = Table::new("setup", "What was measured, and with what", columns);
    let mut row = |name: &str, text: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(text)]);
    };
    row("study", format!("{} ({})", study.id, study.date));
    row("tools", study.tools.join(", "));
    if let Some(size) = study.file_size {
        row("file size", size.to_string());
    }
    if let Some(runs) = study.runs {
        row("runs", runs.to_string());
    }
    if let Some(aggregate) = &study.aggregate {
        row("figure", aggregate.clone());
    }
    for fact in &study.setup {
        row(&fact.name, fact.text.clone());
    }
    let mut blocks = vec![Block::Table(table)];
    for plan in &study.plans {
        blocks.push(Block::paragraph(format!("{}:", plan.name)));
        blocks.push(Block::List {
            items: plan.items.clone(),
        });
    }
    blocks
}

/// The comparisons that the study's text makes, each with its baseline rule.
fn baselines(study: &Study) -> Vec<(&'static str, Baseline)> {
    let label = |text: &str| Selector::Label(text.to_owned());
    let factor = |name: &str, level: &str| BTreeMap::from([(name.to_owned(), level.to_owned())]);
    let factors = |name: &str, level: &str| Selector::Factors(factor(name, level));
    match study.id.as_str() {
        "pata-raid0" => vec![
            ("Against one disk", Baseline::Cell(label("md raid0 1 disk"))),
            (
                "One channel against two",
                Baseline::Cases(vec![
                    (
                        label("md raid0 2 disks, 1 channel"),
                        label("md raid0 2 disks, 2 channels"),
                    ),
                    (
                        label("bios raid0 2 disks, 1 channel"),
                        label("bios raid0 2 disks, 2 channels"),
                    ),
                ]),
            ),
            (
                "Kernel md against the controller's own RAID, same disks and channels",
                Baseline::Factor(factor("engine", "controller")),
            ),
        ],
        // "The external disks write slower than the internal ones; a mixed array is compared with
        // the slower": finding 4.
        "scsi-hdbench" => vec![(
            "Against one disk of the same make (mixed arrays: the slower make)",
            Baseline::Cases(vec![
                (factors("enclosure", "internal"), label("single internal")),
                (Selector::Factors(BTreeMap::new()), label("single external")),
            ]),
        )],
        "zfs-ashift" => vec![(
            "ashift 12 against ashift 9",
            Baseline::Factor(factor("ashift", "9")),
        )],
        _ => Vec::new(),
    }
}

fn comparisons(study: &Study, groups: &[Group<'_>], judging: &Judging) -> Vec<Block> {
    baselines(study)
        .iter()
        .zip(1..)
        .filter_map(|((title, baseline), number)| {
            let what = Ratios {
                id: format!("{}-ratios-{number}", study.id),
                title,
                baseline,
            };
            ratios(&what, groups, judging).map(Block::Table)
        })
        .collect()
}

/// The findings part by part with what the rows say.
fn checked(study: &Study) -> Table {
    let caption = "Do the study's own rows bear its findings out?";
    let by = "by the study's own rows";
    findings("findings", caption, by, &study.check_findings())
}
