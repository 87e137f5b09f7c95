//! A lane leaps over a model with zones, and nothing changes but the effort.
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
#[derive(Clone)]
struct Zoned {
    leaps: bool,
    /// After a leap all goes on by a tenth faster, for ever.
    fickle: bool,
    kept: Option<Box<Self>>,
    /// How often it went back.
    backs: u32,
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
            fickle: false,
            kept: None,
            backs: 0,
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
        if self.fickle && self.leapt > 0 {
            service -= service / 10;
        }
        self.served += 1;
        self.next = block.offset + u64::from(block.len);
        self.free = self.free.max(self.now) + Span(service);
        self.queue.push((self.free, tag));
        Ok(())
    }

    fn wait(&mut self, _: Option<Instant>, done: &mut Vec<Completion>) -> Result<(), TargetError> {
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

    fn alike(&mut self, stretch: &Stretch, _: bool) -> u64 {
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

    fn keep(&mut self) -> bool {
        self.kept = None;
        self.kept = Some(Box::new(self.clone()));
        true
    }

    fn back(&mut self) {
        let backs = self.backs + 1;
        *self = *self.kept.take().expect("it was kept");
        self.backs = backs;
    }
}

fn run(leaps: bool, zone: u64, service: Span, depth: u32, ops: u64) -> (Driven, u64) {
    let mut target = Zoned::new(leaps, zone, service);
    let driven = run_on(&mut target, depth, ops);
    (driven, target.leapt)
}

fn run_on(target: &mut Zoned, depth: u32, ops: u64) -> Driven {
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
        flush_data: false,
        flush_end: false,
    };
    let mut lanes = [Lane {
        workload: Blocks::new(spec, Stream::new(1)),
        depth,
    }];
    let driven = drive(&mut lanes, target, &DriveOptions::default(), &mut ());
    driven.expect("it is served")
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
        let long_enough = zone / 65_536 * service.0 > 26_000_000_000;
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

#[test]
fn a_leap_after_which_another_pace_keeps_itself_up_is_taken_back() {
    let (zone, service, ops) = (1 << 30, Span::from_micros(3000), 3 << 14);
    let (full, _) = run(false, zone, service, 3, ops);
    let mut target = Zoned::new(true, zone, service);
    target.fickle = true;
    let fast = run_on(&mut target, 3, ops);
    assert_eq!(target.backs, 3, "a leap was tried in each zone");
    assert_eq!((target.leapt, target.skipped), (0, Span::ZERO));
    let [full, fast] = [&full.tallies[0], &fast.tallies[0]];
    assert_eq!(full.elapsed(), fast.elapsed());
    assert_eq!(full.series, fast.series);
    assert_eq!(
        full.latencies(OpClass::Read),
        fast.latencies(OpClass::Read),
        "run again from where the leap began, to the last operation"
    );
}
