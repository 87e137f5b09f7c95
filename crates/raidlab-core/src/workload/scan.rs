//! Reading onwards, or the same place again and again, in a fixed window of time (`hdparm -t`, `-T`).
use super::Expected;
use super::handle::{Durable, Handle, Stage};
use super::serial::{Script, Step};
use crate::time::{Instant, Span};
use crate::units::{Bytes, Extent};
use serde::{Deserialize, Serialize};

/// Reads of one size within a region until the window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScanSpec {
    /// The file or device and how it is opened.
    pub handle: Handle,
    /// What is read; whole calls only.
    pub region: Extent,
    /// Bytes of one call; at least 1.
    pub call: u32,
    /// No call begins later than this after the first.
    pub window: Span,
    /// Calls at least, however long they take.
    pub at_least: u64,
    /// At the end of the region: begin again, or stop.
    pub wrap: bool,
}

/// A running scan.
#[derive(Clone, Debug)]
pub struct Scan {
    spec: ScanSpec,
    stage: Stage,
    calls: u64,
    issued: u64,
    end: Option<Instant>,
}

impl Scan {
    pub(super) fn new(spec: ScanSpec) -> Self {
        Self {
            spec,
            stage: Stage::Open,
            calls: spec.region.len.0 / u64::from(spec.call.max(1)),
            issued: 0,
            end: None,
        }
    }

    fn over(&mut self, now: Instant) -> bool {
        let end = *self.end.get_or_insert(now + self.spec.window);
        self.calls == 0
            || (!self.spec.wrap && self.issued >= self.calls)
            || (self.issued >= self.spec.at_least && now >= end)
    }
}

impl Script for Scan {
    fn step(&mut self, now: Instant) -> Step {
        if let Ok(call) = self.stage.frame(&self.spec.handle, Durable::Never) {
            return call.map(|op| (op, false));
        }
        if self.over(now) {
            self.stage = Stage::Sync;
            return self.step(now);
        }
        let place = self.issued % self.calls * u64::from(self.spec.call);
        self.issued += 1;
        let op = self
            .spec
            .handle
            .scan(self.spec.region.start.0 + place, self.spec.call);
        Some((op, true))
    }

    fn expected(&self) -> Expected {
        Expected {
            ops: None,
            bytes: None,
            time: Some(self.spec.window),
        }
    }
}

/// Reading one file and writing what was read to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CopySpec {
    /// The file that is read; reading does not count.
    pub from: Handle,
    /// The file that is written; writing counts.
    pub to: Handle,
    /// Number of bytes.
    pub size: Bytes,
    /// Bytes of one call; at least 1.
    pub call: u32,
    /// When the written file is made durable.
    #[serde(default)]
    pub durable: Durable,
}

/// A running copy.
#[derive(Clone, Debug)]
pub struct Copy {
    spec: CopySpec,
    source: Stage,
    sink: Stage,
    at: u64,
    write: bool,
    sync_due: bool,
}

impl Copy {
    pub(super) fn new(spec: CopySpec) -> Self {
        Self {
            spec,
            source: Stage::Open,
            sink: Stage::Open,
            at: 0,
            write: false,
            sync_due: false,
        }
    }
}

impl Script for Copy {
    fn step(&mut self, _: Instant) -> Step {
        let spec = self.spec;
        if self.source != Stage::Over
            && let Ok(call) = self.source.frame(&spec.from, Durable::Never)
        {
            return call.map(|op| (op, false));
        }
        if let Ok(call) = self.sink.frame(&spec.to, spec.durable) {
            return call.map(|op| (op, false));
        }
        if std::mem::take(&mut self.sync_due) {
            return Some((spec.to.make_durable(false), false));
        }
        let len = (spec.size.0 - self.at).min(u64::from(spec.call.max(1))) as u32;
        if len == 0 {
            (self.source, self.sink) = (Stage::Close, Stage::Sync);
            return self.step(Instant::ZERO);
        }
        if !self.write {
            self.write = true;
            return Some((spec.from.read(self.at, len), false));
        }
        let op = spec.to.write(self.at, len);
        self.write = false;
        self.sync_due = spec.durable == Durable::EveryWrite;
        self.at += u64::from(len);
        Some((op, true))
    }

    fn expected(&self) -> Expected {
        Expected {
            ops: Some(self.spec.size.0.div_ceil(u64::from(self.spec.call.max(1)))),
            bytes: Some(self.spec.size.0),
            time: None,
        }
    }
}
