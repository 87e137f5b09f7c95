//! The one block device below a host, and the requests that the host has there.
use crate::block::{Alone, Bio, Ended, Origin};
use crate::disk::Disk;
use crate::storage::Asked;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{Lba, SECTOR};

/// What the host must know of a device beside its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Sectors of the largest request that is given to it in one piece.
    pub max_sectors: u32,
    /// The same of [`paged`](crate::block::Origin::paged) ones, each page of which is a stretch of memory.
    pub paged: u32,
    /// Sectors of pages that are read as one request, which ends when all of it has come: at least as many.
    pub window: u32,
    /// Sectors up to which a call that asks for more than the read-ahead is read at once (`bdi->io_pages`); 0: no more for it.
    pub large_call: u32,
    /// Bytes of data in a stripe of an array; 0 where there is none. md raises the read-ahead to two.
    pub stripe: u64,
    /// Whether a disk below turns (`queue/rotational`).
    pub rotational: bool,
    /// Sectors of writes that its queues take before whoever submits more must wait: requests of all
    /// its queues times the largest request (`nr_requests`).
    pub queue: u64,
}

/// A block device that is asked, not called back; see [`crate::block`].
pub trait Device {
    /// Its size.
    fn sectors(&self) -> u64;

    /// What it is like; constant.
    fn hints(&self) -> Hints;

    /// Takes a request.
    fn submit(&mut self, now: Instant, bio: Bio);

    /// Takes a request of a submitter that collects nothing.
    fn submit_bare(&mut self, now: Instant, bio: Bio) {
        self.submit(now, bio);
        self.unplug(now);
    }

    /// The submitter waits now: what is held back is to be sent off.
    fn unplug(&mut self, now: Instant);

    /// Requests to its members so far that cost time of a processor beside the one that each request to it costs.
    fn asked(&self) -> Asked {
        Asked::default()
    }

    /// Whoever submits with such an origin sleeps in it, with more that has no request yet.
    fn sleeps(&self, origin: &Origin) -> bool {
        let _ = origin;
        false
    }

    /// A writer is held back for how much is dirty on it.
    fn writer_sleeps(&mut self, now: Instant) {
        let _ = now;
    }

    /// Threads of its own that it has on the machine's cores; constant.
    fn threads(&self) -> usize {
        0
    }

    /// Work that one of them was given so far, whether it has done it or not.
    fn worked(&self, thread: usize) -> Span {
        let _ = thread;
        Span::ZERO
    }

    /// One of them has no core for `time`: all that it has to do comes so much later.
    fn wait(&mut self, now: Instant, thread: usize, time: Span) {
        let _ = (now, thread, time);
    }

    /// Sectors where nothing new may be put for now: from the first to the one after the last.
    fn copying(&self) -> Option<(u64, u64)> {
        None
    }

    /// It has new members to fill, and does so when [`fill`](Self::fill) lets it.
    fn fills(&self) -> bool {
        false
    }

    /// From now on it fills its new members, or begins with nothing more of that.
    fn fill(&mut self, now: Instant, on: bool) {
        let _ = (now, on);
    }

    /// Nothing of that is under way, nor will be before it is let.
    fn fill_rests(&self) -> bool {
        true
    }

    /// When to call [`advance`](Self::advance) next.
    fn next_event(&self) -> Option<Instant>;

    /// Lets time pass and appends what has ended, in the order of the ends.
    fn advance(&mut self, now: Instant, done: &mut Vec<Ended>);
}

/// A bare disk without queue, channel or array.
#[derive(Clone, Debug)]
pub struct BareDisk {
    disk: Disk,
}

impl BareDisk {
    /// `disk` as the device of a host.
    #[must_use]
    pub const fn new(disk: Disk) -> Self {
        Self { disk }
    }

    /// The disk.
    #[must_use]
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The disk, to break it.
    pub const fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }
}

impl Device for BareDisk {
    fn sectors(&self) -> u64 {
        self.disk.model().sectors()
    }

    /// 256 KiB a command; the 128 requests of the kernel's queue.
    fn hints(&self) -> Hints {
        Hints {
            max_sectors: 512,
            paged: 512,
            window: 512,
            large_call: 512,
            stripe: 0,
            rotational: false,
            queue: 128 * 512,
        }
    }

    fn submit(&mut self, now: Instant, bio: Bio) {
        self.disk.submit(now, bio.into());
    }

    fn unplug(&mut self, _: Instant) {}

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        self.disk.advance_each(now, |end| done.push(end));
    }
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Pages of a file come into the cache, by read-ahead or because somebody waits for them.
    Fill {
        file: u32,
        page: u64,
        pages: u32,
        ahead: bool,
    },
    /// Pages of a file go from the cache; `number` counts such requests up.
    Flush {
        file: u32,
        page: u64,
        pages: u32,
        number: u64,
    },
    /// Metadata that goes to the device with data, counted with it.
    Along { number: u64 },
    /// A call waits for it.
    Call(u32),
    /// The journal waits for it.
    Journal,
    /// Nothing: the place is free.
    Free,
}

/// Bytes that went over the device's edge so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// A request before it has a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) kind: BlockKind,
    pub(super) lba: u64,
    pub(super) sectors: u64,
    pub(super) fua: bool,
    pub(super) origin: Origin,
}

/// The device and what the host has in it.
#[derive(Clone, Debug)]
pub(super) struct Below<D> {
    pub(super) device: D,
    pub(super) hints: Hints,
    pub(super) counters: DeviceCounters,
    /// Whose each request is, and requests to members that it became beside one.
    flights: Vec<(Owner, u32)>,
    free: Vec<u32>,
    /// Kept, as it is asked at every step.
    next: Instant,
    /// Something was submitted since the device was last told to send off.
    plugged: bool,
    /// Requests to members that requests became beside one each, and that nobody has answered for.
    beside: u64,
    /// What the device had asked of its members when that was last looked at.
    asked: Asked,
    /// Whoever submits now collects nothing.
    pub(super) bare: bool,
}

/// Later than anything.
pub(super) const NEVER: Instant = Instant(u64::MAX);

impl<D: Device> Below<D> {
    pub(super) fn new(device: D) -> Self {
        let hints = device.hints();
        let next = device.next_event().unwrap_or(NEVER);
        Self {
            device,
            hints,
            counters: DeviceCounters::default(),
            flights: Vec::new(),
            free: Vec::new(),
            next,
            plugged: false,
            beside: 0,
            asked: Asked::default(),
            bare: false,
        }
    }

    /// When something happens in the device.
    #[inline]
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn refresh(&mut self) {
        self.next = self.device.next_event().unwrap_or(NEVER);
    }

    /// Submits one request of at most the device's largest size.
    pub(super) fn submit(&mut self, now: Instant, wish: Wish, owner: Owner) {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.flights.push((Owner::Free, 0));
                (self.flights.len() - 1) as u32
            }
        };
        let bytes = wish.sectors * SECTOR;
        let counters = &mut self.counters;
        match wish.kind {
            BlockKind::Read => {
                (counters.reads, counters.read) = (counters.reads + 1, counters.read + bytes);
            }
            BlockKind::Write => {
                (counters.writes, counters.written) =
                    (counters.writes + 1, counters.written + bytes);
            }
            BlockKind::Flush | BlockKind::FlushData => counters.flushes += 1,
        }
        let bio = Bio {
            id: u64::from(id),
            kind: wish.kind,
            lba: Lba(wish.lba),
            sectors: wish.sectors as u32,
            fua: wish.fua,
            origin: wish.origin,
        };
        let before = self.device.asked().submitter;
        if self.bare {
            self.device.submit_bare(now, bio);
        } else {
            self.device.submit(now, bio);
            self.plugged = true;
        }
        let became = self.device.asked().submitter - before;
        self.asked.submitter += became;
        let beside = became.saturating_sub(1);
        self.beside += beside;
        self.flights[id as usize] = (owner, beside as u32);
        self.refresh();
    }

    /// Requests to members beside one for each request to the device, which somebody answers for now.
    #[inline]
    pub(super) const fn beside(&mut self) -> u64 {
        std::mem::replace(&mut self.beside, 0)
    }

    /// Whether nothing was asked of the members that [`Self::asked`] and [`Self::beside`] would tell, as mostly.
    #[inline]
    pub(super) fn asks_nothing(&self) -> bool {
        self.beside == 0 && self.device.asked() == self.asked
    }

    /// What was asked of the members since this was last called, and not by who submitted to the device at the time.
    #[inline]
    pub(super) fn asked(&mut self) -> Asked {
        let now = self.device.asked();
        let before = std::mem::replace(&mut self.asked, now);
        Asked {
            submitter: now.submitter - before.submitter,
            thread: now.thread - before.thread,
            resync: now.resync - before.resync,
        }
    }

    /// What has ended is told by its owner; with it have requests to members beside one.
    pub(super) fn owner_of(&mut self, id: u64) -> (Owner, u32) {
        self.free.push(id as u32);
        std::mem::replace(&mut self.flights[id as usize], (Owner::Free, 0))
    }

    /// Whoever submitted waits now.
    pub(super) fn unplug(&mut self, now: Instant) {
        if std::mem::take(&mut self.plugged) {
            self.device.unplug(now);
            self.refresh();
        }
    }

    /// Lets the device fill its new members, or begin with nothing more of that.
    pub(super) fn fill(&mut self, now: Instant, on: bool) {
        self.device.fill(now, on);
        self.refresh();
    }

    /// A thread of the device has no core for so long.
    pub(super) fn wait(&mut self, now: Instant, thread: usize, time: Span) {
        self.device.wait(now, thread, time);
        self.refresh();
    }

    pub(super) fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        self.device.advance(now, done);
        self.refresh();
    }

    /// Requests in the device.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }
}
