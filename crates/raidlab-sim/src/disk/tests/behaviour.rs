//! What buffers, queues and emulated sectors do.
use super::*;
use crate::disk::asked::driven;
use raidlab_core::time::Span;

fn turn(model: &DiskModel) -> u64 {
    hdd(model).spindle(0).revolution()
}

#[test]
fn a_misaligned_write_on_emulated_sectors_costs_about_a_turn() {
    let model = changed("ST3000DM001", |spec| spec.cache.write_back = false);
    let write = |offset: u64| {
        let mut disk = Disk::new(&model, 3);
        let places = Stream::new(5);
        let mut now = Instant::ZERO;
        for i in 0..2000 {
            let lba = places.below(i, model.sectors() / 8 - 2) * 8 + offset;
            now = one(&mut disk, now, request(i, BlockKind::Write, lba, 8)).at;
        }
        (now.0 / 2000, disk.counters().read_modify_writes)
    };
    let (aligned, none) = write(0);
    let (misaligned, all) = write(1);
    assert_eq!((none, all), (0, 2000));
    // The write needs no settling of its own: its head has been on the track for a turn.
    let settle = hdd(&model).spec.write_settle.0;
    close(
        (misaligned - aligned) as f64,
        (turn(&model) - settle) as f64,
        0.02,
    );
}

#[test]
fn a_part_of_a_sector_that_was_written_lately_is_not_read_again() {
    let model = changed("ST3000DM001", |spec| spec.cache.write_back = false);
    let mut disk = Disk::new(&model, 3);
    let mut now = Instant::ZERO;
    let mut read_first = |lba: u64, sectors: u32| {
        let before = disk.counters().read_modify_writes;
        now = one(&mut disk, now, request(0, BlockKind::Write, lba, sectors)).at;
        disk.counters().read_modify_writes - before
    };
    assert_eq!(read_first(801, 2), 1);
    // The rest of the sector, and the same part again.
    assert_eq!(read_first(803, 5), 0);
    assert_eq!(read_first(801, 2), 0);
    // Another sector in part, whose end goes on in a third.
    assert_eq!(read_first(812, 8), 1);
    assert_eq!(read_first(820, 4), 0);
    // The buffer keeps few of them.
    for i in 0..100 {
        assert_eq!(read_first(1_000_001 + i * 80, 2), 1);
    }
    assert_eq!(read_first(801, 2), 1);
    // Nor does it keep them when as much as it holds has gone through it.
    let buffer = hdd(&model).spec.cache.write_sectors as u32;
    for (sectors, read) in [(buffer - 8, 0), (buffer + 8, 1)] {
        assert_eq!(read_first(2_000_000, sectors), 0);
        assert_eq!(read_first(805, 1), read);
    }
}

#[test]
fn the_end_of_a_stream_waits_for_more_and_that_of_a_small_write_does_not() {
    let model = model("ST3000DM001");
    let first_read = |sectors: u32| {
        let mut disk = Disk::new(&model, 3);
        let end = one(
            &mut disk,
            Instant::ZERO,
            request(0, BlockKind::Write, 800, sectors),
        )
        .at;
        // The rest comes when the arm has written what was whole.
        let later = end + Span::from_millis(20);
        let at = one(
            &mut disk,
            later,
            request(1, BlockKind::Write, 800 + u64::from(sectors), 4),
        )
        .at;
        let _ = one(&mut disk, at, request(2, BlockKind::Flush, 0, 0));
        disk.counters().read_modify_writes
    };
    assert_eq!(first_read(60), 1);
    assert_eq!(first_read(252), 0);
}

#[test]
fn a_misaligned_sequential_stream_loses_little() {
    let model = model("ST3000DM001");
    let rate = |first: u64| {
        let mut spec = blocks(&model, Order::Sequential, 128 << 10, 4096);
        spec.read_percent = 0;
        spec.flush_end = true;
        spec.region.start.0 = first;
        spec.region.len.0 -= 1 << 20;
        bytes_per_second(&run(&model, spec, 1).0)
    };
    close(rate(512), rate(0), 0.02);
}

#[test]
fn reads_behind_a_read_come_from_the_buffer_in_any_order() {
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let first = one(
        &mut disk,
        Instant::ZERO,
        request(0, BlockKind::Read, 5_000_000, 8),
    );
    assert!(!first.hit);
    let later = first.at + Span::from_millis(30);
    let mut now = later;
    for (id, lba) in [(1, 5_000_200), (2, 5_000_008), (3, 5_000_100)] {
        let done = one(&mut disk, now, request(id, BlockKind::Read, lba, 8));
        assert!(done.hit, "{lba} is not in the buffer");
        now = done.at;
    }
    assert!(now.since(later) < Span::from_millis(1));
}

#[test]
fn short_skips_forward_keep_streaming() {
    // Three chunks of 64 KiB of four: what a RAID5 member sees of a sequential read.
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let mut now = Instant::ZERO;
    let mut read = 0;
    for i in 0..8000_u64 {
        if i % 4 == 3 {
            continue;
        }
        now = one(&mut disk, now, request(i, BlockKind::Read, i * 128, 128)).at;
        read += 128 * 512;
    }
    let rate = f64::from(read) / now.since(Instant::ZERO).as_secs_f64();
    close(rate, 67.5e6 * 0.75, 0.02);
}

/// Every second segment of what lies behind one another, with a pause after each: what a member sees of a sequential read of an
/// offset layout, or of one with two parity chunks, while the others are read. A drive that gives its only reader the whole
/// buffer has read what comes next; one with segments of that size has read only what is passed over.
#[test]
fn a_gap_as_large_as_a_segment_is_read_past_where_the_buffer_is_divided_by_readers() {
    let mean = |adaptive| {
        let model = changed("ST3250624AS", |spec| {
            spec.cache.adaptive = adaptive;
            spec.cache.read_ahead = spec.cache.largest_segment();
        });
        let gap = hdd(&model).spec.cache.segment_sectors;
        let mut disk = Disk::new(&model, 1);
        let mut now = Instant::ZERO;
        let mut taken = Span::ZERO;
        for i in 0..100_u64 {
            for part in 0..gap / 64 {
                let lba = 2 * i * gap + part * 64;
                let done = one(&mut disk, now, request(i, BlockKind::Read, lba, 64));
                taken += done.at.since(now);
                now = done.at;
            }
            now += Span::from_millis(40);
        }
        taken.as_secs_f64() / 100.0
    };
    // 256 KiB at the media's rate, and a turn in which the head waits where it had stopped.
    let (apart, whole) = (mean(false), mean(true));
    assert!(apart > whole + 0.006, "{apart} s, and {whole} s");
    assert!(whole < 0.003, "{whole} s");
}

#[test]
fn reading_ahead_pauses_when_the_segment_is_full_and_costs_turns_to_resume() {
    let model = changed("ST3250624AS", |spec| spec.cache.segments = 1);
    let mut disk = Disk::new(&model, 1);
    let segment = hdd(&model).spec.cache.segment_sectors;
    let first = one(&mut disk, Instant::ZERO, request(0, BlockKind::Read, 0, 8));
    let later = first.at + Span::from_secs(5);
    // All that fits the segment is there at once, and not more.
    let last = one(
        &mut disk,
        later,
        request(1, BlockKind::Read, segment - 8, 8),
    );
    assert!(last.hit, "{last:?}");
    let beyond = one(&mut disk, last.at, request(2, BlockKind::Read, segment, 8));
    assert!(!beyond.hit);
    assert!(beyond.at.since(last.at).0 < 2 * turn(&model));
    assert_eq!(disk.counters().stream_hits, 1);
}

#[test]
fn a_seek_away_keeps_the_segment_and_ends_its_stream() {
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let first = one(&mut disk, Instant::ZERO, request(0, BlockKind::Read, 0, 8));
    let away = one(
        &mut disk,
        first.at + Span::from_millis(10),
        request(1, BlockKind::Read, 300_000_000, 8),
    );
    let back = one(&mut disk, away.at, request(2, BlockKind::Read, 64, 64));
    assert!(back.hit);
    let far = one(&mut disk, back.at, request(3, BlockKind::Read, 8000, 8));
    assert!(!far.hit);
}

#[test]
fn a_lazy_drive_waits_until_half_of_its_segment_is_free() {
    let rate = |restart| {
        let model = changed("ST340015A", |spec| {
            spec.cache.restart = restart;
            // A host that takes longer than the media lets the segment fill.
            spec.overhead.read_hit = Span::from_millis(4);
        });
        let spec = blocks(&model, Order::Sequential, 64 << 10, 3000);
        let (tally, target) = run(&model, spec, 1);
        (
            bytes_per_second(&tally),
            target.device().counters().read_hits,
        )
    };
    let (eager, hits) = rate(spec::Restart::Eager);
    let (lazy, _) = rate(spec::Restart::Lazy);
    assert!(hits > 1000);
    assert!(lazy <= eager * 1.001, "{lazy} against {eager}");
}

/// MB/s of a copy with one read and one write at the drive.
fn copied(model: &DiskModel) -> f64 {
    let (mut disk, mut now, mut done) = (Disk::new(model, 7), Instant::ZERO, Vec::new());
    let (count, sectors) = (400, 256);
    let kinds = [(BlockKind::Read, 0), (BlockKind::Write, 4_000_000)];
    let mut next = [0, 0];
    while next[0] < count || next[1] < count {
        for (which, (kind, from)) in kinds.into_iter().enumerate() {
            let free = !done.contains(&(which as u64));
            if free && next[which] < count {
                disk.submit(
                    now,
                    request(which as u64, kind, from + next[which] * sectors, 256),
                );
                done.push(which as u64);
                next[which] += 1;
            }
        }
        now = disk.next_event().unwrap();
        let mut ends = Vec::new();
        disk.advance(now, &mut ends);
        done.retain(|id| !ends.iter().any(|end| end.id == *id));
    }
    (count * sectors * 512) as f64 / now.0 as f64 * 1e3
}

#[test]
fn a_copy_is_faster_when_destaging_waits_for_what_is_read_ahead() {
    let rate = |least| {
        copied(&changed("ST336752LW", |spec| {
            spec.cache.least_ahead = least;
        }))
    };
    let (none, some, whole) = (rate(0), rate(2048), rate(4096));
    assert!(
        some > 1.03 * none && whole > 1.03 * some,
        "{none} {some} {whole}"
    );
}

#[test]
fn no_request_starves_in_the_queue() {
    let model = model("ST3250624AS");
    let (tally, _) = run(&model, blocks(&model, Order::Random, 4096, 50_000), 32);
    let slowest = tally.response[0].as_ref().unwrap().max().unwrap();
    assert!(slowest < Span::from_millis(500 + 32 * 30), "{slowest}");
}

/// What waits behind those that a drive compares is not passed over, however old it grows: a drive that is given more
/// than it serves in `max_age` sorts as well as one that is given less.
#[test]
fn more_commands_of_many_sectors_are_not_slower() {
    for name in ["ST3250624AS", "ST3160812AS", "MAN3367MP", "nearline-24tb"] {
        let model = model(name);
        let rate = |depth| {
            let (tally, _) = run(
                &model,
                blocks(&model, Order::Random, 512 << 10, 1500),
                depth,
            );
            bytes_per_second(&tally)
        };
        let rates = [4, 8, 16, 32, 64].map(rate);
        for (depth, pair) in rates.windows(2).enumerate() {
            let (shallow, deep) = (pair[0], pair[1]);
            assert!(deep > 0.97 * shallow, "{name}, {}: {rates:?}", 8 << depth);
        }
    }
}

#[test]
fn a_link_of_its_own_can_be_left_out() {
    let model = model("ST340015A");
    let bare = model.without_link();
    let mut with = Disk::new(&model, 1);
    let mut without = Disk::new(&bare, 1);
    let read = request(0, BlockKind::Read, 40_000_000, 256);
    let (a, b) = (
        one(&mut with, Instant::ZERO, read),
        one(&mut without, Instant::ZERO, read),
    );
    assert_eq!(a.first, b.first);
    // One sector at 100 MB/s after the media.
    assert_eq!(a.at.since(b.at), Span(5120));
}

#[test]
fn requests_beyond_the_end_are_refused() {
    let model = model("ST340015A");
    let mut disk = Disk::new(&model, 1);
    for (lba, sectors) in [
        (model.sectors(), 1),
        (u64::MAX, 1),
        (0, 0),
        (model.sectors() - 1, 2),
    ] {
        let done = one(
            &mut disk,
            Instant::ZERO,
            request(0, BlockKind::Read, lba, sectors),
        );
        assert_eq!(done.result, Err(DiskError::OutOfRange));
    }
    let last = one(
        &mut disk,
        Instant::ZERO,
        request(1, BlockKind::Read, model.sectors() - 1, 1),
    );
    assert_eq!(last.result, Ok(()));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(150))]
    #[test]
    fn every_request_ends_once_and_nothing_stays_behind(
        name in 0..catalogue::MODELS.len(),
        seed: u64,
        requests in proptest::collection::vec((0_u64..40_000_000, 0_u8..20, 0_u64..4000, 1_u32..700, proptest::bool::ANY), 1..120),
        fault in 0_usize..120,
    ) {
        let model = model(catalogue::MODELS[name].0);
        let mut disk = Disk::new(&model, seed);
        let (mut now, mut done) = (Instant::ZERO, Vec::new());
        for (id, (gap, kind, lba, sectors, fua)) in requests.iter().enumerate() {
            now += Span(*gap);
            disk.advance(now, &mut done);
            let kind = match kind { 0 => BlockKind::Flush, 1..10 => BlockKind::Write, _ => BlockKind::Read };
            // Near each other, so that runs overlap, segments are hit and streams are crossed.
            let lba = lba * 97 % (model.sectors() - 700);
            disk.submit(now, Request { fua: *fua, ..request(id as u64, kind, lba, *sectors) });
            if id == fault {
                disk.inject(now, Fault::Unreadable { lba, sectors: 3, retries: 2 });
            }
        }
        let mut events = 0;
        while let Some(next) = disk.next_event() {
            proptest::prop_assert!(next >= now, "an event in the past");
            now = next;
            disk.advance(now, &mut done);
            events += 1;
            proptest::prop_assert!(events < 100_000, "the disk does not come to rest");
        }
        let mut ids: Vec<u64> = done.iter().map(|d| d.id).collect();
        ids.sort_unstable();
        proptest::prop_assert_eq!(ids, (0..requests.len() as u64).collect::<Vec<_>>());
        proptest::prop_assert!(done.iter().all(|d| d.first <= d.at));
        proptest::prop_assert!(done.windows(2).all(|w| w[0].at <= w[1].at));
        if model.rotational() {
            proptest::prop_assert_eq!(disk.unwritten(), 0);
        }
    }
}

#[test]
fn parts_of_a_physical_sector_pass_under_the_head_once() {
    let model = changed("HP-C3323A", |spec| {
        spec.physical = 8;
        spec.sectors -= spec.sectors % 8;
    });
    let (tally, target) = run(&model, blocks(&model, Order::Sequential, 512, 4000), 32);
    let (busy, took) = (target.device().counters().busy().0, tally.elapsed().0);
    assert!(busy <= took, "{busy} ns of {took}");
}

/// Passing under the head counts once, and whenever it was: before the request, for it, or before the arm had to go elsewhere. A host that
/// takes its time does not make the sectors pass faster, and what nobody asks for counts for nothing.
#[test]
fn what_is_read_counts_whoever_waits_for_it() {
    let model = model("ST3250624AS");
    let busy = |think: u64, other: bool| {
        let mut disk = Disk::new(&model, 1);
        let mut now = Instant(1_000_000_000);
        let mut counters = Vec::new();
        for i in 0..400 {
            if other && i % 3 == 2 {
                let far = request(i, BlockKind::Read, 200_000_000 + 1_000_000 * (i % 7), 8);
                now = one(&mut disk, now, far).at;
            }
            now = one(&mut disk, now, request(i, BlockKind::Read, 64 * i, 64)).at;
            now += Span(think);
            counters.push(*disk.counters());
        }
        (counters[399].transfer - counters[0].transfer, counters[399])
    };
    let (plain, counters) = busy(0, false);
    assert_eq!(counters.rotation, busy(1, false).1.rotation);
    for think in [100_000, 400_000, 1_000_000, 3_000_000] {
        let (transfer, _) = busy(think, false);
        close(transfer.0 as f64, plain.0 as f64, 1e-6);
    }
    // With another reader the rest of a segment is read again or is there: never less than once, and no faster.
    for think in [0, 100_000, 1_000_000] {
        let (transfer, _) = busy(think, true);
        assert!(
            transfer.0 as f64 > 0.99 * plain.0 as f64,
            "{think}: {transfer}"
        );
    }
}

/// A member of RAID5: each fourth chunk is parity, and left out. The head passes over it as when nothing is reordered.
#[test]
fn reordering_does_not_break_up_a_stream_with_gaps() {
    let rate = |model: &DiskModel, depth| {
        let chunk = 1024;
        let at = |i| ((i / 3 * 4 + i % 3) * u64::from(chunk), chunk);
        1.0 / driven(model, BlockKind::Read, depth, 100, 2000, at)
    };
    let plain = changed("nearline-24tb", |spec| spec.queue.window = 1);
    let model = model("nearline-24tb");
    for depth in [2, 4, 8, 32] {
        let [own, plain] = [rate(&model, depth), rate(&plain, depth)];
        assert!(own > 0.99 * plain, "{own} and {plain} at {depth}");
    }
}
