//! A device of fixed speed, one request at a time in the order they came, that checks what it is
//! asked.
use crate::block::{Bio, Ended};
use crate::disk::DiskError;
use crate::host::device::{Device, Hints};
use raidlab_core::op::BlockKind;
use raidlab_core::rng::mix;
use raidlab_core::time::{Instant, Span};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Toy {
    pub(super) sectors: u64,
    pub(super) hints: Hints,
    /// For each request, and for each sector.
    pub(super) each: Span,
    pub(super) sector: Span,
    /// Requests that were submitted and not sent off do not begin; `None`: all begin at once.
    pub(super) plugged: Option<VecDeque<Bio>>,
    queue: VecDeque<(Instant, Bio)>,
    free: Instant,
    now: Instant,
    /// What was asked, in order.
    pub(super) asked: Vec<(Instant, Bio)>,
    pub(super) digest: u64,
    /// Requests that touch this sector fail.
    pub(super) bad: Option<u64>,
    /// What read-ahead asks for fails.
    pub(super) full: bool,
    /// It has something to do at once, and does not do it.
    pub(super) stuck: bool,
    /// Work of its one thread for each request, if it has one; what that was given, and how long it was told to wait
    /// for a core.
    pub(super) thread: Option<Span>,
    pub(super) worked: Span,
    pub(super) waited: Span,
}

impl Toy {
    /// 64 MB/s and 100 us a request.
    pub(super) fn new() -> Self {
        Self {
            sectors: 1 << 24,
            hints: Hints {
                max_sectors: 256,
                paged: 256,
                window: 256,
                large_call: 256,
                stripe: 0,
                rotational: false,
                queue: 128 * 256,
            },
            each: Span::from_micros(100),
            sector: Span(8000),
            plugged: None,
            queue: VecDeque::new(),
            free: Instant::ZERO,
            now: Instant::ZERO,
            asked: Vec::new(),
            digest: 0,
            bad: None,
            full: false,
            stuck: false,
            thread: None,
            worked: Span::ZERO,
            waited: Span::ZERO,
        }
    }

    fn begin(&mut self, now: Instant, bio: Bio) {
        let time = match bio.kind {
            BlockKind::Flush | BlockKind::FlushData => self.each,
            _ => Span(self.each.0 + self.sector.0 * u64::from(bio.sectors)),
        };
        self.free = self.free.max(now) + time;
        self.queue.push_back((self.free, bio));
    }
}

impl Device for Toy {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn hints(&self) -> Hints {
        self.hints
    }

    fn submit(&mut self, now: Instant, bio: Bio) {
        assert!(now >= self.now, "time goes on");
        self.now = now;
        if bio.kind != BlockKind::Flush {
            assert!(
                bio.sectors > 0 && bio.sectors <= self.hints.max_sectors,
                "{bio:?}"
            );
            assert!(bio.end() <= self.sectors, "{bio:?}");
        }
        self.worked += self.thread.unwrap_or_default();
        self.asked.push((now, bio));
        match &mut self.plugged {
            Some(held) => held.push_back(bio),
            None => self.begin(now, bio),
        }
    }

    fn unplug(&mut self, now: Instant) {
        while let Some(bio) = self.plugged.as_mut().and_then(VecDeque::pop_front) {
            self.begin(now, bio);
        }
    }

    fn threads(&self) -> usize {
        usize::from(self.thread.is_some())
    }

    fn worked(&self, _: usize) -> Span {
        self.worked
    }

    fn wait(&mut self, now: Instant, _: usize, time: Span) {
        assert!(now >= self.now, "time goes on");
        self.waited += time;
    }

    fn next_event(&self) -> Option<Instant> {
        if self.stuck {
            return Some(self.now);
        }
        self.queue.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Instant, done: &mut Vec<Ended>) {
        assert!(now >= self.now, "time goes on");
        self.now = now;
        if self.stuck {
            return;
        }
        while let Some((at, bio)) = self.queue.front().copied().filter(|(at, _)| *at <= now) {
            self.queue.pop_front();
            self.digest = mix(self.digest ^ mix(at.0) ^ bio.lba.0);
            let touched = self
                .bad
                .is_some_and(|bad| (bio.lba.0..bio.end()).contains(&bad))
                || self.full && bio.origin.ahead;
            done.push(Ended {
                id: bio.id,
                at,
                result: if touched {
                    Err(DiskError::Unreadable)
                } else {
                    Ok(())
                },
            });
        }
    }
}
