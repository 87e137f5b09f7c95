//! What is written can be read by another process, undone once, and cut off anywhere.
use super::*;
use crate::identity::{FileId, Identity};
use proptest::prelude::*;
use raidlab_io::observe::DeviceNumber;
use std::fs;

fn roots() -> Roots {
    Roots::system()
}

/// A journal of two steps: a directory and a file in it, both made.
fn made(directory: &Path) -> (Journal, PathBuf, PathBuf) {
    let mut journal = Journal::begin(&directory.join("journal"), "raidlab run x").expect("begun");
    let folder = directory.join(format!("made-{}", journal.id()));
    let file = folder.join("file");
    let step = journal
        .intend("make a directory", &[Undo::NewDirectory(folder.clone())])
        .expect("announced");
    fs::create_dir(&folder).expect("made");
    let id = FileId::of(&folder).expect("there");
    journal
        .done_with(step, &[Undo::Directory(id)])
        .expect("told");
    let step = journal
        .intend("make a file", &[Undo::NewFile(file.clone())])
        .expect("announced");
    fs::write(&file, "content").expect("made");
    let id = FileId::of(&file).expect("there");
    journal.done_with(step, &[Undo::File(id)]).expect("told");
    (journal, folder, file)
}

#[test]
fn what_was_done_is_undone_last_first() {
    let place = tempfile::tempdir().expect("a directory");
    let (journal, folder, file) = made(place.path());
    let path = journal.path().to_owned();
    let report = journal.finish(&roots()).expect("undone");
    let told = [&file, &folder].map(|path| format!("removed {}", path.display()));
    assert_eq!(report.undone, told);
    assert!(report.left.is_empty() && !folder.exists() && !path.exists());
}

/// Between its making and its lock another raidlab may take a journal for one that was left, and remove it.
#[test]
fn a_journal_that_another_one_cleaned_away_is_not_used() {
    let place = tempfile::tempdir().expect("a directory");
    let (_, path, file) = new_file(place.path()).expect("made");
    let (found, _) = leftovers(place.path()).expect("listed");
    assert_eq!(found.len(), 1);
    assert!(!is_own(&file).expect("asked"), "another one holds it");
    for journal in found {
        journal.finish(&roots()).expect("removed");
    }
    assert!(!path.exists());
    assert!(!is_own(&file).expect("asked"), "nobody would find it");
}

#[test]
fn a_part_can_be_undone_by_itself() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut journal, folder, file) = made(place.path());
    assert_eq!(journal.mark(), 2);
    let report = journal.undo_since(&roots(), 1).expect("undone");
    assert_eq!(report.undone.len(), 1);
    assert!(folder.exists() && !file.exists());
    // Nothing is undone twice.
    assert_eq!(
        journal.undo_since(&roots(), 1).expect("undone"),
        Report::default()
    );
    journal.finish(&roots()).expect("undone");
    assert!(!folder.exists());
}

#[test]
fn the_journal_of_a_run_that_lives_is_left_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let (journal, folder, _) = made(place.path());
    let (found, wrong) = leftovers(&place.path().join("journal")).expect("listed");
    assert!(found.is_empty() && wrong.is_empty());
    drop(journal);
    let (found, _) = leftovers(&place.path().join("journal")).expect("listed");
    assert_eq!(found.len(), 1, "its lock is free");
    for journal in found {
        journal.finish(&roots()).expect("undone");
    }
    assert!(!folder.exists());
}

/// As a program that another thread is just starting has the files of the run.
#[test]
fn its_lock_ends_with_a_journal_whoever_has_its_file() {
    let place = tempfile::tempdir().expect("a directory");
    let (journal, ..) = made(place.path());
    let _kept = journal.file.try_clone().expect("the same open file");
    drop(journal);
    let (found, _) = leftovers(&place.path().join("journal")).expect("listed");
    assert_eq!(found.len(), 1);
}

#[test]
fn a_directory_below_what_has_become_a_file_has_gone() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("file");
    fs::write(&file, "content").expect("made");
    let mut journal =
        Journal::begin(&place.path().join("journal"), "raidlab run x").expect("begun");
    journal
        .intend("make a directory", &[Undo::NewDirectory(file.join("made"))])
        .expect("announced");
    let path = journal.path().to_owned();
    let report = journal.finish(&roots()).expect("undone");
    assert!(report.left.is_empty() && !path.exists(), "{report:?}");
    assert!(file.exists());
}

#[test]
fn a_file_that_took_the_place_of_ours_is_left() {
    let place = tempfile::tempdir().expect("a directory");
    let (journal, folder, file) = made(place.path());
    fs::rename(
        &file,
        place
            .path()
            .join("kept so that its inode is not given out again"),
    )
    .expect("moved");
    fs::write(&file, "of someone else").expect("written");
    let path = journal.path().to_owned();
    let report = journal.finish(&roots()).expect("tried");
    assert!(file.exists(), "another file of that name");
    assert_eq!(
        report.left.len(),
        1,
        "its directory is not empty: {report:?}"
    );
    assert!(report.left[0].contains(&folder.display().to_string()));
    assert!(path.exists(), "the journal stays until all in it is undone");
}

#[test]
fn a_file_that_was_only_announced_is_removed_when_it_is_empty() {
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(place.path(), "x").expect("begun");
    let (empty, full) = (place.path().join("empty"), place.path().join("full"));
    for path in [&empty, &full] {
        journal
            .intend("make", &[Undo::NewFile(path.clone())])
            .expect("announced");
    }
    fs::write(&empty, "").expect("made");
    fs::write(&full, "someone's").expect("made");
    journal.finish(&roots()).expect("undone");
    assert!(!empty.exists() && full.exists());
}

#[test]
fn what_another_version_wrote_is_told_and_left() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(
        place.path().join("00000000.journal"),
        "{\"entry\":\"begin\",\"of\":9}\n",
    )
    .expect("written");
    fs::write(place.path().join("notes.txt"), "mine").expect("written");
    let (found, wrong) = leftovers(place.path()).expect("listed");
    assert!(found.is_empty());
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("line 1"), "{}", wrong[0]);
    let (found, wrong) = leftovers(&place.path().join("nowhere")).expect("listed");
    assert!(found.is_empty() && wrong.is_empty());
}

#[test]
fn a_journal_of_another_version_is_left_even_if_it_can_be_read() {
    let place = tempfile::tempdir().expect("a directory");
    let line = "{\"entry\":\"begin\",\"version\":2,\"process\":{\"pid\":1,\"start\":1,\"boot\":\"b\"},\"command\":\"x\"}\n";
    fs::write(place.path().join("00000000.journal"), line).expect("written");
    let (found, wrong) = leftovers(place.path()).expect("listed");
    assert!(found.is_empty());
    assert!(wrong[0].contains("it is of version 2"), "{wrong:?}");
}

/// A full disk cuts a line off; when there is room again, what is written then can be read.
#[test]
fn a_line_that_was_cut_off_spoils_none_of_those_behind_it() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut journal, _, file) = made(place.path());
    let torn = OpenOptions::new().append(true).open(journal.path());
    torn.expect("its file")
        .write_all(b"{\"entry\":\"int")
        .expect("written");
    journal.undo_since(&roots(), 1).expect("undone");
    assert!(!file.exists());
    drop(journal);
    let (found, wrong) = leftovers(&place.path().join("journal")).expect("listed");
    assert!(wrong.is_empty(), "{wrong:?}");
    for journal in found {
        let report = journal.finish(&roots()).expect("undone");
        assert_eq!(report.undone.len(), 1, "the file is not undone again");
    }
}

/// A full disk: what was made on it is what fills it, and is the last to be undone.
#[test]
fn what_cannot_be_written_down_is_undone_all_the_same() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut journal, folder, file) = made(place.path());
    journal.file = File::open(journal.path()).expect("for reading alone");
    let path = journal.path().to_owned();
    let report = journal.finish(&roots()).expect("undone");
    assert_eq!(report.undone.len(), 2, "{report:?}");
    assert!(!folder.exists() && !file.exists() && !path.exists());
    // What stays is told with it.
    let (mut journal, folder, _) = made(place.path());
    fs::write(folder.join("of a user"), "").expect("written");
    journal.file = File::open(journal.path()).expect("for reading alone");
    let report = journal.finish(&roots()).expect("tried");
    let left = report.left.join("\n");
    assert!(left.contains("look into it and remove it"), "{left}");
    assert!(left.contains("raidlab clean"), "{left}");
    // A run that goes on is told.
    let (mut journal, _, file) = made(place.path());
    journal.file = File::open(journal.path()).expect("for reading alone");
    let error = journal.undo_since(&roots(), 0).expect_err("not written");
    assert!(error.to_string().contains("write"), "{error}");
    assert!(!file.exists());
}

/// A loop file that was cut off cannot be cleared, and goes a moment later.
#[test]
fn what_stood_in_the_way_and_is_undone_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(&place.path().join("journal"), "x").expect("begun");
    let folder = place.path().join("made");
    let file = folder.join("file");
    fs::create_dir(&folder).expect("made");
    fs::write(&file, "content").expect("made");
    let [file_id, folder_id] = [&file, &folder].map(|path| FileId::of(path).expect("there"));
    journal
        .intend("make a file", &[Undo::File(file_id)])
        .expect("announced");
    journal
        .intend("make a directory", &[Undo::Directory(folder_id)])
        .expect("announced");
    let path = journal.path().to_owned();
    let report = journal.finish(&roots()).expect("undone");
    assert_eq!(report.left, Vec::<String>::new());
    assert_eq!(report.undone.len(), 2, "{report:?}");
    assert!(!folder.exists() && !path.exists());
}

/// A program that the run was just starting has its files, and with them the lock, until it is another program.
#[test]
fn a_lock_that_outlives_its_run_for_a_moment_is_waited_for() {
    let place = tempfile::tempdir().expect("a directory");
    let line = |pid, start| {
        let boot = Process::own().boot;
        let process = Process { pid, start, boot };
        let begin = Entry::Begin {
            version: VERSION,
            process,
            command: "x".to_owned(),
        };
        serde_json::to_string(&begin).expect("a line") + "\n"
    };
    let own = Process::own();
    for (name, text, found) in [
        ("gone", line(own.pid, own.start + 1), 1),
        ("living", line(own.pid, own.start), 0),
    ] {
        let place = place.path().join(name);
        fs::create_dir(&place).expect("made");
        let path = place.join("00000000.journal");
        fs::write(&path, text).expect("written");
        let held = File::open(&path).expect("its file");
        flock(&held, FlockOperation::LockExclusive).expect("locked");
        let lets_go = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(held);
        });
        let (journals, wrong) = leftovers(&place).expect("listed");
        assert_eq!((journals.len(), wrong.len()), (found, 0), "{name}");
        lets_go.join().expect("ended");
    }
}

/// Whoever can write to a directory could have root remove any file.
#[test]
fn a_journal_of_another_user_is_told_and_left() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let (journal, _, file) = made(place.path());
    let path = journal.path().to_owned();
    drop(journal);
    std::os::unix::fs::chown(&path, Some(1), None).expect("given away");
    let (found, wrong) = leftovers(&place.path().join("journal")).expect("listed");
    assert!(found.is_empty() && file.exists());
    assert!(wrong[0].contains("belongs to another user"), "{wrong:?}");
}

/// Device numbers of file systems are dealt out anew at every boot.
#[test]
fn a_file_is_known_after_a_boot_by_its_name_and_inode() {
    let place = tempfile::tempdir().expect("a directory");
    for (boot, gone) in [("another", true), (Process::own().boot.as_str(), false)] {
        let (mut journal, folder, file) = made(place.path());
        for step in journal.open.values_mut() {
            for undo in &mut step.undo {
                if let Undo::File(id) | Undo::Directory(id) = undo {
                    id.device += 1;
                }
            }
        }
        journal.process.boot = boot.to_owned();
        let report = journal.finish(&roots()).expect("tried");
        assert_eq!(
            (file.exists(), folder.exists()),
            (!gone, !gone),
            "{report:?}"
        );
    }
}

/// A disk that was pulled out comes back with what was written on it; the file of a loop device does not.
#[test]
fn a_disk_that_is_not_here_is_not_forgotten() {
    let place = tempfile::tempdir().expect("a directory");
    let file = FileId::of(place.path()).expect("there");
    for (backing, left) in [(None, 1), (Some(file), 0)] {
        let member = Identity {
            name: "sdz".to_owned(),
            number: DeviceNumber {
                major: 8,
                minor: 400,
            },
            size: 512,
            serial: Some("no disk has this".to_owned()),
            backing,
        };
        let uuids = Vec::new();
        let mut journal = Journal::begin(&place.path().join("journal"), "x").expect("begun");
        journal
            .intend("write", &[Undo::Contents { member, uuids }])
            .expect("announced");
        let path = journal.path().to_owned();
        let report = journal.finish(&roots()).expect("tried");
        assert_eq!(report.left.len(), left, "{report:?}");
        assert_eq!(path.exists(), left > 0);
        assert!(
            report
                .left
                .iter()
                .all(|why| why.contains("no disk has this"))
        );
    }
}

#[test]
fn a_process_is_known_by_its_boot_and_its_start() {
    let own = Process::own();
    assert!(own.lives() && !own.is_of_another_boot());
    let later = Process {
        start: own.start + 1,
        ..own.clone()
    };
    assert!(!later.lives(), "its number was given out again");
    let other = Process {
        boot: "another".to_owned(),
        ..own
    };
    assert!(!other.lives() && other.is_of_another_boot());
}

proptest! {
    // Each line is synced.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Killed while it wrote: whatever is whole of the file is believed, and undoing ends well.
    #[test]
    fn a_journal_may_be_cut_off_anywhere(cut in 0.0..1.0_f64) {
        let place = tempfile::tempdir().expect("a directory");
        let (journal, folder, file) = made(place.path());
        let path = journal.path().to_owned();
        drop(journal);
        let text = fs::read(&path).expect("written");
        let whole = (text.len() as f64 * cut) as usize;
        fs::write(&path, &text[..whole]).expect("cut");
        let lines = text[..whole].iter().filter(|byte| **byte == b'\n').count();
        let (found, wrong) = leftovers(&place.path().join("journal")).expect("listed");
        prop_assert!(wrong.is_empty(), "{wrong:?}");
        for journal in found {
            let _ = journal.finish(&roots()).expect("undone");
        }
        // Begin, then two lines a step; what was announced but not said to be done is a file with content: kept.
        prop_assert_eq!(file.exists(), lines < 5);
        prop_assert_eq!(folder.exists(), lines < 5);
    }
}

/// Journals are text: a place whose name is none cannot be told in one, and nothing is done there.
#[test]
fn a_place_whose_name_is_no_text_is_refused_with_what_helps() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(&place.path().join("journals"), "a test").expect("begun");
    let odd = place.path().join(std::ffi::OsStr::from_bytes(b"a\xff"));
    let refused = journal.intend("make a file", &[Undo::NewFile(odd)]);
    let refused = refused.expect_err("no text").to_string();
    assert!(refused.contains("--loop-dir"), "{refused}");
    let report = journal.finish(&roots()).expect("ended");
    assert_eq!(report, Report::default());
}
