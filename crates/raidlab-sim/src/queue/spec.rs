//! What a kernel makes of a device's queue: limits, plugging, scheduler.
//!
//! Every constant stands here or with its scheduler, once, with the place it comes from. Kernel
//! sources are named by file; version numbers are those of the release that first had the change.
use super::{anticipatory, bfq, cfq, deadline, elevator, kyber, vdev, wbt};
use raidlab_core::time::Span;
use raidlab_experiment::kernel::{Kernel, Scheduler};

/// How new requests are held back for others to join them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugging {
    /// Not at all.
    Off,
    /// The queue is plugged when it was empty, until somebody waits, enough requests have come or
    /// time is up (`blk_plug_device`, to 2.6.38).
    Queue {
        /// Waiting requests that end it.
        threshold: u32,
        /// Time that ends it.
        delay: Span,
    },
    /// Each process collects what it submits in one go, and hands it over when it is through or waits
    /// (`blk_start_plug`, since 2.6.39). Such a run takes no time here: what is still held back one
    /// nanosecond later goes to the device.
    Task {
        /// Requests collected that are handed over at once.
        threshold: u32,
    },
}

/// How many requests there may be, waiting and in the device. What comes above that is not merged
/// and not sorted: it waits for a request to be free, as its submitter would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Of both groups together; more than those of each where only each has a limit.
    pub total: u32,
    /// Of each group: reads and writes, or synchronous and asynchronous ones.
    pub each: [u32; 2],
    /// Asynchronous ones while the scheduler favours a process.
    pub beside_favoured: u32,
    /// The groups are synchronous and asynchronous, not reads and writes.
    pub by_sync: bool,
    /// How those who wait are let in.
    pub admits: Admits,
}

/// When whoever waits for a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// With each that has become free.
    Each,
    /// With each, and whoever waited, or took the last one, may have up to 32 at once, half as many again as there may be with
    /// those (`ioc_batching`, `block/ll_rw_blk.c` and `blk-core.c`, 2.6.0 to 4.20).
    InBatches,
    /// When so many have become free: a quarter, at most 32, in Linux 2.4 (`batch_requests`, `drivers/block/ll_rw_blk.c`), and an
    /// eighth, at most 8, on blk-mq (`sbq_calc_wake_batch`, `lib/sbitmap.c`).
    After(u32),
}

/// What orders the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One-way elevator over all requests: Linux 2.4 and Windows.
    Elevator(elevator::Tunables),
    /// First come, first served.
    Noop,
    /// First come, first served, on blk-mq.
    None,
    /// Sorted, with deadlines; also mq-deadline.
    Deadline(deadline::Tunables),
    /// Waits for the next read of the same process.
    Anticipatory(anticipatory::Tunables),
    /// Time slices by process.
    Cfq(cfq::Tunables),
    /// Budgets by process.
    Bfq(bfq::Tunables),
    /// Tokens by latency.
    Kyber(kyber::Tunables),
    /// What ZFS keeps above a queue without a scheduler.
    Vdev(vdev::Tunables),
}

/// The queue of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// What orders the requests.
    pub policy: Policy,
    /// How requests are held back at first.
    pub plugging: Plugging,
    /// What a process collects goes off when the request that came last has 128 KiB and another one comes
    /// (`BLK_PLUG_FLUSH_SIZE`; since 4.10, "block: immediately dispatch big size request"). Here of reads by who waits for them.
    pub large_go: bool,
    /// How many there may be.
    pub requests: Requests,
    /// Sectors in a request at most; a bio that is longer is left as it is.
    pub max_sectors: u32,
    /// The most that the device itself takes.
    pub device_sectors: u32,
    /// Stretches of memory in a request at most (`max_segments`). A bio that joins another adds one at the least, wherever its
    /// pages lie (`ll_new_hw_segment`, `blk-merge.c`), and a [`paged`](crate::block::Origin::paged) one each of its pages.
    pub segments: u32,
    /// Requests that the device is given at a time.
    pub depth: u32,
    /// The device has an arm.
    pub rotational: bool,
    /// A flush, or a write that must be on the media, is a barrier: it waits until all before it has
    /// ended, and all after it waits for its end (`blk-barrier.c`, to 2.6.36). Later the file system
    /// waits, and flushes pass by the others.
    pub barriers: bool,
    /// The device itself writes past its buffer when asked to. If not, such a write is followed by a
    /// flush.
    pub fua: bool,
    /// Reading ahead stays plugged until the reader waits; later the read-ahead code unplugs, so
    /// whoever reads ahead calls [`unplug`](super::Queue::unplug) at once (commit 65a80b4c, 2.6.33).
    pub ahead_stays_plugged: bool,
    /// How write-back that nobody waits for is held back; `None`: it is not.
    pub wbt: Option<wbt::Tunables>,
}

/// `q->unplug_thresh`, `block/ll_rw_blk.c` and `blk-settings.c` to 2.6.38.
const UNPLUG_THRESHOLD: u32 = 4;
/// `q->unplug_delay`, as above: 3 ms.
const UNPLUG_DELAY: Span = Span::from_millis(3);
/// `BLK_MAX_REQUEST_COUNT`, `block/blk.h`, 2.6.39 to 5.16; 32 since.
const TASK_PLUG: u32 = 16;
const TASK_PLUG_LATER: u32 = 32;
/// `BLKDEV_MAX_RQ`, `include/linux/blkdev.h`: for each direction, and on blk-mq for both together
/// when the device has no fewer tags.
const NR_REQUESTS: u32 = 128;
/// `batch_requests` of Linux 2.4 at the most.
const BATCH_OLD: u32 = 32;
/// `SBQ_WAIT_QUEUES` and `SBQ_WAKE_BATCH`, `include/linux/sbitmap.h`.
const WAIT_QUEUES: u32 = 8;
const WAKE_BATCH: u32 = 8;
/// Without limit in `vdev_queue.c`; more than a group has: 8 GiB in records of 128 KiB.
const VDEV_REQUESTS: u32 = 1 << 16;
/// Largest request of Linux 2.4 and of drivers without their own limit before 2.6.15:
/// `MAX_SECTORS` and `SAFE_MAX_SECTORS` 255, in use 128 KiB ("max request size: 128KiB").
const SECTORS_OLD: u32 = 256;
/// `BLK_DEF_MAX_SECTORS`, 512 KiB, 2.6.15 to 4.2. From 3.19 on it was what the device takes ("block: remove artifical max_hw_sectors
/// cap", taken back with 4.3), of which the 168 segments of AHCI left 672 KiB where pages lie apart: that of those kernels is not modelled.
const SECTORS_DEFAULT: u32 = 1024;
/// `BLK_DEF_MAX_SECTORS`, 1280 KiB, 4.3 to 6.16.
const SECTORS_LATER: u32 = 2560;
/// `BLK_DEF_MAX_SECTORS_CAP`, 4 MiB, since 6.17.
const SECTORS_NEW: u32 = 8192;

impl QueueSpec {
    /// The queue that `kernel` gives a device which takes at most `max_sectors` in a request and
    /// `tags` requests at a time (0 counts as 1 for both). `None` for the scheduler where there is no
    /// choice of one.
    ///
    /// A scheduler that the kernel does not have is taken with the nearest one's facts; the
    /// experiment's check refuses it before.
    #[must_use]
    pub fn of(
        kernel: Kernel,
        scheduler: Option<Scheduler>,
        rotational: bool,
        max_sectors: u32,
        tags: u32,
    ) -> Self {
        let depth = tags.max(1);
        let multi = matches!(
            scheduler,
            Some(Scheduler::None | Scheduler::MqDeadline | Scheduler::Bfq | Scheduler::Kyber)
        );
        let policy = policy(kernel, scheduler);
        Self {
            policy,
            wbt: wbt::Tunables::of(kernel, policy, rotational).filter(|_| multi),
            plugging: plugging(kernel),
            large_go: matches!(kernel, Kernel::Linux(..)) && kernel >= Kernel::Linux(4, 10, 0),
            requests: requests(kernel, scheduler, multi, depth),
            max_sectors: limit(kernel).min(max_sectors.max(1)),
            device_sectors: max_sectors.max(1),
            segments: u32::MAX,
            depth,
            rotational,
            barriers: kernel < Kernel::Linux(2, 6, 37),
            fua: false,
            ahead_stays_plugged: kernel < Kernel::Linux(2, 6, 33),
        }
    }
}

impl QueueSpec {
    /// With another number of requests (`nr_requests`, at least 1): of each direction before blk-mq, of both together
    /// with a scheduler of blk-mq, and without one no more than the device has tags.
    #[must_use]
    pub fn with_requests(
        mut self,
        kernel: Kernel,
        scheduler: Option<Scheduler>,
        requests: u32,
    ) -> Self {
        let requests = requests.max(1);
        self.requests = if !self.requests.by_sync {
            Requests::of_kernel(kernel, requests)
        } else if scheduler == Some(Scheduler::None) {
            let requests = requests.min(self.depth);
            Requests::of_both(requests, [requests; 2])
        } else {
            Requests::of_both(requests, behind(kernel, scheduler, requests))
        };
        self
    }
}

impl QueueSpec {
    /// With a device that is given no more requests at a time (`queue_depth` of a SCSI or SATA disk). How many the queue above
    /// it holds stays: that follows from the tags of the host adapter (`blk_mq_init_sched`: `tag_set->queue_depth`).
    #[must_use]
    pub fn with_drive_queue(mut self, depth: u32) -> Self {
        self.depth = self.depth.min(depth.max(1));
        self
    }
}

impl QueueSpec {
    /// Of a device whose cache of writes is on, or off.
    #[must_use]
    pub fn with_write_cache(mut self, on: bool) -> Self {
        if let Some(with) = &mut self.wbt {
            with.write_cache = on;
        }
        self
    }

    /// With the queue that ZFS keeps for each disk above this one: it takes all that a transaction group has, and gives out so
    /// many at a time as its release does. Each goes out at once.
    #[must_use]
    pub fn under_vdev(mut self, kernel: Kernel) -> Self {
        let with = vdev::Tunables::of(kernel, self.rotational);
        self.policy = Policy::Vdev(with);
        self.wbt = None;
        if with.active.is_some() {
            self.plugging = Plugging::Off;
        }
        self.requests = Requests::by_kind(VDEV_REQUESTS, Admits::Each);
        self
    }
}

impl Requests {
    /// So many reads, and as many writes.
    const fn by_kind(each: u32, admits: Admits) -> Self {
        Self {
            total: u32::MAX,
            each: [each; 2],
            beside_favoured: each,
            by_sync: false,
            admits,
        }
    }

    /// The same as `kernel` does it, before blk-mq.
    fn of_kernel(kernel: Kernel, each: u32) -> Self {
        let admits = match kernel {
            Kernel::Windows2000 => Admits::Each,
            old if old < Kernel::Linux(2, 6, 0) => Admits::After((each / 4).clamp(1, BATCH_OLD)),
            _ => Admits::InBatches,
        };
        Self::by_kind(each, admits)
    }

    /// Requests of blk-mq: so many, and of them asynchronous ones, usually and while a process is favoured.
    const fn of_both(total: u32, asynchronous: [u32; 2]) -> Self {
        Self {
            total,
            each: [total, asynchronous[0]],
            beside_favoured: asynchronous[1],
            by_sync: true,
            admits: Admits::After(wake_batch(asynchronous)),
        }
    }
}

/// Tags that must come back before those who wait are woken, of so many that the least favoured may have.
const fn wake_batch([usual, favoured]: [u32; 2]) -> u32 {
    let least = if usual < favoured { usual } else { favoured };
    match least / WAIT_QUEUES {
        0 => 1,
        some if some > WAKE_BATCH => WAKE_BATCH,
        some => some,
    }
}

fn policy(kernel: Kernel, scheduler: Option<Scheduler>) -> Policy {
    match scheduler {
        None => Policy::Elevator(elevator::Tunables::of(kernel)),
        Some(Scheduler::Noop) => Policy::Noop,
        Some(Scheduler::None) => Policy::None,
        Some(Scheduler::Deadline | Scheduler::MqDeadline) => {
            Policy::Deadline(deadline::Tunables::of(kernel))
        }
        Some(Scheduler::Anticipatory) => Policy::Anticipatory(anticipatory::Tunables::default()),
        Some(Scheduler::Cfq) => Policy::Cfq(cfq::Tunables::of(kernel)),
        Some(Scheduler::Bfq) => Policy::Bfq(bfq::Tunables::of(kernel)),
        Some(Scheduler::Kyber) => Policy::Kyber(kyber::Tunables::default()),
    }
}

fn plugging(kernel: Kernel) -> Plugging {
    match kernel {
        Kernel::Windows2000 => Plugging::Off,
        old if old < Kernel::Linux(2, 6, 39) => Plugging::Queue {
            threshold: UNPLUG_THRESHOLD,
            delay: UNPLUG_DELAY,
        },
        old if old < Kernel::Linux(5, 16, 0) => Plugging::Task {
            threshold: TASK_PLUG,
        },
        _ => Plugging::Task {
            threshold: TASK_PLUG_LATER,
        },
    }
}

/// blk-mq: as many requests as the device has tags without a scheduler, twice as many with one (at
/// most twice [`NR_REQUESTS`], `blk_mq_init_sched`), of which asynchronous ones may have [`behind`].
fn requests(kernel: Kernel, scheduler: Option<Scheduler>, multi: bool, depth: u32) -> Requests {
    if !multi {
        return Requests::of_kernel(kernel, NR_REQUESTS);
    }
    if scheduler == Some(Scheduler::None) {
        return Requests::of_both(depth, [depth; 2]);
    }
    let total = 2 * depth.min(NR_REQUESTS);
    Requests::of_both(total, behind(kernel, scheduler, total))
}

/// Of so many requests of a scheduler, those that asynchronous ones may have, usually and while it favours a process.
///
/// The kernel keeps them in a bitmap and limits how many bits of a *word* are used
/// (`__blk_mq_get_tag`, `sbitmap_queue_get_shallow`). A word has 64 bits, or as few as it takes for
/// four words (`sbitmap_calculate_shift`); only with fewer than four requests they are less than a word, and a
/// share of the word may then be more than there are.
///
/// - bfq: half of a word, and three sixteenths of it while the weight of a process is raised (`bfq_update_depths`), since 4.16;
/// - kyber: 75 % of it (`kyber_depth_updated`, `KYBER_ASYNC_PERCENT`), unlimited where that is none;
/// - mq-deadline: three quarters of *all*, but at least one, as a limit to each word
///   (`dd_depth_updated`, since 5.14): with four or more that limits nothing. All of them since 6.11, and since
///   6.1.105 ("block/mq-deadline: Fix the tag reservation code").
fn behind(kernel: Kernel, scheduler: Option<Scheduler>, total: u32) -> [u32; 2] {
    let since = |a, b| kernel >= Kernel::Linux(a, b, 0);
    let series = Kernel::Linux(6, 1, 105)..Kernel::Linux(6, 2, 0);
    let mended = since(6, 11) || series.contains(&kernel);
    let word = if total < 4 {
        64
    } else {
        (total / 4).clamp(1, 64)
    };
    let word = 1 << word.ilog2();
    let each = match scheduler {
        Some(Scheduler::Bfq) if since(4, 16) => [(word / 2).max(1), (word * 3 / 16).max(1)],
        Some(Scheduler::Kyber) => match word * 3 / 4 {
            0 => [word; 2],
            some => [some; 2],
        },
        Some(Scheduler::MqDeadline) if since(5, 14) && !mended => [(total * 3 / 4).max(1); 2],
        _ => [word; 2],
    };
    let (whole, rest) = (total / word, total % word);
    each.map(|each| whole * each.min(word) + each.min(rest))
}

fn limit(kernel: Kernel) -> u32 {
    match kernel {
        Kernel::Windows2000 => SECTORS_OLD,
        old if old < Kernel::Linux(2, 6, 15) => SECTORS_OLD,
        old if old < Kernel::Linux(4, 3, 0) => SECTORS_DEFAULT,
        old if old < Kernel::Linux(6, 17, 0) => SECTORS_LATER,
        _ => SECTORS_NEW,
    }
}
