//! A log that one call writes for all who have come by then (btrfs, `btrfs_sync_log`).
//!
//! One writes at a time. Who comes meanwhile adds to the next log, which the first of them writes when the one under way is on the
//! device. Where the device turns and several have added, he sleeps a tick of the clock for more to come, and again as long as
//! somebody came (`BTRFS_ROOT_MULTI_LOG_TASKS`, not with `ssd`).
use super::call::Work;
use super::device::Device;
use super::sync::Part;
use super::{Host, What};
use raidlab_experiment::kernel::TICK;

/// The log that is being written and the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedLog {
    /// It is being written, or waited for more.
    busy: bool,
    /// Whose it is, the one who writes it first.
    writes: Vec<u32>,
    /// Who has added to the next one.
    next: Vec<u32>,
    /// How many they were when the first of them began to sleep.
    counted: usize,
}

impl<D: Device> Host<D> {
    /// A call has added to the log and waits until that is written; it may have to write it.
    pub(super) fn join_log(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        (call.synced.log, call.work) = (false, Work::Sync(Part::Stages));
        self.log.next.push(tag);
        if !self.log.busy {
            self.gather_log();
        }
    }

    /// The next log is to be written, once nobody else comes.
    fn gather_log(&mut self) {
        self.log.busy = true;
        self.log.counted = self.log.next.len();
        if self.log.counted > 1 && self.below.hints.rotational {
            return self.at(self.now + TICK, What::Log);
        }
        self.write_log();
    }

    /// A tick has passed.
    pub(super) fn log_timer(&mut self) {
        if self.log.next.len() > self.log.counted {
            return self.gather_log();
        }
        self.write_log();
    }

    fn write_log(&mut self) {
        self.log.writes = std::mem::take(&mut self.log.next);
        if let Some(&first) = self.log.writes.first() {
            let call = &mut self.calls[first as usize];
            (call.synced.stages, call.stage) = (self.fs.write_log(), 0);
            self.at(self.now, What::Step(first));
        }
    }

    /// A call has written what it had to: if that was the log, it is on the device for all whose it is.
    pub(super) fn log_written(&mut self, tag: u32) {
        if self.log.writes.first() != Some(&tag) {
            return;
        }
        for other in std::mem::take(&mut self.log.writes) {
            if other != tag {
                self.at(self.now, What::Step(other));
            }
        }
        self.log.busy = false;
        if !self.log.next.is_empty() {
            self.gather_log();
        }
    }
}
