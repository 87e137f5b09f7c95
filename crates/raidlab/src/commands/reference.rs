//! `raidlab reference`.
use super::{output, print_folded, print_json};
use crate::args::{ReferenceAction, ReferenceArgs};
use crate::exit::{Failure, MISSING, Outcome};
use crate::place;
use raidlab_results::reference::{Published, Study, studies};
use raidlab_results::report::study_report;
use serde_json::json;
use std::fmt::Write as _;

pub(crate) fn run(args: &ReferenceArgs, place: &place::Store) -> Result<Outcome, Failure> {
    match &args.action {
        ReferenceAction::List { json } => list(*json),
        ReferenceAction::Run(args) => crate::predict::reference::run(args, place),
        ReferenceAction::Report { study, output } => {
            let study = find(study)?;
            let document = study_report(&study, Vec::new())
                .map_err(|error| Failure::from_error(MISSING, &error))?;
            output::emit(&document, output)?;
            Ok(Outcome::Done)
        }
    }
}

/// The study of that id.
pub(crate) fn find(id: &str) -> Result<Study, Failure> {
    let all = all()?;
    let known: Vec<_> = all.iter().map(|study| study.id.clone()).collect();
    all.into_iter().find(|study| study.id == id).ok_or_else(|| {
        Failure::bad_request(format!("there is no study '{id}'"))
            .remedy(format!("choose from {}", known.join(", ")))
    })
}

/// All studies.
pub(crate) fn all() -> Result<Vec<Study>, Failure> {
    studies().map_err(|error| Failure::from_error(MISSING, &error))
}

fn given(study: &Study) -> usize {
    let figures = study.rows.iter().flat_map(|row| &row.figures);
    figures
        .filter(|figure| matches!(figure.value, Published::Value(_) | Published::TooFast))
        .count()
}

fn list(as_json: bool) -> Result<Outcome, Failure> {
    let studies = all()?;
    if as_json {
        let listed: Vec<_> = studies
            .iter()
            .map(|s| json!({ "id": s.id, "date": s.date, "title": s.title, "tools": s.tools, "rows": s.rows.len(), "figures": given(s) }))
            .collect();
        print_json(&listed)?;
        return Ok(Outcome::Done);
    }
    let mut out = String::new();
    for study in &studies {
        let _ = writeln!(
            out,
            "{:<16} {}  {:>2} rows, {:>2} figures  {}\n{:>18}{}",
            study.id,
            study.date,
            study.rows.len(),
            given(study),
            study.tools.join(", "),
            "",
            study.title
        );
    }
    print_folded(&out)?;
    Ok(Outcome::Done)
}
