//! Who makes the copies of a mirror agree: a thread of the processor that sends one request after the other.
//!
//! Of md two threads do: that of the resync asks for what is read, and the array's own for what is written when that has come
//! (`raid1.c:raid1_sync_request`, `sync_request_write`). Here they are one: nothing more is read until it is through with what
//! was sent, so that both together take no more than one core has.
use crate::array::NEVER;
use crate::block::{Busy, ResourceKind};
use raidlab_core::time::{Instant, Span};

/// The thread.
#[derive(Clone, Debug, Default)]
pub(in crate::array) struct Copier {
    /// What it takes to send a request.
    submit: Span,
    /// Work that it was given so far.
    given: Span,
    /// When it is through with it.
    free: Instant,
    /// It has no core until then.
    stands: Instant,
    /// Something is to be read then.
    waits: bool,
}

impl Copier {
    pub(super) fn new(submit: Span) -> Self {
        Self {
            submit,
            ..Self::default()
        }
    }

    /// It has sent a request to a member.
    pub(in crate::array) fn send(&mut self, now: Instant) {
        self.given += self.submit;
        self.free = self.free.max(now) + self.submit;
    }

    /// Whether it is through with all that was sent; if not, it goes on at [`Self::next`].
    pub(super) fn is_free(&mut self, now: Instant) -> bool {
        self.waits = self.free > now;
        !self.waits
    }

    /// Whether something waits until it is through.
    pub(in crate::array) const fn waits(&self) -> bool {
        self.waits
    }

    /// Nothing more is to be read.
    pub(super) fn rests(&mut self) {
        self.waits = false;
    }

    /// When it goes on; later than anything when nothing waits for it.
    pub(in crate::array) const fn next(&self) -> Instant {
        if self.waits { self.free } else { NEVER }
    }

    /// It has no core for so long. Returns when it would have gone on.
    pub(in crate::array) fn wait(&mut self, now: Instant, time: Span) -> Instant {
        let next = self.next();
        if self.free > now {
            self.free += time;
            self.stands = self.stands.max(now) + time;
        }
        next
    }

    /// Work that it was given so far, whether it has done it or not.
    pub(in crate::array) const fn given(&self) -> Span {
        self.given
    }

    /// Its time until `now`.
    pub(super) fn busy(&self, now: Instant, name: String) -> Busy {
        let busy = self.given - self.free.since(now.max(self.stands));
        Busy {
            name,
            kind: ResourceKind::Thread,
            units: 1,
            busy,
            parts: vec![("requests", busy)],
            way: None,
        }
    }
}
