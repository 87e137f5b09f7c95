//! Work on the disks: runs that are fetched or destaged, in the steps of their plan.
use super::{Cached, Due};
use crate::disk::{DiskError, Request};
use crate::fabric::line::LineEnd;
use crate::fabric::plant::Plant;
use crate::fabric::volume::members::Part;
use crate::fabric::volume::refill::Group;
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;
use raidlab_layout::MemberSet;

/// What a task is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Sectors come into the cache.
    Fetch,
    /// Dirty sectors go to the disks.
    Destage,
    /// A write of the host goes to the disks.
    Through(u32),
    /// The disks write what they hold back.
    Flush(u32),
    /// Members are filled or made to agree.
    Refill(Group),
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    kind: Kind,
    from: u64,
    to: u64,
    parts: Vec<Part>,
    /// First part that has not gone out.
    next: usize,
    /// Parts that are out.
    left: u32,
    /// Members that cannot give what is asked for.
    avoid: MemberSet,
    error: Option<DiskError>,
    /// Sectors of parity's operands that are to be worked through.
    xor: u64,
}

impl Cached {
    /// Begins a task on the sectors from `from` to before `to`.
    pub(super) fn start(&mut self, now: u64, kind: Kind, from: u64, to: u64, plant: &mut Plant) {
        let number = self.free_tasks.pop().unwrap_or_else(|| {
            self.tasks.push(Task {
                kind,
                from,
                to,
                parts: Vec::new(),
                next: 0,
                left: 0,
                avoid: MemberSet::EMPTY,
                error: None,
                xor: 0,
            });
            (self.tasks.len() - 1) as u32
        });
        let task = &mut self.tasks[number as usize];
        (task.kind, task.from, task.to) = (kind, from, to.min(self.capacity));
        (task.avoid, task.error) = (MemberSet::EMPTY, None);
        self.plan(now, number, plant);
    }

    fn plan(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let task = &mut self.tasks[number as usize];
        let run = (task.from, task.to - task.from);
        (task.next, task.error, task.xor) = (0, None, 0);
        let planned = match task.kind {
            Kind::Fetch => {
                let parts = &mut task.parts;
                let planned = self.members.read(run, task.avoid, &plant.slots, parts);
                let read: u64 = parts.iter().map(|part| u64::from(part.sectors)).sum();
                // More than is asked for: something is computed from the others.
                task.xor = if read > run.1 { read } else { 0 };
                planned
            }
            Kind::Destage | Kind::Through(_) => {
                let written = self.members.write(run, task.avoid, &mut task.parts);
                written.map(|operands| task.xor = operands)
            }
            Kind::Flush(_) => {
                let all = MemberSet::first(self.members.disks.len());
                let roles = all.without(self.members.failed);
                task.parts.clear();
                task.parts.extend(roles.iter().map(|role| Part {
                    step: 0,
                    role: role.0,
                    write: false,
                    lba: 0,
                    sectors: 0,
                }));
                Ok(())
            }
            Kind::Refill(group) => {
                let planned = self.members.plan_group(&group, &mut task.parts);
                planned.map(|operands| task.xor = operands)
            }
        };
        if planned.is_err() || task.parts.is_empty() {
            task.error = planned.is_err().then_some(DiskError::Failed);
            self.agenda.push(now, Due::Computed(number));
            return;
        }
        self.issue(now, number, plant);
    }

    /// The parts of the next step go out.
    fn issue(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let task = &mut self.tasks[number as usize];
        let step = task.parts[task.next].step;
        let rest = &task.parts[task.next..];
        let parts = rest.iter().take_while(|part| part.step == step).count();
        let writes = rest[..parts].iter().any(|part| part.write);
        if writes && task.xor > 0 {
            // The data of the writes pass the same memory after that.
            self.card.xor(now, task.xor, self.xor_sector, plant);
            task.xor = 0;
        }
        task.left = parts as u32;
        for part in &rest[..parts] {
            let request = Request {
                // A step may have both reads and writes.
                id: u64::from(number) << 1 | u64::from(part.write),
                kind: match task.kind {
                    Kind::Flush(_) => BlockKind::Flush,
                    _ if part.write => BlockKind::Write,
                    _ => BlockKind::Read,
                },
                lba: Lba(part.lba),
                sectors: part.sectors,
                fua: false,
            };
            let role = usize::from(part.role);
            let disk = self.members.disks[role];
            self.gate.submit(now, (role, disk), request, plant);
        }
        task.next += parts;
    }

    /// A part has ended.
    pub(super) fn part_ended(&mut self, end: &LineEnd, plant: &mut Plant) {
        let (now, number, write) = (end.at, (end.id >> 1) as u32, end.id & 1 == 1);
        let task = &mut self.tasks[number as usize];
        let role = self.members.role(end.disk);
        self.gate.ended(now, (role.index(), end.disk), write, plant);
        task.left -= 1;
        if let Err(error) = end.result {
            match error {
                DiskError::Failed => self.members.lose(role),
                _ => task.avoid.insert(role),
            }
            task.error = Some(error);
        }
        if task.left > 0 {
            return;
        }
        if task.error.is_some() {
            let again = !self.members.lost_without(task.avoid);
            match task.kind {
                Kind::Flush(_) if again => task.error = None,
                Kind::Flush(_) | Kind::Refill(_) => {}
                // Without the member, from the start.
                _ if again => return self.plan(now, number, plant),
                _ => {}
            }
            return self.finish(now, number, plant);
        }
        if task.next < task.parts.len() {
            return self.issue(now, number, plant);
        }
        if task.xor > 0 {
            let computed = self.card.xor(now, task.xor, self.xor_sector, plant);
            return self.agenda.push(computed, Due::Computed(number));
        }
        self.finish(now, number, plant);
    }

    /// A task is over.
    pub(super) fn finish(&mut self, now: u64, number: u32, plant: &mut Plant) {
        let task = &self.tasks[number as usize];
        let (kind, run) = (task.kind, (task.from, task.to));
        let result = task.error.map_or(Ok(()), Err);
        self.free_tasks.push(number);
        match kind {
            Kind::Fetch => self.fetched(now, run, result, plant),
            Kind::Destage => self.destaged(now, run, plant),
            Kind::Refill(group) => self.refilled(now, &group, plant),
            Kind::Through(asked) | Kind::Flush(asked) => {
                self.asked[asked as usize].result = result;
                self.agenda.push(now, Due::Ended(asked));
            }
        }
    }
}
