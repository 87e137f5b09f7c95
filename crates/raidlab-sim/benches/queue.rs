//! What a request costs in the kernel's queue, by scheduler: alone, among others in random order, and
//! when it is joined to its neighbours.
//!
//! `cargo bench -p raidlab-sim --bench queue`; an argument picks the schedulers whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;
use raidlab_experiment::kernel::{Kernel, Scheduler};
use raidlab_sim::block::{Bio, Ended, Origin};
use raidlab_sim::queue::{Queue, QueueSpec};
use shared::{Arguments, on_processor};
use std::collections::VecDeque;

const CASES: &[(&str, Kernel, Scheduler)] = &[
    ("noop", Kernel::Linux(2, 6, 16), Scheduler::Noop),
    ("deadline", Kernel::Linux(2, 6, 32), Scheduler::Deadline),
    (
        "anticipatory",
        Kernel::Linux(2, 6, 16),
        Scheduler::Anticipatory,
    ),
    ("cfq", Kernel::Linux(2, 6, 32), Scheduler::Cfq),
    ("none", Kernel::DEFAULT, Scheduler::None),
    ("mq-deadline", Kernel::DEFAULT, Scheduler::MqDeadline),
    ("bfq", Kernel::DEFAULT, Scheduler::Bfq),
    ("kyber", Kernel::DEFAULT, Scheduler::Kyber),
];

fn read(id: u64, lba: u64, sectors: u32) -> Bio {
    Bio {
        id,
        kind: BlockKind::Read,
        lba: Lba(lba),
        sectors,
        fua: false,
        origin: Origin {
            task: 1,
            sync: true,
            ..Origin::default()
        },
    }
}

/// One bio after the other: nothing waits.
fn alone(queue: &mut Queue, count: u64) {
    let numbers = Stream::new(1);
    let (mut done, mut now) = (Vec::<Ended>::new(), 0);
    for id in 0..count {
        queue.submit(Instant(now), read(id, numbers.below(id, 1 << 30), 8));
        queue.unplug(Instant(now));
        let bio = queue.dispatch(Instant(now)).expect("nothing holds it back");
        now += 5_000_000;
        queue.ended(Instant(now), bio.id, Ok(()), &mut done);
        done.clear();
    }
}

/// `bios` wait or are in the device; each that ends is followed by another.
fn crowded(queue: &mut Queue, count: u64, bios: u64) {
    let numbers = Stream::new(1);
    let (mut done, mut now) = (Vec::<Ended>::new(), 0);
    let mut device = VecDeque::new();
    for id in 0..count {
        queue.submit(Instant(now), read(id, numbers.below(id, 1 << 30), 8));
        if id < bios {
            continue;
        }
        queue.unplug(Instant(now));
        while let Some(bio) = queue.dispatch(Instant(now)) {
            device.push_back(bio.id);
        }
        now += 5_000_000;
        let id = device.pop_front().expect("one process is not kept waiting");
        queue.ended(Instant(now), id, Ok(()), &mut done);
        done.clear();
    }
}

/// Runs of 32 bios that lie side by side.
fn joined(queue: &mut Queue, count: u64) {
    let (mut done, mut now) = (Vec::<Ended>::new(), 0);
    for id in 0..count {
        queue.submit(Instant(now), read(id, id * 8, 8));
        if id % 32 == 31 {
            queue.unplug(Instant(now));
            while let Some(bio) = queue.dispatch(Instant(now)) {
                now += 1_000_000;
                queue.ended(Instant(now), bio.id, Ok(()), &mut done);
            }
            done.clear();
        }
    }
}

fn main() {
    let arguments = Arguments::read();
    println!("nanoseconds a bio    alone   8 there  64 there   1000 there   joined");
    for (name, kernel, scheduler) in CASES {
        if !arguments.want(name) {
            continue;
        }
        let spec = QueueSpec::of(*kernel, Some(*scheduler), true, 1024, 1);
        // Room for a thousand, so that sorting them is seen.
        let mut large = spec;
        large.requests.total = 2000;
        large.requests.each = [2000; 2];
        let best = |spec: QueueSpec, count: u64, run: fn(&mut Queue, u64)| {
            let mut best = f64::MAX;
            for _ in 0..3 {
                let mut queue = Queue::new(spec);
                let begin = std::time::Instant::now();
                let before = on_processor(begin);
                run(&mut queue, count);
                best = best.min((on_processor(begin) - before) * 1e9 / count as f64);
            }
            best
        };
        println!(
            "{name:16} {:10.1} {:9.1} {:9.1} {:12.1} {:8.1}",
            best(spec, 2_000_000, alone),
            best(large, 500_000, |q, n| crowded(q, n, 8)),
            best(large, 500_000, |q, n| crowded(q, n, 64)),
            best(large, 200_000, |q, n| crowded(q, n, 1000)),
            best(spec, 2_000_000, joined),
        );
    }
}
