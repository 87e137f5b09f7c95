//! A phase: jobs that run together against one target, and what of them is counted.
//!
//! A [profile](crate::profile) is a list of phases; a trial runs them in order in one place. The
//! same phases run against a disk and against a model.
mod overwritten;
mod reached;

pub use overwritten::{PARTLY, SERVED};

use crate::op::FileId;
use crate::rng::{Stream, mix};
use crate::time::Span;
use crate::units::{Bytes, Extent};
use crate::workload::Expected;
use crate::workload::spec::WorkloadSpec;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a job reaches the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Ordinary system calls through the file system, one at a time ([`FileOp`](crate::op::FileOp)).
    /// On a block device or a given file, data file 0 is that device or file.
    Calls,
    /// Block operations on the extent (the device, or data file 0) through the page cache.
    Buffered,
    /// Block operations on the extent past the page cache.
    Direct,
}

/// What the figure of a phase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Bytes a second.
    Bytes,
    /// Operations a second (seeks, files).
    Ops,
}

/// One source of operations and its depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What it asks for.
    pub workload: WorkloadSpec,
    /// Most operations in flight.
    pub depth: u32,
}

/// A data file that must exist, written and durable, before a phase begins; writing it is not
/// counted. On a block device it is the device itself and only its size is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needed {
    /// Which data file.
    pub file: FileId,
    /// Its size at least.
    pub size: Bytes,
}

/// Which bytes the storage below must be seen to move; the audit compares them with the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Reads must come from the device (a cold or direct read).
    ReadsReachDevice,
    /// Writes must have reached the device when the phase ends (it ends with a sync).
    WritesReachDevice,
    /// Both.
    Both,
    /// Whatever the caches do is part of the figure (cached reads, metadata, unsynced writes).
    None,
}

/// One timed part of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Stable name, such as `block-write`: the key of its figures in the store.
    pub id: String,
    /// What a report calls it, such as `sequential output, block`.
    pub title: String,
    /// The jobs; they start together, and the phase lasts until the last one is done.
    pub jobs: Vec<Job>,
    /// How the jobs reach the storage.
    pub access: Access,
    /// What is counted.
    pub counted: Counted,
    /// Empty the cache of the data set before, and prove it.
    pub cold: bool,
    /// What must be seen below.
    pub evidence: Evidence,
    /// Data files that must exist before.
    pub needs: Vec<Needed>,
    /// Data files that must not exist: they are removed before the phase begins, so that freeing the
    /// space of an earlier one is not timed (the tools remove theirs between the phases). Never a
    /// device or a file that the user named.
    pub fresh: Vec<FileId>,
    /// Not counted at the start.
    pub ramp: Span,
}

impl Phase {
    /// The stream that job number `job` draws from: it depends on the seed, the phase's name and
    /// the job's number alone, not on what other phases a trial has.
    #[must_use]
    pub fn stream(&self, seed: u64, job: usize) -> Stream {
        let name = self
            .id
            .bytes()
            .fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        Stream::new(seed).child(name).child(job as u64)
    }

    /// Digest of the operation streams of all jobs.
    #[must_use]
    pub fn digest(&self, seed: u64) -> u64 {
        let jobs = self.jobs.iter().enumerate();
        jobs.fold(0, |digest: u64, (number, job)| {
            mix(digest.rotate_left(5) ^ job.workload.digest(self.stream(seed, number)))
        })
    }

    /// The bytes of data file 0 in which the phase works, as far as that is known: from the first to the last that a job of block
    /// operations has, else all that must be there.
    #[must_use]
    pub fn used(&self) -> Range<u64> {
        let region = |job: &Job| match job.workload {
            WorkloadSpec::Blocks(spec) => Some(spec.region),
            _ => None,
        };
        let regions: Option<Vec<Extent>> = self.jobs.iter().map(region).collect();
        let starts = regions.iter().flatten().map(|region| region.start.0);
        let ends = regions.iter().flatten().map(|region| region.end().0);
        let needed = self.needs.iter().filter(|need| need.file == 0);
        let needed = needed.map(|need| need.size.0).max();
        starts.min().unwrap_or(0)..ends.max().or(needed).unwrap_or(0)
    }

    /// Counted operations and bytes of all jobs together, and the longest of their times.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let mut all = Expected {
            ops: Some(0),
            bytes: Some(0),
            time: None,
        };
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        for job in &self.jobs {
            let one = job.workload.expected();
            all.ops = add(all.ops, one.ops);
            all.bytes = add(all.bytes, one.bytes);
            all.time = all.time.max(one.time);
        }
        all
    }
}

/// Shorter phases are flagged: bonnie++ prints `+++++` below half a second.
pub const SHORTEST_PHASE: Span = Span::from_millis(500);
