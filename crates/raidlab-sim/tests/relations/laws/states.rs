//! Laws of arrays that lack a disk, or are being filled.
use super::{Verdict, most, rate};
use crate::draw::Point;
use crate::lab::{Came, Lab};

/// Of what a random load has of it; a stream may be read from fewer disks at the same rate.
const NEARLY: f64 = 1.07;

/// A lost disk is no gain: but for writes, which are not made to it, and parity that nobody has to keep any more.
pub(crate) fn degraded_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // Several records of ZFS in a row are a stream: of a group of RAID-Z that lacks a disk the others read all that lies in a
    // row, with parity; of a whole one they leave gaps (six ST3250624AS as two raidz1, 640 MiB: records of 128 KiB 1.01 of the
    // whole, eight in a row 1.10).
    let stream = point.filesystem == "zfs" && point.load.block > 128 << 10;
    if point.state != "degraded 1" || !point.load.read || !point.load.random || stream {
        return None;
    }
    let whole = rate(lab, &point.with(|p| p.state = "clean"))?;
    most("the whole array", came.rate(), NEARLY, whole)
}

/// Nor is a second one.
pub(crate) fn degraded_twice_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.layout != "raid6"
        || point.state != "degraded 1"
        || !point.load.read
        || !point.load.random
    {
        return None;
    }
    let twice = rate(lab, &point.with(|p| p.state = "degraded 2"))?;
    most("with one disk less", twice, NEARLY, came.rate())
}

pub(crate) fn rebuilding_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // What is rebuilt first is whole again soon.
    if point.state != "rebuilding 1"
        || !point.load.random
        || point.load.size > 0
        || !point.load.read
    {
        return None;
    }
    let degraded = rate(lab, &point.with(|p| p.state = "degraded 1"))?;
    most("the degraded array", came.rate(), NEARLY, degraded)
}

pub(crate) fn resyncing_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.state != "resyncing" || !point.load.random || !point.load.read {
        return None;
    }
    let whole = rate(lab, &point.with(|p| p.state = "clean"))?;
    most("the whole array", came.rate(), NEARLY, whole)
}
