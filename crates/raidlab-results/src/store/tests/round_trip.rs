use super::samples::{any_trial, full_trial, session, trial};
use crate::record::TrialRecord;
use crate::store::{Store, StoreError, TrialFilter};
use proptest::prelude::*;

fn through_a_store(trial: &TrialRecord) -> TrialRecord {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&session("s")).unwrap();
    store.append_trial(trial, None).unwrap();
    let mut back = store.trials(&TrialFilter::default()).unwrap();
    assert_eq!(back.len(), 1);
    back.remove(0)
}

#[test]
fn a_full_record_comes_back_exactly() {
    let trial = full_trial("s", 0);
    let back = through_a_store(&trial);
    assert_eq!(back, trial);
    let (before, after) = (&trial.phases[0].latency, &back.phases[0].latency);
    let points = |l: &Option<raidlab_core::histogram::Latencies>| {
        let l = l.as_ref().unwrap();
        (l.buckets().collect::<Vec<_>>(), l.sum(), l.max(), l.count())
    };
    assert_eq!(points(before), points(after));
    assert_eq!(points(after).3, 2000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_record_comes_back_exactly(trial in any_trial("s")) {
        prop_assert_eq!(through_a_store(&trial), trial);
    }

    /// The default reader of `serde_json` is off by one in the last place now and then.
    #[test]
    fn every_figure_comes_back_to_the_last_bit(bits in any::<u64>()) {
        let rate = f64::from_bits(bits);
        prop_assume!(rate.is_finite());
        let mut one = trial("s", 0);
        one.phases[0].rate = Some(rate);
        let back = through_a_store(&one);
        prop_assert_eq!(back.phases[0].rate.unwrap().to_bits(), bits);
    }
}

#[test]
fn what_is_no_figure_is_refused_by_name() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&session("s")).unwrap();
    let refused = |change: fn(&mut TrialRecord), store: &mut Store| {
        let mut bad = full_trial("s", 0);
        change(&mut bad);
        let error = store.append_trial(&bad, None).unwrap_err();
        assert!(matches!(error, StoreError::BadRecord { .. }), "{error:?}");
        error.to_string()
    };
    let all = [
        refused(|t| t.phases[0].rate = Some(f64::NAN), &mut store),
        refused(|t| t.phases[0].figures[0].value = f64::INFINITY, &mut store),
        refused(
            |t| {
                let twice = t.phases[0].figures[0].clone();
                t.phases[0].figures.push(twice);
            },
            &mut store,
        ),
        refused(|t| t.id = "x".to_owned(), &mut store),
        refused(|t| t.started = Some("yesterday".to_owned()), &mut store),
        refused(|t| t.environment = Some("0".repeat(32)), &mut store),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    trial 15bba1ff: phase 'read': 'rate' is NaN; a missing figure has no value at all
    trial 15bba1ff: phase 'read': 'iops' is inf; a missing figure has no value at all
    trial 15bba1ff: phase 'read': two figures 'iops'
    trial x: id: 'x' is not 32 lower-case hexadecimal digits
    trial 15bba1ff: started: 'yesterday' is not an RFC 3339 time, such as 2026-11-21T08:30:00Z
    trial 15bba1ff: refers to the environment 00000000000000000000000000000000, which is not known
    ");
    assert_eq!(store.trials(&TrialFilter::default()).unwrap(), []);
}
