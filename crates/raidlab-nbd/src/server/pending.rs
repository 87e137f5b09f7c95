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

/// All of them, in places that are used again. A number names a place and which use of it is meant: what is heard of
/// a request that is over must not hit the one that has its place now.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Place {
    uses: u32,
    pending: Option<Pending>,
}

impl Table {
    pub(super) fn add(&mut self, pending: Pending) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[at as usize];
        place.uses = place.uses.wrapping_add(1);
        place.pending = Some(pending);
        number(at, place)
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Pending> {
        let place = self.places.get_mut(number as u32 as usize)?;
        let same = u64::from(place.uses) == number >> 32;
        place.pending.as_mut().filter(|_| same)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Pending> {
        let pending = *self.get(number)?;
        self.places[number as u32 as usize].pending = None;
        self.free.push(number as u32);
        Some(pending)
    }

    /// A client has gone: nobody waits for its requests, though the disks do them. Those that waited
    /// for data alone are over.
    pub(super) fn abandon(&mut self, conn: u64) {
        for at in 0..self.places.len() as u32 {
            let number = number(at, &self.places[at as usize]);
            let Some(pending) = self.get(number).filter(|p| p.conn == Some(conn)) else {
                continue;
            };
            (pending.conn, pending.data_due) = (None, false);
            if pending.ended.is_some() {
                self.remove(number);
            }
        }
    }
}

fn number(at: u32, place: &Place) -> u64 {
    u64::from(place.uses) << 32 | u64::from(at)
}
