//! How large transactions become, and how they are written.
use super::files::pass;
use super::*;
use crate::host::tests::raw::one;
use raidlab_core::op::{BlockKind, FileOp, Op};
use raidlab_core::target::{Tag, Target as _};
use raidlab_core::workload::spec::{FilesAction, FilesSpec};

/// Makes empty files; the host, and what its device was asked.
fn make(kind: FilesystemKind, kernel: Kernel, files: u32, device: Toy) -> Host<Toy> {
    let mut host = host(kernel, 256, kind, device);
    let spec = WorkloadSpec::Files(FilesSpec {
        action: FilesAction::Create,
        count: files,
        directories: 1,
        size_min: 0,
        size_max: 0,
        ordered: true,
        sync_each: false,
        size_seed: 5,
        sync_end: false,
    });
    one(&mut host, spec);
    host
}

/// One call from beginning to end.
fn call(host: &mut Host<Toy>, op: FileOp) {
    let tag = Tag(0);
    host.submit(tag, Op::File(op)).unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        host.wait(None, &mut done).expect("it ends");
    }
    assert!(done[0].result.is_ok());
}

fn count(host: &Host<Toy>, kind: BlockKind) -> usize {
    host.device()
        .asked
        .iter()
        .filter(|(_, bio)| bio.kind == kind)
        .count()
}

/// Bytes that the device was given.
fn written(host: &Host<Toy>) -> u64 {
    host.counters().written
}

/// With delayed logging 20,000 files are 6 MB of log: below an eighth of 64 MiB and above that of 10 MiB. A device of 8 GiB
/// has a log of 10 MiB with the maker's choice of old.
#[test]
fn xfs_writes_its_log_when_an_eighth_of_it_is_to_be_written() {
    let quiet = make(
        FilesystemKind::Xfs,
        Kernel::Linux(6, 1, 0),
        20_000,
        Toy::new(),
    );
    assert_eq!(written(&quiet), 0, "it is still in memory");
    let early = make(
        FilesystemKind::Xfs,
        Kernel::Linux(3, 10, 0),
        20_000,
        Toy::new(),
    );
    let log = written(&early);
    assert!((4 * MIB..6 * MIB).contains(&log), "{log}");
    // Each log buffer of 32 KiB with a flush; the last of each of the four transactions is not full.
    let flushes = count(&early, BlockKind::Flush) as u64;
    let full = log / (32 << 10);
    assert!((full..=full + 4).contains(&flushes), "{flushes}, {full}");
    let old = make(
        FilesystemKind::Xfs,
        Kernel::Linux(2, 6, 32),
        1500,
        Toy::new(),
    );
    let log = written(&old);
    assert!((5 * MIB..7 * MIB).contains(&log), "{log}");
    // Hardly more: what does not fill a buffer goes with the next.
    let (flushes, full) = (count(&old, BlockKind::Flush) as u64, log / (32 << 10));
    assert!(
        (full..full + full / 16).contains(&flushes),
        "{flushes}, {full}"
    );
}

/// `sync` writes the log of xfs and no metadata, as the kernel does: `push_ail` in its statistics stays where it was. It goes
/// home within a minute, or when the log is nearly full.
#[test]
fn metadata_of_xfs_goes_home_by_itself() {
    let mut host = make(
        FilesystemKind::Xfs,
        Kernel::Linux(6, 1, 0),
        20_000,
        Toy::new(),
    );
    host.sync().unwrap();
    assert!(host.is_clean());
    let log = written(&host);
    assert!((5 * MIB..7 * MIB).contains(&log), "{log}");
    let until = host.now() + Span::from_secs(60);
    host.wait(Some(until), &mut Vec::new()).unwrap();
    // Records of 512 bytes, names of 32.
    let home = written(&host) - log;
    assert!((10 * MIB..12 * MIB).contains(&home), "{home}");
    let mut device = Toy::new();
    device.sectors = 1 << 21;
    let full = make(FilesystemKind::Xfs, Kernel::Linux(3, 10, 0), 60_000, device);
    let home = full.device().asked.iter();
    let home = home.filter(|(_, bio)| bio.kind == BlockKind::Write && bio.sectors > 64);
    assert!(home.count() > 0);
}

/// Eight buffers are all there are: who makes files goes at the speed of the log.
#[test]
fn the_log_holds_back_who_fills_it() {
    let slow = || {
        let mut device = Toy::new();
        device.each = Span::from_millis(10);
        device
    };
    let host = make(FilesystemKind::Xfs, Kernel::Linux(2, 6, 32), 2000, slow());
    let buffers = 2000 * 4096 / (32 << 10);
    let least = Span::from_millis(20 * (buffers - 16));
    assert!(host.now().since(Instant::ZERO) > least, "{:?}", host.now());
    let host = make(FilesystemKind::Xfs, Kernel::Linux(6, 1, 0), 2000, slow());
    assert!(host.now().since(Instant::ZERO) < Span::from_millis(500));
}

/// A directory that is removed is a change of its record, whether it had names or not: who removes many waits for the log and
/// goes on.
#[test]
fn empty_directories_fill_the_log_too() {
    let mut device = Toy::new();
    device.each = Span::from_millis(10);
    let mut host = host(Kernel::Linux(2, 6, 32), 256, FilesystemKind::Xfs, device);
    for number in 0..600 {
        call(&mut host, FileOp::MakeDirectory { directory: number });
    }
    host.sync().unwrap();
    let before = written(&host);
    for number in 0..600 {
        call(&mut host, FileOp::RemoveDirectory { directory: number });
    }
    host.sync().unwrap();
    let log = written(&host) - before;
    assert!((MIB..2 * MIB).contains(&log), "{log}");
}

/// A quarter of ext's journal is the most that a transaction has.
#[test]
fn a_transaction_of_ext_is_a_quarter_of_the_journal() {
    let device = Toy::new();
    let mut spec = FsSpec::new(
        FilesystemKind::Ext3,
        Kernel::Linux(2, 6, 32),
        device.sectors(),
    );
    (spec.journal, spec.barriers) = (4 * MIB, Some(true));
    spec.mode = Some(raidlab_experiment::kernel::JournalMode::Journal);
    let mut host = Host::new(
        &machine(spec.kernel, 256),
        device,
        FileSystem::new(&spec).unwrap(),
    );
    let write = pass(
        PassAction::Write,
        OpenMode::Create,
        16 * MIB,
        Durable::Never,
    );
    one(&mut host, write);
    // Data goes through the journal: all but the last transaction has been written, each up to the flush before its end.
    let mut transactions = vec![0];
    for (_, bio) in &host.device().asked {
        match bio.kind {
            BlockKind::Flush | BlockKind::FlushData => transactions.push(0),
            _ => *transactions.last_mut().unwrap() += u64::from(bio.sectors) * 512,
        }
    }
    assert!(transactions.iter().sum::<u64>() >= 14 * MIB);
    // A quarter, what one call adds to it, and the descriptors; home goes what made room for it, half of the journal.
    let largest = transactions.iter().max().unwrap();
    assert!(
        (MIB..MIB + MIB / 2 + 2 * MIB).contains(largest),
        "{largest}"
    );
}

/// `fsync` of a new file writes what is in it before the flush of the transaction with its name.
#[test]
fn what_is_in_a_small_file_is_durable_with_its_name() {
    for kind in [
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
        FilesystemKind::Xfs,
        FilesystemKind::Btrfs,
    ] {
        let asked = |size| {
            let mut host = host(Kernel::Linux(6, 1, 0), 256, kind, Toy::new());
            let spec = WorkloadSpec::Files(FilesSpec {
                action: FilesAction::Create,
                count: 64,
                directories: 1,
                size_min: size,
                size_max: size,
                ordered: true,
                sync_each: true,
                size_seed: 5,
                sync_end: false,
            });
            let tally = one(&mut host, spec);
            assert_eq!(tally.ops, 64, "{kind}");
            (written(&host), count(&host, BlockKind::Write))
        };
        let (empty, few) = asked(0);
        let (full, more) = asked(4096);
        // The block of each is a request of its own; what is allocated is in the log besides.
        assert!(full >= empty + 64 * 4096, "{kind}: {empty} {full}");
        assert!(more >= few + 64, "{kind}: {few} {more}");
    }
}
