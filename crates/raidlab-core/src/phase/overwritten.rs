//! How much of what a phase wrote was for other blocks than before: the rest can be overwritten in the page cache, and a device that
//! is flushed at the end has all and yet fewer bytes than were written.
use super::{Access, Phase};
use crate::flag::{Flag, FlagKind};
use crate::units::{Bytes, Extent};
use crate::workload::spec::{CallAction, Order, WorkloadSpec};

/// Share of a phase's bytes that may be missing at the device without a word: counters and metadata.
pub const PARTLY: f64 = 0.02;
/// Share of its bytes above which a cache served a phase: its figure is one of memory.
pub const SERVED: f64 = 0.9;

/// What a job writes where.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Writes {
    /// The data file and the part of it.
    place: (u32, Extent),
    block: u32,
    random: bool,
}

impl Phase {
    /// Of `written` bytes those that went to blocks which the phase had not written before: of random places, drawn with
    /// replacement, as many as are to be expected. All where that cannot be told.
    #[must_use]
    pub fn distinct_written(&self, written: u64) -> u64 {
        let Some(jobs) = self
            .jobs
            .iter()
            .map(|job| writes(&job.workload))
            .collect::<Option<Vec<_>>>()
        else {
            return written;
        };
        let Some(first) = jobs.first().filter(|first| first.block > 0) else {
            return written;
        };
        if jobs
            .iter()
            .any(|job| (job.block, job.random) != (first.block, first.random))
        {
            return written;
        }
        // Jobs that write in the same place overwrite each other's blocks.
        let mut places: Vec<(u32, Extent)> = Vec::new();
        for job in &jobs {
            if !places.contains(&job.place) {
                places.push(job.place);
            }
        }
        let block = u64::from(first.block);
        let blocks = places
            .iter()
            .map(|(_, part)| part.len.0 / block)
            .sum::<u64>() as f64;
        let done = written as f64 / block as f64;
        if blocks <= 1.0 {
            return written.min(block);
        }
        let distinct = if first.random {
            -blocks * libm::expm1(done * libm::log1p(-1.0 / blocks))
        } else {
            // Jobs that begin in several places may come to each other's blocks, or not.
            blocks
        };
        (distinct * block as f64).min(written as f64) as u64
    }

    /// What is to be said of a phase that wrote `claimed` bytes and flushed them, of which the device wrote `device`. A shortfall that is
    /// no more than what was overwritten in the page cache is told as that: a cache took these writes for the device. `None` where the
    /// device wrote them all, or less than overwriting explains.
    #[must_use]
    pub fn overwritten(&self, claimed: u64, device: u64) -> Option<Flag> {
        let distinct = self.distinct_written(claimed);
        let short = |of: u64| 1.0 - device as f64 / of.max(1) as f64;
        if self.access == Access::Direct || short(claimed) <= PARTLY || short(distinct) > PARTLY {
            return None;
        }
        let kind = if short(claimed) > SERVED {
            FlagKind::ServedFromCache
        } else {
            FlagKind::PartlyCached
        };
        let reason = format!(
            "the device wrote {} of {}: blocks were written several times, about {} are different ones, and the page cache took \
             what was overwritten before it was written back",
            Bytes(device),
            Bytes(claimed),
            Bytes(distinct)
        );
        Some(Flag::new(kind, reason))
    }
}

/// `None` where it cannot be told, or nothing is overwritten.
fn writes(workload: &WorkloadSpec) -> Option<Writes> {
    match workload {
        WorkloadSpec::Blocks(spec) => Some(Writes {
            place: (0, spec.region),
            block: spec.block,
            random: spec.order == Order::Random,
        }),
        WorkloadSpec::Calls(spec) if spec.action == CallAction::Write => Some(Writes {
            place: (spec.handle.file, Extent::new(0, spec.size.0)),
            block: spec.call,
            random: true,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
