//! Fast-forward: a stretch of like operations at a steady pace is not run to its end. Most of it is
//! leapt over, and the pace observed before goes into the tally for it.
//!
//! Only a model can be leapt over ([`Target::LEAPS`]). It is asked how far all is alike, its place is
//! moved there, and it runs on: the first operations after the leap find another state than they would
//! have found (the arm has to move, nothing is read ahead), so that as many as a window holds are run
//! to warm up, and count as if they had kept the pace. So a leap costs no accuracy beyond that of the
//! pace, which [`Steady`] bounds.
use super::driver::LaneState;
use super::steady::{Pace, Seen, Steady, WINDOW, WINDOW_OF_WRITES};
use super::{Lane, Tally};
use crate::target::Target;
use crate::time::{Instant, Span};
use crate::workload::{Stretch, Workload};

/// The state at the beginning of a window.
struct Mark {
    tally: Tally,
    issued: u64,
    stretch: Stretch,
    /// Bytes from here on that are alike to the target.
    alike: u64,
}

/// Operations after a leap, until the model has warmed up.
struct Warm {
    /// At the beginning of the windows that are repeated, and at their end, when the leap began.
    windows: (Tally, Tally),
    pace: Pace,
    /// How many times they were leapt over.
    times: u64,
    begun: Instant,
    /// Counted operations when the model has warmed up.
    until: u64,
}

/// Watches one lane and leaps where it can.
pub(super) struct Leaper {
    steady: Steady,
    mark: Option<Box<Mark>>,
    warm: Option<Box<Warm>>,
    /// Nothing is looked at before.
    asleep: Instant,
}

impl Leaper {
    pub(super) fn new(from: Instant) -> Self {
        Self {
            steady: Steady::new(WINDOW),
            mark: None,
            warm: None,
            asleep: from,
        }
    }

    /// After a turn at time `now`; by how much the clock was put forward.
    #[inline]
    pub(super) fn turn<W: Workload, T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        target: &mut T,
        now: Instant,
    ) -> Span {
        if now < self.asleep {
            return Span::ZERO;
        }
        let counted = state.tally.ops;
        if let Some(warm) = &self.warm {
            if counted < warm.until {
                return Span::ZERO;
            }
            return self.warmed(state, target, now);
        }
        match self.steady.observe(now, counted) {
            Seen::Nothing => {}
            Seen::First => self.begin(lane, state, target, now),
            Seen::Mark => {
                self.goes_on(lane, state, target, now);
            }
            Seen::Steady(pace) => {
                if let Some(ahead) = self.goes_on(lane, state, target, now) {
                    self.leap(lane, state, target, ahead, pace, now);
                }
            }
        }
        Span::ZERO
    }

    /// The first window begins here, when there is a stretch at all.
    #[cold]
    fn begin<W: Workload, T: Target>(
        &mut self,
        lane: &Lane<W>,
        state: &LaneState,
        target: &mut T,
        now: Instant,
    ) {
        self.mark = None;
        let Some(stretch) = lane.workload.stretch() else {
            self.steady.restart();
            self.asleep = now + self.steady.window();
            return;
        };
        let window = if stretch.writes {
            WINDOW_OF_WRITES
        } else {
            WINDOW
        };
        if self.steady.window() < window {
            self.steady = Steady::new(window);
            self.steady.observe(now, state.tally.ops);
        }
        self.mark = Some(Box::new(Mark {
            tally: state.tally.clone(),
            issued: state.issued,
            stretch,
            alike: target.alike(&stretch),
        }));
    }

    /// What comes next, and how much of it is alike, when that has been so since the first window;
    /// otherwise the first one begins here.
    #[cold]
    fn goes_on<W: Workload, T: Target>(
        &mut self,
        lane: &Lane<W>,
        state: &LaneState,
        target: &mut T,
        now: Instant,
    ) -> Option<(Stretch, u64)> {
        let stretch = lane.workload.stretch();
        let alike = stretch.as_ref().map_or(0, |stretch| target.alike(stretch));
        let same =
            |here: &Stretch, first: &Stretch| first.file == here.file && first.offset < here.offset;
        if let (Some(here), Some(first)) = (stretch, &self.mark)
            && same(&here, &first.stretch)
            && first.stretch.offset + first.alike == here.offset + alike
        {
            return Some((here, alike));
        }
        self.steady.restart();
        self.steady.observe(now, state.tally.ops);
        self.begin(lane, state, target, now);
        None
    }

    #[cold]
    fn leap<W: Workload, T: Target>(
        &mut self,
        lane: &mut Lane<W>,
        state: &mut LaneState,
        target: &mut T,
        (stretch, alike): (Stretch, u64),
        pace: Pace,
        now: Instant,
    ) {
        let piece = u64::from(stretch.piece.max(1));
        let mut room = (alike / piece).min(stretch.pieces);
        if let Some(until) = stretch.until {
            room = room.min(pace.amount_in(until.since(now)));
        }
        let warm = pace.amount_in(self.steady.window()).max(1);
        let times = room.saturating_sub(warm) / pace.amount.max(1);
        let Some(before) = self.mark.take_if(|_| times > 0) else {
            return;
        };
        let pieces = times * pace.amount;
        target.leap(&stretch, pieces * piece);
        lane.workload.skip(pieces);
        state.issued += times * (state.issued - before.issued);
        self.warm = Some(Box::new(Warm {
            windows: (before.tally, state.tally.clone()),
            pace,
            times,
            begun: now,
            until: state.tally.ops + warm,
        }));
    }

    /// The model has warmed up (or the drive ends before it has): what was leapt over is booked, and
    /// the clock put forward to where the pace would have brought it. By how much.
    #[cold]
    pub(super) fn warmed<T: Target>(
        &mut self,
        state: &mut LaneState,
        target: &mut T,
        now: Instant,
    ) -> Span {
        let Some(warm) = self.warm.take() else {
            return Span::ZERO;
        };
        self.steady.restart();
        let (earlier, later) = &warm.windows;
        let run = state.tally.ops - later.ops;
        let due = warm.pace.time_for(warm.times * warm.pace.amount + run);
        let forward = Span(due.0.saturating_sub(now.since(warm.begun).0));
        target.pass(forward);
        // What was run to warm up counts as the windows did.
        let mut tally = later.clone();
        tally.repeat(earlier, later, warm.times, warm.begun, warm.pace.time);
        tally.repeat_part(earlier, later, run, target.now());
        state.tally = tally;
        forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{DriveOptions, Driven, drive};
    use crate::op::{Op, OpClass};
    use crate::rng::Stream;
    use crate::target::{Completion, Limits, Tag, TargetError};
    use crate::units::{Bytes, Extent};
    use crate::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
    use proptest::prelude::*;

    /// Serves one operation after another; the service time grows from zone to zone, every 16th
    /// operation takes longer, and one that does not follow the one before takes a seek more.
    struct Zoned {
        leaps: bool,
        now: Instant,
        skipped: Span,
        zone: u64,
        service: Span,
        served: u64,
        next: u64,
        free: Instant,
        queue: Vec<(Instant, Tag)>,
        leapt: u64,
    }

    impl Zoned {
        fn new(leaps: bool, zone: u64, service: Span) -> Self {
            Self {
                leaps,
                now: Instant::ZERO,
                skipped: Span::ZERO,
                zone,
                service,
                served: 0,
                next: 0,
                free: Instant::ZERO,
                queue: Vec::new(),
                leapt: 0,
            }
        }
    }

    impl Target for Zoned {
        const LEAPS: bool = true;

        fn limits(&self) -> Limits {
            Limits {
                max_in_flight: 64,
                alignment: 512,
                size: 1 << 40,
            }
        }

        fn now(&self) -> Instant {
            self.now + self.skipped
        }

        fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
            let Op::Block(block) = op else {
                panic!("blocks alone")
            };
            let mut service = self.service.0 * (10 + block.offset / self.zone) / 10;
            if self.served.is_multiple_of(16) {
                service += self.service.0;
            }
            if block.offset != self.next {
                service += 10_000_000;
            }
            self.served += 1;
            self.next = block.offset + u64::from(block.len);
            self.free = self.free.max(self.now) + Span(service);
            self.queue.push((self.free, tag));
            Ok(())
        }

        fn wait(
            &mut self,
            _: Option<Instant>,
            done: &mut Vec<Completion>,
        ) -> Result<(), TargetError> {
            if self.queue.is_empty() {
                return Ok(());
            }
            let (at, tag) = self.queue.remove(0);
            self.now = at;
            done.push(Completion {
                tag,
                result: Ok(65_536),
                at: at + self.skipped,
            });
            Ok(())
        }

        fn alike(&mut self, stretch: &Stretch) -> u64 {
            if self.leaps {
                self.zone - stretch.offset % self.zone
            } else {
                0
            }
        }

        fn leap(&mut self, _: &Stretch, bytes: u64) {
            self.leapt += bytes;
        }

        fn pass(&mut self, time: Span) {
            self.skipped += time;
        }
    }

    fn run(leaps: bool, zone: u64, service: Span, depth: u32, ops: u64) -> (Driven, u64) {
        let spec = BlockSpec {
            order: Order::Sequential,
            read_percent: 100,
            block: 65_536,
            region: Extent::new(0, ops * 65_536),
            first: 0,
            limit: Limit {
                ops: Some(ops),
                time: None,
            },
            arrival: Arrival::Closed,
            flush_every: 0,
            flush_end: false,
        };
        let mut target = Zoned::new(leaps, zone, service);
        let mut lanes = [Lane {
            workload: Blocks::new(spec, Stream::new(1)),
            depth,
        }];
        let driven = drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ());
        (driven.expect("it is served"), target.leapt)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn leaping_changes_nothing_but_the_effort(zone_mib in 500_u64..2000, service_us in 800_u64..2000, depth in 1_u32..4, zones in 2_u64..4) {
            let zone = zone_mib << 20;
            let ops = zone * zones / 65_536;
            let service = Span::from_micros(service_us);
            let (full, none) = run(false, zone, service, depth, ops);
            let (fast, leapt) = run(true, zone, service, depth, ops);
            let (full, fast) = (&full.tallies[0], &fast.tallies[0]);
            prop_assert_eq!(none, 0);
            let long_enough = zone / 65_536 * service.0 > 17_000_000_000;
            prop_assert!(leapt > 0 || !long_enough, "a zone has room for leaps");
            prop_assert_eq!((full.ops, full.bytes), (fast.ops, fast.bytes));
            prop_assert_eq!((full.all_ops, full.bytes_read), (fast.all_ops, fast.bytes_read));
            let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.001;
            prop_assert!(close(full.elapsed().as_secs_f64(), fast.elapsed().as_secs_f64()));
            prop_assert!(close(full.mean_in_flight(), fast.mean_in_flight()));
            let latencies = [full, fast].map(|t| t.latencies(OpClass::Read).expect("reads"));
            let [count, sum] = [latencies.map(|l| l.count() as f64), latencies.map(|l| l.sum() as f64)];
            prop_assert!(close(count[0], count[1]) && close(sum[0], sum[1]), "{count:?} {sum:?}");
            let [a, b] = [full, fast].map(|t| t.series.windows.iter().map(|w| w.bytes).sum::<u64>());
            prop_assert_eq!(a, b);
            prop_assert!(full.series.windows.len().abs_diff(fast.series.windows.len()) <= 1);
        }
    }

    #[test]
    fn a_pass_of_a_hundred_terabytes_is_leapt_over() {
        let (driven, leapt) = run(true, 1 << 42, Span::from_micros(1000), 1, 100 << 24);
        assert_eq!(driven.tallies[0].bytes, Bytes::gib(100 << 10).0);
        assert!(leapt > 99 << 40, "{leapt}");
    }
}
