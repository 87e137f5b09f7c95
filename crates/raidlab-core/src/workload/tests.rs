//! Every kind of workload driven against a model small enough to reckon by hand, and its operations
//! looked at one by one.
mod arrivals;
mod files;
mod passes;
mod random;

use super::spec::{AnyWorkload, Durable, Handle, WorkloadSpec};
use super::*;
use crate::drive::{DriveOptions, Driven, Lane, drive};
use crate::op::{FileOp, OpenMode};
use crate::rng::Stream;
use crate::target::{Completion, Limits, Tag, Target, TargetError};
use crate::time::Span;
use crate::units::Bytes;
use proptest::prelude::*;

/// Takes `service` for each operation, all that are in flight at the same time, and remembers them.
pub(crate) struct Model {
    now: Instant,
    service: Span,
    running: Vec<(Instant, Tag, u32)>,
    pub(crate) log: Vec<(Instant, Op)>,
    most: usize,
}

impl Model {
    pub(crate) fn new(service: Span) -> Self {
        Self {
            now: Instant(3),
            service,
            running: Vec::new(),
            log: Vec::new(),
            most: 0,
        }
    }
}

impl Target for Model {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: 256,
            alignment: 1,
            size: u64::MAX,
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        self.log.push((self.now, op));
        self.running
            .push((self.now + self.service, tag, op.bytes()));
        self.most = self.most.max(self.running.len());
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let next = self.running.iter().map(|(at, ..)| *at).min();
        let Some(stop) = next.into_iter().chain(until).min() else {
            return Ok(());
        };
        self.now = self.now.max(stop);
        let now = self.now;
        for (at, tag, bytes) in self.running.extract_if(.., |(at, ..)| *at <= now) {
            done.push(Completion {
                tag,
                result: Ok(bytes),
                at,
            });
        }
        Ok(())
    }
}

/// Drives one workload alone.
fn run(spec: WorkloadSpec, depth: u32, service: Span) -> (Driven, Model) {
    run_seeded(spec, depth, service, 9)
}

fn run_seeded(spec: WorkloadSpec, depth: u32, service: Span, seed: u64) -> (Driven, Model) {
    let mut model = Model::new(service);
    let mut lanes = [Lane {
        workload: spec.build(Stream::new(seed)),
        depth,
    }];
    let driven = drive(&mut lanes, &mut model, &DriveOptions::default(), &mut ()).unwrap();
    (driven, model)
}

/// The operations of a workload, each ended at once, with whether they count.
fn ops(spec: WorkloadSpec) -> Vec<(Op, bool)> {
    let mut workload = spec.build(Stream::new(9));
    let mut all = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        match workload.next(now) {
            Next::Issue {
                op,
                intended,
                counted,
            } => {
                all.push((op, counted));
                end(&mut workload, op, intended.unwrap_or(now), counted);
            }
            Next::Idle { until } => now = until.expect("nothing is in flight"),
            Next::Done => return all,
        }
        assert!(all.len() < 1_000_000, "it does not end");
    }
}

fn end(workload: &mut AnyWorkload, op: Op, at: Instant, counted: bool) {
    workload.completed(&OpRecord {
        index: 0,
        op,
        intended: at,
        submitted: at,
        completed: at,
        result: Ok(op.bytes()),
        counted,
    });
}

fn file_ops(spec: WorkloadSpec) -> Vec<(FileOp, bool)> {
    ops(spec)
        .into_iter()
        .map(|(op, counted)| match op {
            Op::File(op) => (op, counted),
            Op::Block(op) => panic!("a block op: {op:?}"),
        })
        .collect()
}

fn handle() -> Handle {
    Handle::new(0, OpenMode::Update)
}

/// Opened first, closed last, and each once, uncounted.
fn framed(ops: &[(FileOp, bool)], file: u32) {
    let of = |op: &FileOp| match *op {
        FileOp::Open { file, .. }
        | FileOp::Close { file }
        | FileOp::Read { file, .. }
        | FileOp::Scan { file, .. }
        | FileOp::Write { file, .. }
        | FileOp::Sync { file, .. } => Some(file),
        _ => None,
    };
    let mine: Vec<_> = ops.iter().filter(|(op, _)| of(op) == Some(file)).collect();
    assert!(matches!(mine[0], (FileOp::Open { .. }, false)));
    assert!(matches!(
        mine[mine.len() - 1],
        (FileOp::Close { .. }, false)
    ));
    let frames = mine
        .iter()
        .filter(|(op, _)| matches!(op, FileOp::Open { .. } | FileOp::Close { .. }));
    assert_eq!(frames.count(), 2);
}
