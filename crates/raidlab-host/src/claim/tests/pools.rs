//! Members of pools of ZFS itself, which no distribution's kernel has: run in a guest by `make test-zfs`.
use super::files::{bytes, cleaned, digits, own};
use super::*;
use crate::journal::{Journal, Undo};
use crate::label::POOL;
use crate::provision::partition;

/// More than the least that ZFS takes for a member.
const MEMBER: u64 = 128 << 20;
const ALL: [Gate; 3] = [Gate::Kernel, Gate::Bytes, Gate::Exclusive];

impl Theirs {
    /// Large enough for ZFS.
    fn large(options: &[&str]) -> Self {
        let theirs = Self::with(options);
        let file = OpenOptions::new().write(true).open(theirs.file());
        file.and_then(|file| file.set_len(MEMBER)).expect("longer");
        system(&["losetup", "--set-capacity", theirs.path()]);
        theirs
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("disk")
    }
}

/// A pool of one member, whatever that was before.
fn pool(name: &str, member: &str) {
    system(&[
        "zpool",
        "create",
        "-f",
        "-o",
        "cachefile=none",
        "-O",
        "mountpoint=none",
        name,
        member,
    ]);
}

/// A claim on a partition or its disk, in a guest, without these gates.
fn take(path: &str, but: &[Gate]) -> std::result::Result<(), String> {
    let device = device_at(&Roots::system(), Path::new(path)).expect("a device");
    let left = Gate::ALL.iter().filter(|gate| !but.contains(gate));
    let gates: Vec<Gate> = left.copied().collect();
    // A partition's serial number is that of its disk, and loop devices have none.
    let own = Own(OwnKind::Guest);
    Claim::through(&Roots::system(), &device, Right::Own(&own), &gates)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn refused(path: &str, but: &[Gate], says: &[&str]) {
    let why = take(path, but).expect_err("it is refused");
    for words in says {
        assert!(why.contains(words), "no '{words}' in: {why}");
    }
}

/// The kernel has no word for what ZFS holds: what refuses is that it is held, and the labels.
#[test]
fn a_member_of_an_imported_and_of_an_exported_pool_is_refused() {
    let whole = Theirs::large(&["--partscan"]);
    let disk = whole.path().to_owned();
    let member = format!("{disk}p1");
    system(&["sgdisk", "--new=1:2048:-1M", "--typecode=1:BF01", &disk]);
    let _ = Tool::new(["partx", "-u", &disk]).run();
    // Before there is a pool on it, nothing stands in the way.
    take(&member, &[]).expect("an empty partition is given");
    pool("raidlab-gate", &member);

    // Imported: two gates, and nothing behind them.
    refused(&member, &[], &["zfs pool member"]);
    refused(&member, &[Gate::Exclusive], &["zfs pool member"]);
    refused(&member, &[Gate::Bytes], &["busy"]);
    take(&member, &[Gate::Bytes, Gate::Exclusive]).expect("only the gates stood between");
    refused(&disk, &[], &["has partitions", "GPT partition table"]);
    refused(&disk, &ALL[..2], &["busy"]);
    take(&disk, &ALL).expect("only the gates stood between");

    // Exported: its labels alone.
    system(&["zpool", "export", "raidlab-gate"]);
    refused(&member, &[], &["zfs pool member", "no one uses it now"]);
    refused(
        &member,
        &[Gate::Kernel, Gate::Exclusive],
        &["zfs pool member"],
    );
    take(&member, &[Gate::Bytes]).expect("it was the bytes that refused");

    // Nothing of that wrote to it; destroyed, it is still someone's until it is cleared.
    system(&[
        "zpool",
        "import",
        "-d",
        &member,
        "-o",
        "cachefile=none",
        "raidlab-gate",
    ]);
    system(&["zpool", "scrub", "-w", "raidlab-gate"]);
    let health = system(&["zpool", "status", "raidlab-gate"]);
    assert!(health.contains("errors: No known data errors"), "{health}");
    system(&["zpool", "destroy", "raidlab-gate"]);
    refused(&member, &[], &["zfs pool member", "no one uses it now"]);
    take(&member, &[Gate::Bytes]).expect("it was the bytes that refused");
    let file = open_exclusively(Path::new(&member)).expect("free");
    let size = Identity::of_open(&Roots::system(), &file, Path::new(&member)).expect("a device");
    clear(&file, size.size, Path::new(&member)).expect("cleared");
    drop(file);
    take(&member, &[]).expect("nothing is left of the pool");
    system(&["partx", "-d", &disk]);
}

/// A pool on the file that a device shows: ZFS holds the file, and nobody the device.
#[test]
fn a_device_whose_file_is_in_an_imported_pool_is_refused_by_its_bytes() {
    let theirs = Theirs::large(&[]);
    theirs.given();
    let file = theirs.file();
    pool("raidlab-file", file.to_str().expect("a name"));
    theirs.refused_by(&[Gate::Bytes], &["zfs pool member"]);
    system(&["zpool", "export", "raidlab-file"]);
    theirs.refused_by(&[Gate::Bytes], &["zfs pool member", "no one uses it now"]);
}

/// A pool that a run made and left when it was killed, mounted in a directory of its own; each test has a uuid of its own.
struct Left {
    disk: Theirs,
    place: tempfile::TempDir,
    name: String,
}

impl Left {
    fn new(byte: u8) -> Self {
        let disk = Theirs::large(&["--partscan"]);
        let file = open_exclusively(Path::new(disk.path())).expect("free");
        partition::write(&file, Path::new(disk.path()), MEMBER, bytes(byte)).expect("a table");
        drop(file);
        let place = tempfile::tempdir().expect("a directory");
        let left = Self {
            name: format!("{POOL}{}", own(byte)),
            disk,
            place,
        };
        let member = partition::node(left.disk.path());
        let mountpoint = format!("mountpoint={}", left.mount().display());
        let words = ["zpool", "create", "-f", "-o", "cachefile=none", "-O"];
        let rest = [mountpoint.as_str(), &left.name, &member];
        system(&[&words[..], &rest].concat());
        let mut journal = Journal::begin(left.place.path(), "raidlab run x").expect("begun");
        let contents = Undo::Contents {
            member: left.disk.device().identity,
            uuids: vec![digits(byte)],
        };
        journal.intend("write", &[contents]).expect("announced");
        let name = left.name.clone();
        let pool = Undo::Pool { name };
        let step = journal.intend("make a pool", &[pool]).expect("announced");
        journal.done(step).expect("told");
        left
    }

    fn mount(&self) -> PathBuf {
        self.place.path().join("mnt")
    }

    fn letters(&self) -> PathBuf {
        self.mount().join("letters")
    }

    fn import(&self) {
        let member = partition::node(self.disk.path());
        let words = ["zpool", "import", "-d", &member, "-o", "cachefile=none"];
        system(&[&words[..], &[&self.name]].concat());
    }

    /// It stays as it is, which is told with this.
    #[track_caller]
    fn stays(&self, says: &str) {
        let report = cleaned(self.place.path());
        assert!(report.left.join("\n").contains(says), "{report:?}");
        assert_eq!(report.undone, Vec::<String>::new());
    }

    /// Nothing is left of it.
    #[track_caller]
    fn goes(&self) {
        let report = cleaned(self.place.path());
        assert_eq!(report.left, Vec::<String>::new(), "{report:?}");
        assert!(!system(&["zpool", "list", "-H"]).contains(&self.name));
        self.disk.given();
    }
}

#[test]
fn a_pool_that_someone_has_put_files_into_is_left() {
    let left = Left::new(0x51);
    std::fs::create_dir(left.mount().join(".raidlab-0a1b2c")).expect("made");
    std::fs::write(left.letters(), "mine").expect("written");
    left.stays("'letters'");
    assert_eq!(std::fs::read(left.letters()).expect("still there"), b"mine");
    std::fs::remove_file(left.letters()).expect("removed");
    // Another file system of the pool is somebody's, too.
    let theirs = format!("{}/theirs", left.name);
    system(&["zfs", "create", &theirs]);
    left.stays(&theirs);
    system(&["zfs", "destroy", &theirs]);
    left.goes();
}

#[test]
fn a_pool_that_someone_has_exported_is_looked_into() {
    let left = Left::new(0x52);
    std::fs::write(left.letters(), "mine").expect("written");
    system(&["zpool", "export", &left.name]);
    left.stays("'letters'");
    // Looked into, it is as it was.
    assert!(!system(&["zpool", "list", "-H"]).contains(&left.name));
    left.import();
    assert_eq!(std::fs::read(left.letters()).expect("still there"), b"mine");
    std::fs::remove_file(left.letters()).expect("removed");
    system(&["zpool", "export", &left.name]);
    left.goes();
}
