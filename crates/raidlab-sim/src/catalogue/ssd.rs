//! A model file of a solid-state disk, lowered into its specification.
use super::duplex::full_duplex;
use super::hdd::or_assume;
use super::reader::{Mark, Table};
use crate::disk::DiskModel;
use crate::disk::ssd::{SsdError, SsdSpec};
use raidlab_core::time::Span;
use std::sync::Arc;

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
    let program_fast = micros(flash, "program_fast_us").unwrap_or_else(|| {
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
    Assumed {
        physical: small(whole(drive, "drive", "physical_sector", 512, sector)) / 512,
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
        protected: or_assume(
            buffer.boolean("protected"),
            reader,
            "buffer.protected",
            false,
            "a flush waits for the flash",
        ),
    }
}

/// Lowers the file; `None` when something was wrong.
pub(super) fn lower(root: &Table<'_, '_>, name: String) -> Option<DiskModel> {
    let reader = root.reader;
    let (drive, flash) = (root.table("drive"), root.table("flash"));
    let (buffer, interface) = (root.table("buffer"), root.table("interface"));
    let ahead = root.table("read_ahead");
    let whole = |table: &Table<'_, '_>, key: &str, what: &str| {
        if !table.has(key) {
            table.missing(key, what);
        }
        table.whole(key)
    };
    let micros = |table: &Table<'_, '_>, key: &str, what: &str| {
        if !table.has(key) {
            table.missing(key, what);
        }
        table
            .number(key)
            .map(|us| Span(libm::round(us * 1e3) as u64))
    };
    let kind = interface.word("kind", &["SATA", "SAS", "NVMe"]);
    let small = |value: Option<u64>| value.map(|n| n.min(u64::from(u32::MAX)) as u32);
    let program = micros(&flash, "program_us", "the time of a program");
    let turn = micros(&drive, "turn_us", "the least time between two commands");
    let Assumed {
        physical,
        filled,
        turn_write,
        fast,
        program_fast,
        ahead: (look_ahead, runs),
        protected,
    } = assumed([&drive, &flash, &buffer, &ahead], turn?, program?);
    let spec = SsdSpec {
        name,
        sectors: whole(&drive, "sectors", "the capacity in sectors of 512 bytes")?,
        physical,
        tags: small(whole(&drive, "depth", "the queue depth"))?,
        link: whole(
            &interface,
            "rate_mb_s",
            "its rate in millions of bytes a second",
        )?
        .saturating_mul(1_000_000),
        duplex: kind.is_some_and(full_duplex),
        overhead: micros(&drive, "overhead_us", "the time for a command")?,
        turn: turn?,
        turn_write,
        dies: small(whole(&flash, "dies", "dies that work at the same time"))?,
        channels: small(whole(&flash, "channels", "channels of the controller"))?,
        channel_rate: whole(&flash, "channel_mb_s", "the rate of a channel")?
            .saturating_mul(1_000_000),
        page: small(whole(&flash, "page_kib", "the size of a flash page"))?.saturating_mul(2),
        read: micros(&flash, "read_us", "the time to read a page")?,
        program_unit: small(whole(
            &flash,
            "program_kib",
            "what a die programs at a time",
        ))?
        .saturating_mul(2),
        program: program?,
        program_fast,
        fast,
        suspend: micros(&flash, "suspend_us", "how long a read waits for a program")?,
        buffer: whole(&buffer, "size_kib", "the size of the write buffer")?.saturating_mul(2),
        ahead: look_ahead,
        runs,
        protected,
        spare_permille: small(whole(
            &flash,
            "spare_permille",
            "spare flash in thousandths",
        ))?,
        filled,
    };
    for table in [&drive, &flash, &buffer, &interface, &ahead] {
        table.deny_unknown();
    }
    match spec.build() {
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
            for problem in problems {
                let SsdError::Range { what, .. } = &problem;
                let key = match *what {
                    "capacity (sectors)" => "drive.sectors",
                    "queue depth" => "drive.depth",
                    "filled (per cent)" => "drive.filled_percent",
                    "write buffer (sectors)" => "buffer.size_kib",
                    _ => "flash",
                };
                reader.report_at(key, problem.to_string());
            }
            None
        }
    }
}
