//! The run loop against a stand-in for the machine.
use super::plan::{Arm, Plan, Prepared};
use super::progress::View;
use super::schedule::Enough;
use super::session::{Ended, Measure, Running, SessionEnd, Turn};
use crate::args::EngineChoice;
use crate::exit::{Failure, TRIAL_FAILED};
use crate::signals::Stop;
use raidlab_core::data::DataPolicy;
use raidlab_core::profile::{Place, Profile, ProfileContext};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, MIB};
use raidlab_results::id;
use raidlab_results::record::{
    Cell, PhaseRecord, Place as Where, Provenance, Session, Status, TrialRecord, Unit,
};
use raidlab_results::store::{Store, TrialFilter};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Ends trials as it is told, with rates from a function of (arm, round).
struct Scripted<F> {
    rate: F,
    interrupt_at: Option<usize>,
    fail_at: Option<usize>,
    ran: Vec<(usize, u32, u64)>,
}

impl<F: Fn(usize, u32) -> f64> Measure for Scripted<F> {
    fn trial(
        &mut self,
        prepared: &Prepared,
        turn: Turn<'_>,
        _: &mut View,
    ) -> Result<Ended, Failure> {
        let number = self.ran.len();
        if self.interrupt_at == Some(number) {
            return Ok(Ended::Interrupted);
        }
        self.ran.push((turn.arm, turn.round, turn.seed));
        let mut record = trial(prepared, turn, (self.rate)(turn.arm, turn.round));
        if self.fail_at == Some(number) {
            record.status = Status::Failed {
                reason: "the disk caught fire".into(),
            };
            let failure = Failure::new(TRIAL_FAILED, "the disk caught fire");
            return Ok(Ended::Failed(Box::new(record), json!({}), failure));
        }
        Ok(Ended::Complete(Box::new(record), json!({})))
    }
}

fn scripted<F: Fn(usize, u32) -> f64>(rate: F) -> Scripted<F> {
    Scripted {
        rate,
        interrupt_at: None,
        fail_at: None,
        ran: Vec::new(),
    }
}

fn trial(prepared: &Prepared, turn: Turn<'_>, rate: f64) -> TrialRecord {
    let arm = &prepared.arm;
    record(&arm.label, arm.profile.name(), turn, rate)
}

/// A trial with one phase, `read`.
pub(super) fn record(label: &str, profile: &str, turn: Turn<'_>, rate: f64) -> TrialRecord {
    TrialRecord {
        id: id::random().unwrap(),
        session: turn.session.to_owned(),
        order: turn.order,
        round: turn.round,
        cell: Cell {
            label: label.to_owned(),
            factors: BTreeMap::new(),
        },
        cell_digest: None,
        profile: profile.to_owned(),
        settings: BTreeMap::new(),
        provenance: Provenance::Measured { place: Where::Host },
        started: None,
        elapsed_ns: None,
        seed: Some(turn.seed),
        digest: None,
        environment: None,
        command: None,
        phases: vec![PhaseRecord::bare("read", Some(rate), Unit::BytesPerSecond)],
        checks: Vec::new(),
        status: Status::Complete,
        flags: Vec::new(),
    }
}

fn plan(labels: &[&str], enough: Enough) -> Plan {
    let arm = |label: &&str| Arm {
        label: (*label).to_owned(),
        path: PathBuf::from("/nowhere"),
        profile: Profile::named("random").unwrap(),
    };
    Plan {
        arms: labels.iter().map(arm).collect(),
        enough,
        budget: None,
        seed: 7,
        data: DataPolicy::Seeded,
        engine: EngineChoice::Auto,
        stall: Span::from_secs(60),
        job_file: None,
        allow_global: false,
    }
}

fn prepared(plan: &Plan) -> Vec<Prepared> {
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Directory {
            free: Bytes::gib(100),
        },
        writable: true,
        alignment: 512,
    };
    let one = |arm: &Arm| Prepared {
        arm: arm.clone(),
        plan: arm.profile.plan(&context).unwrap(),
    };
    plan.arms.iter().map(one).collect()
}

fn session(store: &mut Store) -> String {
    let session = Session {
        id: id::random().unwrap(),
        title: "a test".into(),
        created: "2026-01-01T00:00:00Z".into(),
        command: "raidlab bench".into(),
        raidlab: "0".into(),
        plan: None,
        planned: None,
        finished: false,
        notes: Vec::new(),
    };
    store.begin_session(&session).unwrap();
    session.id
}

fn run(
    plan: &Plan,
    store: &mut Store,
    session: &str,
    measure: &mut impl Measure,
) -> Result<SessionEnd, Failure> {
    Running {
        plan,
        prepared: &prepared(plan),
        store,
        session,
        measure,
        stop: &Stop::default(),
    }
    .run()
}

fn stored(store: &Store, session: &str) -> Vec<TrialRecord> {
    store.trials(&TrialFilter::of_session(session)).unwrap()
}

#[test]
fn every_arm_is_measured_once_a_round_with_that_rounds_seed() {
    let plan = plan(&["a", "b", "c"], Enough::Rounds { rounds: 4 });
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    let mut measure = scripted(|_, _| 100.0 * MIB as f64);
    assert_eq!(
        run(&plan, &mut store, &id, &mut measure).unwrap(),
        SessionEnd::Finished
    );
    let mut seeds = BTreeMap::new();
    for round in 0..4 {
        let of_round: Vec<_> = measure.ran.iter().filter(|(_, r, _)| *r == round).collect();
        let mut arms: Vec<_> = of_round.iter().map(|(arm, _, _)| *arm).collect();
        arms.sort_unstable();
        assert_eq!(arms, [0, 1, 2]);
        assert!(
            of_round.iter().all(|(_, _, seed)| *seed == of_round[0].2),
            "all arms do the same"
        );
        seeds.insert(of_round[0].2, round);
    }
    assert_eq!(seeds.len(), 4);
    let orders: Vec<u32> = stored(&store, &id).iter().map(|t| t.order).collect();
    assert_eq!(orders, (0..12).collect::<Vec<_>>());
    assert!(store.session(&id).unwrap().finished);
}

#[test]
fn an_interrupted_session_goes_on_where_it_stopped() {
    let plan = plan(&["a", "b"], Enough::Rounds { rounds: 5 });
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    let mut unbroken = scripted(|_, _| 1.0);
    let mut other = Store::in_memory().unwrap();
    let whole = session(&mut other);
    run(&plan, &mut other, &whole, &mut unbroken).unwrap();

    let mut first = Scripted {
        interrupt_at: Some(3),
        ..scripted(|_, _| 1.0)
    };
    assert_eq!(
        run(&plan, &mut store, &id, &mut first).unwrap(),
        SessionEnd::Interrupted
    );
    assert_eq!(stored(&store, &id).len(), 3);
    assert!(!store.session(&id).unwrap().finished);
    let mut second = scripted(|_, _| 1.0);
    assert_eq!(
        run(&plan, &mut store, &id, &mut second).unwrap(),
        SessionEnd::Finished
    );
    assert_eq!(
        [first.ran, second.ran].concat(),
        unbroken.ran,
        "the same trials in the same order"
    );
    let orders: Vec<u32> = stored(&store, &id).iter().map(|t| t.order).collect();
    assert_eq!(orders, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_failed_trial_is_kept_with_its_reason_and_ends_the_session() {
    let plan = plan(&["a"], Enough::Rounds { rounds: 5 });
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    let mut measure = Scripted {
        fail_at: Some(1),
        ..scripted(|_, _| 1.0)
    };
    let failure = run(&plan, &mut store, &id, &mut measure).unwrap_err();
    assert_eq!(failure.code(), TRIAL_FAILED);
    let trials = stored(&store, &id);
    assert_eq!(trials.len(), 2);
    assert!(!trials[1].is_valid());
    assert!(!store.session(&id).unwrap().finished, "it can be resumed");
}

#[test]
fn adaptive_repeats_end_when_every_figure_is_known() {
    let plan = plan(
        &["steady", "wild"],
        Enough::Width {
            width: 0.02,
            most: 30,
        },
    );
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    // Both within 1 %: the first look is after ten rounds, the second confirms after twelve.
    let mut measure = scripted(|_, round| 100.0 + f64::from(round % 2));
    run(&plan, &mut store, &id, &mut measure).unwrap();
    assert_eq!(measure.ran.len(), 24);

    let id = session(&mut store);
    let mut measure = scripted(|arm, round| 100.0 + f64::from(round % 2) * [1.0, 60.0][arm]);
    run(&plan, &mut store, &id, &mut measure).unwrap();
    assert_eq!(
        measure.ran.len(),
        60,
        "the wild arm never settles: the most rounds are run"
    );
}

#[test]
fn the_budget_ends_a_session_between_rounds() {
    let plan = Plan {
        budget: Some(Span::ZERO),
        ..plan(&["a", "b"], Enough::Rounds { rounds: 5 })
    };
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    let mut measure = scripted(|_, _| 1.0);
    assert_eq!(
        run(&plan, &mut store, &id, &mut measure).unwrap(),
        SessionEnd::Finished
    );
    assert_eq!(measure.ran.len(), 2, "the first round is always whole");
}

#[test]
fn what_failed_is_measured_anew_when_the_session_goes_on() {
    let plan = plan(&["a"], Enough::Rounds { rounds: 3 });
    let mut store = Store::in_memory().unwrap();
    let id = session(&mut store);
    let mut first = Scripted {
        fail_at: Some(1),
        ..scripted(|_, _| 1.0)
    };
    run(&plan, &mut store, &id, &mut first).unwrap_err();
    let mut second = scripted(|_, _| 1.0);
    run(&plan, &mut store, &id, &mut second).unwrap();
    let rounds: Vec<u32> = second.ran.iter().map(|(_, round, _)| *round).collect();
    assert_eq!(rounds, [1, 2]);
    let trials = stored(&store, &id);
    assert_eq!(trials.len(), 4, "the failure stays on record");
    let orders: Vec<u32> = trials.iter().map(|t| t.order).collect();
    assert_eq!(orders, [0, 1, 2, 3]);
}

#[test]
fn a_session_without_a_trial_is_forgotten() {
    let plan = plan(&["a"], Enough::Rounds { rounds: 1 });
    let mut store = Store::in_memory().unwrap();
    let (empty, used) = (session(&mut store), session(&mut store));
    run(&plan, &mut store, &used, &mut scripted(|_, _| 1.0)).unwrap();
    for id in [&empty, &used] {
        super::forget_if_empty(&mut store, id).unwrap();
    }
    assert!(store.session(&empty).is_err());
    assert!(store.session(&used).is_ok());
}
