//! Which cell is the best, as a reader is told first.
use super::experiments::{request, trials};
use crate::record::{Place, Provenance, TrialRecord};
use crate::report::experiment_report;

/// The rows of the table with the best of each phase, without what is alike for all.
fn fastest(trials: Vec<TrialRecord>) -> Vec<Vec<String>> {
    let document = experiment_report(&request(trials)).unwrap();
    let table = document.tables().find(|table| table.id == "dd-fastest");
    let Some(table) = table else {
        return Vec::new();
    };
    let texts = |row: &Vec<crate::report::document::Cell>| -> Vec<String> {
        row.iter().map(|cell| cell.value.text()).collect()
    };
    table.rows.iter().map(texts).collect()
}

#[test]
fn the_best_of_each_phase_is_told_first() {
    let rows = fastest(trials());
    let [row] = &rows[..] else {
        panic!("{rows:?}");
    };
    let [phase, best, _, unit, ratio, next] = &row[..] else {
        panic!("nothing is as good, and a column without anything is left out: {row:?}");
    };
    assert_eq!((phase.as_str(), unit.as_str()), ("read", "MiB/s"));
    assert_eq!(
        (best.as_str(), next.as_str()),
        ("raid10, cfq", "raid10, noop")
    );
    assert!(
        ratio.starts_with("1.0") || ratio.starts_with("1.1"),
        "{ratio}"
    );
    // One cell alone is the best of nothing.
    let one = trials()
        .into_iter()
        .filter(|t| t.cell.label == "raid5, cfq");
    assert!(fastest(one.collect()).is_empty());
}

#[test]
fn a_prediction_is_not_ahead_of_a_measurement() {
    let mut all = trials();
    for trial in trials() {
        let place = Place::Vm;
        let mut twin = trial;
        twin.provenance = Provenance::Measured { place };
        twin.phases[0].rate = twin.phases[0].rate.map(|rate| rate / 2.0);
        all.push(twin);
    }
    let document = experiment_report(&request(all)).unwrap();
    let of_best = document
        .tables()
        .filter(|table| table.id.starts_with("dd-fastest"));
    let captions: Vec<&str> = of_best.map(|table| table.caption.as_str()).collect();
    let [simulated, measured] = captions[..] else {
        panic!("{captions:?}");
    };
    assert!(simulated.starts_with("dd, simulated: "), "{simulated}");
    assert!(measured.starts_with("dd, measured in a VM: "), "{measured}");
}

#[test]
fn what_cannot_be_told_from_the_best_stands_beside_it() {
    let mut all = trials();
    for trial in &mut all {
        // raid10 is 1 % ahead with one scheduler of the two, raid5 far behind.
        let rate = match trial.cell.label.as_str() {
            "raid10, noop" => 101e6,
            "raid10, cfq" => 100e6,
            _ => 50e6,
        };
        trial.phases[0].rate = Some(rate * (1.0 + 1e-4 * f64::from(trial.round)));
    }
    let rows = fastest(all.clone());
    assert_eq!(rows[0][1], "raid10, noop");
    assert_eq!(rows[0][4], "raid10, cfq");
    assert_eq!(&rows[0][5][..4], "2.02");
    // A single run has no interval: the margin alone decides.
    let first = |trial: &TrialRecord| trial.round == 0;
    let single: Vec<_> = all.iter().filter(|t| first(t)).cloned().collect();
    assert_eq!(fastest(single)[0][4], "raid10, cfq");
    // All alike.
    for trial in &mut all {
        trial.phases[0].rate = Some(1e8 * (1.0 + 1e-4 * f64::from(trial.round)));
    }
    let rows = fastest(all.clone());
    assert_eq!(rows[0][1], "no difference");
    assert_eq!(rows[0][4], "all 4");
    assert_eq!(rows[0].len(), 5, "nothing is behind");
    // Two runs that differ this much say nothing of cells that may well be unlike.
    all.retain(|trial| trial.round < 2);
    for trial in &mut all {
        let (rate, turn) = match trial.cell.label.starts_with("raid5") {
            true => (0.5e8, 1 - trial.round),
            false => (1e8, trial.round),
        };
        trial.phases[0].rate = Some(rate * (1.0 + 0.5 * f64::from(turn)));
    }
    let rows = fastest(all);
    assert_eq!(rows[0][1], "cannot be told");
    assert_eq!(rows[0][4], "all 4");
}

/// Captions of the tables of the best, and the cell that each has.
fn winners(trials: Vec<TrialRecord>) -> Vec<(String, String)> {
    let document = experiment_report(&request(trials)).unwrap();
    let of_best = document
        .tables()
        .filter(|table| table.id.starts_with("dd-fastest"));
    let told = |caption: &str| caption.split(": the best").next().map(str::to_owned);
    of_best
        .map(|table| (told(&table.caption).unwrap(), table.rows[0][1].value.text()))
        .collect()
}

#[test]
fn an_array_is_not_ahead_of_one_in_another_state() {
    let mut all = trials();
    for trial in &mut all {
        let (level, scheduler) = trial.cell.label.split_once(", ").unwrap();
        let state = if scheduler == "cfq" {
            "clean"
        } else {
            "degraded 1"
        };
        let (level, state) = (level.to_owned(), state.to_owned());
        // Clean ones are twice as fast, and each state has a best of its own.
        let rate = match (&level[..], &state[..]) {
            ("raid10", "clean") => 200e6,
            ("raid5", "clean") => 150e6,
            ("raid10", _) => 60e6,
            _ => 90e6,
        };
        trial.phases[0].rate = Some(rate * (1.0 + 1e-4 * f64::from(trial.round)));
        trial.cell.factors.insert("state".to_owned(), state);
    }
    let told = winners(all.clone());
    let told: Vec<_> = told.iter().map(|(c, w)| (&c[..], &w[..])).collect();
    let mut sorted = told.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            ("dd, clean", "raid10, cfq"),
            ("dd, degraded 1", "raid5, noop")
        ]
    );
    // One array in several states: the states are what is compared.
    all.retain(|trial| trial.cell.label.starts_with("raid5"));
    assert_eq!(winners(all), [("dd".to_owned(), "raid5, cfq".to_owned())]);
}
