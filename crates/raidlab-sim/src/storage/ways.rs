//! The ways from the array to the ports: the short one past all lists, and the one by the lists of the members to be asked.
use super::{Member, NEVER, Storage};
use crate::array::MemberBio;
use crate::block::{Bio, Ended, RESYNC};
use crate::fabric::{Fabric, PortEnd};
use crate::queue::Queue;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_core::units::Lba;

impl Storage {
    /// What has ended at the ports. The member, when there was one end alone; others are to be asked by then.
    #[inline]
    pub(super) fn port_ends(&mut self, t: Instant) -> Option<u16> {
        match self.fabric.pop_alone(t) {
            Some(end) => Some(self.port_ended(t, end)),
            None => self.ports_end(t),
        }
    }

    /// All that has ended at the ports, whatever has.
    #[inline(never)]
    fn ports_end(&mut self, t: Instant) -> Option<u16> {
        let mut only = None;
        while let Some(end) = self.fabric.pop(t) {
            let index = self.port_ended(t, end);
            // Also when nothing waits there: its turn among those that are wanted next depends on it.
            if only.is_some() || !self.touched.is_empty() {
                self.touch(only.take());
                self.touch(Some(index));
            } else {
                only = Some(index);
            }
        }
        only
    }

    /// A request has ended at a port; whose member it is.
    #[inline(always)]
    fn port_ended(&mut self, t: Instant, PortEnd { port, end }: PortEnd) -> u16 {
        let index = self.at_port[port as usize];
        if let Some(array) = &mut self.array
            && Queue::has_passed(end.id)
        {
            let queue = &mut self.members[usize::from(index)].queue;
            let id = queue.passed_ended(t, end.id);
            array.member_ended(t, index, id, end.result);
        } else {
            self.bios_ended(t, index, end);
        }
        index
    }

    /// A request of a member has ended, and with it all bios of it.
    #[inline(never)]
    fn bios_ended(&mut self, t: Instant, index: u16, end: Ended) {
        let queue = &mut self.members[usize::from(index)].queue;
        queue.each_end(t, end.id, end.result, |end| {
            if let Some(array) = &mut self.array {
                array.member_ended(t, index, end.id, end.result);
            } else {
                self.ended.push(end);
            }
        });
    }

    #[inline]
    pub(super) fn touch(&mut self, member: Option<u16>) {
        if let Some(index) = member {
            self.members[usize::from(index)].touch(index, &mut self.touched);
        }
    }

    /// The short way of what the array wants now and of a member whose request has just `ended`: one or two requests for
    /// queues that hand them over at once go to their ports, in the order that [`pump`](Self::pump) has, past all lists.
    /// False when it is not for this, and nothing was done.
    #[inline]
    pub(super) fn pass(&mut self, now: Instant, ended: Option<u16>) -> bool {
        #[cfg(test)]
        if self.lists_only {
            return false;
        }
        if self.counts {
            return false;
        }
        let Self {
            array: Some(array),
            members,
            fabric,
            touched,
            held,
            ..
        } = self
        else {
            return false;
        };
        let waits = |ended: u16| !members[usize::from(ended)].queue.is_empty();
        debug_assert!(
            ended.is_none_or(|ended| waits(ended) || members[usize::from(ended)].timer == NEVER),
            "a queue in which nothing waits has no time of its own"
        );
        if !held.is_empty() || !touched.is_empty() || ended.is_some_and(waits) {
            return false;
        }
        let passed = match array.wanted() {
            [] => return true,
            [one] => members[usize::from(one.member)].pass(now, &one.bio, fabric),
            [one, other] if one.member != other.member => {
                // The queue whose request has ended comes first.
                let turned = Some(other.member) == ended;
                let (first, second) = if turned { (other, one) } else { (one, other) };
                let queue = &members[usize::from(second.member)].queue;
                queue.passes(&second.bio)
                    && members[usize::from(first.member)].pass(now, &first.bio, fabric)
                    && members[usize::from(second.member)].pass(now, &second.bio, fabric)
            }
            _ => false,
        };
        if passed {
            array.wanted_is_taken();
        }
        passed
    }

    /// The same for any number of requests and any queues. What is held back is sent off `in_any_case`, or with what the array
    /// wants: what it wants by itself, its thread submits in one go.
    #[inline(never)]
    pub(super) fn pass_by_lists(&mut self, now: Instant, ended: Option<u16>, in_any_case: bool) {
        self.touch(ended);
        if self.take(now) || in_any_case {
            self.send_off(now);
        }
        self.pump(now);
    }

    /// Brings what the array wants to the queues; whether there was anything.
    #[inline]
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.counts || self.large_go {
            return self.take_each(now);
        }
        let Some(array) = &mut self.array else {
            return false;
        };
        array.each_wanted(|MemberBio { member: index, bio }| {
            let member = &mut self.members[usize::from(index)];
            member.enqueue(now, index, bio, &mut self.touched, &mut self.held);
        })
    }

    /// The same where requests to members cost time, or let others go.
    #[inline(never)]
    fn take_each(&mut self, now: Instant) -> bool {
        let mut wanted = std::mem::take(&mut self.wanted);
        if let Some(array) = &mut self.array {
            array.take(&mut wanted);
        }
        let some = !wanted.is_empty();
        for bio in wanted.drain(..) {
            self.enqueue_each(now, bio);
        }
        self.wanted = wanted;
        some
    }

    /// Brings a request to the queue of a member.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Instant, wanted: MemberBio) {
        if self.counts || self.large_go {
            return self.enqueue_each(now, wanted);
        }
        let MemberBio { member: index, bio } = wanted;
        let member = &mut self.members[usize::from(index)];
        member.enqueue(now, index, bio, &mut self.touched, &mut self.held);
    }

    /// The same where requests to members cost time, or let others go.
    #[inline(never)]
    fn enqueue_each(&mut self, now: Instant, MemberBio { member: index, bio }: MemberBio) {
        // What the thread of an array or a resync asks for is collected by itself.
        let goes =
            self.large_go && bio.kind == BlockKind::Read && !matches!(bio.origin.task, 0 | RESYNC);
        if goes && self.large == Some(now) && !self.members[usize::from(index)].queue.follows(&bio)
        {
            self.send_off(now);
            self.pump(now);
        }
        let member = &mut self.members[usize::from(index)];
        let merges = member.queue.merges();
        member.enqueue(now, index, bio, &mut self.touched, &mut self.held);
        if goes {
            self.large = member.queue.has_large().then_some(now);
        }
        if self.counts && member.queue.merges() == merges {
            self.count(now, index, bio.origin.task);
        }
    }

    /// A request of its own goes to a member, whose task it is.
    fn count(&mut self, now: Instant, member: u16, task: u16) {
        match task {
            0 if self.threads => {
                self.asked.thread += 1;
                if let Some(array) = &mut self.array {
                    array.sent(now, member);
                }
            }
            RESYNC => {
                let array = self.array.as_mut();
                if array.is_some_and(|array| array.sent_by_resync(now, member)) {
                    self.asked.thread += 1;
                } else {
                    self.asked.resync += 1;
                }
            }
            _ => self.asked.submitter += 1,
        }
    }

    /// Nothing is held back any more.
    #[inline]
    pub(super) fn send_off(&mut self, now: Instant) {
        for &index in &self.held {
            let member = &mut self.members[usize::from(index)];
            member.held = false;
            member.queue.unplug(now);
            member.touch(index, &mut self.touched);
        }
        self.held.clear();
    }

    /// Gives the ports what the touched queues have for them.
    // One copy for all callers: the code that a request runs through is to stay in the processor's nearest cache.
    #[inline(never)]
    pub(super) fn pump(&mut self, now: Instant) {
        for &index in &self.touched {
            let member = &mut self.members[usize::from(index)];
            member.touched = false;
            while !member.queue.is_empty()
                && let Some(mut bio) = member.queue.dispatch(now)
            {
                bio.lba = Lba(bio.lba.0 + member.offset);
                self.fabric.submit(now, member.port, bio);
            }
            member.timer = member.queue.next();
            if member.timer != NEVER && !std::mem::replace(&mut member.timed, true) {
                self.timed.push(index);
            }
        }
        self.touched.clear();
    }
}

impl Member {
    /// Gives its queue a request, and puts it on the lists of those to be asked and to be unplugged.
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        index: u16,
        bio: Bio,
        touched: &mut Vec<u16>,
        held: &mut Vec<u16>,
    ) {
        self.touch(index, touched);
        if !std::mem::replace(&mut self.held, true) {
            held.push(index);
        }
        self.queue.submit(now, bio);
    }

    /// Brings a request to its port, if its queue [passes](crate::queue::Queue::passes) it.
    // One copy, with the way to the disk in it.
    #[inline(never)]
    fn pass(&mut self, now: Instant, bio: &Bio, fabric: &mut Fabric) -> bool {
        let Some(mut bio) = self.queue.pass(bio) else {
            return false;
        };
        bio.lba.0 += self.offset;
        fabric.submit(now, self.port, bio);
        true
    }

    /// Puts it on the list of those to be asked.
    #[inline]
    pub(super) fn touch(&mut self, index: u16, touched: &mut Vec<u16>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(index);
        }
    }
}
