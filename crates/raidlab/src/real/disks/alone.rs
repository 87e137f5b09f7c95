//! The models without anything above them.
use super::{Order, Phase};
use crate::exit::{BAD_REQUEST, Failure};
use raidlab_core::time::Instant;
use raidlab_nbd::engine::{Engine, Job};
use raidlab_sim::fabric::Fabric;

/// Requests a second of each phase, all disks together.
pub(super) fn alone(order: &Order) -> Result<Vec<f64>, Failure> {
    let fabric = Fabric::new(&order.fabric()?, order.seed)
        .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    let mut engine = Engine::new(fabric);
    let mut now = Instant::ZERO;
    let phases = order.phases.iter();
    Ok(phases
        .map(|phase| one(&mut engine, order, phase, &mut now))
        .collect())
}

fn one(engine: &mut Engine, order: &Order, phase: &Phase, now: &mut Instant) -> f64 {
    let disks = order.models.len() as u64;
    let begun = *now;
    let submit = |engine: &mut Engine, at, disk: u64, index: u64| {
        let offset = phase.offset(order, disk, index);
        // Neither reads nor writes are nothing to do.
        if let Some(job) = Job::of(disk as u32, phase.action(), offset, phase.block, false) {
            engine.submit(at, disk, job);
        }
    };
    let mut done = Vec::new();
    let mut indices = vec![0_u64; disks as usize];
    for disk in 0..disks {
        submit(engine, begun, disk, 0);
    }
    let mut rate = 0.0;
    let mut left = disks;
    while left > 0 {
        let Some(next) = engine.next_event() else {
            break;
        };
        engine.advance(next, &mut done);
        for end in done.drain(..) {
            let index = &mut indices[end.token as usize];
            *index += 1;
            *now = end.at;
            if *index < phase.count {
                submit(engine, end.at, end.token, *index);
            } else {
                left -= 1;
                rate += phase.count as f64 * 1e9 / end.at.since(begun).0.max(1) as f64;
            }
        }
    }
    rate
}
