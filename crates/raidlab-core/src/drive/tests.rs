//! The drive loop against a model small enough to reckon by hand: a server that takes `service` for
//! each operation, `width` at a time.
use super::*;
use crate::op::{BlockKind, BlockOp, Op, OpClass};
use crate::target::{Completion, Limits, Tag};
use crate::workload::{Next, OpRecord};
use std::collections::VecDeque;

struct Server {
    now: Instant,
    service: Span,
    width: usize,
    queue: VecDeque<Tag>,
    running: Vec<(Instant, Tag)>,
    result: Result<u32, Errno>,
    /// Which workload asks, and how many operations each has asked for.
    asking: Option<u32>,
    asked: Vec<u64>,
}

impl Server {
    fn new(service: Span, width: usize) -> Self {
        Self {
            now: Instant(5),
            service,
            width,
            queue: VecDeque::new(),
            running: Vec::new(),
            result: Ok(512),
            asking: None,
            asked: vec![0; 2],
        }
    }

    fn start(&mut self) {
        while self.running.len() < self.width {
            let Some(tag) = self.queue.pop_front() else {
                break;
            };
            self.running.push((self.now + self.service, tag));
        }
    }
}

impl Target for Server {
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

    fn asked_by(&mut self, workload: u32) {
        self.asking = Some(workload);
    }

    fn submit(&mut self, tag: Tag, _: Op) -> Result<(), TargetError> {
        if let Some(workload) = self.asking {
            self.asked[workload as usize] += 1;
        }
        self.queue.push_back(tag);
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        self.start();
        let next = self.running.iter().map(|(at, _)| *at).min();
        let Some(stop) = next.into_iter().chain(until).min() else {
            return Ok(());
        };
        self.now = self.now.max(stop);
        let now = self.now;
        for (at, tag) in self.running.extract_if(.., |(at, _)| *at <= now) {
            done.push(Completion {
                tag,
                result: self.result,
                at,
            });
        }
        self.start();
        Ok(())
    }
}

/// `count` reads, each due `every` after the last (or at once).
struct Reads {
    count: u64,
    issued: u64,
    every: Option<Span>,
    ended: u64,
}

impl Reads {
    fn new(count: u64, every: Option<Span>) -> Self {
        Self {
            count,
            issued: 0,
            every,
            ended: 0,
        }
    }
}

impl Workload for Reads {
    fn next(&mut self, now: Instant) -> Next {
        if self.issued == self.count {
            return Next::Done;
        }
        let due = self.every.map(|e| Instant(5 + self.issued * e.0));
        if let Some(due) = due.filter(|due| *due > now) {
            return Next::Idle { until: Some(due) };
        }
        self.issued += 1;
        let op = Op::Block(BlockOp {
            kind: BlockKind::Read,
            len: 512,
            offset: self.issued * 512,
        });
        Next::Issue {
            op,
            intended: due,
            counted: true,
        }
    }

    fn completed(&mut self, _: &OpRecord) {
        self.ended += 1;
    }
}

fn run(workload: Reads, depth: u32, target: &mut Server) -> Result<Driven, DriveError> {
    drive(
        &mut [Lane { workload, depth }],
        target,
        &DriveOptions::default(),
        &mut (),
    )
}

#[test]
fn a_target_is_told_which_workload_asks() {
    let mut target = Server::new(Span::from_micros(10), 5);
    let lanes = [(300, 2), (500, 3)];
    let mut lanes = lanes.map(|(count, depth)| Lane {
        workload: Reads::new(count, None),
        depth,
    });
    drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).unwrap();
    assert_eq!(target.asked, [300, 500]);
}

#[test]
fn a_closed_loop_keeps_its_depth_in_flight() {
    let driven = run(
        Reads::new(1000, None),
        8,
        &mut Server::new(Span::from_millis(1), 8),
    )
    .unwrap();
    let tally = &driven.tallies[0];
    assert_eq!((tally.ops, tally.bytes), (1000, 512_000));
    assert_eq!(tally.elapsed(), Span::from_millis(125));
    assert!((tally.mean_in_flight() - 8.0).abs() < 1e-9);
    assert_eq!(
        tally.latencies(OpClass::Read).unwrap().max(),
        Some(Span::from_millis(1))
    );
    assert!(tally.latencies(OpClass::Write).is_none());
    assert!(tally.delay.is_none());
}

#[test]
fn littles_law_holds_when_the_queue_is_longer_than_the_server() {
    let driven = run(
        Reads::new(500, None),
        5,
        &mut Server::new(Span::from_millis(2), 1),
    )
    .unwrap();
    let tally = &driven.tallies[0];
    let rate = tally.ops as f64 / tally.elapsed().as_secs_f64();
    let response = tally.latencies(OpClass::Read).unwrap();
    let mean = response.sum() as f64 / response.count() as f64 / 1e9;
    assert!((rate * mean - tally.mean_in_flight()).abs() < 1e-6);
}

#[test]
fn waiting_for_a_slot_counts_under_a_fixed_arrival_rate() {
    // One arrival a millisecond into a server that needs two: the queue grows without bound, and
    // the last of 100 operations was due at 99 ms and ends at 200 ms.
    let mut server = Server::new(Span::from_millis(2), 1);
    let driven = run(Reads::new(100, Some(Span::from_millis(1))), 1, &mut server).unwrap();
    let tally = &driven.tallies[0];
    assert_eq!(
        tally.latencies(OpClass::Read).unwrap().max(),
        Some(Span::from_millis(101))
    );
    assert!(tally.delay.is_some());
}

#[test]
fn arrivals_slower_than_the_server_are_waited_for() {
    let mut server = Server::new(Span::from_millis(1), 1);
    let driven = run(Reads::new(10, Some(Span::from_millis(5))), 4, &mut server).unwrap();
    let tally = &driven.tallies[0];
    assert_eq!(tally.elapsed(), Span::from_millis(46));
    assert!((tally.mean_while_any() - 1.0).abs() < 1e-9);
    // Ten of 46 ms with one in flight, and none in the others.
    assert!((tally.mean_in_flight() - 10.0 / 46.0).abs() < 1e-6);
}

#[test]
fn the_ramp_is_not_counted() {
    let options = DriveOptions {
        ramp: Span::from_millis(50),
        ..DriveOptions::default()
    };
    let mut lanes = [Lane {
        workload: Reads::new(100, None),
        depth: 1,
    }];
    let driven = drive(
        &mut lanes,
        &mut Server::new(Span::from_millis(1), 1),
        &options,
        &mut (),
    )
    .unwrap();
    // The fiftieth ends exactly when counting begins.
    assert_eq!(driven.tallies[0].ops, 51);
    assert_eq!(driven.tallies[0].elapsed(), Span::from_millis(50));
    assert_eq!(driven.tallies[0].all_ops, 100);
}

#[test]
fn a_failed_operation_ends_the_run_after_what_is_in_flight() {
    let mut server = Server::new(Span::from_millis(1), 4);
    server.result = Err(Errno(28));
    let mut lanes = [Lane {
        workload: Reads::new(100, None),
        depth: 4,
    }];
    let failed = drive(&mut lanes, &mut server, &DriveOptions::default(), &mut ()).unwrap_err();
    assert!(
        matches!(
            failed,
            DriveError::Op {
                index: 0,
                errno: Errno(28),
                ..
            }
        ),
        "{failed}"
    );
    assert_eq!(lanes[0].workload.ended, 4);
}

#[test]
fn a_short_transfer_is_an_error() {
    let mut server = Server::new(Span::from_millis(1), 1);
    server.result = Ok(100);
    let failed = run(Reads::new(1, None), 1, &mut server).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "operation 0 (read of 512 bytes at 512 bytes) moved 100 of 512 bytes"
    );
}

#[test]
fn a_target_that_answers_nothing_is_called_stalled() {
    let failed = run(
        Reads::new(1, None),
        1,
        &mut Server::new(Span::from_secs(3600), 1),
    )
    .unwrap_err();
    assert!(
        matches!(failed, DriveError::Stalled { in_flight: 1, .. }),
        "{failed}"
    );
}

#[test]
fn the_monitor_can_end_a_run() {
    let mut monitor = |p: Progress| {
        if p.ops >= 100 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let mut lanes = [Lane {
        workload: Reads::new(u64::MAX, None),
        depth: 2,
    }];
    let mut server = Server::new(Span::from_millis(1), 2);
    let driven = drive(
        &mut lanes,
        &mut server,
        &DriveOptions::default(),
        &mut monitor,
    )
    .unwrap();
    assert!(driven.interrupted);
    assert_eq!(driven.tallies[0].ops, lanes[0].workload.ended);
}

#[test]
fn lanes_share_a_target_and_are_tallied_apart() {
    let mut lanes = [
        Lane {
            workload: Reads::new(10, None),
            depth: 1,
        },
        Lane {
            workload: Reads::new(20, None),
            depth: 2,
        },
    ];
    let driven = drive(
        &mut lanes,
        &mut Server::new(Span::from_millis(1), 3),
        &DriveOptions::default(),
        &mut (),
    )
    .unwrap();
    assert_eq!(
        driven.tallies.iter().map(|t| t.ops).collect::<Vec<_>>(),
        [10, 20]
    );
}

#[test]
fn a_long_series_keeps_its_memory() {
    let mut series = Series::default();
    for hour in 0..24 * 14 {
        series.add(Span::from_secs(hour * 3600), 1, 1);
    }
    assert!(series.windows.len() <= Series::MOST);
    assert_eq!(series.windows.iter().map(|w| w.ops).sum::<u64>(), 24 * 14);
}

/// Asks one by one for what the inner workload would have ready at once.
struct OneByOne<W>(W);

impl<W: Workload> Workload for OneByOne<W> {
    fn next(&mut self, now: Instant) -> Next {
        self.0.next(now)
    }

    fn completed(&mut self, record: &OpRecord) {
        self.0.completed(record);
    }
}

#[test]
fn operations_submitted_at_once_are_tallied_like_others() {
    use crate::rng::Stream;
    use crate::units::Extent;
    use crate::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
    fn tally<W: Workload>(workload: W) -> Tally {
        let mut lanes = [Lane {
            workload,
            depth: 50,
        }];
        let mut server = Server::new(Span::from_micros(70), 7);
        let mut driven = drive(&mut lanes, &mut server, &DriveOptions::default(), &mut ()).unwrap();
        driven.tallies.remove(0)
    }
    for read_percent in [0, 60, 100] {
        let spec = BlockSpec {
            order: Order::Random,
            read_percent,
            block: 512,
            region: Extent::new(0, 1 << 20),
            first: 0,
            limit: Limit {
                ops: Some(1000),
                time: None,
            },
            arrival: Arrival::Closed,
            flush_every: 0,
            flush_data: false,
            flush_end: false,
        };
        let blocks = Blocks::new(spec, Stream::new(3));
        let (one, many) = (tally(OneByOne(blocks.clone())), tally(blocks));
        assert_eq!(many.ops, 1000);
        assert_eq!((one.ops, one.bytes), (many.ops, many.bytes));
        assert_eq!(
            (one.bytes_read, one.bytes_written, one.all_ops),
            (many.bytes_read, many.bytes_written, many.all_ops)
        );
        assert_eq!(one.response, many.response);
        assert_eq!(one.series, many.series);
        assert_eq!(one.elapsed(), many.elapsed());
    }
}

mod again;
mod row;
