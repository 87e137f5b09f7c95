//! A disk whose own link is all there is between it and the host: nothing is added to it.
use super::{Gear, LineEnd, at, next_of};
use crate::disk::{Disk, Request};

#[derive(Clone, Debug)]
pub(in crate::fabric) struct Direct {
    pub(in crate::fabric) disk: u32,
}

impl Direct {
    #[inline]
    pub(super) fn submit(&self, now: u64, disk: u32, request: Request, gear: &mut Gear<'_>) {
        gear.disks[disk as usize].submit(at(now), request);
    }

    #[inline]
    pub(super) fn next(&self, disks: &[Disk]) -> u64 {
        next_of(&disks[self.disk as usize])
    }

    #[inline]
    pub(super) fn advance(&self, now: u64, gear: &mut Gear<'_>, ends: &mut Vec<LineEnd>) {
        let disk = self.disk;
        gear.disks[disk as usize].each_end(at(now), |done| {
            ends.push(LineEnd {
                disk,
                id: done.id,
                at: done.at.0,
                result: done.result,
            });
        });
    }
}
