//! Workloads as data: what a profile's jobs are made of, and how they become [`Workload`]s.
pub use super::block::{Arrival, BlockSpec, Blocks, Limit, Order};
pub use super::calls::{CallAction, Calls, CallsSpec};
pub use super::files::{Files, FilesAction, FilesSpec};
pub use super::handle::{Durable, Handle};
pub use super::pass::{Pass, PassAction, PassSpec};
pub use super::scan::{Copy, CopySpec, Scan, ScanSpec};
pub use super::serial::Serial;

use super::{Chance, Expected, Next, OpRecord, Stretch, Workload, stream_digest};
use crate::rng::Stream;
use crate::time::Instant;
use serde::{Deserialize, Serialize};

/// A workload by its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// One pass over a file: write, read, rewrite, putc, getc.
    Pass(PassSpec),
    /// Random calls on a file: seeks, random reads or writes.
    Calls(CallsSpec),
    /// Small files made, looked at or removed.
    Files(FilesSpec),
    /// Reads in a fixed window of time.
    Scan(ScanSpec),
    /// One file copied to another.
    Copy(CopySpec),
    /// Random or sequential block operations at any depth.
    Blocks(BlockSpec),
}

impl WorkloadSpec {
    /// The workload whose random choices come from `stream`.
    #[must_use]
    pub fn build(&self, stream: Stream) -> AnyWorkload {
        match *self {
            Self::Pass(spec) => AnyWorkload::Pass(Serial::new(Pass::new(spec))),
            Self::Calls(spec) => AnyWorkload::Calls(Serial::new(Calls::new(spec, stream))),
            Self::Files(spec) => AnyWorkload::Files(Serial::new(Files::new(spec, stream))),
            Self::Scan(spec) => AnyWorkload::Scan(Serial::new(Scan::new(spec))),
            Self::Copy(spec) => AnyWorkload::Copy(Serial::new(Copy::new(spec))),
            Self::Blocks(spec) => AnyWorkload::Blocks(Blocks::new(spec, stream)),
        }
    }

    /// Digest of the operations that [`build`](Self::build) with the same stream will ask for.
    #[must_use]
    pub fn digest(&self, stream: Stream) -> u64 {
        stream_digest(self.build(stream))
    }

    /// How far it will go.
    #[must_use]
    pub fn expected(&self) -> Expected {
        self.build(Stream::new(0)).expected()
    }
}

/// A running workload of any kind.
///
/// The variants are public so that the measuring loop can be made for [`Blocks`] alone, without the
/// choice between kinds at each operation.
#[derive(Clone, Debug)]
pub enum AnyWorkload {
    /// See [`WorkloadSpec::Pass`].
    Pass(Serial<Pass>),
    /// See [`WorkloadSpec::Calls`].
    Calls(Serial<Calls>),
    /// See [`WorkloadSpec::Files`].
    Files(Serial<Files>),
    /// See [`WorkloadSpec::Scan`].
    Scan(Serial<Scan>),
    /// See [`WorkloadSpec::Copy`].
    Copy(Serial<Copy>),
    /// See [`WorkloadSpec::Blocks`].
    Blocks(Blocks),
}

macro_rules! each {
    ($workload:expr, $inner:ident => $body:expr) => {
        match $workload {
            AnyWorkload::Blocks($inner) => $body,
            AnyWorkload::Pass($inner) => $body,
            AnyWorkload::Calls($inner) => $body,
            AnyWorkload::Files($inner) => $body,
            AnyWorkload::Scan($inner) => $body,
            AnyWorkload::Copy($inner) => $body,
        }
    };
}

impl Workload for AnyWorkload {
    #[inline]
    fn next(&mut self, now: Instant) -> Next {
        each!(self, workload => workload.next(now))
    }

    #[inline]
    fn completed(&mut self, record: &OpRecord) {
        each!(self, workload => workload.completed(record));
    }

    fn expected(&self) -> Expected {
        each!(self, workload => workload.expected())
    }

    #[inline]
    fn is_serial(&self) -> bool {
        each!(self, workload => workload.is_serial())
    }

    fn lasts(&self) -> Option<Instant> {
        each!(self, workload => workload.lasts())
    }

    fn stretch(&self) -> Option<Stretch> {
        each!(self, workload => workload.stretch())
    }

    fn chance(&self) -> Option<Chance> {
        each!(self, workload => workload.chance())
    }

    fn skip(&mut self, pieces: u64) {
        each!(self, workload => workload.skip(pieces));
    }

    fn twin(&self) -> Option<Self> {
        Some(self.clone())
    }
}
