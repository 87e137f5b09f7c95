//! Phases on a machine, as the measuring side runs them on a real one.
use super::{Load, Machine, RunError, Why};
use crate::host::fs::FsError;
use raidlab_core::drive::{DriveOptions, Driven, Lane, Monitor, Progress, Tally, drive};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::op::{FileId, FileOp, Op};
use raidlab_core::outcome::{CpuTime, DeviceBytes, PhaseOutcome};
use raidlab_core::phase::{Access, Evidence, PARTLY, Phase, SERVED, SHORTEST_PHASE};
use raidlab_core::target::{Tag, Target, TargetError};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_core::workload::Workload;
use raidlab_core::workload::spec::{AnyWorkload, Arrival, Blocks, WorkloadSpec};

/// Nothing ends for so long in no machine that is modelled rightly.
const STALL: Span = Span::from_secs(36_000);
/// How often the monitor is asked, in virtual time.
const POLL: Span = Span::from_millis(200);

/// What came of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseRun {
    /// As of a measurement: the same figures are computed from it.
    pub outcome: PhaseOutcome,
    /// What limited it.
    pub why: Why,
}

impl Machine {
    /// Runs a phase of [`plan`](Self::plan). `monitor` is asked now and then, and may end it.
    ///
    /// # Errors
    /// [`RunError`]: a device or file system that is too small, an operation that failed.
    pub fn run_phase(
        &mut self,
        phase: &Phase,
        monitor: &mut impl Monitor,
    ) -> Result<PhaseRun, RunError> {
        self.prepare(phase, monitor)?;
        self.begin_resilver(monitor)?;
        if phase.cold {
            self.empty_cache(phase)?;
        }
        self.host.set_direct(phase.access == Access::Direct);
        self.leaping.begin(&self.host);
        let (before, account) = (self.totals(), self.account());
        let held = (self.held_by_disks(), self.held_by_cards());
        let replaced = self.replaced_by_disks();
        let driven = self.drive(phase, monitor);
        self.kept = None;
        let driven = driven.map_err(|source| RunError::Drive {
            phase: phase.id.clone(),
            source,
        })?;
        let used = self.totals().since(&before, (1, 1));
        if !driven.interrupted && phase.ended_in_ramp(&driven.tallies) {
            return Err(RunError::EndedInRamp {
                phase: phase.id.clone(),
                ramp: phase.ramp,
            });
        }
        let mut outcome = PhaseOutcome::from_tallies(&phase.id, &driven.tallies);
        outcome.digest = phase.digest(self.seed);
        outcome.cpu = CpuTime {
            user: used.cpu.user,
            system: used.cpu.system,
            kernel_threads: Some(used.cpu.kernel),
        }
        .of_counted(phase.ramp, outcome.elapsed);
        let sum = |of: fn(&Tally) -> u64| driven.tallies.iter().map(of).sum::<u64>();
        let device = DeviceBytes {
            claimed_read: sum(|t| t.bytes_read),
            claimed_written: sum(|t| t.bytes_written),
            device_read: used.device.read,
            device_written: used.device.written,
        };
        outcome.device = Some(device);
        let at_disks = AtDisks {
            taken: used.written,
            // What was there before and is not any more has gone to the media, unless it was replaced.
            held: self
                .held_by_disks()
                .saturating_sub(held.0.saturating_sub(self.replaced_by_disks() - replaced)),
            by_cards: self.held_by_cards().saturating_sub(held.1),
            of: device.device_written,
        };
        outcome.flags = flags(phase, &outcome, &device, &at_disks, driven.interrupted);
        let load = Load {
            in_flight: outcome.mean_in_flight,
            open: phase.jobs.iter().any(|job| is_open(&job.workload)),
        };
        let why = Why::between(&account, &self.account(), load);
        Ok(PhaseRun { outcome, why })
    }

    /// Bytes that disks have acknowledged and not written: in caches that forget them without power.
    fn held_by_disks(&self) -> u64 {
        let disks = self.host.device().disks();
        disks.map(|disk| disk.unwritten() * SECTOR).sum()
    }

    /// Bytes that took the place of others in the caches of disks so far.
    fn replaced_by_disks(&self) -> u64 {
        let disks = self.host.device().disks();
        disks
            .map(|disk| disk.counters().sectors_replaced * SECTOR)
            .sum()
    }

    /// Bytes that controllers have acknowledged and their disks have not got.
    fn held_by_cards(&self) -> u64 {
        self.host.device().fabric().unwritten() * SECTOR
    }

    /// Drives the jobs; block workloads by themselves, which are the fast ones.
    fn drive(
        &mut self,
        phase: &Phase,
        monitor: &mut impl Monitor,
    ) -> Result<Driven, raidlab_core::drive::DriveError> {
        let options = DriveOptions {
            ramp: phase.ramp,
            stall: STALL,
            poll: POLL,
        };
        let jobs = phase.jobs.iter().enumerate();
        let built = jobs.map(|(number, job)| {
            let stream = phase.stream(self.seed, number);
            (job.workload.build(stream), job.depth.max(1))
        });
        let built: Vec<(AnyWorkload, u32)> = built.collect();
        let blocks = |(workload, depth): &(AnyWorkload, u32)| match workload {
            AnyWorkload::Blocks(blocks) => Some(lane::<Blocks>(blocks.clone(), *depth)),
            _ => None,
        };
        if let Some(mut lanes) = built.iter().map(blocks).collect::<Option<Vec<_>>>() {
            return drive(&mut lanes, self, &options, monitor);
        }
        let lanes = built
            .into_iter()
            .map(|(workload, depth)| lane(workload, depth));
        drive(&mut lanes.collect::<Vec<_>>(), self, &options, monitor)
    }

    /// Removes the data files that must not be there and makes those that must: written before, and on the device
    /// ([`Host::provide`](crate::host::Host::provide)).
    pub(super) fn prepare(
        &mut self,
        phase: &Phase,
        monitor: &mut impl Monitor,
    ) -> Result<(), RunError> {
        let needs = &phase.needs;
        if !self.directory {
            let size = Bytes(self.host.device().sectors() * SECTOR);
            let needed = needs.iter().map(|need| need.size).max();
            return match needed.filter(|needed| *needed > size) {
                Some(needed) => Err(RunError::TooSmall {
                    phase: phase.id.clone(),
                    needed,
                    size,
                }),
                None => Ok(()),
            };
        }
        let there = phase
            .fresh
            .iter()
            .any(|file| self.host.file_size(*file) > 0);
        for &file in &phase.fresh {
            self.remove(phase, file)?;
        }
        // As on the host (`prepare.rs:settle`). Of btrfs it is free for the phase then, which it is only with the next transaction.
        if there && self.settles && phase.evidence != Evidence::None {
            self.sync(phase)?;
        }
        for need in needs.iter().filter(|need| need.size.0 > 0) {
            if self.host.file_size(need.file) >= need.size.0 {
                continue;
            }
            self.remove(phase, need.file)?;
            let before = self.unbegun();
            let laid = self
                .host
                .provide_watched(need.file, need.size.0, &mut || monitor.poll(before));
            let laid = laid.map_err(|source: FsError| RunError::Prepare {
                phase: phase.id.clone(),
                file: need.file,
                source,
            })?;
            if laid.is_break() {
                return Err(RunError::Interrupted);
            }
        }
        Ok(())
    }

    /// What a monitor is told before anything of a phase has been done.
    pub(super) fn unbegun(&self) -> Progress {
        Progress {
            now: self.now(),
            elapsed: Span::ZERO,
            ops: 0,
            bytes: 0,
        }
    }

    fn remove(&mut self, phase: &Phase, file: FileId) -> Result<(), RunError> {
        if self.host.file_size(file) == 0 {
            return Ok(());
        }
        self.call(phase, FileOp::Remove { file })
    }

    /// One call of a process before the phase.
    fn call(&mut self, phase: &Phase, op: FileOp) -> Result<(), RunError> {
        let broken = |source: TargetError| RunError::Drive {
            phase: phase.id.clone(),
            source: source.into(),
        };
        let mut done = Vec::new();
        self.submit(Tag(0), Op::File(op)).map_err(broken)?;
        while done.is_empty() {
            self.wait(None, &mut done).map_err(broken)?;
        }
        match done.first().map(|end| end.result) {
            Some(Err(errno)) => Err(RunError::Call {
                phase: phase.id.clone(),
                errno,
            }),
            _ => Ok(()),
        }
    }

    fn sync(&mut self, phase: &Phase) -> Result<(), RunError> {
        self.host.sync().map_err(|errno| RunError::Call {
            phase: phase.id.clone(),
            errno,
        })
    }

    /// Takes what the phase reads out of the page cache, once it is on the device.
    fn empty_cache(&mut self, phase: &Phase) -> Result<(), RunError> {
        self.sync(phase)?;
        phase
            .needs
            .iter()
            .for_each(|need| self.host.evict(need.file));
        Ok(())
    }
}

const fn lane<W: Workload>(workload: W, depth: u32) -> Lane<W> {
    Lane { workload, depth }
}

/// Whether the operations come at times of their own.
fn is_open(workload: &WorkloadSpec) -> bool {
    matches!(workload, WorkloadSpec::Blocks(spec) if spec.arrival != Arrival::Closed)
}

/// What of a phase's writes came to the disks: bytes that they took, and by how much more they held in their caches at
/// its end than of what they held at its beginning; the same of caches of controllers, and what these were given.
struct AtDisks {
    taken: u64,
    held: u64,
    by_cards: u64,
    of: u64,
}

impl AtDisks {
    /// As fast as electronics took it, and not as disks write: a longer phase has another rate.
    fn unflushed(&self, phase: &Phase) -> Option<Flag> {
        let partly = |held: u64, of: u64| held as f64 > PARTLY * of.max(1) as f64;
        let (held, of, whose) = if partly(self.by_cards, self.of) {
            let whose = "that were written were still in the controller's cache";
            (self.by_cards, self.of, whose)
        } else if partly(self.held, self.taken) {
            let whose = "that the disks took were still in their caches";
            (self.held, self.taken, whose)
        } else {
            return None;
        };
        // What a phase did before it was timed may have filled them, too.
        if phase.ramp > Span::ZERO {
            return None;
        }
        let (held, of) = (Bytes(held), Bytes(of));
        let reason = format!("{held} of {of} {whose} when the clock stopped");
        Some(Flag::new(FlagKind::Unflushed, reason))
    }
}

/// Doubts that a modelled phase can have, worded and bounded as those of a measured one.
fn flags(
    phase: &Phase,
    outcome: &PhaseOutcome,
    device: &DeviceBytes,
    at_disks: &AtDisks,
    interrupted: bool,
) -> Vec<Flag> {
    let mut flags = Vec::new();
    if outcome.elapsed < SHORTEST_PHASE {
        let (took, least) = (outcome.elapsed.as_secs_f64(), SHORTEST_PHASE.as_secs_f64());
        let reason = format!("it took {took:.3} s, less than {least} s");
        flags.push(Flag::new(FlagKind::TooShort, reason));
    }
    let (reads, writes) = match phase.evidence {
        Evidence::ReadsReachDevice => (true, false),
        Evidence::WritesReachDevice => (false, true),
        Evidence::Both => (true, true),
        Evidence::None => (false, false),
    };
    let missing = |claimed: u64, moved: u64| match claimed {
        0 => 0.0,
        claimed => 1.0 - moved as f64 / claimed as f64,
    };
    let share = missing(device.claimed_read, device.device_read);
    if reads && share > PARTLY {
        let kind = if share > SERVED {
            FlagKind::ServedFromCache
        } else {
            FlagKind::PartlyCached
        };
        let (read, of) = (Bytes(device.device_read), Bytes(device.claimed_read));
        flags.push(Flag::new(kind, format!("the device read {read} of {of}")));
    }
    let overwritten = phase.overwritten(device.claimed_written, device.device_written);
    if let Some(flag) = overwritten.filter(|_| writes) {
        flags.push(flag);
    } else if writes && missing(device.claimed_written, device.device_written) > PARTLY {
        let (written, of) = (Bytes(device.device_written), Bytes(device.claimed_written));
        let reason = format!("{written} of {of} had reached the device when the clock stopped");
        flags.push(Flag::new(FlagKind::Unflushed, reason));
    } else if writes {
        flags.extend(at_disks.unflushed(phase));
    }
    flags.extend(phase.not_reached(outcome));
    if interrupted {
        let reason = "it was stopped before its end";
        flags.push(Flag::new(FlagKind::Interrupted, reason));
    }
    flags
}
