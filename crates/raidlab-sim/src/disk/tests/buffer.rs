//! What the buffer does with writes.
use super::*;
use raidlab_core::time::Span;

#[test]
fn the_write_buffer_acknowledges_early_and_a_flush_drains_it() {
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let written = one(
        &mut disk,
        Instant::ZERO,
        request(0, BlockKind::Write, 1_000_000, 8),
    );
    assert!(written.hit && written.at < Instant(200_000), "{written:?}");
    assert_eq!(disk.unwritten(), 8);
    let places = Stream::new(2);
    for i in 1..100 {
        let lba = places.below(i, model.sectors() - 8);
        disk.submit(written.at, request(i, BlockKind::Write, lba, 8));
    }
    let flushed = one(&mut disk, written.at, request(1000, BlockKind::Flush, 0, 0));
    assert_eq!(disk.unwritten(), 0);
    assert!(flushed.at > Instant(100 * 2_000_000), "{flushed:?}");
    // Nothing is left: the next flush ends at once.
    let again = one(&mut disk, flushed.at, request(1001, BlockKind::Flush, 0, 0));
    assert!(again.at.since(flushed.at) < Span::from_millis(1));
    assert_eq!(disk.next_event(), None);
}

#[test]
fn buffered_random_writes_are_faster_than_direct_ones() {
    let rate = |write_back| {
        let model = changed("ST3250624AS", |spec| spec.cache.write_back = write_back);
        let mut spec = blocks(&model, Order::Random, 4096, 5000);
        spec.read_percent = 0;
        per_second(&run(&model, spec, 1).0)
    };
    let gain = rate(true) / rate(false);
    assert!((1.5..4.0).contains(&gain), "{gain}");
}

/// What waits for room is not in the buffer yet: the arm's choice among what is there is as good with many writes behind it.
#[test]
fn writes_that_wait_for_room_do_not_spoil_the_order_of_those_in_the_buffer() {
    for name in ["ST3250624AS", "ST3000DM001", "nearline-24tb"] {
        let model = model(name);
        let rate = |depth| {
            let mut spec = blocks(&model, Order::Random, 512 << 10, 1500);
            spec.read_percent = 0;
            per_second(&run(&model, spec, depth).0)
        };
        let (shallow, deep) = (rate(2), rate(32));
        assert!(
            deep > 0.97 * shallow,
            "{name}: {deep} and {shallow} a second"
        );
    }
}

/// Blocks that lie close together, in order and many in flight, until all are on the media.
#[test]
fn drives_with_a_queue_write_close_blocks_as_soon_through_the_buffer_as_past_it() {
    for name in ["ST3250624AS", "ST3160812AS", "ST3000DM001", "nearline-24tb"] {
        let took = |write_back| {
            let model = changed(name, |spec| spec.cache.write_back = write_back);
            let (mut disk, numbers) = (Disk::new(&model, 3), Stream::new(5));
            let mut places: Vec<u64> = (0..2000).map(|i| numbers.below(i, 1 << 16) * 8).collect();
            places.sort_unstable();
            let (mut next, mut ended, mut now, mut done) = (0, 0, Instant::ZERO, Vec::new());
            while ended < places.len() {
                while next < places.len().min(ended + 31) {
                    let write = request(next as u64, BlockKind::Write, 1_000_000 + places[next], 8);
                    disk.submit(now, write);
                    next += 1;
                }
                now = disk.next_event().expect("more ends");
                disk.advance(now, &mut done);
                ended += done.drain(..).count();
            }
            one(&mut disk, now, request(9999, BlockKind::Flush, 0, 0)).at
        };
        let (through, past) = (took(true).0, took(false).0);
        assert!(through < past * 21 / 20, "{name}: {through} and {past} ns");
    }
}

#[test]
fn a_forced_write_waits_for_the_media() {
    let model = model("ST3250624AS");
    let mut disk = Disk::new(&model, 1);
    let forced = Request {
        fua: true,
        ..request(0, BlockKind::Write, 200_000_000, 8)
    };
    let done = one(&mut disk, Instant::ZERO, forced);
    assert!(!done.hit && done.at > Instant(5_000_000), "{done:?}");
    assert_eq!(disk.unwritten(), 0);
}

/// The buffer keeps each sector once: what it holds already is replaced where it is.
#[test]
fn writing_again_what_a_full_buffer_holds_waits_for_nothing() {
    let model = changed("ST3250624AS", |spec| spec.cache.write_sectors = 800);
    let mut disk = Disk::new(&model, 1);
    let mut now = Instant::ZERO;
    let place = |i: u64| 1_000_000 + i * 3_000_000;
    // 100 fill the buffer; meanwhile a few go to the media.
    for i in 0..110 {
        now = one(&mut disk, now, request(i, BlockKind::Write, place(i), 8)).at;
    }
    // The last is the farthest from the arm, which has gone on from the first. Eight at a time write it again.
    let (last, begin) = (place(109), now);
    for i in 110..118 {
        disk.submit(now, request(i, BlockKind::Write, last, 8));
    }
    let mut left = 8;
    while left > 0 {
        now = disk.next_event().expect("they end");
        let mut ends = Vec::new();
        disk.advance(now, &mut ends);
        left -= ends.len();
    }
    assert!(
        now.since(begin) < Span::from_millis(2),
        "{:?} for eight writes of what is there",
        now.since(begin)
    );
    // What is there in part wants room for the rest alone, and has to wait for it.
    let more = one(&mut disk, now, request(160, BlockKind::Write, last, 8 + 80));
    assert!(more.at.since(now) > Span::from_millis(4), "{more:?}");
}

/// A run is brought to the media track by track. Where one ends and the next begins is the drive's own choice, which does
/// not cut a physical sector in two: that would cost a turn for each track.
#[test]
fn a_flush_of_a_long_run_does_not_cut_physical_sectors() {
    let model = model("nearline-24tb");
    let tracks = 8;
    let flushed = |begin: u64| {
        let mut disk = Disk::new(&model, 1);
        // After a read nothing is brought to the media for a while, so that the flush finds all in one run.
        let read = one(
            &mut disk,
            Instant::ZERO,
            request(999, BlockKind::Read, 1 << 20, 8),
        );
        let (call, track) = (2048, u64::from(hdd(&model).geometry.per_track(begin)));
        for i in 0..tracks * track / call {
            let write = request(i, BlockKind::Write, begin + i * call, call as u32);
            disk.submit(read.at, write);
        }
        one(&mut disk, read.at, request(1000, BlockKind::Flush, 0, 0)).at
    };
    let (aligned, misaligned) = (flushed(64), flushed(63));
    // The first and the last physical sector are read before they are written, which is a turn each.
    assert!(
        misaligned.since(aligned) <= Span::from_millis(25),
        "{misaligned:?} instead of {aligned:?}"
    );
}

/// Without a write cache each write of a stream that is asked for alone misses its place and waits a turn; of those that wait for the
/// arm the data are there in time, as far as the buffer has room.
#[test]
fn queued_writes_past_the_cache_lose_no_turn_while_the_buffer_has_room() {
    let rate = |sectors: u32, depth| {
        let model = changed("ST3250624AS", |spec| {
            spec.cache.write_back = false;
            spec.queue.tags = 32;
        });
        let mut spec = blocks(&model, Order::Sequential, sectors * 512, 2000);
        spec.read_percent = 0;
        bytes_per_second(&run(&model, spec, depth).0)
    };
    let media = rate(128, 32);
    let alone = 128.0 * 512.0 * 120.0;
    assert!(
        (0.8..1.0).contains(&(rate(128, 1) / alone)),
        "{}",
        rate(128, 1)
    );
    close(media, 67.0 * 1048576.0, 0.1);
    close(rate(128, 2), media, 0.02);
    // Not two of 16 MiB.
    assert!(rate(32_768, 4) < 0.97 * media, "{}", rate(32_768, 4));
}

/// The link carries one transfer at a time, from the first one after a pause on.
#[test]
fn reads_from_the_buffer_take_turns_on_the_link() {
    let model = changed("ST3250624AS", |spec| spec.cache.write_back = false);
    let link = hdd(&model).link_nanos(64);
    let mut disk = Disk::new(&model, 1);
    let read = one(&mut disk, Instant::ZERO, request(0, BlockKind::Read, 0, 8));
    // It has read ahead meanwhile.
    let later = Instant(read.at.0 + 100_000_000);
    disk.advance(later, &mut Vec::new());
    for i in 0..4 {
        disk.submit(later, request(1 + i, BlockKind::Read, 8 + i * 64, 64));
    }
    let mut ends = Vec::new();
    while let Some(now) = disk.next_event() {
        disk.advance(now, &mut ends);
    }
    assert!(ends.iter().all(|end| end.hit), "{ends:?}");
    for pair in ends.windows(2) {
        assert!(pair[1].first >= pair[0].at, "{pair:?}");
        assert!(pair[1].at.since(pair[1].first).0 >= link, "{pair:?}");
    }
}
