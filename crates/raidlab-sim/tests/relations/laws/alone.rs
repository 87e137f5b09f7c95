//! Laws of one run by itself.
use super::Verdict;
use crate::draw::{Kind, Point, Topology};
use crate::lab::{Came, Lab, run};
use raidlab_sim::block::ResourceKind;

pub(crate) fn time_times_rate_is_bytes(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let o = &came.outcome;
    let right = o.bytes == o.ops * point.load.block && o.ops > 0 && o.elapsed.0 > 0;
    let total = o.bytes == point.load.total;
    Some(if right && total {
        Ok(())
    } else {
        Err(format!(
            "{} ops, {} bytes of {}, {:?}",
            o.ops, o.bytes, point.load.total, o.elapsed
        ))
    })
}

/// What begins before the end of a phase is booked whole, so that a share may come out a request above 1: half a MiB takes
/// a disk of 1993 0.2 s.
pub(crate) fn shares_are_no_more_than_all(_: &mut Lab, _: &Point, came: &Came) -> Verdict {
    let over = 400e6 / came.outcome.elapsed.0 as f64;
    let worst = came.raw.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(if worst.2 <= 1.01 + over {
        Ok(())
    } else {
        Err(format!(
            "{} is {:.3} busy in {:.3} s",
            worst.0,
            worst.2,
            came.outcome.elapsed.as_secs_f64()
        ))
    })
}

pub(crate) fn in_flight_as_little_says(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // Flushes are in flight, too, and jobs that end early do not wait for the others.
    if !point.load.read || point.load.jobs > 1 {
        return None;
    }
    let o = &came.outcome;
    let mean = o.latency().mean().map_or(0.0, |mean| mean.0 as f64);
    let little = o.ops as f64 * mean / o.elapsed.0 as f64;
    let most = (point.load.depth * point.load.jobs) as f64;
    let alike = (little - o.mean_in_flight).abs() <= 0.03 * little + 0.02;
    Some(if alike && o.mean_in_flight <= most * 1.001 {
        Ok(())
    } else {
        Err(format!(
            "{:.3} in flight, by Little {little:.3}, at most {most}",
            o.mean_in_flight
        ))
    })
}

/// The first share that the sentence tells is near the largest of all.
pub(crate) fn the_sentence_names_the_busiest(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let sentence = &came.why.sentence;
    let cores = (point.load.depth * point.load.jobs) as f64;
    let top = came.why.shares.iter().map(|s| match s.kind {
        ResourceKind::Cpu => (s.busy * f64::from(s.units) / f64::from(s.units).min(cores)).min(1.0),
        _ => s.busy,
    });
    let top = top.fold(0.0, f64::max);
    let told: Vec<f64> = sentence
        .split(" %")
        .filter_map(|part| part.rsplit([' ', '-']).next()?.parse::<f64>().ok())
        .collect();
    let idle = sentence.starts_with("nothing is busy above");
    let first = *told.get(usize::from(idle)).or(told.first())? / 100.0;
    Some(if idle == (top < 0.70) && (first - top).abs() <= 0.07 {
        Ok(())
    } else {
        Err(format!("'{sentence}', but the busiest is {top:.3}"))
    })
}

/// Past the cache, on an array without a cache of its own: what is asked for is read from the disks, and of mirrors and
/// parity more is written than was asked.
pub(crate) fn disks_move_what_is_asked(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let hardware = matches!(point.topology, Topology::Hardware { .. });
    if !point.load.direct || hardware || point.filesystem != "none" {
        return None;
    }
    let (asked, n) = (came.outcome.bytes as f64, point.disks as f64);
    let clean = point.state == "clean";
    // Drives with large physical sectors, and those without an arm, count the sectors of their commands.
    if point.load.read {
        let moved = came.disks.0 as f64;
        let low = moved >= asked * 0.999;
        let high = !clean || moved <= asked * 1.001 + 8192.0;
        return Some(if low && high {
            Ok(())
        } else {
            Err(format!("{moved} bytes read for {asked}"))
        });
    }
    let copies = match point.layout {
        "raid1" => n,
        "raid10" | "raid10-f2" | "raid10-o2" => 2.0,
        "raid01 2x2" | "raid01 2x3" => 2.0,
        "raid4" | "raid5" => n / (n - 1.0),
        "raid6" => n / (n - 2.0),
        "raid50 2x3" => 1.5,
        "raid50 2x4" => 4.0 / 3.0,
        _ => 1.0,
    };
    let moved = came.disks.1 as f64;
    let low = !clean || moved >= asked * copies * 0.98;
    let most = match point.layout {
        "raid4" | "raid5" | "raid50 2x3" | "raid50 2x4" | "raid6" => {
            3.1 * 8f64.max(4096.0 / point.load.block as f64)
        }
        _ => copies * 1.001,
    };
    // The first write has md tell in each superblock that members may differ, the end of all that they agree.
    let superblocks = 2.0 * n * 4096.0;
    Some(if low && (!clean || moved <= asked * most + superblocks) {
        Ok(())
    } else {
        Err(format!(
            "{moved} bytes written for {asked}: {:.3}, of {copies:.3}",
            moved / asked
        ))
    })
}

/// All data come from media, or go there before the end, but for what buffers hold.
pub(crate) fn no_faster_than_the_media(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    // The end of a prepared file of a pool is in the ARC, which takes half of the memory at most.
    let in_arc = point.load.total + point.memory / 2 > point.load.size;
    let cached = point.filesystem == "zfs" && point.load.read && in_arc;
    let card = matches!(point.topology, Topology::Hardware { .. });
    if card || point.load.random || cached {
        return None;
    }
    let media = point.media() * point.disks as f64;
    let held = if point.rotates() { 0.0 } else { 0.02 };
    // What the page cache holds of a file that has just been read once: nothing. Several jobs read the same.
    let jobs = if point.load.read {
        point.load.jobs as f64
    } else {
        1.0
    };
    let around = if point.load.size > 0 && point.load.total > point.load.size {
        2.0
    } else {
        1.0
    };
    super::most(
        "all media",
        came.rate(),
        (1.02 + held) * jobs * around,
        media,
    )
}

/// Of the operations in flight none waits more than ten times as long as all of them take, or two seconds.
pub(crate) fn nobody_waits_for_ever(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    let longest = came.outcome.latency().max()?.as_secs_f64();
    let turn =
        came.outcome.mean_in_flight * came.outcome.elapsed.as_secs_f64() / came.outcome.ops as f64;
    let bound = if point.load.direct {
        2.0 + 10.0 * turn
    } else {
        30.0
    };
    Some(if longest <= bound {
        Ok(())
    } else {
        Err(format!(
            "one waited {longest:.3} s, the mean is {turn:.4} s"
        ))
    })
}

/// On another thread.
pub(crate) fn the_same_twice(_: &mut Lab, point: &Point, came: &Came) -> Verdict {
    if !point.seed.is_multiple_of(8) || point.kind() == Kind::Nvme {
        return None;
    }
    let text = point.text();
    let again = std::thread::spawn(move || run(&text)).join().ok()?;
    Some(if again.is_ok_and(|again| again.first() == Some(came)) {
        Ok(())
    } else {
        Err("another outcome".to_owned())
    })
}
