//! Laws of the computer around the disks.
use super::{Verdict, least, most, rate};
use crate::draw::{Kind, Point, Topology};
use crate::lab::{Came, Lab};
use raidlab_experiment::kernel::Kernel;

pub(crate) fn more_memory_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // What is written may all be in memory before the disks begin, when there is much.
    // With more, ZFS reads further ahead, beyond the end of a short run, too.
    let short = point.filesystem == "zfs" && point.load.total < 256 << 20;
    if point.load.direct || !point.load.read || short {
        return None;
    }
    let more = rate(lab, &point.with(|p| p.memory *= 4))?;
    least("less memory", more, 0.93, came.rate())
}

pub(crate) fn a_write_cache_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.write_cache || point.load.read {
        return None;
    }
    let with = rate(lab, &point.with(|p| p.write_cache = true))?;
    least("without it", with, 0.93, came.rate())
}

pub(crate) fn write_back_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let Topology::Hardware { cache, back: false } = point.topology else {
        return None;
    };
    let back = rate(
        lab,
        &point.with(|p| p.topology = Topology::Hardware { cache, back: true }),
    )?;
    least("write-through", back, 0.9, came.rate())
}

pub(crate) fn a_faster_bus_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let Topology::Cards {
        on_channel,
        bus: Some(_),
    } = point.topology
    else {
        return None;
    };
    // What the load leaves, a resync takes.
    if point.state != "clean" || !point.write_cache {
        return None;
    }
    let free = rate(
        lab,
        &point.with(|p| {
            p.topology = Topology::Cards {
                on_channel,
                bus: None,
            }
        }),
    )?;
    least("behind the bus", free, 0.93, came.rate())
}

pub(crate) fn a_channel_each_is_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let Topology::Cards {
        on_channel: 2..,
        bus,
    } = point.topology
    else {
        return None;
    };
    // What the load leaves, a resync takes.
    if point.state != "clean" {
        return None;
    }
    let each = point.with(|p| p.topology = Topology::Cards { on_channel: 1, bus });
    least("on one channel", rate(lab, &each)?, 0.93, came.rate())
}

pub(crate) fn nvme_needs_no_scheduler(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if point.kind() != Kind::Nvme || point.scheduler != Some("mq-deadline") || !point.load.direct {
        return None;
    }
    let none = rate(lab, &point.with(|p| p.scheduler = Some("none")))?;
    let low = least("without", came.rate(), 0.9, none);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("without", came.rate(), 1.1, none)
}

/// There is nobody else whom a scheduler could sort or keep the disk idle for.
pub(crate) fn one_at_a_time_needs_no_scheduler(
    lab: &mut Lab,
    point: &Point,
    came: &Came,
) -> Verdict {
    let one = point.load.depth * point.load.jobs == 1 && point.load.direct && point.load.read;
    let whole = point.load.block <= point.chunk || !point.load.random;
    if !one || !whole || point.scheduler.is_none() || point.state != "clean" {
        return None;
    }
    // It has one of the two names.
    let noop = rate(lab, &point.with(|p| p.scheduler = Some("noop")));
    let without = noop.or_else(|| rate(lab, &point.with(|p| p.scheduler = Some("none"))))?;
    let low = least("without", came.rate(), 0.93, without);
    if low.as_ref().is_some_and(Result::is_err) {
        return low;
    }
    most("without", came.rate(), 1.07, without)
}

pub(crate) fn a_faster_processor_is_not_slower(
    lab: &mut Lab,
    point: &Point,
    came: &Came,
) -> Verdict {
    if !point.seed.is_multiple_of(4) || point.state != "clean" || !point.host.is_empty() {
        return None;
    }
    let slow = rate(lab, &point.with(|p| p.host = "cpu-mhz = 1000\n".to_owned()))?;
    least("at 1 GHz", came.rate(), 0.93, slow)
}

pub(crate) fn more_stripes_are_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let parity = ["raid4", "raid5", "raid6"].contains(&point.layout);
    // With more of them a rebuild gets on faster, too.
    // The reading ahead of old kernels stays plugged until the reader waits, which it does sooner with few.
    if !parity
        || point.load.read
        || point.state != "clean"
        || matches!(point.topology, Topology::Hardware { .. })
    {
        return None;
    }
    let more = rate(
        lab,
        &point.with(|p| p.array = "stripe-cache = 2048\n".to_owned()),
    )?;
    least("as many as there are", more, 0.93, came.rate())
}

pub(crate) fn more_threads_are_not_slower(lab: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let parity = ["raid4", "raid5", "raid6"].contains(&point.layout);
    let has_them = point
        .kernel
        .parse::<Kernel>()
        .is_ok_and(|kernel| kernel >= Kernel::Linux(3, 12, 0));
    // With more of them a rebuild gets on faster, too; and what several ask of disks that turn is in less of an order.
    let fit = point.state == "clean" && matches!(point.kind(), Kind::Solid | Kind::Nvme);
    if !parity || !has_them || !fit || matches!(point.topology, Topology::Hardware { .. }) {
        return None;
    }
    let more = rate(
        lab,
        &point.with(|p| p.array = "group-threads = 3\n".to_owned()),
    )?;
    least("one thread", more, 0.93, came.rate())
}
