//! What every target must keep to, whatever is behind it. Generic, so that a modelled target can be
//! put to the same questions.
use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::rng::Stream;
use raidlab_core::target::{Completion, Tag, Target, TargetError};
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};

/// What is put to the questions.
pub(crate) trait Subject {
    /// Its targets.
    type Target: Target;

    /// A target of `size` bytes that can be written to, for `depth` operations in flight. Targets
    /// made one after another are of the same extent.
    fn make(&self, size: u64, depth: u32) -> Self::Target;

    /// The first byte that is not what a write should have left there; `None` when all is as it
    /// should be, or when nothing is kept (a model).
    fn first_wrong_byte(&self, offset: u64, len: u64) -> Option<u64>;
}

/// Bytes of one operation: a multiple of any alignment in use.
pub(crate) const BLOCK: u32 = 4096;
const SIZE: u64 = 4 << 20;

/// All questions.
pub(crate) fn conforms(subject: &impl Subject) {
    tags_come_back_exactly_once(subject);
    time_goes_forward_and_only_in_wait(subject);
    waiting_keeps_to_its_limit(subject);
    what_is_in_flight_ends_whatever_the_limit(subject);
    operations_that_are_alike_can_be_submitted_at_once(subject);
    misaligned_operations_are_refused(subject);
    the_end_cuts_operations_short(subject);
    what_is_written_can_be_read_back(subject);
    operations_larger_than_expected_work(subject);
    a_drive_counts_what_was_done(subject);
    arrivals_are_waited_for(subject);
    dropping_with_operations_in_flight_is_safe(subject);
}

pub(crate) fn block(kind: BlockKind, offset: u64, len: u32) -> Op {
    Op::Block(BlockOp { kind, len, offset })
}

/// Waits until `count` operations have ended.
pub(crate) fn collect(target: &mut impl Target, count: usize) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut turns = 0;
    while done.len() < count {
        let until = target.now() + Span::from_secs(10);
        target
            .wait(Some(until), &mut done)
            .expect("the target works");
        turns += 1;
        assert!(
            turns <= 10 * count + 10,
            "{} of {count} operations ended",
            done.len()
        );
    }
    done
}

fn tags_come_back_exactly_once(subject: &impl Subject) {
    const OPS: u64 = 1000;
    let mut target = subject.make(SIZE, 16);
    let most = target.limits().max_in_flight.min(16);
    let mut waiting = vec![false; most as usize];
    let random = Stream::new(1);
    let (mut issued, mut ended, mut turn) = (0, 0, 0);
    let mut done = Vec::new();
    while ended < OPS {
        for tag in 0..most {
            turn += 1;
            // Sometimes less than a full queue.
            if waiting[tag as usize] || issued == OPS || random.below(turn, 8) == 0 {
                continue;
            }
            let kind = if turn.is_multiple_of(3) {
                BlockKind::Write
            } else {
                BlockKind::Read
            };
            let offset = random.below(turn, SIZE / u64::from(BLOCK)) * u64::from(BLOCK);
            target
                .submit(Tag(tag), block(kind, offset, BLOCK))
                .expect("a free slot");
            waiting[tag as usize] = true;
            issued += 1;
        }
        let until = target.now() + Span::from_millis(1);
        target
            .wait(Some(until), &mut done)
            .expect("the target works");
        for end in done.drain(..) {
            assert!(
                std::mem::take(&mut waiting[end.tag.0 as usize]),
                "{end:?} was not in flight"
            );
            assert_eq!(end.result, Ok(BLOCK));
            ended += 1;
        }
    }
    assert!(waiting.iter().all(|waits| !waits));
    // Nothing is left that could come back twice.
    target.wait(None, &mut done).expect("the target works");
    assert!(done.is_empty());
}

fn time_goes_forward_and_only_in_wait(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 4);
    let most = target.limits().max_in_flight.min(4);
    let mut last = target.now();
    for turn in 0..50 {
        for tag in 0..most {
            let offset = (turn * 4 + u64::from(tag)) * u64::from(BLOCK);
            target
                .submit(Tag(tag), block(BlockKind::Read, offset, BLOCK))
                .expect("a free slot");
            assert_eq!(target.now(), last, "submitting moved time");
        }
        let submitted = last;
        for end in collect(&mut target, most as usize) {
            assert!(end.at >= submitted && end.at <= target.now(), "{end:?}");
        }
        assert!(target.now() >= last);
        last = target.now();
    }
}

fn waiting_keeps_to_its_limit(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 4);
    let mut done = Vec::new();
    let until = target.now() + Span::from_millis(20);
    target
        .wait(Some(until), &mut done)
        .expect("the target works");
    assert!(
        target.now() >= until,
        "it came back before the limit with nothing ended"
    );
    // In the past, and none at all.
    for limit in [Some(Instant::ZERO), None] {
        target.wait(limit, &mut done).expect("the target works");
        assert!(target.now() >= until);
    }
    assert!(done.is_empty());
}

fn what_is_in_flight_ends_whatever_the_limit(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 1);
    for limit in [Some(Instant::ZERO), None] {
        let mut done = Vec::new();
        target
            .submit(Tag(0), block(BlockKind::Read, 0, BLOCK))
            .expect("a free slot");
        for _ in 0..1_000_000 {
            target.wait(limit, &mut done).expect("the target works");
            if !done.is_empty() {
                break;
            }
            assert!(
                limit.is_some(),
                "it came back without a limit and without an end"
            );
        }
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].tag, done[0].result), (Tag(0), Ok(BLOCK)));
    }
}

fn operations_that_are_alike_can_be_submitted_at_once(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 8);
    let most = target.limits().max_in_flight.min(8);
    let tags: Vec<Tag> = (0..most).rev().map(Tag).collect();
    let mut offsets: Vec<u64> = (0..u64::from(most)).map(|i| i * SIZE / 64).collect();
    for kind in [BlockKind::Write, BlockKind::Read] {
        // The second time the slots are used again; 3 MiB are more than the target was made for.
        for len in [BLOCK, 2 * BLOCK, 3 << 20] {
            let before = target.now();
            target
                .submit_alike(kind, len, &tags, &offsets)
                .expect("free slots");
            assert_eq!(target.now(), before, "submitting moved time");
            let done = collect(&mut target, tags.len());
            let mut ended: Vec<Tag> = done.iter().map(|end| end.tag).collect();
            ended.sort_by_key(|tag| std::cmp::Reverse(tag.0));
            assert_eq!(ended, tags);
            if len <= 2 * BLOCK {
                assert!(done.iter().all(|end| end.result == Ok(len)), "{done:?}");
            }
        }
    }
    assert_eq!(subject.first_wrong_byte(0, SIZE), None);
    // One that is refused is not taken; those before it are.
    let alignment = u64::from(target.limits().alignment);
    let last = offsets.len() - 1;
    offsets[last] += alignment / 2;
    let answer = target.submit_alike(BlockKind::Read, BLOCK, &tags, &offsets);
    assert_eq!(answer.is_err(), alignment > 1);
    let taken = tags.len() - usize::from(alignment > 1);
    assert_eq!(collect(&mut target, taken).len(), taken);
}

fn misaligned_operations_are_refused(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 2);
    let alignment = target.limits().alignment;
    assert!(alignment.is_power_of_two());
    if alignment > 1 {
        for (offset, len) in [
            (1, BLOCK),
            (u64::from(alignment) / 2, BLOCK),
            (0, BLOCK + 1),
            (0, 1),
        ] {
            let refused = target.submit(Tag(0), block(BlockKind::Read, offset, len));
            assert!(
                matches!(refused, Err(TargetError::Unsupported { .. })),
                "{offset} {len}"
            );
        }
    }
    // A refusal leaves the slot free and the target whole.
    target
        .submit(Tag(0), block(BlockKind::Read, 0, BLOCK))
        .expect("a free slot");
    assert_eq!(collect(&mut target, 1)[0].result, Ok(BLOCK));
}

fn the_end_cuts_operations_short(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 1);
    assert_eq!(target.limits().size, SIZE);
    for (offset, moved) in [
        (SIZE - u64::from(BLOCK), BLOCK),
        (SIZE, 0),
        (SIZE + (1 << 20), 0),
    ] {
        target
            .submit(Tag(0), block(BlockKind::Read, offset, BLOCK))
            .expect("a free slot");
        assert_eq!(collect(&mut target, 1)[0].result, Ok(moved), "at {offset}");
    }
    let over = SIZE - u64::from(BLOCK);
    target
        .submit(Tag(0), block(BlockKind::Read, over, 2 * BLOCK))
        .expect("a free slot");
    assert_eq!(collect(&mut target, 1)[0].result, Ok(BLOCK));
}

fn what_is_written_can_be_read_back(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 32);
    let most = target.limits().max_in_flight.min(32) as usize;
    // Written at random, every block once, several sizes.
    let len = BLOCK * 3;
    let blocks = SIZE / u64::from(len);
    let mut order: Vec<u64> = (0..blocks).collect();
    raidlab_core::rng::shuffle(&mut order, Stream::new(5));
    for chunk in order.chunks(most) {
        for (tag, number) in chunk.iter().enumerate() {
            let write = block(BlockKind::Write, number * u64::from(len), len);
            target.submit(Tag(tag as u32), write).expect("a free slot");
        }
        for end in collect(&mut target, chunk.len()) {
            assert_eq!(end.result, Ok(len));
        }
    }
    for kind in [BlockKind::FlushData, BlockKind::Flush] {
        target
            .submit(Tag(0), block(kind, 0, 0))
            .expect("a free slot");
        let moved = collect(&mut target, 1)[0].result;
        assert_eq!(moved, Ok(0), "a flush moves nothing");
    }
    assert_eq!(subject.first_wrong_byte(0, blocks * u64::from(len)), None);
}

fn operations_larger_than_expected_work(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 2);
    let large = 3 << 20;
    for kind in [BlockKind::Write, BlockKind::Read] {
        target
            .submit(Tag(0), block(kind, 0, large))
            .expect("a free slot");
        assert_eq!(collect(&mut target, 1)[0].result, Ok(large));
    }
    assert_eq!(subject.first_wrong_byte(0, u64::from(large)), None);
}

fn blocks(limit: Limit, arrival: Arrival) -> Blocks {
    let spec = BlockSpec {
        order: Order::Random,
        read_percent: 70,
        block: BLOCK,
        region: Extent::new(0, SIZE),
        first: 0,
        limit,
        arrival,
        flush_every: 50,
        flush_data: false,
        flush_end: true,
    };
    Blocks::new(spec, Stream::new(9))
}

fn a_drive_counts_what_was_done(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 8);
    let limit = Limit {
        ops: Some(2000),
        time: None,
    };
    let mut lanes = [Lane {
        workload: blocks(limit, Arrival::Closed),
        depth: 8,
    }];
    let driven =
        drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).expect("it runs");
    let tally = &driven.tallies[0];
    assert_eq!((tally.ops, tally.bytes), (2000, 2000 * u64::from(BLOCK)));
    assert_eq!(tally.bytes_read + tally.bytes_written, tally.bytes);
    assert!(tally.all_ops > 2000, "flushes are operations too");
    let most = f64::from(target.limits().max_in_flight.min(8));
    assert!(tally.mean_in_flight() > 0.0 && tally.mean_in_flight() <= most + 1e-9);
}

fn arrivals_are_waited_for(subject: &impl Subject) {
    let mut target = subject.make(SIZE, 8);
    let limit = Limit {
        ops: Some(40),
        time: None,
    };
    let arrival = Arrival::Constant { per_second: 1000 };
    let mut lanes = [Lane {
        workload: blocks(limit, arrival),
        depth: 8,
    }];
    let before = target.now();
    let driven =
        drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).expect("it runs");
    assert_eq!(driven.tallies[0].ops, 40);
    assert!(
        target.now().since(before) >= Span::from_millis(39),
        "an operation came before it was due"
    );
}

fn dropping_with_operations_in_flight_is_safe(subject: &impl Subject) {
    for kind in [BlockKind::Read, BlockKind::Write] {
        for turn in 0..20 {
            let mut target = subject.make(SIZE, 32);
            let most = target.limits().max_in_flight.min(32);
            for tag in 0..most {
                let offset = u64::from(tag + turn) * u64::from(BLOCK);
                target
                    .submit(Tag(tag), block(kind, offset, BLOCK))
                    .expect("a free slot");
            }
            // Some are given to the kernel, some not even that.
            if turn % 2 == 0 {
                target
                    .wait(Some(Instant::ZERO), &mut Vec::new())
                    .expect("the target works");
            }
        }
    }
    assert_eq!(subject.first_wrong_byte(0, SIZE / 2), None);
}
