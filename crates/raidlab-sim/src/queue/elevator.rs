//! The one-way elevator of Linux 2.4 and Windows: the next sector upwards, then the lowest.
use super::store::{NIL, Store};
use raidlab_core::op::BlockKind;
use raidlab_experiment::kernel::Kernel;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Later requests that may be put before the oldest read, and before the oldest write; `None`: any number. Counted
    /// for the oldest alone, so that it is not kept for every request.
    pub passes: Option<[u32; 2]>,
}

impl Tunables {
    /// As a kernel has them: since 2.4.20 latencies of 2048 and 8192, of which each request that is put before costs 16
    /// (`drivers/block/elevator.c:elevator_linus_merge`, `ELV_LINUS_SEEK_COST`); before, of 8192 and 16384, of which it costs 1.
    /// Nothing is known of such a limit in Windows.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let passes = match kernel {
            Kernel::Windows2000 => None,
            _ if kernel < Kernel::Linux(2, 4, 20) => Some([8192, 16_384]),
            Kernel::Linux(..) => Some([2048 / 16, 8192 / 16]),
        };
        Self { passes }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Elevator {
    with: Tunables,
    /// The first sector from here on is next.
    position: u64,
    /// The oldest request and when it came, and how many have been put before it since it is the oldest.
    oldest: (u32, u64),
    passed: u32,
}

impl Elevator {
    pub(super) const fn new(with: Tunables) -> Self {
        Self {
            with,
            position: 0,
            oldest: (NIL, 0),
            passed: 0,
        }
    }

    /// The request to be given out now; [`NIL`] only when none waits.
    pub(super) fn pick(&mut self, store: &Store) -> u32 {
        let (_, after) = store.around(0, self.position);
        let mut slot = if after == NIL { store.lowest(0) } else { after };
        let oldest = store.oldest(0);
        if let Some(passes) = self.with.passes
            && slot != oldest
        {
            let rq = store.get(oldest);
            if self.oldest != (oldest, rq.since) {
                (self.oldest, self.passed) = ((oldest, rq.since), 0);
            }
            if self.passed >= passes[usize::from(rq.kind != BlockKind::Read)] {
                slot = oldest;
            }
            self.passed += 1;
        }
        self.position = store.get(slot).end();
        slot
    }
}
