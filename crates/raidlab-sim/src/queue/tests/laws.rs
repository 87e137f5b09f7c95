//! What holds for every scheduler, kernel and load.
use super::*;
use proptest::prelude::*;
use raidlab_core::rng::mix;

const ALL: [Scheduler; 8] = [
    Scheduler::Noop,
    Scheduler::Deadline,
    Scheduler::Anticipatory,
    Scheduler::Cfq,
    Scheduler::None,
    Scheduler::MqDeadline,
    Scheduler::Bfq,
    Scheduler::Kyber,
];

/// One thing that a test does to a queue.
#[derive(Clone, Debug)]
struct Step {
    pause: u64,
    lba: u64,
    sectors: u32,
    task: u16,
    what: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u64..20_000_000, 0_u64..40, 1_u32..20, 0_u16..4, 0_u8..20);
    let step = step.prop_map(|(pause, place, sectors, task, what)| Step {
        pause: if what % 2 == 0 { 0 } else { pause },
        lba: place * 8,
        sectors: sectors * 8,
        task,
        what,
    });
    prop::collection::vec(step, 1..120)
}

fn bio(id: u64, step: &Step) -> Bio {
    let (kind, sync) = match step.what {
        0 => (BlockKind::Flush, true),
        1..10 => (BlockKind::Read, true),
        10..13 => (BlockKind::Write, true),
        _ => (BlockKind::Write, false),
    };
    Bio {
        id,
        kind,
        lba: Lba(step.lba),
        sectors: step.sectors,
        fua: step.what == 10,
        origin: Origin {
            task: step.task,
            sync,
            last: step.what == 11,
            background: step.what == 9,
            ..Origin::default()
        },
    }
}

/// Runs the steps against a device that serves one at a time; what was given out, what ended.
struct Run {
    queue: Queue,
    device: VecDeque<Bio>,
    free_at: u64,
    given: Vec<Bio>,
    done: Vec<Ended>,
    digest: u64,
}

impl Run {
    fn new(spec: QueueSpec) -> Self {
        Self {
            queue: Queue::new(spec),
            device: VecDeque::new(),
            free_at: 0,
            given: Vec::new(),
            done: Vec::new(),
            digest: 0,
        }
    }

    fn give(&mut self, now: Instant) {
        while let Some(bio) = self.queue.dispatch(now) {
            self.give_one(now, bio);
        }
    }

    fn give_one(&mut self, now: Instant, bio: Bio) {
        assert!(self.queue.in_device() <= self.queue.spec().depth);
        if self.device.is_empty() {
            self.free_at = self.free_at.max(now.0) + service(&bio);
        }
        self.digest = mix(self.digest ^ bio.lba.0 ^ mix(now.0 ^ u64::from(bio.sectors)));
        self.given.push(bio);
        self.device.push_back(bio);
    }

    /// Lets time pass until `until`, or until nothing more happens.
    fn pass(&mut self, until: u64) {
        loop {
            let end = (!self.device.is_empty()).then_some(self.free_at);
            let event = self.queue.next_event().map(|at| at.0);
            let next = end.into_iter().chain(event).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                break;
            };
            if Some(at) == end {
                let bio = self.device.pop_front().unwrap();
                self.queue
                    .ended(Instant(at), bio.id, Ok(()), &mut self.done);
                if let Some(next) = self.device.front() {
                    self.free_at = at + service(next);
                }
            }
            self.give(Instant(at));
        }
    }
}

fn service(bio: &Bio) -> u64 {
    3_000_000 + bio.lba.0 * 1000 + u64::from(bio.sectors) * 10_000
}

fn run(spec: QueueSpec, steps: &[Step], unplug: bool) -> Run {
    let (mut run, mut now) = (Run::new(spec), 0);
    for (id, step) in steps.iter().enumerate() {
        run.pass(now + step.pause);
        now += step.pause;
        run.queue.submit(Instant(now), bio(id as u64, step));
        if unplug && step.what % 3 == 0 {
            run.queue.unplug(Instant(now));
        }
        run.give(Instant(now));
    }
    run.pass(u64::MAX);
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_bio_ends_exactly_once(steps in steps(), which in 0_usize..8, depth in 1_u32..6, small: bool, unplug: bool) {
        let mut spec = spec(ALL[which], depth);
        spec.max_sectors = 200;
        if small {
            spec.requests = Requests { total: 5, each: [4, 3], ..spec.requests };
        }
        let run = run(spec, &steps, unplug);
        prop_assert_eq!((run.queue.waiting(), run.queue.in_device()), (0, 0));
        prop_assert_eq!(run.queue.next_event(), None);
        let mut ids: Vec<u64> = run.done.iter().map(|end| end.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>());
        prop_assert!(run.done.is_sorted_by_key(|end| end.at));
        let moved = |kind| move |bio: &&Bio| bio.kind == kind;
        for kind in [BlockKind::Read, BlockKind::Write] {
            let wanted: u64 = (0..).zip(&steps).map(|(i, s)| bio(i, s)).filter(|b| b.kind == kind).map(|b| u64::from(b.sectors)).sum();
            let given: u64 = run.given.iter().filter(moved(kind)).map(|b| u64::from(b.sectors)).sum();
            prop_assert_eq!(wanted, given);
        }
        prop_assert!(run.given.iter().all(|b| b.sectors <= 200));
    }

    /// Of reads also the gaps between them are read.
    #[test]
    fn all_ends_once_in_the_queue_of_zfs(steps in steps(), minor in 0_u16..20, depth in 1_u32..40, old: bool) {
        let kernel = if old { Kernel::Linux(2, 6, 32) } else { Kernel::Linux(5, minor, 0) };
        let spec = spec(Scheduler::Noop, depth).under_vdev(kernel);
        let run = run(spec, &steps, true);
        prop_assert_eq!((run.queue.waiting(), run.queue.in_device()), (0, 0));
        let mut ids: Vec<u64> = run.done.iter().map(|end| end.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>());
        let sectors = |bios: &mut dyn Iterator<Item = Bio>, kind| {
            bios.filter(|b| b.kind == kind).map(|b| u64::from(b.sectors)).sum::<u64>()
        };
        let wanted = |kind| sectors(&mut (0..).zip(&steps).map(|(i, s)| bio(i, s)), kind);
        let given = |kind| sectors(&mut run.given.iter().copied(), kind);
        prop_assert_eq!(wanted(BlockKind::Write), given(BlockKind::Write));
        prop_assert!(wanted(BlockKind::Read) <= given(BlockKind::Read));
        prop_assert!(run.given.iter().all(|b| b.sectors <= 2048));
    }

    #[test]
    fn a_barrier_is_never_passed(steps in steps(), which in 0_usize..4, depth in 1_u32..6) {
        let mut spec = spec(ALL[which], depth);
        spec.barriers = true;
        let run = run(spec, &steps, true);
        let mut at = vec![0; steps.len()];
        for (place, end) in run.done.iter().enumerate() {
            at[end.id as usize] = place;
        }
        for (i, step) in steps.iter().enumerate() {
            if step.what == 0 || step.what == 10 {
                prop_assert!(at[..i].iter().all(|before| *before < at[i]));
                prop_assert!(at[i + 1..].iter().all(|after| *after > at[i]));
            }
        }
    }

    /// What is sent off at once passes the queue, or is submitted and dispatched: all ends the same.
    #[test]
    fn what_passes_the_queue_ends_as_if_it_had_been_kept(steps in steps(), depth in 1_u32..6, small: bool, noop: bool) {
        // Where write-back is throttled, reads that pass are not among those that it is throttled for.
        let mut spec = QueueSpec {
            wbt: None,
            ..spec(if noop { Scheduler::Noop } else { Scheduler::None }, depth)
        };
        if small {
            spec.requests = Requests { total: 5, each: [4, 3], ..spec.requests };
        }
        let run = |passes: bool| {
            let (mut run, mut now, mut passed) = (Run::new(spec), 0, 0);
            for (id, step) in steps.iter().enumerate() {
                run.pass(now + step.pause);
                now += step.pause;
                let (at, bio) = (Instant(now), bio(id as u64, step));
                if passes && let Some(bio) = run.queue.pass(&bio) {
                    passed += 1;
                    run.give_one(at, bio);
                } else {
                    run.queue.submit(at, bio);
                    run.queue.unplug(at);
                    run.give(at);
                }
            }
            run.pass(u64::MAX);
            (run, passed)
        };
        let ((short, passed), (long, _)) = (run(true), run(false));
        // The first does, as long as nobody orders.
        let plain = steps[0].what != 0 && steps[0].what != 10;
        prop_assert!(passed > 0 || noop || !plain);
        prop_assert_eq!(short.digest, long.digest);
        prop_assert_eq!(short.done, long.done);
        prop_assert_eq!((short.queue.waiting(), short.queue.in_device()), (0, 0));
    }

    #[test]
    fn the_same_again(steps in steps(), which in 0_usize..8) {
        let spec = spec(ALL[which], 3);
        prop_assert_eq!(run(spec, &steps, true).digest, run(spec, &steps, true).digest);
    }
}
