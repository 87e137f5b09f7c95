//! Workers of the kernel that make durable for a process which has several calls under way.
use super::Host;
use super::device::Device;
use raidlab_core::op::FileId;
use std::collections::{BTreeMap, VecDeque};

/// Of each process and for each processor (io_uring, `io_init_wq_offload`: four times those that are online, or as many as it
/// has room for). `fsync` is never begun by the process itself (`io_fsync_prep`). Left out: those that write through the
/// cache, one to a file, take a place as well.
const EACH: u32 = 4;

/// A call that waits for one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    process: u16,
    tag: u32,
    file: Option<FileId>,
    data_only: bool,
}

/// Who is at work, by process, and who waits.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    most: u32,
    busy: BTreeMap<u16, u32>,
    waiting: VecDeque<Waiting>,
}

impl Workers {
    /// Of a machine of so many cores; without any each call begins at once.
    pub(super) const fn new(are: bool, cores: u32) -> Self {
        Self {
            most: if are { EACH * cores } else { u32::MAX },
            busy: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// One begins, if there is one.
    fn begins(&mut self, process: u16) -> bool {
        let busy = self.busy.entry(process).or_default();
        let free = *busy < self.most;
        *busy += u32::from(free);
        free
    }

    /// One is through; who goes on.
    fn ends(&mut self, process: u16) -> Option<Waiting> {
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|of| of.process == process);
        let next = next.and_then(|next| self.waiting.remove(next));
        if next.is_none()
            && let Some(busy) = self.busy.get_mut(&process)
        {
            *busy -= 1;
        }
        next
    }
}

impl<D: Device> Host<D> {
    /// A call makes a file durable as soon as there is a worker for it.
    pub(super) fn begin_sync(&mut self, tag: u32, file: Option<FileId>, data_only: bool) {
        let call = &mut self.calls[tag as usize];
        call.by_worker = true;
        let process = call.process;
        if self.workers.begins(process) {
            return self.start_sync(tag, file, data_only);
        }
        self.workers.waiting.push_back(Waiting {
            process,
            tag,
            file,
            data_only,
        });
    }

    /// The worker of a call that has ended goes on with the next one.
    #[cold]
    pub(super) fn worker_ends(&mut self, process: u16) {
        if let Some(next) = self.workers.ends(process) {
            self.start_sync(next.tag, next.file, next.data_only);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_so_many_and_those_that_wait_come_in_turn() {
        let mut workers = Workers::new(true, 2);
        assert!((0..8).all(|_| workers.begins(1)));
        assert!(!workers.begins(1) && workers.begins(2));
        for tag in [7, 8] {
            workers.waiting.push_back(Waiting {
                process: 1,
                tag,
                file: None,
                data_only: false,
            });
        }
        assert!(workers.ends(2).is_none());
        assert_eq!(workers.ends(1).map(|next| next.tag), Some(7));
        assert!(!workers.begins(1));
        assert_eq!(workers.ends(1).map(|next| next.tag), Some(8));
        assert!(workers.ends(1).is_none() && workers.begins(1));
        let mut none = Workers::new(false, 1);
        assert!((0..100).all(|_| none.begins(1)));
    }
}
