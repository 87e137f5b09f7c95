//! How much a transaction writes to the log of xfs or NTFS, and when it is large enough to be written.
use super::super::plan::Pressure;
use raidlab_core::units::{KIB, MIB};
use raidlab_experiment::kernel::Kernel;

/// Bytes of a log buffer of xfs, which is written as one (`XLOG_BIG_RECORD_BSIZE`, `logbsize`), and how many there are
/// (`XLOG_MAX_ICLOGS`).
const BUFFER: u64 = 32 * KIB;
const BUFFERS: u64 = 8;

/// What a change writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Every change writes all that it touched: bytes for a changed name or record, and for an allocated or freed run.
    Each { name: u64, run: u64 },
    /// A transaction is what many changes left, each object once (delayed logging).
    Once,
}

// Measured with Linux 6.18 (`log` in /sys/fs/xfs/*/stats: blocks written to the log), mkfs 6.1, 4 KiB blocks, records of 512
// bytes: 298 bytes for each of 10,000 files made empty, 327 when their block gets a place in the same transaction, 598 when
// in a later one; 263 for each removed with its directory; 1024 for an overwrite and `fsync`, 1536 for a first write and
// `fsync`, 9053 for a file made and `fsync` in a directory of 1000 names.

/// A file's record.
const RECORD: u64 = 265;
/// A name made.
const NAME: u64 = 33;
/// A run that got a place.
const RUN: u64 = 30;
/// What every transaction writes that made or removed names: the directory's own record, blocks of its index, those that
/// tell which records are free.
const NAMES: u64 = 8200;
/// The same of one that placed or freed runs: the group's free space.
const RUNS: u64 = 480;
/// The header of a record in the log.
const HEADER: u64 = 512;

/// What is in the running transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    rule: Rule,
    bytes: u64,
    names: bool,
    runs: bool,
    /// The transaction is written when it has so many bytes; 0: only when asked for or after a time.
    most: u64,
    /// Callers wait when it has so many and the one before is still being written.
    hard: u64,
    /// Bytes that are written, with a flush, before the next; 0: all at once.
    pub part: u64,
}

impl Logged {
    /// Nothing is logged, or so much for every change.
    pub(super) const fn each(name: u64, run: u64) -> Self {
        Self {
            rule: Rule::Each { name, run },
            bytes: 0,
            names: false,
            runs: false,
            most: 0,
            hard: 0,
            part: 0,
        }
    }

    /// Of xfs with a log of so many bytes.
    ///
    /// To 2.6.38 a transaction goes into a log buffer with all it touched, here of 2 KiB a name and a record and 1 KiB a run
    /// (assumed), and a full buffer is written. Delayed logging is the default since 2.6.39: what has changed is
    /// written when it has an eighth of the log, 32 MiB at most since 5.8 (`XLOG_CIL_SPACE_LIMIT`), and callers wait at twice
    /// that since then (`XLOG_CIL_BLOCKING_SPACE_LIMIT`; before, the log's own room holds them, here at the same place).
    /// Each buffer is written with a flush until 5.14 ("xfs: journal IO cache flush reductions"), one alone since.
    pub(super) fn xfs(kernel: Kernel, log: u64) -> Self {
        let part = if kernel >= Kernel::Linux(5, 14, 0) {
            0
        } else {
            BUFFER
        };
        if kernel < Kernel::Linux(2, 6, 39) {
            return Self {
                most: BUFFER,
                hard: BUFFERS * BUFFER,
                part,
                ..Self::each(2048, 1024)
            };
        }
        let most = if kernel >= Kernel::Linux(5, 8, 0) {
            (log / 8).min(32 * MIB)
        } else {
            log / 8
        };
        Self {
            rule: Rule::Once,
            most,
            hard: 2 * most,
            part,
            ..Self::each(0, 0)
        }
    }

    /// The record of a small file or a directory that is made or changed, for the first time in this transaction or not.
    pub(super) const fn record(&mut self, first: bool) {
        self.bytes += match self.rule {
            Rule::Each { name, .. } => name,
            Rule::Once if first => RECORD,
            Rule::Once => 0,
        };
    }

    /// A data file joins the transaction.
    pub(super) const fn file(&mut self) {
        self.bytes += match self.rule {
            Rule::Each { run, .. } => run,
            Rule::Once => RECORD,
        };
    }

    /// A name is made or removed.
    pub(super) const fn name(&mut self, made: bool) {
        match self.rule {
            Rule::Each { name, .. } => self.bytes += name,
            Rule::Once => {
                self.bytes += if made { NAME } else { 0 };
                self.names = true;
            }
        }
    }

    /// A run got a place or lost it.
    pub(super) const fn run(&mut self) {
        match self.rule {
            Rule::Each { run, .. } => self.bytes += run,
            Rule::Once => {
                self.bytes += RUN;
                self.runs = true;
            }
        }
    }

    /// Whether there is nothing.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0 && !self.names
    }

    /// Bytes that the transaction writes.
    pub(super) const fn bytes(&self) -> u64 {
        let names = if self.names { NAMES } else { 0 };
        let runs = if self.runs { RUNS } else { 0 };
        let head = match self.rule {
            Rule::Each { .. } => 0,
            Rule::Once => HEADER,
        };
        head + self.bytes + names + runs
    }

    /// Whether the transaction is to be written.
    pub(super) const fn pressure(&self) -> Pressure {
        match self.bytes {
            _ if self.most == 0 => Pressure::None,
            bytes if bytes >= self.hard => Pressure::Full,
            bytes if bytes >= self.most => Pressure::Some,
            _ => Pressure::None,
        }
    }

    /// The next transaction.
    pub(super) const fn end(&mut self) {
        (self.bytes, self.names, self.runs) = (0, false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Kernel = Kernel::Linux(6, 18, 0);

    /// Bytes of whole blocks of 512, as the kernel counts them.
    fn blocks(logged: &Logged) -> u64 {
        logged.bytes().next_multiple_of(512)
    }

    /// The figures measured with Linux 6.18, see above, each within a tenth.
    #[test]
    fn what_the_kernel_writes_is_what_was_measured() {
        let close = |what: &str, got: u64, measured: u64| {
            assert!(
                got.abs_diff(measured) * 10 <= measured,
                "{what}: {got}, measured {measured}"
            );
        };
        let new = || Logged::xfs(NOW, 64 * MIB);
        let mut logged = new();
        logged.file();
        close("an overwrite and fsync", blocks(&logged), 1024);
        logged.run();
        close("a first write and fsync", blocks(&logged), 1536);
        let mut logged = new();
        logged.record(true);
        logged.name(true);
        close("a file made and fsync", blocks(&logged), 9053);
        let files = |each: &dyn Fn(&mut Logged)| {
            let mut logged = new();
            (0..10_000).for_each(|_| each(&mut logged));
            logged.bytes() / 10_000
        };
        close(
            "made",
            files(&|l| {
                l.record(true);
                l.name(true);
            }),
            298,
        );
        close(
            "made with a block",
            files(&|l| {
                l.record(true);
                l.name(true);
                l.run();
            }),
            327,
        );
        close(
            "removed",
            files(&|l| {
                l.record(true);
                l.name(false);
            }),
            263,
        );
        close(
            "a block later",
            files(&|l| {
                l.file();
                l.run();
            }),
            598 - 298,
        );
    }

    #[test]
    fn a_record_is_written_once_since_delayed_logging() {
        let twice = |kernel| {
            let mut logged = Logged::xfs(kernel, 64 * MIB);
            logged.record(true);
            let first = logged.bytes();
            logged.record(false);
            logged.bytes() - first
        };
        assert_eq!(twice(Kernel::Linux(2, 6, 38)), 2048);
        assert_eq!(twice(Kernel::Linux(2, 6, 39)), 0);
    }

    #[test]
    fn a_transaction_is_as_large_as_the_kernel_lets_it_be() {
        let most = |kernel, log| {
            let logged = Logged::xfs(kernel, log);
            (logged.most, logged.part)
        };
        assert_eq!(
            most(Kernel::Linux(2, 6, 38), 128 * MIB),
            (32 * KIB, 32 * KIB)
        );
        assert_eq!(
            most(Kernel::Linux(3, 10, 0), 128 * MIB),
            (16 * MIB, 32 * KIB)
        );
        assert_eq!(
            most(Kernel::Linux(5, 7, 0), 2048 * MIB),
            (256 * MIB, 32 * KIB)
        );
        assert_eq!(
            most(Kernel::Linux(5, 8, 0), 2048 * MIB),
            (32 * MIB, 32 * KIB)
        );
        assert_eq!(most(Kernel::Linux(6, 1, 0), 64 * MIB), (8 * MIB, 0));
        let mut logged = Logged::xfs(Kernel::Linux(2, 6, 38), 128 * MIB);
        let mut seen = Vec::new();
        for _ in 0..=BUFFERS * BUFFER / 2048 {
            seen.push(logged.pressure());
            logged.name(true);
        }
        assert!(seen.is_sorted());
        assert_eq!(seen.iter().filter(|p| **p == Pressure::None).count(), 16);
        assert_eq!(seen.last(), Some(&Pressure::Full));
        logged.end();
        assert_eq!(logged.pressure(), Pressure::None);
    }
}
