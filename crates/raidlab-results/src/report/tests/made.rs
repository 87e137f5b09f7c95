//! What is made from a document: HTML that needs nothing else, images, JSON; and what a report
//! refuses or warns of.
use super::snapshots::{measured, swept};
use super::synthetic;
use crate::record::{Place, Provenance};
use crate::reference::{studies, study};
use crate::report::document::{Block, Value};
use crate::report::{
    Baseline, Document, ReportError, ReportRequest, Selector, TerminalOptions, render_html,
    render_images, render_markdown, render_terminal, report, study_report, to_json,
};

fn documents() -> Vec<Document> {
    let mut all: Vec<Document> = studies()
        .unwrap()
        .iter()
        .map(|study| study_report(study, Vec::new()).unwrap())
        .collect();
    all.extend([measured(), swept()]);
    all
}

/// The answer stands first, and a list of cells in it must not push the rest out of sight.
#[test]
fn long_words_beside_numbers_may_be_wrapped() {
    use crate::report::document::{Cell, Column, Table};
    let columns = vec![Column::text("a"), Column::text("b"), Column::number("n")];
    let mut table = Table::new("t", "A caption", columns);
    let few = "raid10, chunk 64KiB";
    let many = "raid10, chunk 64KiB; raid10-f2, chunk 512KiB; raid10-f2, chunk 64KiB";
    table.rows = vec![vec![
        Cell::text(few),
        Cell::text(many),
        Cell::number(1.0, 0),
    ]];
    table.names = 0;
    let mut document = Document::new("d");
    document.blocks.push(Block::Table(table));
    let html = render_html(&document).unwrap();
    assert!(
        html.contains(&format!("<td class=\"left\">{few}</td>")),
        "{html}"
    );
    assert!(
        html.contains(&format!("<td class=\"left long\">{many}</td>")),
        "{html}"
    );
    assert!(html.contains(".numbers td.long{white-space:normal"));
    // A caption stays in sight while its table is moved.
    assert!(html.contains("<span>A caption</span></caption>"));
}

/// Where words are wrapped, a figure keeps its per cent, and a cell the mark of its footnote.
#[test]
fn a_line_does_not_begin_with_a_per_cent_or_a_mark() {
    use crate::report::document::{Cell, Column, Table};
    let columns = vec![Column::text("a"), Column::text("b")];
    let mut table = Table::new("t", "A caption", columns);
    let busy = "all six disks are 99-100 % busy, of that 58 % waiting for the sector to come round";
    table.rows = vec![vec![Cell::text("raid5"), Cell::text(busy).mark(1)]];
    table.footnote("why");
    let mut document = Document::new("d");
    document.blocks.push(Block::Table(table));
    for width in 20..110 {
        let text = render_terminal(&document, TerminalOptions::new(width, false));
        let begins = |sign: char| text.lines().any(|line| line.trim_start().starts_with(sign));
        assert!(!begins('%'), "{width}\n{text}");
        let notes = text
            .lines()
            .filter(|line| line.trim_start().starts_with('¹'));
        assert_eq!(notes.count(), 1, "{width}\n{text}");
        assert!(!text.contains('\u{a0}'), "a blank that is none is copied");
    }
    let html = render_html(&document).unwrap();
    assert!(html.contains("that 58\u{a0}% waiting"), "{html}");
}

#[test]
fn html_loads_nothing() {
    for document in documents() {
        let html = render_html(&document).unwrap();
        for load in [
            "http:", "https:", "//", "src=", "@import", "<link", "<script", "url(",
        ] {
            assert!(!html.contains(load), "{}: {load}", document.title);
        }
        let tables = document.tables().count();
        assert_eq!(html.matches("<caption").count(), tables);
        let charts = document.charts().count();
        assert_eq!(html.matches("<svg ").count(), charts);
        assert_eq!(html.matches("<desc ").count(), charts);
        assert_eq!(html.matches("<title id=").count(), charts);
    }
}

#[test]
fn ids_are_unique() {
    for document in documents() {
        let mut ids: Vec<&str> = document.tables().map(|t| t.id.as_str()).collect();
        ids.extend(document.charts().map(crate::report::document::Chart::id));
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{}", document.title);
    }
}

#[test]
fn images_have_text_and_size() {
    let images = render_images(&measured()).unwrap();
    let names: Vec<&str> = images.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "dd-bars-1",
            "dd-latency-write",
            "dd-latency-read",
            "dd-series-write",
            "dd-series-read"
        ]
    );
    for image in &images {
        assert!(image.svg.starts_with("<svg xmlns="));
        assert!(image.png.starts_with(b"\x89PNG\r\n"));
        let width = u32::from_be_bytes(image.png[16..20].try_into().unwrap());
        assert_eq!(width, 1720);
    }
}

#[test]
fn json_comes_back() {
    let document = measured();
    let back: Document = serde_json::from_str(&to_json(&document).unwrap()).unwrap();
    assert_eq!(back, document);
}

#[test]
fn labels_cannot_steer_anything() {
    let mut trials = synthetic::repeats();
    for trial in &mut trials {
        trial.cell.label = format!("<script>x</script>|\u{1b}[2J{}&", trial.cell.label);
        trial.command = Some("echo '```'\n</code>".to_owned());
    }
    let document = report(&ReportRequest::new("<b>", trials)).unwrap();
    let html = render_html(&document).unwrap();
    assert!(!html.contains("<script") && !html.contains("<b>"));
    let text = render_terminal(&document, TerminalOptions::new(100, false));
    assert!(!text.contains('\u{1b}'));
    let markdown = render_markdown(&document, None);
    let rows = markdown.lines().filter(|l| l.starts_with('|'));
    assert!(
        rows.into_iter()
            .all(|l| !l.replace("\\<", "").contains('<'))
    );
    render_images(&document).unwrap();
}

fn warnings(document: &Document) -> Vec<&str> {
    document
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Warning { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn ratio_cells(document: &Document) -> Vec<String> {
    let table = document.tables().find(|t| t.id == "dd-ratios").unwrap();
    let row = table.rows.iter().find(|r| r[0].value.text() == "two");
    row.unwrap().iter().map(|c| c.value.text()).collect()
}

#[test]
fn different_streams_are_compared_only_when_allowed() {
    let mut request = ReportRequest::new("t", synthetic::repeats());
    for trial in request.trials.iter_mut().filter(|t| t.cell.label == "two") {
        trial.digest = Some(0xd2);
    }
    request.baseline = Some(Baseline::Cell(Selector::Label("one".into())));
    let refused = report(&request).unwrap();
    assert_eq!(ratio_cells(&refused), ["two", "refused", "refused"]);
    assert!(warnings(&refused)[0].contains("refused"));
    request.allow_mixed_streams = true;
    let allowed = report(&request).unwrap();
    assert!(ratio_cells(&allowed)[1].starts_with("1.97 "));
    assert!(warnings(&allowed)[0].contains("were allowed"));
}

#[test]
fn mixed_provenance_is_said_and_never_averaged() {
    let study = study("zfs-ashift").unwrap().unwrap();
    let mut beside = study.trials();
    for trial in &mut beside {
        trial.provenance = Provenance::Measured { place: Place::Vm };
        for phase in &mut trial.phases {
            phase.rate = phase.rate.map(|r| 2.0 * r);
        }
    }
    let document = study_report(&study, beside).unwrap();
    assert!(warnings(&document)[0].contains("measured in a VM, published"));
    let figures = document
        .tables()
        .find(|t| t.id == "bonnie-figures")
        .unwrap();
    let labels: Vec<String> = figures.rows.iter().map(|r| r[0].value.text()).collect();
    assert_eq!(
        labels,
        [
            "ashift 9 (published, zfs-ashift)",
            "ashift 12 (published, zfs-ashift)",
            "ashift 9 (measured in a VM)",
            "ashift 12 (measured in a VM)"
        ]
    );
    assert_eq!(figures.rows[0][3].value.text(), "114327");
    assert_eq!(figures.rows[2][3].value.text(), "228654");
}

#[test]
fn names_of_other_tools_make_safe_and_single_ids() {
    let mut trials = synthetic::own_profiles();
    trials.truncate(2);
    for (trial, profile) in trials.iter_mut().zip(["../x\"><b>", "../x\"><b"]) {
        trial.profile = profile.to_owned();
        trial.phases[0].phase = "a/b".to_owned();
        trial.phases[1].phase = "a b".to_owned();
    }
    let document = report(&ReportRequest::new("t", trials)).unwrap();
    let mut names: Vec<String> = render_images(&document)
        .unwrap()
        .into_iter()
        .map(|i| i.name)
        .collect();
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '-';
    assert!(names.iter().all(|n| n.chars().all(safe)), "{names:?}");
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(!render_html(&document).unwrap().contains("<b>"));
}

#[test]
fn trials_without_any_phase_are_told_of() {
    let mut trials = synthetic::own_profiles();
    for trial in &mut trials {
        trial.phases.clear();
        trial.status = crate::record::Status::Failed {
            reason: "no such directory".into(),
        };
    }
    let mut request = ReportRequest::new("t", trials);
    request.baseline = Some(Baseline::Cell(Selector::Label("a".into())));
    let document = report(&request).unwrap();
    assert_eq!(
        warnings(&document)[0],
        "No trial got as far as its first figure."
    );
    let text = render_terminal(&document, TerminalOptions::new(80, false));
    assert!(
        text.contains("a, run 1: failed: no such directory"),
        "{text}"
    );
    render_html(&document).unwrap();
}

#[test]
fn sessions_taken_together_are_named() {
    let mut request = ReportRequest::new("t", synthetic::repeats());
    for trial in request.trials.iter_mut().skip(10) {
        trial.session = "1".repeat(32);
    }
    let document = report(&request).unwrap();
    let said = warnings(&document)[0];
    assert!(
        said.starts_with("dd of one: runs of 2 sessions are taken together. "),
        "{said}"
    );
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let empty = ReportRequest::new("t", Vec::new());
    assert_eq!(report(&empty), Err(ReportError::NoTrials));
    let mut request = ReportRequest::new("t", synthetic::repeats());
    request.margin = 0.0;
    assert_eq!(report(&request), Err(ReportError::Margin(0.0)));
    request.margin = f64::NAN;
    assert!(matches!(report(&request), Err(ReportError::Margin(_))));
    request.margin = 0.02;
    request.baseline = Some(Baseline::Cell(Selector::Label("three".into())));
    let error = report(&request).unwrap_err().to_string();
    assert_eq!(error, "the baseline 'three' is none of the cells: one; two");
}

#[test]
fn a_cell_without_valid_runs_is_invalid_not_zero() {
    let mut request = ReportRequest::new("t", synthetic::repeats());
    for trial in request.trials.iter_mut().filter(|t| t.cell.label == "two") {
        trial.status = crate::record::Status::Failed { reason: "x".into() };
    }
    request.baseline = Some(Baseline::Cell(Selector::Label("one".into())));
    let document = report(&request).unwrap();
    let figures = document.tables().find(|t| t.id == "dd-figures").unwrap();
    assert_eq!(figures.rows[1][1].value, Value::Invalid);
    render_html(&document).unwrap();
    render_images(&document).unwrap();
}

/// Figures that no sane run gives must not break a report: some record somewhere has them.
#[test]
fn strange_figures_are_survived() {
    use crate::record::{PhaseRecord, Unit};
    let strange = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300, 5e-324];
    for (a, b) in strange.iter().flat_map(|a| strange.map(|b| (*a, b))) {
        let mut trials = Vec::new();
        for round in 0..6 {
            for (label, value) in [("a", a), ("b", b)] {
                let mut trial =
                    synthetic::trial(label, &[("level", "raid0"), ("disks", "2")], "dd", round);
                for unit in [Unit::BytesPerSecond, Unit::Seconds] {
                    let name = if unit == Unit::Seconds {
                        "read"
                    } else {
                        "write"
                    };
                    let mut phase = PhaseRecord::bare(name, Some(value), unit);
                    phase.elapsed_ns = Some(1);
                    phase.series_width_ns = 1;
                    phase.series_bytes = vec![u64::MAX; 5];
                    trial.phases.push(phase);
                }
                trials.push(trial);
            }
        }
        let mut request = ReportRequest::new("t", trials);
        request.baseline = Some(Baseline::Cell(Selector::Label("a".into())));
        let document = report(&request).unwrap();
        render_html(&document).unwrap();
        assert!(!render_terminal(&document, TerminalOptions::new(1, false)).is_empty());
        assert!(!render_markdown(&document, None).is_empty());
    }
}

/// A chart over time names the lines that it has, and says which phases were too short for one.
#[test]
fn a_chart_over_time_names_what_it_draws() {
    use crate::report::document::Chart;
    let stream = raidlab_core::rng::Stream::new(1);
    let mut trial = synthetic::trial("one", &[], "dd", 0);
    // Of 1 GiB: 16 s and 1 s.
    trial.phases = vec![
        synthetic::phase("write", 64.0, stream),
        synthetic::phase("read", 900.0, stream),
    ];
    let document = report(&ReportRequest::new("t", vec![trial])).unwrap();
    let charts = document.blocks.iter().filter_map(|block| match block {
        Block::Chart(Chart::Lines(chart)) => Some(chart),
        _ => None,
    });
    let over_time: Vec<_> = charts
        .filter(|chart| chart.title.ends_with("over time"))
        .collect();
    assert_eq!(over_time.len(), 1);
    let chart = over_time[0];
    assert_eq!(chart.series.len(), 1);
    assert_eq!(chart.title, "dd: write over time");
    assert!(
        chart.description.contains("Too short for a line: read."),
        "{}",
        chart.description
    );
}

#[test]
fn many_cells_with_long_names_are_survived() {
    let mut trials = Vec::new();
    for i in 0..40 {
        let label = format!("{}/{i}", "long".repeat(40));
        let mut trial = synthetic::trial(&label, &[], "random", 0);
        let stream = raidlab_core::rng::Stream::new(i);
        trial.phases = vec![synthetic::phase("read", 10.0 * (i + 1) as f64, stream)];
        trials.push(trial);
    }
    let document = report(&ReportRequest::new("t", trials)).unwrap();
    let latency = document.charts().find(|c| c.id() == "random-latency-read");
    let description = latency.unwrap().description();
    assert!(
        description.ends_with("The first 12 of 40 are drawn."),
        "{description}"
    );
    render_images(&document).unwrap();
    let text = render_terminal(&document, TerminalOptions::new(80, false));
    assert!(text.lines().count() > 40);
}

/// Columns under a common heading are shown apart where they fit on no screen together.
#[test]
fn tables_fit_narrow_terminals() {
    let of_tables = |line: &&str| !line.contains(['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉']);
    for width in [50, 60, 80] {
        let options = TerminalOptions::new(width, false);
        let shown = render_terminal(&measured(), options);
        for line in shown
            .lines()
            .filter(of_tables)
            .filter(|l| !l.contains("raidlab bench"))
        {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
    }
}

/// A word is cut only where the screen is too narrow for it.
#[test]
fn narrow_tables_break_between_words() {
    use crate::report::document::{Cell, Column, Table};
    let cell = Cell::text;
    let columns = ["cell", "phase", "what limits it", "busiest"].map(Column::text);
    let mut table = Table::new("t", "A caption", columns.into());
    table.names = 2;
    let limit = "all six disks are 89 % busy, of that 81 % transferring";
    let row = [
        "two zfs mirrors",
        "block-write",
        limit,
        "disk3 92 %, disk0 91 %",
    ];
    table.rows = vec![row.map(cell).into()];
    let mut document = Document::new("d");
    document.blocks.push(Block::Table(table));
    for width in [40, 44, 50, 60] {
        let shown = render_terminal(&document, TerminalOptions::new(width, false));
        for line in shown.lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {shown}"
            );
        }
        for word in row.iter().flat_map(|text| text.split_whitespace()) {
            assert!(shown.contains(word), "{width}: {word} is cut: {shown}");
        }
    }
}

/// Neither a row nor the rule above it is wider than the screen, however wide the last column is.
#[test]
fn a_rule_ends_with_the_screen() {
    use crate::report::document::{Cell, Column, Table};
    for name in 20..40 {
        let mut table = Table::new("t", "c", vec![Column::text("n"), Column::number("f")]);
        table.rows = vec![vec![Cell::text("x".repeat(name)), Cell::number(12345.0, 0)]];
        table.names = 1;
        let mut document = Document::new("d");
        document.blocks.push(Block::Table(table));
        for width in 40..50 {
            let shown = render_terminal(&document, TerminalOptions::new(width, false));
            for line in shown.lines() {
                assert!(
                    line.chars().count() <= usize::from(width),
                    "{width}: {shown}"
                );
            }
        }
    }
}

/// A reader meets footnotes in the order of their numbers.
#[test]
fn footnotes_are_numbered_as_they_are_read() {
    for document in documents() {
        for table in document.tables() {
            let shown = table.read_by_rows();
            let mut known = 0;
            for mark in shown.rows.iter().flatten().flat_map(|cell| &cell.marks) {
                assert!(*mark <= known + 1, "{}: {mark} after {known}", table.id);
                known = known.max(*mark);
            }
            let mut notes = shown.footnotes.clone();
            let mut as_made = table.footnotes.clone();
            notes.sort();
            as_made.sort();
            assert_eq!(notes, as_made);
        }
    }
}
