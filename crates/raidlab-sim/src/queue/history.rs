//! What a scheduler remembers of a process: how long it thinks between an end and its next request,
//! and how far apart its requests lie. Decaying means with 7/8 of the old at each step, in the fixed
//! point of the kernel (256 is one): `as-iosched.c`, `cfq-iosched.c`, `bfq-iosched.c`.
use super::store::{NIL, Store};
use crate::block::{Bio, Origin, RESYNC};
use raidlab_core::op::BlockKind;

/// A decaying mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    samples: u64,
    total: u64,
    pub(super) mean: u64,
}

impl Mean {
    pub(super) fn add(&mut self, value: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * value) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// At least three samples (`sample_valid`).
    pub(super) fn valid(&self) -> bool {
        self.samples > 80
    }
}

/// Distance in sectors above which a request counts as far in [`History::far`]: `CFQQ_SEEK_THR`,
/// `BFQQ_SEEK_THR`, 8 x 100.
pub(super) const FAR: u64 = 800;
/// A far sample counts as at most four times the mean and this more, in sectors: a lot at first,
/// less once there are samples enough.
const OUTLIER: [u64; 2] = [2 * 1024 * 1024, 2 * 1024 * 64];
const FEW: u64 = 60;

/// What is remembered of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    pub(super) think: Mean,
    pub(super) seek: Mean,
    /// The last 32 distances, a bit each: set when far.
    pub(super) far: u32,
    /// First sector after its last request.
    position: u64,
    /// When one of its requests ended last.
    pub(super) last_end: Option<u64>,
    started: bool,
}

impl History {
    /// A synchronous request at `lba` after `thought` ns; whether there was one before it.
    pub(super) fn request(&mut self, lba: u64, end: u64, thought: Option<u64>) -> Option<u64> {
        let distance = self.position.abs_diff(lba);
        self.position = end;
        if let Some(thought) = thought {
            self.think.add(thought);
        }
        if !std::mem::replace(&mut self.started, true) {
            return None;
        }
        let more = OUTLIER[usize::from(self.seek.samples > FEW)];
        self.seek.add(distance.min(self.seek.mean * 4 + more));
        self.far = self.far << 1 | u32::from(distance > FAR);
        Some(distance)
    }

    /// A process that has sent a request before.
    pub(super) fn started(&self) -> bool {
        self.started
    }
}

/// A number for whoever asked, small and dense: 0 the kernel, 1 a resync, then the processes.
pub(super) fn process(origin: &Origin) -> usize {
    match origin.task {
        0 => 0,
        RESYNC => 1,
        task => usize::from(task) + 1,
    }
}

/// The entry of a process in a table that grows to the highest one seen.
pub(super) fn entry<T: Default + Clone>(table: &mut Vec<T>, number: usize) -> &mut T {
    if table.len() <= number {
        table.resize(number + 1, T::default());
    }
    &mut table[number]
}

/// The class of what nobody waits for.
pub(super) const ASYNC: u16 = 0;

/// What is kept of each class: first of all that nobody waits for, then of each process, in the order
/// in which they appeared.
#[derive(Clone, Debug)]
pub(super) struct Tasks<T> {
    queues: Vec<T>,
    /// Class by process; 0 where it has none yet.
    classes: Vec<u16>,
}

impl<T> Tasks<T> {
    pub(super) fn new(asynchronous: T) -> Self {
        Self {
            queues: vec![asynchronous],
            classes: Vec::new(),
        }
    }

    /// The class of a bio; that of a process which was not seen before begins with `new`.
    pub(super) fn class(&mut self, bio: &Bio, new: impl FnOnce() -> T) -> u16 {
        if bio.kind != BlockKind::Read && !bio.origin.sync {
            return ASYNC;
        }
        let number = process(&bio.origin);
        let known = *entry(&mut self.classes, number);
        if known != 0 {
            return known;
        }
        let class = self.queues.len() as u16;
        self.queues.push(new());
        self.classes[number] = class;
        class
    }

    /// The class of what a process waits for, if it has asked for such before.
    pub(super) fn of_process(&self, origin: &Origin) -> Option<u16> {
        let class = self.classes.get(process(origin)).copied();
        class.filter(|class| *class != ASYNC)
    }

    /// What a process asks for is of this class from now on.
    pub(super) fn moves(&mut self, origin: &Origin, class: u16) {
        *entry(&mut self.classes, process(origin)) = class;
    }

    pub(super) fn classes(&self) -> std::ops::Range<u16> {
        0..self.queues.len() as u16
    }
}

impl<T> std::ops::Index<u16> for Tasks<T> {
    type Output = T;

    fn index(&self, class: u16) -> &T {
        &self.queues[usize::from(class)]
    }
}

impl<T> std::ops::IndexMut<u16> for Tasks<T> {
    fn index_mut(&mut self, class: u16) -> &mut T {
        &mut self.queues[usize::from(class)]
    }
}

/// A way back counts as this many times as long (`back_penalty`).
const BACK_PENALTY: u64 = 2;

/// The request of `class` to take from `position` on: the nearer of the next ones upwards and
/// downwards, the latter not farther than `back` sectors and at twice the distance; when there is
/// neither, the lowest.
pub(super) fn nearest(store: &Store, class: u16, position: u64, back: u64) -> u32 {
    let (before, after) = store.around(class, position);
    if before == NIL {
        return after;
    }
    let down = position - store.get(before).lba;
    if down > back {
        return if after == NIL {
            store.lowest(class)
        } else {
            after
        };
    }
    if after != NIL && store.get(after).lba - position < down * BACK_PENALTY {
        after
    } else {
        before
    }
}
