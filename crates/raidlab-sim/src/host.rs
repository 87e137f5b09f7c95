//! The computer above one block device: processes, processor, page cache, read-ahead, write-back,
//! journal and file system.
//!
//! A [`Host`] is a target: each operation is a system call of a process, carried on as far as it goes
//! without waiting. What it waits for is a page, its own requests, the dirty limits, a commit or a
//! core. A call that finds its pages in memory costs a look at one word of the cache and one event.
//!
//! | module | holds |
//! |---|---|
//! | [`fs`] | where files lie and what metadata costs: plans, no I/O |
//! | [`cpu`] | processor models; cores and what work costs on them |
//! | `device` | the trait of the device below; requests and whose they are |
//! | `era` | what the memory management of each kernel does |
//! | `cache`, `readahead` | pages in memory; which are read before they are wanted |
//! | `agenda`, `happen` | what happens when; the loop that has it happen |
//! | `call`, `read`, `write`, `direct`, `names` | system calls |
//! | `back`, `throttle`, `sync`, `journal`, `shared_log` | what brings dirty pages to the device |
//! | `inode`, `workers` | who waits for a file's inode, and for a worker of the kernel |
//! | `control` | what the owner of the machine does beside the calls |
mod agenda;
mod back;
mod cache;
mod call;
mod control;
pub mod cpu;
mod device;
mod direct;
mod era;
pub mod fs;
mod happen;
mod inode;
mod journal;
mod names;
mod read;
mod readahead;
mod shared_log;
mod spec;
mod submitter;
mod sync;
mod throttle;
mod workers;
mod write;

#[cfg(test)]
mod tests;

pub use cpu::{CpuModel, CpuUse};
pub use device::{BareDisk, Device, DeviceCounters, Hints};
pub use spec::HostSpec;

use crate::block::{Ended, RESYNC};
use agenda::Agenda;
use back::WriteBack;
use cache::{Cache, PAGE};
use call::Call;
use cpu::{Cores, Costs};
use device::{Below, Owner};
use era::Era;
use fs::{FileSystem, Piece, Traits};
use inode::Lock;
use journal::Journal;
use raidlab_core::op::Op;
use raidlab_core::target::{Completion, Errno, Limits, Tag, Target, TargetError};
use raidlab_core::time::Instant;
use raidlab_core::units::SECTOR;
use readahead::ReadAhead;
use shared_log::SharedLog;
use submitter::{Submitters, Waits};
use workers::Workers;

/// Calls in flight at most.
const IN_FLIGHT: u32 = 4096;
/// Error numbers of Linux.
const EIO: Errno = Errno(5);
const ENOENT: Errno = Errno(2);
const EINVAL: Errno = Errno(22);
const EFBIG: Errno = Errno(27);
const ENOSPC: Errno = Errno(28);

/// The file of metadata and small files: the device itself, byte for byte. Data file n is n + 1.
const META: u32 = 0;

/// What happens by itself at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A call has ended.
    Done(u32),
    /// A call goes on.
    Step(u32),
    /// The flusher wakes.
    Wake,
    /// The running transaction is old enough.
    Commit,
    /// Metadata in the log goes home.
    Home,
    /// Who writes a log has waited for others.
    Log,
    /// Write-back goes on.
    Pump,
    /// The filling of new members has gone on for so long.
    Fill,
    /// A process hears of what has ended while it submitted.
    Hears(u16),
}

/// A data file as the host knows it.
#[derive(Clone, Debug, Default)]
struct File {
    size: u64,
    opens: u32,
    direct: bool,
    sync: bool,
    /// How each open file is read.
    ahead: Vec<ReadAhead>,
    /// When the oldest dirty page became so.
    dirtied: Option<Instant>,
    /// Where write-back goes on.
    cursor: u64,
    /// Write requests of its pages in the device.
    writes: u32,
    /// Pages that the flusher is to write because they are old.
    expired: u64,
    /// A write-back failed; told by the next call that makes it durable.
    failed: bool,
    lock: Lock,
}

/// A computer with one block device `D`.
#[derive(Clone, Debug)]
pub struct Host<D> {
    now: Instant,
    below: Below<D>,
    fs: FileSystem,
    traits: Traits,
    era: Era,
    costs: Costs,
    cores: Cores,
    workers: Workers,
    /// Who waits for calls that cannot be begun without, and which processes do.
    waits: Waits,
    submitters: Submitters,
    cache: Cache,
    /// Largest read-ahead window in pages.
    ahead_most: u64,
    files: Vec<File>,
    calls: Vec<Call>,
    /// Whose calls begin now.
    process: u16,
    in_flight: u32,
    /// Calls that wait for a page.
    sleepers: Vec<u32>,
    back: WriteBack,
    journal: Journal,
    log: SharedLog,
    /// Block operations go past the page cache.
    direct_blocks: bool,
    /// The device may say where nothing new is to be put.
    closes: bool,
    events: Agenda,
    /// Reads of files so far, to tell which way of reading was not used for longest.
    order: u64,
    ended: Vec<Ended>,
    pieces: Vec<Piece>,
}

impl<D: Device> Host<D> {
    /// A computer of `spec` over `device` with `fs` on it, its cache empty. Block operations go past
    /// the page cache until [`set_direct`](Self::set_direct) says otherwise.
    #[must_use]
    pub fn new(spec: &HostSpec, device: D, fs: FileSystem) -> Self {
        let traits = fs.traits().clone();
        let era = Era::of(spec.kernel).set(&spec.write_back);
        let mut era = if traits.page_cache {
            era
        } else {
            era.of_own_cache()
        };
        era.workers_write &= fs.is_raw();
        let waits = Waits::of(&traits, &era);
        let below = Below::new(device);
        let threads = below.device.threads();
        let pages = spec.cache_pages(&traits);
        let ahead = spec.read_ahead_pages(&era, &traits, &below.hints);
        let queue = below.hints.queue;
        Self {
            now: Instant::ZERO,
            cache: Cache::new(pages, era.balance, era.writes_use),
            back: WriteBack::new(spec, &era, &traits, pages, queue),
            below,
            fs,
            traits,
            era,
            costs: Costs::of(&spec.cpu, spec.mhz),
            cores: Cores::new(spec.cores).with_below(threads),
            workers: Workers::new(era.workers_sync, spec.cores),
            waits,
            submitters: Submitters::default(),
            ahead_most: ahead,
            files: vec![File::default()],
            calls: Vec::new(),
            process: 1,
            in_flight: 0,
            sleepers: Vec::new(),
            journal: Journal::default(),
            log: SharedLog::default(),
            direct_blocks: true,
            closes: false,
            events: Agenda::default(),
            order: 0,
            ended: Vec::new(),
            pieces: Vec::new(),
        }
    }

    #[inline]
    fn at(&mut self, at: Instant, what: What) {
        self.events.put(at, what);
    }

    /// Bytes of a data file; of the device for the raw device and metadata.
    #[inline]
    fn size_of(&self, file: u32) -> u64 {
        self.files[file as usize].size
    }

    /// The number of a data file here, made known.
    #[inline]
    fn known(&mut self, file: u32) -> u32 {
        let number = file.saturating_add(1);
        if self.files.len() <= number as usize {
            self.introduce(number);
        }
        number
    }

    #[cold]
    fn introduce(&mut self, number: u32) {
        let whole = File {
            size: self.raw_size(),
            ..File::default()
        };
        self.files.resize(number as usize + 1, whole);
    }

    /// Bytes of every file of a raw device, 0 on a file system.
    fn raw_size(&self) -> u64 {
        if self.fs.is_raw() {
            self.below.device.sectors() * SECTOR
        } else {
            0
        }
    }
}

impl<D: Device> Target for Host<D> {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: IN_FLIGHT,
            alignment: SECTOR as u32,
            size: self.block_size(),
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    #[inline]
    fn asked_by(&mut self, workload: u32) {
        // Process 0 is the kernel.
        self.process = workload.saturating_add(1).min(u32::from(RESYNC) - 2) as u16;
    }

    #[inline]
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let begun = self.begin(tag.0, op);
        self.share_cores();
        begun
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        self.go_on(until, done)
    }
}

/// Sectors of pages.
#[inline]
const fn sectors(pages: u64) -> u64 {
    pages * (PAGE / SECTOR)
}

/// First page and number of pages that bytes lie in.
#[inline]
const fn pages_of(offset: u64, bytes: u64) -> (u64, u64) {
    let first = offset / PAGE;
    (first, (offset + bytes).div_ceil(PAGE) - first)
}
