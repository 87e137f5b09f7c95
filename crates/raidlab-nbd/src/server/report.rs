//! What was served, and how late.
use raidlab_core::histogram::Latencies;
use raidlab_core::time::Span;

/// How late replies were against the model's time.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Of every reply; a reply that was ready only later, because its data came late, counts from then.
    pub all: Latencies,
    /// A reply later than this is late.
    pub tolerance: Span,
    /// How many were.
    pub late: u64,
}

impl Lateness {
    pub(super) fn new(tolerance: Span) -> Self {
        Self {
            all: Latencies::new(),
            tolerance,
            late: 0,
        }
    }

    pub(super) fn record(&mut self, late: Span) {
        // The histogram begins at a nanosecond.
        self.all.record(Span(late.0.max(1)));
        self.late += u64::from(late > self.tolerance);
    }
}

/// What was served of one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskReport {
    /// Its name.
    pub name: String,
    /// Reads that ended.
    pub reads: u64,
    /// Writes that ended, zeroes included.
    pub writes: u64,
    /// Flushes that ended.
    pub flushes: u64,
    /// Trims.
    pub trims: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes of the reads.
    pub bytes_read: u64,
    /// Bytes of the writes.
    pub bytes_written: u64,
    /// Sum over its requests of the time from a request's arrival to its end by the model: what a client that
    /// has nothing between itself and the disk would have waited in all.
    pub waited: Span,
    /// Bytes of memory or file that the content takes now.
    pub stored: u64,
}

/// What a server has done since it began.
#[derive(Clone, Debug)]
pub struct Report {
    /// How late replies were.
    pub lateness: Lateness,
    /// Disk by disk.
    pub disks: Vec<DiskReport>,
    /// Connections that were made.
    pub connections: u64,
    /// Time since the beginning.
    pub elapsed: Span,
    /// Processor time of the server's thread: near `elapsed`, it was the server that set the pace.
    pub cpu: Span,
    /// The scheduling that was asked for was granted.
    pub scheduled: bool,
}

impl Report {
    /// Share of the time in which the server's thread had the processor.
    #[must_use]
    pub fn cpu_share(&self) -> f64 {
        self.cpu.0 as f64 / self.elapsed.0.max(1) as f64
    }
}
