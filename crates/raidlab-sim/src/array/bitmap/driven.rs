//! What a bitmap makes its array do: hold writes, write pages, let those go that have waited.
use super::{Bitmap, Note, PAGE_SECTORS, Waits};
use crate::array::core::{Child, Core, Guard, GuardOf, Op, Task, Up};
use crate::array::node::{Node, Shape};
use crate::array::parity::PLUG;
use crate::block::Bio;
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_layout::Member;

impl Node {
    /// A write of an array that has a bitmap.
    #[inline(never)]
    pub(in crate::array) fn submit_noted(&mut self, core: &mut Core, up: Up, bio: &Bio) {
        let mirror = matches!(self.shape, Shape::Mirror(_));
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        let serial = mirror && bitmap.by_submitter;
        let (turn, bio) = (bitmap.turn, *bio);
        let note = Note { up, bio, turn };
        if serial && bitmap.is_for_later(bio.origin.task) {
            return bitmap.later.push_back(note);
        }
        self.note(core, note);
    }

    fn note(&mut self, core: &mut Core, Note { up, bio, turn }: Note) {
        let (from, end) = self.noted_as(bio.lba.0, bio.end());
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        let first = bitmap.dirty == 0;
        bitmap.begins(core.now, from, end);
        if first && bitmap.dirty > 0 {
            bitmap.since = core.now;
        }
        let up = Up::Guard(u64::from(core.guards.insert(Guard {
            up,
            node: self.common.index,
            from: bio.lba.0,
            end: bio.end(),
            of: GuardOf::Bitmap,
        })));
        if bitmap.holds() {
            bitmap.held.push(Note { up, bio, turn });
        } else {
            self.submit_now(core, up, &bio);
        }
    }

    /// What was given for later has its turn, as far as those before are through.
    fn turns(&mut self, core: &mut Core) {
        while let Some(bitmap) = &mut self.bitmap
            && let Some(note) = bitmap.next_turn()
        {
            if self.common.lost {
                core.finish(note.up, Err(DiskError::Failed));
            } else {
                self.note(core, note);
            }
        }
        if let Some(bitmap) = &mut self.bitmap
            && bitmap.waits.is_none()
            && bitmap.dirty > 0
        {
            bitmap.waits = Some(Waits::Before);
        }
    }

    /// Whoever submitted begins to wait.
    pub(in crate::array) fn ends_turn(&mut self) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.turn += 1;
        }
    }

    /// The sectors by which a bitmap knows those of the array: those of each member, where there is parity.
    fn noted_as(&self, from: u64, end: u64) -> (u64, u64) {
        match &self.shape {
            Shape::Parity(parity) => parity.rows_of(from, end),
            _ => (from, end),
        }
    }

    /// Sectors of the array have been written.
    pub(in crate::array) fn noted_ends(&mut self, from: u64, end: u64) {
        let gone = self.common.gone;
        let everywhere = gone.is_empty()
            || match &mut self.shape {
                Shape::Mirror(mirror) => !mirror.has_some(from, end, gone),
                Shape::Parity(parity) => !parity.writes_some(from, end, gone),
                _ => true,
            };
        let (from, end) = self.noted_as(from, end);
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.ends(from, end, everywhere);
        }
    }

    /// Whoever submitted waits now, or md's thread comes to what is to be written: dirty pages go out.
    pub(in crate::array) fn write_bitmap(&mut self, core: &mut Core) {
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        if bitmap.waits.is_some() || bitmap.dirty == 0 {
            return;
        }
        bitmap.waits = Some(Waits::Before);
        if let Shape::Parity(parity) = &mut self.shape {
            parity.blocks(core);
        }
        self.go_on(core);
    }

    /// Pages are written when those before are through, and then those go on that have waited.
    fn go_on(&mut self, core: &mut Core) {
        while let Some(bitmap) = &mut self.bitmap {
            match bitmap.waits {
                _ if bitmap.flight > 0 => return,
                None => return,
                Some(Waits::Before) => {
                    let pages = bitmap.announced();
                    bitmap.waits = Some(Waits::Pages(bitmap.held.len()));
                    self.write_pages(core, &pages);
                }
                Some(Waits::Pages(of)) => {
                    let through: Vec<Note> = bitmap.held.drain(..of).collect();
                    // What came meanwhile is the thread's next turn.
                    bitmap.waits = (bitmap.dirty > 0).then_some(Waits::Before);
                    let rest = if bitmap.waits.is_none() {
                        std::mem::take(&mut bitmap.held)
                    } else {
                        Vec::new()
                    };
                    let again = bitmap.waits.is_some();
                    self.let_go(core, &through, &rest, again);
                    self.turns(core);
                }
            }
        }
    }

    fn let_go(&mut self, core: &mut Core, through: &[Note], rest: &[Note], again: bool) {
        if let Shape::Parity(parity) = &mut self.shape {
            parity.unblocks(core.now);
        }
        for Note { up, bio, .. } in through.iter().chain(rest) {
            if self.common.lost {
                core.finish(*up, Err(DiskError::Failed));
            } else {
                self.submit_now(core, *up, bio);
            }
        }
        if let Shape::Parity(parity) = &mut self.shape {
            parity.unplug(&self.common, core);
            if again {
                parity.blocks(core);
            }
        }
    }

    /// Asks all working members to write pages, after a flush.
    fn write_pages(&mut self, core: &mut Core, pages: &[usize]) {
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        for page in pages {
            for role in 0..self.common.children.len() as u16 {
                if self.common.gone.contains(Member(role)) {
                    continue;
                }
                bitmap.flight += 1;
                let op = Op::flush(self.common.index, role, Task::Bitmap(*page as u32));
                core.ask(self.common.children[usize::from(role)], op);
            }
        }
    }

    /// A request for a page has ended: after the flush comes the page itself.
    #[inline(never)]
    pub(in crate::array) fn page_ended(&mut self, core: &mut Core, page: u32, op: &Op) {
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        if op.kind == BlockKind::Flush && !self.common.gone.contains(Member(op.role)) {
            let child = self.common.children[usize::from(op.role)];
            let op = Op {
                kind: BlockKind::Write,
                lba: bitmap.place(child, page),
                sectors: bitmap.sectors(page as usize),
                fua: true,
                ..*op
            };
            return core.ask(child, op);
        }
        bitmap.flight -= 1;
        self.go_on(core);
    }

    /// When a bitmap does something by itself.
    pub(in crate::array) fn bitmap_next(&self) -> Option<Instant> {
        let bitmap = self.bitmap.as_ref()?;
        let collects = bitmap.waits.is_none() && bitmap.dirty > 0;
        let plug = collects.then(|| bitmap.since + PLUG);
        [plug, bitmap.looks()].into_iter().flatten().min()
    }

    /// What it does by itself.
    pub(in crate::array) fn bitmap_advance(&mut self, core: &mut Core) {
        let Some(bitmap) = &mut self.bitmap else {
            return;
        };
        if bitmap.looks().is_some_and(|at| at <= core.now) {
            let due = bitmap.look(core.now);
            self.write_pages(core, &due);
        }
    }
}

impl Bitmap {
    /// Where a page is on a member.
    fn place(&self, child: Child, page: u32) -> u64 {
        let sector = u64::from(page * PAGE_SECTORS);
        match child {
            // Before the data it is less than nothing, which the base of all members' sectors makes good.
            Child::Disk(_) => sector.wrapping_add_signed(self.at),
            Child::Node(_) => sector,
        }
    }
}
