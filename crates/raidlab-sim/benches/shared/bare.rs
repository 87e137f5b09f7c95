//! An array without a kernel: requests are mapped by the layout's plan and go to the disks at once, as
//! disk simulators do it. No queue, no stripe cache, no controller.
use raidlab_core::op::{BlockKind, Op};
use raidlab_core::target::{Completion, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;
use raidlab_core::units::SECTOR;
use raidlab_layout::{IoKind, Layout, MemberIo, MemberSet, Plan, Run, WritePolicy};
use raidlab_sim::disk::{Disk, DiskModel, Done, Request};
use std::hint::select_unpredictable;

/// Later than anything.
const NEVER: Instant = Instant(u64::MAX);

/// A request in flight.
#[derive(Clone, Default)]
struct Flight {
    bytes: u32,
    /// Operations of disks it waits for.
    waits: u32,
    /// What follows them.
    then: Vec<MemberIo>,
}

/// A layout on disks.
pub(crate) struct Bare {
    layout: Layout,
    disks: Vec<Disk>,
    /// When to look at each disk.
    next: Vec<Instant>,
    flights: Vec<Flight>,
    plan: Plan,
    ended: Vec<Done>,
    now: Instant,
}

impl Bare {
    pub(crate) fn new(layout: Layout, model: &DiskModel) -> Self {
        let members = layout.members();
        Self {
            layout,
            disks: (0..members).map(|i| Disk::new(model, i as u64)).collect(),
            next: vec![NEVER; members],
            flights: Vec::new(),
            plan: Plan::new(),
            ended: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Operations that the disks have taken.
    pub(crate) fn disk_ops(&self) -> u64 {
        let of = |disk: &Disk| disk.counters().reads + disk.counters().writes;
        self.disks.iter().map(of).sum()
    }

    fn ask(&mut self, id: u64, io: &MemberIo) {
        let member = io.member.index();
        let disk = &mut self.disks[member];
        disk.submit(
            self.now,
            Request {
                id,
                kind: match io.kind {
                    IoKind::Read => BlockKind::Read,
                    IoKind::Write => BlockKind::Write,
                },
                lba: io.run.start,
                sectors: io.run.len.0 as u32,
                fua: false,
            },
        );
        self.next[member] = disk.next_event().unwrap_or(NEVER);
    }

    /// The disk that has something to do first.
    fn first(&self) -> Option<(Instant, usize)> {
        let (mut first, mut which) = (NEVER, 0);
        for (member, &at) in self.next.iter().enumerate() {
            let earlier = at < first;
            first = select_unpredictable(earlier, at, first);
            which = select_unpredictable(earlier, member, which);
        }
        (first < NEVER).then_some((first, which))
    }

    /// The first disk does it.
    fn step(&mut self, at: Instant, member: usize, done: &mut Vec<Completion>) {
        self.now = at;
        let disk = &mut self.disks[member];
        disk.advance(at, &mut self.ended);
        self.next[member] = disk.next_event().unwrap_or(NEVER);
        for index in 0..self.ended.len() {
            let end = self.ended[index];
            assert_eq!(end.result, Ok(()), "the disks are sound");
            let flight = &mut self.flights[end.id as usize];
            flight.waits -= 1;
            if flight.waits > 0 {
                continue;
            }
            if flight.then.is_empty() {
                done.push(Completion {
                    tag: Tag(end.id as u32),
                    result: Ok(flight.bytes),
                    at: end.at,
                });
                continue;
            }
            let then = std::mem::take(&mut flight.then);
            flight.waits = then.len() as u32;
            for io in &then {
                self.ask(end.id, io);
            }
            // Its memory is used again.
            self.flights[end.id as usize].then = then;
            self.flights[end.id as usize].then.clear();
        }
        self.ended.clear();
    }
}

impl Target for Bare {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: 4096,
            alignment: SECTOR as u32,
            size: self.layout.capacity().0 * SECTOR,
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let Op::Block(block) = op else {
            let why = "block requests only";
            return Err(TargetError::Unsupported { op, why });
        };
        let mut plan = std::mem::take(&mut self.plan);
        let run = Run::new(block.offset / SECTOR, u64::from(block.len) / SECTOR);
        let none = MemberSet::EMPTY;
        let planned = if block.kind == BlockKind::Read {
            self.layout.map_read(run, none, &mut plan)
        } else {
            let policy = WritePolicy::LINUX;
            self.layout.plan_write(run, none, policy, &mut plan)
        };
        planned.expect("the request lies in the array");
        let slot = tag.0 as usize;
        if slot >= self.flights.len() {
            self.flights.resize(slot + 1, Flight::default());
        }
        let mut steps = plan.steps();
        let (now, then) = (steps.next().unwrap_or(&[]), steps.next().unwrap_or(&[]));
        let flight = &mut self.flights[slot];
        (flight.bytes, flight.waits) = (block.len, now.len() as u32);
        flight.then.extend_from_slice(then);
        for io in now {
            self.ask(u64::from(tag.0), io);
        }
        drop(steps);
        self.plan = plan;
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let until = until.unwrap_or(NEVER);
        while let Some((at, member)) = self.first().filter(|(at, _)| *at <= until) {
            self.step(at.max(self.now), member, done);
            if !done.is_empty() {
                return Ok(());
            }
        }
        if until < NEVER {
            self.now = self.now.max(until);
        }
        Ok(())
    }
}
