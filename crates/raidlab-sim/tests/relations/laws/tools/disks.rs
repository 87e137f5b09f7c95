//! Laws of how many disks there are, of which kind, and of what state they are in; each of two runs.
use super::{
    Does, Verdicts, counts, does, hardware, kept_idle, least, most, not_slower, nothing, pairs,
};
use crate::draw::{Kind, MODELS, Point, Tool};
use crate::lab::{Came, Lab};

fn clean(point: &Point) -> bool {
    point.state == "clean"
}

/// Nothing of what it does is answered by a cache alone.
fn reaches_disks(came: &Came) -> bool {
    match does(came) {
        Does::Reads | Does::Both | Does::ReadsAnywhere | Does::Seeks => came.phase.cold,
        Does::Writes | Does::WritesAnywhere => true,
        Does::ReadsAgain | Does::Names => false,
    }
}

pub(super) fn copies_are_not_written_faster(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let mirror = ["raid1", "zfs-mirror"].contains(&point.layout);
    if !mirror || hardware(point) || !clean(point) {
        return nothing();
    }
    let pairs = pairs(lab, &point.alone(), all, |c| {
        does(c) == Does::Writes && counts(c)
    });
    let each = pairs
        .iter()
        .map(|(one, alone)| most(one, "one disk", 1.07, alone.figure()));
    each.collect()
}

/// Where every read is a disk's.
pub(super) fn degraded_is_not_faster(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if point.state != "degraded 1" {
        return nothing();
    }
    let whole = point.with(|p| p.state = "clean");
    let pairs = pairs(lab, &whole, all, |c| {
        does(c) == Does::ReadsAnywhere && c.phase.cold && counts(c)
    });
    let each = pairs
        .iter()
        .map(|(one, whole)| most(one, "the whole array", 1.1, whole.figure()));
    each.collect()
}

pub(super) fn streams_of_a_degraded_array_are_not_faster(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if point.state != "degraded 1" {
        return nothing();
    }
    let whole = point.with(|p| p.state = "clean");
    let about =
        |c: &Came| c.phase.cold && matches!(does(c), Does::Reads | Does::Seeks) && counts(c);
    let pairs = pairs(lab, &whole, all, about);
    let each = pairs
        .iter()
        .map(|(one, whole)| most(one, "the whole array", 1.1, whole.figure()));
    each.collect()
}

/// Nor rebuilding.
pub(super) fn resyncing_is_not_faster(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if !["resyncing", "rebuilding 1"].contains(&point.state) {
        return nothing();
    }
    let whole = point.with(|p| p.state = "clean");
    let about = |c: &Came| reaches_disks(c) && does(c) != Does::WritesAnywhere && counts(c);
    let pairs = pairs(lab, &whole, all, about);
    let each = pairs
        .iter()
        .map(|(one, whole)| most(one, "the whole array", 1.1, whole.figure()));
    each.collect()
}

/// An array does no more than all of its disks do by themselves. Several that seek have shorter ways on each of several disks.
pub(super) fn no_more_than_so_many_disks(
    lab: &mut Lab,
    point: &Point,
    drawn: &Tool,
    all: &[Came],
) -> Verdicts {
    // A drive with a small buffer loses a turn at each call, which several need not.
    let small = point.overrides.starts_with("cache");
    if point.disks < 2 || hardware(point) || !clean(point) || small {
        return nothing();
    }
    let several = drawn.profile == "tiobench" && drawn.threads > 1;
    let about =
        |c: &Came| reaches_disks(c) && counts(c) && (!several || does(c) == Does::ReadsAnywhere);
    let pairs = pairs(lab, &point.alone(), all, about);
    let each = pairs.iter().map(|(one, alone)| {
        let nearer = matches!(does(one), Does::Seeks | Does::ReadsAnywhere);
        let share = if nearer { 1.45 } else { 1.15 };
        most(
            one,
            "as many disks",
            share,
            alone.figure() * point.disks as f64,
        )
    });
    each.collect()
}

pub(super) fn stripes_are_no_slower_than_a_disk(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if point.layout != "raid0" || hardware(point) || kept_idle(point) {
        return nothing();
    }
    let pairs = pairs(lab, &point.alone(), all, counts);
    pairs
        .iter()
        .map(|(one, alone)| least(one, "one disk", 0.9, alone.figure()))
        .collect()
}

/// Another disk (two, of those that come in pairs).
pub(super) fn another_disk_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let more = match point.layout {
        "raid0" | "raid5" | "raid6" | "raid4" => 1,
        "raid10" | "raid10-f2" if point.disks.is_multiple_of(2) => 2,
        _ => return nothing(),
    };
    if !clean(point) || kept_idle(point) {
        return nothing();
    }
    let larger = point.with(|p| p.disks += more);
    // A card's cache takes more when whole stripes have gone, which they have when the last disk has its part. On one SCSI bus
    // that is full, the disk with the least priority has it late: that much more is on its way as the stripes are wider.
    let behind = hardware(point) && point.kind() == Kind::Scsi;
    let about = |c: &Came| reaches_disks(c) && !(behind && does(c) == Does::Writes);
    not_slower(lab, &larger, all, "with a disk less", about)
}

/// Seeks of three quarters of the time, or media of one and a half times the rate.
pub(super) fn a_better_disk_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    let better = crate::laws::disks::better(MODELS[point.model].0);
    let Some(better) = better.filter(|_| point.overrides.is_empty() && clean(point)) else {
        return nothing();
    };
    let better = point.with(|p| p.overrides = better.to_owned());
    not_slower(lab, &better, all, "the slower disk", |_| true)
}

pub(super) fn solid_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    _: &Tool,
    all: &[Came],
) -> Verdicts {
    if point.kind() != Kind::Sata || !point.overrides.is_empty() || !clean(point) {
        return nothing();
    }
    let Some(solid) = MODELS.iter().position(|m| m.1 == Kind::Solid) else {
        return nothing();
    };
    not_slower(
        lab,
        &point.with(|p| p.model = solid),
        all,
        "with an arm",
        |_| true,
    )
}
