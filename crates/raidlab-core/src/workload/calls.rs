//! Random calls on a file by one process: bonnie's seeker, tiotest's random phases.
use super::Expected;
use super::handle::{Durable, Handle, Stage};
use super::serial::{Script, Step};
use crate::rng::Stream;
use crate::time::{Instant, Span};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What a random call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallAction {
    /// One `pread`.
    Read,
    /// One `pwrite`.
    Write,
    /// One `pread`, which counts; one in `rewrite_one_in` of them (by chance) is followed by a
    /// `pwrite` to the same place, which does not. 0: none is.
    Seek {
        /// How rare the rewrites are.
        #[serde(rename = "rewrite-one-in")]
        rewrite_one_in: u32,
    },
}

/// Calls at random multiples of the call size, with replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CallsSpec {
    /// The file and how it is opened.
    pub handle: Handle,
    /// What each call does.
    pub action: CallAction,
    /// The calls stay below this offset.
    pub size: Bytes,
    /// Bytes of one call; at least 1.
    pub call: u32,
    /// Counted calls at least.
    pub count: u64,
    /// Goes on with more calls until this time has passed, or there were `at_most`.
    #[serde(default)]
    pub at_least: Span,
    /// Counted calls at most; only looked at when `at_least` is given.
    #[serde(default)]
    pub at_most: u64,
    /// When the file is made durable.
    #[serde(default)]
    pub durable: Durable,
}

/// Running random calls.
#[derive(Clone, Debug)]
pub struct Calls {
    spec: CallsSpec,
    stage: Stage,
    places: u64,
    issued: u64,
    offsets: Stream,
    choices: Stream,
    write_back: Option<u64>,
    sync_due: bool,
    end: Option<Instant>,
}

impl Calls {
    pub(super) fn new(spec: CallsSpec, stream: Stream) -> Self {
        Self {
            spec,
            stage: Stage::Open,
            places: spec.size.0 / u64::from(spec.call.max(1)),
            issued: 0,
            offsets: stream.child(0),
            choices: stream.child(1),
            write_back: None,
            sync_due: false,
            end: None,
        }
    }

    fn over(&mut self, now: Instant) -> bool {
        let end = *self.end.get_or_insert(now + self.spec.at_least);
        self.places == 0
            || (self.issued >= self.spec.count
                && (now >= end || self.issued >= self.spec.at_most.max(self.spec.count)))
    }
}

impl Script for Calls {
    fn step(&mut self, now: Instant) -> Step {
        if let Ok(call) = self.stage.frame(&self.spec.handle, self.spec.durable) {
            return call.map(|op| (op, false));
        }
        let (handle, call) = (self.spec.handle, self.spec.call);
        let syncs = self.spec.durable == Durable::EveryWrite;
        if let Some(offset) = self.write_back.take() {
            self.sync_due = syncs;
            return Some((handle.write(offset, call), false));
        }
        if std::mem::take(&mut self.sync_due) {
            return Some((handle.make_durable(false), false));
        }
        if self.over(now) {
            self.stage = Stage::Sync;
            return self.step(now);
        }
        let i = self.issued;
        self.issued += 1;
        let offset = self.offsets.below(i, self.places) * u64::from(call);
        let op = match self.spec.action {
            CallAction::Read => handle.read(offset, call),
            CallAction::Write => {
                self.sync_due = syncs;
                handle.write(offset, call)
            }
            CallAction::Seek { rewrite_one_in } => {
                if rewrite_one_in > 0 && self.choices.below(i, u64::from(rewrite_one_in)) == 0 {
                    self.write_back = Some(offset);
                }
                handle.read(offset, call)
            }
        };
        Some((op, true))
    }

    fn expected(&self) -> Expected {
        // With a least time the number is not known beforehand when the storage is fast.
        let known = self.spec.at_least == Span::ZERO;
        Expected {
            ops: known.then_some(self.spec.count),
            bytes: known.then_some(self.spec.count * u64::from(self.spec.call)),
            time: (!known).then_some(self.spec.at_least),
        }
    }
}
