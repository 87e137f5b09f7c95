//! Replaying on targets.
use super::*;
use crate::catalogue;
use crate::disk::{Disk, DiskTarget, Fault};
use crate::trace::replay::wrapped;
use raidlab_core::time::Instant;

#[test]
fn a_replay_of_its_own_record_has_no_demerit() {
    let disk = || DiskTarget::new(Disk::new(&catalogue::find("ST340015A").unwrap().disk, 3));
    let text: String = (0..500_u64)
        .map(|i| format!("{} 0 {} 8 1\n", i * 7, (i * 7_654_321) % 78_000_000))
        .collect();
    let mut recorded = Vec::new();
    let first = replay(
        Reader::new(Format::DiskSim, text.lines()),
        &mut disk(),
        ReplayOptions::default(),
        |r| {
            recorded.push((r.index, r.response));
        },
    )
    .unwrap();
    assert_eq!((first.tally.ops, first.demerit), (500, None));
    recorded.sort_unstable();
    let with_column: String = text
        .lines()
        .zip(&recorded)
        .map(|(line, (_, response))| {
            format!(
                "{line} {}.{:06}\n",
                response.0 / 1_000_000,
                response.0 % 1_000_000
            )
        })
        .collect();
    let again = |text: &str| {
        let reader = Reader::new(Format::DiskSim, text.lines());
        replay(reader, &mut disk(), ReplayOptions::default(), |_| {})
            .unwrap()
            .demerit
            .unwrap()
    };
    let same = again(&with_column);
    assert_eq!(
        (same.requests, same.relative.to_bits()),
        (500, 0.0_f64.to_bits())
    );
}

#[test]
fn a_replay_says_what_does_not_fit() {
    let mut disk = DiskTarget::new(Disk::new(&catalogue::find("ST340015A").unwrap().disk, 3));
    let text = "0 0 78165352 16 1\n";
    let run = |disk: &mut DiskTarget, text: &str, wrap| {
        let options = ReplayOptions {
            wrap,
            ..ReplayOptions::default()
        };
        replay(
            Reader::new(Format::DiskSim, text.lines()),
            disk,
            options,
            |_| {},
        )
    };
    insta::assert_snapshot!(run(&mut disk, text, false).unwrap_err(), @"1: this request reaches sector 78165368, but the target has 78165360: choose a larger disk or layout, or let addresses wrap");
    assert_eq!(run(&mut disk, text, true).unwrap().tally.ops, 1);
    insta::assert_snapshot!(run(&mut disk, "0 0 0 8 1\n1 0 x 8 1\n", false).unwrap_err(), @"the trace cannot be read: 2:5: 'x' is not a block, a whole number: correct or remove the line");
}

/// A small disk of 78165360 sectors.
fn disk() -> DiskTarget {
    DiskTarget::new(Disk::new(&catalogue::find("ST340015A").unwrap().disk, 3))
}

const SECTORS: u64 = 78_165_360;

/// Where the requests of a DiskSim text go, sorted by their number.
fn places(text: &str, options: ReplayOptions) -> (Vec<u64>, u64) {
    let mut places = Vec::new();
    let records = Reader::new(Format::DiskSim, text.lines());
    let came = replay(records, &mut disk(), options, |r| {
        places.push((r.index, r.lba));
        assert!(r.lba + u64::from(r.record.sectors) <= SECTORS, "{r:?}");
    })
    .unwrap();
    places.sort_unstable();
    (places.iter().map(|(_, lba)| *lba).collect(), came.moved)
}

fn row(at: usize, lba: u64, sectors: u64) -> String {
    format!("{at} 0 {lba} {sectors} 1\n")
}

/// What stood side by side beyond the end does so inside, whatever the sizes, and what was aligned is.
#[test]
fn moved_requests_keep_their_alignment_and_their_neighbours() {
    let options = ReplayOptions {
        wrap: true,
        grain: grain(SECTORS, 8, 0),
        ..ReplayOptions::default()
    };
    let whole = SECTORS - SECTORS % 2048;
    let stream = [(0, 8), (8, 248), (256, 1024), (1280, 8), (1288, 760)];
    let text: String = (0..)
        .zip(stream)
        .map(|(at, (from, n))| row(at, 3 * whole + from, n))
        .collect();
    let (moved, number) = places(&text, options);
    assert_eq!(moved, [0, 8, 256, 1280, 1288]);
    assert_eq!(number, 5);
    // What reaches beyond the end is moved before it, by whole MiB.
    let crossing = row(0, whole - 8, 2048) + &row(1, 5, 8) + &row(2, whole - 8, 8);
    let (moved, number) = places(&crossing, options);
    assert_eq!((moved, number), (vec![whole - 8 - 2048, 5, whole - 8], 1));
    // A request as large as the target goes to its beginning.
    let small = |length| wrapped(9000, length, 5000, 2048);
    assert_eq!((small(8), small(1000), small(5000)), (808, 808, 0));
}

#[test]
fn moved_requests_keep_their_place_in_stripes() {
    // Three members of data and chunks of 64 KiB; of 512 KiB; a stripe that is larger than the target.
    assert_eq!(grain(SECTORS, 8, 3 * 128), 3 * 2048);
    assert_eq!(grain(SECTORS, 8, 3 * 1024), 3 * 1024 * 2);
    assert_eq!(grain(4096, 8, 3 * 2048), 2048);
    assert_eq!(
        (grain(2000, 8, 0), grain(2000, 1, 0), grain(4, 8, 0)),
        (8, 1, 1)
    );
}

/// With a depth as many are in flight, one after the other, whatever the trace's times.
#[test]
fn a_depth_takes_the_place_of_times() {
    let text: String = (0..50)
        .map(|i| row(1_000_000 * i, 100_000 * i as u64, 8))
        .collect();
    for depth in [1, 4] {
        let options = ReplayOptions {
            depth: Some(depth),
            ..ReplayOptions::default()
        };
        let mut ends = Vec::new();
        let records = Reader::new(Format::DiskSim, text.lines());
        let came = replay(records, &mut disk(), options, |r| {
            ends.push((r.came, r.response));
        })
        .unwrap();
        assert!((came.tally.mean_in_flight() - f64::from(depth)).abs() < 0.2);
        assert!(came.tally.elapsed() < Span::from_secs(2));
        if depth == 1 {
            let follow = |pair: &[(Span, Span)]| pair[1].0 == pair[0].0 + pair[0].1;
            assert!(ends.windows(2).all(follow), "{ends:?}");
        }
    }
}

#[test]
fn a_log_of_fio_without_times_is_told() {
    let has_times = |text: &str| Reader::new(Format::Fio, text.lines()).has_times();
    assert!(!has_times(
        "fio version 2 iolog\na add\na read 0 4096\na read 0 4096\n"
    ));
    assert!(has_times(
        "fio version 2 iolog\na read 0 4096\na wait 100\na read 0 4096\n"
    ));
    assert!(has_times("fio version 3 iolog\n5 a read 0 4096\n"));
    assert!(Reader::new(Format::DiskSim, "0 0 0 8 1\n".lines()).has_times());
    // Looking ahead takes nothing away.
    let mut reader = Reader::new(
        Format::Fio,
        "fio version 2 iolog\na read 0 4096\na read 0 512\n".lines(),
    );
    assert!(!reader.has_times());
    assert_eq!(reader.by_ref().count(), 2);
    // What comes after many requests is learned when it is read.
    let many = "a read 0 512\n".repeat(70_000);
    let late = format!("fio version 2 iolog\n{many}a wait 100\na read 0 512\n");
    let mut reader = Reader::new(Format::Fio, late.lines());
    assert!(!reader.has_times());
    assert_eq!(reader.by_ref().count(), 70_001);
    assert!(reader.has_times());
}

/// A disk of logical sectors of 4 KiB refuses what is not whole ones; the line is told.
#[test]
fn requests_of_other_sectors_than_the_disk_has_are_refused() {
    let run = |text: &str| {
        let options = ReplayOptions {
            logical: 8,
            ..ReplayOptions::default()
        };
        let records = Reader::new(Format::DiskSim, text.lines());
        replay(records, &mut disk(), options, |_| {})
    };
    insta::assert_snapshot!(run("0 0 8 8 1\n\n1 0 1 8 1\n").unwrap_err(), @"3: this request of 8 sectors from sector 1 on is not of whole logical sectors, which have 4096 bytes on the target: a device refuses it (EINVAL)");
    insta::assert_snapshot!(run("0 0 8 1 1\n").unwrap_err(), @"1: this request of 1 sector from sector 8 on is not of whole logical sectors, which have 4096 bytes on the target: a device refuses it (EINVAL)");
    assert_eq!(run("0 0 8 8 1\n1 0 64 128 0\n").unwrap().tally.ops, 2);
}

#[test]
fn a_request_of_too_many_bytes_is_refused() {
    let record = Record {
        line: 7,
        at: Span::ZERO,
        device: 0,
        kind: BlockKind::Read,
        lba: 0,
        sectors: 1 << 23,
        preflush: false,
        fua: false,
        response: None,
    };
    let options = ReplayOptions::default();
    let came = replay([Ok(record)].into_iter(), &mut disk(), options, |_| {});
    insta::assert_snapshot!(came.unwrap_err(), @"7: this request of 8388608 sectors has 4 GiB or more, which no request has: correct the trace");
}

#[test]
fn a_request_at_which_the_target_fails_is_told_with_its_line() {
    let mut broken = Disk::new(&catalogue::find("ST340015A").unwrap().disk, 3);
    let fault = Fault::Unreadable {
        lba: 1000,
        sectors: 8,
        retries: 0,
    };
    broken.inject(Instant(0), fault);
    let records = Reader::new(Format::DiskSim, "0 0 8 8 1\n\n9 0 1000 8 1\n".lines());
    let came = replay(
        records,
        &mut DiskTarget::new(broken),
        ReplayOptions::default(),
        |_| {},
    );
    insta::assert_snapshot!(came.unwrap_err(), @"3: operation 1 (read of 4 KiB at 500 KiB) failed with error 5 (EIO: the device could not do it)");
}

/// Response times in milliseconds by number, how long the whole took, and what is counted of a blkparse text.
fn replayed(text: &str, depth: Option<u32>) -> (Vec<f64>, f64, u64) {
    let options = ReplayOptions {
        depth,
        ..ReplayOptions::default()
    };
    let mut all = Vec::new();
    let records = Reader::new(Format::Blkparse, text.lines());
    let came = replay(records, &mut disk(), options, |r| {
        all.push((r.index, r.response.as_secs_f64() * 1e3));
    });
    let Replay {
        tally, responses, ..
    } = came.unwrap();
    // What is flushed besides is no response.
    let sum: f64 = all.iter().map(|(_, ms)| ms).sum();
    assert_eq!(responses.count(), all.len() as u64);
    assert!((responses.sum() as f64 / 1e6 - sum).abs() < 1e-6);
    all.sort_by_key(|(index, _)| *index);
    let responses = all.into_iter().map(|(_, ms)| ms).collect();
    (responses, tally.elapsed().as_secs_f64() * 1e3, tally.ops)
}

/// What a journal's commit is: what was written before is on the medium first, and the commit itself before it is told. A drive that has
/// the writes in its buffer is through with them at once, were it not for that.
#[test]
fn a_commit_waits_until_the_disk_has_written_what_came_before() {
    let text = |commit: &str| {
        let lines = [
            (0, "WS", 1_000_000),
            (1, "WS", 70_000_000),
            (2, commit, 2_000_000),
            (60, "WS", 2_000_008),
        ];
        let line = |(ms, kind, lba): (u32, &str, u64)| {
            format!("  8,0    1        1     0.{ms:03}000000   697  Q {kind:>3} {lba} + 8 [jbd2]\n")
        };
        lines.map(line).concat()
    };
    for depth in [None, Some(1)] {
        let (plain, _, ops) = replayed(&text("WS"), depth);
        assert_eq!((plain.len(), ops), (4, 4));
        assert!(plain.iter().all(|ms| *ms < 1.0), "{plain:?}");
        let (flushed, _, ops) = replayed(&text("FWS"), depth);
        // Two writes at far places: more than half a turn of 11 ms each.
        assert!(flushed[2] > 11.0, "{flushed:?}");
        assert_eq!((flushed.len(), ops), (4, 4));
        let others = [flushed[0], flushed[1], flushed[3]];
        assert!(others.iter().all(|ms| *ms < 1.0), "{flushed:?}");
    }
}

/// Linux has SATA disks flush behind a write that must be durable, after which blkparse shows the write as ended.
#[test]
fn what_must_be_durable_is_flushed_behind_the_write() {
    let text = |kind: &str| {
        format!(
            "  8,0    1        1     0.000000000   697  Q {kind:>5} 1000000 + 8 [md0_raid1]\n\
             \x20 8,0    1        2     0.000001000   697  Q FN [fsync]\n"
        )
    };
    let (plain, took, _) = replayed(&text("WS"), Some(1));
    let (durable, longer, ops) = replayed(&text("WFS"), Some(1));
    assert_eq!(ops, 2);
    assert!(
        plain[0] < 1.0 && (plain[0] - durable[0]).abs() < 1e-9,
        "{plain:?} {durable:?}"
    );
    // The flush that follows finds nothing to do.
    assert!(plain[1] > 1.0 && durable[1] < 0.5, "{plain:?} {durable:?}");
    assert!((took - longer).abs() < 0.5, "{took} {longer}");
    let (alone, lasts, ops) = replayed(text("FWFSM").lines().next().unwrap(), None);
    assert_eq!((alone.len(), ops), (1, 1));
    assert!(lasts > alone[0] + 1.0, "{lasts} {alone:?}");
}

proptest! {
    #[test]
    fn whatever_is_moved_fits_and_keeps_its_place(
        lba in 0_u64..1 << 40, length in 1_u64..100_000, sectors in 1_u64..1 << 30, stripe in 0_u64..4096,
    ) {
        prop_assume!(length <= sectors && lba + length > sectors);
        let grain = grain(sectors, 8, stripe);
        let moved = wrapped(lba, length, sectors, grain);
        prop_assert!(moved + length <= sectors);
        // But for one as large as nearly all of the target.
        if length + grain <= sectors - sectors % grain {
            prop_assert_eq!(moved % grain, lba % grain);
        }
    }
}
