//! What happens by itself, in the order of time.
use super::What;
use raidlab_core::time::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When, which of all that were ever put, and what.
type Event = (Instant, u64, What);

/// Events to come; of two at the same time the one that was put first comes first.
///
/// Most are the end of the only call under way, put while others wait for seconds to pass and taken next: one event stands beside
/// the heap, so that those never go through it.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    beside: Option<Event>,
    heap: BinaryHeap<Reverse<Event>>,
    count: u64,
}

impl Agenda {
    #[inline]
    pub(super) fn put(&mut self, at: Instant, what: What) {
        self.count += 1;
        let event = (at, self.count, what);
        let Some(beside) = &mut self.beside else {
            self.beside = Some(event);
            return;
        };
        // Of the two the sooner one stands beside.
        let later = match event < *beside {
            true => std::mem::replace(beside, event),
            false => event,
        };
        self.heap.push(Reverse(later));
    }

    /// When the next one comes.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        let of_heap = self.heap.peek().map(|Reverse((at, ..))| *at);
        match self.beside {
            Some((at, ..)) => Some(of_heap.map_or(at, |other| other.min(at))),
            None => of_heap,
        }
    }

    /// Takes the next one.
    #[inline]
    pub(super) fn take(&mut self) -> Option<What> {
        if let Some(beside) = self.beside
            && self.heap.peek().is_none_or(|Reverse(next)| beside < *next)
        {
            self.beside = None;
            return Some(beside.2);
        }
        self.heap.pop().map(|Reverse((_, _, what))| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As one list, sorted by time and then by when they were put.
        #[test]
        fn events_come_by_time_and_then_as_they_were_put(steps in prop::collection::vec((any::<bool>(), 0_u64..20), 1..200)) {
            let (mut agenda, mut list) = (Agenda::default(), Vec::new());
            for (number, (put, at)) in steps.into_iter().enumerate() {
                if put {
                    agenda.put(Instant(at), What::Step(number as u32));
                    list.push((Instant(at), number as u32));
                    list.sort_unstable();
                    continue;
                }
                prop_assert_eq!(agenda.next(), list.first().map(|(at, _)| *at));
                let first = (!list.is_empty()).then(|| What::Step(list.remove(0).1));
                prop_assert_eq!(agenda.take(), first);
            }
        }
    }
}
