//! What a run that was killed left, and someone has given another use since: it is told, and left alone.
use super::holders::kernel_has;
use super::*;
use crate::journal::{Journal, Report, Undo};
use crate::provision::partition;

const ID: [u8; 16] = [0x5a; 16];

fn of_id() -> Vec<String> {
    vec!["5a".repeat(16)]
}

/// Undoes this, as the next run does.
fn undone(undo: &[Undo]) -> Report {
    let place = tempfile::tempdir().expect("a directory");
    let mut journal = Journal::begin(place.path(), "raidlab run x").expect("begun");
    journal.intend("write", undo).expect("announced");
    journal.undo_since(&Roots::system(), 0).expect("undone")
}

/// A device with the table that raidlab writes for ZFS, its id known to be raidlab's; the node of its partition.
fn partitioned(theirs: &Theirs) -> (Undo, String) {
    let identity = theirs.device().identity;
    let file = open_exclusively(&theirs.path).expect("free");
    partition::write(&file, &theirs.path, identity.size, ID).expect("written");
    drop(file);
    let contents = Undo::Contents {
        member: identity,
        uuids: of_id(),
    };
    (contents, partition::node(theirs.path()))
}

#[test]
fn a_table_of_raidlabs_with_nothing_in_its_partition_is_cleared() {
    if !may("a_table_of_raidlabs_with_nothing_in_its_partition_is_cleared") {
        return;
    }
    let theirs = Theirs::new();
    let (contents, _) = partitioned(&theirs);
    let report = undone(&[contents]);
    assert_eq!(report.left, Vec::<String>::new());
    theirs.given();
}

/// What was in a partition of an earlier table is nobody's, wherever the partition ends.
#[test]
fn a_table_of_raidlabs_takes_what_was_in_its_partition_before() {
    if !may("a_table_of_raidlabs_takes_what_was_in_its_partition_before") {
        return;
    }
    let theirs = Theirs::new();
    // Most of a MiB more than a whole number of them.
    let file = theirs.directory.path().join("disk");
    let file = OpenOptions::new().write(true).open(file).expect("its file");
    file.set_len(SIZE + 1_000_000 / 512 * 512).expect("longer");
    system(&["losetup", "--set-capacity", theirs.path()]);
    let size = theirs.device().identity.size;
    let end = (size - (1 << 20)) >> 20 << 20;
    // A file system at its beginning, the last label of a pool at its end.
    theirs.write((1 << 20) + 0x438, &[0x53, 0xef]);
    theirs.write(
        end - (256 << 10) + (128 << 10),
        &0x00ba_b10c_u64.to_le_bytes(),
    );
    let (contents, _) = partitioned(&theirs);
    let report = undone(&[contents]);
    assert_eq!(report.left, Vec::<String>::new());
    theirs.given();
}

#[test]
fn a_file_system_that_someone_made_in_raidlabs_partition_is_left() {
    if !may("a_file_system_that_someone_made_in_raidlabs_partition_is_left") {
        return;
    }
    let theirs = Theirs::new();
    let (contents, node) = partitioned(&theirs);
    system(&["mkfs.ext4", "-q", "-F", &node]);
    let report = undone(&[contents]);
    system(&["e2fsck", "-n", "-f", &node]);
    let left = report.left.join("\n");
    assert!(
        left.contains("ext2/3/4 file system") && left.contains("left alone"),
        "{report:?}"
    );
    let _ = Tool::new(["partx", "-d", theirs.path()]).run();
}

/// Partitioning tools keep the id of a disk when they change its partitions.
#[test]
fn a_table_of_raidlabs_that_someone_changed_is_left() {
    if !may("a_table_of_raidlabs_that_someone_changed_is_left") {
        return;
    }
    let theirs = Theirs::new();
    let (contents, node) = partitioned(&theirs);
    // A second entry, of 128 bytes each from the third sector on: its type, and where it begins and ends.
    theirs.write(1024 + 128, &[0x77; 32]);
    theirs.write(1024 + 128 + 32, &8192_u64.to_le_bytes());
    theirs.write(1024 + 128 + 40, &16383_u64.to_le_bytes());
    let report = undone(&[contents]);
    assert!(
        report.left.join("\n").contains("other partitions"),
        "{report:?}"
    );
    assert!(Path::new(&node).exists());
    let _ = Tool::new(["partx", "-d", theirs.path()]).run();
}

/// Numbers of inodes are given out again: the file has gone, and another one has its number.
#[test]
fn a_loop_device_of_another_file_with_the_number_of_raidlabs_is_left() {
    if !may("a_loop_device_of_another_file_with_the_number_of_raidlabs_is_left") {
        return;
    }
    let theirs = Theirs::new();
    let identity = theirs.device().identity;
    let own = FileId {
        path: PathBuf::from("/var/tmp/raidlab-loop-00000000/disk0"),
        ..identity.backing.clone().expect("its file")
    };
    let recorded = Identity {
        backing: Some(own.clone()),
        ..identity.clone()
    };
    let report = undone(&[Undo::LoopDevice(own)]);
    assert_eq!(report, Report::default());
    assert_eq!(theirs.device().identity, identity, "it shows its file");
    assert!(!identity.is_same_device(&recorded));
    assert!(identity.is_same_device(&identity));
}

#[test]
fn an_array_that_someone_made_of_the_members_is_left() {
    let name = "an_array_that_someone_made_of_the_members_is_left";
    if !may(name) || !kernel_has("mdadm", name) {
        return;
    }
    let (first, second) = (Theirs::new(), Theirs::new());
    let members: Vec<Identity> = [&first, &second]
        .map(|theirs| theirs.device().identity)
        .to_vec();
    let [ours, theirs] = ["11", "22"].map(|pair| pair.repeat(16));
    let array = Undo::Array {
        members: members.clone(),
        name: "md58".to_owned(),
    };
    let contents = members.into_iter().map(|member| Undo::Contents {
        member,
        uuids: vec![ours.clone()],
    });
    let all: Vec<Undo> = std::iter::once(array).chain(contents).collect();
    for (uuid, left) in [(&theirs, 3), (&ours, 0)] {
        system(&[
            "mdadm",
            "--create",
            "/dev/md58",
            "--run",
            "--assume-clean",
            "--level=1",
            "--bitmap=none",
            "--raid-devices=2",
            &format!("--uuid={uuid}"),
            first.path(),
            second.path(),
        ]);
        let report = undone(&all);
        assert_eq!(report.left.len(), left, "{report:?}");
        assert_eq!(Path::new("/sys/block/md58/md/level").exists(), left > 0);
        if left > 0 {
            assert!(
                report.left[0].contains("made by someone else"),
                "{report:?}"
            );
            system(&["mdadm", "--stop", "/dev/md58"]);
            system(&["mdadm", "--zero-superblock", first.path(), second.path()]);
        }
    }
    first.given();
}
