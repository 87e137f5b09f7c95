//! Arrays that a run left, by the kernel's tables alone, for machines whose kernel has none: those that someone has put to use since
//! stay, and all that they are on.
use super::holders::kernel_has;
use super::*;
use crate::journal::{Journal, Report, Undo, leftovers};

const OURS: u8 = 0x11;

fn uuid(byte: u8) -> String {
    format!("{byte:02x}").repeat(16)
}

/// A member and what stands for an array on it, in tables of their own. The array has a name that no kernel gives, for raidlab stops
/// arrays by their names.
struct Tables {
    directory: tempfile::TempDir,
    roots: Roots,
    name: &'static str,
    member: Theirs,
    array: Theirs,
}

impl Tables {
    fn new() -> Self {
        Self::of("sdx")
    }

    /// With a member of this name.
    fn of(name: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(directory.path());
        std::fs::create_dir_all(roots.proc.join("self")).expect("made");
        for file in ["self/mountinfo", "swaps", "mdstat"] {
            std::fs::write(roots.proc.join(file), "").expect("written");
        }
        std::fs::create_dir_all(&roots.dev).expect("made");
        let [member, array] = [(); 2].map(|()| Theirs::new());
        let tables = Self {
            directory,
            roots,
            name,
            member,
            array,
        };
        tables.show(&tables.member, name, &[]);
        tables.superblock(OURS);
        tables
    }

    /// Shows a device under this name; it lies on these.
    fn show(&self, device: &Theirs, name: &str, below: &[&str]) {
        let block = self.roots.block(name);
        std::fs::create_dir_all(&block).expect("made");
        let number = device.device().identity.number.to_string();
        for (file, text) in [("dev", number), ("size", (SIZE / 512).to_string())] {
            std::fs::write(block.join(file), text).expect("written");
        }
        std::os::unix::fs::symlink(&device.path, self.roots.dev.join(name)).expect("a node");
        if !below.is_empty() {
            std::fs::create_dir_all(block.join("md")).expect("made");
            std::fs::create_dir_all(self.roots.sys.join("block").join(name)).expect("made");
        }
        for below in below {
            std::fs::create_dir_all(block.join("slaves").join(below)).expect("made");
        }
    }

    fn show_array(&self) {
        self.show(&self.array, "none0", &[self.name]);
    }

    /// The member is one of an array of this uuid.
    fn superblock(&self, byte: u8) {
        superblock(&self.member, byte);
    }

    fn member(&self) -> Identity {
        let file = File::open(&self.member.path).expect("readable");
        Identity::of_open(&self.roots, &file, &self.member.path).expect("a device")
    }

    /// What comes of the journal of a run that was killed after the array was made, or while it was.
    fn undone(&self, taken: bool, further: &[Undo]) -> Report {
        let place = tempfile::tempdir_in(self.directory.path()).expect("a directory");
        let place = place.path();
        let mut journal = self.journal(place, further);
        let array = Undo::Array {
            members: vec![self.member()],
            name: "none0".to_owned(),
        };
        let step = journal
            .intend("make an array", &[array])
            .expect("announced");
        if taken {
            journal.done(step).expect("told");
        }
        drop(journal);
        let (mut found, wrong) = leftovers(place).expect("listed");
        assert!(wrong.is_empty(), "{wrong:?}");
        let journal = found.pop().expect("its journal");
        let path = journal.path().to_owned();
        let report = journal.finish(&self.roots).expect("looked at");
        assert_eq!(path.exists(), !report.left.is_empty(), "{report:?}");
        report
    }

    fn journal(&self, place: &Path, further: &[Undo]) -> Journal {
        let mut journal = Journal::begin(place, "raidlab run x").expect("begun");
        let contents = Undo::Contents {
            member: self.member(),
            uuids: vec![uuid(OURS)],
        };
        let all: Vec<Undo> = further.iter().cloned().chain([contents]).collect();
        for undo in all {
            journal.intend("write", &[undo]).expect("announced");
        }
        journal
    }

    fn labels(&self) -> usize {
        let file = File::open(&self.member.path).expect("readable");
        let found = label::read(&file, SIZE, &self.member.path).expect("readable");
        found.len()
    }

    /// The array stays for this reason, and its member with it.
    fn stays(&self, report: &Report, why: &str) {
        assert!(report.left[0].contains(why), "{report:?}");
        let member = report.left.iter().find(|left| left.contains("sdx is not"));
        let member = member.unwrap_or_else(|| panic!("{report:?}"));
        assert!(
            member.contains("what is on it stays, as is told"),
            "{member}"
        );
        assert_eq!(report.undone, Vec::<String>::new());
        assert_eq!(self.labels(), 1, "its superblock");
    }
}

fn superblock(device: &Theirs, byte: u8) {
    device.write(0x1000, &[0xfc, 0x4e, 0x2b, 0xa9]);
    device.write(0x1000 + 16, &[byte; 16]);
}

#[test]
fn an_array_whose_members_carry_another_uuid_is_left() {
    if !may("an_array_whose_members_carry_another_uuid_is_left") {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    tables.superblock(0x22);
    tables.stays(&tables.undone(true, &[]), "made by someone else");
}

#[test]
fn a_file_system_that_someone_made_on_a_leftover_array_is_left_with_it() {
    if !may("a_file_system_that_someone_made_on_a_leftover_array_is_left_with_it") {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    system(&["mkfs.ext4", "-q", "-F", tables.array.path()]);
    for taken in [true, false] {
        let report = tables.undone(taken, &[]);
        tables.stays(
            &report,
            "none0 is not stopped: it carries ext2/3/4 file system",
        );
        assert!(report.left[0].contains("wipefs -a /dev/none0"));
    }
}

/// The file of a loop device goes with what is on it.
#[test]
fn a_loop_file_that_an_array_stays_on_stays() {
    if !may("a_loop_file_that_an_array_stays_on_stays") {
        return;
    }
    // As a disk of raidlab's own is named.
    let tables = Tables::of("loop7");
    std::fs::create_dir_all(tables.roots.block("loop7").join("loop")).expect("made");
    let shown = tables.member().backing.expect("its file");
    tables.show_array();
    system(&["mkfs.ext4", "-q", "-F", tables.array.path()]);
    let further = [Undo::File(shown.clone()), Undo::LoopDevice(shown.clone())];
    let report = tables.undone(true, &further);
    assert_eq!(report.left.len(), 4, "{report:?}");
    assert!(shown.is_there());
    assert_eq!(tables.member.device().identity.backing, Some(shown));
}

#[test]
fn what_raidlab_made_on_an_array_is_no_reason_to_leave_it() {
    if !may("what_raidlab_made_on_an_array_is_no_reason_to_leave_it") {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    let own = "11111111-1111-1111-1111-111111111111";
    system(&["mkfs.ext4", "-q", "-F", "-U", own, tables.array.path()]);
    let foreign = |uuids: &[String]| crate::journal::foreign(&tables.roots, "none0", uuids);
    assert_eq!(foreign(&[uuid(OURS)]), Ok(None));
    let found = foreign(&[uuid(0x22)]).expect("readable").expect("foreign");
    assert_eq!(found.what, "ext2/3/4 file system");
}

/// The file system is raidlab's, what is in it is not.
#[test]
fn an_array_whose_file_system_someone_has_put_files_into_is_left() {
    let name = "an_array_whose_file_system_someone_has_put_files_into_is_left";
    if !may(name) {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    let own = "11111111-1111-1111-1111-111111111111";
    system(&["mkfs.ext4", "-q", "-F", "-U", own, tables.array.path()]);
    let point = tables.directory.path().join("mnt");
    std::fs::create_dir(&point).expect("made");
    let place = point.to_str().expect("a name");
    system(&["mount", tables.array.path(), place]);
    std::fs::write(point.join("letters"), "mine").expect("written");
    system(&["umount", place]);
    let report = tables.undone(true, &[]);
    tables.stays(
        &report,
        "none0 is not stopped: its file system holds 'letters'",
    );
    assert!(
        report.left[0].contains("wipefs -a /dev/none0"),
        "{report:?}"
    );
}

#[test]
fn an_array_that_someone_put_into_an_array_or_a_volume_is_left() {
    if !may("an_array_that_someone_put_into_an_array_or_a_volume_is_left") {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    let holders = tables.roots.block("none0").join("holders");
    std::fs::create_dir_all(holders.join("dm-0")).expect("made");
    tables.stays(&tables.undone(true, &[]), "dm-0 lies on it");
    // An array on the one that raidlab made: members carry raidlab's uuid alone.
    std::fs::remove_dir(holders.join("dm-0")).expect("removed");
    std::fs::create_dir_all(holders.join("none1")).expect("made");
    superblock(&tables.array, 0x22);
    let upper = Theirs::new();
    tables.show(&upper, "none1", &["none0"]);
    tables.stays(&tables.undone(true, &[]), "none1 is not stopped");
}

#[test]
fn an_array_that_someone_stopped_is_not_cleared_without_a_look() {
    if !may("an_array_that_someone_stopped_is_not_cleared_without_a_look") {
        return;
    }
    let tables = Tables::new();
    let report = tables.undone(true, &[]);
    tables.stays(&report, "none0 is not running");
    assert!(
        report.left[0].contains("mdadm --assemble /dev/none0"),
        "{report:?}"
    );
    // Half made it was nobody's.
    let report = tables.undone(false, &[]);
    assert_eq!(report.left, Vec::<String>::new());
    assert_eq!(tables.labels(), 0);
    // Emptied, as was advised.
    assert_eq!(tables.undone(true, &[]), Report::default());
}

/// Of an earlier array on the same members, say, whose superblocks alone were cleared.
#[test]
fn what_shines_through_a_new_array_is_emptied() {
    if !may("what_shines_through_a_new_array_is_emptied") {
        return;
    }
    let tables = Tables::new();
    tables.show_array();
    system(&["mkfs.ext4", "-q", "-F", tables.array.path()]);
    let made = |members: &[Identity]| Claim::of_built(&tables.roots, &tables.array.path, members);
    made(&[]).expect_err("it lies on another device");
    let labels = || {
        let file = File::open(&tables.array.path).expect("readable");
        label::read(&file, SIZE, &tables.array.path).expect("readable")
    };
    assert_eq!(labels().len(), 1, "what is not raidlab's is not emptied");
    made(&[tables.member()]).expect("an array");
    assert_eq!(labels(), []);
}

/// What someone has made of a loop device, or has mounted of it, would go with its file.
#[test]
fn a_loop_file_that_someone_has_put_to_use_stays() {
    if !may("a_loop_file_that_someone_has_put_to_use_stays") {
        return;
    }
    let theirs = Theirs::new();
    let member = theirs.device().identity;
    let file = member.backing.clone().expect("its file");
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(place.path(), "raidlab run x").expect("begun");
    let contents = Undo::Contents {
        member,
        uuids: vec![uuid(OURS)],
    };
    let all = [
        Undo::File(file.clone()),
        Undo::LoopDevice(file.clone()),
        contents,
    ];
    for undo in all {
        journal.intend("write", &[undo]).expect("announced");
    }
    drop(journal);
    let cleaned = || {
        let (mut found, _) = leftovers(place.path()).expect("listed");
        let journal = found.pop().expect("its journal");
        journal.finish(&Roots::system()).expect("looked at")
    };
    let stays = |why: &str| {
        let report = cleaned();
        assert!(report.left[0].contains(why), "{report:?}");
        assert_eq!(
            (report.left.len(), report.undone.len()),
            (3, 0),
            "{report:?}"
        );
        assert!(file.is_there());
        assert_eq!(theirs.device().identity.backing, Some(file.clone()));
    };
    system(&["mkfs.ext4", "-q", "-F", theirs.path()]);
    stays("which raidlab did not write");
    let own = "11111111-1111-1111-1111-111111111111";
    system(&["mkfs.ext4", "-q", "-F", "-U", own, theirs.path()]);
    let point = place.path().join("mnt");
    std::fs::create_dir(&point).expect("made");
    let point = point.to_str().expect("a name");
    system(&["mount", theirs.path(), point]);
    stays("its file system is mounted at");
    system(&["umount", point]);
    let report = cleaned();
    assert_eq!(
        (report.left.len(), report.undone.len()),
        (0, 3),
        "{report:?}"
    );
    assert!(!file.is_there());
}

/// Of the kernel's own md: what was advised leads to the end.
#[test]
fn a_real_array_is_taken_apart_when_nobody_has_put_it_to_use() {
    let name = "a_real_array_is_taken_apart_when_nobody_has_put_it_to_use";
    if !may(name) || !kernel_has("mdadm", name) {
        return;
    }
    let (first, second) = (Theirs::new(), Theirs::new());
    let members = [&first, &second].map(|theirs| theirs.device().identity);
    let with_uuid = format!("--uuid={}", uuid(OURS));
    let create =
        "mdadm --create /dev/md59 --run --assume-clean --level=1 --bitmap=none --raid-devices=2";
    let words = create.split(' ');
    system(
        &words
            .chain([with_uuid.as_str(), first.path(), second.path()])
            .collect::<Vec<_>>(),
    );
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(place.path(), "raidlab run x").expect("begun");
    for member in members.clone() {
        let uuids = vec![uuid(OURS)];
        let contents = Undo::Contents { member, uuids };
        journal.intend("write", &[contents]).expect("announced");
    }
    let array = Undo::Array {
        members: members.to_vec(),
        name: "md59".to_owned(),
    };
    let step = journal.intend("array", &[array]).expect("announced");
    journal.done(step).expect("told");
    drop(journal);
    let cleaned = || {
        let (mut found, _) = leftovers(place.path()).expect("listed");
        let journal = found.pop().expect("its journal");
        let report = journal.finish(&Roots::system()).expect("looked at");
        let why = report.left.join("\n");
        assert_eq!(
            report.undone.is_empty(),
            !report.left.is_empty(),
            "{report:?}"
        );
        why
    };
    system(&["mkfs.ext4", "-q", "-F", "/dev/md59"]);
    let why = cleaned();
    assert!(why.contains("ext2/3/4 file system"), "{why}");
    system(&["mdadm", "--stop", "/dev/md59"]);
    let why = cleaned();
    let advised = why.split('\'').nth(1).expect("a command");
    assert!(why.contains("not running"), "{why}");
    system(&advised.split(' ').collect::<Vec<_>>());
    let why = cleaned();
    assert!(why.contains("ext2/3/4 file system"), "{why}");
    system(&["e2fsck", "-n", "-f", "/dev/md59"]);
    let array = Path::new("/dev/md59");
    let file = open_exclusively(array).expect("free");
    let size = Identity::of_open(&Roots::system(), &file, array)
        .expect("there")
        .size;
    clear(&file, size, array).expect("emptied");
    drop(file);
    assert_eq!(cleaned(), "");
    first.given();
    second.given();
}
