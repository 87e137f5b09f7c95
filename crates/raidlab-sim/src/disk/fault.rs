//! What can break.
use super::DiskError;
use raidlab_core::time::Span;

/// Something that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads of these sectors fail after `retries` more turns (for an SSD: read latencies), until the
    /// sectors are written, which remaps them.
    Unreadable {
        /// First sector.
        lba: u64,
        /// Number of sectors.
        sectors: u64,
        /// Turns the drive tries before it gives up (error recovery control bounds it).
        retries: u32,
    },
    /// Reads of these sectors succeed after `retries` more turns, until they are written.
    Slow {
        /// First sector.
        lba: u64,
        /// Number of sectors.
        sectors: u64,
        /// Turns the drive tries before it succeeds.
        retries: u32,
    },
    /// The drive does nothing for so long.
    Stall(Span),
    /// The drive fails for good: what is in flight fails now, and all that follows at once.
    Dead,
}

/// A range of bad sectors.
#[derive(Clone, Copy, Debug)]
struct Bad {
    from: u64,
    to: u64,
    retries: u32,
    fails: bool,
}

/// The bad sectors of a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct BadSectors {
    list: Vec<Bad>,
}

impl BadSectors {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Notes the sectors that a fault names, if it does.
    pub(super) fn note(&mut self, fault: &Fault) {
        let (lba, sectors, retries, fails) = match *fault {
            Fault::Unreadable {
                lba,
                sectors,
                retries,
            } => (lba, sectors, retries, true),
            Fault::Slow {
                lba,
                sectors,
                retries,
            } => (lba, sectors, retries, false),
            Fault::Stall(_) | Fault::Dead => return,
        };
        self.list.push(Bad {
            from: lba,
            to: lba.saturating_add(sectors),
            retries,
            fails,
        });
    }

    /// Whether any of these sectors is bad.
    pub(super) fn touches(&self, lba: u64, sectors: u64) -> bool {
        let end = lba.saturating_add(sectors);
        self.list.iter().any(|bad| lba < bad.to && bad.from < end)
    }

    /// More turns that a read of these sectors takes, and how it ends.
    pub(super) fn read(&self, lba: u64, sectors: u64) -> (u64, Result<(), DiskError>) {
        let mut retries = 0;
        for bad in self
            .list
            .iter()
            .filter(|b| b.from < lba + sectors && lba < b.to)
        {
            retries += u64::from(bad.retries);
            if bad.fails {
                return (retries, Err(DiskError::Unreadable));
            }
        }
        (retries, Ok(()))
    }

    /// A write remaps what it covers.
    pub(super) fn write(&mut self, lba: u64, sectors: u64) {
        let end = lba + sectors;
        let parts = std::mem::take(&mut self.list);
        for bad in parts {
            if bad.to <= lba || end <= bad.from {
                self.list.push(bad);
                continue;
            }
            for (from, to) in [(bad.from, lba), (end, bad.to)] {
                if from < to {
                    self.list.push(Bad { from, to, ..bad });
                }
            }
        }
    }
}
