//! The disks of a volume: which commands a part of it needs.
use super::refill::{Group, Refill};
use crate::catalogue::controller::BackgroundModel;
use crate::fabric::VolumeSpec;
use crate::fabric::plant::Slot;
use raidlab_layout::{
    IoKind, Layout, Member, MemberSet, Place, Plan, PlanError, Run, Survival, WritePolicy,
};

/// One command to one disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Commands of a step go out together, when those of the step before have ended.
    pub(super) step: u8,
    pub(super) role: u16,
    pub(super) write: bool,
    pub(super) lba: u64,
    pub(super) sectors: u32,
}

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Members {
    pub(super) disks: Vec<u32>,
    pub(super) layout: Layout,
    /// Roles that are gone.
    pub(super) failed: MemberSet,
    /// What makes them agree, or has.
    pub(super) refill: Option<Box<Refill>>,
    plan: Plan,
    /// Sector after the last that was read or written on each.
    positions: Vec<u64>,
}

impl Members {
    pub(in crate::fabric) fn new(spec: &VolumeSpec, model: &BackgroundModel) -> Self {
        let failed: MemberSet = spec.failed.iter().map(|role| Member(*role)).collect();
        let refill = Refill::new(&spec.layout, failed, spec.state, model).map(Box::new);
        let filling = refill
            .as_ref()
            .map_or(MemberSet::EMPTY, |refill| refill.filling());
        Self {
            positions: vec![0; spec.disks.len()],
            disks: spec.disks.clone(),
            layout: spec.layout.clone(),
            failed: failed.without(filling),
            refill,
            plan: Plan::new(),
        }
    }

    /// Roles that are being filled.
    fn filling(&self) -> MemberSet {
        let refill = self.refill.as_ref();
        refill.map_or(MemberSet::EMPTY, |refill| refill.filling())
    }

    /// Whether the plan asks members that are being filled for what they do not have yet, of any part of it: then all of it does
    /// without them.
    fn is_early(&self) -> bool {
        let Some(refill) = self.refill.as_ref().filter(|refill| !refill.is_over()) else {
            return false;
        };
        let ends = |run: Run| [run.start.0, run.end() - 1];
        let mut ios = self.plan.ios();
        ios.any(|io| ends(io.run).iter().any(|at| !refill.has(io.member, *at)))
    }

    /// A disk has failed. Nothing is filled or made to agree any more, and what is not full is gone, too.
    pub(super) fn lose(&mut self, role: Member) {
        self.failed.insert(role);
        self.failed = self.failed.union(self.filling());
        if let Some(refill) = &mut self.refill {
            refill.give_up();
        }
    }

    /// The role of a disk.
    pub(super) fn role(&self, disk: u32) -> Member {
        Member::new(self.disks.iter().position(|d| *d == disk).unwrap_or(0))
    }

    /// The commands of a group that is filled or made to agree, and the sectors that parity is computed from.
    pub(super) fn plan_group(
        &mut self,
        group: &Group,
        parts: &mut Vec<Part>,
    ) -> Result<u64, PlanError> {
        let Some(refill) = &mut self.refill else {
            return Ok(0);
        };
        let operands = refill.plan(group, parts)?;
        for part in parts.iter() {
            self.positions[usize::from(part.role)] = part.lba + u64::from(part.sectors);
        }
        Ok(operands)
    }

    /// Whether anything can be had without these members.
    pub(super) fn lost_without(&self, more: MemberSet) -> bool {
        let failed = self.failed.union(self.filling());
        self.layout.survives(failed.union(more)) == Survival::Lost
    }

    /// The commands of a read, without `avoid`. Of several copies, the one is read whose disk goes on
    /// where it was; else the disk with the least to do, the nearest of several.
    pub(super) fn read(
        &mut self,
        (lba, sectors): (u64, u64),
        avoid: MemberSet,
        slots: &[Slot],
        parts: &mut Vec<Part>,
    ) -> Result<(), PlanError> {
        let (disks, positions) = (&self.disks, &self.positions);
        let mut choose = |places: &[Place], _| {
            let rank = |place: &Place| {
                let role = place.member.index();
                let distance = place.sector.0.abs_diff(positions[role]);
                let load = slots[disks[role] as usize].load();
                (distance != 0, load, distance)
            };
            let best = (0..places.len()).min_by_key(|i| rank(&places[*i]));
            best.unwrap_or(0)
        };
        let run = Run::new(lba, sectors);
        let mut failed = self.failed.union(avoid);
        self.layout
            .map_read_choosing(run, failed, &mut choose, &mut self.plan)?;
        if self.is_early() {
            failed = failed.union(self.filling());
            self.layout
                .map_read_choosing(run, failed, &mut choose, &mut self.plan)?;
        }
        self.take(parts);
        Ok(())
    }

    /// The commands of a write, and the sectors that parity is computed from.
    pub(super) fn write(
        &mut self,
        (lba, sectors): (u64, u64),
        avoid: MemberSet,
        parts: &mut Vec<Part>,
    ) -> Result<u64, PlanError> {
        let run = Run::new(lba, sectors);
        let mut failed = self.failed.union(avoid);
        let policy = WritePolicy::default();
        self.layout
            .plan_write(run, failed, policy, &mut self.plan)?;
        if self.is_early() {
            failed = failed.union(self.filling());
            self.layout
                .plan_write(run, failed, policy, &mut self.plan)?;
        }
        self.take(parts);
        if self.plan.decisions().is_empty() {
            return Ok(0);
        }
        let read: u64 = parts
            .iter()
            .filter(|part| !part.write)
            .map(|part| u64::from(part.sectors))
            .sum();
        Ok(read + sectors)
    }

    fn take(&mut self, parts: &mut Vec<Part>) {
        parts.clear();
        for (step, ios) in self.plan.steps().enumerate() {
            for io in ios {
                self.positions[io.member.index()] = io.run.end();
                parts.push(Part {
                    step: step as u8,
                    role: io.member.0,
                    write: io.kind == IoKind::Write,
                    lba: io.run.start.0,
                    sectors: io.run.len.0 as u32,
                });
            }
        }
    }
}

/// Sectors of the volume that one write should cover so that no parity needs a read, and every member
/// has something to do; `None` where the layout has no stripes.
pub(super) fn stripe(layout: &Layout) -> Option<u64> {
    match layout {
        Layout::Raid0(raid0) => Some(raid0.chunk().0 * layout.members() as u64),
        Layout::Parity(parity) => Some(parity.chunk().0 * parity.data_members() as u64),
        Layout::Raid10(raid10) => {
            let columns = layout.members() / raid10.copies().total().max(1);
            Some(raid10.chunk().0 * columns.max(1) as u64)
        }
        Layout::Nested(nested) => {
            let inner = nested.inner().first().and_then(stripe);
            match (stripe(nested.outer()), inner) {
                // Whole stripes of every inner array.
                (Some(outer), Some(inner)) => {
                    let (of, each) = (nested.inner().len() as u64, inner);
                    Some(outer.max(each * of))
                }
                (outer, inner) => outer.or(inner),
            }
        }
        _ => None,
    }
}
