//! How often a target would not take an operation.
use super::DriveError;
use crate::target::Tag;
use crate::workload::OpRecord;

/// Most times that an operation is submitted again. Each of them is to be waited for by the target, so that a second one
/// is rare, and what goes on for ever is a fault.
const MOST: u32 = 64;

/// By slot; nothing is kept before the first refusal.
#[derive(Default)]
pub(super) struct Refusals(Vec<Refused>);

/// The operation that was refused last in a slot.
#[derive(Clone, Copy, Default)]
struct Refused {
    lane: u32,
    index: u64,
    times: u32,
}

impl Refusals {
    /// Counts one more refusal of the operation in the slot of `tag`.
    ///
    /// # Errors
    /// [`DriveError::Refused`] when it was refused too often.
    pub(super) fn count(
        &mut self,
        tag: Tag,
        lane: u32,
        record: &OpRecord,
    ) -> Result<(), DriveError> {
        let (slot, index) = (tag.0 as usize, record.index);
        if slot >= self.0.len() {
            self.0.resize(slot + 1, Refused::default());
        }
        let refused = &mut self.0[slot];
        if (refused.lane, refused.index) != (lane, index) {
            *refused = Refused {
                lane,
                index,
                times: 0,
            };
        }
        refused.times += 1;
        if refused.times <= MOST {
            return Ok(());
        }
        Err(DriveError::Refused {
            index,
            op: record.op,
            times: refused.times,
        })
    }
}
