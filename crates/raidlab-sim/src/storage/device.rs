//! The storage as the device of a host.
use super::{Asked, Storage};
use crate::array::Array;
use crate::block::{Bio, Ended, Origin};
use crate::host::{Device, Hints};
use raidlab_core::time::{Instant, Span};

impl Device for Storage {
    fn sectors(&self) -> u64 {
        self.sectors()
    }

    fn copying(&self) -> Option<(u64, u64)> {
        self.array().and_then(Array::copying)
    }

    fn hints(&self) -> Hints {
        Hints {
            max_sectors: self.max_sectors(),
            paged: self.paged,
            window: self.window,
            large_call: self.large_call,
            stripe: self.stripe(),
            rotational: self.rotational,
            queue: self.queue,
        }
    }

    #[inline]
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.submit(now, bio);
    }

    #[inline]
    fn submit_bare(&mut self, now: Instant, bio: Bio) {
        self.submit_bare(now, bio);
    }

    #[inline]
    fn unplug(&mut self, now: Instant) {
        self.unplug(now);
    }

    #[inline]
    fn asked(&self) -> Asked {
        self.asked()
    }

    #[inline]
    fn sleeps(&self, origin: &Origin) -> bool {
        self.sleeps(origin)
    }

    fn writer_sleeps(&mut self, now: Instant) {
        self.writer_sleeps(now);
    }

    fn threads(&self) -> usize {
        self.array().map_or(0, Array::threads)
    }

    fn worked(&self, thread: usize) -> Span {
        self.array()
            .map_or(Span::ZERO, |array| array.worked(thread))
    }

    fn wait(&mut self, now: Instant, thread: usize, time: Span) {
        self.wait(now, thread, time);
    }

    fn fills(&self) -> bool {
        self.array().is_some_and(Array::resilvers)
    }

    fn fill(&mut self, now: Instant, on: bool) {
        self.with_array(now, |array| array.let_fill(now, on));
    }

    fn fill_rests(&self) -> bool {
        self.array().is_none_or(Array::fill_rests)
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.next_event()
    }

    #[inline]
    fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        self.advance(now, done);
    }
}
