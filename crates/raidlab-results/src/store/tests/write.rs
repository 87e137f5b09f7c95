use super::samples::{environment, full_trial, id_of, planned, session, trial};
use crate::record::Session;
use crate::store::{
    Appended, Bundle, Imported, Removed, SessionFilter, Store, StoreError, TrialFilter,
    environment_digest,
};
use serde_json::json;

fn count(store: &Store, table: &str) -> u32 {
    let query = format!("SELECT count(*) FROM {table}");
    store
        .connection
        .query_row(&query, [], |row| row.get(0))
        .unwrap()
}

#[test]
fn equal_environments_are_stored_once_and_removed_with_the_last_trial() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&session("a")).unwrap();
    store.begin_session(&session("b")).unwrap();
    store
        .append_trial(&trial("a", 0), Some(&environment()))
        .unwrap();
    store
        .append_trial(&trial("a", 1), Some(&json!({"kernel": "5.10"})))
        .unwrap();
    store
        .append_trial(&trial("b", 0), Some(&environment()))
        .unwrap();
    assert_eq!(count(&store, "environments"), 2);
    let digest = environment_digest(&environment());
    let stored = store.trials(&TrialFilter::of_session(&id_of("a"))).unwrap();
    assert_eq!(stored[0].environment.as_ref(), Some(&digest));
    assert_eq!(store.environment(&digest).unwrap(), Some(environment()));
    assert_eq!(store.environment(&id_of("none")).unwrap(), None);
    // Known by its digest from now on.
    let mut next = trial("b", 1);
    next.environment = Some(digest.clone());
    store.append_trial(&next, None).unwrap();
    let wrong = store.append_trial(&next, Some(&json!({}))).unwrap_err();
    assert!(matches!(wrong, StoreError::BadRecord { .. }), "{wrong:?}");

    let removed = store.remove_session(&id_of("a")).unwrap();
    assert_eq!(
        removed,
        Removed {
            trials: 2,
            environments: 1
        }
    );
    assert_eq!(store.environment(&digest).unwrap(), Some(environment()));
    store.remove_session(&id_of("b")).unwrap();
    for table in [
        "sessions",
        "trials",
        "phases",
        "factors",
        "settings",
        "environments",
    ] {
        assert_eq!(count(&store, table), 0, "{table}");
    }
}

#[test]
fn nothing_of_a_removed_trial_stays() {
    let mut store = Store::in_memory().unwrap();
    let mut noted = session("a");
    noted.notes = vec!["one".to_owned()];
    store.begin_session(&noted).unwrap();
    store.append_trial(&full_trial("a", 0), None).unwrap();
    for table in ["figures", "flags", "phases", "notes"] {
        assert_ne!(count(&store, table), 0, "{table}");
    }
    store.remove_session(&id_of("a")).unwrap();
    for table in ["figures", "flags", "phases", "notes"] {
        assert_eq!(count(&store, table), 0, "{table}");
    }
    store.check().unwrap();
}

#[test]
fn the_same_trial_is_skipped_and_another_of_its_id_refused() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&session("a")).unwrap();
    let one = full_trial("a", 0);
    let append = |store: &mut Store, t| store.append_trial(t, None);
    assert_eq!(append(&mut store, &one).unwrap(), Appended::Added);
    assert_eq!(append(&mut store, &one).unwrap(), Appended::Skipped);
    let mut other = one.clone();
    other.phases.pop();
    let error = append(&mut store, &other).unwrap_err();
    assert!(matches!(error, StoreError::TrialExists(_)), "{error:?}");
    let error = append(&mut store, &trial("unknown", 0)).unwrap_err();
    assert!(matches!(error, StoreError::NoSuchSession(_)), "{error:?}");
    assert_eq!(store.trials(&TrialFilter::default()).unwrap(), [one]);
}

#[test]
fn a_session_goes_from_begun_to_finished() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&planned("a")).unwrap();
    store.begin_session(&session("import")).unwrap();
    let again = store.begin_session(&planned("a")).unwrap_err();
    assert!(matches!(again, StoreError::SessionExists(_)), "{again:?}");
    store.append_trial(&trial("a", 0), None).unwrap();
    let mut failed = trial("a", 1);
    failed.status = crate::record::Status::Failed {
        reason: "disk".to_owned(),
    };
    store.append_trial(&failed, None).unwrap();

    let open = store.unfinished_sessions().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].session, planned("a"));
    assert_eq!((open[0].trials, open[0].valid), (2, 1));
    assert_eq!(open[0].running, Some(std::process::id()));
    store.annotate(&id_of("a"), "second disk is warm").unwrap();
    store.annotate(&id_of("a"), "it's \"fine\"").unwrap();
    store.finish_session(&id_of("a")).unwrap();
    assert_eq!(store.unfinished_sessions().unwrap(), []);
    let done = store.session(&id_of("a")).unwrap();
    assert!(done.finished);
    assert_eq!(done.notes, ["second disk is warm", "it's \"fine\""]);
    for error in [
        store.finish_session(&id_of("none")).unwrap_err(),
        store.annotate(&id_of("none"), "x").unwrap_err(),
        store.remove_session(&id_of("none")).unwrap_err(),
        store.resume_session(&id_of("none")).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::NoSuchSession(_)), "{error:?}");
    }
}

#[test]
fn a_session_is_taken_over_from_an_ended_process_only() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&planned("a")).unwrap();
    let set = |store: &Store, process: u32| {
        let here = crate::store::runner::Runner::current().unwrap().to_string();
        let words: Vec<&str> = here.split(' ').collect();
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let start = stat
            .rsplit_once(')')
            .map_or("1", |(_, rest)| rest.split(' ').nth(20).unwrap());
        store
            .connection
            .execute(
                "UPDATE sessions SET runner = ?",
                [format!("{} {process} {start}", words[0])],
            )
            .unwrap();
    };
    // Process 1 is always there; process 0 never is.
    set(&store, 1);
    assert_eq!(store.unfinished_sessions().unwrap()[0].running, Some(1));
    for error in [
        store.resume_session(&id_of("a")).unwrap_err(),
        store.remove_session(&id_of("a")).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::SessionRunning { process: 1, .. }),
            "{error:?}"
        );
    }
    set(&store, 0);
    assert_eq!(store.unfinished_sessions().unwrap()[0].running, None);
    store.resume_session(&id_of("a")).unwrap();
    let running = store.unfinished_sessions().unwrap()[0].running;
    assert_eq!(running, Some(std::process::id()));
}

fn bundle() -> Bundle {
    let digest = environment_digest(&environment());
    let mut second = trial("a", 1);
    second.environment = Some(digest.clone());
    Bundle {
        sessions: vec![session("a"), session("empty")],
        environments: [(digest, environment())].into(),
        trials: vec![full_trial("a", 0), second],
    }
}

#[test]
fn importing_twice_adds_nothing() {
    let mut store = Store::in_memory().unwrap();
    let imported = store.import(&bundle()).unwrap();
    assert_eq!(
        imported,
        Imported {
            sessions: 2,
            trials: 2,
            skipped: 0,
            ..Imported::default()
        }
    );
    // Importers make a new session each time; the trials tell.
    let mut again = bundle();
    again.sessions[0].id = id_of("other");
    again.sessions.pop();
    again
        .trials
        .iter_mut()
        .for_each(|t| t.session = id_of("other"));
    let imported = store.import(&again).unwrap();
    assert_eq!(
        imported,
        Imported {
            sessions: 0,
            trials: 0,
            skipped: 2,
            ..Imported::default()
        }
    );
    assert_eq!(store.sessions(&SessionFilter::default()).unwrap().len(), 2);
    again.trials.push({
        let mut more = trial("a", 2);
        more.session = id_of("other");
        more
    });
    let imported = store.import(&again).unwrap();
    assert_eq!(
        imported,
        Imported {
            sessions: 1,
            trials: 1,
            skipped: 2,
            ..Imported::default()
        }
    );
    assert_eq!(
        store.bundle(&TrialFilter::of_session(&id_of("a"))).unwrap(),
        Bundle {
            sessions: vec![session("a")],
            ..bundle()
        }
    );
}

/// Exported while it was under way, and again at its end.
#[test]
fn a_session_that_came_further_is_followed() {
    let mut store = Store::in_memory().unwrap();
    let begun = Bundle {
        sessions: vec![planned("a")],
        trials: vec![trial("a", 0)],
        ..Bundle::default()
    };
    store.import(&begun).unwrap();
    assert_eq!(store.unfinished_sessions().unwrap().len(), 1);
    let mut ended = begun.clone();
    ended.sessions[0].finished = true;
    ended.sessions[0].plan = Some(json!({"profile": "random", "spent": 5}));
    ended.sessions[0].notes = vec!["the disk is warm".to_owned()];
    ended.trials.push(trial("a", 1));
    let imported = store.import(&ended).unwrap();
    assert_eq!(
        (imported.sessions, imported.trials, imported.finished),
        (0, 1, 1)
    );
    let there = TrialFilter::of_session(&id_of("a"));
    assert_eq!(store.bundle(&there).unwrap(), ended);
    // What came before its end takes nothing back.
    for older in [&begun, &ended] {
        let imported = store.import(older).unwrap();
        assert_eq!((imported.trials, imported.finished), (0, 0));
        assert_eq!(store.bundle(&there).unwrap(), ended);
    }
}

/// One that came whole before sessions were followed.
#[test]
fn a_session_that_only_lacks_its_end_is_finished() {
    let mut store = Store::in_memory().unwrap();
    let mut bundle = Bundle {
        sessions: vec![planned("a")],
        trials: vec![trial("a", 0)],
        ..Bundle::default()
    };
    store.import(&bundle).unwrap();
    bundle.sessions[0].finished = true;
    let imported = store.import(&bundle).unwrap();
    assert_eq!((imported.trials, imported.finished), (0, 1));
    assert_eq!(store.unfinished_sessions().unwrap(), []);
}

#[test]
fn a_session_that_is_being_run_is_left_to_its_process() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&planned("a")).unwrap();
    let stat = std::fs::read_to_string("/proc/1/stat").unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split(' ').nth(20).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let runner = format!("{} 1 {start}", boot.trim());
    let set = "UPDATE sessions SET runner = ?";
    store.connection.execute(set, [runner]).unwrap();
    let ended = Session {
        finished: true,
        ..planned("a")
    };
    let bundle = Bundle {
        sessions: vec![ended],
        ..Bundle::default()
    };
    assert_eq!(store.import(&bundle).unwrap().finished, 0);
    assert_eq!(store.unfinished_sessions().unwrap()[0].running, Some(1));
}

#[test]
fn another_trial_of_a_known_id_is_told() {
    let mut store = Store::in_memory().unwrap();
    store.import(&bundle()).unwrap();
    let mut other = bundle();
    other.trials[1].phases[0].rate = Some(77.0);
    let imported = store.import(&other).unwrap();
    assert_eq!((imported.trials, imported.skipped), (0, 2));
    assert_eq!(imported.others, [other.trials[1].id.clone()]);
    let kept = store.trials(&TrialFilter::of_session(&id_of("a"))).unwrap();
    assert_eq!(kept, bundle().trials);
}

#[test]
fn a_bad_bundle_imports_nothing() {
    let mut store = Store::in_memory().unwrap();
    let changes: [fn(&mut Bundle); 6] = [
        |b| b.trials[1].phases[0].rate = Some(f64::NAN),
        |b| b.trials[1].session = id_of("unknown"),
        |b| b.trials[1].environment = Some(id_of("unknown")),
        |b| b.environments.values_mut().for_each(|e| *e = json!({})),
        |b| b.sessions.push(session("a")),
        |b| b.trials[1].id = b.trials[0].id.clone(),
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut bad = bundle();
        change(&mut bad);
        let error = store.import(&bad).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::BadRecord { .. }
                    | StoreError::NoSuchSession(_)
                    | StoreError::TrialExists(_)
            ),
            "{i}: {error:?}"
        );
        for table in ["sessions", "trials", "environments", "phases"] {
            assert_eq!(count(&store, table), 0, "{i}: {table}");
        }
    }
}
