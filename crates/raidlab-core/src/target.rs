//! What a workload is driven against: a disk, a file system, or a model of them.
use crate::op::{BlockKind, BlockOp, Op};
use crate::time::{Instant, Span};
use crate::workload::{Chance, Stretch};

/// A slot of the driver, given back with the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u32);

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was submitted with.
    pub tag: Tag,
    /// Bytes moved (0 for operations that move none), or the error number of the system call.
    pub result: Result<u32, Errno>,
    /// When it ended. A model says exactly; a real target says when it learned of it.
    pub at: Instant,
}

/// An error number as the kernel gives it, such as 28 for "no space left on device".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// "Resource temporarily unavailable" (EAGAIN): the operation would have had to be waited for.
    pub const AGAIN: Self = Self(11);

    /// Its name and what it means, of those that storage gives (`include/uapi/asm-generic/errno-base.h` and `errno.h`).
    const fn meaning(self) -> Option<&'static str> {
        Some(match self.0 {
            4 => "EINTR: interrupted",
            5 => "EIO: the device could not do it",
            11 => "EAGAIN: it would have had to be waited for",
            12 => "ENOMEM: no memory left",
            16 => "EBUSY: somebody else has it",
            19 => "ENODEV: the device is gone",
            22 => "EINVAL: not possible in this size or at this place",
            27 => "EFBIG: the file would be too large",
            28 => "ENOSPC: no space left",
            30 => "EROFS: read-only",
            110 => "ETIMEDOUT: the device did not answer in time",
            122 => "EDQUOT: the quota is used up",
            _ => return None,
        })
    }
}

/// The number, and what it means where that is known.
impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.meaning() {
            Some(meaning) => write!(f, "{} ({meaning})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// What a target can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most operations in flight at once; the driver never submits more.
    pub max_in_flight: u32,
    /// Offsets and lengths of block operations must be multiples of this many bytes.
    pub alignment: u32,
    /// Bytes that block operations can address.
    pub size: u64,
}

/// A fault of the target as a whole, after which it is not used further.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The operation cannot be asked of this target.
    #[error("this target cannot do it ({op}): {why}")]
    Unsupported {
        /// What was asked.
        op: Op,
        /// Why not.
        why: &'static str,
    },
    /// The machinery below failed.
    #[error("{context}")]
    Failed {
        /// What was being done.
        context: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Something operations are submitted to. Time passes only inside [`wait`](Self::wait).
pub trait Target {
    /// Whether it can [`leap`](Self::leap) at all; a model may, nothing real can.
    const LEAPS: bool = false;

    /// What it can do; constant for the life of the target.
    fn limits(&self) -> Limits;

    /// The present on the target's own axis.
    fn now(&self) -> Instant;

    /// Takes an operation. Never blocks and never moves time; a blocking target carries it out
    /// inside `wait`.
    ///
    /// # Errors
    /// When the target cannot do such an operation or is broken. An operation that fails by itself
    /// (no space, I/O error) is reported by its completion.
    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError>;

    /// What is submitted from here on is asked for by the workload of this number, until another one is named. All operations of
    /// one workload are a single process's, however many are in flight, to a model that tells processes apart; to a real
    /// target they are so anyway. Tags say nothing of it: a slot that one workload has left is taken by any.
    #[inline]
    fn asked_by(&mut self, _workload: u32) {}

    /// Takes a read or write of `len` bytes at each of `offsets`, with the tag at the same place of
    /// `tags`. The same as calling [`submit`](Self::submit) for each, which it does unless the target
    /// can do better.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), at the first operation that is not taken.
    #[inline]
    fn submit_alike(
        &mut self,
        kind: BlockKind,
        len: u32,
        tags: &[Tag],
        offsets: &[u64],
    ) -> Result<(), TargetError> {
        for (&tag, &offset) in tags.iter().zip(offsets) {
            self.submit(tag, Op::Block(BlockOp { kind, len, offset }))?;
        }
        Ok(())
    }

    /// Takes an operation again that ended with [`Errno::AGAIN`], in a way by which what was in its way is waited for;
    /// false when it knows of none. Tag and operation are those that it was submitted with.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    fn again(&mut self, tag: Tag, op: Op) -> Result<bool, TargetError> {
        let _ = (tag, op);
        Ok(false)
    }

    /// Lets time pass until at least one operation has ended or `until` is reached, and appends what
    /// ended to `done`. With nothing in flight it waits for `until` alone, and returns at once when
    /// that is `None`.
    ///
    /// # Errors
    /// When the target is broken.
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError>;

    /// Whether what is done now may come to be [leapt](Self::leap) over, so that the pace is to be looked at after each operation.
    #[inline]
    fn may_leap(&self) -> bool {
        Self::LEAPS
    }

    /// How many bytes from the beginning of the stretch are all alike to it: on the same zone of every
    /// disk, with nothing else going on. 0 when it cannot say. Asked where the stretch of time begins whose pace is
    /// looked at (`first`), and at each of its windows' ends, so that it can look at what has changed since.
    fn alike(&mut self, stretch: &Stretch, first: bool) -> u64 {
        let _ = (stretch, first);
        0
    }

    /// Whether about as much was done beneath it, from the first place to the last that it was asked about with
    /// [`alike`](Self::alike), as was asked for there: a cache that fills or empties has a pace that does not last.
    fn is_level(&self) -> bool {
        true
    }

    /// Leaps end at multiples of so many bytes, so that what is done after one lies to stripes and windows
    /// as what was done from the beginning of the device on.
    fn grain(&self) -> u64 {
        1
    }

    /// Takes the first `bytes` of the stretch as done without doing them; nothing is in
    /// flight. Time has not passed yet: [`pass`](Self::pass) tells how long they took.
    fn leap(&mut self, stretch: &Stretch, bytes: u64) {
        let _ = (stretch, bytes);
    }

    /// Puts the clock forward by the time that what was leapt over took.
    fn pass(&mut self, time: Span) {
        let _ = time;
    }

    /// For how long from now on operations of this kind will be dealt with as they have been since it was last asked with `first`;
    /// `None` when it cannot say, or they were not all dealt with alike. Asked with `first` it answers any time when it may come to say
    /// so, and `None` when there is no use in looking yet.
    fn stays(&mut self, chance: &Chance, first: bool) -> Option<Span> {
        let _ = (chance, first);
        None
    }

    /// Puts the clock forward by a time, no longer than it last said that it [stays](Self::stays) so, in which all goes on as it has.
    fn pass_alike(&mut self, time: Span) {
        let _ = time;
    }

    /// Keeps all that it is now, with what is in flight, in place of what it kept before; false when it cannot.
    fn keep(&mut self) -> bool {
        false
    }

    /// Is again what it was when it last [kept](Self::keep) that.
    fn back(&mut self) {}
}
