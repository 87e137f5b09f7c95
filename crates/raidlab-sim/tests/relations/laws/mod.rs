//! What must hold between predictions, whatever the models' figures are. Each law is a function of a drawn point and what
//! came of it; most run a second point that differs in one thing. The margins are wide: a law tells of a prediction that
//! cannot be, not of one that is some per cent off.
#![allow(dead_code, reason = "the test and the benchmark each use a part of it")]
mod alone;
mod disks;
mod hosts;
mod loads;
mod states;
pub(crate) mod tools;

use crate::draw::{MODELS, Point};
use crate::lab::{Came, Lab};
use raidlab_core::units::SECTOR;
use raidlab_sim::catalogue;
use raidlab_sim::disk::DiskModel;

/// Nothing, when a law says nothing of a point; else whether it holds, or what is wrong.
pub(crate) type Verdict = Option<Result<(), String>>;
type Law = fn(&mut Lab, &Point, &Came) -> Verdict;

/// What no model may break.
pub(crate) const LAWS: &[(&str, Law)] = &[
    ("time times rate is bytes", alone::time_times_rate_is_bytes),
    (
        "shares are no more than all",
        alone::shares_are_no_more_than_all,
    ),
    ("disks move what is asked", alone::disks_move_what_is_asked),
    ("no faster than the media", alone::no_faster_than_the_media),
    ("the same twice", alone::the_same_twice),
    (
        "no more than so many disks",
        disks::no_more_than_so_many_disks,
    ),
    (
        "random reads use half the disks",
        disks::random_reads_use_half_the_disks,
    ),
    (
        "copies are not written faster",
        disks::copies_are_not_written_faster,
    ),
    ("solid is not slower", disks::solid_is_not_slower),
    ("degraded is not faster", states::degraded_is_not_faster),
    ("deeper is not slower", loads::deeper_is_not_slower),
    (
        "deeper is no faster than tags",
        loads::twice_as_deep_is_at_most_twice,
    ),
    (
        "more memory is not slower",
        hosts::more_memory_is_not_slower,
    ),
    ("half the rate is kept", loads::half_the_rate_is_kept),
    ("durable is not faster", loads::durable_is_not_faster),
];

/// Laws of thumb: mostly so, but lost turns, a resync that takes what a load leaves, and the order in which several processes
/// come make exceptions that are right. The benchmark tells of them.
pub(crate) const THUMB: &[(&str, Law)] = &[
    (
        "deeper writes are not slower",
        loads::deeper_writes_are_not_slower,
    ),
    ("in flight as Little says", alone::in_flight_as_little_says),
    (
        "the sentence names the busiest",
        alone::the_sentence_names_the_busiest,
    ),
    ("nobody waits for ever", alone::nobody_waits_for_ever),
    (
        "another disk is not slower",
        disks::another_disk_is_not_slower,
    ),
    ("parity costs", disks::parity_costs),
    ("linear is a disk", disks::linear_is_a_disk),
    ("far is striped", disks::far_is_striped),
    (
        "two near copies are a mirror",
        disks::two_near_copies_are_a_mirror,
    ),
    (
        "a better disk is not slower",
        disks::a_better_disk_is_not_slower,
    ),
    (
        "a larger buffer is not slower",
        disks::a_larger_buffer_is_not_slower,
    ),
    (
        "degraded twice is not faster",
        states::degraded_twice_is_not_faster,
    ),
    ("a part is not slower", loads::a_part_is_not_slower),
    (
        "one at a time needs no scheduler",
        hosts::one_at_a_time_needs_no_scheduler,
    ),
    ("rebuilding is not faster", states::rebuilding_is_not_faster),
    ("resyncing is not faster", states::resyncing_is_not_faster),
    (
        "larger calls are not slower",
        loads::larger_calls_are_not_slower,
    ),
    ("random is not faster", loads::random_is_not_faster),
    ("longer goes on alike", loads::longer_goes_on_alike),
    ("jobs are depth", loads::jobs_are_depth),
    (
        "a write cache is not slower",
        hosts::a_write_cache_is_not_slower,
    ),
    ("write-back is not slower", hosts::write_back_is_not_slower),
    (
        "a faster bus is not slower",
        hosts::a_faster_bus_is_not_slower,
    ),
    (
        "a channel each is not slower",
        hosts::a_channel_each_is_not_slower,
    ),
    ("NVMe needs no scheduler", hosts::nvme_needs_no_scheduler),
    (
        "a faster processor is not slower",
        hosts::a_faster_processor_is_not_slower,
    ),
    (
        "more stripes are not slower",
        hosts::more_stripes_are_not_slower,
    ),
    (
        "more threads are not slower",
        hosts::more_threads_are_not_slower,
    ),
];

/// What a point breaks, in words.
pub(crate) fn broken(lab: &mut Lab, point: &Point, came: &Came) -> Vec<String> {
    let told = |(name, law): &(&str, Law)| {
        let what = law(lab, point, came)?.err()?;
        Some(format!("{name}: {what}"))
    };
    LAWS.iter().filter_map(told).collect()
}

/// Bytes that the buffers of all drives hold of what was read.
fn buffers(point: &Point) -> u64 {
    if point.overrides.starts_with("cache") {
        return point.disks as u64 * (1 << 20);
    }
    let disk = catalogue::find(MODELS[point.model].0).map(|model| model.disk);
    let each = match &disk {
        Ok(DiskModel::Hdd(model)) => {
            let cache = &model.spec.cache;
            u64::from(cache.segments) * cache.segment_sectors * SECTOR
        }
        _ => 0,
    };
    point.disks as u64 * each
}

/// `one` is at least `share` of `other`.
fn least(what: &str, one: f64, share: f64, other: f64) -> Verdict {
    Some(if one >= share * other {
        Ok(())
    } else {
        Err(format!(
            "{:.3} of {what} ({:.3} against {:.3} MB/s), at least {share:.2}",
            one / other,
            one / 1e6,
            other / 1e6
        ))
    })
}

/// `one` is at most `share` of `other`.
fn most(what: &str, one: f64, share: f64, other: f64) -> Verdict {
    Some(if one <= share * other {
        Ok(())
    } else {
        Err(format!(
            "{:.3} of {what} ({:.3} against {:.3} MB/s), at most {share:.2}",
            one / other,
            one / 1e6,
            other / 1e6
        ))
    })
}

/// The rate of another point, if it can be built.
fn rate(lab: &mut Lab, point: &Point) -> Option<f64> {
    lab.run(point).ok().map(|came| came.rate())
}
