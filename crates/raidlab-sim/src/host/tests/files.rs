//! Data files on file systems: journals, durability, small files.
use super::*;
use crate::host::tests::raw::{close, one, rate};
use raidlab_core::op::{BlockKind, FileOp};
use raidlab_core::rng::mix;
use raidlab_core::workload::spec::{FilesAction, FilesSpec};

pub(super) fn pass(
    action: PassAction,
    mode: OpenMode,
    size: u64,
    durable: Durable,
) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: Handle::new(0, mode),
        action,
        start: Bytes(0),
        size: Bytes(size),
        call: 8192,
        durable,
    })
}

pub(super) const KINDS: [(FilesystemKind, Kernel); 8] = [
    (FilesystemKind::Zfs, Kernel::DEFAULT),
    (FilesystemKind::Ext2, OLD),
    (FilesystemKind::Ext3, OLD),
    (FilesystemKind::Ext3, Kernel::Linux(2, 6, 32)),
    (FilesystemKind::Ext4, Kernel::DEFAULT),
    (FilesystemKind::Xfs, Kernel::DEFAULT),
    (FilesystemKind::Btrfs, Kernel::DEFAULT),
    (FilesystemKind::Ntfs, Kernel::Windows2000),
];

#[test]
fn every_file_system_writes_rewrites_and_reads_a_file() {
    for (kind, kernel) in KINDS {
        let mut host = host(kernel, 64, kind, Toy::new());
        let size = 48 * MIB;
        let write = pass(PassAction::Write, OpenMode::Create, size, Durable::AtEnd);
        let wrote = one(&mut host, write);
        let written = host.counters().written;
        // Groups of ZFS are 1.3 MiB with so little memory, and each writes some 50 blocks of its own.
        let more = if kind == FilesystemKind::Zfs { 6 } else { 8 };
        assert!(
            (size..size + size / more).contains(&written),
            "{kind}: {written}"
        );
        let device = 131_072.0 / 2148e-6;
        let got = rate(&wrote);
        assert!(
            (0.85 * device..1.01 * device).contains(&got),
            "{kind}: {got}"
        );
        let update = |action| pass(action, OpenMode::Update, size, Durable::AtEnd);
        let rewrote = one(&mut host, update(PassAction::Rewrite));
        assert_eq!(rewrote.bytes, size);
        // Half of the device's time reads, half writes.
        assert!(
            (0.3 * device..0.56 * device).contains(&rate(&rewrote)),
            "{kind}: {}",
            rate(&rewrote)
        );
        host.sync().unwrap();
        assert!(host.is_clean(), "{kind}");
        host.evict(0);
        let before = host.counters().read;
        let read = one(&mut host, update(PassAction::Read));
        let got = host.counters().read - before;
        assert!((size..size + size / 16).contains(&got), "{kind}: {got}");
        close(rate(&read), device, 0.1);
    }
}

#[test]
fn zfs_keeps_what_it_has_when_a_file_is_to_be_put_out_of_the_cache() {
    for (kind, read) in [(FilesystemKind::Ext4, 8 * MIB), (FilesystemKind::Zfs, 0)] {
        let mut host = host(Kernel::DEFAULT, 256, kind, Toy::new());
        let write = pass(PassAction::Write, OpenMode::Create, 8 * MIB, Durable::AtEnd);
        one(&mut host, write);
        host.sync().unwrap();
        host.evict(0);
        let before = host.counters().read;
        let again = pass(PassAction::Read, OpenMode::Update, 8 * MIB, Durable::Never);
        one(&mut host, again);
        let got = host.counters().read - before;
        assert!((read..=read + read / 16).contains(&got), "{kind}: {got}");
    }
}

/// What the device was asked, by what it is: data of the file or anything else.
pub(super) fn asked(host: &Host<Toy>, from: usize) -> Vec<(BlockKind, u32)> {
    let asked = host.device().asked[from..].iter();
    asked.map(|(_, bio)| (bio.kind, bio.sectors)).collect()
}

#[test]
fn fsync_waits_for_the_data_and_then_for_the_journal() {
    let mut host = host(OLD, 64, FilesystemKind::Ext3, Toy::new());
    let size = MIB;
    one(
        &mut host,
        pass(PassAction::Write, OpenMode::Create, size, Durable::Never),
    );
    assert_eq!(host.counters().written, 0, "all of it is in memory");
    let from = host.device().asked.len();
    let begin = host.now();
    sync_file(&mut host);
    let took = host.now().since(begin);
    let device = host.device();
    let writes: Vec<_> = device.asked[from..]
        .iter()
        .filter(|(_, b)| b.kind == BlockKind::Write)
        .collect();
    let data: u64 = writes
        .iter()
        .filter(|(at, _)| *at == writes[0].0)
        .map(|(_, b)| u64::from(b.sectors) * 512)
        .sum();
    assert_eq!(data, size, "the data goes first, all of it at once");
    // The transaction is submitted when the data is on the device, the commit block after the rest.
    let times: Vec<Instant> = writes.iter().map(|(at, _)| *at).collect();
    let mut steps = times.clone();
    steps.dedup();
    assert!(steps.len() >= 3, "{steps:?}");
    let least = Span(host.device().sector.0 * size / 512);
    assert!(steps[1].since(steps[0]) >= least);
    assert!(took >= least + Span::from_micros(300), "{took}");
    // Nothing is left for a second one.
    let from = host.device().asked.len();
    sync_file(&mut host);
    assert_eq!(
        asked(&host, from)
            .iter()
            .filter(|(kind, _)| *kind == BlockKind::Write)
            .count(),
        0
    );
}

fn sync_file(host: &mut Host<Toy>) {
    let op = Op::File(FileOp::Sync {
        file: 0,
        data_only: false,
    });
    host.submit(Tag(0), op).unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        host.wait(None, &mut done).unwrap();
    }
    assert_eq!(done[0].result, Ok(0));
}

#[test]
fn ext3_commits_every_five_seconds_with_the_data_and_ext2_does_not() {
    for (kind, commits) in [(FilesystemKind::Ext3, true), (FilesystemKind::Ext2, false)] {
        let mut host = host(OLD, 64, kind, Toy::new());
        one(
            &mut host,
            pass(PassAction::Write, OpenMode::Create, MIB, Durable::Never),
        );
        let mut done = Vec::new();
        host.wait(Some(Instant(4_900_000_000)), &mut done).unwrap();
        assert_eq!(host.counters().written, 0, "{kind}");
        host.wait(Some(Instant(6_000_000_000)), &mut done).unwrap();
        assert_eq!(host.counters().written > MIB, commits, "{kind}");
    }
}

#[test]
fn every_durable_write_waits() {
    for (kind, kernel) in KINDS {
        let mut host = host(kernel, 64, kind, Toy::new());
        let job = pass(
            PassAction::Write,
            OpenMode::Create,
            64 * 8192,
            Durable::EveryWrite,
        );
        let tally = one(&mut host, job);
        let each = tally.elapsed().0 / 64;
        // Two requests at least, the data and what makes it known; one with a log for both.
        let requests = if kind == FilesystemKind::Zfs { 1 } else { 2 };
        assert!(each >= requests * 100_000 + 16 * 8000, "{kind}: {each}");
        assert!(each <= 5_000_000, "{kind}: {each}");
    }
}

pub(super) fn files(action: FilesAction, count: u32, size: u32, sync_each: bool) -> WorkloadSpec {
    WorkloadSpec::Files(FilesSpec {
        action,
        ordered: true,
        count,
        directories: 4,
        size_min: size,
        size_max: size,
        size_seed: 1,
        sync_each,
        sync_end: true,
    })
}

#[test]
fn small_files_are_made_looked_at_and_removed() {
    for (kind, kernel) in KINDS {
        for size in [0, 3000] {
            let mut host = host(kernel, 64, kind, Toy::new());
            for action in [FilesAction::Create, FilesAction::Stat, FilesAction::Delete] {
                let tally = one(&mut host, files(action, 2000, size, false));
                assert_eq!(tally.ops, 2000, "{kind}");
                let each = tally.elapsed().0 / 2000;
                // With 64 MiB ZFS frees 16 files in a group, of some hundred writes of 100 us.
                let waits = kind == FilesystemKind::Zfs && action == FilesAction::Delete;
                let most = if waits { 2_000_000 } else { 1_000_000 };
                assert!((1000..most).contains(&each), "{kind} {action:?}: {each} ns");
            }
            host.sync().unwrap();
            assert!(host.is_clean(), "{kind}");
        }
    }
}

#[test]
fn stat_without_the_metadata_in_memory_reads_it() {
    let mut host = host(OLD, 64, FilesystemKind::Ext3, Toy::new());
    one(&mut host, files(FilesAction::Create, 2000, 4096, false));
    let before = host.counters().read;
    one(&mut host, files(FilesAction::Stat, 2000, 4096, false));
    assert_eq!(host.counters().read, before);
    host.drop_caches();
    one(&mut host, files(FilesAction::Stat, 2000, 4096, false));
    assert!(host.counters().read >= before + 2000 * 4096);
}

/// Transaction groups that a pool ends while so many empty files are removed, and the time of it: their uberblocks alone come
/// after the disk has emptied its buffer.
fn groups_of_deletes(kernel: Kernel, count: u32) -> (u64, f64) {
    let mut host = host(kernel, 256, FilesystemKind::Zfs, Toy::new());
    one(&mut host, files(FilesAction::Create, count, 0, false));
    host.sync().unwrap();
    let from = host.device().asked.len();
    let tally = one(&mut host, files(FilesAction::Delete, count, 0, false));
    let flushes = asked(&host, from).into_iter();
    let flushes = flushes.filter(|(kind, _)| *kind == BlockKind::Flush);
    (flushes.count() as u64, tally.elapsed().as_secs_f64())
}

#[test]
fn zfs_frees_so_many_files_in_a_group_and_no_more() {
    let count = 4000;
    // Each file counts as an indirect block of 128 KiB; of a group they may be 30 % or 5 % of the dirty data, which is a tenth
    // of 256 MiB at the most, the one that goes past it included.
    for (kernel, percent) in [(Kernel::DEFAULT, 30), (Kernel::Linux(5, 10, 0), 5)] {
        let each = (256 * MIB / 10 * percent / 100).div_ceil(128 << 10);
        let least = u64::from(count) / each;
        let (groups, seconds) = groups_of_deletes(kernel, count);
        assert!(
            (least..least + 6).contains(&groups),
            "{kernel}: {groups} groups, {least} of {each} files"
        );
        // A group writes some tens of blocks of 100 us and more, one after the other.
        assert!(seconds > groups as f64 * 3e-3, "{kernel}: {seconds} s");
    }
    // Before 0.8 an empty file counted for nothing.
    let (groups, _) = groups_of_deletes(Kernel::Linux(2, 6, 32), count);
    assert!(groups < 6, "{groups}");
}

#[test]
fn a_file_that_is_removed_is_not_written() {
    let mut host = host(OLD, 64, FilesystemKind::Ext2, Toy::new());
    one(
        &mut host,
        pass(PassAction::Write, OpenMode::Create, MIB, Durable::Never),
    );
    host.submit(Tag(0), Op::File(FileOp::Remove { file: 0 }))
        .unwrap();
    let mut done = Vec::new();
    host.wait(None, &mut done).unwrap();
    host.sync().unwrap();
    assert!(
        host.counters().written < MIB / 4,
        "{}",
        host.counters().written
    );
    assert_eq!(host.file_size(0), 0);
}

/// But for ZFS, whose own cache nobody empties after it was written.
#[test]
fn a_provided_file_is_there_and_not_in_memory() {
    for (kind, kernel) in KINDS {
        let mut host = host(kernel, 64, kind, Toy::new());
        host.provide(0, 8 * MIB).unwrap();
        assert_eq!(host.file_size(0), 8 * MIB);
        let read = |host: &mut Host<Toy>| {
            let before = host.counters().read;
            let spec = pass(PassAction::Read, OpenMode::Read, 8 * MIB, Durable::Never);
            assert_eq!(one(host, spec).bytes, 8 * MIB);
            host.counters().read - before
        };
        if kind == FilesystemKind::Zfs {
            assert_eq!(read(&mut host), 0);
            host.drop_caches();
        }
        assert!(read(&mut host) >= 8 * MIB, "{kind}");
    }
}

/// All that a disk was made to do by a file system on it, folded into one number.
fn digest(kind: FilesystemKind, kernel: Kernel) -> u64 {
    let mut host = host(kernel, 64, kind, Toy::new());
    let size = 24 * MIB;
    one(
        &mut host,
        pass(PassAction::Write, OpenMode::Create, size, Durable::AtEnd),
    );
    one(
        &mut host,
        pass(PassAction::Rewrite, OpenMode::Update, size, Durable::Never),
    );
    let seek = |file| {
        WorkloadSpec::Calls(CallsSpec {
            handle: Handle::new(file, OpenMode::Update),
            action: CallAction::Seek { rewrite_one_in: 10 },
            size: Bytes(size),
            call: 8192,
            count: 300,
            at_least: Span::ZERO,
            at_most: 0,
            durable: Durable::AtEnd,
        })
    };
    run(&mut host, &[(seek(0), 1), (seek(0), 1), (seek(0), 1)]);
    if kind != FilesystemKind::None {
        for action in [FilesAction::Create, FilesAction::Stat, FilesAction::Delete] {
            one(&mut host, files(action, 200, 1000, true));
        }
    }
    host.sync().unwrap();
    mix(host.device().digest ^ mix(host.now().0) ^ host.cpu().total().0)
}

#[test]
fn the_same_calls_make_the_same_requests() {
    for (kind, kernel) in KINDS {
        assert_eq!(digest(kind, kernel), digest(kind, kernel), "{kind}");
    }
}

#[test]
fn digests_of_the_raw_device_are_fixed_for_ever() {
    let kernels = [
        OLD,
        Kernel::Linux(2, 6, 26),
        Kernel::Linux(2, 6, 36),
        Kernel::DEFAULT,
    ];
    let lines: Vec<String> = kernels
        .iter()
        .map(|kernel| format!("{kernel} {:016x}", digest(FilesystemKind::None, *kernel)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    2.6.16 f8ce4f972ca32936
    2.6.26 d7b0a18519e2da8b
    2.6.36 691bf4cc1a5e3880
    6.1 8d4ce688c969e241
    ");
}

/// ZFS of its time on a machine whose processor fills a group about as fast as the device writes one.
fn old_zfs(sector: Span) -> f64 {
    let kernel = Kernel::Linux(2, 6, 32);
    let mut device = Toy::new();
    device.sector = sector;
    let mut spec = machine(kernel, 256);
    (spec.mhz, spec.cores) = (Some(250), 2);
    let fs = FsSpec::new(FilesystemKind::Zfs, kernel, device.sectors);
    let mut host = Host::new(&spec, device, FileSystem::new(&fs).unwrap());
    let job = pass(
        PassAction::Write,
        OpenMode::Create,
        512 * MIB,
        Durable::AtEnd,
    );
    let tally = run(&mut host, &[(job, 1)]).remove(0);
    tally.bytes as f64 / tally.elapsed().as_secs_f64()
}

#[test]
fn writers_of_old_zfs_fill_a_group_while_the_one_before_is_written() {
    // Sectors of a device that takes no time, of 61 MB/s and of 13 MB/s, requests of 128 KiB included.
    let [alone, like, slow] = [0, 8_000, 38_000].map(|ns| old_zfs(Span(ns)));
    let device = |ns: f64| 131_072.0 / (100e-6 + 256.0 * ns * 1e-9);
    // Taking turns leaves less than 0.7 where both are alike.
    let both = alone.min(device(8_000.0));
    assert!(like > 0.72 * both, "{like} of {both}, {alone} alone");
    // A writer that is faster goes at the pace of the device, which always has something to write: 0.87 of it where he waits for the group
    // that he has filled.
    assert!(
        slow > 0.93 * device(38_000.0) && slow < 1.05 * device(38_000.0),
        "{slow}, {alone} alone"
    );
}

/// Disks that turn and tell of no best size have two of their largest requests since 6.17, arrays two stripes, and btrfs 4 MiB of its own
/// whatever its devices have (both seen on 6.18).
#[test]
fn read_ahead_is_that_of_kernel_device_and_file_system() {
    let kib = |kernel, kind, stripe, rotational, set: Option<u64>| {
        let mut device = Toy::new();
        (device.hints.stripe, device.hints.rotational) = (stripe, rotational);
        device.hints.max_sectors = 8192;
        let mut spec = machine(kernel, 256);
        spec.read_ahead = set.map(Bytes);
        let fs = FileSystem::new(&FsSpec::new(kind, kernel, device.sectors)).unwrap();
        Host::new(&spec, device, fs).read_ahead() >> 10
    };
    let (old, new) = (Kernel::Linux(6, 16, 0), Kernel::Linux(6, 18, 0));
    let ext4 = FilesystemKind::Ext4;
    assert_eq!(kib(old, ext4, 0, true, None), 128);
    assert_eq!(kib(new, ext4, 0, true, None), 8192);
    assert_eq!(kib(new, ext4, 0, false, None), 128);
    assert_eq!(kib(new, ext4, 256 << 10, true, None), 512);
    assert_eq!(kib(new, ext4, 0, true, Some(MIB)), 1024);
    for kernel in [old, new] {
        assert_eq!(kib(kernel, FilesystemKind::Btrfs, 0, true, None), 4096);
        assert_eq!(kib(kernel, FilesystemKind::Btrfs, 0, true, Some(MIB)), 4096);
    }
}
