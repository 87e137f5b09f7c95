//! The disks of a volume: which commands a part of it needs.
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
pub(super) struct Members {
    pub(super) disks: Vec<u32>,
    pub(super) layout: Layout,
    /// Roles that are gone.
    pub(super) failed: MemberSet,
    plan: Plan,
    /// Sector after the last that was read or written on each.
    positions: Vec<u64>,
}

impl Members {
    pub(super) fn new(disks: Vec<u32>, layout: Layout, failed: MemberSet) -> Self {
        Self {
            positions: vec![0; disks.len()],
            disks,
            layout,
            failed,
            plan: Plan::new(),
        }
    }

    /// The role of a disk.
    pub(super) fn role(&self, disk: u32) -> Member {
        Member::new(self.disks.iter().position(|d| *d == disk).unwrap_or(0))
    }

    /// Whether anything can be had without these members.
    pub(super) fn lost_without(&self, more: MemberSet) -> bool {
        self.layout.survives(self.failed.union(more)) == Survival::Lost
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
        let failed = self.failed.union(avoid);
        self.layout
            .map_read_choosing(run, failed, &mut choose, &mut self.plan)?;
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
        let failed = self.failed.union(avoid);
        self.layout
            .plan_write(run, failed, WritePolicy::default(), &mut self.plan)?;
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
