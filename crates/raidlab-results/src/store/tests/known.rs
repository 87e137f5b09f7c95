use super::samples::{id_of, session, trial};
use crate::record::{Provenance, TrialRecord};
use crate::store::{Bundle, Kept, Store, figures_digest};

fn imported(order: u32, tool: &str, label: &str) -> TrialRecord {
    let mut trial = trial("a", order);
    trial.cell.label = label.to_owned();
    trial.phases = self::trial("a", 0).phases;
    trial.provenance = Provenance::Imported {
        tool: tool.to_owned(),
        tool_version: None,
        file: "f".to_owned(),
    };
    trial
}

fn store_of(trials: Vec<TrialRecord>) -> Store {
    let mut store = Store::in_memory().unwrap();
    let bundle = Bundle {
        sessions: vec![session("a")],
        trials,
        ..Bundle::default()
    };
    store.import(&bundle).unwrap();
    store
}

fn kept(label: &str) -> Kept {
    Kept {
        label: label.to_owned(),
        session: id_of("a"),
    }
}

#[test]
fn trials_are_found_by_their_ids() {
    let (one, two) = (imported(0, "dd", "x"), imported(1, "dd", "y"));
    let store = store_of(vec![one.clone(), two]);
    let found = store.kept(&[&one.id, "unknown"]).unwrap();
    assert_eq!(found, [(one.id, kept("x"))].into());
    assert!(store.kept(&[]).unwrap().is_empty());
}

#[test]
fn the_first_of_equal_figures_is_found_by_what_is_not_stored_yet() {
    let first = imported(0, "dd", "x");
    let mut faster = imported(2, "dd", "z");
    faster.phases[0].rate = faster.phases[0].rate.map(|rate| rate * 2.0);
    let others = vec![
        imported(1, "dd", "y"),
        faster.clone(),
        imported(3, "fio", "w"),
    ];
    let store = store_of([vec![first.clone()], others].concat());
    let figures = store.kept_figures(&["dd"]).unwrap();
    assert_eq!(figures.len(), 2);
    let digest = |trial: &TrialRecord| figures_digest(trial).unwrap();
    assert_eq!(figures[&digest(&imported(7, "dd", "new"))], kept("x"));
    assert_eq!(figures[&digest(&faster)], kept("z"));
    // Of another tool, of none, and without a figure nothing can be said.
    assert!(!figures.contains_key(&digest(&imported(7, "fio", "new"))));
    assert_eq!(figures_digest(&trial("a", 0)), None);
    let mut none = first;
    none.phases.iter_mut().for_each(|phase| phase.rate = None);
    assert_eq!(figures_digest(&none), None);
}
