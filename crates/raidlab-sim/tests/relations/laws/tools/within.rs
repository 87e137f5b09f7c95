//! Laws between the phases of one run.
use super::{Does, Verdicts, counts, does, hardware, least, most, nothing, phase};
use crate::draw::{Point, Tool};
use crate::lab::{Came, Lab};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::phase::Evidence;
use raidlab_sim::block::ResourceKind;

pub(super) fn all_that_is_asked_is_done(
    _: &mut Lab,
    _: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let one = |came: &Came| {
        let (o, expected) = (&came.outcome, came.phase.expected());
        let ops = expected.ops.is_none_or(|ops| ops == o.ops);
        let bytes = expected.bytes.is_none_or(|bytes| bytes == o.bytes);
        if ops && bytes && o.ops > 0 && o.elapsed.0 > 0 {
            return Ok(());
        }
        Err(format!(
            "{}: {} ops, {} bytes of {expected:?}",
            came.phase.id, o.ops, o.bytes
        ))
    };
    all.iter().map(one).collect()
}

/// Nor less than none. What begins before the end of a phase is booked whole.
pub(super) fn shares_are_no_more_than_all(
    _: &mut Lab,
    _: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let one = |came: &Came| {
        let seconds = came.outcome.elapsed.as_secs_f64();
        let most = 1.01 + 0.4 / seconds;
        let wrong = came.raw.iter().find(|r| r.2 > most || r.2 < 0.0);
        wrong.map_or(Ok(()), |(name, _, busy)| {
            let id = &came.phase.id;
            Err(format!("{id}: {name} is {busy:.3} busy in {seconds:.3} s"))
        })
    };
    all.iter().map(one).collect()
}

/// No cache answers what is read in a row after it was emptied, and what ends with a sync is on the device.
pub(super) fn what_is_cold_comes_from_disks(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    // What ZFS has in a cache of its own stays there. What is read ahead of characters that are calls may come after the
    // cache has been emptied.
    let leaves = point.filesystem != "zfs" && !tool.by_call;
    let about = |came: &&Came| match does(came) {
        Does::Reads | Does::Both => came.phase.cold && leaves,
        Does::Writes => came.phase.evidence == Evidence::WritesReachDevice,
        _ => false,
    };
    let doubts = [
        FlagKind::ServedFromCache,
        FlagKind::PartlyCached,
        FlagKind::Unflushed,
    ];
    // What drives and cards hold has come to them: kernels that know no flush leave it there, and a card keeps it.
    let one = |came: &Came| {
        let mut flags = came.outcome.flags.iter().filter(|flag| !of_caches(flag));
        let doubt = flags.find(|flag| doubts.contains(&flag.kind));
        doubt.map_or(Ok(()), |doubt| {
            Err(format!("{}: {}", came.phase.id, doubt.reason))
        })
    };
    all.iter().filter(about).map(one).collect()
}

/// What is told of what drives and cards hold.
fn of_caches(flag: &Flag) -> bool {
    let mut parts = ["that the disks took", "in the controller's cache"].iter();
    parts.any(|part| flag.reason.contains(part))
}

/// Much of what was written was still in caches of drives: those of today hold a whole file of these, and kernels that know no flush leave
/// it there.
fn is_kept_by_drives(came: &Came) -> bool {
    came.outcome.flags.iter().any(of_caches)
}

/// All media together.
pub(super) fn no_faster_than_the_media(
    _: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if hardware(point) || point.filesystem == "zfs" {
        return nothing();
    }
    // Drives serve what they have kept.
    if all.iter().any(is_kept_by_drives) {
        return nothing();
    }
    let media = point.media() * point.disks as f64;
    let about = |came: &&Came| came.phase.cold && matches!(does(came), Does::Reads | Does::Both);
    let each = all.iter().filter(about);
    each.map(|came| most(came, "all media", 1.04, media))
        .collect()
}

/// What parity and copies leave of all media. Drives hold some of it at the end.
pub(super) fn written_no_faster_than_the_media(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    if hardware(point) || tool.size < 128 << 20 {
        return nothing();
    }
    let n = point.disks as f64;
    let data = match point.layout {
        "raid1" | "zfs-mirror" => 1.0,
        "raid10" | "raid10-f2" | "raid10-o2" | "raid01 2x2" | "raid01 2x3" | "zfs-mirror 2x2" => {
            n / 2.0
        }
        "raid4" | "raid5" | "raidz1" => n - 1.0,
        "raid6" | "raidz2" => n - 2.0,
        "raid50 2x3" | "raid50 2x4" | "raidz1 2x3" => n - 2.0,
        _ => n,
    };
    let about = |came: &&Came| {
        let written = came.phase.evidence == Evidence::WritesReachDevice;
        written && does(came) == Does::Writes && !is_kept_by_drives(came)
    };
    let each = all.iter().filter(about);
    each.map(|came| most(came, "all media", 1.15, point.media() * data))
        .collect()
}

/// By character is no faster than by block.
pub(super) fn characters_cost(_: &mut Lab, point: &Point, tool: &Tool, all: &[Came]) -> Verdicts {
    // What is durable is so after each block, but at the end of what is written by call. A card's cache holds what was read
    // last, and a resync is further on.
    // Groups of transactions of ZFS end when they do.
    let large = tool.size >= (2 * point.memory).max(128 << 20) && point.filesystem != "zfs";
    // On a disk of 1 GB the next file lies on other tracks.
    let large = large && point.media() > 8e6;
    let fair = !tool.sync && !tool.direct && !hardware(point) && point.state == "clean";
    if tool.profile != "bonnie" || !fair || !large {
        return nothing();
    }
    let mut verdicts = nothing();
    if let (Some(putc), Some(write)) = (phase(all, "putc"), phase(all, "block-write")) {
        verdicts.push(most(putc, "block-write", 1.07, write.figure()));
    }
    if let (Some(getc), Some(read), true) =
        (phase(all, "getc"), phase(all, "block-read"), tool.cold)
    {
        verdicts.push(most(getc, "block-read", 1.07, read.figure()));
    }
    verdicts
}

/// One phase is no faster than another of the same run, where each is long enough to be compared.
fn bounded(all: &[Came], one: &str, other: &str, share: f64) -> Verdicts {
    let long = |id| phase(all, id).filter(|came| counts(came));
    match (long(one), long(other)) {
        (Some(one), Some(other)) => vec![most(one, &other.phase.id, share, other.figure())],
        _ => nothing(),
    }
}

pub(super) fn rewriting_reads(_: &mut Lab, point: &Point, tool: &Tool, all: &[Came]) -> Verdicts {
    let fair = tool.cold && !hardware(point) && point.state == "clean";
    if tool.profile != "bonnie" || !fair {
        return nothing();
    }
    bounded(all, "rewrite", "block-read", 1.05)
}

pub(super) fn rewriting_writes(_: &mut Lab, point: &Point, tool: &Tool, all: &[Came]) -> Verdicts {
    // What is durable after each call needs a transaction where blocks are given out, and none where they are there.
    let fair = tool.cold && !tool.sync && !hardware(point) && point.state == "clean";
    if tool.profile != "bonnie" || !fair {
        return nothing();
    }
    bounded(all, "rewrite", "block-write", 1.1)
}

pub(super) fn copying_reads(_: &mut Lab, point: &Point, tool: &Tool, all: &[Came]) -> Verdicts {
    let fair = tool.cold && !hardware(point) && point.state == "clean";
    if tool.profile != "hdbench" || !fair {
        return nothing();
    }
    bounded(all, "copy-", "read-", 1.05)
}

pub(super) fn copying_writes(_: &mut Lab, point: &Point, tool: &Tool, all: &[Came]) -> Verdicts {
    let fair = tool.cold && !hardware(point) && point.state == "clean";
    if tool.profile != "hdbench" || !fair {
        return nothing();
    }
    bounded(all, "copy-", "write-", 1.07)
}

/// Files that memory holds.
pub(super) fn looking_is_no_slower_than_making(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    let held = tool.files * 1024 * (tool.file_size + 5120) < point.memory / 4;
    if tool.profile != "bonnie" || !held {
        return nothing();
    }
    let mut verdicts = nothing();
    for (make, look) in [("seq-create", "seq-stat"), ("ran-create", "ran-stat")] {
        if let (Some(make), Some(look)) = (phase(all, make), phase(all, look)) {
            verdicts.push(most(make, look.phase.id.as_str(), 1.07, look.figure()));
        }
    }
    verdicts
}

pub(super) fn memory_is_faster_than_disks(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    if tool.profile != "hdparm" || hardware(point) || point.state != "clean" {
        return nothing();
    }
    match (phase(all, "buffered-read"), phase(all, "cached-read")) {
        (Some(disks), Some(memory)) => vec![most(disks, "cached-read", 1.02, memory.figure())],
        _ => nothing(),
    }
}

/// dd's, when what it reads is cold.
pub(super) fn the_second_pass_is_alike(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    if tool.profile != "dd" || hardware(point) || !tool.cold || !tool.sync || point.state != "clean"
    {
        return nothing();
    }
    let mut verdicts = nothing();
    for (first, second) in [("write-first", "write"), ("read-first", "read")] {
        if let (Some(first), Some(second)) = (phase(all, first), phase(all, second)) {
            verdicts.push(least(second, "the first pass", 0.85, first.figure()));
            verdicts.push(most(second, "the first pass", 1.18, first.figure()));
        }
    }
    verdicts
}

pub(super) fn random_is_not_faster(
    _: &mut Lab,
    point: &Point,
    tool: &Tool,
    all: &[Came],
) -> Verdicts {
    let fair = tool.cold && point.rotates() && !hardware(point) && point.state == "clean";
    // Buffers of drives hold small files.
    if tool.profile != "tiobench" || !fair || tool.call > 64 << 10 || tool.size < 256 << 20 {
        return nothing();
    }
    bounded(all, "random-read", "read", 1.0)
}

/// The first share that the sentence tells is near the largest of all.
pub(super) fn the_sentence_names_the_busiest(
    _: &mut Lab,
    _: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let one = |came: &Came| {
        let sentence = &came.why.sentence;
        let jobs = came.phase.jobs.len() as f64;
        let top = came.why.shares.iter().map(|s| match s.kind {
            ResourceKind::Cpu => {
                (s.busy * f64::from(s.units) / f64::from(s.units).min(jobs)).min(1.0)
            }
            _ => s.busy,
        });
        let top = top.fold(0.0, f64::max);
        let shares = sentence.split(" %");
        let mut shares =
            shares.filter_map(|part| part.rsplit([' ', '-']).next()?.parse::<f64>().ok());
        let idle = sentence.starts_with("nothing is busy above");
        let first = shares.next()?;
        let first = if idle {
            shares.next().unwrap_or(first)
        } else {
            first
        } / 100.0;
        let right = idle == (top < 0.70) && (first - top).abs() <= 0.07;
        let tell = || {
            format!(
                "{}: '{sentence}', but the busiest is {top:.3}",
                came.phase.id
            )
        };
        Some(right.then_some(()).ok_or_else(tell))
    };
    all.iter().filter_map(one).collect()
}

pub(super) fn nobody_waits_for_ever(
    _: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    // A disk of 1993 takes a quarter of a minute for what a small memory may hold dirty.
    let bound = 10.0 + 4.0 * point.memory as f64 / point.media();
    let one = |came: &Came| {
        let longest = came
            .outcome
            .latency()
            .max()
            .map_or(0.0, |max| max.as_secs_f64());
        let tell = || format!("{}: one waited {longest:.1} s of {bound:.1}", came.phase.id);
        (longest <= bound).then_some(()).ok_or_else(tell)
    };
    let about = |came: &&Came| came.phase.evidence != Evidence::Both;
    all.iter().filter(about).map(one).collect()
}
