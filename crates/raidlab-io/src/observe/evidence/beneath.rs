//! What a phase's bytes came to beneath files and loop devices: holes that no disk is read for, and the page cache of the files that loop
//! devices show.
use super::{Evidence, PARTLY, SERVED, SLACK, hit_share, size};
use crate::observe::diskstats::Difference;
use crate::observe::stack::{DeviceKind, DeviceStack, StackDevice};
use raidlab_core::flag::{Flag, FlagKind};

/// Bytes written through loop devices that have the page cache beneath them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Through {
    /// That they were asked for.
    pub asked: u64,
    /// That the devices beneath their files wrote.
    pub written: u64,
}

impl Through {
    /// Of a stack's loop devices; `None` when there are none, or what lies beneath them was not counted. Those that go past the page
    /// cache are left out, with what they wrote to the same disks.
    pub(super) fn of(difference: &Difference, stack: &DeviceStack) -> Option<Self> {
        let loops = |past_cache: bool| {
            let is_one = move |device: &&StackDevice| {
                matches!(device.kind, DeviceKind::Loop { .. }) && device.past_cache == past_cache
            };
            stack.devices.iter().filter(is_one)
        };
        let wrote = |name: &str| Some(difference.sum([name])?.1);
        let mut beneath: Vec<&str> = loops(false)
            .flat_map(|device| device.below.iter().map(String::as_str))
            .collect();
        beneath.sort_unstable();
        beneath.dedup();
        let counted = |name: &&str| {
            let device = stack.device(name);
            device.is_some_and(|device| device.counted != Some(false))
        };
        if beneath.is_empty() || !beneath.iter().all(counted) {
            return None;
        }
        let mut through = Self::default();
        for device in loops(false) {
            // In memory nothing is to be written.
            if !device.below.is_empty() {
                through.asked += wrote(&device.name)?;
            }
        }
        for name in &beneath {
            through.written += wrote(name)?;
        }
        for past in
            loops(true).filter(|past| past.below.iter().any(|on| beneath.contains(&&on[..])))
        {
            through.written = through.written.saturating_sub(wrote(&past.name)?);
        }
        Some(through)
    }
}

/// Whether so much of what is read are holes that a shortfall of the device's bytes says nothing of the page cache.
pub(super) fn has_holes(e: &Evidence) -> bool {
    e.holes.as_ref().is_some_and(|holes| holes.share > PARTLY)
}

/// Above a few per cent they void the figure: not where the disk was seen to be read for all, so that the phase did not come to them,
/// and not of devices that raidlab was given to write to: arrays of loop files are made to see what software costs.
pub(super) fn holes(e: &Evidence) -> Option<Flag> {
    const WORTH_TELLING: f64 = 0.001;
    let holes = e.holes.as_ref()?;
    if e.claimed_read == 0 || e.warm || holes.share < WORTH_TELLING {
        return None;
    }
    let disk = e.beneath_read.or(e.device_read);
    let share = disk.and_then(|disk| hit_share(e.claimed_read, disk));
    let all_read = share.is_some_and(|share| share <= PARTLY);
    let flag = Flag::new(FlagKind::Sparse, holes.to_string());
    let voids = has_holes(e) && !all_read && !e.holes_are_own;
    Some(if voids { flag } else { flag.remark() })
}

/// A loop device counts what it was asked for, also when the page cache holds the file that it shows. A remark: arrays
/// of loop files are made to see what software costs.
pub(super) fn read_beneath_loops(e: &Evidence) -> Option<Flag> {
    let (device, beneath) = e.device_read.zip(e.beneath_read)?;
    let share = hit_share(e.claimed_read, beneath)?;
    let seen = hit_share(e.claimed_read, device)? <= SERVED;
    if e.warm || has_holes(e) || !seen || share <= PARTLY || e.claimed_read < SLACK {
        return None;
    }
    let kind = if share > SERVED {
        FlagKind::ServedFromCache
    } else {
        FlagKind::PartlyCached
    };
    let reason = format!(
        "{} were read through loop devices, and {} from the disk beneath: the page cache held their files",
        size(e.claimed_read),
        size(beneath)
    );
    Some(Flag::new(kind, reason).remark())
}

/// The same of writes: a loop device counts them when the page cache has taken them for the file that it shows.
pub(super) fn written_beneath_loops(e: &Evidence) -> Option<Flag> {
    let (device, through) = e.device_written.zip(e.through_loops)?;
    let share = hit_share(through.asked, through.written)?;
    // What was overwritten in memory was not to come to the device.
    let seen = hit_share(e.distinct_written.unwrap_or(e.claimed_written), device)? <= PARTLY;
    if !seen || share <= PARTLY || through.asked < SLACK {
        return None;
    }
    let reason = format!(
        "{} were written through loop devices, and {} to the disk beneath: the rest is in the page cache of their files",
        size(through.asked),
        size(through.written)
    );
    Some(Flag::new(FlagKind::Unflushed, reason).remark())
}

#[cfg(test)]
#[path = "../tests/beneath.rs"]
mod tests;
