//! What happens next: events of the host's own, and requests that end in the device below.
use super::cache::Left;
use super::device::{Device, NEVER, Owner};
use super::submitter::Waits;
use super::{Host, What};
use crate::block::Standstill;
use raidlab_core::target::{Completion, Tag, TargetError};
use raidlab_core::time::{Instant, Span};

impl<D: Device> Host<D> {
    /// The next time at which anything happens by itself, and whether it is in the device.
    #[inline]
    fn next(&self) -> (Instant, bool) {
        let below = self.below.next();
        match self.events.next() {
            // What ends in the device comes first.
            Some(at) if at < below => (at, false),
            _ => (below, true),
        }
    }

    /// Lets what is next at `at` happen.
    #[inline]
    fn happen(&mut self, at: Instant, below: bool, done: &mut Vec<Completion>) {
        self.now = self.now.max(at);
        if below {
            self.requests_end();
            return;
        }
        let Some(what) = self.events.take() else {
            return;
        };
        match what {
            What::Done(tag) => {
                let call = &mut self.calls[tag as usize];
                call.busy = false;
                let by_worker = call.by_worker;
                let process = call.process;
                self.in_flight -= 1;
                let end = Completion {
                    tag: Tag(tag),
                    result: call.result(),
                    at: self.now,
                };
                match self.waits {
                    Waits::Process | Waits::Submission => self.ends_within(process, end, done),
                    _ => done.push(end),
                }
                if by_worker {
                    self.worker_ends(tag);
                }
            }
            What::Step(tag) => self.step(tag),
            What::Wake => self.flusher_wakes(),
            What::Commit => self.commit_timer(),
            What::Home => self.home_timer(),
            What::Log => self.log_timer(),
            What::Pump => self.pump(),
            What::Fill => self.look_at_filling(),
            What::Hears(process) => self.hears(process, done),
        }
    }

    /// What arrays below ask of their members beside what who submits to them has answered for: it is the kernel's work, and what
    /// their threads ask for ends in interrupts, too.
    fn members_asked(&mut self) {
        let asked = self.below.asked();
        let alone = asked.submitter + asked.resync;
        let (begun, ended) = (alone + self.below.beside(), alone + asked.thread);
        if begun + ended > 0 {
            let cost = Span(self.costs.submit.0 * begun + self.costs.end.0 * ended);
            self.cores.kernel(self.now, cost);
        }
    }

    /// The threads of arrays below have the cores that processes leave them.
    #[inline]
    pub(super) fn share_cores(&mut self) {
        if !self.below.asks_nothing() {
            self.members_asked();
        }
        for thread in 0..self.cores.below() {
            let given = self.below.device.worked(thread);
            let late = self.cores.give(thread, self.now, given);
            if late > Span::ZERO {
                self.below.wait(self.now, thread, late);
            }
        }
    }

    /// Requests have ended in the device.
    fn requests_end(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        self.below.advance(self.now, &mut ended);
        if self.closes {
            self.close_copied();
        }
        for end in ended.drain(..) {
            let (owner, beside) = self.below.owner_of(end.id);
            let cost = Span(self.costs.end.0 * (1 + u64::from(beside)));
            // Whoever waits goes on after the interrupt.
            self.cores.kernel(self.now, cost);
            let good = end.result.is_ok();
            match owner {
                Owner::Fill {
                    file,
                    page,
                    pages,
                    ahead,
                } => {
                    let left = match (good, ahead) {
                        (true, _) => Left::Content,
                        (false, true) => Left::Blank,
                        (false, false) => Left::Nothing,
                    };
                    self.pages_came(file, page, pages, left);
                }
                Owner::Flush {
                    file,
                    page,
                    pages,
                    number,
                } => self.pages_went(file, page, pages, number, good),
                Owner::Along { number } => self.along_went(number),
                Owner::Call(tag) => self.request_of_call(tag, good),
                Owner::Journal => self.request_of_journal(),
                Owner::Free => {}
            }
        }
        self.ended = ended;
        self.look_at_filling();
    }

    /// Lets happen what does until calls end or it is `until`.
    ///
    /// # Panics
    /// When time stands still, which is a defect of the model.
    #[inline]
    pub(super) fn go_on(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let before = done.len();
        let mut still = Standstill::new(self.now);
        loop {
            if self.in_flight == 0 && until.is_none() {
                return Ok(());
            }
            let (next, below) = self.next();
            match until {
                Some(until) if next > until => {
                    self.now = self.now.max(until);
                    return Ok(());
                }
                None if next == NEVER => return Ok(()),
                _ => {
                    self.happen(next, below, done);
                    self.share_cores();
                }
            }
            still.look(self.now);
            if done.len() > before {
                return Ok(());
            }
        }
    }
}
