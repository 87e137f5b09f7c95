//! Lanes by chance on a model that always goes on alike, or does not.
use super::*;
use crate::drive::{DriveOptions, Driven, drive};
use crate::op::{Op, OpClass};
use crate::rng::Stream;
use crate::target::{Completion, Limits, Tag, TargetError};
use crate::units::Extent;
use crate::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};

/// Serves all at once, each for 50 to 150 µs by chance; three times as long once its room has been taken.
struct Quick {
    repeats: bool,
    now: Instant,
    forward: Span,
    served: u64,
    /// Operations that it has room for, of which so many are passed over in a second.
    room: u64,
    at_first: Option<(Instant, u64)>,
    rate: u64,
    queue: Vec<(Instant, Tag)>,
    leaps: Vec<Span>,
}

impl Quick {
    fn new(repeats: bool, room: u64) -> Self {
        Self {
            repeats,
            now: Instant(7),
            forward: Span::ZERO,
            served: 0,
            room,
            at_first: None,
            rate: 0,
            queue: Vec::new(),
            leaps: Vec::new(),
        }
    }
}

impl Target for Quick {
    const LEAPS: bool = true;

    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: 64,
            alignment: 512,
            size: 1 << 40,
        }
    }

    fn now(&self) -> Instant {
        self.now + self.forward
    }

    fn submit(&mut self, tag: Tag, _: Op) -> Result<(), TargetError> {
        let chance = 50_000 + Stream::new(5).below(self.served, 100_000);
        self.served += 1;
        let full = self.room == 0;
        self.room = self.room.saturating_sub(1);
        let service = Span(if full { 3 * chance } else { chance });
        self.queue.push((self.now + service, tag));
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let until = until.map(|until| Instant(until.0.saturating_sub(self.forward.0)));
        let next = self.queue.iter().map(|(at, _)| *at).min();
        let stop = next.into_iter().chain(until).min();
        self.now = self.now.max(stop.unwrap_or(self.now));
        let (now, forward) = (self.now, self.forward);
        for (at, tag) in self.queue.extract_if(.., |(at, _)| *at <= now) {
            done.push(Completion {
                tag,
                result: Ok(4096),
                at: at + forward,
            });
        }
        Ok(())
    }

    fn stays(&mut self, _: &Chance, first: bool) -> Option<Span> {
        if first {
            self.at_first = self.repeats.then_some((self.now, self.room));
            return self.at_first.map(|_| Span::MAX);
        }
        let (at, room) = self.at_first.take()?;
        let (time, taken) = (self.now.since(at).0, room - self.room);
        self.rate = taken * 1_000_000_000 / time;
        match (self.room, taken) {
            (_, 0) => Some(Span::MAX),
            (0, _) => None,
            (left, _) => {
                let lasts = u128::from(left) * u128::from(time) / u128::from(taken);
                Some(Span(u64::try_from(lasts).unwrap_or(u64::MAX)))
            }
        }
    }

    fn pass_alike(&mut self, time: Span) {
        self.leaps.push(time);
        self.forward += time;
        let taken = u128::from(self.rate) * u128::from(time.0) / 1_000_000_000;
        self.room -= taken as u64;
    }
}

fn spec(order: Order, time: Span) -> BlockSpec {
    BlockSpec {
        order,
        read_percent: 70,
        block: 4096,
        region: Extent::new(0, 1 << 36),
        first: 0,
        limit: Limit {
            ops: None,
            time: Some(time),
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    }
}

fn run(target: &mut Quick, specs: &[BlockSpec], ramp: Span) -> Driven {
    let lane = |(number, spec): (usize, &BlockSpec)| Lane {
        workload: Blocks::new(*spec, Stream::new(number as u64)),
        depth: 2,
    };
    let mut lanes: Vec<_> = specs.iter().enumerate().map(lane).collect();
    let options = DriveOptions {
        ramp,
        ..DriveOptions::default()
    };
    drive(&mut lanes, target, &options, &mut ()).expect("all is served")
}

/// Full and with repeats: what was passed over each time, and the tallies of both.
fn both(specs: &[BlockSpec], ramp: Span, room: u64) -> (Vec<Span>, Driven, Driven) {
    let (mut slow, mut fast) = (Quick::new(false, room), Quick::new(true, room));
    let full = run(&mut slow, specs, ramp);
    let repeated = run(&mut fast, specs, ramp);
    assert!(slow.leaps.is_empty() && slow.served / 3 > fast.served / 2);
    (fast.leaps, full, repeated)
}

fn close(a: f64, b: f64, within: f64, what: &str) {
    assert!((a / b - 1.0).abs() < within, "{what}: {a} {b}");
}

fn assert_alike(full: &Tally, fast: &Tally) {
    let counts = |t: &Tally| [t.ops, t.bytes, t.all_ops, t.bytes_read, t.bytes_written];
    for (a, b) in counts(full).into_iter().zip(counts(fast)) {
        // Which of them write is chance, too.
        close(a as f64, b as f64, 0.02, "counts");
    }
    assert_eq!(fast.bytes, fast.ops * 4096);
    close(full.mean_in_flight(), fast.mean_in_flight(), 0.001, "depth");
    close(
        full.elapsed().as_secs_f64(),
        fast.elapsed().as_secs_f64(),
        0.001,
        "time",
    );
    for class in [OpClass::Read, OpClass::Write] {
        let [a, b] = [full, fast].map(|t| t.latencies(class).unwrap());
        for percent in [1.0, 50.0, 99.0, 99.9] {
            let [a, b] = [a, b].map(|l| l.percentile(percent).unwrap().0 as f64);
            close(a, b, 0.02, "response");
        }
        close(a.count() as f64, b.count() as f64, 0.02, "responses");
    }
    // Each second of the course has its operations, and all of them are in it.
    let windows = &fast.series.windows;
    assert_eq!(windows.iter().map(|w| w.ops).sum::<u64>(), fast.ops);
    assert_eq!(full.series.windows.len(), windows.len());
    for (number, (a, b)) in full.series.windows.iter().zip(windows).enumerate() {
        close(
            a.ops as f64,
            b.ops as f64,
            0.03,
            &format!("second {number}"),
        );
    }
}

#[test]
fn what_goes_on_alike_is_repeated_to_near_its_end() {
    let specs = [spec(Order::Random, Span::from_secs(9)); 2];
    let (leaps, full, fast) = both(&specs, Span::from_millis(500), u64::MAX);
    let [leap] = leaps[..] else {
        panic!("{leaps:?}")
    };
    assert!(leap > Span::from_secs(5), "{leap}");
    for (full, fast) in full.tallies.iter().zip(&fast.tallies) {
        assert_alike(full, fast);
    }
}

/// It is passed over to before the change, and after it again.
#[test]
fn a_change_is_run_to_and_through() {
    let specs = [spec(Order::Random, Span::from_secs(20))];
    // Two in flight, 20 000 a second.
    let (leaps, full, fast) = both(&specs, Span::ZERO, 170_000);
    assert!(leaps.len() >= 2, "{leaps:?}");
    let [full, fast] = [&full.tallies[0], &fast.tallies[0]];
    close(full.ops as f64, fast.ops as f64, 0.004, "operations");
    let [a, b] = [full, fast].map(|t| t.series.windows[7].ops as f64);
    close(a, b, 0.03, "before");
    let [a, b] = [full, fast].map(|t| t.series.windows[12].ops as f64);
    close(a, b, 0.03, "after");
}

#[test]
fn nothing_is_passed_over_where_a_lane_goes_on_otherwise_or_the_target_cannot_say() {
    let time = Span::from_secs(4);
    let chance = spec(Order::Random, time);
    let others = [
        spec(Order::Sequential, time),
        BlockSpec {
            arrival: Arrival::Poisson { per_second: 1000 },
            ..chance
        },
        BlockSpec {
            limit: Limit {
                ops: Some(50_000),
                time: Some(time),
            },
            ..chance
        },
    ];
    for other in others {
        let mut target = Quick::new(true, u64::MAX);
        run(&mut target, &[chance, other], Span::ZERO);
        assert_eq!(target.leaps, [], "{other:?}");
    }
    let mut target = Quick::new(false, u64::MAX);
    run(&mut target, &[chance], Span::ZERO);
    assert_eq!(target.leaps, []);
}
