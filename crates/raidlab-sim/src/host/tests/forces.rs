//! Several that make one file durable, and what others do to it meanwhile.
use super::*;
use crate::block::{Bio, Marked};
use raidlab_core::op::{BlockKind, FileOp, Op};
use raidlab_core::target::{Tag, Target as _};

const OPEN: FileOp = FileOp::Open {
    file: 0,
    mode: OpenMode::Update,
    direct: true,
    sync: false,
};
const FSYNC: FileOp = FileOp::Sync {
    file: 0,
    data_only: false,
};

const fn write(page: u64) -> FileOp {
    FileOp::Write {
        file: 0,
        len: 4096,
        offset: page * 4096,
    }
}

const fn read(page: u64) -> FileOp {
    FileOp::Read {
        file: 0,
        len: 4096,
        offset: page * 4096,
    }
}

/// A file of 1 MiB, open past the cache, a second after the machine began; requests take 10 ms.
fn opened(kernel: Kernel, kind: FilesystemKind) -> Host<Toy> {
    let mut device = Toy::new();
    device.each = Span::from_millis(10);
    let mut host = host(kernel, 64, kind, device);
    host.provide(0, MIB).unwrap();
    call(&mut host, 0, OPEN);
    let later = host.now() + Span::from_secs(1);
    host.wait(Some(later), &mut Vec::new()).unwrap();
    host
}

fn begin(host: &mut Host<Toy>, tag: u32, op: FileOp) {
    // Each is a process of its own.
    host.process = tag as u16 + 1;
    host.submit(Tag(tag), Op::File(op)).unwrap();
}

/// Waits until so many calls have ended; when each did, by its tag.
fn ends(host: &mut Host<Toy>, count: usize) -> Vec<(u32, Instant)> {
    let mut done = Vec::new();
    while done.len() < count {
        host.wait(None, &mut done).expect("it ends");
    }
    assert!(done.iter().all(|end| end.result.is_ok()), "{done:?}");
    done.iter().map(|end| (end.tag.0, end.at)).collect()
}

fn call(host: &mut Host<Toy>, tag: u32, op: FileOp) {
    begin(host, tag, op);
    ends(host, 1);
}

fn end_of(ends: &[(u32, Instant)], tag: u32) -> Instant {
    ends.iter().find(|(of, _)| *of == tag).expect("it ended").1
}

fn flushes(host: &Host<Toy>) -> usize {
    let asked = host.device().asked.iter();
    asked
        .filter(|(_, bio)| bio.kind == BlockKind::Flush)
        .count()
}

fn pass(host: &mut Host<Toy>, time: Span) {
    let until = host.now() + time;
    let mut done = Vec::new();
    host.wait(Some(until), &mut done).unwrap();
    assert!(done.is_empty(), "{done:?}");
}

const NEW: Kernel = Kernel::Linux(6, 1, 0);

/// In a guest of Linux 6.1 four made a file of xfs durable, one log write and three flushes more for all of them: only who sends
/// the log off knows that its write empties the drive's cache (`log_flushed`).
#[test]
fn who_shares_a_log_write_of_xfs_empties_the_cache_again() {
    for (kind, more) in [(FilesystemKind::Xfs, 3), (FilesystemKind::Ext4, 0)] {
        let mut host = opened(NEW, kind);
        call(&mut host, 0, write(7));
        let before = flushes(&host);
        for tag in 0..4 {
            begin(&mut host, tag, FSYNC);
        }
        ends(&mut host, 4);
        assert_eq!(flushes(&host) - before, 1 + more, "{kind}");
    }
}

/// What is being written of a transaction is not durable yet: who has his file in it waits.
#[test]
fn fsync_waits_for_the_transaction_that_is_being_written() {
    for kind in [FilesystemKind::Xfs, FilesystemKind::Ext4] {
        let mut host = opened(NEW, kind);
        call(&mut host, 0, write(7));
        begin(&mut host, 0, FSYNC);
        pass(&mut host, Span::from_millis(5));
        begin(&mut host, 1, FSYNC);
        let ends = ends(&mut host, 2);
        let (first, second) = (end_of(&ends, 0), end_of(&ends, 1));
        assert!(second >= first, "{kind}: {first:?} {second:?}");
    }
}

/// `xfs_file_fsync` holds the inode shared while it waits for the log, from 4.4 until "xfs: rework datasync tracking and
/// execution" (6.18): a write that gives the file another time waits, and what comes after that as well.
#[test]
fn a_write_waits_for_the_log_that_fsync_of_xfs_waits_for() {
    let began = |kernel, kind| {
        let mut host = opened(kernel, kind);
        call(&mut host, 0, write(7));
        begin(&mut host, 0, FSYNC);
        pass(&mut host, Span::from_millis(6));
        begin(&mut host, 1, read(3));
        pass(&mut host, Span::from_millis(1));
        begin(&mut host, 2, write(9));
        pass(&mut host, Span::from_millis(1));
        begin(&mut host, 3, read(5));
        let ends = ends(&mut host, 4);
        let asked = host.device().asked.iter();
        let reads = asked.filter(|(_, bio)| bio.kind == BlockKind::Read);
        let reads: Vec<Instant> = reads.map(|(at, _)| *at).collect();
        let synced = end_of(&ends, 0);
        assert!(reads[0] < synced, "it came before who would write");
        (synced, reads[1])
    };
    let waits = |(synced, read): (Instant, Instant)| read >= synced;
    assert!(waits(began(NEW, FilesystemKind::Xfs)));
    assert!(!waits(began(Kernel::Linux(6, 18, 0), FilesystemKind::Xfs)));
    assert!(!waits(began(Kernel::Linux(4, 3, 0), FilesystemKind::Xfs)));
    assert!(!waits(began(NEW, FilesystemKind::Ext4)));
}

/// Of four who make a file of btrfs durable at once one writes a log, and the three that came meanwhile write the next one
/// together; on a disk that turns the first of them sleeps a tick for more to come, and so a fifth is with them.
#[test]
fn who_comes_while_a_log_of_btrfs_is_written_shares_the_next_one() {
    for (rotational, logs) in [(false, 3), (true, 2)] {
        let mut host = opened(NEW, FilesystemKind::Btrfs);
        host.below.hints.rotational = rotational;
        call(&mut host, 0, write(7));
        let from = host.device().asked.len();
        let durable = |host: &Host<Toy>| {
            let asked = host.device().asked[from..].iter();
            asked.filter(|(_, bio)| bio.fua).count()
        };
        for tag in 0..4 {
            begin(&mut host, tag, FSYNC);
        }
        let first = ends(&mut host, 1)[0];
        assert_eq!((first.0, durable(&host)), (0, 1));
        pass(&mut host, Span::from_millis(1));
        begin(&mut host, 4, FSYNC);
        let rest = ends(&mut host, 4);
        assert_eq!(durable(&host), logs, "{rest:?}");
    }
}

/// io_uring leaves writes through the cache to its workers where a file system cannot say that it would have to wait (ext4): while
/// four calls that make durable have those, nothing is written, and one worker writes to a file.
#[test]
fn writes_through_the_cache_wait_for_a_worker() {
    for (kind, waits) in [(FilesystemKind::Ext4, true), (FilesystemKind::Btrfs, false)] {
        let mut host = opened(NEW, kind);
        let cached = FileOp::Open {
            file: 0,
            mode: OpenMode::Update,
            direct: false,
            sync: false,
        };
        call(&mut host, 0, cached);
        call(&mut host, 0, write(7));
        let process = |host: &mut Host<Toy>, tag: u32, op| {
            host.process = 1;
            host.submit(Tag(tag), Op::File(op)).unwrap();
        };
        for tag in 0..4 {
            process(&mut host, tag, FSYNC);
        }
        process(&mut host, 4, write(9));
        let first = ends(&mut host, 1)[0].0;
        assert_eq!(first != 4, waits, "{kind}");
    }
}

/// Since 6.0 what is read past the cache in more than a page is left to workers, whose numbers are not the process's: of copies
/// that go by them every other read has the other one. A call by itself is no worker's.
#[test]
fn large_direct_reads_of_several_are_asked_for_by_workers_on_btrfs() {
    let helped = |kernel, kind, calls: u32, len| {
        let mut host = opened(kernel, kind);
        let from = host.device().asked.len();
        for tag in 0..calls {
            host.process = 1;
            let read = FileOp::Read {
                file: 0,
                len,
                offset: u64::from(tag) * 65_536,
            };
            host.submit(Tag(tag), Op::File(read)).unwrap();
        }
        ends(&mut host, calls as usize);
        let asked = host.device().asked[from..].iter();
        let worker = |bio: &Bio| bio.kind == BlockKind::Read && bio.origin.marked == Marked::Worker;
        asked.filter(|(_, bio)| worker(bio)).count()
    };
    let (new, old) = (Kernel::Linux(6, 1, 0), Kernel::Linux(5, 10, 0));
    let btrfs = FilesystemKind::Btrfs;
    assert_eq!(helped(new, btrfs, 4, 65_536), 2);
    assert_eq!(helped(new, btrfs, 1, 65_536), 0);
    assert_eq!(helped(new, btrfs, 4, 4096), 0);
    assert_eq!(helped(old, btrfs, 4, 65_536), 0);
    assert_eq!(helped(new, FilesystemKind::Ext4, 4, 65_536), 0);
}
