//! One pass over a file from its start to its end: by calls of one size, or a character at a time.
use super::handle::{Durable, Handle, Stage};
use super::serial::{Script, Step};
use super::{Expected, Stretch};
use crate::op::{FileOp, Op};
use crate::time::Instant;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What a pass does with each piece of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassAction {
    /// One `pwrite`.
    Write,
    /// One `pread`.
    Read,
    /// One `pread`, then one `pwrite` to the same place; the write counts, the read does not.
    Rewrite,
    /// One-byte writes to a buffered stream, a call's worth of them as one op.
    PutChars,
    /// One-byte reads from a buffered stream, a call's worth of them as one op.
    GetChars,
}

impl PassAction {
    const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Rewrite | Self::PutChars)
    }
}

/// A pass over a file. The last piece is shorter when the call size does not divide the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PassSpec {
    /// The file and how it is opened.
    pub handle: Handle,
    /// What is done.
    pub action: PassAction,
    /// First byte.
    #[serde(default)]
    pub start: Bytes,
    /// Number of bytes.
    pub size: Bytes,
    /// Bytes of one call (of one op, for characters); at least 1.
    pub call: u32,
    /// When the file is made durable.
    #[serde(default)]
    pub durable: Durable,
}

/// A running pass.
#[derive(Clone, Debug)]
pub struct Pass {
    spec: PassSpec,
    stage: Stage,
    at: u64,
    end: u64,
    /// The second half of a rewrite is due.
    write_back: bool,
    /// A sync is due after the write before.
    sync_due: bool,
}

impl Pass {
    pub(super) fn new(spec: PassSpec) -> Self {
        Self {
            spec,
            stage: Stage::Open,
            at: spec.start.0,
            end: spec.start.0.saturating_add(spec.size.0),
            write_back: false,
            sync_due: false,
        }
    }

    fn piece(&mut self, len: u32) -> (Op, bool) {
        let (handle, at, file) = (self.spec.handle, self.at, self.spec.handle.file);
        let op = match self.spec.action {
            PassAction::Write => handle.write(at, len),
            PassAction::Read => handle.read(at, len),
            PassAction::Rewrite if !self.write_back => {
                self.write_back = true;
                return (handle.read(at, len), false);
            }
            PassAction::Rewrite => handle.write(at, len),
            PassAction::PutChars => Op::File(FileOp::PutChars {
                file,
                len,
                offset: at,
            }),
            PassAction::GetChars => Op::File(FileOp::GetChars {
                file,
                len,
                offset: at,
            }),
        };
        self.write_back = false;
        self.sync_due = self.spec.durable == Durable::EveryWrite && self.spec.action.writes();
        self.at += u64::from(len);
        (op, true)
    }
}

impl Script for Pass {
    fn step(&mut self, _: Instant) -> Step {
        if let Ok(call) = self.stage.frame(&self.spec.handle, self.spec.durable) {
            return call.map(|op| (op, false));
        }
        if self.sync_due {
            self.sync_due = false;
            return Some((self.spec.handle.make_durable(false), false));
        }
        let len = (self.end - self.at).min(u64::from(self.spec.call.max(1))) as u32;
        if len == 0 {
            self.stage = Stage::Sync;
            return self.step(Instant::ZERO);
        }
        Some(self.piece(len))
    }

    fn expected(&self) -> Expected {
        Expected {
            ops: Some(self.spec.size.0.div_ceil(u64::from(self.spec.call.max(1)))),
            bytes: Some(self.spec.size.0),
            time: None,
        }
    }

    fn stretch(&self) -> Option<Stretch> {
        let spec = &self.spec;
        let call = spec.call.max(1);
        let plain = self.stage == Stage::Work
            && !self.write_back
            && !self.sync_due
            && spec.durable != Durable::EveryWrite;
        plain.then(|| Stretch {
            file: Some(spec.handle.file),
            offset: self.at,
            piece: call,
            pieces: (self.end - self.at) / u64::from(call),
            reads: !matches!(spec.action, PassAction::Write | PassAction::PutChars),
            writes: spec.action.writes(),
            until: None,
        })
    }

    fn skip(&mut self, pieces: u64) {
        self.at += pieces * u64::from(self.spec.call.max(1));
    }
}
