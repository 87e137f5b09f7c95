//! Cells that do something else are no rivals: each load has a best of its own.
use super::experiments::request;
use super::synthetic;
use crate::record::{PhaseRecord, TrialRecord, Unit};
use crate::report::document::{Block, Table};
use crate::report::experiment::{ArrayFacts, ExperimentRequest, WantedTable};
use crate::report::{
    Baseline, Document, Selector, experiment_answers, experiment_report, render_html,
};

/// MiB/s of reading with 1 and with 32 in flight: what is fastest is another one with many than with one, and any with many is
/// ahead of all with one.
const ARRAYS: [(&str, f64, f64); 3] = [
    ("raid5", 1.0, 10.0),
    ("raid6", 0.8, 12.0),
    ("raid10", 1.2, 8.0),
];

/// Each array with both loads.
fn trials() -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for (array, one, many) in ARRAYS {
        for (load, depth, mib) in [("rand1", "1", one), ("rand32", "32", many)] {
            let label = format!("{array}, {load}");
            let factors = [
                ("array", array),
                ("test", load),
                ("level", array),
                ("disks", "4"),
            ];
            for round in 0..3 {
                let mut trial = synthetic::trial(&label, &factors, "random", round);
                trial.settings.insert("depth".to_owned(), depth.to_owned());
                let rate = Some(mib * 1_048_576.0 * (1.0 + 1e-4 * f64::from(round)));
                let phase = |name| PhaseRecord::bare(name, rate, Unit::BytesPerSecond);
                trial.phases = vec![phase("read"), phase("write")];
                all.push(trial);
            }
        }
    }
    all
}

/// What is known of the arrays, of which each has so many TiB.
fn arrays(tebibytes: [u64; 3]) -> Vec<ArrayFacts> {
    let facts = ARRAYS.iter().zip(tebibytes).map(|((array, ..), size)| {
        let mut facts = request(Vec::new()).arrays.remove(0);
        facts.cells = ["rand1", "rand32"]
            .map(|load| format!("{array}, {load}"))
            .to_vec();
        facts.capacity = Some(size << 40);
        facts
    });
    facts.collect()
}

fn wanted(trials: Vec<TrialRecord>) -> ExperimentRequest {
    let mut request = ExperimentRequest {
        tables: vec![WantedTable::Ratios, WantedTable::Capacity],
        arrays: arrays([3, 2, 2]),
        ..request(trials)
    };
    let base = Selector::Label("raid5, rand1".to_owned());
    request.base.baseline = Some(Baseline::Cell(base));
    request
}

/// The first columns of the table of the best.
fn best(document: &Document, columns: usize) -> Vec<Vec<String>> {
    let mut tables = document.tables();
    let table = tables.find(|table| table.id == "random-fastest").unwrap();
    let texts = |row: &Vec<crate::report::document::Cell>| {
        let cells = row.iter().take(columns);
        cells.map(|cell| cell.value.text()).collect()
    };
    table.rows.iter().map(texts).collect()
}

#[test]
fn each_load_has_a_best_of_its_own() {
    let request = wanted(trials());
    let document = experiment_report(&request).unwrap();
    assert_eq!(
        best(&document, 3),
        [
            ["rand1", "read", "raid10, rand1"],
            ["rand1", "write", "raid10, rand1"],
            ["rand32", "read", "raid6, rand32"],
            ["rand32", "write", "raid6, rand32"],
        ]
    );
    let html = render_html(&document).unwrap();
    assert!(html.contains(">load</th>"), "a reader of HTML sees it, too");
    let told = experiment_answers(&request).unwrap().best;
    let told: Vec<_> = told
        .iter()
        .filter(|answer| answer.phase == "read")
        .map(|answer| {
            let next = answer.next.as_ref().unwrap();
            (&answer.among[0][..], &answer.cell[..], &next.cell[..])
        })
        .collect();
    assert_eq!(
        told,
        [
            ("rand1", "raid10, rand1", "raid5, rand1"),
            ("rand32", "raid6, rand32", "raid5, rand32")
        ]
    );
}

/// Of one array the loads are what is compared, as they were.
#[test]
fn loads_of_one_array_are_compared() {
    let mut all = trials();
    all.retain(|trial| trial.cell.label.starts_with("raid6"));
    let mut request = wanted(all);
    request.base.baseline = None;
    let document = experiment_report(&request).unwrap();
    let rows = best(&document, 2);
    assert_eq!(
        rows,
        [["read", "raid6, rand32"], ["write", "raid6, rand32"]]
    );
}

/// Two states of it are: with one load and with the other.
#[test]
fn states_are_compared_within_a_load() {
    let mut all = trials();
    all.retain(|trial| !trial.cell.label.starts_with("raid5"));
    for trial in &mut all {
        let state = match trial.cell.label.starts_with("raid10") {
            true => "clean",
            false => "degraded 1",
        };
        let factors = &mut trial.cell.factors;
        factors.insert("state".to_owned(), state.to_owned());
    }
    let mut request = wanted(all);
    request.base.baseline = None;
    let rows = best(&experiment_report(&request).unwrap(), 3);
    let read: Vec<_> = rows.iter().filter(|row| row[1] == "read").collect();
    assert_eq!(read[0][2], "raid10, rand1");
    assert_eq!(read[1][2], "raid6, rand32");
}

/// A region of all of the array is no other load because the array is larger.
#[test]
fn what_reaches_to_the_end_of_its_array_does_the_same() {
    let of_size = |size: [u64; 3], offset: u64| {
        let mut all = trials();
        all.retain(|trial| trial.cell.label.ends_with("rand1"));
        for trial in &mut all {
            let name = trial.cell.label.split(',').next().unwrap();
            let place = ARRAYS.iter().position(|array| array.0 == name).unwrap();
            // Whole blocks.
            let bytes = (size[place] << 40) - offset - 4096;
            let settings = &mut trial.settings;
            settings.insert("size".to_owned(), bytes.to_string());
            settings.insert("offset".to_owned(), offset.to_string());
        }
        best(&experiment_report(&wanted(all)).unwrap(), 2)
    };
    let all = [["read", "raid10, rand1"], ["write", "raid10, rand1"]];
    assert_eq!(of_size([3, 2, 2], 0), all);
    assert_eq!(of_size([3, 2, 2], 1 << 40), all);
    // A part of it is as large as it was said to be: of the small ones another load than of the large one.
    let part = |phase| ["size 1024.0 GiB", phase];
    assert_eq!(of_size([2, 1, 1], 0), ["read", "write"].map(part));
}

fn closing(document: &Document) -> (Vec<&Table>, Vec<&Vec<String>>) {
    let tables = document.tables();
    let tables = tables.filter(|table| table.id.starts_with("random-closing"));
    let picks = document.blocks.iter().filter_map(|block| match block {
        Block::List { items } if items[0].starts_with("Best value") => Some(items),
        _ => None,
    });
    (tables.collect(), picks.collect())
}

#[test]
fn picks_are_of_a_load_and_ratios_to_what_does_the_same() {
    let document = experiment_report(&wanted(trials())).unwrap();
    let (tables, picks) = closing(&document);
    let captions: Vec<&str> = tables
        .iter()
        .map(|table| table.caption.split(", with").next().unwrap())
        .collect();
    assert_eq!(
        captions,
        [
            "Every layout as a ratio to raid5, rand1",
            "Every layout as a ratio to raid5, rand32"
        ]
    );
    let fastest: Vec<&str> = picks.iter().map(|items| &items[1][..]).collect();
    let geometric = "(geometric mean of the ratios, arrays only)";
    assert_eq!(
        fastest,
        [
            format!("Fastest, cost no object of rand1 {geometric}: raid10, rand1 (1.20)"),
            format!("Fastest, cost no object of rand32 {geometric}: raid6, rand32 (1.20)"),
        ]
    );
    assert!(
        picks[1][0].starts_with("Best value of rand32 ("),
        "{picks:?}"
    );
    let headings = document
        .blocks
        .iter()
        .filter(|block| matches!(block, Block::Heading { text, .. } if text == "Closing table"));
    assert_eq!(headings.count(), 1);
    // The ratios that the file asks for are to the baseline that it names.
    let mut all = document.tables();
    let ratios = all.find(|table| table.id == "random-ratios").unwrap();
    assert!(
        ratios
            .rows
            .iter()
            .any(|row| row[0].value.text() == "raid6, rand32")
    );
}

/// Labels that do not tell the loads apart leave it to the settings.
#[test]
fn a_load_is_called_by_its_settings_where_no_level_names_it() {
    let mut all = trials();
    for trial in &mut all {
        let label = &mut trial.cell.label;
        *label = label.replace("rand1", "x").replace("rand32", "x");
    }
    let rows = best(&experiment_report(&wanted_plain(all)).unwrap(), 1);
    let names: Vec<&str> = rows.iter().map(|row| &row[0][..]).collect();
    assert_eq!(names, ["depth 1", "depth 1", "depth 32", "depth 32"]);
}

fn wanted_plain(trials: Vec<TrialRecord>) -> ExperimentRequest {
    let mut request = wanted(trials);
    request.base.baseline = None;
    request.arrays = Vec::new();
    request
}
