//! Operations that a target would not take at first (EAGAIN).
use super::*;
use crate::rng::Stream;
use crate::units::Extent;
use crate::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};

/// Ends all operations after a millisecond, and refuses some of them the first few times.
struct Fickle {
    now: Instant,
    /// What is in flight: the slot, what was asked, and how often it was refused.
    flying: Vec<(Tag, Op, u32)>,
    /// Offsets that are multiples of this are refused.
    refuses: u64,
    /// How often each of them is.
    times: u32,
    /// Whether it takes operations again.
    takes_again: bool,
    /// What was refused, as it was submitted at last.
    ended: Vec<(u64, u32)>,
}

impl Fickle {
    fn new(refuses: u64, times: u32) -> Self {
        Self {
            now: Instant(5),
            flying: Vec::new(),
            refuses,
            times,
            takes_again: true,
            ended: Vec::new(),
        }
    }

    fn begin(&mut self, tag: Tag, op: Op, refused: u32) {
        assert!(
            self.flying.iter().all(|(other, ..)| *other != tag),
            "the slot is in use"
        );
        self.flying.push((tag, op, refused));
    }
}

impl Target for Fickle {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: 64,
            alignment: 512,
            size: 1 << 30,
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        self.begin(tag, op, 0);
        Ok(())
    }

    fn again(&mut self, tag: Tag, op: Op) -> Result<bool, TargetError> {
        if self.takes_again {
            let Op::Block(block) = op else { unreachable!() };
            let refused = self.ended.iter().rposition(|(at, _)| *at == block.offset);
            let (_, times) = self.ended.remove(refused.expect("it was refused"));
            self.begin(tag, op, times);
        }
        Ok(self.takes_again)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        if self.flying.is_empty() {
            self.now = until.map_or(self.now, |until| self.now.max(until));
            return Ok(());
        }
        self.now += Span::from_millis(1);
        for (tag, op, refused) in self.flying.drain(..) {
            let Op::Block(block) = op else { unreachable!() };
            let refuse = block.offset.is_multiple_of(self.refuses) && refused < self.times;
            if refuse {
                self.ended.push((block.offset, refused + 1));
            }
            let result = if refuse {
                Err(Errno::AGAIN)
            } else {
                Ok(op.bytes())
            };
            done.push(Completion {
                tag,
                result,
                at: self.now,
            });
        }
        Ok(())
    }
}

/// `count` reads one after another, from offset 0, many at once.
fn blocks(count: u64) -> Blocks {
    let spec = BlockSpec {
        order: Order::Sequential,
        read_percent: 100,
        block: 512,
        region: Extent::new(0, 1 << 20),
        first: 0,
        limit: Limit {
            ops: Some(count),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    };
    Blocks::new(spec, Stream::new(3))
}

fn driven<W: Workload>(workload: W, depth: u32, target: &mut Fickle) -> Result<Tally, DriveError> {
    let mut lanes = [Lane { workload, depth }];
    let mut driven = drive(&mut lanes, target, &DriveOptions::default(), &mut ())?;
    Ok(driven.tallies.remove(0))
}

#[test]
fn what_is_refused_for_now_is_submitted_again_and_was_waited_for_all_the_while() {
    // One at a time, some at once, and by a workload that is asked for each.
    for depth in [1, 2, 8] {
        for at_once in [false, true] {
            let mut target = Fickle::new(4 * 512, 2);
            let tally = if at_once {
                driven(blocks(100), depth, &mut target).unwrap()
            } else {
                driven(OneByOne(blocks(100)), depth, &mut target).unwrap()
            };
            assert_eq!((tally.ops, tally.bytes), (100, 51_200), "depth {depth}");
            assert_eq!((tally.all_ops, tally.bytes_read), (100, 51_200));
            assert_eq!(tally.again, 50, "25 of them, twice each");
            let response = tally.latencies(OpClass::Read).unwrap();
            assert_eq!(response.count(), 100);
            assert_eq!(response.max(), Some(Span::from_millis(3)));
            let sum = Span::from_millis(75 + 25 * 3).0;
            assert_eq!(response.sum(), u128::from(sum));
            let waited = tally.mean_in_flight() * tally.elapsed().0 as f64;
            assert!((waited / sum as f64 - 1.0).abs() < 1e-9, "Little's law");
        }
    }
}

#[test]
fn what_is_refused_for_ever_fails_with_how_often() {
    let mut target = Fickle::new(512 * 7, u32::MAX);
    let failed = driven(blocks(100), 4, &mut target).unwrap_err();
    // The first one, at offset 0.
    assert!(
        matches!(
            failed,
            DriveError::Refused {
                index: 0,
                times: 65,
                ..
            }
        ),
        "{failed}"
    );
    assert_eq!(
        failed.to_string(),
        "operation 0 (read of 512 bytes at 0) was refused 65 times (EAGAIN)"
    );
    assert!(target.flying.is_empty(), "what was in flight is waited for");
}

#[test]
fn how_often_is_counted_for_each_operation_and_not_for_its_slot() {
    let mut target = Fickle::new(512, 40);
    let tally = driven(blocks(100), 1, &mut target).unwrap();
    assert_eq!((tally.ops, tally.again), (100, 4000));
}

#[test]
fn a_target_that_has_no_other_way_to_take_it_has_failed() {
    for depth in [1, 8] {
        let mut target = Fickle::new(4 * 512, 1);
        target.takes_again = false;
        let failed = driven(blocks(100), depth, &mut target).unwrap_err();
        assert!(
            matches!(
                failed,
                DriveError::Op {
                    index: 0,
                    errno: Errno::AGAIN,
                    ..
                }
            ),
            "{failed}"
        );
    }
}
