//! What a lane's operations came to, in constant memory.
use crate::histogram::Latencies;
use crate::op::OpClass;
use crate::target::Errno;
use crate::time::{Instant, Span};
use serde::{Deserialize, Serialize};

/// Counted bytes and operations of one window of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Counted operations that ended in it.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Progress over time in equal windows, 1 s at first; when [`Series::MOST`] are full, neighbours are
/// merged and the width doubles, so that memory is bounded for any run length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Width of each window.
    pub width: Span,
    /// The windows from the start of counting; the last one is usually cut short.
    pub windows: Vec<Window>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            width: Span::from_secs(1),
            windows: Vec::new(),
        }
    }
}

impl Series {
    /// Most windows kept.
    pub const MOST: usize = 3600;

    /// Adds operations that ended at `at`; returns the number of their window.
    pub(super) fn add(&mut self, at: Span, ops: u64, bytes: u64) -> usize {
        let mut number = (at.0 / self.width.0) as usize;
        while number >= Self::MOST {
            self.halve();
            number = (at.0 / self.width.0) as usize;
        }
        if number >= self.windows.len() {
            self.windows.resize(number + 1, Window::default());
        }
        self.windows[number].ops += ops;
        self.windows[number].bytes += bytes;
        number
    }

    /// Adds operations that ended evenly between two times.
    fn add_over(&mut self, (from, to): (Span, Span), ops: u64, bytes: u64) {
        if from >= to {
            self.add(to, ops, bytes);
            return;
        }
        // Room for all windows.
        let last = self.add(to, 0, 0);
        let part = |all: u64, until: u64| {
            let done = u128::from(until - from.0);
            (u128::from(all) * done / u128::from(to.0 - from.0)) as u64
        };
        let mut before = from.0;
        for number in (from.0 / self.width.0) as usize..=last {
            let end = (self.width.0 * (number as u64 + 1)).min(to.0);
            let window = &mut self.windows[number];
            window.ops += part(ops, end) - part(ops, before);
            window.bytes += part(bytes, end) - part(bytes, before);
            before = end;
        }
    }

    fn halve(&mut self) {
        self.windows = self
            .windows
            .chunks(2)
            .map(|pair| pair.iter().fold(Window::default(), |a, b| a.plus(*b)))
            .collect();
        self.width = Span(self.width.0 * 2);
    }

    /// Adds another lane's series that ran at the same time.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.width < other.width {
            self.halve();
        }
        while other.width < self.width {
            other.halve();
        }
        if other.windows.len() > self.windows.len() {
            self.windows.resize(other.windows.len(), Window::default());
        }
        for (window, more) in self.windows.iter_mut().zip(&other.windows) {
            *window = window.plus(*more);
        }
    }
}

impl Window {
    fn plus(self, other: Self) -> Self {
        Self {
            ops: self.ops + other.ops,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// What the operations of one lane came to.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Counted operations.
    pub ops: u64,
    /// Counted bytes.
    pub bytes: u64,
    /// All operations that succeeded, counted or not.
    pub all_ops: u64,
    /// Bytes read by all operations, counted or not: what the evidence is compared with.
    pub bytes_read: u64,
    /// Bytes written by all operations, counted or not.
    pub bytes_written: u64,
    /// How often an operation was submitted again that the target would not take at first.
    pub again: u64,
    /// When counting began: the start plus the ramp.
    pub from: Instant,
    /// When the last operation ended (the start when none did), or when the one after the last would have been due, where
    /// operations are due at times of their own: see `Tally::last_until`.
    pub to: Instant,
    /// Response times (from when due to when ended) by class, `None` where there were none.
    pub response: [Option<Box<Latencies>>; 4],
    /// Time in the queue before the target took it, for operations that were due earlier than taken.
    pub delay: Option<Box<Latencies>>,
    /// Progress over time.
    pub series: Series,
    in_flight_time: u128,
    /// In which any were in flight.
    time: u128,
    /// In which none was, though more were to come.
    idle: u128,
    recording_from: Instant,
    window: OpenWindow,
}

/// What is tallied of an operation beside its bytes: of operations that agree in it and end at the
/// same time only the sums are tallied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// When it was due.
    pub(super) intended: Instant,
    /// When the target took it.
    pub(super) submitted: Instant,
    pub(super) class: OpClass,
    pub(super) counted: bool,
}

/// Bytes of some operations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    /// What they should have moved.
    pub(super) expected: u64,
    /// What they moved.
    pub(super) actual: u64,
}

impl From<u64> for Moved {
    /// As many as expected.
    fn from(bytes: u64) -> Self {
        Self {
            expected: bytes,
            actual: bytes,
        }
    }
}

/// The window of the series that the last operation ended in, so that the next one need not divide. What ends in it
/// is added to it when it is closed.
#[derive(Clone, Copy, Debug, Default)]
struct OpenWindow {
    start: Span,
    /// 0 when none is open.
    width: Span,
    number: usize,
    /// Counted operations and bytes when it was opened.
    ops: u64,
    bytes: u64,
}

impl Tally {
    pub(super) fn new(start: Instant, from: Instant) -> Self {
        Self {
            ops: 0,
            bytes: 0,
            all_ops: 0,
            bytes_read: 0,
            bytes_written: 0,
            again: 0,
            from,
            to: start,
            response: [const { None }; 4],
            delay: None,
            series: Series::default(),
            in_flight_time: 0,
            time: 0,
            idle: 0,
            recording_from: from,
            window: OpenWindow::default(),
        }
    }

    /// Time passed with so many operations in flight.
    #[inline]
    pub(super) fn pass(&mut self, passed: Span, in_flight: u32) {
        self.in_flight_time += u128::from(passed.0) * u128::from(in_flight);
        if in_flight > 0 {
            self.time += u128::from(passed.0);
        }
    }

    /// Time passed with nothing in flight, and the next operation still to come.
    pub(super) fn idle(&mut self, passed: Span) {
        self.idle += u128::from(passed.0);
    }

    /// The lane lasted until `end`, though its last operation may have ended before: n operations that are due at a rate
    /// stand for n distances between them. From the first one's time to the last one's there are n - 1, so that a rate over
    /// few of them would come out higher than the one that was kept: twice as high over two. With arrivals by chance n over the
    /// time to the arrival after the last is the rate on average, and n over the time to the last one is not.
    pub(super) fn last_until(&mut self, end: Instant) {
        if end > self.to {
            self.idle(end.since(self.to));
            self.to = end;
        }
    }

    /// Adds `ops` operations that have succeeded.
    #[inline(never)]
    pub(super) fn add(&mut self, kind: Kind, completed: Instant, ops: u64, bytes: Moved) {
        if ops > 0 {
            self.add_some(kind, completed, ops, bytes);
        }
    }

    /// The same where there is at least one, for a caller that knows how many at compile time.
    #[inline(always)]
    pub(super) fn add_some(&mut self, kind: Kind, completed: Instant, ops: u64, bytes: Moved) {
        self.to = self.to.max(completed);
        match kind.class {
            OpClass::Read => self.bytes_read += bytes.actual,
            OpClass::Write => self.bytes_written += bytes.actual,
            OpClass::Sync | OpClass::Meta => {}
        }
        self.all_ops += ops;
        if completed < self.recording_from {
            return;
        }
        let response = &mut self.response[kind.class as usize];
        response
            .get_or_insert_with(first)
            .record_n(completed.since(kind.intended), ops);
        if kind.submitted > kind.intended {
            let delay = kind.submitted.since(kind.intended);
            self.delay.get_or_insert_with(first).record_n(delay, ops);
        }
        if kind.counted {
            let (at, open) = (completed.since(self.from), self.window);
            if at.0.wrapping_sub(open.start.0) >= open.width.0 {
                self.open_window(at);
            }
            self.ops += ops;
            self.bytes += bytes.expected;
        }
    }

    /// Adds an operation that failed, or moved other than the `expected` bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn add_unexpected(
        &mut self,
        kind: Kind,
        completed: Instant,
        result: Result<u32, Errno>,
        expected: u32,
    ) {
        self.to = self.to.max(completed);
        if let Ok(moved) = result {
            let bytes = Moved {
                expected: u64::from(expected),
                actual: u64::from(moved),
            };
            self.add(kind, completed, 1, bytes);
        }
    }

    /// Adds `times` over what was tallied between `earlier` and `later`, two states of this
    /// lane; each time took `each`, the first of them began at `begin`.
    pub(super) fn repeat(
        &mut self,
        earlier: &Self,
        later: &Self,
        times: u64,
        begin: Instant,
        each: Span,
    ) {
        self.close_window();
        let (ops, bytes) = (later.ops - earlier.ops, later.bytes - earlier.bytes);
        self.ops += ops * times;
        self.bytes += bytes * times;
        self.all_ops += (later.all_ops - earlier.all_ops) * times;
        self.bytes_read += (later.bytes_read - earlier.bytes_read) * times;
        self.bytes_written += (later.bytes_written - earlier.bytes_written) * times;
        let wide = u128::from(times);
        self.in_flight_time += (later.in_flight_time - earlier.in_flight_time) * wide;
        self.time += (later.time - earlier.time) * wide;
        for (class, later) in later.response.iter().enumerate() {
            if let Some(later) = later {
                let earlier = earlier.response[class].as_deref();
                let own = self.response[class].get_or_insert_default();
                own.add_between(earlier, later, times);
            }
        }
        // Spread over all the time, as the operations themselves would have been.
        let end = begin + Span(each.0.saturating_mul(times));
        let over = (begin.since(self.from), end.since(self.from));
        self.series.add_over(over, ops * times, bytes * times);
    }

    /// Adds the share of what was tallied between `earlier` and `later` that has `ops` counted
    /// operations, all with the mean latency of their class, the last of them ended at `end`.
    pub(super) fn repeat_part(&mut self, earlier: &Self, later: &Self, ops: u64, end: Instant) {
        self.close_window();
        let all = later.ops - earlier.ops;
        let part = |later: u64, earlier: u64| {
            (u128::from(later - earlier) * u128::from(ops) / u128::from(all.max(1))) as u64
        };
        let bytes = part(later.bytes, earlier.bytes);
        self.ops += ops;
        self.bytes += bytes;
        self.all_ops += part(later.all_ops, earlier.all_ops);
        self.bytes_read += part(later.bytes_read, earlier.bytes_read);
        self.bytes_written += part(later.bytes_written, earlier.bytes_written);
        let wide = |time: u128| time * u128::from(ops) / u128::from(all.max(1));
        self.in_flight_time += wide(later.in_flight_time - earlier.in_flight_time);
        self.time += wide(later.time - earlier.time);
        for (class, later) in later.response.iter().enumerate() {
            let Some(later) = later else { continue };
            let earlier = earlier.response[class].as_deref();
            let (count, sum) = earlier.map_or((0, 0), |e| (e.count(), e.sum()));
            let more = later.count() - count;
            if more > 0 {
                let mean = Span(((later.sum() - sum) / u128::from(more)) as u64);
                let own = self.response[class].get_or_insert_default();
                own.record_n(mean, part(later.count(), count));
            }
        }
        self.series.add(end.since(self.from), ops, bytes);
        self.to = end;
    }

    /// Opens the window of an operation that ended at `at` and is not counted yet.
    #[cold]
    fn open_window(&mut self, at: Span) {
        self.close_window();
        let number = self.series.add(at, 0, 0);
        let width = self.series.width;
        self.window = OpenWindow {
            start: Span(number as u64 * width.0),
            width,
            number,
            ops: self.ops,
            bytes: self.bytes,
        };
    }

    /// Adds to the series what ended in the open window. To be done before the series is looked at.
    pub(super) fn close_window(&mut self) {
        let open = std::mem::take(&mut self.window);
        if open.width > Span::ZERO {
            let window = &mut self.series.windows[open.number];
            window.ops += self.ops - open.ops;
            window.bytes += self.bytes - open.bytes;
        }
    }

    /// From the start of counting to the end of the last operation, or to when the next one would have been due.
    #[must_use]
    pub fn elapsed(&self) -> Span {
        self.to.since(self.from)
    }

    /// Mean number of operations in flight from the start to the end, ramp included; 0 when none ran. Times in which the next one
    /// was not due yet are part of it, so that it is the rate times the response time (Little's law) at a fixed rate, too.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        self.in_flight_over(self.time + self.idle)
    }

    /// Mean number of operations in flight while there were any; 0 when none ran.
    #[must_use]
    pub fn mean_while_any(&self) -> f64 {
        self.in_flight_over(self.time)
    }

    fn in_flight_over(&self, time: u128) -> f64 {
        if time == 0 {
            0.0
        } else {
            self.in_flight_time as f64 / time as f64
        }
    }

    /// The response times of a class.
    #[must_use]
    pub fn latencies(&self, class: OpClass) -> Option<&Latencies> {
        self.response[class as usize].as_deref()
    }
}

/// A histogram for the first latency of its kind.
#[cold]
#[inline(never)]
fn first() -> Box<Latencies> {
    Box::default()
}
