//! Laws of arrays that lack a disk, or are being filled.
use super::{Verdict, most, rate};
use crate::draw::Point;
use crate::lab::{Came, Lab};

/// Of what a random load has of it; a stream may be read from fewer disks at the same rate.
const NEARLY: f64 = 1.07;

/// A lost disk is no gain: but for writes, which are not made to it, and parity that nobody has to keep any more.
pub(crate) fn degraded_is_not_faster(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.state != "degraded 1" || !point.load.read || !point.load.random {
        return None;
    }
    let whole = rate(lab, &point.with(|p| p.state = "clean"))?;
    most("the whole array", came.rate(), NEARLY, whole)
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
