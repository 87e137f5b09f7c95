//! The language reference: each of its examples is what it says.
mod common;

use common::{known, root};
use raidlab_experiment::experiment::{ChartKind, TableKind};
use raidlab_experiment::hardware::{AtaMode, CacheMode, ControllerKind, Link};
use raidlab_experiment::kernel::{FilesystemKind, JournalMode, Scheduler};
use raidlab_experiment::parse;

/// Blocks of code with the words after their fence.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(words) => {
                inside = true;
                blocks.push((words.to_owned(), String::new()));
            }
            None if inside => {
                let (_, block) = blocks.last_mut().expect("a block has begun");
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    assert!(!inside, "a block is not closed");
    blocks
}

fn reference() -> String {
    std::fs::read_to_string(root().join("docs/experiments.md")).expect("the reference is there")
}

#[test]
fn every_example_is_sound() {
    let text = reference();
    let sound: Vec<_> = blocks(&text)
        .into_iter()
        .filter(|b| b.0 == "toml")
        .collect();
    assert!(sound.len() >= 9, "examples are missing");
    for (_, example) in sound {
        if let Err(error) = parse(&example, "docs/experiments.md", &known()) {
            panic!("{}\n{example}", error.render(false));
        }
    }
}

#[test]
fn the_mistakes_are_told_as_printed() {
    let text = reference();
    let blocks = blocks(&text);
    let wrong = blocks
        .iter()
        .position(|b| b.0 == "toml wrong")
        .expect("an example");
    let error = parse(&blocks[wrong].1, "lab.toml", &known()).expect_err("it is wrong");
    assert_eq!(error.render(false), blocks[wrong + 1].1);
}

#[test]
fn the_cells_are_as_many_as_the_text_says() {
    let text = reference();
    let (_, first) = &blocks(&text)[0];
    let experiment = parse(first, "first", &known()).expect("sound");
    assert_eq!((experiment.cells.len(), experiment.design.repeats), (2, 3));
}

#[test]
fn every_word_of_the_language_is_explained() {
    let text = reference();
    let words = [
        ControllerKind::ALL
            .iter()
            .map(|w| w.name())
            .collect::<Vec<_>>(),
        Link::ALL.iter().map(|w| w.name()).collect(),
        CacheMode::ALL.iter().map(|w| w.name()).collect(),
        [AtaMode::Udma2, AtaMode::Udma6]
            .iter()
            .map(|w| w.name())
            .collect(),
        Scheduler::ALL.iter().map(|w| w.name()).collect(),
        FilesystemKind::ALL.iter().map(|w| w.name()).collect(),
        JournalMode::ALL.iter().map(|w| w.name()).collect(),
        TableKind::ALL.iter().map(|w| w.name()).collect(),
        ChartKind::ALL.iter().map(|w| w.name()).collect(),
    ];
    for word in words.concat() {
        assert!(
            text.contains(&format!("`{word}`")),
            "'{word}' is not explained"
        );
    }
}
