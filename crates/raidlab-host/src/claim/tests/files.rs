//! File systems that a run left, and what someone has put into them since: as the next run finds them.
use super::open::Opener;
use super::*;
use crate::journal::{Journal, Report, Undo, leftovers};
use std::sync::OnceLock;

/// XFS is not made on less.
pub(super) const LARGE: u64 = 320 << 20;

/// The bytes of a uuid that a run gave. Each test has one of its own, for no kernel mounts two of the same; and so has each run of the
/// tests, for the kernel remembers the devices of a btrfs by their numbers, which are those of other loop devices when the tests run
/// again: it would take one of those for a member.
pub(super) fn bytes(byte: u8) -> [u8; 16] {
    static RUN: OnceLock<u128> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let path = "/proc/sys/kernel/random/uuid";
        let uuid = std::fs::read_to_string(path).expect("the kernel's");
        u128::from_str_radix(&uuid.trim().replace('-', ""), 16).expect("a number")
    });
    let mut bytes = run.to_be_bytes();
    bytes[15] = byte;
    bytes
}

/// It as the journal has it.
pub(super) fn digits(byte: u8) -> String {
    let bytes = bytes(byte);
    bytes.map(|byte| format!("{byte:02x}")).concat()
}

/// It as programs are told it.
pub(super) fn own(byte: u8) -> String {
    let all = digits(byte);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &all[part]).join("-")
}

/// A device of this size.
pub(super) fn device(size: u64) -> Theirs {
    let theirs = Theirs::new();
    let file = theirs.directory.path().join("disk");
    let file = OpenOptions::new().write(true).open(file).expect("its file");
    file.set_len(size).expect("longer");
    system(&["losetup", "--set-capacity", theirs.path()]);
    theirs
}

pub(super) fn make(kind: &str, byte: u8, devices: &[&Theirs]) {
    let uuid = match kind {
        "xfs" => format!("uuid={}", own(byte)),
        _ => own(byte),
    };
    let words: &[&str] = match kind {
        "xfs" => &["mkfs.xfs", "-f", "-q", "-m", &uuid],
        "btrfs" => &["mkfs.btrfs", "-f", "-q", "-U", &uuid],
        _ => &["mkfs.ext4", "-F", "-q", "-U", &uuid],
    };
    let paths = devices.iter().map(|device| device.path());
    system(&words.iter().copied().chain(paths).collect::<Vec<_>>());
}

/// A directory where this is mounted, until it is dropped.
pub(super) struct Mounted(tempfile::TempDir);

impl Mounted {
    pub(super) fn of(devices: &[&Theirs]) -> Self {
        let point = tempfile::tempdir().expect("a directory");
        let further = devices.iter().skip(1);
        let options: Vec<String> = ["rw".to_owned()]
            .into_iter()
            .chain(further.map(|device| format!("device={}", device.path())))
            .collect();
        let at = point.path().to_str().expect("a name");
        system(&["mount", "-o", &options.join(","), devices[0].path(), at]);
        Self(point)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Tool::new(["umount", self.0.path().to_str().expect("a name")]).run();
    }
}

/// The journal of a run that was killed: what it was about to write, and whether it had mounted a file system.
pub(super) fn journal(place: &Path, byte: u8, devices: &[&Theirs], mounted: bool) -> Journal {
    let mut journal = Journal::begin(place, "raidlab run x").expect("begun");
    let contents = devices.iter().map(|device| Undo::Contents {
        member: device.device().identity,
        uuids: vec![digits(byte)],
    });
    let contents: Vec<Undo> = contents.collect();
    journal.intend("write", &contents).expect("announced");
    if mounted {
        let mount = Undo::Mount {
            point: place.join("mnt"),
            members: devices.iter().map(|d| d.device().identity).collect(),
        };
        let step = journal.intend("mount", &[mount]).expect("announced");
        journal.done(step).expect("told");
    }
    journal
}

pub(super) fn cleaned(place: &Path) -> Report {
    let (mut found, wrong) = leftovers(place).expect("listed");
    assert!(wrong.is_empty(), "{wrong:?}");
    let journal = found.pop().expect("its journal");
    journal.finish(&Roots::system()).expect("looked at")
}

#[test]
fn a_file_system_that_someone_has_put_files_into_is_left() {
    if !may("a_file_system_that_someone_has_put_files_into_is_left") {
        return;
    }
    // Each with a uuid of its own: the device before may be detached a moment later, and mkfs.btrfs refuses one that is there.
    for (kind, byte) in [("ext4", 0x41), ("xfs", 0x47), ("btrfs", 0x48)] {
        let theirs = device(LARGE);
        let place = tempfile::tempdir().expect("a directory");
        make(kind, byte, &[&theirs]);
        journal(place.path(), byte, &[&theirs], true);
        let mounted = Mounted::of(&[&theirs]);
        std::fs::create_dir(mounted.path(".raidlab-0a1b2c")).expect("made");
        std::fs::write(mounted.path("letters"), "mine").expect("written");
        drop(mounted);
        // A second time, too: what was told once is not forgotten.
        for _ in 0..2 {
            let report = cleaned(place.path());
            let left = report.left.join("\n");
            assert!(
                left.contains("'letters'") && left.contains("wipefs"),
                "{kind}: {report:?}"
            );
            assert!(!left.contains("0a1b2c"), "{kind}: {report:?}");
            assert!(report.undone.is_empty(), "{kind}: {report:?}");
        }
        let mounted = Mounted::of(&[&theirs]);
        let kept = std::fs::read_to_string(mounted.path("letters"));
        assert_eq!(kept.expect("there"), "mine", "{kind}");
        std::fs::remove_file(mounted.path("letters")).expect("removed");
        drop(mounted);
        let report = cleaned(place.path());
        assert_eq!(report.left, Vec::<String>::new(), "{kind}");
        theirs.given();
    }
}

/// A mount that a run left, with its journal: what of it was done is told, or only that it was about to be. Where it is mounted.
pub(super) fn left_mounted(place: &Path, byte: u8, theirs: &Theirs, told: bool) -> PathBuf {
    let point = place.canonicalize().expect("there").join("mnt");
    std::fs::create_dir(&point).expect("made");
    let member = theirs.device().identity;
    let mut journal = Journal::begin(place, "raidlab run x").expect("begun");
    for undo in [
        Undo::Contents {
            member: member.clone(),
            uuids: vec![digits(byte)],
        },
        Undo::Directory(FileId::of(&point).expect("there")),
        Undo::Mount {
            point: point.clone(),
            members: vec![member],
        },
    ] {
        let step = journal.intend("make", &[undo]).expect("announced");
        if told {
            journal.done(step).expect("told");
        }
    }
    system(&["mount", theirs.path(), point.to_str().expect("a name")]);
    point
}

/// A killed run's mount stays, and looks like any other directory.
#[test]
fn a_mount_that_someone_has_put_files_into_stays() {
    if !may("a_mount_that_someone_has_put_files_into_stays") {
        return;
    }
    let theirs = device(LARGE);
    let place = tempfile::tempdir().expect("a directory");
    make("ext4", 0x42, &[&theirs]);
    let point = left_mounted(place.path(), 0x42, &theirs, false);
    let letters = point.join("letters");
    std::fs::write(&letters, "mine").expect("written");
    let report = cleaned(place.path());
    assert!(report.left[0].contains("stays mounted"), "{report:?}");
    assert!(report.left[0].contains("'letters'"), "{report:?}");
    assert_eq!(report.undone, Vec::<String>::new());
    std::fs::remove_file(&letters).expect("still there");
    // As e2fsck leaves what it found.
    std::fs::write(point.join("lost+found/#12"), "mine").expect("written");
    let report = cleaned(place.path());
    assert!(report.left[0].contains("'lost+found/#12'"), "{report:?}");
    std::fs::remove_file(point.join("lost+found/#12")).expect("still there");
    let report = cleaned(place.path());
    assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
    theirs.given();
}

/// A virtual machine may have been given it, and have the file system mounted.
#[test]
fn a_file_system_that_another_process_has_open_is_neither_looked_into_nor_cleared() {
    if !may("a_file_system_that_another_process_has_open_is_neither_looked_into_nor_cleared") {
        return;
    }
    let theirs = device(LARGE);
    let place = tempfile::tempdir().expect("a directory");
    make("ext4", 0x4b, &[&theirs]);
    journal(place.path(), 0x4b, &[&theirs], true);
    let before = std::fs::read(&theirs.path).expect("its bytes");
    let opener = Opener::of(&theirs.path);
    let report = cleaned(place.path());
    assert!(
        report.left[0].contains("sleep (")
            && report.left[0].contains("end it, and 'raidlab clean'"),
        "{report:?}"
    );
    assert!(std::fs::read(&theirs.path).expect("its bytes") == before);
    drop(opener);
    let report = cleaned(place.path());
    assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
    theirs.given();
}

/// After a power failure what was written last is in the journal of the file system alone.
#[test]
fn files_that_a_crash_left_in_the_journal_are_seen() {
    if !may("files_that_a_crash_left_in_the_journal_are_seen") {
        return;
    }
    for (kind, byte) in [("ext4", 0x43), ("xfs", 0x49), ("btrfs", 0x4a)] {
        let first = device(LARGE);
        make(kind, byte, &[&first]);
        let mounted = Mounted::of(&[&first]);
        let letters = File::create(mounted.path("letters")).expect("made");
        letters.sync_all().expect("synced");
        let copy = first.directory.path().join("copy");
        std::fs::copy(first.directory.path().join("disk"), &copy).expect("copied");
        drop(letters);
        drop(mounted);
        first.show_instead(&[first.path(), copy.to_str().expect("a name")]);
        let place = tempfile::tempdir().expect("a directory");
        journal(place.path(), byte, &[&first], true);
        let report = cleaned(place.path());
        assert!(
            report.left.join("\n").contains("'letters'"),
            "{kind}: {report:?}"
        );
    }
}

/// It may be damaged, and be someone's; what was never mounted has been nobody's.
#[test]
fn a_file_system_that_cannot_be_looked_into_is_left_unless_it_was_half_made() {
    if !may("a_file_system_that_cannot_be_looked_into_is_left_unless_it_was_half_made") {
        return;
    }
    for mounted in [true, false] {
        let theirs = Theirs::new();
        theirs.write(0x438, &[0x53, 0xef]);
        theirs.write(0x438 + 48, &bytes(0x44));
        let place = tempfile::tempdir().expect("a directory");
        journal(place.path(), 0x44, &[&theirs], mounted);
        let report = cleaned(place.path());
        assert_eq!(report.left.len(), usize::from(mounted), "{report:?}");
        if mounted {
            assert!(
                report.left[0].contains("cannot be looked into"),
                "{report:?}"
            );
            assert!(report.left[0].contains("wipefs -a"), "{report:?}");
            system(&["wipefs", "-a", theirs.path()]);
            assert_eq!(cleaned(place.path()), Report::default());
        }
    }
}

#[test]
fn a_file_system_on_several_devices_is_judged_as_one() {
    if !may("a_file_system_on_several_devices_is_judged_as_one") {
        return;
    }
    let both = [device(LARGE), device(LARGE)];
    let both = [&both[0], &both[1]];
    let place = tempfile::tempdir().expect("a directory");
    make("btrfs", 0x45, &both);
    journal(place.path(), 0x45, &both, true);
    let mounted = Mounted::of(&both);
    std::fs::write(mounted.path("letters"), "mine").expect("written");
    drop(mounted);
    let report = cleaned(place.path());
    assert_eq!(
        (report.left.len(), report.undone.len()),
        (2, 0),
        "{report:?}"
    );
    let mounted = Mounted::of(&both);
    std::fs::remove_file(mounted.path("letters")).expect("still there");
    drop(mounted);
    let report = cleaned(place.path());
    assert_eq!(
        (report.left.len(), report.undone.len()),
        (0, 2),
        "{report:?}"
    );
    for theirs in both {
        theirs.given();
    }
}

/// A disk that died comes back when the others have been cleared: what was on all of them is gone.
#[test]
fn the_last_device_of_a_file_system_that_is_gone_is_cleared() {
    if !may("the_last_device_of_a_file_system_that_is_gone_is_cleared") {
        return;
    }
    let both = [device(LARGE), device(LARGE)];
    let both = [&both[0], &both[1]];
    let place = tempfile::tempdir().expect("a directory");
    let uuid = own(0x46);
    let words = "mkfs.btrfs -f -q -d raid0 -m raid0 -U".split(' ');
    let last = [uuid.as_str(), both[0].path(), both[1].path()];
    system(&words.chain(last).collect::<Vec<_>>());
    let mut run = journal(place.path(), 0x46, &both, true);
    let dead = open_exclusively(&both[1].path).expect("free");
    let report = run.undo_since(&Roots::system(), 0).expect("undone");
    assert_eq!(
        (report.left.len(), report.undone.len()),
        (1, 1),
        "{report:?}"
    );
    drop((dead, run));
    let report = cleaned(place.path());
    assert_eq!(
        (report.left.len(), report.undone.len()),
        (0, 1),
        "{report:?}"
    );
    both[1].given();
}
