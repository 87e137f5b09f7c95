//! The schedulers behind one face. What a queue without one does is nearly nothing, and part of the caller.
use super::anticipatory::Anticipatory;
use super::bfq::Bfq;
use super::cfq::Cfq;
use super::deadline::Deadline;
use super::elevator::Elevator;
use super::kyber::Kyber;
use super::spec::{Policy, QueueSpec};
use super::store::{Rq, Store};
use super::vdev::{self, Vdev};
use crate::block::Bio;
use raidlab_core::time::Instant;

/// What orders the requests, with its state.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Elevator(Elevator),
    Fifo,
    Deadline(Deadline),
    Anticipatory(Box<Anticipatory>),
    Cfq(Box<Cfq>),
    Bfq(Box<Bfq>),
    Kyber(Box<Kyber>),
    Vdev(Box<Vdev>),
}

impl Order {
    pub(super) fn new(spec: &QueueSpec) -> Self {
        let (rotational, depth) = (spec.rotational, spec.depth);
        match spec.policy {
            Policy::Elevator(with) => Self::Elevator(Elevator::new(with)),
            Policy::Noop | Policy::None => Self::Fifo,
            Policy::Deadline(with) => Self::Deadline(Deadline::new(with)),
            Policy::Anticipatory(with) => Self::Anticipatory(Box::new(Anticipatory::new(with))),
            Policy::Cfq(with) => Self::Cfq(Box::new(Cfq::new(with, rotational, depth))),
            Policy::Bfq(with) => Self::Bfq(Box::new(Bfq::new(with, rotational, depth))),
            Policy::Kyber(with) => Self::Kyber(Box::new(Kyber::new(with))),
            Policy::Vdev(with) => Self::Vdev(Box::new(Vdev::new(with))),
        }
    }

    /// The list that a bio's request waits in.
    #[inline]
    pub(super) fn class(&mut self, now: Instant, bio: &Bio) -> u16 {
        if matches!(self, Self::Fifo) {
            return 0;
        }
        self.class_of(now, bio)
    }

    #[inline(never)]
    fn class_of(&mut self, now: Instant, bio: &Bio) -> u16 {
        match self {
            Self::Elevator(_) | Self::Fifo => 0,
            Self::Deadline(_) => Deadline::class(bio.kind),
            Self::Anticipatory(_) => Anticipatory::class(bio.kind, bio.origin.sync),
            Self::Cfq(cfq) => cfq.class(bio),
            Self::Bfq(bfq) => bfq.class(now, bio),
            Self::Kyber(_) => Kyber::class(bio.kind),
            Self::Vdev(_) => vdev::class(bio),
        }
    }

    /// A request has come in.
    #[inline]
    pub(super) fn added(&mut self, store: &Store, now: Instant, rq: &Rq) {
        if !matches!(self, Self::Fifo) {
            self.note_added(store, now, rq);
        }
    }

    #[inline(never)]
    fn note_added(&mut self, store: &Store, now: Instant, rq: &Rq) {
        match self {
            Self::Elevator(_) | Self::Fifo | Self::Deadline(_) | Self::Kyber(_) | Self::Vdev(_) => {
            }
            Self::Anticipatory(anticipatory) => anticipatory.added(now, rq),
            Self::Cfq(cfq) => cfq.added(now, rq),
            Self::Bfq(bfq) => bfq.added(store, now, rq),
        }
    }

    /// A waiting request is about to be joined to another of its class.
    pub(super) fn leaves(&mut self, store: &Store, slot: u32) {
        match self {
            Self::Deadline(deadline) => deadline.leaves(store, slot),
            Self::Anticipatory(anticipatory) => anticipatory.leaves(store.get(slot)),
            Self::Bfq(bfq) => bfq.leaves(store.get(slot)),
            _ => {}
        }
    }

    /// The request to be given out now; [`NIL`](super::store::NIL) when none is to be, although some wait.
    #[inline]
    pub(super) fn pick(&mut self, store: &Store, now: Instant) -> u32 {
        if matches!(self, Self::Fifo) {
            return store.oldest(0);
        }
        self.pick_by_rule(store, now)
    }

    #[inline(never)]
    fn pick_by_rule(&mut self, store: &Store, now: Instant) -> u32 {
        match self {
            Self::Fifo => store.oldest(0),
            Self::Elevator(elevator) => elevator.pick(store),
            Self::Deadline(deadline) => deadline.pick(store, now),
            Self::Anticipatory(anticipatory) => anticipatory.pick(store, now),
            Self::Cfq(cfq) => cfq.pick(store, now),
            Self::Bfq(bfq) => bfq.pick(store, now),
            Self::Kyber(kyber) => kyber.pick(store, now),
            Self::Vdev(vdev) => vdev.pick(store),
        }
    }

    /// A request that was picked goes to the device.
    #[inline]
    pub(super) fn given(&mut self, rq: &Rq) {
        if let Self::Vdev(vdev) = self {
            vdev.given(rq);
        }
    }

    /// The device has ended a request that was picked.
    #[inline]
    pub(super) fn ended(&mut self, store: &Store, now: Instant, slot: u32) {
        if !matches!(self, Self::Fifo) {
            self.note_ended(store, now, slot);
        }
    }

    #[inline(never)]
    fn note_ended(&mut self, store: &Store, now: Instant, slot: u32) {
        let rq = store.get(slot);
        match self {
            Self::Elevator(_) | Self::Fifo | Self::Deadline(_) => {}
            Self::Anticipatory(anticipatory) => anticipatory.ended(store, now, rq),
            Self::Cfq(cfq) => cfq.ended(store, now, rq),
            Self::Bfq(bfq) => bfq.ended(store, now, rq, slot),
            Self::Kyber(kyber) => kyber.ended(now, rq),
            Self::Vdev(vdev) => vdev.ended(rq),
        }
    }

    /// While it favours a process, fewer requests may be of what nobody waits for.
    #[inline]
    pub(super) fn favours(&self) -> bool {
        matches!(self, Self::Bfq(bfq) if bfq.raises())
    }

    /// When waiting for a process ends by itself.
    #[inline]
    pub(super) fn wake(&self) -> Option<Instant> {
        match self {
            Self::Anticipatory(anticipatory) => anticipatory.wake(),
            Self::Cfq(cfq) => cfq.wake(),
            Self::Bfq(bfq) => bfq.wake(),
            _ => None,
        }
    }
}
