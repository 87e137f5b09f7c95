//! What the benchmarks share: their arguments, their clock, and a load of block requests.
#![allow(dead_code, reason = "each benchmark uses a part of it")]
use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::rng::Stream;
use raidlab_core::target::Target;
use raidlab_core::time::Span;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
use std::time::Instant;

/// Time this thread has been on a processor in seconds, so that other load on the machine counts
/// little; wall time where the kernel does not tell.
pub(crate) fn on_processor(begin: Instant) -> f64 {
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| begin.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Which cases are wanted, and how: an argument picks those whose name contains it; with `--count`
/// each runs once and a tenth as long, for a tool that counts instructions.
pub(crate) struct Arguments {
    wanted: Vec<String>,
    count: bool,
}

impl Arguments {
    pub(crate) fn read() -> Self {
        let all = std::env::args().skip(1);
        let (options, wanted): (Vec<_>, Vec<_>) = all.partition(|a| a.starts_with('-'));
        Self {
            wanted,
            count: options.iter().any(|option| option == "--count"),
        }
    }

    pub(crate) fn want(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|w| name.contains(w.as_str()))
    }

    /// How often a case is run; the best is told.
    pub(crate) fn rounds(&self) -> usize {
        if self.count { 1 } else { 3 }
    }

    pub(crate) fn ops(&self, ops: u64) -> u64 {
        if self.count { ops / 10 } else { ops }
    }
}

/// Block requests in a closed loop.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) order: Order,
    pub(crate) read_percent: u8,
    pub(crate) block: u32,
    pub(crate) depth: u32,
    pub(crate) ops: u64,
}

/// What came of a load, by the fastest round.
#[derive(Default)]
pub(crate) struct Figures {
    /// Millions of requests, and of operations of disks, a second of processor time.
    pub(crate) requests: f64,
    pub(crate) disk_ops: f64,
    /// Requests a second of simulated time.
    pub(crate) simulated: f64,
}

impl Load {
    /// Drives it against a new target each round, with all statistics on; `disk_ops` tells what its
    /// disks have done.
    pub(crate) fn run<T: Target>(
        &self,
        arguments: &Arguments,
        mut target: impl FnMut() -> T,
        disk_ops: impl Fn(&T) -> u64,
    ) -> Figures {
        let mut best = Figures::default();
        for _ in 0..arguments.rounds() {
            let mut target = target();
            let (block, ops) = (u64::from(self.block), arguments.ops(self.ops));
            let spec = BlockSpec {
                order: self.order,
                read_percent: self.read_percent,
                block: self.block,
                region: Extent::new(0, target.limits().size / block * block),
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
                depth: self.depth,
            }];
            let begin = Instant::now();
            let before = on_processor(begin);
            // Nobody watches.
            let options = DriveOptions {
                poll: Span::from_secs(3600),
                ..DriveOptions::default()
            };
            let driven =
                drive(&mut lanes, &mut target, &options, &mut ()).expect("the target answers");
            let micros = (on_processor(begin) - before) * 1e6;
            if ops as f64 / micros > best.requests {
                best = Figures {
                    requests: ops as f64 / micros,
                    disk_ops: disk_ops(&target) as f64 / micros,
                    simulated: ops as f64 / driven.tallies[0].elapsed().as_secs_f64(),
                };
            }
        }
        best
    }
}
