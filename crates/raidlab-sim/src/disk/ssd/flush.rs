//! The map of pages, which a drive without capacitors writes before what was flushed is safe.
//!
//! It is written once at a time. Flushes that come meanwhile, of what has changed since, are answered together by the next time: so
//! several jobs that each flush what they wrote are faster together than one, as published (see the catalogue's files).
use raidlab_core::time::Span;

/// When the map is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Map {
    /// When the last flush that was asked for begins, with the data that it writes, and ends.
    begin: u64,
    end: u64,
    /// When the last write was in the buffer.
    changed: u64,
}

impl Map {
    /// What is in the buffer at time `at` is on another page from then on.
    pub(super) fn changes(&mut self, at: u64) {
        self.changed = self.changed.max(at);
    }

    /// Asked at time `now` for all to be safe, which the flash has at time `there`; when it is, which takes the map `span` unless the
    /// last time has all changes.
    pub(super) fn written(&mut self, now: u64, there: u64, span: Span) -> u64 {
        if self.changed <= self.begin {
            return there.max(self.end);
        }
        // One that waits for the one before takes what is new with it; one that has begun, if only with the data, does not.
        if self.begin <= now {
            self.begin = self.end.max(now);
        }
        self.end = self.end.max(self.begin.max(there) + span.0);
        self.end
    }
}
