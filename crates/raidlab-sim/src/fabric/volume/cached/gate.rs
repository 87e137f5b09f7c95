//! How many commands the controller keeps at each disk: some firmware sends the next command of a
//! stream only when the one before has ended, so that the disk's latency is not hidden.
use crate::disk::Request;
use crate::fabric::plant::Plant;
use raidlab_core::op::BlockKind;
use std::collections::VecDeque;

/// The commands of one direction to one disk.
#[derive(Clone, Debug, Default)]
struct Way {
    out: u32,
    held: VecDeque<Request>,
}

/// The commands to all disks of a volume.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// Commands of one direction that a disk has at the most; 0: as many as it takes.
    most: u32,
    /// Reads and writes of each disk by its role.
    ways: Vec<[Way; 2]>,
}

impl Gate {
    pub(super) fn new(most: u32, disks: usize) -> Self {
        Self {
            most,
            ways: vec![<[Way; 2]>::default(); disks],
        }
    }

    /// A command goes to the disk of `role`, now or when its turn comes.
    pub(super) fn submit(
        &mut self,
        now: u64,
        (role, disk): (usize, u32),
        request: Request,
        plant: &mut Plant,
    ) {
        if self.most > 0 {
            let way = &mut self.ways[role][usize::from(request.kind == BlockKind::Write)];
            if way.out >= self.most {
                return way.held.push_back(request);
            }
            way.out += 1;
        }
        plant.submit(now, disk, request);
    }

    /// A command of the disk of `role` has ended: the next of its direction follows.
    pub(super) fn ended(
        &mut self,
        now: u64,
        (role, disk): (usize, u32),
        write: bool,
        plant: &mut Plant,
    ) {
        if self.most == 0 {
            return;
        }
        let way = &mut self.ways[role][usize::from(write)];
        match way.held.pop_front() {
            Some(next) => plant.submit(now, disk, next),
            None => way.out -= 1,
        }
    }
}
