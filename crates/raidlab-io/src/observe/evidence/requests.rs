//! Requests of a phase's devices that the phase did not ask for. Bytes do not tell of them: a few random reads of 4 KiB a
//! second take half of a hard disk's time, and are nothing beside the bytes of a phase in sequence.
use super::Evidence;
use crate::observe::diskstats::Difference;
use crate::observe::stack::{DeviceKind, DeviceStack};
use raidlab_core::flag::{Flag, FlagKind};

/// Others' requests over the phase's own above which something else used the disk.
const FOREIGN: f64 = 0.1;
/// Requests that an idle system makes in a short phase: journals, logs.
const FEW: u64 = 16;

/// Requests in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Reads of the topmost devices.
    pub read: u64,
    /// Writes of the topmost devices.
    pub written: u64,
    /// Of the disks below the stack's partitions, to other places than these.
    pub beside: u64,
}

impl Requests {
    /// Of a stack's devices; `None` when one of them was not counted over the whole time.
    pub(super) fn of(difference: &Difference, stack: &DeviceStack) -> Option<Self> {
        let mut requests = Self::default();
        for name in stack.counting_names() {
            let device = difference.devices.get(name)?;
            requests.read += device.read.completed;
            requests.written += device.write.completed;
        }
        requests.beside = beside(difference, stack);
        Some(requests)
    }
}

/// What a partition is asked for is counted for its disk as well: the rest is others'.
fn beside(difference: &Difference, stack: &DeviceStack) -> u64 {
    let of = |name: &str| difference.devices.get(name).map(|device| device.requests());
    let parts = || {
        let all = stack.devices.iter();
        all.filter(|device| device.kind == DeviceKind::Partition)
    };
    let mut disks: Vec<&str> = parts()
        .flat_map(|part| part.below.iter().map(String::as_str))
        .collect();
    disks.sort_unstable();
    disks.dedup();
    let others = disks.into_iter().filter_map(|disk| {
        let on_it = parts().filter(|part| part.below.iter().any(|below| below == disk));
        let own: u64 = on_it.map(|part| of(&part.name)).sum::<Option<u64>>()?;
        Some(of(disk)?.saturating_sub(own))
    });
    others.sum()
}

/// Whether others' requests are more than a tenth of the phase's own.
pub(super) fn of_others(e: &Evidence) -> Option<Flag> {
    let requests = e.requests?;
    let (own, others) = match (e.claimed_read > 0, e.claimed_written > 0) {
        (true, false) => (requests.read, requests.written),
        // What is read for a write (a part of a block, the file system's own) is read by this process.
        (false, true) if caused_here(e) => (requests.written, 0),
        (false, true) => (requests.written, requests.read),
        (true, true) => (requests.read + requests.written, 0),
        (false, false) => return None,
    };
    let others = others + requests.beside;
    (others > FEW && others as f64 > FOREIGN * own as f64).then(|| {
        let reason = format!(
            "the disk did {others} requests that were not asked for, beside {own} that were: something else used it, or \
             earlier data were written back"
        );
        Flag::new(FlagKind::ForeignIo, reason)
    })
}

/// Whether most of what the device read was read by this process, which asked for none of it.
fn caused_here(e: &Evidence) -> bool {
    let read = e.process_read.zip(e.device_read);
    read.is_none_or(|(process, device)| process.saturating_mul(2) >= device)
}
