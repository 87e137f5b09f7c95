//! This repository's engine, as a phase of a trial runs it.
use crate::Result;
use crate::configs::{Config, Figures};
use crate::place::Target;
use raidlab_core::outcome::PhaseOutcome;
use raidlab_core::phase::{Access, Counted, Evidence, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::units::Extent;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Limit, Order, WorkloadSpec};
use raidlab_io::run::{Place, RunOptions, run_phase};
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes of one read.
pub(crate) const BLOCK: u32 = 4096;

/// Before what is counted, where the other side has it so, too: t/io_uring's first second is left out, in
/// which an idle machine's clock comes up and its caches fill.
const WARM_UP: u64 = 1000;

pub(crate) fn run(path: &Path, config: &Config, millis: u64) -> Result<Figures> {
    let place = Place::open(path)?;
    let mut quiet = |_| ControlFlow::Continue(());
    let mut run = |millis| {
        let phase = phase(config, millis);
        run_phase(&phase, &place, &RunOptions::new(1), &mut quiet)
    };
    if config.target == Target::Hot {
        run(WARM_UP)?;
    }
    Ok(figures(&run(millis)?))
}

fn phase(config: &Config, millis: u64) -> Phase {
    let workload = WorkloadSpec::Blocks(BlockSpec {
        order: Order::Random,
        read_percent: 100,
        block: BLOCK,
        region: Extent::new(0, config.target.size()),
        first: 0,
        limit: Limit {
            ops: None,
            time: Some(Span::from_millis(millis)),
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    });
    let access = if config.target.is_direct() {
        Access::Direct
    } else {
        Access::Buffered
    };
    Phase {
        id: "read".to_owned(),
        title: "random reads".to_owned(),
        jobs: vec![Job {
            workload,
            depth: config.depth,
        }],
        access,
        counted: Counted::Ops,
        cold: false,
        evidence: Evidence::None,
        needs: Vec::new(),
        fresh: Vec::new(),
        ramp: Span::ZERO,
    }
}

fn figures(outcome: &PhaseOutcome) -> Figures {
    let ops = outcome.ops as f64;
    let (user, system) = (outcome.cpu.user.0 as f64, outcome.cpu.system.0 as f64);
    Figures {
        iops: outcome.ops_per_second().unwrap_or(0.0),
        cpu_ns: (user + system) / ops,
        user_ns: Some(user / ops),
        in_flight: Some(outcome.mean_in_flight),
    }
}
