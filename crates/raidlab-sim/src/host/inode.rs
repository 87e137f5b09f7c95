//! The lock of a file's inode, which `fsync` of XFS holds, shared, while it waits for the log.
//!
//! `xfs_file_fsync` since "xfs: optimise away log forces on timestamp updates for fdatasync" (4.4), until "xfs: rework datasync tracking
//! and execution" (6.18). Whoever changes the inode meanwhile waits, and whoever comes after that one waits behind it although he
//! would share the lock (`rwsem_down_read_slowpath`); when it is a sharer's turn all that wait go on with him (`rwsem_mark_wake`). A look
//! takes no time here, nor does what a write through the cache changes; past it a change takes the time of the processor. Left out:
//! write-back that gives blocks their places, and what reads through the cache look up.
use super::call::Call;
use super::device::Device;
use super::fs::Punts;
use super::{Host, What};
use std::collections::VecDeque;

/// What somebody wants of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// To see where its blocks lie.
    Look,
    /// To change it.
    Change,
    /// To keep it as it is until the log has been written.
    Force,
}

/// Who has the lock and who waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    changing: bool,
    forces: u32,
    waiting: VecDeque<(u32, Wants)>,
}

impl Lock {
    fn is_free(&self, wants: Wants) -> bool {
        let shared = wants != Wants::Change || self.forces == 0;
        self.waiting.is_empty() && !self.changing && shared
    }

    fn given(&mut self, wants: Wants) {
        match wants {
            Wants::Look => {}
            Wants::Change => self.changing = true,
            Wants::Force => self.forces += 1,
        }
    }

    /// Whether a call goes on; if not it waits.
    fn takes(&mut self, tag: u32, wants: Wants) -> bool {
        let free = self.is_free(wants);
        match free {
            true => self.given(wants),
            false => self.waiting.push_back((tag, wants)),
        }
        free
    }

    /// Somebody has what he wanted no more; who goes on.
    fn ends(&mut self, had: Wants) -> Vec<(u32, Wants)> {
        match had {
            Wants::Look => {}
            Wants::Change => self.changing = false,
            Wants::Force => self.forces -= 1,
        }
        let mut on = Vec::new();
        while !self.changing
            && self.forces == 0
            && let Some(&next) = self.waiting.front()
        {
            let from = on.len();
            if next.1 == Wants::Change {
                self.waiting.pop_front();
                on.push(next);
            } else {
                let all = std::mem::take(&mut self.waiting).into_iter();
                let (waits, shares): (VecDeque<_>, VecDeque<_>) =
                    all.partition(|(_, wants)| *wants == Wants::Change);
                on.extend(shares);
                self.waiting = waits;
            }
            on[from..].iter().for_each(|(_, wants)| self.given(*wants));
        }
        on
    }
}

impl<D: Device> Host<D> {
    /// Whether a call has the inode of its file as it wants it; if not it waits, and is stepped when it has. What is not a look is
    /// to be given back by [`gives_inode`](Self::gives_inode).
    #[inline]
    pub(super) fn has_inode(&mut self, tag: u32, wants: Wants) -> bool {
        !self.traits.fsync_holds || self.takes_inode(tag, wants)
    }

    fn takes_inode(&mut self, tag: u32, wants: Wants) -> bool {
        let call = &mut self.calls[tag as usize];
        let lock = &mut self.files[call.file as usize].lock;
        let waited = call.inode.is_some();
        let takes = waited || lock.takes(tag, wants);
        if takes && !waited {
            call.inode = Some(wants);
        }
        if call.inode == Some(Wants::Look) {
            call.inode = None;
        }
        if !takes {
            self.below.unplug(self.now);
        }
        takes
    }

    /// Whether a call would not have to wait for it.
    pub(super) fn would_have_inode(&self, tag: u32, wants: Wants) -> bool {
        let call = &self.calls[tag as usize];
        call.inode.is_some() || self.files[call.file as usize].lock.is_free(wants)
    }

    /// A call is through with its inode, if it has it.
    pub(super) fn gives_inode(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        let file = call.file as usize;
        let Some(had) = call.inode.take() else {
            return;
        };
        for (tag, wants) in self.files[file].lock.ends(had) {
            self.calls[tag as usize].inode = Some(wants);
            self.at(self.now, What::Step(tag));
        }
    }

    /// Whether a write up to byte `end` changes the inode of its file, as one does that has waited to: to the time at which it
    /// came, whatever others have made of it meanwhile (`file_modified` asks for the time first).
    pub(super) fn changes_inode(&mut self, tag: u32, end: u64) -> bool {
        let Call {
            file,
            looked,
            inode,
            ..
        } = self.calls[tag as usize];
        self.fs.clock(looked.0);
        if inode == Some(Wants::Change) {
            self.fs.outdate(file - 1);
        }
        let asks = self.traits.fsync_holds || self.traits.punts != Punts::None;
        asks && self.fs.changes(file - 1, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_waits_for_forces_and_all_wait_behind_him() {
        let mut lock = Lock::default();
        let tags = |on: Vec<(u32, Wants)>| -> Vec<u32> { on.iter().map(|(tag, _)| *tag).collect() };
        assert!(lock.takes(0, Wants::Force) && lock.takes(1, Wants::Look));
        assert!(lock.takes(2, Wants::Force));
        assert!(!lock.takes(3, Wants::Change) && !lock.takes(4, Wants::Look));
        assert!(!lock.takes(5, Wants::Change) && !lock.takes(6, Wants::Force));
        assert!(lock.ends(Wants::Force).is_empty());
        assert_eq!(tags(lock.ends(Wants::Force)), [3]);
        assert!(!lock.takes(7, Wants::Look));
        // The next to look takes all along that share, past the one who would change.
        assert_eq!(tags(lock.ends(Wants::Change)), [4, 6, 7]);
        assert!(!lock.takes(8, Wants::Force));
        assert_eq!(tags(lock.ends(Wants::Force)), [5]);
        assert_eq!(tags(lock.ends(Wants::Change)), [8]);
        assert!(!lock.takes(9, Wants::Change) && lock.forces == 1);
        assert_eq!(tags(lock.ends(Wants::Force)), [9]);
        assert!(lock.ends(Wants::Change).is_empty());
        assert!(lock.takes(10, Wants::Change) && !lock.takes(11, Wants::Look));
    }

    /// Those who only look have gone when they are told to go on: whoever would change is next.
    #[test]
    fn who_looks_keeps_nobody() {
        let mut lock = Lock::default();
        assert!(lock.takes(0, Wants::Force));
        assert!(!lock.takes(1, Wants::Change) && !lock.takes(2, Wants::Look));
        assert!(!lock.takes(3, Wants::Change));
        assert_eq!(lock.ends(Wants::Force), [(1, Wants::Change)]);
        assert_eq!(
            lock.ends(Wants::Change),
            [(2, Wants::Look), (3, Wants::Change)]
        );
    }
}
