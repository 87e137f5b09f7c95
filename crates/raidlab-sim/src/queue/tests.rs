//! What the queue does whatever the scheduler, and a device to try it on.
mod anticipatory;
mod bfq;
mod deadline;
mod elevator;
mod kyber;
mod laws;
mod limits;
mod ordering;
mod plugging;
mod slices;
mod starved;
mod vdev;
mod wbt;

use super::*;
use crate::block::{Marked, Origin};
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

/// A process that reads, one request at a time.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) task: u16,
    /// First sector and how far apart the requests are.
    pub(super) from: u64,
    pub(super) step: u64,
    /// Time from an end to the next request.
    pub(super) thinks: Span,
    /// Time of the first request.
    pub(super) starts: Span,
}

/// Disk and readers together: what each got, and how often the disk had to move.
pub(super) struct Outcome {
    pub(super) reads: Vec<u64>,
    pub(super) writes: u64,
    pub(super) seeks: u64,
}

/// Lets readers of 64 KiB at a time and a writer that keeps `writes` requests in the queue run for
/// `seconds` on a disk that takes 1 ms, and 8 ms more where it has to move.
pub(super) fn contend(queue: &mut Queue, readers: &[Reader], writes: u64, seconds: u64) -> Outcome {
    let mut outcome = Outcome {
        reads: vec![0; readers.len()],
        writes: 0,
        seeks: 0,
    };
    // Number of a reader's next request, and when it comes.
    let mut next: Vec<Option<u64>> = readers.iter().map(|r| Some(r.starts.0)).collect();
    let (mut now, mut head, mut written) = (0, 0, 0);
    let mut device: Option<(u64, Bio)> = None;
    let mut done = Vec::new();
    while now < seconds * 1_000_000_000 {
        while written - outcome.writes < writes {
            let lba = 1_000_000 + (written * 7919) % 1000 * 1024;
            queue.submit(Instant(now), write(1 << 32 | written, lba, 8));
            written += 1;
        }
        for (i, reader) in readers.iter().enumerate() {
            if next[i].is_some_and(|at| at <= now) {
                next[i] = None;
                let lba = reader.from + reader.step * outcome.reads[i];
                queue.submit(Instant(now), of_task(i as u64, reader.task, lba, 128));
                queue.unplug(Instant(now));
            }
        }
        if device.is_none() {
            device = queue.dispatch(Instant(now)).map(|bio| {
                let moves = bio.lba.0 != head;
                outcome.seeks += u64::from(moves);
                head = bio.end();
                (now + 1_000_000 + 8_000_000 * u64::from(moves), bio)
            });
        }
        let idle = device.is_none();
        let wake = queue.next_event().filter(|_| idle).map(|at| at.0);
        let times = next.iter().flatten().copied().chain(wake);
        now = times.chain(device.map(|d| d.0)).min().unwrap_or(u64::MAX);
        if let Some((_, bio)) = device.filter(|(end, _)| *end == now) {
            device = None;
            queue.ended(Instant(now), bio.id, Ok(()), &mut done);
            for end in done.drain(..) {
                if end.id >> 32 != 0 {
                    outcome.writes += 1;
                } else {
                    let i = end.id as usize;
                    outcome.reads[i] += 1;
                    next[i] = Some(now + readers[i].thinks.0);
                }
            }
        }
    }
    outcome
}

/// A process that reads in order.
pub(super) fn sequential(task: u16, thinks_us: u64) -> Reader {
    Reader {
        task,
        from: u64::from(task) * 100_000_000,
        step: 128,
        thinks: Span::from_micros(thinks_us),
        starts: Span::ZERO,
    }
}

/// A process that reads here and there.
pub(super) fn scattered(task: u16) -> Reader {
    Reader {
        step: 4_000_000,
        ..sequential(task, 100)
    }
}
