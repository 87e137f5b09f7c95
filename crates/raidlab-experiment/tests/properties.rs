//! What holds for every text and every experiment.
mod common;

use common::{known, root};
use proptest::prelude::*;
use raidlab_experiment::experiment::Order;
use raidlab_experiment::{Experiment, exercise, expand, parse};
use std::collections::BTreeSet;

const LAYOUTS: [&str; 6] = ["raid0", "raid4", "raid5", "raid6", "raid10", "raid10-f2"];
const CHUNKS: [&str; 5] = ["4KiB", "16KiB", "64KiB", "256KiB", "1MiB"];
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "bfq", "kyber"];

/// Texts that are nearly experiments: the repository's own with a few edits.
fn edited() -> impl Strategy<Value = String> {
    let texts: Vec<String> = std::fs::read_dir(root().join("experiments"))
        .expect("experiments")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a text"))
        .filter(|text| text.len() < 4000 && !text.contains("call-size"))
        .collect();
    let words = prop::sample::select(vec![
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "-1",
        "0",
        "\"64K\"",
        "\"raid5\"",
        "\n",
        ",",
        "é",
        "\u{0}",
        "'",
        "\"\"\"",
        "18446744073709551616",
        "1e999",
        "nan",
        "true",
        "[[exclude]]\n",
        "\"degraded 9\"",
        "\"\u{1b}[31m\"",
        "\r",
        "1979-05-27",
        "\"raid50 999x999\"",
        "members = 1000000\n",
    ]);
    let edit = (any::<prop::sample::Index>(), 0_usize..12, words);
    let edits = prop::collection::vec(edit, 1..5);
    (prop::sample::select(texts), edits).prop_map(|(mut text, edits)| {
        for (place, cut, word) in edits {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            if places.is_empty() {
                break;
            }
            let first = place.index(places.len());
            let last = places.get(first + cut).copied().unwrap_or(text.len());
            text.replace_range(places[first]..last, word);
        }
        text
    })
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    quoted.join(", ")
}

/// Layouts, chunks, schedulers, places of what is left out, repeats.
type Made = (
    Vec<&'static str>,
    Vec<&'static str>,
    Vec<&'static str>,
    Vec<(usize, usize)>,
    u32,
);

/// A sound experiment of three factors, and what it leaves out: a layout and chunk each.
fn made() -> impl Strategy<Value = Made> {
    let some =
        |words: &'static [&'static str]| prop::sample::subsequence(words.to_vec(), 1..=words.len());
    let out = prop::collection::vec((0_usize..6, 0_usize..5), 0..4);
    (
        some(&LAYOUTS),
        some(&CHUNKS),
        some(&SCHEDULERS),
        out,
        1_u32..6,
    )
}

fn text_of(
    layouts: &[&str],
    chunks: &[&str],
    schedulers: &[&str],
    excluded: &BTreeSet<(&str, &str)>,
    repeats: u32,
) -> String {
    let mut text = format!(
        "title = \"t\"\nprofile = \"random\"\ndisks = {{ model = \"nearline-24tb\", count = 6 }}\n\
         [factors]\nlayout = [{}]\nchunk = [{}]\nscheduler = [{}]\n[design]\nrepeats = {repeats}\n",
        list(layouts),
        list(chunks),
        list(schedulers)
    );
    for (layout, chunk) in excluded {
        text.push_str(&format!(
            "[[exclude]]\nlayout = \"{layout}\"\nchunk = \"{chunk}\"\n"
        ));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        exercise(&text, &known());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&String::from_utf8_lossy(&bytes), &known());
    }

    #[test]
    fn no_edit_of_an_experiment_makes_it_panic(text in edited()) {
        exercise(&text, &known());
    }

    #[test]
    fn the_cells_are_the_product_less_what_is_left_out(
        (layouts, chunks, schedulers, out, repeats) in made()
    ) {
        let excluded: BTreeSet<(&str, &str)> = out
            .iter()
            .filter_map(|(l, c)| Some((*layouts.get(*l)?, *chunks.get(*c)?)))
            .collect();
        let all = layouts.len() * chunks.len() * schedulers.len();
        let left_out = excluded.len() * schedulers.len();
        let text = text_of(&layouts, &chunks, &schedulers, &excluded, repeats);
        let parsed = parse(&text, "made.toml", &known());
        if all == left_out {
            prop_assert!(parsed.is_err());
            return Ok(());
        }
        let experiment = parsed.map_err(|e| TestCaseError::fail(e.render(false)))?;
        prop_assert_eq!(experiment.cells.len(), all - left_out);
        prop_assert_eq!(experiment.excluded, left_out as u64);
        let labels: BTreeSet<&str> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
        prop_assert_eq!(labels.len(), experiment.cells.len());
        let combinations: BTreeSet<_> = experiment.cells.iter().map(|c| &c.levels).collect();
        prop_assert_eq!(combinations.len(), experiment.cells.len());
        for cell in &experiment.cells {
            let pair = (cell.levels["layout"].as_str(), cell.levels["chunk"].as_str());
            prop_assert!(!excluded.contains(&pair));
        }
    }

    #[test]
    fn every_round_holds_each_cell_once_and_depends_on_the_seed_alone(
        (layouts, chunks, schedulers, _, repeats) in made(),
        seed: u64,
    ) {
        let text = text_of(&layouts, &chunks, &schedulers, &BTreeSet::new(), repeats);
        let experiment: Experiment =
            parse(&text, "made.toml", &known()).map_err(|e| TestCaseError::fail(e.render(false)))?;
        let plan = expand(&experiment, seed);
        prop_assert_eq!(&plan, &expand(&experiment, seed));
        let cells = experiment.cells.len();
        prop_assert_eq!(plan.trials.len(), cells * repeats as usize);
        let mut seeds = BTreeSet::new();
        for (round, trials) in plan.trials.chunks(cells).enumerate() {
            let met: BTreeSet<usize> = trials.iter().map(|t| t.cell).collect();
            prop_assert_eq!(met, (0..cells).collect::<BTreeSet<usize>>());
            prop_assert!(trials.iter().all(|t| t.round as usize == round && t.seed == trials[0].seed));
            seeds.insert(trials[0].seed);
        }
        prop_assert_eq!(seeds.len(), repeats as usize);
        let in_order = plan.trials.iter().zip(0..).all(|(trial, n)| trial.order == n);
        prop_assert!(in_order);
        let mut declared = experiment.clone();
        declared.design.order = Order::Declared;
        let plan = expand(&declared, seed);
        prop_assert!(plan.trials.iter().enumerate().all(|(i, t)| t.cell == i % cells));
    }
}

/// Orders are part of what is stored with results: a change makes them incomparable.
#[test]
fn the_order_of_a_seed_is_fixed_for_ever() {
    let text = text_of(
        &LAYOUTS,
        &CHUNKS[..1],
        &SCHEDULERS[..1],
        &BTreeSet::new(),
        2,
    );
    let experiment = parse(&text, "made.toml", &known()).expect("sound");
    let plan = expand(&experiment, 7);
    let order: Vec<usize> = plan.trials.iter().map(|t| t.cell).collect();
    assert_eq!(order, [5, 4, 3, 0, 1, 2, 3, 0, 1, 2, 4, 5]);
    let seeds = [plan.trials[0].seed, plan.trials[6].seed];
    assert_eq!(
        seeds,
        [12_184_338_468_900_550_100, 8_151_781_231_599_574_819]
    );
}
