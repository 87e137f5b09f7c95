//! Requests that have not been answered.
use crate::session::Request;
use raidlab_core::time::Instant;
use raidlab_sim::disk::DiskError;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Who asked; `None`: has gone.
    pub(super) conn: Option<u64>,
    pub(super) disk: usize,
    pub(super) request: Request,
    /// When it came.
    pub(super) came: Instant,
    /// Data of a write are still to come.
    pub(super) data_due: bool,
    /// When the last of them came.
    pub(super) data_at: Instant,
    /// They could not be kept.
    pub(super) lost: bool,
    /// When and how the model has ended it.
    pub(super) ended: Option<(Instant, Result<(), DiskError>)>,
}

/// All of them, by numbers that are used again.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl Table {
    pub(super) fn add(&mut self, pending: Pending) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(pending);
            return slot;
        }
        self.slots.push(Some(pending));
        self.slots.len() as u32 - 1
    }

    pub(super) fn get(&mut self, slot: u32) -> Option<&mut Pending> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if self.slots[slot as usize].take().is_some() {
            self.free.push(slot);
        }
    }

    /// A client has gone: nobody waits for its requests, though the disks do them. Those that waited
    /// for data alone are over.
    pub(super) fn abandon(&mut self, conn: u64) {
        for slot in 0..self.slots.len() as u32 {
            let Some(pending) = self.get(slot).filter(|p| p.conn == Some(conn)) else {
                continue;
            };
            (pending.conn, pending.data_due) = (None, false);
            if pending.ended.is_some() {
                self.remove(slot);
            }
        }
    }
}
