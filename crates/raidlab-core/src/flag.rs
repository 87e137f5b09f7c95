//! Why a figure may not be believed: flags with reasons, kept with the trial that earned them.
//!
//! A flag is evidence, never a deletion: a flagged trial stays in the store with its reason. A
//! *voiding* flag keeps it out of the aggregate; the report says so.
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlagKind {
    /// The device saw few of the bytes that the workload read, or overwrote before they were written back: a cache answered.
    ServedFromCache,
    /// A part of the bytes was answered by a cache.
    PartlyCached,
    /// The device moved more bytes than the workload did: other I/O or read-ahead.
    ForeignIo,
    /// Bytes claimed as written had not reached the device when the clock stopped.
    Unflushed,
    /// Direct I/O was asked for but the page cache took part.
    DirectNotHonoured,
    /// The phase was over before it could be timed soundly.
    TooShort,
    /// The load generator, not the storage, was the limit.
    GeneratorBound,
    /// Something else used the machine.
    OtherLoad,
    /// Faster than the link or the medium can be.
    AboveLimit,
    /// An array of the stack was resyncing, rebuilding or degraded.
    ArrayBusy,
    /// Fewer operations were in flight than the depth asked for.
    DepthNotReached,
    /// Fewer operations were done than were due at the rate that was asked for.
    RateNotReached,
    /// The file has holes, or parts that were never written: no disk is read for them.
    Sparse,
    /// The data may have been compressed on the way.
    Compressible,
    /// The cache could not be emptied, or that could not be proved.
    NotCold,
    /// A defect of the tool that made the figure.
    ToolDefect,
    /// The file is small enough for memory to hold.
    FitsInMemory,
    /// The modelled disk answered late (real-time VM).
    Late,
    /// A member of the array failed meanwhile.
    MemberFailed,
    /// Afterwards copies, parity or checksums of the array did not agree with its data.
    Inconsistent,
    /// Whether the array was still consistent was asked for, and could not be told.
    Unverified,
    /// Stopped before its end.
    Interrupted,
    /// Anything else; the reason says what.
    Other,
}

impl FlagKind {
    /// Whether the figure is no measurement of the storage and stays out of the aggregate.
    #[must_use]
    pub const fn voids(self) -> bool {
        matches!(
            self,
            Self::ServedFromCache
                | Self::DirectNotHonoured
                | Self::Sparse
                | Self::ArrayBusy
                | Self::Late
                | Self::MemberFailed
                | Self::Inconsistent
                | Self::Interrupted
        )
    }

    /// The stable name, as stored and exported.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServedFromCache => "served-from-cache",
            Self::PartlyCached => "partly-cached",
            Self::ForeignIo => "foreign-io",
            Self::Unflushed => "unflushed",
            Self::DirectNotHonoured => "direct-not-honoured",
            Self::TooShort => "too-short",
            Self::GeneratorBound => "generator-bound",
            Self::OtherLoad => "other-load",
            Self::AboveLimit => "above-limit",
            Self::ArrayBusy => "array-busy",
            Self::DepthNotReached => "depth-not-reached",
            Self::RateNotReached => "rate-not-reached",
            Self::Sparse => "sparse",
            Self::Compressible => "compressible",
            Self::NotCold => "not-cold",
            Self::ToolDefect => "tool-defect",
            Self::FitsInMemory => "fits-in-memory",
            Self::Late => "late",
            Self::MemberFailed => "member-failed",
            Self::Inconsistent => "inconsistent",
            Self::Unverified => "unverified",
            Self::Interrupted => "interrupted",
            Self::Other => "other",
        }
    }
}

/// One doubt about a figure, with the evidence in words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Flag {
    /// What is doubtful.
    pub kind: FlagKind,
    /// The evidence: `the device read 12 MiB of 1 GiB`.
    pub reason: String,
    /// Keeps the figure out of the aggregate. Set from [`FlagKind::voids`] unless the context
    /// decides otherwise (a cached read is the point of `hdparm -T`).
    pub voids: bool,
}

impl Flag {
    /// A flag that voids the figure when its kind usually does.
    #[must_use]
    pub fn new(kind: FlagKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            voids: kind.voids(),
        }
    }

    /// The same doubt as a remark only.
    #[must_use]
    pub fn remark(mut self) -> Self {
        self.voids = false;
        self
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_stored_form() {
        for kind in [
            FlagKind::ServedFromCache,
            FlagKind::NotCold,
            FlagKind::Other,
            FlagKind::GeneratorBound,
            FlagKind::MemberFailed,
            FlagKind::Inconsistent,
            FlagKind::Unverified,
            FlagKind::RateNotReached,
            FlagKind::Sparse,
        ] {
            assert_eq!(
                serde_json::to_string(&kind).unwrap(),
                format!("\"{}\"", kind.name())
            );
        }
    }
}
