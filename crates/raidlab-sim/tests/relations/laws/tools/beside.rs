//! Laws of the computer and of what is asked for, each of two runs.
use super::{
    Does, Verdicts, apart_by_chance, carried, does, hardware, most, not_slower, nothing, pairs,
};
use crate::draw::{Point, Tool, Topology};
use crate::lab::{Came, Lab, run};

/// The point with another tool.
fn tool(point: &Point, change: impl FnOnce(&mut Tool)) -> Point {
    point.with(|p| p.tool.iter_mut().next().map_or((), change))
}

fn clean(point: &Point) -> bool {
    point.state == "clean"
}

/// On another thread.
pub(super) fn the_same_twice(_: &mut Lab, point: &Point, _: &Tool, all: &[Came]) -> Verdicts {
    if !point.seed.is_multiple_of(8) {
        return nothing();
    }
    let text = point.text();
    let again = std::thread::spawn(move || run(&text)).join();
    let same = again.is_ok_and(|again| again.is_ok_and(|again| again == all));
    vec![
        same.then_some(())
            .ok_or_else(|| "another outcome".to_owned()),
    ]
}

/// Than with what the phases before have left in memory.
pub(super) fn cold_is_not_faster(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    // What dd and HDBench leave dirty, drives write while the next phase begins. What the arms of several threads do
    // depends on where they were.
    let synced = drawn.sync || !["dd", "hdbench"].contains(&drawn.profile);
    let written = synced && !super::put_off(point);
    let several = drawn.profile == "tiobench" && drawn.threads > 1;
    // The group of transactions that ZFS has open is written before a cold phase begins, and while a warm one reads: 0.05 to
    // 0.6 s, whatever the size of the file.
    let synced = written && point.filesystem != "zfs";
    let fair = drawn.cold && synced && !several && !drawn.direct && !hardware(point);
    if !fair || drawn.profile == "hdparm" || !clean(point) {
        return nothing();
    }
    // Which copies are read goes on from where heads were (raid10 of seven ST3000DM001, by seed: 551 to 702 MB/s cold, 520 to
    // 688 warm).
    // What is in memory leaves no room for two windows of read-ahead, of two stripes each, when there is little: what was read
    // ahead is read again (RAID6 of twelve disks, 512 KiB chunks, 64 MiB: 190 MB for a file of 134; not at 128 MiB).
    let windows = 4 * point.chunk * point.disks as u64;
    if super::copies(point) || 4 * windows > point.memory {
        return nothing();
    }
    let warm = tool(point, |t| t.cold = false);
    let pairs = pairs(lab, &warm, all, |c| {
        does(c) == Does::Reads && super::counts(c)
    });
    let each = pairs
        .iter()
        .map(|(one, warm)| most(one, "warm", 1.07, warm.figure()));
    each.collect()
}

pub(super) fn durable_is_not_faster(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    if !drawn.sync || drawn.profile == "hdparm" || !clean(point) {
        return nothing();
    }
    let free = tool(point, |t| t.sync = false);
    let pairs = pairs(lab, &free, all, |c| {
        does(c) == Does::Writes && super::counts(c)
    });
    let each = pairs
        .iter()
        .map(|(one, free)| most(one, "not durable", 1.07, free.figure()));
    each.collect()
}

pub(super) fn a_faster_processor_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    // Compared the other way round: every processor that is drawn has more.
    let fair = clean(point) && !super::kept_idle(point);
    if !fair || !point.seed.is_multiple_of(2) {
        return nothing();
    }
    let slow = point.with(|p| p.host = "cpu-mhz = 800\n".to_owned());
    let about = |c: &Came| super::counts(c) && !carried(point, c) && !apart_by_chance(point, c);
    let pairs = pairs(lab, &slow, all, about);
    let each = pairs
        .iter()
        .map(|(one, slow)| super::least(one, "at 800 MHz", 0.93, slow.figure()));
    each.collect()
}

pub(super) fn more_cores_are_not_slower(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    if !clean(point) || drawn.cores > 1 || super::kept_idle(point) {
        return nothing();
    }
    not_slower(lab, &tool(point, |t| t.cores = 4), all, "one core", |_| {
        true
    })
}

pub(super) fn more_memory_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let more = point.with(|p| p.memory *= 4);
    // What is written may all be in memory before the disks begin, when there is much.
    // A card's cache holds what has been written back before.
    let fair = clean(point) && !hardware(point);
    let about = |c: &Came| fair && !matches!(does(c), Does::Writes | Does::WritesAnywhere);
    not_slower(lab, &more, all, "less memory", about)
}

pub(super) fn a_write_cache_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if point.write_cache || !clean(point) {
        return nothing();
    }
    // A drive with one writes what it holds between reads, also while both are done.
    let about = |c: &Came| matches!(does(c), Does::Writes | Does::WritesAnywhere);
    let with = point.with(|p| p.write_cache = true);
    not_slower(lab, &with, all, "without it", about)
}

pub(super) fn write_back_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let Topology::Hardware { cache, back: false } = point.topology else {
        return nothing();
    };
    let back = point.with(|p| p.topology = Topology::Hardware { cache, back: true });
    // What the card holds is written while the next phase reads.
    let about = |c: &Came| matches!(does(c), Does::Writes | Does::WritesAnywhere);
    not_slower(lab, &back, all, "write-through", about)
}

pub(super) fn a_faster_bus_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let Topology::Cards {
        on_channel,
        bus: Some(_),
    } = point.topology
    else {
        return nothing();
    };
    // Without a write cache a drive loses a turn or not by microseconds.
    if !clean(point) || super::kept_idle(point) || !point.write_cache {
        return nothing();
    }
    let free = point.with(|p| {
        p.topology = Topology::Cards {
            on_channel,
            bus: None,
        }
    });
    not_slower(lab, &free, all, "behind the bus", |_| true)
}

pub(super) fn a_channel_each_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let Topology::Cards {
        on_channel: 2..,
        bus,
    } = point.topology
    else {
        return nothing();
    };
    if !clean(point) || point.disks < 2 {
        return nothing();
    }
    let each = point.with(|p| p.topology = Topology::Cards { on_channel: 1, bus });
    not_slower(lab, &each, all, "on one channel", |_| true)
}

/// Four times as large.
pub(super) fn larger_calls_are_not_slower(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    // Whether ZFS keeps a file as large as its cache depends on whether records are used in parts.
    let held = point.filesystem == "zfs" && drawn.size < 2 * point.memory;
    if !clean(point) || drawn.call > 256 << 10 || drawn.profile == "hdparm" || held {
        return nothing();
    }
    let larger = tool(point, |t| t.call *= 4);
    let about = |c: &Came| {
        matches!(does(c), Does::Reads | Does::Writes | Does::Both) && !c.phase.id.ends_with("tc")
    };
    not_slower(lab, &larger, all, "calls of a quarter", about)
}

/// Twice as many, each with as many seeks.
pub(super) fn more_seekers_are_not_slower(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    if !clean(point) || drawn.profile != "bonnie" || drawn.threads > 4 {
        return nothing();
    }
    let more = tool(point, |t| {
        (t.threads, t.random) = (2 * t.threads, 2 * t.random);
    });
    not_slower(lab, &more, all, "half the seekers", |c| {
        does(c) == Does::Seeks
    })
}

pub(super) fn empty_files_are_not_slower(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    if !clean(point) || drawn.file_size == 0 || drawn.profile != "bonnie" {
        return nothing();
    }
    let empty = tool(point, |t| t.file_size = 0);
    not_slower(lab, &empty, all, "with something in them", |c| {
        does(c) == Does::Names
    })
}

/// Twice as large, when memory holds neither.
pub(super) fn larger_files_go_on_alike(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    let fair = clean(point) && !hardware(point) && drawn.size >= 2 * point.memory;
    if !fair || drawn.profile == "hdparm" || !point.seed.is_multiple_of(2) {
        return nothing();
    }
    let larger = tool(point, |t| t.size *= 2);
    let about = |c: &Came| {
        let all_of_it = matches!(does(c), Does::Reads | Does::Writes | Does::Both);
        all_of_it && super::counts(c) && !carried(point, c)
    };
    let mut verdicts = nothing();
    for (one, larger) in pairs(lab, &larger, all, about) {
        verdicts.push(super::least(&larger, "half of it", 0.8, one.figure()));
        verdicts.push(most(&larger, "half of it", 1.25, one.figure()));
    }
    verdicts
}
