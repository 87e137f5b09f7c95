//! Which cells another one beats, and what each gives for its price.
use super::experiments::{request, trials};
use crate::record::{Provenance, TrialRecord};
use crate::report::document::{Block, Cell, Document};
use crate::report::experiment::{ArrayFacts, ExperimentRequest, WantedTable};
use crate::report::{TerminalOptions, experiment_report, render_terminal};
use raidlab_core::flag::{Flag, FlagKind};

/// What a case says of an array.
type Change<'c> = &'c dyn Fn(&mut ArrayFacts);

/// Four cells of two layouts: raid5 (noop, cfq) reads 50 and 60, raid10 100 and 110 MB/s, with what is asked for about
/// the two arrays.
fn wanted(change: impl Fn(&mut ArrayFacts)) -> ExperimentRequest {
    let mut all = trials();
    for trial in &mut all {
        let rate = match trial.cell.label.as_str() {
            "raid5, noop" => 50e6,
            "raid5, cfq" => 60e6,
            "raid10, noop" => 100e6,
            _ => 110e6,
        };
        trial.phases.truncate(1);
        trial.phases[0].rate = Some(rate * (1.0 + 1e-4 * f64::from(trial.round)));
    }
    of(all, change)
}

fn of(trials: Vec<TrialRecord>, change: impl Fn(&mut ArrayFacts)) -> ExperimentRequest {
    let mut request = request(trials);
    request.tables = vec![WantedTable::Worth];
    for (facts, layout) in request.arrays.iter_mut().zip(["raid5", "raid10"]) {
        facts.cells = ["noop", "cfq"].map(|s| format!("{layout}, {s}")).to_vec();
        change(facts);
    }
    request
}

fn document(request: &ExperimentRequest) -> Document {
    experiment_report(request).unwrap()
}

/// Who is beaten by whom, and in what.
fn beaten(request: &ExperimentRequest) -> Vec<[String; 3]> {
    let document = document(request);
    let Some(table) = document.tables().find(|table| table.id == "dd-worth") else {
        return Vec::new();
    };
    let place = |name: &str| table.columns.iter().position(|c| c.title == name).unwrap();
    let columns = ["cell", "is beaten by", "which is better"].map(place);
    let text = |row: &[Cell], column: usize| row[column].value.text();
    let rows = table.rows.iter();
    rows.map(|row| columns.map(|column| text(row, column)))
        .collect()
}

fn answer(request: &ExperimentRequest) -> String {
    let blocks = document(request).blocks;
    let found = blocks.into_iter().find_map(|block| match block {
        Block::Paragraph { text } if text.contains("worth a look") || text.contains("Worth a") => {
            Some(text)
        }
        _ => None,
    });
    found.unwrap_or_default()
}

#[test]
fn who_is_as_good_in_everything_and_better_in_something_beats() {
    let equal = wanted(|_| {});
    let best = "raid10, cfq".to_owned();
    let rows = beaten(&equal);
    let losers = ["raid5, noop", "raid5, cfq", "raid10, noop"];
    let better = ["read 2.20x", "read 1.83x", "read 1.10x"];
    let all: Vec<[String; 3]> = losers
        .iter()
        .zip(better)
        .map(|(cell, why)| [(*cell).to_owned(), best.clone(), why.to_owned()])
        .collect();
    assert_eq!(rows, all);
    assert_eq!(
        answer(&equal),
        "Worth a look: raid10, cfq. Each of the other 3 has a cell beside it that is as good in everything, and better in \
         something."
    );
}

/// Where more failures are survived whichever they are, the share of second ones decides nothing: it may not be known.
#[test]
fn who_survives_more_needs_no_share_of_second_failures() {
    let rows = beaten(&wanted(|facts| {
        let raid10 = facts.name.starts_with("raid10");
        facts.survives = if raid10 { 2 } else { 1 };
        facts.second = (!raid10).then_some(0.67);
    }));
    let of_raid5 = rows.iter().find(|row| row[0] == "raid5, cfq").unwrap();
    assert_eq!(of_raid5[1], "raid10, cfq");
    assert!(
        of_raid5[2].starts_with("survives 1 more failure"),
        "{of_raid5:?}"
    );
}

#[test]
fn who_holds_more_survives_more_or_costs_less_is_not_beaten() {
    let raid5 = |facts: &ArrayFacts| facts.name.starts_with("raid5");
    let changes: [(&str, Change<'_>); 4] = [
        ("capacity", &|f| {
            f.capacity = Some(if raid5(f) { 3 << 40 } else { 2 << 40 });
        }),
        ("failures", &|f| f.survives = if raid5(f) { 2 } else { 1 }),
        ("second failures", &|f| {
            f.second = Some(if raid5(f) { 0.67 } else { 0.33 });
        }),
        ("price", &|f| {
            let price = if raid5(f) { "100 EUR" } else { "100.01 EUR" };
            f.price = Some(price.parse().unwrap());
        }),
    ];
    for (what, change) in changes {
        let rows = beaten(&wanted(change));
        let of_raid5 = rows.iter().find(|row| row[0] == "raid5, cfq");
        assert_eq!(of_raid5, None, "{what}");
        // Within the array nothing has changed.
        let cells: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(cells, ["raid5, noop", "raid10, noop"], "{what}");
    }
    // What is left over of a chunk is no reason.
    let chunk = wanted(|f| f.capacity = Some((3 << 40) + if raid5(f) { 1 << 19 } else { 0 }));
    assert_eq!(beaten(&chunk).len(), 3);
}

#[test]
fn reasons_beside_speed_are_told() {
    let raid10 = |facts: &ArrayFacts| facts.name.starts_with("raid10");
    let request = wanted(|facts| {
        let better = raid10(facts);
        facts.capacity = Some(if better { 3 << 40 } else { 2 << 40 });
        facts.survives = if better { 2 } else { 1 };
        facts.price = Some(
            if better { "90 EUR" } else { "100.50 EUR" }
                .parse()
                .unwrap(),
        );
    });
    let row = &beaten(&request)[0];
    assert_eq!(
        row[2],
        "10.50 EUR less; 1.50x the capacity; survives 1 more failure; and 1 more"
    );
}

#[test]
fn a_cell_that_is_slower_in_one_phase_does_not_beat() {
    let mut request = wanted(|_| {});
    for trial in &mut request.base.trials {
        let mut write = trial.phases[0].clone();
        write.phase = "write".to_owned();
        // As much as the margin allows, and more than that.
        let share = match trial.cell.label.as_str() {
            "raid10, cfq" => 0.985,
            "raid10, noop" => 0.9,
            _ => 1.0,
        };
        write.rate = Some(share * 50e6 * (1.0 + 1e-4 * f64::from(trial.round)));
        trial.phases.push(write);
    }
    let rows = beaten(&request);
    let cells: Vec<[&str; 2]> = rows
        .iter()
        .map(|r| [r[0].as_str(), r[1].as_str()])
        .collect();
    let by = "raid10, cfq";
    assert_eq!(
        cells,
        [
            ["raid5, noop", by],
            ["raid5, cfq", by],
            ["raid10, noop", by]
        ]
    );
    // Only what was measured on both sides can be compared.
    for trial in &mut request.base.trials {
        if trial.cell.label == by {
            trial.phases.truncate(1);
        }
    }
    let rows = beaten(&request);
    let cells: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(cells, ["raid5, noop"], "by the other scheduler");
}

#[test]
fn differences_that_may_be_chance_beat_nobody() {
    let mut request = wanted(|_| {});
    for trial in &mut request.base.trials {
        // 1 % apart, and spread by 20 %.
        let better = trial.cell.label == "raid10, cfq";
        let spread = [0.9, 1.1, 1.0][trial.round as usize % 3];
        let spread = if better { 2.0 - spread } else { spread };
        trial.phases[0].rate = Some(if better { 101e6 } else { 100e6 } * spread);
    }
    assert_eq!(beaten(&request), Vec::<[String; 3]>::new());
    assert!(answer(&request).starts_with("All 4 cells are worth a look: "));
}

#[test]
fn nobody_chooses_between_states_workloads_or_a_prediction_and_a_measurement() {
    let changes: [&dyn Fn(&mut TrialRecord); 3] = [
        &|trial| {
            let states = &mut trial.cell.factors;
            states.insert("state".to_owned(), "degraded 1".to_owned());
        },
        &|trial| {
            trial.settings.insert("depth".to_owned(), "32".to_owned());
        },
        &|trial| {
            trial.provenance = Provenance::Measured {
                place: crate::record::Place::Vm,
            }
        },
    ];
    for change in changes {
        let mut request = wanted(|_| {});
        let raid10 = |trial: &&mut TrialRecord| trial.cell.label.starts_with("raid10");
        request
            .base
            .trials
            .iter_mut()
            .filter(raid10)
            .for_each(change);
        let rows = beaten(&request);
        let cells: Vec<[&str; 2]> = rows
            .iter()
            .map(|r| [r[0].as_str(), r[1].as_str()])
            .collect();
        assert_eq!(
            cells,
            [
                ["raid5, noop", "raid5, cfq"],
                ["raid10, noop", "raid10, cfq"]
            ]
        );
    }
}

#[test]
fn prices_are_shown_as_a_reader_wants_them() {
    let mut request = wanted(|facts| {
        let price = match facts.name.starts_with("raid5") {
            true => "1290 EUR",
            false => "1719.60 EUR",
        };
        facts.price = Some(price.parse().unwrap());
    });
    request.tables.push(WantedTable::Capacity);
    for trial in &mut request.base.trials {
        trial
            .cell
            .factors
            .insert("capacity-disks".to_owned(), "3".to_owned());
        let mut write = trial.phases[0].clone();
        write.phase = "write".to_owned();
        trial.phases.push(write);
    }
    let text = render_terminal(&document(&request), TerminalOptions::new(110, false));
    insta::assert_snapshot!(text);
    // Prices of some arrays alone compare nothing.
    let partly = wanted(|facts| {
        facts.price = facts
            .name
            .starts_with("raid5")
            .then(|| "9 EUR".parse().unwrap());
    });
    let document = document(&partly);
    assert!(document.tables().all(|table| table.id != "dd-for-money"));
    assert_eq!(beaten(&partly).len(), 3);
}

/// Bytes are not compared with disks.
#[test]
fn an_array_whose_bytes_are_not_known_is_compared_by_its_disks() {
    let raid10 = |facts: &ArrayFacts| facts.name.starts_with("raid10");
    let request = wanted(|facts| {
        facts.capacity = Some(2 << 40).filter(|_| raid10(facts));
        facts.capacity_disks = "2".to_owned();
    });
    assert_eq!(
        beaten(&request)[1],
        ["raid5, cfq", "raid10, cfq", "read 1.83x"].map(String::from)
    );
    let request = wanted(|facts| {
        facts.capacity = Some(2 << 40).filter(|_| raid10(facts));
        facts.capacity_disks = if raid10(facts) { "2" } else { "3" }.to_owned();
    });
    let rows = beaten(&request);
    assert!(
        rows.iter().all(|row| row[0] != "raid5, cfq"),
        "it holds more: {rows:?}"
    );
}

/// What was not found out about is no choice.
#[test]
fn a_cell_without_any_figure_is_not_worth_a_look() {
    let mut request = wanted(|_| {});
    for trial in &mut request.base.trials {
        if trial.cell.label == "raid5, noop" {
            trial.phases[0].rate = None;
        }
    }
    assert_eq!(
        answer(&request),
        "Worth a look: raid10, cfq. Each of the other 2 has a cell beside it that is as good in everything, and better in \
         something."
    );
}

/// What was over too soon, or came from a cache, tells nothing of the arrays; where one side alone was, the other side was
/// timed soundly.
#[test]
fn figures_that_are_doubted_decide_nothing() {
    // raid10 reads faster, and creates slower.
    let create =
        |rate: &dyn Fn(&str) -> f64, kind: Option<FlagKind>, doubted: &dyn Fn(&str) -> bool| {
            let mut request = wanted(|_| {});
            for trial in &mut request.base.trials {
                let mut create = trial.phases[0].clone();
                let label = trial.cell.label.clone();
                create.phase = "create".to_owned();
                create.rate = Some(rate(&label) * (1.0 + 1e-4 * f64::from(trial.round)));
                if let Some(kind) = kind.filter(|_| doubted(&label)) {
                    create.flags = vec![Flag::new(kind, "why").remark()];
                }
                trial.phases.push(create);
            }
            request
        };
    let slower = |label: &str| {
        if label.starts_with("raid10") {
            1000.0
        } else {
            2000.0
        }
    };
    let all = |_: &str| true;
    let sound = create(&slower, None, &all);
    assert_eq!(beaten(&sound).len(), 2, "within the arrays alone");
    assert!(!answer(&sound).contains("Decided without"));
    for kind in [
        FlagKind::TooShort,
        FlagKind::FitsInMemory,
        FlagKind::PartlyCached,
    ] {
        let doubted = create(&slower, Some(kind), &all);
        assert_eq!(beaten(&doubted).len(), 3, "{kind:?}");
        assert!(
            answer(&doubted).ends_with(
                "Decided without create, whose figures are flagged as over too soon to be timed soundly, or as a cache's."
            ),
            "{}",
            answer(&doubted)
        );
    }
    // Such as another load's: it is slower all the same.
    assert_eq!(
        beaten(&create(&slower, Some(FlagKind::GeneratorBound), &all)).len(),
        2
    );
    // So fast that it was over too soon: not beaten by what took its time.
    let one = |label: &str| label.starts_with("raid5");
    assert_eq!(
        beaten(&create(&slower, Some(FlagKind::TooShort), &one)).len(),
        2
    );
    // And it is no reason either.
    let faster = |label: &str| 4000.0 - slower(label);
    let reasons = |request: &_| beaten(request)[0][2].clone();
    assert_eq!(
        reasons(&create(&faster, None, &all)),
        "read 2.20x; create 1.50x"
    );
    assert_eq!(
        reasons(&create(&faster, Some(FlagKind::TooShort), &all)),
        "read 2.20x"
    );
}
