//! Writes of parts of physical sectors. The map of a drive has an entry for each of them, so that the rest of one that is written
//! in part is read, and all of it is programmed.
use super::Ssd;

/// A physical sector that a write ended within. What follows that write completes it in the buffer, at no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    number: u64,
    /// Its rest is counted among those to be read.
    read: bool,
}

impl Ssd {
    /// The sectors that a write adds to what has to be programmed.
    pub(super) fn whole(&mut self, lba: u64, sectors: u64, follows: bool) -> u64 {
        let size = u64::from(self.model.spec.physical);
        let end = lba + sectors;
        if self.part.is_none() && lba.is_multiple_of(size) && end.is_multiple_of(size) {
            return sectors;
        }
        let (head, tail) = (lba / size, (end - 1) / size);
        let mut added = (tail - head + 1) * size;
        let mut read = false;
        match self.part.filter(|part| follows && part.number == head) {
            Some(part) => {
                added -= size;
                read = part.read;
            }
            None => {
                // One that is written over as a whole needs nothing any more.
                let over = lba.div_ceil(size)..end / size;
                self.part = self.part.filter(|part| !over.contains(&part.number));
                self.complete();
                if !lba.is_multiple_of(size) {
                    self.rests += 1;
                    read = true;
                }
            }
        }
        self.part = (!end.is_multiple_of(size)).then_some(Part {
            number: tail,
            read: read && tail == head,
        });
        added
    }

    /// Nothing is going to come that would fill what the last write left open.
    pub(super) fn complete(&mut self) {
        self.rests += u64::from(self.part.take().is_some_and(|part| !part.read));
    }
}
