//! Laws of what is asked for: how deep, how large, how long.
use super::{Verdict, least, most, rate};
use crate::draw::{Point, Topology};
use crate::lab::{Came, Lab};

/// Twice as many random reads in flight; for as many more, so that the end, when fewer are left, counts as little.
pub(crate) fn deeper_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let idle = point.state == "clean" && point.load.read;
    // Drives that wait for the next command read on, and those that hold a whole file in the end answer from their buffers. With
    // another command waiting they do not (three of 24 TB, 512 MiB of buffer each, a file of 256 MiB: of the reads of one disk
    // 41 % from its buffer at a depth of 1, 4 % at 2).
    let held = (1..=super::buffers(point)).contains(&point.load.size);
    // A card that is asked for more than its cache has room for fetches calls in parts, as room comes (RAID50 of six, 32 MiB, 1 MiB at
    // random: 56.6 MB/s at a depth of 16, 46.6 at 32; with 64 MiB 55.3).
    let asked = 2 * point.load.depth * point.load.jobs * point.load.block;
    let crowded = matches!(point.topology, Topology::Hardware { cache, .. } if cache == "32MiB")
        && asked > 16 << 20;
    let unsorted = point.expires() && 2 * point.load.depth * point.load.jobs > 24;
    let held = held || crowded || unsorted;
    if !point.load.direct || !point.load.random || point.load.depth > 64 || !idle || held {
        return None;
    }
    let deeper = point.with(|p| {
        p.load.depth *= 2;
        p.load.total *= 2;
    });
    least("at half the depth", rate(lab, &deeper)?, 0.93, came.rate())
}

/// The same of writes, which a drive's buffer and md sort as well; parity arrays end them as their stripes come together.
pub(crate) fn deeper_writes_are_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let load = &point.load;
    let few = load.depth <= 64 && load.direct && load.random && !load.read;
    // Of twice as much a card's cache holds half the share.
    let held = matches!(point.topology, Topology::Hardware { .. });
    if point.state != "clean" || !few || held {
        return None;
    }
    let deeper = point.with(|p| {
        p.load.depth *= 2;
        p.load.total *= 2;
    });
    least("at half the depth", rate(lab, &deeper)?, 0.93, came.rate())
}

/// Sorting gains: on disks with an arm no more than three times at the depths that are drawn; without one, never more
/// than by what is in flight.
pub(crate) fn twice_as_deep_is_at_most_twice(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // A resync takes what a shallow load leaves: md counts what it hardly sees as none (`is_mddev_idle`).
    let idle = point.state == "clean" && point.load.read;
    if !point.load.direct || point.load.depth > 64 || point.load.jobs > 1 || !idle {
        return None;
    }
    let deeper = point.with(|p| p.load.depth *= 2);
    // A sequential reader at depth 1 may lose a turn at each call, which one at depth 2 does not.
    let gain = if point.load.random { 2.1 } else { 20.0 };
    most("at half the depth", rate(lab, &deeper)?, gain, came.rate())
}

/// On a part of the array, arms have shorter ways. A part of a linear one may be on one disk alone.
pub(crate) fn a_part_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let all = point.load.size == 0 && point.filesystem == "none";
    let alone = point.state == "clean" && point.load.read;
    let linear = point.layout == "linear";
    if !all || !alone || linear || !point.load.random || !point.load.direct {
        return None;
    }
    // Large enough for calls of the largest on each disk.
    let part = rate(lab, &point.with(|p| p.load.size = 1 << 30))?;
    least("all of it", part, 0.93, came.rate())
}

/// At half the rate that it reaches by itself it does what it is asked, and never more.
pub(crate) fn half_the_rate_is_kept(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let seconds = came.outcome.elapsed.as_secs_f64();
    let asked = (came.outcome.ops as f64 / seconds / 2.0).floor();
    // The last of few end late by a part of the time; writes end with what buffers have left for a flush.
    let many = asked >= 2.0 && came.outcome.ops >= 500;
    let reads = point.load.random && point.load.read && point.load.direct;
    if !many || !reads || point.state != "clean" {
        return None;
    }
    let kept = point.with(|p| p.profile = format!("rate = {asked}\n"));
    let kept = lab.run(&kept).ok()?;
    let reached = kept.outcome.ops as f64 / kept.outcome.elapsed.as_secs_f64();
    let low = least("what was asked", reached, 0.9, asked);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("what was asked", reached, 1.02, asked)
}

/// To wait for each write is no gain.
pub(crate) fn durable_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // A card's cache joins what comes slowly enough to be joined, and lets the rest go by; ZFS has a log for what is durable.
    let elsewhere =
        matches!(point.topology, Topology::Hardware { .. }) || point.filesystem == "zfs";
    // In a few turns it matters most which tracks a drive happens to begin with.
    let few_turns = came.outcome.elapsed.as_secs_f64() < 0.5;
    if point.load.read || point.load.jobs > 1 || point.state != "clean" || elsewhere || few_turns {
        return None;
    }
    let said = durable_beside(lab, point, came)?;
    // What the buffers of ten drives hold in the end takes a tenth of a second to write, which is a tenth of a short run: with each write made
    // durable there is nothing left.
    if said.is_ok() || came.outcome.elapsed.as_secs_f64() > 2.0 {
        return Some(said);
    }
    let longer = point.with(|p| p.load.total *= 4);
    let came = lab.run(&longer).ok()?;
    durable_beside(lab, &longer, &came)
}

fn durable_beside(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let durable = point.with(|p| p.profile = "fsync = 1\n".to_owned());
    most("in the end alone", rate(lab, &durable)?, 1.07, came.rate())
}

pub(crate) fn larger_calls_are_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let met_again = point.load.random && !point.load.direct;
    if point.load.block > 1 << 20
        || point.load.jobs > 1
        || met_again
        || !point.load.read && point.load.random
    {
        return None;
    }
    let larger = point.with(|p| {
        p.load.block *= 4;
        p.load.total = p.load.total.div_ceil(p.load.block) * p.load.block;
        if p.load.random {
            p.load.total = (p.load.total * 4).min(512 << 20);
        }
    });
    least("calls of a quarter", rate(lab, &larger)?, 0.93, came.rate())
}

/// The same calls in a row and anywhere. What was read a second time is left out: calls of less than a page, and those
/// that go round.
pub(crate) fn random_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let around = point.load.size > 0 && point.load.total > point.load.size / 8;
    let several = point.load.jobs > 1;
    let same_disks = !["linear", "raid10", "raid10-o2"].contains(&point.layout)
        && point.rotates()
        && point.load.read;
    if !point.load.random
        || !same_disks
        || around
        || several
        || point.load.block < 4096
        || point.load.depth > 1 && !point.load.direct
    {
        return None;
    }
    let row = rate(lab, &point.with(|p| p.load.random = false))?;
    least("random", row, 0.9, came.rate())
}

pub(crate) fn longer_goes_on_alike(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let cached = matches!(point.topology, Topology::Hardware { .. });
    if cached
        || point.state != "clean"
        || point.load.size > 0
        || point.load.total < 64 * point.load.depth * point.load.block
    {
        return None;
    }
    let longer = rate(lab, &point.with(|p| p.load.total *= 3))?;
    let low = least("a third of it", longer, 0.75, came.rate());
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("a third of it", longer, 1.33, came.rate())
}

/// So many jobs of a depth, and one that is so much deeper.
pub(crate) fn jobs_are_depth(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let fair = matches!(
        point.scheduler,
        Some("none" | "noop" | "mq-deadline" | "deadline")
    );
    if point.load.jobs < 2 || !point.load.random || !point.load.direct || !fair {
        return None;
    }
    let one = point.with(|p| {
        p.load.depth *= p.load.jobs;
        p.load.jobs = 1;
    });
    let one = rate(lab, &one)?;
    let low = least("one job", came.rate(), 0.85, one);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("one job", came.rate(), 1.18, one)
}
