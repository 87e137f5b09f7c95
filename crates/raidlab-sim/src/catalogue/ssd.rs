//! A model file of a solid-state disk, lowered into its specification.
use super::duplex::full_duplex;
use super::reader::{Mark, Table};
use crate::disk::DiskModel;
use crate::disk::ssd::{SsdError, SsdSpec};
use raidlab_core::time::Span;
use std::sync::Arc;

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
    let fast = flash.whole("fast_mib").unwrap_or(0).saturating_mul(2048);
    let spec = SsdSpec {
        name,
        sectors: whole(&drive, "sectors", "the capacity in sectors of 512 bytes")?,
        physical: small(drive.whole("physical_sector")).map_or(1, |bytes| bytes / 512),
        tags: small(whole(&drive, "depth", "the queue depth"))?,
        link: whole(
            &interface,
            "rate_mb_s",
            "its rate in millions of bytes a second",
        )?
        .saturating_mul(1_000_000),
        duplex: kind.is_some_and(full_duplex),
        overhead: micros(&drive, "overhead_us", "the time for a command")?,
        turn: micros(&drive, "turn_us", "the least time between two commands")?,
        turn_write: drive
            .number("turn_write_us")
            .map(|us| Span(libm::round(us * 1e3) as u64)),
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
        program_fast: flash
            .number("program_fast_us")
            .map(|us| Span(libm::round(us * 1e3) as u64))
            .unwrap_or(program?),
        fast,
        suspend: micros(&flash, "suspend_us", "how long a read waits for a program")?,
        buffer: whole(&buffer, "size_kib", "the size of the write buffer")?.saturating_mul(2),
        ahead: ahead.whole("size_kib").unwrap_or(0).saturating_mul(2),
        runs: small(ahead.whole("runs")).unwrap_or(1),
        protected: buffer.boolean("protected").unwrap_or(false),
        spare_permille: small(whole(
            &flash,
            "spare_permille",
            "spare flash in thousandths",
        ))?,
        filled: small(drive.whole("filled_percent")).unwrap_or(0),
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
