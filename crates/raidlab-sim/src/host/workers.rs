//! Workers of the kernel that carry out calls of a process which has several under way (io_uring, `io-wq.c`).
use super::Host;
use super::device::Device;
use super::fs::Punts;
use super::inode::Wants;
use super::submitter::Waits;
use raidlab_core::op::FileId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Of each process and for each processor (`io_init_wq_offload`: four times those that are online, or as many as it has room for).
const EACH: u32 = 4;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Makes durable. The process itself never begins that (`io_fsync_prep`).
    Sync {
        file: Option<FileId>,
        data_only: bool,
    },
    /// Goes on with a call that the process would have to wait for.
    Go,
}

/// A call that waits for a worker.
#[derive(Clone, Copy, Debug)]
struct Job {
    process: u16,
    tag: u32,
    /// It writes to this file: one worker at a time does (`io_wq_hash_work`).
    file: Option<u32>,
    act: Act,
}

/// Who is at work, by process, and who waits.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    most: u32,
    busy: BTreeMap<u16, u32>,
    waiting: VecDeque<Job>,
    /// Files that are written to, and the calls that their workers have taken along, by the call at work.
    written: BTreeSet<(u16, u32)>,
    along: BTreeMap<u32, VecDeque<Job>>,
    /// Whose turn it was to read.
    other: bool,
}

impl Workers {
    /// Of a machine of so many cores; without any each call begins at once.
    pub(super) const fn new(are: bool, cores: u32) -> Self {
        Self {
            most: if are { EACH * cores } else { u32::MAX },
            busy: BTreeMap::new(),
            waiting: VecDeque::new(),
            written: BTreeSet::new(),
            along: BTreeMap::new(),
            other: false,
        }
    }

    /// A call waits: behind the last one that writes to the same file, else behind all (`io_wq_insert_work`).
    fn put(&mut self, job: Job) {
        let same = |other: &Job| other.process == job.process && other.file == job.file;
        let last = job.file.and_then(|_| self.waiting.iter().rposition(same));
        let at = last.map_or(self.waiting.len(), |last| last + 1);
        self.waiting.insert(at, job);
    }

    /// Whoever is next of a process's, if there is a worker for him.
    fn begins(&mut self, process: u16) -> Option<Job> {
        let busy = self.busy.entry(process).or_default();
        if *busy == self.most {
            return None;
        }
        *busy += 1;
        let next = self.next(process);
        if next.is_none() {
            self.rests(process);
        }
        next
    }

    /// A worker takes the first call that it can, with all those that write to the same file (`io_get_next_work`).
    fn next(&mut self, process: u16) -> Option<Job> {
        let written = &self.written;
        let may = |job: &Job| {
            job.process == process
                && job
                    .file
                    .is_none_or(|file| !written.contains(&(process, file)))
        };
        let at = self.waiting.iter().position(may)?;
        let job = self.waiting.remove(at)?;
        if let Some(file) = job.file {
            self.written.insert((process, file));
            let same = |job: &&Job| job.process == process && job.file == Some(file);
            let count = self.waiting.iter().skip(at).take_while(same).count();
            self.along
                .insert(job.tag, self.waiting.drain(at..at + count).collect());
        }
        Some(job)
    }

    /// The worker of a call is through with it; what it does next.
    fn ends(&mut self, process: u16, tag: u32, file: u32) -> Option<Job> {
        if let Some(mut along) = self.along.remove(&tag) {
            if let Some(next) = along.pop_front() {
                self.along.insert(next.tag, along);
                return Some(next);
            }
            self.written.remove(&(process, file));
        }
        let next = self.next(process);
        if next.is_none() {
            self.rests(process);
        }
        next
    }

    fn rests(&mut self, process: u16) {
        if let Some(busy) = self.busy.get_mut(&process) {
            *busy -= 1;
        }
    }
}

impl<D: Device> Host<D> {
    /// A call makes a file durable as soon as there is a worker for it.
    pub(super) fn begin_sync(&mut self, tag: u32, file: Option<FileId>, data_only: bool) {
        self.put(tag, None, Act::Sync { file, data_only });
    }

    /// A call goes on as soon as there is a worker for it, and for the file that it has to itself.
    pub(super) fn by_worker(&mut self, tag: u32, file: Option<u32>) {
        self.put(tag, file, Act::Go);
    }

    /// Whether a write through the cache is a worker's: of a process that has others under way.
    #[inline]
    pub(super) fn punts_cached(&mut self, tag: u32) -> bool {
        let may = match self.waits {
            Waits::Nobody | Waits::Submission => {
                self.era.workers_sync && self.traits.punts_cached != Punts::None
            }
            Waits::Process => self.era.workers_sync && !self.direct_blocks,
            Waits::Worker => true,
        };
        may && self.in_flight > 1 && self.punts_one_of_several(tag)
    }

    /// Whether a read is a worker's from its beginning on, for who begins it waits.
    #[inline]
    pub(super) fn punts_read(&self, tag: u32) -> bool {
        let may = match self.waits {
            Waits::Nobody | Waits::Process => false,
            Waits::Worker => true,
            Waits::Submission => {
                let call = &self.calls[tag as usize];
                call.direct && self.is_large(call.end - call.at)
            }
        };
        may && self.in_flight > 1 && self.is_one_of_several(tag)
    }

    /// Whether a direct read of so many bytes is too large for its process to begin it.
    pub(super) fn is_large(&self, bytes: u64) -> bool {
        self.traits.punts_reads.is_some_and(|most| bytes > most)
    }

    fn punts_one_of_several(&mut self, tag: u32) -> bool {
        if !self.is_one_of_several(tag) {
            return false;
        }
        match self.traits.punts_cached {
            // One that cannot be begun without waiting, whoever asks.
            Punts::None => matches!(self.waits, Waits::Process | Waits::Worker),
            Punts::All => true,
            Punts::Changing { .. } => {
                self.calls[tag as usize].looked = self.now;
                let end = self.calls[tag as usize].end;
                self.changes_inode(tag, end) || !self.would_have_inode(tag, Wants::Change)
            }
        }
    }

    fn is_one_of_several(&self, tag: u32) -> bool {
        let process = self.calls[tag as usize].process;
        let mut others = (0..).zip(&self.calls);
        others.any(|(of, call)| call.busy && call.process == process && of != tag)
    }

    /// Whether a worker whose number is odd where the process's is even, or even where it is odd, asks for a direct read of so many
    /// bytes: of those that are left to workers, which only matters by their numbers, every other one.
    pub(super) fn reads_by_another(&mut self, tag: u32, bytes: u64) -> bool {
        if !self.is_large(bytes) || self.in_flight <= 1 || !self.is_one_of_several(tag) {
            return false;
        }
        self.workers.other = !self.workers.other;
        self.workers.other
    }

    fn put(&mut self, tag: u32, file: Option<u32>, act: Act) {
        let call = &mut self.calls[tag as usize];
        call.by_worker = true;
        let process = call.process;
        self.workers.put(Job {
            process,
            tag,
            file,
            act,
        });
        if let Some(job) = self.workers.begins(process) {
            self.begin_job(job);
        }
    }

    fn begin_job(&mut self, job: Job) {
        match job.act {
            Act::Sync { file, data_only } => self.start_sync(job.tag, file, data_only),
            Act::Go => self.step(job.tag),
        }
    }

    /// The worker of a call is through with it, and goes on with the next one.
    pub(super) fn worker_ends(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        call.by_worker = false;
        let (process, file) = (call.process, call.file);
        if let Some(next) = self.workers.ends(process, tag, file) {
            self.begin_job(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(process: u16, tag: u32, file: Option<u32>) -> Job {
        let act = Act::Go;
        Job {
            process,
            tag,
            file,
            act,
        }
    }

    /// Puts a call there; which one begins.
    fn put(workers: &mut Workers, job: Job) -> Option<u32> {
        workers.put(job);
        workers.begins(job.process).map(|job| job.tag)
    }

    #[test]
    fn each_process_has_so_many_and_those_that_wait_come_in_turn() {
        let mut workers = Workers::new(true, 2);
        for tag in 0..8 {
            assert_eq!(put(&mut workers, job(1, tag, None)), Some(tag));
        }
        assert_eq!(put(&mut workers, job(1, 8, None)), None);
        assert_eq!(put(&mut workers, job(2, 9, None)), Some(9));
        assert_eq!(put(&mut workers, job(1, 10, None)), None);
        assert!(workers.ends(2, 9, 0).is_none());
        assert_eq!(workers.ends(1, 3, 0).map(|next| next.tag), Some(8));
        assert_eq!(workers.ends(1, 8, 0).map(|next| next.tag), Some(10));
        assert!(workers.ends(1, 10, 0).is_none());
        assert_eq!(put(&mut workers, job(1, 11, None)), Some(11));
        let mut none = Workers::new(false, 1);
        for tag in 0..100 {
            assert_eq!(put(&mut none, job(1, tag, None)), Some(tag));
        }
    }

    #[test]
    fn one_worker_writes_to_a_file_and_takes_along_what_is_there() {
        let mut workers = Workers::new(true, 1);
        assert_eq!(put(&mut workers, job(1, 0, Some(7))), Some(0));
        assert_eq!(put(&mut workers, job(1, 1, Some(7))), None);
        assert_eq!(put(&mut workers, job(1, 2, Some(8))), Some(2));
        for tag in 3..5 {
            assert_eq!(put(&mut workers, job(1, tag, None)), Some(tag));
        }
        // All four are at work; of those who wait the ones of a file stand together.
        assert_eq!(put(&mut workers, job(1, 5, None)), None);
        assert_eq!(put(&mut workers, job(1, 6, Some(7))), None);
        let tags =
            |workers: &Workers| -> Vec<u32> { workers.waiting.iter().map(|job| job.tag).collect() };
        assert_eq!(tags(&workers), [1, 6, 5]);
        // File 7 has its worker still.
        assert_eq!(workers.ends(1, 2, 8).map(|next| next.tag), Some(5));
        assert_eq!(workers.ends(1, 0, 7).map(|next| next.tag), Some(1));
        assert_eq!(put(&mut workers, job(1, 8, Some(7))), None);
        assert_eq!(put(&mut workers, job(1, 9, None)), None);
        // 6 was taken along, 8 came after.
        assert_eq!(workers.ends(1, 1, 7).map(|next| next.tag), Some(6));
        assert_eq!(workers.ends(1, 6, 7).map(|next| next.tag), Some(8));
        assert_eq!(workers.ends(1, 8, 7).map(|next| next.tag), Some(9));
        assert_eq!(workers.busy[&1], 4);
    }
}
