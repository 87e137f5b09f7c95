//! Threads of the kernel that arrays have: what they work, when they have no core, and what they take.
//!
//! Each parity array of the tree has one, and its workers; btrfs with parity has workers; each mirror of md that is made to agree has one.
use super::btrfs::rows::Rows;
use super::mirror::copier::Copier;
use super::node::{Node, Shape};
use super::parity::thread::Thread;
use super::{Array, NEVER};
use crate::block::Busy;
use raidlab_core::time::{Instant, Span};

impl Array {
    /// How many there are on the processor.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.nodes.iter().map(Node::threads).sum()
    }

    /// Whether some of them compute.
    pub(crate) fn computes(&self) -> bool {
        self.nodes.iter().any(|node| node.computes().is_some())
    }

    /// Work that one of the threads was given so far, whether it has done it or not.
    #[must_use]
    pub fn worked(&self, thread: usize) -> Span {
        let of = self.of_thread(thread);
        of.map_or(Span::ZERO, |(node, own)| self.nodes[node].worked(own))
    }

    /// One of the threads has no core for `time`: what it has to do comes so much later. Returns when the first of that would have
    /// been done; later than anything when there is nothing.
    pub fn wait(&mut self, now: Instant, thread: usize, time: Span) -> Instant {
        let of = self.of_thread(thread);
        of.map_or(NEVER, |(node, own)| self.nodes[node].wait(now, own, time))
    }

    /// A request of a thread that computes has gone to `member`, not joined to others: it has cost the thread time.
    pub(crate) fn sent(&mut self, now: Instant, member: u16) {
        let node = self.nearest(member, |node| node.computes().is_some());
        if let Some(thread) = node.and_then(|node| self.nodes[node].computes_mut()) {
            thread.send(now);
        }
    }

    /// The same of a request of a resync. Whether that has a thread.
    pub(crate) fn sent_by_resync(&mut self, now: Instant, member: u16) -> bool {
        let node = self.nearest(member, |node| node.copier().is_some());
        let copier = node.and_then(|node| self.nodes[node].copier_mut());
        copier.is_some_and(|copier| {
            copier.send(now);
            true
        })
    }

    /// Which array of the tree has a thread, and which of its own that is.
    fn of_thread(&self, thread: usize) -> Option<(usize, usize)> {
        let mut own = thread;
        for (index, node) in self.nodes.iter().enumerate() {
            let threads = node.threads();
            if own < threads {
                return Some((index, own));
            }
            own -= threads;
        }
        None
    }

    /// The first array above a member of which `is` holds.
    fn nearest(&self, member: u16, is: impl Fn(&Node) -> bool) -> Option<usize> {
        let mut place = self.homes.get(usize::from(member)).copied();
        while let Some((index, _)) = place {
            let node = &self.nodes[usize::from(index)];
            if is(node) {
                return Some(usize::from(index));
            }
            place = node.common.up;
        }
        None
    }

    /// Busy time of the threads. Time that is booked for work not yet done is not counted; its parts are.
    pub fn busy(&self, now: Instant, out: &mut Vec<Busy>) {
        let several = self.nodes.len() > 1;
        for (index, node) in self.nodes.iter().enumerate() {
            let behind = if several {
                format!(" {index}")
            } else {
                String::new()
            };
            out.extend(node.busy(now, &behind));
        }
    }
}

impl Node {
    /// Who computes parity, if somebody does.
    pub(super) fn computes(&self) -> Option<&Thread> {
        match &self.shape {
            Shape::Parity(parity) => Some(parity.workers()),
            _ => self.rows().map(Rows::workers),
        }
    }

    /// The same, to have them do something.
    fn computes_mut(&mut self) -> Option<&mut Thread> {
        match &mut self.shape {
            Shape::Parity(parity) => Some(parity.workers_mut()),
            Shape::Btrfs(chunks) => chunks.rows.as_mut().map(Rows::workers_mut),
            _ => None,
        }
    }

    /// Who makes copies agree, if somebody does or did, and that takes time.
    fn copier(&self) -> Option<&Copier> {
        match &self.shape {
            Shape::Mirror(mirror) => mirror.copier(),
            _ => None,
        }
    }

    /// The same, to have it send.
    fn copier_mut(&mut self) -> Option<&mut Copier> {
        match &mut self.shape {
            Shape::Mirror(mirror) => mirror.copier_mut(),
            _ => None,
        }
    }

    /// Whether its resync goes on only when its thread is through with what it has sent.
    #[inline]
    pub(super) fn waits_for_thread(&self) -> bool {
        self.copier().is_some_and(Copier::waits)
    }

    fn threads(&self) -> usize {
        let computes = self.computes().map_or(0, Thread::count);
        computes + usize::from(self.copier().is_some())
    }

    fn worked(&self, thread: usize) -> Span {
        match (self.computes(), self.copier()) {
            (Some(of), _) => of.given(thread),
            (None, copier) => copier.map_or(Span::ZERO, Copier::given),
        }
    }

    fn wait(&mut self, now: Instant, thread: usize, time: Span) -> Instant {
        if let Some(of) = self.computes_mut() {
            return of.wait(now, thread, time);
        }
        let copier = self.copier_mut();
        copier.map_or(NEVER, |copier| copier.wait(now, time))
    }

    /// With this behind the name of a thread where there are several.
    fn busy(&self, now: Instant, behind: &str) -> Option<Busy> {
        match &self.shape {
            Shape::Parity(parity) => Some(parity.busy(now, behind)),
            Shape::Mirror(mirror) => mirror.busy(now, behind),
            _ => self.rows().map(|rows| rows.busy(now)),
        }
    }
}
