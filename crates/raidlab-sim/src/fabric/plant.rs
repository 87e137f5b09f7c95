//! The disks and their lines, and who gets what ends.
use super::earliest::Earliest;
use super::line::{Gear, Line, LineEnd};
use super::pipe::Pipes;
use crate::disk::{Disk, Done, Request};
use raidlab_core::time::Instant;
use std::collections::VecDeque;

/// Who gets the end of a disk's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The host, at this port.
    Port(u32),
    /// A volume.
    Volume(u32),
    /// Nobody: the host does not see the disk.
    Nobody,
}

/// A disk's place.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) owner: Owner,
    /// Commands that it takes at a time.
    pub(super) tags: u32,
    pub(super) in_flight: u32,
    /// Commands that wait for a tag.
    pending: VecDeque<Request>,
}

impl Slot {
    pub(super) fn new(name: String, owner: Owner, tags: u32) -> Self {
        Self {
            name,
            line: 0,
            owner,
            tags,
            in_flight: 0,
            pending: VecDeque::new(),
        }
    }

    /// Commands that it has or that wait for it.
    pub(super) fn load(&self) -> usize {
        self.in_flight as usize + self.pending.len()
    }
}

/// Disks, lines and pipes.
#[derive(Clone, Debug)]
pub(super) struct Plant {
    pub(super) disks: Vec<Disk>,
    pub(super) slots: Vec<Slot>,
    pub(super) lines: Vec<Line>,
    pub(super) pipes: Pipes,
    /// When to look at each line.
    next: Earliest,
    scratch: Vec<Done>,
}

impl Plant {
    pub(super) fn new(disks: Vec<Disk>, slots: Vec<Slot>, lines: Vec<Line>, pipes: Pipes) -> Self {
        Self {
            next: Earliest::new(lines.len()),
            disks,
            slots,
            lines,
            pipes,
            scratch: Vec::new(),
        }
    }

    /// When something happens by itself, `NEVER` if nothing does.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next.first()
    }

    /// Gives a command to a disk, now or when it has a tag free.
    #[inline(always)]
    pub(super) fn submit(&mut self, now: u64, disk: u32, request: impl Into<Request>) {
        let slot = &mut self.slots[disk as usize];
        if slot.in_flight >= slot.tags {
            slot.pending.push_back(request.into());
            return;
        }
        let request = request.into();
        slot.in_flight += 1;
        let line = slot.line as usize;
        self.send(now, line, disk, request);
    }

    /// Gives a command to a disk that takes it, and looks when its line wants to be looked at.
    #[inline(always)]
    fn send(&mut self, now: u64, line: usize, disk: u32, request: Request) {
        if let Line::Direct(_) = self.lines[line] {
            // As mostly: nothing is added to the disk, which is looked up once.
            let disk = &mut self.disks[disk as usize];
            disk.submit(Instant(now), request);
            self.next.set(line, disk.next().0);
        } else {
            self.on_line(now, line, disk, request);
            self.refresh(line);
        }
    }

    // One copy for all callers: several are more than the nearest cache holds.
    #[inline(never)]
    fn on_line(&mut self, now: u64, line: usize, disk: u32, request: Request) {
        let mut gear = Gear {
            disks: &mut self.disks,
            pipes: &mut self.pipes,
            scratch: &mut self.scratch,
        };
        self.lines[line].submit(now, disk, request, &mut gear);
    }

    /// Lets the next event happen, to be called at that time, where it is the end of a single command on a line that adds
    /// nothing to its disk. `None` where it is not; then nothing has ended.
    #[inline]
    pub(super) fn step_alone(&mut self) -> Option<LineEnd> {
        let (now, line) = (self.next.first(), self.next.which());
        let Line::Direct(direct) = &self.lines[line] else {
            return None;
        };
        let number = direct.disk;
        let disk = &mut self.disks[number as usize];
        let done = disk.only_end(Instant(now))?;
        let slot = &mut self.slots[number as usize];
        if let Some(request) = slot.pending.pop_front() {
            disk.submit(Instant(now), request);
        } else {
            slot.in_flight -= 1;
        }
        self.next.set(line, disk.next().0);
        Some(LineEnd {
            disk: number,
            id: done.id,
            at: done.at.0,
            result: done.result,
        })
    }

    /// Lets the next event happen and appends what has ended by it; to be called at that time.
    pub(super) fn step(&mut self, ends: &mut Vec<LineEnd>) {
        let (now, line) = (self.next.first(), self.next.which());
        let mut gear = Gear {
            disks: &mut self.disks,
            pipes: &mut self.pipes,
            scratch: &mut self.scratch,
        };
        let from = ends.len();
        self.lines[line].advance(now, &mut gear, ends);
        for end in &ends[from..] {
            let slot = &mut self.slots[end.disk as usize];
            slot.in_flight -= 1;
            if let Some(request) = slot.pending.pop_front() {
                slot.in_flight += 1;
                self.on_line(now, line, end.disk, request);
            }
        }
        self.refresh(line);
    }

    /// Looks again when a line wants to be looked at.
    #[inline(always)]
    fn refresh(&mut self, line: usize) {
        let next = self.lines[line].next(&self.disks);
        self.next.set(line, next);
    }

    /// Something breaks at `now`.
    pub(super) fn inject(&mut self, now: u64, disk: u32, fault: crate::disk::Fault) {
        let line = self.slots[disk as usize].line as usize;
        // A disk may have been told of a command that is still crossing its line.
        let now = now.max(self.lines[line].told(disk));
        self.disks[disk as usize].inject(Instant(now), fault);
        self.lines[line].look(&self.disks);
        self.refresh(line);
    }
}
