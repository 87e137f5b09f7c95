use super::samples::{full_trial, id_of, session, trial};
use crate::record::{Place, Provenance, Session, Status, TrialRecord};
use crate::store::{SessionFilter, Source, Store, StoreError, TrialFilter};
use raidlab_core::flag::{Flag, FlagKind};

/// Trials `a0` to `a3` and `b0`, each different in one respect.
fn filled() -> Store {
    let mut store = Store::in_memory().unwrap();
    // Fractions of a second are compared as times, not as text.
    let later = Session {
        created: "2026-11-21T08:00:00.5Z".to_owned(),
        ..session("a")
    };
    store.begin_session(&session("b")).unwrap();
    store.begin_session(&later).unwrap();
    let mut a: Vec<TrialRecord> = (0..4).map(|order| trial("a", order)).collect();
    a[0].profile = "bonnie".to_owned();
    a[0].provenance = Provenance::Imported {
        tool: "bonnie++".to_owned(),
        tool_version: None,
        file: "x.csv".to_owned(),
    };
    a[1].cell.label = "raid5, 3 disks".to_owned();
    a[1].cell
        .factors
        .insert("level".to_owned(), "raid5".to_owned());
    a[1].provenance = Provenance::Measured { place: Place::Vm };
    a[2].started = None;
    a[2].flags = vec![Flag::new(FlagKind::Late, "late")];
    a[3].status = Status::Failed {
        reason: "it broke".to_owned(),
    };
    a[3].provenance = Provenance::Simulated;
    let mut b = trial("b", 0);
    b.started = Some("2026-11-21T10:00:00.25+01:00".to_owned());
    b.provenance = Provenance::Published {
        study: "pata".to_owned(),
        date: "2004".to_owned(),
    };
    // Out of order: the order of execution counts.
    for t in [&a[2], &a[0], &b, &a[3], &a[1]] {
        store.append_trial(t, None).unwrap();
    }
    store
}

fn names(store: &Store, filter: &TrialFilter) -> String {
    let found = store.trials(filter).unwrap();
    let name = |t: &TrialRecord| {
        let session = if t.session == id_of("a") { "a" } else { "b" };
        format!("{session}{}", t.order)
    };
    found.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn trials_are_found_by_each_condition() {
    let store = filled();
    let all = TrialFilter::default;
    let time = |text: &str| Some(text.parse().unwrap());
    let with = |change: &dyn Fn(&mut TrialFilter)| {
        let mut filter = all();
        change(&mut filter);
        names(&store, &filter)
    };
    assert_eq!(names(&store, &all()), "b0 a0 a1 a2 a3");
    assert_eq!(names(&store, &TrialFilter::of_session(&id_of("b"))), "b0");
    assert_eq!(
        with(&|f| f.sessions = vec![id_of("a"), id_of("b")]),
        "b0 a0 a1 a2 a3"
    );
    assert_eq!(
        with(&|f| f.trials = vec![trial("a", 3).id, id_of("?")]),
        "a3"
    );
    assert_eq!(with(&|f| f.profiles = vec!["bonnie".to_owned()]), "a0");
    assert_eq!(with(&|f| f.label = Some("raid5*".to_owned())), "a1");
    assert_eq!(
        with(&|f| f.label = Some("raid?, [2] disks".to_owned())),
        "b0 a0 a2 a3"
    );
    assert_eq!(with(&|f| f.valid_only = true), "b0 a0 a1");
    assert_eq!(with(&|f| f.source = Some(Source::Measured(None))), "a1 a2");
    assert_eq!(
        with(&|f| f.source = Some(Source::Measured(Some(Place::Vm)))),
        "a1"
    );
    assert_eq!(
        with(&|f| f.source = Some(Source::Measured(Some(Place::Host)))),
        "a2"
    );
    assert_eq!(with(&|f| f.source = Some(Source::Simulated)), "a3");
    assert_eq!(with(&|f| f.source = Some(Source::Imported)), "a0");
    assert_eq!(with(&|f| f.source = Some(Source::Published)), "b0");
    assert_eq!(
        with(&|f| f.since = time("2026-11-21T08:00:01Z")),
        "b0 a1 a3"
    );
    assert_eq!(with(&|f| f.since = time("2026-11-21T09:00:00.25Z")), "b0");
    assert_eq!(with(&|f| f.until = time("2026-11-21T08:00:03Z")), "a0 a1");
    let factor = |f: &mut TrialFilter, name: &str, level: &str| {
        f.factors.insert(name.to_owned(), level.to_owned());
    };
    assert_eq!(with(&|f| factor(f, "level", "raid5")), "a1");
    let both = with(&|f| {
        factor(f, "level", "raid0");
        factor(f, "disks", "2");
        f.profiles = vec!["random".to_owned(), "other".to_owned()];
    });
    assert_eq!(both, "b0 a2 a3");
    assert_eq!(with(&|f| factor(f, "level", "' OR 1 --")), "");
}

#[test]
fn sessions_are_found_by_each_condition() {
    let store = filled();
    let with = |change: &dyn Fn(&mut SessionFilter)| {
        let mut filter = SessionFilter::default();
        change(&mut filter);
        let found = store.sessions(&filter).unwrap();
        let titles: Vec<String> = found.into_iter().map(|i| i.session.title).collect();
        titles.join(" ")
    };
    let time = |text: &str| Some(text.parse().unwrap());
    assert_eq!(with(&|_| ()), "b a");
    assert_eq!(with(&|f| f.title = Some("[ab]".to_owned())), "b a");
    assert_eq!(with(&|f| f.title = Some("b*".to_owned())), "b");
    assert_eq!(with(&|f| f.profile = Some("bonnie".to_owned())), "a");
    assert_eq!(with(&|f| f.finished = Some(false)), "");
    assert_eq!(with(&|f| f.since = time("2026-11-21T08:00:00.5Z")), "a");
    assert_eq!(with(&|f| f.until = time("2026-11-21T08:00:00.5Z")), "b");
    let infos = store.sessions(&SessionFilter::default()).unwrap();
    assert_eq!(infos[1].profiles, ["bonnie", "random"]);
    assert_eq!(
        (infos[1].trials, infos[1].valid, infos[1].running),
        (4, 2, None)
    );
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let mut store = Store::in_memory().unwrap();
    for (id, title) in [
        ("0123456789abcdef0123456789abcdef", "first"),
        ("0123456789abcdff0123456789abcdef", "second"),
        ("f123456789abcdef0123456789abcdef", "third"),
    ] {
        let one = Session {
            id: id.to_owned(),
            ..session(title)
        };
        store.begin_session(&one).unwrap();
    }
    let title = |prefix: &str| store.find_session(prefix).map(|s| s.title);
    assert_eq!(title("f").unwrap(), "third");
    assert_eq!(title("F123").unwrap(), "third");
    assert_eq!(title("0123456789abcde").unwrap(), "first");
    assert_eq!(title("0123456789abcdef0123456789abcdef").unwrap(), "first");
    let told = ["0123", "12", "xyz", "", "0123456789abcdef0123456789abcdef0"]
        .map(|prefix| title(prefix).unwrap_err().to_string());
    insta::assert_snapshot!(told.join("\n"), @r"
    '0123' is ambiguous: 0123456789abcde (first), 0123456789abcdf (second)
    no session '12'; 'raidlab list' shows them
    'xyz' is not an identifier: write the first hexadecimal digits of one, or last, last~1, ... of a session
    '' is not an identifier: write the first hexadecimal digits of one, or last, last~1, ... of a session
    '0123456789abcdef0123456789abcdef0' is not an identifier: write the first hexadecimal digits of one, or last, last~1, ... of a session
    ");
    assert!(matches!(title("0"), Err(StoreError::Ambiguous { .. })));
}

/// Scripts want the last one and the one before, by when they came into the store, whatever their ids and the clock say.
#[test]
fn a_session_is_found_by_its_place_from_the_last() {
    let mut store = Store::in_memory().unwrap();
    assert!(matches!(
        store.find_session("last"),
        Err(StoreError::NoSuchSession(_))
    ));
    for (digit, hour) in [('c', 9), ('a', 11), ('b', 10), ('d', 11)] {
        let one = Session {
            id: digit.to_string().repeat(32),
            created: format!("2026-11-21T{hour:02}:00:00Z"),
            ..session(&digit.to_string())
        };
        store.begin_session(&one).unwrap();
    }
    let title = |word: &str| store.find_session(word).map(|session| session.title);
    let found: Vec<String> = ["last", "last~0", "last~1", "last~2", "last~3"]
        .map(|word| title(word).unwrap())
        .into();
    assert_eq!(
        found,
        ["d", "d", "b", "a", "c"],
        "in the order in which they came: the clock was set back between a and b"
    );
    assert!(matches!(title("last~4"), Err(StoreError::NoSuchSession(_))));
    for wrong in ["last~", "last1", "last~-1", "last~x", "lastly"] {
        assert!(
            matches!(title(wrong), Err(StoreError::NotAnId(_))),
            "{wrong}"
        );
    }
}

#[test]
fn a_trial_is_found_by_the_beginning_of_its_id() {
    let store = filled();
    let one = trial("a", 3);
    assert_eq!(store.find_trial(&one.id[..8]).unwrap().id, one.id);
    let error = store.find_trial("00000000000").unwrap_err();
    assert!(matches!(error, StoreError::NoSuchTrial(_)), "{error:?}");
}

/// What a user finds with the sqlite3 shell.
#[test]
fn the_tables_can_be_queried() {
    let mut store = Store::in_memory().unwrap();
    store.begin_session(&session("a")).unwrap();
    store.append_trial(&full_trial("a", 0), None).unwrap();
    let rows = |query: &str| {
        let mut statement = store.connection.prepare(query).unwrap();
        let columns: Vec<String> = statement
            .column_names()
            .iter()
            .map(|&n| n.to_owned())
            .collect();
        let mut text = Vec::new();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cell = |(i, name): (usize, &String)| {
                use rusqlite::types::ValueRef;
                let value = match row.get_ref(i).unwrap() {
                    ValueRef::Null => "NULL".to_owned(),
                    ValueRef::Integer(n) => n.to_string(),
                    ValueRef::Real(x) => format!("{x:?}"),
                    ValueRef::Text(t) => String::from_utf8_lossy(t).into_owned(),
                    ValueRef::Blob(_) => "BLOB".to_owned(),
                };
                format!("{name}={value}")
            };
            text.push(
                columns
                    .iter()
                    .enumerate()
                    .map(cell)
                    .collect::<Vec<_>>()
                    .join("\n"),
            );
        }
        text.join("\n\n")
    };
    insta::assert_snapshot!(rows("SELECT * FROM results"), @r"
    title=a
    session=cf55473b4f991834e1ebea6e1491c898
    trial=0a543c6554029d8a2d7ecc9ab79b8a73
    label=raid0, 2 disks
    profile=random
    source=measured
    round=0
    phase=read
    rate=409600.0
    unit=bytes-per-second
    bytes=409600
    ops=100
    elapsed_seconds=1.0
    cpu_percent=12.5
    valid=1

    title=a
    session=cf55473b4f991834e1ebea6e1491c898
    trial=0a543c6554029d8a2d7ecc9ab79b8a73
    label=raid0, 2 disks
    profile=random
    source=measured
    round=0
    phase=write
    rate=NULL
    unit=bytes-per-second
    bytes=NULL
    ops=NULL
    elapsed_seconds=NULL
    cpu_percent=NULL
    valid=0
    ");
    insta::assert_snapshot!(rows("SELECT * FROM phases WHERE phase = 'read'"), @r"
    trial=0a543c6554029d8a2d7ecc9ab79b8a73
    position=0
    phase=read
    rate=409600.0
    unit=bytes-per-second
    bytes=409600
    ops=100
    elapsed_ns=1000000000
    cpu_percent=12.5
    cpu_user_ns=100000000
    cpu_system_ns=25000000
    cpu_kernel_threads_ns=3000000
    latency_count=2000
    latency_mean_ns=4932333500
    latency_p50_ns=1002438655
    latency_p99_ns=3925868543
    latency_max_ns=7200000000000
    mean_in_flight=31.7
    claimed_read_bytes=409600
    claimed_written_bytes=0
    device_read_bytes=409600
    device_written_bytes=8192
    valid=1
    ");
    insta::assert_snapshot!(
        rows("SELECT id, place, started_us, seed, digest, valid FROM trials"), @r"
    id=0a543c6554029d8a2d7ecc9ab79b8a73
    place=host
    started_us=1795248000000000
    seed=18446744073709551615
    digest=deadbeefdeadbeef
    valid=1
    ");
    insta::assert_snapshot!(rows("SELECT position, kind, reason, voids FROM flags"), @r#"
    position=NULL
    kind=other-load
    reason=load 3.2
    voids=0

    position=0
    kind=too-short
    reason=1.00 s, "asked" 10 s
    voids=0
    "#);
    insta::assert_snapshot!(rows("SELECT name, value, unit FROM figures"), @r"
    name=iops
    value=100.0
    unit=per-second
    ");
}
