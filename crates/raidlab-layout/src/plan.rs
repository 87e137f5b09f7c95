//! The member I/Os of one array read or write, grouped in steps.
use crate::types::{Member, Run};
use raidlab_core::units::{Lba, Sectors};

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoKind {
    /// From the member.
    Read,
    /// To the member.
    Write,
}

/// One I/O on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIo {
    /// Read or write.
    pub kind: IoKind,
    /// Which member.
    pub member: Member,
    /// Which of its sectors.
    pub run: Run,
}

/// How the parity of some rows is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteMethod {
    /// All data of the rows is new: parity is computed without a read.
    FullStripe,
    /// Old data and old parity are read (md: rmw).
    ReadModifyWrite,
    /// The data that is not written is read (md: rcw).
    ReconstructWrite,
}

/// What was decided for some rows of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowDecision {
    /// First member of the array that decided: 0, or the base of an inner array.
    pub base: Member,
    /// Stripe number in that array.
    pub stripe: u64,
    /// First sector of the rows, counted from the start of the chunk.
    pub offset: Sectors,
    /// Sectors of the rows, on each member.
    pub len: Sectors,
    /// How parity is brought up to date.
    pub method: WriteMethod,
    /// Members that are read first.
    pub reads: u16,
}

/// When a read-modify-write is used (md: `rmw_level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rmw {
    /// Never (`rmw_level` 0; also md's choice in a complete array where a resync has not passed yet).
    Never,
    /// When it needs fewer reads than a reconstruct-write (`rmw_level` 1, the default). With as
    /// many reads, md reconstructs.
    #[default]
    FewerReads,
    /// Also when it needs as many (`rmw_level` 2).
    Prefer,
}

/// How the writer of a parity array behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WritePolicy {
    /// When a read-modify-write is used.
    pub rmw: Rmw,
    /// Whether RAID6 can read-modify-write at all: since Linux 4.1. Kernels that cannot also read
    /// every survivor before they write a part of a stripe of a degraded RAID6 (`raid5.c:
    /// fetch_block`); those before 3.16 even before a whole one, which is not modelled.
    pub raid6_rmw: bool,
}

impl WritePolicy {
    /// Linux 4.1 and later, as it comes.
    pub const LINUX: Self = Self {
        rmw: Rmw::FewerReads,
        raid6_rmw: true,
    };
    /// Linux before 4.1: RAID6 always reconstructs.
    pub const LINUX_BEFORE_4_1: Self = Self {
        rmw: Rmw::FewerReads,
        raid6_rmw: false,
    };
}

impl Default for WritePolicy {
    fn default() -> Self {
        Self::LINUX
    }
}

/// The member I/Os of one array read or write. Reuse one `Plan`: it keeps its memory.
///
/// The I/Os of one step may all be in flight together; a step may start when the one before it has
/// completed. Rows that need no pre-read are written in step 0, beside the pre-reads of the
/// others. Within a step, I/Os of an array that are contiguous on a member are one.
///
/// Only where parity is computed over arrays that compute parity themselves can a plan write a
/// sector (of the inner parity) more than once, for outer rows that share an inner stripe.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    steps: Vec<Vec<MemberIo>>,
    used: usize,
    decisions: Vec<RowDecision>,
    /// The plan of an outer array while its inner ones are being planned; kept for its memory.
    pub(crate) scratch: Option<Box<Self>>,
}

/// How far back a contiguous I/O is looked for: more than the streams that any plan keeps open
/// at once (one a member, or one a member and far section).
const MERGE_WINDOW: usize = 512;

impl Plan {
    /// An empty plan.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The steps in order; none is empty.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &[MemberIo]> {
        self.steps[..self.used].iter().map(Vec::as_slice)
    }

    /// All I/Os, step after step.
    pub fn ios(&self) -> impl Iterator<Item = &MemberIo> {
        self.steps().flatten()
    }

    /// How parity is brought up to date, row group by row group; empty for reads and for levels
    /// without parity.
    #[must_use]
    pub fn decisions(&self) -> &[RowDecision] {
        &self.decisions
    }

    /// Number of reads over all steps.
    #[must_use]
    pub fn reads(&self) -> usize {
        self.ios().filter(|io| io.kind == IoKind::Read).count()
    }

    /// Number of writes over all steps.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.ios().filter(|io| io.kind == IoKind::Write).count()
    }

    /// Forget the I/Os, keep the memory.
    pub fn clear(&mut self) {
        for step in &mut self.steps[..self.used] {
            step.clear();
        }
        self.used = 0;
        self.decisions.clear();
    }

    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn decide(&mut self, decision: RowDecision) {
        self.decisions.push(decision);
    }

    /// Put the I/Os of a step in member order and join what has become contiguous: for layouts
    /// that reach a member's sectors out of order. Reads can overlap, too, where rows are read whole for
    /// what a failed member had; what more than one of them wants is read once.
    pub(crate) fn coalesce(&mut self, step: usize) {
        let Some(ios) = self.steps.get_mut(step) else {
            return;
        };
        ios.sort_unstable();
        ios.dedup_by(|next, io| {
            let (end, start) = (io.run.end(), next.run.start.0);
            let joins = (io.kind, io.member) == (next.kind, next.member)
                && (end == start || (end > start && io.kind == IoKind::Read));
            if joins {
                io.run.len.0 = end.max(next.run.end()) - io.run.start.0;
            }
            joins
        });
    }

    fn add(&mut self, step: usize, io: MemberIo) {
        while self.steps.len() <= step {
            self.steps.push(Vec::new());
        }
        self.used = self.used.max(step + 1);
        let ios = &mut self.steps[step];
        for last in ios.iter_mut().rev().take(MERGE_WINDOW) {
            if last.member == io.member && last.run.end() == io.run.start.0 && last.kind == io.kind
            {
                last.run.len.0 += io.run.len.0;
                return;
            }
        }
        ios.push(io);
    }
}

/// Where an array writes its part of a plan: nested arrays start at a later step and member.
pub(crate) struct Sink<'a> {
    pub(crate) plan: &'a mut Plan,
    pub(crate) step: usize,
    pub(crate) base: u16,
}

impl Sink<'_> {
    pub(crate) fn add(&mut self, later: usize, kind: IoKind, member: usize, start: u64, len: u64) {
        let member = Member(self.base + member as u16);
        let run = Run {
            start: Lba(start),
            len: Sectors(len),
        };
        self.plan
            .add(self.step + later, MemberIo { kind, member, run });
    }
}
