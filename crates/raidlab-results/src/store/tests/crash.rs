//! Several processes, sudden death and full disks.
use super::samples::{full_trial, id_of, planned, session, trial};
use crate::store::{Store, StoreError, TrialFilter};
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells the child process which store to fill, with trials of which session.
const CHILD: &str = "RAIDLAB_TEST_STORE";

/// Not a test of its own: the process that the tests below start again and kill.
#[test]
fn child_that_appends() {
    let Ok(what) = env::var(CHILD) else { return };
    let (session, path) = what.split_once(' ').unwrap();
    let mut store = Store::open(Path::new(path)).unwrap();
    store.begin_session(&planned(session)).unwrap();
    let mut out = std::io::stdout().lock();
    for order in 0..10_000 {
        let trial = full_trial(session, order);
        store.append_trial(&trial, None).unwrap();
        // The acknowledgement, after which the trial must never be lost.
        writeln!(out, "stored {}", trial.id).unwrap();
        out.flush().unwrap();
    }
}

fn start(session: &str, path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "store::tests::crash::child_that_appends",
            "--nocapture",
        ])
        .env(CHILD, format!("{session} {}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for `n` acknowledgements, kills the child in the middle of its work and gives all that it
/// acknowledged until then.
fn kill_after(mut child: Child, n: usize) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stored = Vec::new();
    let mut killed = false;
    while let Some(Ok(line)) = lines.next() {
        if let Some((_, id)) = line.split_once("stored ") {
            stored.push(id.to_owned());
        }
        if stored.len() >= n && !killed {
            child.kill().unwrap();
            killed = true;
        }
    }
    let ended = child.wait().unwrap();
    assert!(
        killed && !ended.success(),
        "the child ended by itself: {ended}"
    );
    // The kill may have cut the last line short.
    stored.retain(|id| id.len() == 32);
    stored
}

fn ids(store: &Store, session: &str) -> BTreeSet<String> {
    let filter = TrialFilter::of_session(&id_of(session));
    store
        .trials(&filter)
        .unwrap()
        .into_iter()
        .map(|t| t.id)
        .collect()
}

#[test]
fn no_acknowledged_trial_is_lost_by_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    for round in 0..6 {
        let name = format!("round {round}").replace(' ', "-");
        let stored = kill_after(start(&name, &path), 1 + round * 3);
        let mut store = Store::open(&path).unwrap();
        store.check().unwrap();
        let kept = ids(&store, &name);
        let lost: Vec<_> = stored.iter().filter(|id| !kept.contains(*id)).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        assert!(
            kept.len() <= stored.len() + 2,
            "{} of {}",
            kept.len(),
            stored.len()
        );
        // It can be resumed, by this process now.
        let open = store.unfinished_sessions().unwrap();
        let mine = open.iter().find(|i| i.session.id == id_of(&name)).unwrap();
        assert_eq!((mine.running, mine.trials as usize), (None, kept.len()));
        store.resume_session(&id_of(&name)).unwrap();
        store.append_trial(&trial(&name, 20_000), None).unwrap();
    }
}

#[test]
fn a_reader_beside_a_killed_writer_sees_whole_trials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    kill_after(start("w", &path), 4);
    let store = Store::open_read_only(&path).unwrap();
    for trial in store.trials(&TrialFilter::default()).unwrap() {
        assert_eq!(trial, full_trial("w", trial.order));
    }
}

/// The state that a kill in the middle of a commit leaves, made on purpose.
#[test]
fn a_half_written_transaction_is_undone_even_for_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut store = Store::open(&at("whole.db")).unwrap();
    store.begin_session(&session("s")).unwrap();
    for order in 0..5 {
        store.append_trial(&full_trial("s", order), None).unwrap();
    }
    let writer = &store.connection;
    writer.pragma_update(None, "cache_size", 1).unwrap();
    writer
        .execute_batch("BEGIN IMMEDIATE; UPDATE trials SET record = record || record")
        .unwrap();
    for (from, to) in [
        ("whole.db", "cut.db"),
        ("whole.db-journal", "cut.db-journal"),
    ] {
        std::fs::copy(at(from), at(to)).unwrap();
    }
    writer.execute_batch("ROLLBACK").unwrap();
    let whole = std::fs::read(at("whole.db")).unwrap();
    assert_ne!(std::fs::read(at("cut.db")).unwrap(), whole);
    let reader = Store::open_read_only(&at("cut.db")).unwrap();
    reader.check().unwrap();
    let all = TrialFilter::default();
    assert_eq!(reader.trials(&all).unwrap(), store.trials(&all).unwrap());
    assert_eq!(std::fs::read(at("cut.db")).unwrap(), whole);
}

/// Processes, as two `raidlab` at once are: locks between threads of one process work differently.
#[test]
fn two_processes_append_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    let names = ["left", "right"];
    // Both also race for creating the store.
    let children = names.map(|name| start(name, &path));
    let readers = children.map(|child| std::thread::spawn(move || kill_after(child, 25)));
    let stored = readers.map(|reader| reader.join().unwrap());
    let store = Store::open(&path).unwrap();
    store.check().unwrap();
    for (name, stored) in names.iter().zip(&stored) {
        let kept = ids(&store, name);
        assert!(stored.len() >= 25);
        assert!(stored.iter().all(|id| kept.contains(id)), "{name}");
    }
}

#[test]
fn two_connections_of_one_process_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.db");
    std::thread::scope(|scope| {
        for name in ["x", "y", "z"] {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(path).unwrap();
                store.begin_session(&session(name)).unwrap();
                for order in 0..15 {
                    store.append_trial(&trial(name, order), None).unwrap();
                    // A second connection that comes and goes must not drop the first one's locks.
                    let reader = Store::open_read_only(path).unwrap();
                    assert!(ids(&reader, name).len() > order as usize);
                }
            });
        }
    });
    let store = Store::open(&path).unwrap();
    store.check().unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 45);
}

/// A small file system in memory, unmounted when dropped; `None`, loudly, without the permission.
struct Tmpfs(
    PathBuf,
    #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir,
);

impl Tmpfs {
    fn new(test: &str, options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "raidlab-test"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(path, directory)),
            other => {
                assert!(
                    env::var_os("CI").is_none(),
                    "{test}: must not be skipped here, but no tmpfs can be mounted: {other:?}"
                );
                eprintln!("SKIPPED {test}: no tmpfs can be mounted (needs root): {other:?}");
                None
            }
        }
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0)
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let Some(disk) = Tmpfs::new("a_full_disk_loses_nothing_that_was_stored", "size=512k") else {
        return;
    };
    let path = disk.0.join("results.db");
    let mut store = Store::open(&path).unwrap();
    store.begin_session(&planned("s")).unwrap();
    let mut stored = BTreeSet::new();
    let error = loop {
        let trial = full_trial("s", u32::try_from(stored.len()).unwrap());
        match store.append_trial(&trial, None) {
            Ok(_) => assert!(stored.insert(trial.id) && stored.len() < 1000),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(stored.len() > 3);
    assert_eq!(ids(&store, "s"), stored);
    // With room again the same connection goes on.
    disk.remount("size=4m");
    let next = full_trial("s", 5000);
    store.append_trial(&next, None).unwrap();
    stored.insert(next.id);
    drop(store);
    let store = Store::open(&path).unwrap();
    store.check().unwrap();
    assert_eq!(ids(&store, "s"), stored);
}

#[test]
fn a_store_without_room_to_be_created_leaves_nothing_behind() {
    let name = "a_store_without_room_to_be_created_leaves_nothing_behind";
    let Some(disk) = Tmpfs::new(name, "size=16k") else {
        return;
    };
    let path = disk.0.join("results.db");
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let left: Vec<_> = std::fs::read_dir(&disk.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_read_only_disk_can_be_read() {
    let Some(disk) = Tmpfs::new("a_read_only_disk_can_be_read", "size=4m") else {
        return;
    };
    let path = disk.0.join("results.db");
    let mut store = Store::open(&path).unwrap();
    store.begin_session(&session("s")).unwrap();
    store.append_trial(&full_trial("s", 0), None).unwrap();
    drop(store);
    disk.remount("ro");
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let error = Store::open(&disk.0.join("new.db")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(ids(&store, "s").len(), 1);
}
