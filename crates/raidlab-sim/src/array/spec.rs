//! What an array is made of, and which kernel runs it.
use super::bitmap::BitmapSpec;
use super::superblock::SuperblockSpec;
use raidlab_core::time::Span;
use raidlab_core::units::Sectors;
use raidlab_experiment::kernel::{Kernel, TICK};
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::{Btrfs, Layout, Pool, WritePolicy, ZfsMirror};

/// What keeps the members together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayKind {
    /// One member as it is, of so many sectors: a disk, or a volume of a hardware controller.
    Single(Sectors),
    /// The kernel's md.
    Md(Layout),
    /// A ZFS mirror: what its allocator hands out, from the end of the labels on.
    Zfs(ZfsMirror),
    /// btrfs over several members: its addresses, superblocks and metadata before data.
    Btrfs(Btrfs),
    /// RAID-Z, or several vdevs of ZFS: one vdev after the other, each with its labels at both ends and the space of
    /// its offsets between. A request is one block of ZFS: where it begins, and its data without parity.
    Pool(Pool),
}

/// When an array takes what a resync has gone through for done: reads what a rebuild has written, and trusts parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// At once: no kernel's, for what tests are to see without them.
    #[cfg(test)]
    AtOnce,
    /// What was rebuilt when all of it is, what was resynced at once: md before 2.6.36 (`raid5.c:handle_stripe5` on `In_sync`).
    AtTheEnd,
    /// After each sixteenth, and after five minutes, when md notes in its superblocks how far it is
    /// (`md.c:md_do_sync`, `curr_resync_completed`; `md_update_sb` then sets `recovery_offset`, which
    /// `raid5.c:analyse_stripe` and `raid1.c` and `raid10.c:read_balance` compare with). Seen of 6.1, and read in sources of 5.x and 6.1.128; that it began with
    /// 2.6.36, for raid1 and raid10 alike, and came with the five minutes at once is from memory.
    Sixteenths,
}

/// What the resync of a mirror does when it comes to its next request while others wait for it (`conf->nr_waiting` in
/// `raid1.c` and `raid10.c:sync_request`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Courtesy {
    /// Where it goes at its least speed or faster, it sleeps for a second first (`go_faster`): before 4.1, "md: remove 'go_faster'
    /// option from ->sync_request()".
    Seconds,
    /// It waits until they have gone on, as it does in any case.
    Waits,
    /// It sleeps for a tick first. In the source of 5.0 and in a guest of 6.1; that it came with 4.8 is from memory.
    Ticks,
}

/// When md takes an array that nobody writes for clean (`md.c:md_write_end`, `safemode_timeout`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeMode {
    /// Ticks of the kernel after the last write (`safe_mode_delay`): 200 ms and a tick; before 2.6.18, "md: Increase the delay before marking
    /// metadata clean, and make it configurable", 20 ms and a tick.
    pub delay: u64,
    /// They are counted from the end of the period of so many ticks that the write ended in, whether others are under way or not
    /// (since 4.12, "MD: use per-cpu counter for writes_pending"); before, from when none was under way any more.
    pub by_periods: bool,
    /// So is one that is being resynced: the condition on `recovery_cp` went with 4.12.
    pub while_resyncing: bool,
    /// See [`Era::late_timers`].
    pub late_timers: bool,
    /// The thread waits for a grace period of RCU first (since 4.12): three ticks, seen of 6.1 in a guest of one idle processor. How long it
    /// is elsewhere, on more of them or busy ones, is not known.
    pub grace: Span,
}

/// How ZFS goes through what it resilvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// In the order in which a walk through the tree of blocks meets them, standing back from others by the clock: before 0.8.
    Walk,
    /// By place, after a walk that reads metadata alone: since 0.8 (2019, the time of 5.1).
    Sorted {
        /// Bytes in flight for each disk of a vdev (`zfs_scan_vdev_limit`): 4 MiB, since 2.2 (2023, the time of 6.6) 16.
        bytes: u64,
        /// All its disks count; since 2.1 (2021, 5.13) those of RAID-Z that have data, and a mirror as one.
        leaves: bool,
    },
}

/// How btrfs copies what a new member is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// As it comes: reads of up to 128 KiB, and what has been read is written at once by a worker (before 6.4).
    Stream {
        /// Reads under way (`SCRUB_BIOS_PER_SCTX`).
        reads: usize,
    },
    /// By turns: so many stripes of 64 KiB are read, and when all have come they are written (since 6.4).
    Turns {
        /// Stripes of a turn: 8, since 6.6 128 (`SCRUB_STRIPES_PER_GROUP`, `SCRUB_GROUPS_PER_SCTX`).
        stripes: usize,
    },
}

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// Raid1 remembers where the next read of a run is expected on each disk, and prefers idle
    /// solid-state disks (since 3.6); before, once for the array.
    pub run_per_disk: bool,
    /// The thread of a mirror asks its members for what is written (before 3.6, `raid1.c:flush_pending_writes`); since, whoever
    /// writes does ("md/raid1: submit IO from originating thread instead of md thread", "md/raid10: ...").
    pub thread_writes: bool,
    /// What copies and parity make of a write that somebody waits for does not say that more will follow (`raid1_write_request`
    /// and `ops_run_io` keep `REQ_SYNC` alone, which since 4.10 means that: "block: replace REQ_NOIDLE with REQ_IDLE"). Before, they
    /// lost the mark that nothing will.
    pub writes_are_last: bool,
    /// Reads of a complete parity array go around the stripe cache (since 2.6.20,
    /// `raid5.c:chunk_aligned_read`).
    pub aligned_reads: bool,
    /// So do those of a degraded or rebuilding one where the member is there (before 4.2).
    pub aligned_degraded: bool,
    /// What read-ahead wants fails when the stripe cache has no room for it, instead of waiting
    /// (`raid5.c:make_stripe_request`, `R5_GAS_NOBLOCK` on `REQ_RAHEAD`). md has always done so; the page cache says
    /// that it reads ahead since 4.19 ("mpage: mpage_readpages() should submit IO as read-ahead").
    pub ahead_fails: bool,
    /// A write that has to read first plugs the array's queue anew, so that it waits for its timer or
    /// whoever waits (before 2.6.39, `raid5.c:__release_stripe`); since, the submitter's plug alone.
    pub delay_plugs: bool,
    /// Whoever submits to a parity array handles the stripes and asks the members himself (before 2.6.32,
    /// `raid5.c:make_request`); since, the array's thread does it for all.
    pub submitter_handles: bool,
    /// The stripe cache gets a stripe more each time that it is found too small (since 4.1,
    /// `raid5.c:grow_one_stripe`), memory allowing.
    pub cache_grows: bool,
    /// Blocks that somebody waits for are read for a write at once, however many other writes read
    /// (since 2.6.37, `raid5.c:make_request` on `REQ_SYNC`); before, and for write-back, they wait as
    /// long as any do.
    pub sync_reads_at_once: bool,
    /// A request comes into the stripe cache row by row, with all its blocks of a row at once (since
    /// 6.0, `raid5.c:add_all_stripe_bios`); before, chunk by chunk.
    pub rows_at_once: bool,
    /// What md takes apart comes back behind all that was to be done (4.12, where raid1, raid10 and parity arrays give back the
    /// rest, to 6.17; "block: fix ordering of recursive split IO" is of 6.18).
    pub rests_last: bool,
    /// A raid10 whose stripe has more sectors takes requests of a stripe (`blk_validate_limits` on `io_opt`, since 6.11).
    pub stripe_requests: Option<u32>,
    /// A call that asks for more than the read-ahead of an array is read in requests of its largest (since 5.7, "block: keep
    /// bdi->io_pages in sync with max_sectors_kb for stacked devices"). Raid0 takes a chunk then, and has since 4.10.
    pub large_calls: bool,
    /// Pages are one request as long as they lie in at most 256 runs in memory, which all are taken to do (multi-page bvecs, since
    /// 5.1); before, 256 pages.
    pub whole_windows: bool,
    /// Requests that the thread of a parity array collects at most before it hands them over (twice
    /// `BLK_MAX_REQUEST_COUNT` since 5.16, as it collects for several devices; once from 2.6.39 on;
    /// before, the devices' queues collect).
    pub plug_requests: usize,
    /// Sectors of others on one member that a resync takes for nothing (`md.c:is_mddev_idle`): 4096
    /// before 2.6.30, 64 since.
    pub unheard: u64,
    /// When what a resync has gone through counts.
    pub checkpoints: Checkpoints,
    /// How parity is brought up to date.
    pub write_policy: WritePolicy,
    /// A resync above its least speed that sees other I/O waits for its own requests to end (since
    /// 4.1, `md.c:md_do_sync`); before, half a second.
    pub resync_yields_briefly: bool,
    /// How it lets those pass that wait for it, of a mirror.
    pub resync_courtesy: Courtesy,
    /// Requests in flight, of 64 KiB and of parity arrays of 4 KiB, with fewer of which a resync gives way to nobody
    /// (`sync_io_depth`, 32 since 6.16, "md: add a new api sync_io_depth"). Since then it hears whoever has something in flight or
    /// ended since it looked last ("md: fix is_mddev_idle()"), whatever it has in flight itself. Zero before.
    pub resync_depth: u64,
    /// The thread of a parity array sends what a resync asks for (since 3.16, `raid5.c:sync_request`); before, the resync
    /// handles the stripes itself. In the source of 3.10.33 it does, in that of 6.1.128 the thread; 3.16 is from memory.
    pub thread_syncs: bool,
    /// A timer goes off a tick later than it is set to (since 4.8, `timer.c:calc_index`).
    pub late_timers: bool,
    /// How md takes arrays for clean; `None`: it does not, before 2.6.
    pub safe_mode: Option<SafeMode>,
    /// A resync of raid1 keeps requests out of where it is, not out of the whole array (since 3.13).
    pub local_barrier: bool,
    /// ZFS reads from the least busy child (`vdev_mirror_load`, since 0.6.3 of 2014, the time of
    /// 3.12); before, by the place alone (`vdev_mirror_shift`).
    pub zfs_load: bool,
    /// How ZFS resilvers.
    pub scan: Scan,
    /// How btrfs replaces a member.
    pub copying: Copying,
    /// Whoever writes a part of a row of btrfs with parity reads the whole row before, with its parity (since 6.2,
    /// `raid56.c:rmw_read_wait_recover`); before, the rest of its data.
    pub reads_rows: bool,
    /// Workers also write rows that are whole, and ask for what a missing member has (since 6.2, `raid56.c:raid56_parity_write` and
    /// `raid56_parity_recover`); before, whoever writes or reads does.
    pub rows_by_workers: bool,
    /// Whoever writes a part of one writes parity of what it changes (since 6.0, "btrfs: only write the sectors in the vertical stripe which has data
    /// stripes", from memory); before, all parity of the row.
    pub narrow_parity: bool,
}

impl Era {
    /// By the kernel's version.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let since = |major, minor, patch| kernel >= Kernel::Linux(major, minor, patch);
        Self {
            run_per_disk: since(3, 6, 0),
            thread_writes: !since(3, 6, 0),
            writes_are_last: since(4, 10, 0),
            aligned_reads: since(2, 6, 20),
            aligned_degraded: !since(4, 2, 0),
            ahead_fails: since(4, 19, 0),
            delay_plugs: !since(2, 6, 39),
            cache_grows: since(4, 1, 0),
            submitter_handles: !since(2, 6, 32),
            sync_reads_at_once: since(2, 6, 37),
            rows_at_once: since(6, 0, 0),
            rests_last: since(4, 12, 0) && !since(6, 18, 0),
            stripe_requests: match kernel {
                _ if since(6, 17, 0) => Some(8192),
                _ if since(6, 11, 0) => Some(2560),
                _ => None,
            },
            large_calls: since(5, 7, 0),
            whole_windows: since(5, 1, 0),
            plug_requests: match kernel {
                _ if since(5, 16, 0) => 64,
                _ if since(2, 6, 39) => 16,
                _ => usize::MAX,
            },
            unheard: if since(2, 6, 30) { 64 } else { 4096 },
            checkpoints: if since(2, 6, 36) {
                Checkpoints::Sixteenths
            } else {
                Checkpoints::AtTheEnd
            },
            write_policy: if since(4, 1, 0) {
                WritePolicy::LINUX
            } else {
                WritePolicy::LINUX_BEFORE_4_1
            },
            resync_yields_briefly: since(4, 1, 0),
            resync_courtesy: match kernel {
                _ if since(4, 8, 0) => Courtesy::Ticks,
                _ if since(4, 1, 0) => Courtesy::Waits,
                _ => Courtesy::Seconds,
            },
            resync_depth: if since(6, 16, 0) { 32 } else { 0 },
            thread_syncs: since(3, 16, 0),
            late_timers: since(4, 8, 0),
            safe_mode: since(2, 6, 0).then_some(SafeMode {
                delay: if since(2, 6, 18) { 51 } else { 6 },
                by_periods: since(4, 12, 0),
                while_resyncing: since(4, 12, 0),
                late_timers: since(4, 8, 0),
                grace: if since(4, 12, 0) {
                    Span(3 * TICK.0)
                } else {
                    Span::ZERO
                },
            }),
            local_barrier: since(3, 13, 0),
            zfs_load: since(3, 12, 0),
            scan: if since(5, 1, 0) {
                Scan::Sorted {
                    bytes: if since(6, 6, 0) { 16 << 20 } else { 4 << 20 },
                    leaves: !since(5, 13, 0),
                }
            } else {
                Scan::Walk
            },
            copying: match kernel {
                _ if since(6, 6, 0) => Copying::Turns { stripes: 128 },
                _ if since(6, 4, 0) => Copying::Turns { stripes: 8 },
                _ => Copying::Stream { reads: 64 },
            },
            reads_rows: since(6, 2, 0),
            rows_by_workers: since(6, 2, 0),
            narrow_parity: since(6, 0, 0),
        }
    }
}

/// What the thread of a parity array needs the processor for. A rate of 0 is without cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityCost {
    /// XOR: bytes of the blocks that are summed, a second.
    pub xor: u64,
    /// Syndrome of raid6 (P and Q together): bytes of the blocks that are summed, a second.
    pub syndrome: u64,
    /// Copies between requests and the stripe cache, bytes a second.
    pub copy: u64,
    /// Handling of one stripe (4 KiB of each member) beside that, in nanoseconds.
    pub stripe: u64,
    /// Building and submitting a request to a member, in nanoseconds.
    pub submit: u64,
}

/// An array to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    /// What keeps the members together.
    pub kind: ArrayKind,
    /// Its state at the start.
    pub state: ArrayState,
    /// Which members are meant by a degraded or rebuilding state.
    pub failed: Vec<u16>,
    /// Whether each member turns; members beyond the end do.
    pub rotational: Vec<bool>,
    /// Stripes of the stripe cache of raid4, raid5 and raid6, 4 KiB of each member.
    pub stripe_cache: u32,
    /// Threads beside the array's own that handle stripes of raid4, raid5 and raid6 (`group_thread_cnt`, on one NUMA node); beside the
    /// first worker those that handle rows of btrfs.
    pub group_threads: u16,
    /// Stripes that the caches have come to before: of each parity array of the tree, in its order; empty: all have
    /// [`stripe_cache`](Self::stripe_cache).
    pub grown_caches: Vec<u32>,
    /// Resync and rebuild go at least so fast when others want the disks, bytes a second.
    pub sync_speed_min: u64,
    /// Resync and rebuild go at most so fast, bytes a second.
    pub sync_speed_max: u64,
    /// md's superblock, to be written as a resync goes on, and as an array with redundancy begins and ends to be written; `None`: it is
    /// not.
    pub superblock: Option<SuperblockSpec>,
    /// Its write-intent bitmap, and that of each array of the tree that has redundancy.
    pub bitmap: Option<BitmapSpec>,
    /// Processor time.
    pub cost: ParityCost,
    /// What a resync or rebuild of a mirror needs the processor for until it has built a request and asks for the next.
    pub resync_build: Span,
    /// Writes that the queue of a member takes before whoever asks for more waits.
    pub member_requests: u32,
    /// The kernel.
    pub era: Era,
}

/// Requests of a queue on blk-mq with a scheduler.
const MEMBER_REQUESTS: u32 = 256;
/// md's default stripe cache.
pub const STRIPE_CACHE: u32 = 256;
/// md's `sync_speed_min`: 1000 KiB a second.
pub const SYNC_SPEED_MIN: u64 = raidlab_experiment::setup::SYNC_SPEED_MIN;
/// md's `sync_speed_max`: 200 000 KiB a second.
pub const SYNC_SPEED_MAX: u64 = 200_000 << 10;

impl ArraySpec {
    /// Sectors before the data of each member that requests to it tell, too: those of a superblock or bitmap that lies there.
    #[must_use]
    pub fn base(&self) -> u64 {
        let bitmap = self.bitmap.as_ref().map(|bitmap| bitmap.at);
        let first = bitmap
            .into_iter()
            .chain(self.superblock.map(|superblock| superblock.at))
            .fold(0, i64::min);
        first.unsigned_abs()
    }

    /// What a resync by itself goes at, at most, bytes a second: the greater of the two, as `md_do_sync` asks for the most
    /// only when it is above the least.
    pub fn sync_limit(&self) -> u64 {
        self.sync_speed_max.max(self.sync_speed_min)
    }

    /// A clean array of `kind` as md makes it on a current kernel, on disks that turn, without
    /// processor cost.
    #[must_use]
    pub fn new(kind: ArrayKind) -> Self {
        Self {
            kind,
            state: ArrayState::Clean,
            failed: Vec::new(),
            rotational: Vec::new(),
            stripe_cache: STRIPE_CACHE,
            group_threads: 0,
            grown_caches: Vec::new(),
            sync_speed_min: SYNC_SPEED_MIN,
            sync_speed_max: SYNC_SPEED_MAX,
            superblock: None,
            bitmap: None,
            cost: ParityCost::default(),
            resync_build: Span::ZERO,
            member_requests: MEMBER_REQUESTS,
            era: Era::of(Kernel::DEFAULT),
        }
    }
}

/// Why an array cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// A role that the array does not have.
    #[error("the array has no member {0}")]
    NoMember(u16),
    /// Too many members failed.
    #[error("the array does not survive the failure of its members {0:?}")]
    Lost(Vec<u16>),
    /// A state that needs redundancy, of an array without.
    #[error("an array without redundancy cannot be {0}")]
    NoRedundancy(ArrayState),
    /// A state that ZFS does not know.
    #[error(
        "a pool of ZFS is never resyncing: what was not written to the end belongs to no block, so that copies and parity agree after a crash; use clean, degraded or rebuilding"
    )]
    NoResync,
    /// The same.
    #[error(
        "a pool of ZFS has no initial sync: a new one holds no blocks that could disagree; use clean, degraded or rebuilding"
    )]
    NoInitialSync,
    /// A resync of an array that has a bitmap.
    #[error(
        "a resync of an array with a bitmap goes through what was being written when it stopped, which is not known; use state clean, degraded or rebuilding, or bitmap none"
    )]
    NotedResync,
    /// The initial sync of one.
    #[error(
        "a new array has all bits of its bitmap set until its initial sync has gone past them, which is not modelled; use bitmap none, which writes there are like"
    )]
    NotedInitialSync,
    /// A bitmap that has no room on the members.
    #[error(
        "a bitmap of {0} bits has no room on the members, which have some for {1}; mdadm refuses it: use a larger bitmap-chunk"
    )]
    BitmapRoom(u64, u64),
    /// A state that btrfs does not know.
    #[error(
        "btrfs writes no copy that nobody asked for, so that none of its arrays is {0}: use clean, degraded or rebuilding"
    )]
    NotOfBtrfs(ArrayState),
    /// A stripe cache that md refuses.
    #[error("a stripe cache of {0} stripes is too small: md has at least {LEAST_CACHE}")]
    StripeCache(u32),
}

/// Least stripes that md accepts (`raid5.c:raid5_set_cache_size`, more than 16).
pub(super) const LEAST_CACHE: u32 = 17;
