//! A model file of a controller, lowered.
use super::{BackgroundModel, CacheModel, ChannelModel, ControllerModel, FirmwareModel};
use crate::catalogue::reader::{Reader, Table};
use raidlab_core::time::Span;
use raidlab_experiment::hardware::Link;
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// The largest memory of a card in KiB: 64 GiB, several times what any has; what is above is in bytes.
const LARGEST: u64 = 1 << 26;

/// Lowers the file; `None` when something was wrong.
pub(super) fn lower(
    reader: &Reader<'_>,
    document: &DeTable<'_>,
) -> Option<(ControllerModel, String)> {
    let root = Table::root(reader, document);
    let name = root.text("name").unwrap_or_default();
    let description = root.text("description").unwrap_or_default();
    let link = root.choice("link", &["pata", "sata", "scsi", "nvme"]);
    let (adapter, channel) = (root.table("adapter"), root.table("channel"));
    let max_sectors = limit(&adapter, "request_kib");
    let model = ControllerModel {
        name,
        // One that could not be read has been reported.
        link: link.and_then(Link::named).unwrap_or(Link::Sata),
        command: micros(&adapter, "command_us"),
        max_sectors,
        read_rate: rate(&adapter, "read_mb_s", true),
        write_rate: rate(&adapter, "write_mb_s", true),
        channel: lower_channel(&channel),
        firmware: root
            .has("firmware")
            .then(|| lower_firmware(&root.table("firmware"))),
        cache: root.has("cache").then(|| lower_cache(&root.table("cache"))),
        background: lower_background(&root),
    };
    if let Some(link @ ("sata" | "nvme")) = link
        && channel.has("first_both_mb_s")
    {
        let path = channel.path_of("first_both_mb_s");
        let message =
            format!("'{path}' is of channels that disks share, and those of {link} are not");
        reader.report_at(&path, message);
    }
    for table in [&adapter, &channel, &root] {
        table.deny_unknown();
    }
    link.map(|_| (model, description))
}

fn micros(table: &Table<'_, '_>, key: &str) -> Span {
    let us = table.number(key).unwrap_or(0.0);
    if us > 1e6 {
        let path = table.path_of(key);
        let message = format!("'{path}' is {us} microseconds: at most a second is possible");
        table.reader.report_at(&path, message);
    }
    Span(libm::round(us.min(1e6) * 1e3) as u64)
}

/// A rate that must be there and not 0, unless there may be no limit.
fn rate(table: &Table<'_, '_>, key: &str, unlimited: bool) -> u64 {
    if !table.has(key) && !unlimited {
        table.missing(key, "a rate in millions of bytes a second");
    }
    let Some(mb) = table.number(key) else {
        return 0;
    };
    if !(0.1..=1e6).contains(&mb) {
        let path = table.path_of(key);
        let message = format!("'{path}' is {mb} MB/s: between 0.1 and 1000000 is possible");
        table.reader.report_at(&path, message);
    }
    libm::round(mb * 1e6) as u64
}

/// A size in KiB of at most `most`, which must be there, in sectors.
fn size(table: &Table<'_, '_>, key: &str, most: u64) -> u64 {
    if !table.has(key) {
        table.missing(key, "a size in KiB");
    }
    let kib = table.whole_between(key, 4..=most, "KiB");
    kib.map_or(0, |kib| kib * 2)
}

/// The largest request: of no more than 1 GiB, which no adapter takes.
fn limit(table: &Table<'_, '_>, key: &str) -> u32 {
    size(table, key, 1 << 20) as u32
}

fn percent(table: &Table<'_, '_>, key: &str, default: u32) -> u32 {
    let value = table.count(key).unwrap_or(default);
    if !(1..=100).contains(&value) {
        let path = table.path_of(key);
        let message = format!("'{path}' is {value} %: between 1 and 100 is possible");
        table.reader.report_at(&path, message);
    }
    value.clamp(1, 100)
}

/// A number of runs or commands.
fn few(table: &Table<'_, '_>, key: &str, bounds: RangeInclusive<u64>) -> Option<u32> {
    let value = table.whole_between(key, bounds, "at a time");
    value.map(|value| value as u32)
}

fn lower_channel(table: &Table<'_, '_>) -> ChannelModel {
    let efficiency = percent(table, "efficiency_percent", 100);
    ChannelModel {
        rate: rate(table, "rate_mb_s", true),
        efficiency,
        slow_efficiency: percent(table, "slow_efficiency_percent", efficiency),
        command: micros(table, "command_us"),
        reconnect: micros(table, "reconnect_us"),
        switch_read: micros(table, "switch_read_us"),
        switch_write: micros(table, "switch_write_us"),
        first_both: rate(table, "first_both_mb_s", true),
    }
}

fn lower_firmware(table: &Table<'_, '_>) -> FirmwareModel {
    let model = FirmwareModel {
        max_sectors: limit(table, "request_kib"),
        read: micros(table, "read_us"),
        write: micros(table, "write_us"),
        switch_read: micros(table, "switch_read_us"),
        switch_write: micros(table, "switch_write_us"),
    };
    table.deny_unknown();
    model
}

fn lower_background(root: &Table<'_, '_>) -> BackgroundModel {
    let model = BackgroundModel::default();
    if !root.has("background") {
        return model;
    }
    if !root.has("firmware") && !root.has("cache") {
        let message = "'background' is what a RAID of the controller's own does, and there is neither 'firmware' nor 'cache'";
        root.reader.report_at("background", message);
    }
    let table = root.table("background");
    let share = table.whole_between("rebuild_rate_percent", 0..=100, "%");
    let run = table.whole_between("run_kib", 4..=16384, "KiB");
    let model = BackgroundModel {
        share: share.map_or(model.share, |share| share as u32),
        runs: few(&table, "runs", 1..=64).unwrap_or(model.runs),
        run: run.map_or(model.run, |kib| kib * 2),
    };
    table.deny_unknown();
    model
}

fn lower_cache(table: &Table<'_, '_>) -> CacheModel {
    let (sectors, line) = (
        size(table, "size_kib", LARGEST),
        size(table, "line_kib", LARGEST),
    );
    let firmware = table.whole_between("firmware_kib", 0..=LARGEST, "KiB");
    let firmware = firmware.unwrap_or(0) * 2;
    let ahead = table.whole_between("read_ahead_kib", 0..=LARGEST, "KiB");
    let ahead = ahead.unwrap_or(0) * 2;
    let (high, low) = (
        percent(table, "high_percent", 50),
        percent(table, "low_percent", 25),
    );
    let check = |fine: bool, key: &str, message: &str| {
        if !fine {
            table.reader.report_at(&table.path_of(key), message);
        }
    };
    check(
        line.is_power_of_two() && line <= 256,
        "line_kib",
        "a cache line is a power of two of at most 128 KiB",
    );
    check(
        sectors >= firmware + 16 * line,
        "size_kib",
        "a cache has at least 16 lines beside what the firmware needs",
    );
    check(
        ahead <= sectors.saturating_sub(firmware),
        "read_ahead_kib",
        "it reads ahead no more than its cache holds beside what the firmware needs",
    );
    check(
        low < high,
        "low_percent",
        "the low mark is below the high one",
    );
    let model = CacheModel {
        sectors,
        firmware,
        write_back: table.boolean("write_back").unwrap_or(false),
        line,
        read_ahead: ahead,
        high,
        low,
        quiet: micros(table, "quiet_us"),
        destages: few(table, "destages", 1..=1024).unwrap_or(1),
        at_disk: few(table, "at_disk", 0..=1024).unwrap_or(0),
        command: micros(table, "command_us"),
        host_read: rate(table, "host_read_mb_s", false),
        host_write: rate(table, "host_write_mb_s", false),
        disk_read: rate(table, "disk_read_mb_s", false),
        disk_write: rate(table, "disk_write_mb_s", false),
        memory: rate(table, "memory_mb_s", false),
        xor_rate: rate(table, "xor_mb_s", false),
    };
    table.deny_unknown();
    model
}
