//! Array over queues over fabric, as one block device.
//!
//! What goes down: a request to the array, member requests, through the queue of each member to its
//! port. What comes up: the end of a port's request, the ends of the bios that were joined in it, the
//! end of the array's request. In between nothing takes time but the layers themselves. Only members
//! that were touched are looked at again, and the next time of each queue is kept.
mod device;
mod refill;
mod spec;
mod ways;

#[cfg(test)]
mod tests;

pub use spec::{MemberSpec, StorageError, StorageSpec};

use crate::array::{Array, MemberBio};
use crate::block::{Alone, Bio, BlockTarget, Busy, Ended, Origin, RESYNC, Standstill};
use crate::disk::{Disk, Fault};
use crate::fabric::Fabric;
use crate::queue::Queue;
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};

/// Later than anything.
const NEVER: Instant = Instant(u64::MAX);

/// A member: its queue, and where it is.
#[derive(Clone, Debug)]
struct Member {
    queue: Queue,
    port: u32,
    /// First sector of the port that is the member's.
    offset: u64,
    /// When the queue may give something by itself.
    timer: Instant,
    /// Which of the lists it is in.
    touched: bool,
    held: bool,
    timed: bool,
}

/// One block device with all that is below it.
#[derive(Clone, Debug)]
pub struct Storage {
    /// `None`: one member as it is.
    array: Option<Array>,
    members: Vec<Member>,
    /// The member at each port.
    at_port: Vec<u16>,
    fabric: Fabric,
    disks: u32,
    sectors: u64,
    /// Bytes of data in a stripe; 0 without.
    stripe: u64,
    /// Whether a member turns.
    rotational: bool,
    max_sectors: u32,
    paged: u32,
    queue: u64,
    /// Sectors of pages side by side that are read ahead as one request, which ends when all of it has come.
    window: u32,
    large_call: u32,
    /// Large requests let go what was collected before; when the last request was one.
    large_go: bool,
    large: Option<Instant>,
    /// Members whose queue is to be asked for requests.
    touched: Vec<u16>,
    /// Members whose queue has been given something since the last unplugging.
    held: Vec<u16>,
    /// Members whose queue has a time of its own, or had one when it was last looked at.
    timed: Vec<u16>,
    next: Instant,
    wanted: Vec<MemberBio>,
    /// Arrays of it have threads that compute.
    threads: bool,
    /// Members are asked for what is written by threads of arrays.
    by_thread: bool,
    /// Requests to members cost processor time, and are counted.
    counts: bool,
    asked: Asked,
    /// What has ended; empty between calls.
    ended: Vec<Ended>,
    /// A defect: what is due is never done.
    #[cfg(test)]
    stuck: bool,
    /// Nothing takes the short way, to compare.
    #[cfg(test)]
    lists_only: bool,
}

/// Requests to members so far that were not joined to others, by whose time they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Of whoever submits to the array.
    pub submitter: u64,
    /// Of the threads of arrays, that of a resync too.
    pub thread: u64,
    /// Of what is filled or made to agree without a thread of its own.
    pub resync: u64,
}

/// A block device that block operations go to directly.
pub type StorageTarget = BlockTarget<Storage>;

impl Storage {
    /// Builds all of it; `seed` decides the angle of each disk at time zero.
    ///
    /// # Errors
    /// What the fabric or the array refuses; members that are not there.
    pub fn new(spec: &StorageSpec, seed: u64) -> Result<Self, StorageError> {
        spec::build(spec, seed)
    }

    /// Sectors of the device.
    #[must_use]
    #[inline]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes of data in a stripe of the array; 0 where there is none.
    #[must_use]
    pub const fn stripe(&self) -> u64 {
        self.stripe
    }

    /// Sectors of the largest request that neither the array nor a queue has to take in pieces.
    #[must_use]
    pub const fn max_sectors(&self) -> u32 {
        self.max_sectors
    }

    /// Whether a process that submits so waits in a member's queue, or for stripes. What an array's thread submits makes nobody
    /// else wait.
    pub(crate) fn sleeps(&self, origin: &Origin) -> bool {
        let array = self.array.as_ref();
        let mut members = self.members.iter();
        array.is_some_and(|array| array.sleeps(origin))
            || (!self.by_thread && members.any(|member| member.queue.sleeps(origin)))
    }

    /// A writer is held back for how much is dirty. What is dirty on an array is not on its members, whose queues do
    /// not hear of it (`wb_recent_wait`).
    pub(crate) fn writer_sleeps(&mut self, now: Instant) {
        if let (None, [member]) = (&self.array, &mut self.members[..]) {
            member.queue.writer_sleeps(now);
        }
    }

    /// The fabric, for the counters of its disks.
    #[must_use]
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The disks, in the order of the fabric.
    pub fn disks(&self) -> impl Iterator<Item = &Disk> {
        (0..self.disks).map(|disk| self.fabric.disk(disk))
    }

    /// The array; `None`: one member as it is.
    #[must_use]
    pub const fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    /// Does something to the array at `now`, and sends off what it wants then.
    pub fn with_array<T>(&mut self, now: Instant, act: impl FnOnce(&mut Array) -> T) -> Option<T> {
        let result = act(self.array.as_mut()?);
        if self.take(now) {
            self.send_off(now);
        }
        self.pump(now);
        self.look();
        Some(result)
    }

    /// Requests at the ports and in the queues.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let of = |m: &Member| m.queue.waiting() + m.queue.in_device() as usize;
        self.members.iter().map(of).sum()
    }

    /// Takes a request at `now`, which must not be earlier than any time given before.
    #[inline]
    pub fn submit(&mut self, now: Instant, bio: Bio) {
        self.give(now, bio);
        self.pump(now);
        self.look();
    }

    /// Takes the one request of a submitter that waits for it.
    #[inline]
    pub fn submit_alone(&mut self, now: Instant, bio: Bio) {
        let Some(array) = &mut self.array else {
            return self.submit_to_member(now, bio);
        };
        array.submit(now, bio);
        array.unplug(now);
        if !self.pass(now, None) {
            self.pass_by_lists(now, None, true);
        }
        self.look();
    }

    /// The same where there is no array.
    #[inline(never)]
    fn submit_to_member(&mut self, now: Instant, bio: Bio) {
        self.enqueue(now, MemberBio { member: 0, bio });
        self.send_off(now);
        self.pump(now);
        self.look();
    }

    /// Takes a request of a submitter that collects nothing: what an array makes of it goes to the members'
    /// ports piece by piece, as far as they take it. What the array's own thread asks for is collected, and all writes where it
    /// sends them.
    pub fn submit_bare(&mut self, now: Instant, bio: Bio) {
        let collects = |array: &Array| bio.kind == BlockKind::Write && array.collects_writes();
        let Some(array) = self.array.as_mut().filter(|array| !collects(array)) else {
            return self.submit_alone(now, bio);
        };
        array.submit(now, bio);
        array.take(&mut self.wanted);
        for index in 0..self.wanted.len() {
            let wanted = self.wanted[index];
            self.enqueue(now, wanted);
            if !matches!(wanted.bio.origin.task, 0 | RESYNC) {
                self.send_off(now);
                self.pump(now);
            }
        }
        self.wanted.clear();
        self.unplug(now);
    }

    #[inline]
    fn give(&mut self, now: Instant, bio: Bio) {
        match &mut self.array {
            None => self.enqueue(now, MemberBio { member: 0, bio }),
            Some(array) => {
                array.submit(now, bio);
                self.take(now);
            }
        }
    }

    /// Requests to members so far; none are counted where they cost nothing.
    pub(crate) const fn asked(&self) -> Asked {
        self.asked
    }

    /// A thread of the array has no core for `time`; see [`Array::wait`].
    pub fn wait(&mut self, now: Instant, thread: usize, time: Span) {
        let Some(array) = &mut self.array else {
            return;
        };
        // What comes next stays so, unless the thread was to do it.
        let next = self.next;
        let is_its = array.wait(now, thread, time) <= next;
        if is_its || cfg!(debug_assertions) {
            self.look();
        }
        debug_assert!(is_its || self.next == next, "something else comes next");
    }

    /// The submitter waits now: what is held back for more to come is sent off.
    #[inline]
    pub fn unplug(&mut self, now: Instant) {
        if let Some(array) = &mut self.array {
            array.unplug(now);
            self.take(now);
        }
        self.send_off(now);
        self.pump(now);
        self.look();
    }

    /// When to call [`advance`](Self::advance) next; `None` when nothing will happen by itself.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        (self.next != NEVER).then_some(self.next)
    }

    /// Lets time pass until `now` and appends what has ended, in the order of the ends.
    #[inline]
    pub fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        self.run(now);
        done.append(&mut self.ended);
    }

    #[inline]
    fn run(&mut self, now: Instant) {
        let mut still = Standstill::new(Instant::ZERO);
        while self.next <= now {
            still.look(self.next);
            self.step(self.next);
        }
    }

    /// Something breaks in a disk of the fabric at `now`.
    pub fn inject(&mut self, now: Instant, disk: u32, fault: Fault) {
        self.fabric.inject(now, disk, fault);
        self.look();
    }

    /// What disks were given to write by what was passed over has taken so much of their [room](Disk::room).
    pub(crate) fn fill(&mut self, taken: &[[u64; 2]]) {
        for (disk, taken) in (0..self.disks).zip(taken) {
            self.fabric.fill(disk, *taken);
        }
    }

    /// Appends the busy time until `now` of all that is below.
    pub fn busy(&self, now: Instant, out: &mut Vec<Busy>) {
        self.fabric.busy(now, out);
        if let Some(array) = &self.array {
            array.busy(now, out);
        }
    }

    /// All that happens at `t`.
    fn step(&mut self, t: Instant) {
        #[cfg(test)]
        if self.stuck {
            return;
        }
        let mut ended = None;
        if self.fabric.next() <= t {
            ended = self.port_ends(t);
        }
        if !self.timed.is_empty() {
            self.times_come(t, ended.take());
        }
        let mut array_next = NEVER;
        if let Some(array) = &mut self.array {
            let looks = array.becomes_clean();
            if looks > t && array.is_quiet() {
                array.hand_over(&mut self.ended);
                array_next = looks;
            } else {
                array_next = array.next();
                if array_next <= t {
                    array.advance(t, &mut self.ended);
                    array_next = array.next();
                }
            }
        }
        if !self.pass(t, ended) {
            self.pass_by_lists(t, ended, false);
        }
        if self.counts {
            // What was sent has cost a thread time.
            return self.look();
        }
        self.look_at(array_next);
    }

    /// Queues whose time has come are to be asked, after that of `ended`.
    #[inline(never)]
    fn times_come(&mut self, t: Instant, ended: Option<u16>) {
        self.touch(ended);
        for &index in &self.timed {
            let member = &mut self.members[usize::from(index)];
            if member.timer <= t {
                member.touch(index, &mut self.touched);
            }
        }
    }

    /// Finds out when something happens next.
    #[inline]
    fn look(&mut self) {
        self.look_at(self.array.as_ref().map_or(NEVER, Array::next));
    }

    /// The same where it is known when the array does something by itself.
    #[inline]
    fn look_at(&mut self, array_next: Instant) {
        let mut next = self.fabric.next().min(array_next);
        if !self.timed.is_empty() {
            next = next.min(self.timers());
        }
        self.next = next;
    }

    /// The first time that a queue has of its own; those that have none any more leave the list.
    #[inline(never)]
    fn timers(&mut self) -> Instant {
        let (members, mut next) = (&mut self.members, NEVER);
        self.timed.retain(|index| {
            let member = &mut members[usize::from(*index)];
            next = next.min(member.timer);
            member.timed = member.timer != NEVER;
            member.timed
        });
        next
    }
}

impl Alone for Storage {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    #[inline]
    fn submit_alone(&mut self, now: Instant, bio: Bio) {
        self.submit_alone(now, bio);
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.next_event()
    }

    #[inline]
    fn advance_each(&mut self, now: Instant, each: impl FnMut(Ended)) {
        self.run(now);
        if !self.ended.is_empty() {
            self.ended.iter().copied().for_each(each);
            self.ended.clear();
        }
    }
}
