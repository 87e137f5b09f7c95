//! What the owner of the machine does beside the calls of processes: looking at the accounts,
//! emptying the cache, preparing files.
use super::cpu::CpuUse;
use super::device::{Device, DeviceCounters};
use super::fs::{FileSystem, FsError};
use super::{Host, PAGE, SECTOR};
use crate::block::{Busy, Extent, ResourceKind, Watch};
use raidlab_core::op::{FileId, FileOp, Op};
use raidlab_core::target::{Completion, Errno, Tag, Target};
use raidlab_core::time::Span;
use std::ops::ControlFlow;

impl<D: Device> Host<D> {
    /// Whether block operations go past the page cache.
    pub const fn set_direct(&mut self, direct: bool) {
        self.direct_blocks = direct;
    }

    /// Whether block operations go past the page cache.
    pub(crate) const fn is_direct(&self) -> bool {
        self.direct_blocks
    }

    /// Bytes of the largest read-ahead window.
    pub(crate) const fn read_ahead(&self) -> u64 {
        self.ahead_most * PAGE
    }

    /// Whoever reads sequentially goes on at byte `offset`, and begins there as at the beginning of a file:
    /// with windows that grow, the first of them at that place.
    pub(crate) fn read_from(&mut self, offset: u64) {
        let ways = self.files.iter_mut().flat_map(|file| &mut file.ahead);
        ways.for_each(|way| way.begin_at(offset / PAGE));
    }

    /// Bytes that block operations can address: of the device, or of data file 0.
    pub(super) fn block_size(&self) -> u64 {
        match self.files.get(1) {
            Some(file) => file.size,
            None if self.fs.is_raw() => self.below.device.sectors() * SECTOR,
            None => 0,
        }
    }

    /// Bytes of a data file.
    #[must_use]
    pub fn file_size(&self, file: FileId) -> u64 {
        match self.files.get(file as usize + 1) {
            Some(known) => known.size,
            None => self.raw_size(),
        }
    }

    /// Makes a data file of `bytes` that was written before and is on the device. Takes no time. Of ZFS, whose own cache nothing
    /// empties (see [`evict`](Self::evict)), as much of its end is in memory as fits; of others nothing.
    ///
    /// # Errors
    /// When the file system has no room for it.
    pub fn provide(&mut self, file: FileId, bytes: u64) -> Result<(), FsError> {
        let _ = self.provide_watched(file, bytes, &mut || ControlFlow::Continue(()))?;
        Ok(())
    }

    /// The same with a `watch` that is asked now and then while it takes long, and may end it.
    pub(crate) fn provide_watched(
        &mut self,
        file: FileId,
        bytes: u64,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, FsError> {
        if self.fs.provide_watched(file, bytes, watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let number = self.known(file);
        if !self.fs.is_raw() {
            self.files[number as usize].size = bytes;
        }
        // Real preparation writes the file through the ARC, and a cold phase is begun by advice that ZFS takes no notice of.
        if !self.traits.page_cache {
            let pages = bytes.div_ceil(PAGE);
            let held = pages.min(self.cache.capacity());
            self.cache.fill(number, pages - held, held);
            self.cache.shrink();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same of a file that nobody asks for.
    ///
    /// # Errors
    /// When the file system has no room for it.
    pub(crate) fn provide_aside(
        &mut self,
        file: FileId,
        bytes: u64,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>, FsError> {
        self.fs.provide_watched(file, bytes, watch)
    }

    /// Where all blocks of the file system lie; see [`FileSystem::blocks`].
    pub(crate) fn blocks_watched(&self, watch: Watch<'_>) -> Option<Vec<Extent>> {
        self.fs.blocks_watched(watch)
    }

    /// The file system puts nothing new where the device [says so](Device::copying), from now on.
    pub(crate) fn close_copied(&mut self) {
        let copying = self.below.device.copying();
        self.closes = copying.is_some();
        self.fs.close(copying);
    }

    /// The file system is mounted anew, see [`FileSystem::mount_anew`](super::fs::FileSystem::mount_anew).
    pub(crate) fn mount_anew(&mut self) {
        if self.fs.mount_anew() {
            self.submits_cold();
        }
    }

    /// `posix_fadvise(POSIX_FADV_DONTNEED)`: puts the clean pages of a data file out of the page cache; dirty ones stay,
    /// see [`sync`](Self::sync). What ZFS has in a cache of its own stays (`zpl_fadvise`, since 2.2, hands all advice but that to
    /// read ahead to the kernel, whose page cache has nothing; before there is none).
    pub fn evict(&mut self, file: FileId) {
        if !self.traits.page_cache {
            return;
        }
        let number = self.known(file);
        self.cache.forget(number, 0, u64::MAX, false);
    }

    /// Puts the clean pages of all files and all metadata out of the cache.
    pub fn drop_caches(&mut self) {
        self.cache.forget_all();
    }

    /// `sync`: lets time pass until all that is dirty is on the device. Nothing may be in flight.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn sync(&mut self) -> Result<(), Errno> {
        // A slot beyond those of the calls so far, given back at the end.
        let tag = Tag(self.calls.len() as u32);
        let mut done: Vec<Completion> = Vec::new();
        let op = Op::File(FileOp::SyncAll);
        // Not one of the jobs'.
        let job = self.process;
        self.process = job + 1;
        let begun = self.begin(tag.0, op);
        self.process = job;
        let ran = begun.and_then(|()| {
            while !done.iter().any(|end| end.tag == tag) && self.in_flight > 0 {
                self.wait(None, &mut done)?;
            }
            Ok(())
        });
        self.calls.truncate(tag.0 as usize);
        let ended = done.iter().find(|end| end.tag == tag);
        match (ran, ended) {
            (Ok(()), Some(end)) => end.result.map(|_| ()),
            _ => Err(super::EIO),
        }
    }

    /// Whether nothing is dirty, on its way or in an open transaction.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.cache.dirty() + self.cache.writing() == 0
            && self.journal.is_clean()
            && self.below.in_flight() == 0
    }

    /// What went over the edge of the device so far.
    #[must_use]
    pub const fn counters(&self) -> DeviceCounters {
        self.below.counters
    }

    /// Processor time used so far.
    #[must_use]
    pub fn cpu(&self) -> CpuUse {
        self.cores.used(self.now)
    }

    /// Processor time that is booked and has not passed yet: what nobody waits for piles up there.
    #[must_use]
    pub fn booked(&self) -> Span {
        self.cores.ahead(self.now)
    }

    /// The processor as a resource.
    #[must_use]
    pub fn busy(&self) -> Busy {
        let used = self.cpu();
        let mut parts = vec![
            ("user", used.user),
            ("system", used.system),
            ("kernel", used.kernel),
        ];
        parts.retain(|(_, time)| *time > Span::ZERO);
        parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        Busy {
            name: "CPU".to_owned(),
            kind: ResourceKind::Cpu,
            units: self.cores.count(),
            busy: used.total(),
            parts,
            way: None,
        }
    }

    /// Processes for whose processor something had to wait though other cores may have been free: those with several
    /// calls under way.
    pub fn threads(&self) -> impl Iterator<Item = Busy> + '_ {
        // On the only core a thread is all of it.
        let several = self.cores.count() > 1;
        let threads = self.cores.threads().filter(move |_| several);
        threads.map(|(number, busy)| Busy {
            name: format!("thread of job {number}"),
            kind: ResourceKind::Thread,
            units: 1,
            busy,
            parts: Vec::new(),
            way: None,
        })
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &D {
        &self.below.device
    }

    /// The device, to break or inspect it; what it has to do is looked at again.
    pub fn with_device<T>(&mut self, act: impl FnOnce(&mut D) -> T) -> T {
        let result = act(&mut self.below.device);
        self.below.refresh();
        result
    }

    /// The file system.
    #[must_use]
    pub const fn file_system(&self) -> &FileSystem {
        &self.fs
    }
}
