//! A model file of a solid-state disk, lowered into its specification.
use super::duplex::full_duplex;
use super::hdd::{LINKS, or_assume};
use super::reader::{Mark, Reader, Table};
use crate::disk::DiskModel;
use crate::disk::ssd::{SsdError, SsdSpec};
use raidlab_core::time::Span;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Microseconds of a read or a program of flash: what is below is in milliseconds, what is above in nanoseconds.
const FLASH: RangeInclusive<f64> = 0.1..=100_000.0;

/// What a file may leave out: with what is taken then, which is told as a fact of the model.
struct Assumed {
    physical: u32,
    filled: u32,
    turn_write: Option<Span>,
    fast: u64,
    program_fast: Span,
    /// Sectors, and runs.
    ahead: (u64, u32),
    protected: bool,
    flush: Span,
}

/// Time of a flush when the file does not tell, in microseconds: about that of the catalogue's drives.
pub(super) const FLUSH_US: u64 = 900;

/// Whether the buffer is safe, and if not what a flush takes.
fn safety(buffer: &Table<'_, '_>, given: Option<Span>) -> (bool, Span) {
    let reader = buffer.reader;
    let protected = or_assume(
        buffer.boolean("protected"),
        reader,
        "buffer.protected",
        false,
        "a flush waits for the flash",
    );
    if protected && given.is_some() {
        let why = "says nothing of a protected buffer, of which flushes take no time";
        reader.report_at("buffer.flush_us", format!("'buffer.flush_us' {why}"));
    }
    let flush = given.unwrap_or_else(|| {
        if protected {
            return Span::ZERO;
        }
        let why = "the map of pages is written, as of the catalogue's drives";
        reader.conclude("buffer.flush_us", FLUSH_US.to_string(), Mark::Assumed, why);
        Span::from_micros(FLUSH_US)
    });
    (protected, flush)
}

fn assumed(
    [drive, flash, buffer, ahead]: [&Table<'_, '_>; 4],
    turn: Span,
    program: Span,
) -> Assumed {
    let reader = drive.reader;
    let micros = |table: &Table<'_, '_>, key: &str| {
        let us = table.number(key);
        us.map(|us| Span(libm::round(us * 1e3) as u64))
    };
    let conclude = |key: &str, value: Span, why: &str| {
        let us = value.0 as f64 / 1e3;
        reader.conclude(key, us.to_string(), Mark::Assumed, why);
    };
    let whole = |table: &Table<'_, '_>, name: &str, key: &str, assumed: u64, why: &str| {
        let path = format!("{name}.{key}");
        or_assume(table.whole(key), reader, &path, assumed, why)
    };
    let small = |value: u64| value.min(u64::from(u32::MAX)) as u32;
    let turn_write = micros(drive, "turn_write_us");
    if turn_write.is_none() {
        conclude("drive.turn_write_us", turn, "as behind a read");
    }
    let fast = whole(flash, "flash", "fast_mib", 0, "no fast area");
    let program_fast = flash.between("program_fast_us", FLASH, "microseconds");
    let program_fast = program_fast.map(|us| Span(libm::round(us * 1e3) as u64));
    let program_fast = program_fast.unwrap_or_else(|| {
        if fast > 0 {
            conclude("flash.program_fast_us", program, "as elsewhere");
        }
        program
    });
    let size = whole(ahead, "read_ahead", "size_kib", 0, "it does not read ahead");
    let runs = match size {
        0 => ahead.whole("runs").unwrap_or(1),
        _ => whole(ahead, "read_ahead", "runs", 1, "one run at a time"),
    };
    let sector = "512 bytes, no emulation";
    let (protected, flush) = safety(buffer, micros(buffer, "flush_us"));
    Assumed {
        physical: small(or_assume(
            drive.physical_sector("physical_sector"),
            reader,
            "drive.physical_sector",
            512,
            sector,
        )) / 512,
        filled: small(whole(
            drive,
            "drive",
            "filled_percent",
            0,
            "nothing was written before",
        )),
        turn_write,
        fast: fast.saturating_mul(2048),
        program_fast,
        ahead: (size.saturating_mul(2), small(runs)),
        protected,
        flush,
    }
}

/// What must be there, read one after the other: of what is missing or wrong each is told, and something is taken that stands in
/// for it, so that the rest is looked at.
struct Needed<'t, 'r, 'i> {
    table: &'t Table<'r, 'i>,
    whole: &'t Cell<bool>,
}

impl Needed<'_, '_, '_> {
    fn take<T>(&self, key: &str, what: &str, value: Option<T>, instead: T) -> T {
        if !self.table.has(key) {
            self.table.missing(key, what);
        }
        value.unwrap_or_else(|| {
            self.whole.set(false);
            instead
        })
    }

    fn long(&self, key: &str, what: &str) -> u64 {
        self.take(key, what, self.table.whole(key), 1)
    }

    /// What is too large for any is told as such by the specification.
    fn count(&self, key: &str, what: &str) -> u32 {
        self.long(key, what).min(u64::from(u32::MAX)) as u32
    }

    fn micros(&self, key: &str, what: &str) -> Span {
        self.span(key, what, self.table.number(key))
    }

    /// A time of the flash.
    fn flash(&self, key: &str, what: &str) -> Span {
        self.span(key, what, self.table.between(key, FLASH, "microseconds"))
    }

    fn span(&self, key: &str, what: &str, us: Option<f64>) -> Span {
        let us = self.take(key, what, us, 1.0);
        Span(libm::round(us * 1e3) as u64)
    }
}

/// Lowers the file; `None` when something was wrong.
pub(super) fn lower(root: &Table<'_, '_>, name: String) -> Option<DiskModel> {
    let reader = root.reader;
    let (drive, flash) = (root.table("drive"), root.table("flash"));
    let (buffer, interface) = (root.table("buffer"), root.table("interface"));
    let ahead = root.table("read_ahead");
    let whole = Cell::new(true);
    let needed = |table| Needed {
        table,
        whole: &whole,
    };
    let (of_drive, of_flash) = (needed(&drive), needed(&flash));
    let (of_buffer, of_link) = (needed(&buffer), needed(&interface));
    let kind = interface.word("kind", &["SATA", "SAS", "NVMe"]);
    let kind = of_link.take("kind", "SATA, SAS or NVMe", kind, "SATA");
    let rate = interface.between("rate_mb_s", LINKS, "MB/s");
    let rate = of_link.take(
        "rate_mb_s",
        "its rate in millions of bytes a second",
        rate,
        1.0,
    );
    let program = of_flash.flash("program_us", "the time of a program");
    let turn = of_drive.micros("turn_us", "the least time between two commands");
    let Assumed {
        physical,
        filled,
        turn_write,
        fast,
        program_fast,
        ahead: (look_ahead, runs),
        protected,
        flush,
    } = assumed([&drive, &flash, &buffer, &ahead], turn, program);
    let spec = SsdSpec {
        name,
        sectors: of_drive.long("sectors", "the capacity in sectors of 512 bytes"),
        physical,
        tags: of_drive.count("depth", "the queue depth"),
        link: libm::round(rate * 1e6) as u64,
        duplex: full_duplex(kind),
        overhead: of_drive.micros("overhead_us", "the time for a command"),
        turn,
        turn_write,
        dies: of_flash.count("dies", "dies that work at the same time"),
        channels: of_flash.count("channels", "channels of the controller"),
        channel_rate: of_flash
            .long("channel_mb_s", "the rate of a channel")
            .saturating_mul(1_000_000),
        page: of_flash
            .count("page_kib", "the size of a flash page")
            .saturating_mul(2),
        read: of_flash.flash("read_us", "the time to read a page"),
        program_unit: of_flash
            .count("program_kib", "what a die programs at a time")
            .saturating_mul(2),
        program,
        program_fast,
        fast,
        suspend: of_flash.micros("suspend_us", "how long a read waits for a program"),
        buffer: of_buffer
            .long("size_kib", "the size of the write buffer")
            .saturating_mul(2),
        ahead: look_ahead,
        runs,
        protected,
        flush,
        spare_permille: of_flash.count("spare_permille", "spare flash in thousandths"),
        filled,
    };
    for table in [&drive, &flash, &buffer, &interface, &ahead] {
        table.deny_unknown();
    }
    built(reader, spec, whole.get())
}

/// The model of a specification. Of one that is not `whole` no more is told than what is wrong of the values that were read.
fn built(reader: &Reader<'_>, spec: SsdSpec, whole: bool) -> Option<DiskModel> {
    match spec.build() {
        Ok(_) if !whole => None,
        Ok(model) => {
            let amplification = format!("{:.2}", model.write_amplification());
            reader.conclude(
                "flash.write_amplification",
                amplification,
                Mark::Derived,
                "(1 + r) / (2 r), full disk, random writes",
            );
            Some(DiskModel::Ssd(Arc::new(model)))
        }
        Err(problems) => {
            // What stands in for a value that is not there may contradict others.
            let alone = |problem: &SsdError| {
                let bound_by_others = ["flash.channels", "flash.program_kib", "buffer.size_kib"];
                matches!(problem, SsdError::Range { key, value, .. } if *value == 0 || !bound_by_others.contains(key))
            };
            let of_given = |problem: &&SsdError| {
                whole || alone(problem) && reader.is_unchallenged(problem.key())
            };
            for problem in problems.iter().filter(of_given) {
                reader.report_at(problem.key(), problem.to_string());
            }
            None
        }
    }
}
