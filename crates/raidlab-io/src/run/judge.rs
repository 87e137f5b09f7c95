//! The counters around a phase, and what they say about it.
use super::RunOptions;
use super::error::RunError;
use super::jobs::Ran;
use super::place::Place;
use crate::observe::cache::{Eviction, residency};
use crate::observe::cpu::{CpuSnapshot, CpuUse};
use crate::observe::diskstats::Snapshot;
use crate::observe::environment::Environment;
use crate::observe::evidence::{self, judge};
use crate::observe::fitness::{ArrayState, array_states};
use crate::observe::lazyinit::{Initialising, initialising};
use crate::observe::link::stack_limit;
use crate::observe::neighbours::{Neighbour, come, neighbours};
use crate::observe::{Backing, Holes, Resolved, Roots};
use raidlab_core::data::DataPolicy;
use raidlab_core::drive::Tally;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::outcome::{CpuTime, DeviceBytes, PhaseOutcome};
use raidlab_core::phase::{Access, Evidence, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::workload::spec::{FilesAction, WorkloadSpec};
use std::time::Duration;

/// The counters at the beginning of a phase.
pub(super) struct Watch {
    roots: Roots,
    cpu: CpuSnapshot,
    disks: Snapshot,
    neighbours: Vec<Neighbour>,
    initialising: Option<Initialising>,
    resident: Option<f64>,
    holes: Option<Holes>,
}

impl Watch {
    /// Notes the counters; the jobs must not have begun.
    pub(super) fn begin(phase: &Phase, place: &Place) -> Result<Self, RunError> {
        let roots = Roots::system();
        let cpu = CpuSnapshot::take(&roots)?;
        Ok(Self {
            resident: resident(phase, place),
            holes: holes(&roots, phase, place.resolved()),
            initialising: initialising(&roots, place.resolved(), &cpu),
            cpu,
            neighbours: beside(&roots, place),
            disks: Snapshot::take(&roots)?,
            roots,
        })
    }

    /// Notes the counters again and judges what came of the phase.
    pub(super) fn end(
        mut self,
        phase: &Phase,
        place: &Place,
        options: &RunOptions,
        evictions: &[Eviction],
        mut ran: Ran,
    ) -> Result<PhaseOutcome, RunError> {
        let disks = Snapshot::take(&self.roots)?.since(&self.disks);
        let cpu = CpuSnapshot::take(&self.roots)?.since(&self.cpu);
        ran.release();
        let mut outcome = PhaseOutcome::from_tallies(&phase.id, &ran.tallies);
        outcome.digest = phase.digest(options.seed);
        outcome.cpu = cpu_time(&ran, &cpu).of_counted(phase.ramp, outcome.elapsed);
        let sum = |of: fn(&Tally) -> u64| ran.tallies.iter().map(of).sum::<u64>();
        let claimed = (sum(|t| t.bytes_read), sum(|t| t.bytes_written));
        let stack = place.resolved().stack();
        let moved = stack.and_then(|stack| evidence::moved(&disks, stack));
        outcome.device = moved.map(|(device_read, device_written)| DeviceBytes {
            claimed_read: claimed.0,
            claimed_written: claimed.1,
            device_read,
            device_written,
        });
        let mut known = evidence::Evidence {
            claimed_read: claimed.0,
            claimed_written: claimed.1,
            distinct_written: Some(phase.distinct_written(claimed.1)),
            wall: (phase.ramp + outcome.elapsed).to_std(),
            ramp: phase.ramp.to_std(),
            direct: phase.access == Access::Direct,
            warm: !matches!(phase.evidence, Evidence::ReadsReachDevice | Evidence::Both),
            flushed: matches!(phase.evidence, Evidence::WritesReachDevice | Evidence::Both),
            holes: self.holes.take(),
            holes_are_own: place.is_writable(),
            resident_before: self.resident,
            resident_after: self.resident.and_then(|_| resident(phase, place)),
            link: stack.and_then(|stack| stack_limit(&self.roots, stack)),
            generator: ran.cpu.iter().map(|cpu| cpu.total()).collect(),
            generator_is_subject: place.is_null() || phase.evidence == Evidence::None,
            cpus: std::thread::available_parallelism()
                .ok()
                .and_then(|n| u32::try_from(n.get()).ok()),
            arrays: arrays(&self.roots, place),
            ..evidence::Evidence::default()
        }
        .with_cpu(&cpu);
        if let Some(stack) = stack {
            come(&mut self.neighbours, &self.roots, stack);
            known = known.with_devices(&disks, stack, &self.neighbours);
        }
        let beside_small = small_files(phase, sum(|t| t.all_ops))
            .and_then(|of| evidence::beside_small_files(&known, of));
        leave_to_the_caches(&mut known, phase.evidence);
        let overwritten = overwritten(phase, &known);
        let disk_is_measured = phase.evidence != Evidence::None;
        outcome.flags = ran.flags;
        outcome
            .flags
            .extend(submitted_again(sum(|t| t.again), sum(|t| t.all_ops)));
        outcome.flags.extend(judge(&known));
        outcome.flags.extend(overwritten);
        outcome.flags.extend(beside_small);
        outcome.flags.extend(
            self.initialising
                .filter(|_| disk_is_measured)
                .map(unwritten),
        );
        outcome.flags.extend(not_cold(evictions));
        outcome.flags.extend(phase.not_reached(&outcome));
        outcome
            .flags
            .extend(compressible(place, options.data, claimed));
        outcome.flags.extend(in_memory(phase, place));
        if claimed.0 > 0 {
            outcome
                .flags
                .extend(served_elsewhere(phase.evidence, place.resolved()));
        }
        if ran.interrupted {
            outcome.flags.push(Flag::new(
                FlagKind::Interrupted,
                "it was stopped before its end",
            ));
        }
        Ok(outcome)
    }
}

/// What was put off is in the figures, as the user waited for it.
fn submitted_again(again: u64, ops: u64) -> Option<Flag> {
    (again > 0).then(|| {
        let times = if again == 1 {
            "once".to_owned()
        } else {
            format!("{again} times")
        };
        let reason = format!(
            "operations were put off by the device (EAGAIN) {times}, of {ops} in all, and submitted again for the kernel to wait: \
             response times count from the first time on"
        );
        Flag::new(FlagKind::Other, reason).remark()
    })
}

/// Who else takes from the devices of a place. Of one that goes in mid-phase nobody knows what it was asked for.
fn beside(roots: &Roots, place: &Place) -> Vec<Neighbour> {
    let stack = place.resolved().stack();
    stack.map_or_else(Vec::new, |stack| neighbours(roots, stack))
}

/// Device counters say nothing about bytes that the caches may keep.
fn leave_to_the_caches(known: &mut evidence::Evidence, wanted: Evidence) {
    if wanted == Evidence::None {
        (known.device_read, known.device_written) = (None, None);
        known.requests = None;
        known.beneath.clear();
    }
    if wanted == Evidence::ReadsReachDevice && known.claimed_written > 0 {
        known.device_written = None;
    }
}

/// What a file system may have to write for the small files of a phase; `None` where it has others.
fn small_files(phase: &Phase, operations: u64) -> Option<evidence::SmallFiles> {
    let of = |job: &Job| match job.workload {
        WorkloadSpec::Files(spec) => Some(match spec.action {
            FilesAction::Stat => evidence::SmallFiles::SEEN,
            _ if spec.sync_each => evidence::SmallFiles::DURABLE,
            _ => evidence::SmallFiles::CHANGED,
        }),
        _ => None,
    };
    let each: Option<Vec<u64>> = phase.jobs.iter().map(of).collect();
    Some(evidence::SmallFiles {
        files: operations,
        each: each?.into_iter().max()?,
    })
}

/// What the page cache took of flushed writes, as it was overwritten there.
fn overwritten(phase: &Phase, known: &evidence::Evidence) -> Option<Flag> {
    let device = known.device_written.filter(|_| known.flushed)?;
    phase.overwritten(known.claimed_written, device)
}

/// The jobs' threads, and the kernel's io_uring workers that worked for them.
fn cpu_time(ran: &Ran, cpu: &CpuUse) -> CpuTime {
    let workers: Duration = cpu
        .threads
        .iter()
        .filter(|thread| thread.name.starts_with("iou-"))
        .map(|thread| thread.cpu)
        .sum();
    CpuTime {
        user: Span::from(ran.cpu.iter().map(|cpu| cpu.user).sum::<Duration>()),
        system: Span::from(ran.cpu.iter().map(|cpu| cpu.system).sum::<Duration>() + workers),
        kernel_threads: Some(Span::from(cpu.kernel_total())),
    }
}

/// Share of the extent in the page cache, where direct I/O should leave it alone.
fn resident(phase: &Phase, place: &Place) -> Option<f64> {
    (phase.access == Access::Direct && !place.is_null())
        .then(|| residency(&place.way(0)).ok())
        .flatten()
}

/// Holes in what a phase reads of a given file, or of what a loop device shows.
pub(super) fn holes(roots: &Roots, phase: &Phase, resolved: &Resolved) -> Option<Holes> {
    matches!(phase.evidence, Evidence::ReadsReachDevice | Evidence::Both)
        .then(|| Holes::find(roots, resolved, phase.used()))?
}

fn arrays(roots: &Roots, place: &Place) -> Vec<ArrayState> {
    let any = place
        .resolved()
        .stack()
        .is_some_and(|stack| stack.names().any(|name| name.starts_with("md")));
    if !any {
        return Vec::new();
    }
    Environment::capture(roots, Some(place.resolved()))
        .ok()
        .and_then(|found| found.target)
        .map(|target| array_states(&target.devices))
        .unwrap_or_default()
}

/// What the kernel writes of a new file system is beside the phase, and not in a bigger one's bytes.
fn unwritten(initialising: Initialising) -> Flag {
    Flag::new(FlagKind::ForeignIo, initialising.to_string())
}

fn not_cold(evictions: &[Eviction]) -> Option<Flag> {
    let worst = evictions.iter().filter(|eviction| !eviction.proved);
    let worst = worst
        .map(|eviction| eviction.resident_after)
        .max_by(|a, b| a.unwrap_or(2.0).total_cmp(&b.unwrap_or(2.0)))?;
    Some(match worst {
        Some(share) => Flag::new(
            FlagKind::NotCold,
            format!(
                "{:.1} % of the file stayed in the page cache",
                share * 100.0
            ),
        ),
        None => Flag::new(
            FlagKind::NotCold,
            "the cache was emptied, but the kernel does not tell what is left in it",
        ),
    })
}

/// Counters of a disk are not there to find it out: a figure of memory must not pass for one of a disk. A remark, for memory
/// may be what somebody wants to know.
fn in_memory(phase: &Phase, place: &Place) -> Option<Flag> {
    let resolved = place.resolved();
    (resolved.in_memory() && !place.is_null() && phase.evidence != Evidence::None).then(|| {
        let what = resolved.mount.as_ref().map(|mount| &mount.fs_type[..]);
        let what = what.unwrap_or("a device in memory");
        let reason = format!("the place is in memory ({what}): no disk was measured");
        Flag::new(FlagKind::ServedFromCache, reason).remark()
    })
}

/// What serves a file system over a network or by a program has a cache of its own, which nobody here empties or counts.
fn served_elsewhere(wanted: Evidence, resolved: &Resolved) -> Option<Flag> {
    let Backing::None { in_memory, .. } = &resolved.backing else {
        return None;
    };
    let fs_type = &resolved.mount.as_ref()?.fs_type;
    let wanted = matches!(wanted, Evidence::ReadsReachDevice | Evidence::Both);
    // ZFS is of this kernel, and has words of its own.
    (wanted && !in_memory && fs_type != "zfs").then(|| {
        let reason = format!(
            "no disk is seen beneath {fs_type}: what serves it may have answered from its own memory, and nothing here tells"
        );
        Flag::new(FlagKind::NotCold, reason).remark()
    })
}

/// File systems that may compress; others never do.
fn compressible(place: &Place, data: DataPolicy, claimed: (u64, u64)) -> Option<Flag> {
    let compresses = |name: &str| matches!(name, "btrfs" | "zfs" | "bcachefs" | "f2fs");
    let mount = place.resolved().mount.as_ref()?;
    (data != DataPolicy::Seeded && claimed != (0, 0) && compresses(&mount.fs_type)).then(|| {
        Flag::new(
            FlagKind::Compressible,
            format!("the data is {data} and {} may compress it", mount.fs_type),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::PathKind;
    use crate::observe::mountinfo;

    #[test]
    fn what_another_machine_or_program_serves_is_told() {
        let of = |fs_type: &str, evidence: Evidence, in_memory: bool| {
            let line = format!("30 1 0:50 / /mnt rw - {fs_type} server:/export rw\n");
            let resolved = Resolved {
                path: "/mnt".into(),
                kind: PathKind::Directory,
                mount: mountinfo::parse(&line).expect("a mount").pop(),
                backing: Backing::None {
                    reason: String::new(),
                    in_memory,
                },
            };
            served_elsewhere(evidence, &resolved)
        };
        for fs_type in ["nfs4", "fuse.sshfs", "cifs"] {
            let flag = of(fs_type, Evidence::Both, false).expect("a doubt");
            assert!(!flag.voids && flag.reason.contains(fs_type), "{flag}");
        }
        assert_eq!(
            of("nfs4", Evidence::None, false),
            None,
            "the cache is meant"
        );
        assert_eq!(of("tmpfs", Evidence::Both, true), None, "told as memory");
        assert_eq!(of("zfs", Evidence::Both, false), None);
    }
}
