//! Laws of how many disks there are, of which kind, and of how they are joined.
use super::{Verdict, least, most, rate};
use crate::draw::{Kind, MODELS, Point, Topology};
use crate::lab::{Came, Lab};

fn hardware(point: &Point) -> bool {
    matches!(point.topology, Topology::Hardware { .. })
}

/// Past the cache on the raw array: what the disks do is all there is.
fn bare(point: &Point) -> bool {
    point.load.direct && !hardware(point) && point.filesystem == "none"
}

fn clean(point: &Point) -> bool {
    point.state == "clean"
}

/// An array does no more than each of its disks under the same load. Where there are copies the nearer arm goes, on
/// shorter ways.
pub(crate) fn no_more_than_so_many_disks(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // One disk that is given more than it serves in half a second does not sort, several have less each (five of 24 TB as RAID4
    // on 2.6.12, 64 in flight: 536 reads a second, one disk 83, at a depth of 32 it serves 154).
    let unsorted = point.expires() && point.load.depth * point.load.jobs > 24;
    if !bare(point) || point.disks < 2 || unsorted {
        return None;
    }
    // Streams that disturb each other on one disk need not meet on several.
    let copies = ["raid1", "raid01 2x2", "raid01 2x3"].contains(&point.layout)
        || point.layout.starts_with("raid10");
    let alone = point.alone().with(|p| {
        if !p.load.random {
            p.load.jobs = 1;
        }
    });
    let one = rate(lab, &alone)?;
    let nearer = if point.load.random && point.load.read && copies {
        1.45
    } else {
        1.10
    };
    // A call is a disk's part of it: where one command costs more than its bytes, parts are cheaper than the whole.
    let parts = if point.load.block > point.chunk {
        1.3
    } else {
        1.0
    };
    most(
        "as many disks",
        came.rate(),
        nearer * parts,
        one * point.disks as f64,
    )
}

pub(crate) fn random_reads_use_half_the_disks(
    lab: &mut Lab,
    point: &Point,
    came: &Came,
) -> Verdict {
    let striped = ["raid0", "raid5", "raid10", "raid6", "raid10-f2"].contains(&point.layout);
    let deep = point.load.depth * point.load.jobs >= 4 * point.disks as u64;
    let own = matches!(point.topology, Topology::Own);
    let small = point.load.block <= point.chunk.min(64 << 10);
    if !bare(point)
        || !clean(point)
        || !striped
        || !deep
        || !own
        || !small
        || !point.load.random
        || !point.load.read
    {
        return None;
    }
    let shallow = point.alone().with(|p| (p.load.depth, p.load.jobs) = (1, 1));
    let one = rate(lab, &shallow)?;
    let share = if point.rotates() { 0.5 } else { 0.2 };
    least(
        "as many disks",
        came.rate(),
        share,
        one * point.disks as f64,
    )
}

/// Another disk (two, of those that come in pairs), where a call or those in flight can use it.
pub(crate) fn another_disk_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let more = match point.layout {
        "raid0" | "raid5" | "raid6" | "linear" => 1,
        "raid10" | "raid10-f2" | "raid10-o2" if point.disks.is_multiple_of(2) => 2,
        _ => return None,
    };
    let all_work = (point.load.random && point.load.block <= point.chunk)
        || point.load.depth * point.load.block >= 2 * point.chunk * (point.disks as u64 + more);
    let writes_parity =
        !point.load.read && point.layout.starts_with("raid5") | point.layout.starts_with("raid6");
    if !all_work || !point.load.direct || !clean(point) || writes_parity {
        return None;
    }
    let smaller = came.rate();
    let larger = rate(lab, &point.with(|p| p.disks += more as usize))?;
    least("with a disk less", larger, 0.93, smaller)
}

pub(crate) fn copies_are_not_written_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // Part of a page in the cache is read before it is written, and a mirror reads from all; so is part of a record of ZFS. While
    // one disk reads the next one, others write the group of transactions (of each copy 145 MB read and 160 MB written for 79 MB
    // in parts of 64 KiB; records that are written whole are read by none, and the law holds).
    let unit = if point.filesystem == "zfs" {
        128 << 10
    } else {
        4096
    };
    let reads_first = !point.load.direct && point.load.block < unit;
    let written = !point.load.read && !reads_first;
    let mirror = ["raid1", "zfs-mirror"].contains(&point.layout);
    if !mirror || !written || hardware(point) || !clean(point) {
        return None;
    }
    most("one disk", came.rate(), 1.05, rate(lab, &point.alone())?)
}

/// A small write to parity is four operations of disks, of two parities six.
pub(crate) fn parity_costs(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let ops = match point.layout {
        "raid4" => 4.0,
        "raid5" => 4.0,
        "raid6" => 6.0,
        _ => return None,
    };
    let small = point.load.block <= 8192 && point.load.block <= point.chunk;
    if !bare(point)
        || !clean(point)
        || !small
        || !point.load.random
        || point.load.read
        || point.disks < 5
    {
        return None;
    }
    let one = rate(lab, &point.alone())?;
    let all = one * point.disks as f64 / ops;
    // Reading, writing the same place a turn later: cheaper than four places.
    let most_of = if point.rotates() { 2.2 } else { 3.0 };
    let up = most("disks by operations", came.rate(), most_of, all);
    if up.as_ref().is_some_and(Result::is_err) || point.layout == "raid4" {
        return up;
    }
    let deep = point.load.depth * point.load.jobs >= 4 * point.disks as u64;
    let share = if deep { 0.25 } else { return up };
    least("disks by operations", came.rate(), share, all)
}

pub(crate) fn linear_is_a_disk(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.layout != "linear"
        || point.load.random
        || hardware(point)
        || point.load.jobs > 1
        || point.filesystem != "none"
    {
        return None;
    }
    let one = rate(lab, &point.alone())?;
    let low = least("one disk", came.rate(), 0.9, one);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("one disk", came.rate(), 1.1, one)
}

pub(crate) fn far_is_striped(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let deep = point.load.depth * point.load.block >= 2 * point.chunk * point.disks as u64;
    if point.layout != "raid10-f2"
        || point.load.random
        || !point.load.read
        || !clean(point)
        || !deep
        || !point.load.direct
    {
        return None;
    }
    let striped = rate(lab, &point.with(|p| p.layout = "raid0"))?;
    least("striped", came.rate(), 0.9, striped)
}

pub(crate) fn two_near_copies_are_a_mirror(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.layout != "raid10" || point.disks != 2 || hardware(point) || !clean(point) {
        return None;
    }
    let mirror = rate(lab, &point.with(|p| p.layout = "raid1"))?;
    let low = least("a mirror", came.rate(), 0.75, mirror);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("a mirror", came.rate(), 1.33, mirror)
}

/// What makes a disk better: seeks of three quarters of the time, or media of one and a half times the rate.
pub(super) fn better(name: &str) -> Option<&'static str> {
    Some(match name {
        "ST3250624AS" => {
            "seek-average = \"8.25ms\", seek-full = \"16.5ms\", seek-track = \"0.6ms\""
        }
        "ST3160812AS" => "outer-rate = \"115MB/s\", inner-rate = \"58MB/s\"",
        "nearline-24tb" => "seek-average = \"6ms\", seek-full = \"12ms\", seek-track = \"0.45ms\"",
        "ST3000DM001" => "outer-rate = \"315MB/s\", inner-rate = \"147MB/s\"",
        "ST340015A" => "outer-rate = \"70MB/s\", inner-rate = \"35MB/s\"",
        "KW036" => "seek-average = \"3.4ms\", seek-full = \"8.6ms\", seek-track = \"0.38ms\"",
        "MAN3367MP" => "outer-rate = \"97MB/s\", inner-rate = \"67MB/s\"",
        _ => return None,
    })
}

pub(crate) fn a_better_disk_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if !point.rotates() || !point.overrides.is_empty() || point.load.jobs > 1 {
        return None;
    }
    let better = better(MODELS[point.model].0)?;
    let better = rate(lab, &point.with(|p| p.overrides = better.to_owned()))?;
    least("the slower disk", better, 0.93, came.rate())
}

pub(crate) fn solid_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // A resync of disks without an arm takes more of the array.
    if point.kind() != Kind::Sata || !point.overrides.is_empty() || !clean(point) {
        return None;
    }
    let solid = MODELS.iter().position(|m| m.1 == Kind::Solid)?;
    let solid = rate(lab, &point.with(|p| p.model = solid))?;
    // A short run into a buffer, or a card that is the limit, leaves some per cent either way.
    least("with an arm", solid, 0.85, came.rate())
}

pub(crate) fn a_larger_buffer_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if !point.rotates() || point.overrides != "cache = \"1MiB\"" {
        return None;
    }
    let larger = rate(
        lab,
        &point.with(|p| p.overrides = "cache = \"16MiB\"".to_owned()),
    )?;
    least("a smaller buffer", larger, 0.93, came.rate())
}
