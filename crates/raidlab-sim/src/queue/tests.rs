//! What the queue does whatever the scheduler, and a device to try it on.
mod deadline;
mod laws;
mod limits;
mod ordering;
mod plugging;

use super::*;
use crate::block::Origin;
use raidlab_core::units::Lba;
use raidlab_experiment::kernel::{Kernel, Scheduler};

/// A kernel of each time, by its scheduler.
pub(super) fn spec(scheduler: Scheduler, depth: u32) -> QueueSpec {
    let kernel = match scheduler {
        Scheduler::Noop | Scheduler::Anticipatory => Kernel::Linux(2, 6, 16),
        Scheduler::Deadline | Scheduler::Cfq => Kernel::Linux(2, 6, 32),
        _ => Kernel::DEFAULT,
    };
    QueueSpec::of(kernel, Some(scheduler), true, 1024, depth)
}

pub(super) fn queue(scheduler: Scheduler, depth: u32) -> Queue {
    Queue::new(QueueSpec {
        plugging: Plugging::Off,
        ..spec(scheduler, depth)
    })
}

pub(super) fn ms(n: u64) -> Instant {
    Instant(n * 1_000_000)
}

pub(super) fn read(id: u64, lba: u64, sectors: u32) -> Bio {
    of_task(id, 1, lba, sectors)
}

pub(super) fn of_task(id: u64, task: u16, lba: u64, sectors: u32) -> Bio {
    Bio {
        id,
        kind: BlockKind::Read,
        lba: Lba(lba),
        sectors,
        fua: false,
        origin: Origin {
            task,
            sync: true,
            ..Origin::default()
        },
    }
}

/// Write-back.
pub(super) fn write(id: u64, lba: u64, sectors: u32) -> Bio {
    Bio {
        kind: BlockKind::Write,
        origin: Origin::default(),
        ..read(id, lba, sectors)
    }
}

pub(super) fn flush(id: u64) -> Bio {
    Bio {
        kind: BlockKind::Flush,
        ..read(id, 0, 0)
    }
}

/// Sectors of what is given out at `now`.
pub(super) fn drain(queue: &mut Queue, now: Instant) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| queue.dispatch(now))
        .map(|bio| (bio.lba.0, bio.sectors))
        .collect()
}

/// First sectors in the order in which a device of depth 1 gets them, each taking `each`.
pub(super) fn served(queue: &mut Queue, mut now: Instant, each: Span) -> Vec<u64> {
    let (mut order, mut done) = (Vec::new(), Vec::new());
    while queue.waiting() > 0 {
        if let Some(bio) = queue.dispatch(now) {
            order.push(bio.lba.0);
            now += each;
            queue.ended(now, bio.id, Ok(()), &mut done);
        } else {
            now = queue.next_event().expect("something waits").max(now);
        }
    }
    order
}
