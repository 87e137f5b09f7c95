//! What a reader sees, whole: each reference study and an invented measured set.
use super::synthetic;
use crate::reference::study;
use crate::report::{
    Baseline, Document, ReportRequest, Selector, TerminalOptions, render_markdown, render_terminal,
    report, study_report,
};

fn of_study(id: &str) -> Document {
    study_report(&study(id).unwrap().unwrap(), Vec::new()).unwrap()
}

pub(super) fn measured() -> Document {
    let mut request = ReportRequest::new("Two layouts, measured", synthetic::repeats());
    for trial in request.trials.iter_mut().filter(|t| t.cell.label == "two") {
        trial.environment = Some("e2".to_owned());
    }
    request.environments = synthetic::environments();
    request.baseline = Some(Baseline::Cell(Selector::Label("one".to_owned())));
    report(&request).unwrap()
}

pub(super) fn swept() -> Document {
    report(&ReportRequest::new("Block sizes", synthetic::sweep())).unwrap()
}

fn terminal(document: &Document, width: u16) -> String {
    render_terminal(document, TerminalOptions::new(width, false))
}

#[test]
fn studies_in_a_terminal() {
    for id in [
        "pata-raid0",
        "pata-blocksize",
        "scsi-hdbench",
        "sata-md-levels",
        "zfs-ashift",
    ] {
        let name = format!("{id}-terminal");
        insta::assert_snapshot!(name, terminal(&of_study(id), 110));
    }
}

#[test]
fn studies_in_markdown() {
    for id in [
        "pata-raid0",
        "pata-blocksize",
        "scsi-hdbench",
        "sata-md-levels",
        "zfs-ashift",
    ] {
        let name = format!("{id}-markdown");
        insta::assert_snapshot!(name, render_markdown(&of_study(id), Some("images/")));
    }
}

#[test]
fn a_measured_set() {
    insta::assert_snapshot!("measured-terminal", terminal(&measured(), 120));
    insta::assert_snapshot!("measured-markdown", render_markdown(&measured(), None));
}

#[test]
fn a_sweep() {
    insta::assert_snapshot!("sweep-markdown", render_markdown(&swept(), None));
}

#[test]
fn narrow_ascii_and_coloured_terminals() {
    let ascii = TerminalOptions {
        width: 72,
        colour: false,
        ascii: true,
    };
    let text = render_terminal(&measured(), ascii);
    assert!(text.is_ascii());
    insta::assert_snapshot!("measured-narrow-ascii", text);
    let coloured = render_terminal(&measured(), TerminalOptions::new(120, true));
    assert!(
        coloured.starts_with("\u{1b}[1mTwo layouts"),
        "titles are bold"
    );
    if std::env::var_os("NO_COLOR").is_none() {
        assert!(
            coloured.contains("\u{1b}[38;5;10m"),
            "good ratios are green"
        );
    }
}

#[test]
fn tool_style_columns() {
    let documents = [
        report(&ReportRequest::new(
            "Own profiles",
            synthetic::own_profiles(),
        ))
        .unwrap(),
        report(&ReportRequest::new("Other tools", synthetic::imported())).unwrap(),
    ];
    for (document, name) in documents.iter().zip(["own", "imported"]) {
        let name = format!("columns-{name}");
        insta::assert_snapshot!(name, terminal(document, 100));
    }
}
