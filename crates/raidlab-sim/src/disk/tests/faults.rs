//! Disks that break.
use super::*;
use raidlab_core::time::Span;

#[test]
fn a_bad_sector_fails_after_its_retries_until_it_is_written() {
    let model = changed("ST3250624AS", |spec| spec.cache.write_back = false);
    let mut disk = Disk::new(&model, 1);
    disk.inject(
        Instant::ZERO,
        Fault::Unreadable {
            lba: 1000,
            sectors: 1,
            retries: 100,
        },
    );
    let fine = one(
        &mut disk,
        Instant::ZERO,
        request(0, BlockKind::Read, 500_000, 8),
    );
    assert_eq!(fine.result, Ok(()));
    let bad = one(&mut disk, fine.at, request(1, BlockKind::Read, 996, 8));
    assert_eq!(bad.result, Err(DiskError::Unreadable));
    assert!(bad.at.since(fine.at) > Span::from_millis(833));
    let written = one(&mut disk, bad.at, request(2, BlockKind::Write, 1000, 1));
    let read = one(&mut disk, written.at, request(3, BlockKind::Read, 996, 8));
    assert_eq!(read.result, Ok(()));
}

#[test]
fn a_dead_disk_fails_all_that_waits_and_all_that_comes() {
    for name in ["ST3250624AS", "sata-ssd"] {
        let model = model(name);
        let mut disk = Disk::new(&model, 1);
        for id in 0..10 {
            disk.submit(
                Instant::ZERO,
                request(id, BlockKind::Read, id * 1_000_000, 8),
            );
        }
        disk.inject(Instant(1000), Fault::Dead);
        let mut done = Vec::new();
        disk.advance(Instant(1000), &mut done);
        assert_eq!(done.len(), 10);
        assert!(
            done.iter()
                .all(|d| d.result == Err(DiskError::Failed) && d.at == Instant(1000))
        );
        let later = one(
            &mut disk,
            Instant(5000),
            request(11, BlockKind::Flush, 0, 0),
        );
        assert_eq!(later.result, Err(DiskError::Failed));
        assert_eq!(disk.next_event(), None);
    }
}

#[test]
fn a_stalled_disk_answers_later() {
    for name in ["ST3250624AS", "sata-ssd"] {
        let model = model(name);
        let mut disk = Disk::new(&model, 1);
        disk.inject(Instant::ZERO, Fault::Stall(Span::from_secs(7)));
        let done = one(&mut disk, Instant(5), request(0, BlockKind::Read, 0, 8));
        assert!(done.at > Instant(7_000_000_000));
    }
}

#[test]
fn a_slow_sector_is_read_in_the_end() {
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let slow = Fault::Slow {
        lba: 0,
        sectors: 8,
        retries: 10,
    };
    disk.inject(Instant::ZERO, slow);
    let done = one(&mut disk, Instant::ZERO, request(0, BlockKind::Read, 0, 8));
    assert_eq!(done.result, Ok(()));
    assert!(done.at > Instant(83_000_000));
}

/// What could not be read is in no buffer: it fails as often as it is asked for, and was not read ahead either.
#[test]
fn a_bad_sector_fails_again() {
    let model = model("ST3250624AS");
    for before in [996, 900] {
        let mut disk = Disk::new(&model, 1);
        let bad = Fault::Unreadable {
            lba: 1000,
            sectors: 1,
            retries: 10,
        };
        disk.inject(Instant::ZERO, bad);
        let first = one(
            &mut disk,
            Instant::ZERO,
            request(0, BlockKind::Read, before, 8),
        );
        // Long enough to have read ahead.
        let mut now = Instant(first.at.0 + 1_000_000_000);
        for id in 1..4 {
            let done = one(&mut disk, now, request(id, BlockKind::Read, 996, 8));
            assert_eq!(done.result, Err(DiskError::Unreadable), "read {id}");
            now = done.at;
        }
    }
}

/// While a sector is tried again the head stays: what follows is not in the buffer then.
#[test]
fn nothing_is_read_ahead_while_a_sector_is_tried_again() {
    let model = model("ST3250624AS");
    let hit = |retries: u32, pause: u64| {
        let mut disk = Disk::new(&model, 1);
        let slow = Fault::Slow {
            lba: 0,
            sectors: 8,
            retries,
        };
        disk.inject(Instant::ZERO, slow);
        let first = one(&mut disk, Instant::ZERO, request(0, BlockKind::Read, 0, 8));
        let later = Instant(first.at.0 + pause);
        one(&mut disk, later, request(1, BlockKind::Read, 200, 8)).hit
    };
    assert!(!hit(0, 0), "it takes its time");
    assert!(hit(0, 1_000_000_000), "the drive reads ahead");
    assert!(!hit(10, 0));
}
