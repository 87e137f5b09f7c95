//! An array of a volume that has redundancy: what of it is done, and what a group of its sectors needs.
use super::What;
use crate::fabric::volume::members::{Part, stripe};
use raidlab_core::units::Lba;
use raidlab_layout::{
    Content, IoKind, Layout, Member, MemberIo, MemberSet, Plan, PlanError, Run, Survival,
    WritePolicy,
};
use std::collections::VecDeque;

/// What its members are.
#[derive(Clone, Debug)]
enum Below {
    /// Disks, from this role of the volume on.
    Disks(usize),
    /// Arrays, each from a role of the volume on.
    Arrays(Vec<(usize, Layout)>),
}

#[derive(Clone, Debug)]
pub(super) struct Own {
    layout: Layout,
    below: Below,
    /// Its members that are filled.
    missing: MemberSet,
    /// Sectors of the array, and those that it is counted in: of each member, or of the array.
    sectors: u64,
    counted: u64,
    /// Sectors that lie in a whole row or chunk, and those that are worked on together.
    piece: u64,
    group: u64,
    /// Sector of the array after the last that was begun, and after the last before which all is done.
    begun: u64,
    front: u64,
    /// What was begun after that, with whether it has ended.
    window: VecDeque<(u64, bool)>,
    plan: Plan,
    reads: Vec<Part>,
    writes: Vec<Part>,
}

/// The arrays of `layout` that have something to do, commands to each member being about `run` sectors long.
pub(super) fn arrays(layout: &Layout, failed: MemberSet, what: What, run: u64) -> Vec<Own> {
    let mut all = Vec::new();
    collect(layout, 0, failed, (what, run), &mut all);
    all
}

fn collect(
    layout: &Layout,
    base: usize,
    failed: MemberSet,
    (what, run): (What, u64),
    all: &mut Vec<Own>,
) {
    let Layout::Nested(nested) = layout else {
        let due = what != What::Fill || !failed.is_empty();
        if due && is_redundant(layout) {
            all.push(Own::new(layout, Below::Disks(base), failed, (what, run)));
        }
        return;
    };
    let (mut first, mut lost) = (0, MemberSet::EMPTY);
    let mut below = Vec::new();
    for (role, inner) in nested.inner().iter().enumerate() {
        let own = failed.slice(first, inner.members());
        if inner.survives(own) == Survival::Lost {
            lost.insert(Member::new(role));
        } else {
            collect(inner, base + first, own, (what, run), all);
        }
        below.push((base + first, inner.clone()));
        first += inner.members();
    }
    let outer = nested.outer();
    if is_redundant(outer) && (what != What::Fill || !lost.is_empty()) {
        all.push(Own::new(outer, Below::Arrays(below), lost, (what, run)));
    }
}

/// Whether it outlives the loss of a member.
fn is_redundant(layout: &Layout) -> bool {
    layout.survives(MemberSet::one(Member::new(0))) != Survival::Lost
}

impl Own {
    fn new(layout: &Layout, below: Below, missing: MemberSet, (what, run): (What, u64)) -> Self {
        let sectors = layout.capacity().0;
        let counted = match layout {
            Layout::Raid10(_) if what != What::Fill => sectors,
            _ => layout.used(Member::new(0)).0,
        };
        let piece = match layout {
            Layout::Parity(_) => stripe(layout),
            _ => layout.chunk().map(|chunk| chunk.0),
        };
        // Without chunks as long as commands are.
        let piece = piece.unwrap_or(run);
        // As much as comes to a run on each member.
        let wanted = (u128::from(run) * u128::from(sectors)
            / u128::from(layout.used(Member::new(0)).0.max(1))) as u64;
        Self {
            group: wanted.div_ceil(piece).max(1) * piece,
            layout: layout.clone(),
            below,
            missing,
            sectors,
            counted,
            piece,
            begun: 0,
            front: 0,
            window: VecDeque::new(),
            plan: Plan::new(),
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Roles of the volume that are filled.
    pub(super) fn filling(&self) -> MemberSet {
        let roles = |member: Member| match &self.below {
            Below::Disks(base) => (*base + member.index(), 1),
            Below::Arrays(arrays) => {
                let (base, layout) = &arrays[member.index()];
                (*base, layout.members())
            }
        };
        let all = self.missing.iter().map(roles);
        all.flat_map(|(base, members)| (base..base + members).map(Member::new))
            .collect()
    }

    /// Whether what a role of the volume that is filled has at `sector` is done.
    pub(super) fn has(&self, role: Member, sector: u64) -> bool {
        let (member, sector) = match &self.below {
            Below::Disks(base) => (role.index() - base, sector),
            Below::Arrays(arrays) => {
                let of = arrays.iter().rposition(|(base, _)| *base <= role.index());
                let member = of.unwrap_or(0);
                let (base, layout) = &arrays[member];
                let within = layout.content(Member::new(role.index() - base), Lba(sector));
                let Content::Data(sector) = within else {
                    return false;
                };
                (member, sector.0)
            }
        };
        match self.layout.content(Member::new(member), Lba(sector)) {
            Content::Data(lba) => lba.0 < self.front,
            Content::Parity { stripe, .. } => stripe * self.piece < self.front,
            Content::Unused => true,
        }
    }

    pub(super) const fn has_more(&self) -> bool {
        self.begun < self.sectors
    }

    pub(super) const fn is_done(&self) -> bool {
        self.front >= self.sectors
    }

    /// How far it has been begun, to be compared among arrays.
    pub(super) const fn passed(&self) -> u64 {
        self.begun
    }

    /// The next group.
    pub(super) fn take(&mut self) -> (u64, u64) {
        let from = self.begun;
        self.begun = ((from / self.group + 1) * self.group).min(self.sectors);
        self.window.push_back((self.begun, false));
        (from, self.begun)
    }

    pub(super) fn ended(&mut self, (_, to): (u64, u64)) {
        if let Some(group) = self.window.iter_mut().find(|(end, _)| *end == to) {
            group.1 = true;
        }
        while let Some((end, true)) = self.window.front().copied() {
            self.front = end;
            self.window.pop_front();
        }
    }

    /// See [`super::Refill::skip`].
    pub(super) fn skip(&mut self, to: u64) {
        let at = u128::from(to) * u128::from(self.sectors) / u128::from(self.counted.max(1));
        let at = at as u64 / self.group * self.group;
        self.begun = self.begun.max(at);
        self.front = self.front.max(at);
    }

    pub(super) fn done(&self) -> u64 {
        let all = u128::from(self.front) * u128::from(self.counted);
        (all / u128::from(self.sectors.max(1))) as u64
    }

    pub(super) const fn total(&self) -> u64 {
        self.counted
    }

    /// The commands for the sectors from `from` to before `to`: reads, and then writes. The sectors that parity is computed from.
    pub(super) fn plan(
        &mut self,
        what: What,
        (from, to): (u64, u64),
        parts: &mut Vec<Part>,
    ) -> Result<u64, PlanError> {
        self.reads.clear();
        self.writes.clear();
        let mut at = from;
        while at < to {
            let len = self.piece.min(to - at);
            self.plan_piece(what, Run::new(at, len))?;
            at += len;
        }
        parts.clear();
        parts.append(&mut self.reads);
        let read = parts.iter().map(|part| u64::from(part.sectors)).sum();
        parts.append(&mut self.writes);
        parts.sort_by_key(|part| part.step);
        Ok(match self.layout {
            Layout::Parity(_) => read,
            _ => 0,
        })
    }

    fn plan_piece(&mut self, what: What, run: Run) -> Result<(), PlanError> {
        // Whole rows need no read for their parity.
        let policy = WritePolicy::default();
        self.layout
            .plan_write(run, MemberSet::EMPTY, policy, &mut self.plan)?;
        let whole: Vec<MemberIo> = self.plan.ios().copied().collect();
        if what == What::Compare {
            return whole.iter().try_for_each(|io| self.ask(IoKind::Read, io));
        }
        if what == What::Fill && !whole.iter().any(|io| self.missing.contains(io.member)) {
            return Ok(());
        }
        self.layout.map_read(run, self.missing, &mut self.plan)?;
        let read: Vec<MemberIo> = self.plan.ios().copied().collect();
        read.iter().try_for_each(|io| self.ask(IoKind::Read, io))?;
        let made = |io: &&MemberIo| match what {
            What::Fill => self.missing.contains(io.member),
            _ => !read
                .iter()
                .any(|read| (read.member, read.run) == (io.member, io.run)),
        };
        let made: Vec<MemberIo> = whole.iter().filter(made).copied().collect();
        made.iter().try_for_each(|io| self.ask(IoKind::Write, io))
    }

    /// A member is read or written, all of its disks that have to be when it is an array.
    fn ask(&mut self, kind: IoKind, io: &MemberIo) -> Result<(), PlanError> {
        let writes = kind == IoKind::Write;
        let (base, layout) = match &self.below {
            Below::Disks(base) => {
                let base = *base;
                self.add(writes, base, 0, &MemberIo { kind, ..*io });
                return Ok(());
            }
            Below::Arrays(arrays) => &arrays[io.member.index()],
        };
        let (base, none, policy) = (*base, MemberSet::EMPTY, WritePolicy::default());
        match kind {
            IoKind::Read => layout.map_read(io.run, none, &mut self.plan)?,
            IoKind::Write => layout.plan_write(io.run, none, policy, &mut self.plan)?,
        }
        let steps = self.plan.steps().enumerate();
        let all: Vec<(usize, MemberIo)> = steps
            .flat_map(|(step, ios)| ios.iter().map(move |io| (step, *io)))
            .collect();
        for (step, below) in all {
            self.add(writes, base, step, &below);
        }
        Ok(())
    }

    /// A command of the second step, or of the first; joined to the last one of its member and direction where it goes on there.
    fn add(&mut self, second: bool, base: usize, step: usize, io: &MemberIo) {
        let part = Part {
            step: (usize::from(second) + step) as u8,
            role: (base + io.member.index()) as u16,
            write: io.kind == IoKind::Write,
            lba: io.run.start.0,
            sectors: io.run.len.0 as u32,
        };
        let list = if second {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let same = |last: &&mut Part| {
            (last.role, last.step, last.write) == (part.role, part.step, part.write)
        };
        match list.iter_mut().rev().find(same) {
            Some(last) if last.lba + u64::from(last.sectors) == part.lba => {
                last.sectors += part.sectors;
            }
            _ => list.push(part),
        }
    }
}
