//! The simulator behind a trial: a machine is built, and runs the phases of its cell.
use super::run::{Simulate, Simulated};
use crate::bench::of_phase;
use crate::exit::Failure;
use raidlab_core::drive::{Monitor, Progress as Driving};
use raidlab_core::profile::Plan;
use raidlab_core::rng::mix;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{GIB, SECTOR};
use raidlab_experiment::setup::{ArrayState, Engine, Setup};
use raidlab_experiment::{Cell, Experiment};
use raidlab_results::record::{BusyPart, Explained, Figure, MemberIo, PhaseRecord, Resource, Unit};
use raidlab_sim::block::ResourceKind;
use raidlab_sim::machine::{Machine, Models, Resynced, RunError, Why};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Machines of an experiment's cells.
pub(super) struct Machines<'e> {
    experiment: &'e Experiment,
    models: Models,
    fast_forward: bool,
}

/// Whether two cells have the same machine; a pool or array of btrfs that rebuilds has files by the profile, too.
fn same_machine(a: &Setup, b: &Setup) -> bool {
    let same = a.array == b.array && a.host == b.host && a.filesystem == b.filesystem;
    same && (!matches!(a.array.state, ArrayState::Rebuilding(_)) || a.profile == b.profile)
}

impl<'e> Machines<'e> {
    pub(super) fn new(experiment: &'e Experiment, fast_forward: bool) -> Self {
        Self {
            models: Models::of(&experiment.disks),
            experiment,
            fast_forward,
        }
    }

    /// Whether there is a model of every cell, before the first is run.
    ///
    /// # Errors
    /// Names the cells without one, and why; of those with the same reason the first.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.unpredictable() {
            None => Ok(()),
            Some(message) => Err(Failure::bad_request(message).remedy(self.instead())),
        }
    }

    /// What to do with cells that cannot be predicted.
    fn instead(&self) -> &'static str {
        let seed = self.experiment.design.seed;
        // What else is wrong with a cell is wrong wherever it runs.
        let no_model = |cell| Machine::build_of(self.experiment, &self.models, cell, seed).is_err();
        if self.experiment.cells.iter().any(no_model) {
            "leave them out with --only, or measure them with --on vm or --on host"
        } else {
            "leave them out with --only"
        }
    }

    /// Which cells cannot be predicted, and why; `None` when all can be.
    pub(super) fn unpredictable(&self) -> Option<String> {
        let cells = &self.experiment.cells;
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        // A profile has been planned when the file was read: what a machine cannot do lies in the rest.
        let mut built: Vec<&Setup> = Vec::new();
        for cell in cells {
            let setup = &cell.setup;
            if built.iter().any(|known| same_machine(known, setup)) {
                continue;
            }
            let Err(reason) = self.planned(cell, self.experiment.design.seed) else {
                built.push(setup);
                continue;
            };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, labels)) => labels.push(&cell.label),
                None => reasons.push((reason, vec![&cell.label])),
            }
        }
        if reasons.is_empty() {
            return None;
        }
        let without: usize = reasons.iter().map(|(_, labels)| labels.len()).sum();
        let mut message = format!("{without} of {} cells cannot be predicted", cells.len());
        for (reason, labels) in &reasons {
            let more = match labels.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            message.push_str(&format!("\n  {}{more}: {reason}", labels[0]));
        }
        Some(message)
    }

    /// The machine of a cell, and what is run on it.
    fn planned(&self, cell: &Cell, seed: u64) -> Result<(Machine, Plan), String> {
        let built = Machine::build_of(self.experiment, &self.models, cell, seed);
        let machine = built.map_err(|error| error.to_string())?;
        let plan = machine.plan().map_err(|error| error.to_string())?;
        if machine.awaits_resilver() && machine.allocated(&plan).0 == 0 {
            return Err(RunError::NothingAllocated.to_string());
        }
        Ok((machine, plan))
    }

    fn run(&self, cell: &Cell, seed: u64, stop: &AtomicBool) -> Result<Simulated, String> {
        let (mut machine, plan) = self.planned(cell, seed)?;
        machine.set_fast_forward(self.fast_forward);
        let mut came = Simulated {
            flags: plan.flags.clone(),
            ..Simulated::default()
        };
        let mut watch = Watch(stop);
        let settled = machine.settle(&plan, &mut watch);
        settled.map_err(|error| error.to_string())?;
        let begun = resync(&machine);
        for phase in &plan.phases {
            if watch.0.load(Ordering::Relaxed) {
                break;
            }
            let before = disks(&machine, cell);
            let run = match machine.run_phase(phase, &mut watch) {
                Ok(run) => run,
                Err(error) => {
                    came.failed = Some(error.to_string());
                    break;
                }
            };
            came.digest = mix(came.digest.rotate_left(7) ^ run.outcome.digest);
            let members = since(&before, disks(&machine, cell));
            let explained = explained(&run.why, run.outcome.elapsed, members);
            let mut recorded = of_phase(run.outcome, phase);
            recorded.whole.explained = Some(explained);
            came.phases.push(recorded.whole);
            came.parts.extend(recorded.parts);
        }
        came.elapsed = machine.now().since(Instant::ZERO);
        // A resilver of little may have ended beside the load.
        let ended = machine.resilvered().zip(begun).map(|(at, begun)| Reached {
            at,
            done: begun.total,
            ..begun
        });
        let now = resync(&machine).or(ended);
        drop(machine);
        if let (Some(begun), Some(now)) = (begun, now)
            && !stop.load(Ordering::Relaxed)
        {
            let alone = self.alone(cell, seed, &mut watch, now.done * SECTOR)?;
            if let Some((alone, there)) = alone {
                came.phases.push(rebuild(&alone, there, begun, now));
            }
        }
        Ok(came)
    }

    /// A resync or rebuild by itself, and the bytes a second at which it goes through the first `bytes`. It starts anew: how long the
    /// array is without its redundancy is a result, too.
    fn alone(
        &self,
        cell: &Cell,
        seed: u64,
        watch: &mut Watch<'_>,
        bytes: u64,
    ) -> Result<Option<(Resynced, Option<f64>)>, String> {
        let bytes = bytes.max(STEADY);
        let rested = |watch: &mut Watch<'_>| {
            let (mut machine, plan) = self.planned(cell, seed)?;
            machine.set_fast_forward(self.fast_forward);
            let settled = machine.settle(&plan, watch);
            settled.map_err(|error| error.to_string())?;
            Ok::<_, String>(machine)
        };
        let (mut machine, mut there) = (rested(watch)?, None);
        // What is never leapt through shows on its way what it does first, and to lay out its files again takes seconds.
        if !matches!(cell.setup.array.engine, Engine::Zfs | Engine::Btrfs) {
            there = pace_alone(machine, bytes, watch);
            machine = rested(watch)?;
            let alone = machine.run_resync(|driving| watch.poll(driving));
            return Ok(alone.map(|alone| (alone, there)));
        }
        let alone = machine.run_resync(|driving| {
            if there.is_none() && driving.bytes >= bytes && driving.elapsed > Span::ZERO {
                there = Some(driving.bytes as f64 / driving.elapsed.as_secs_f64());
            }
            watch.poll(driving)
        });
        Ok(alone.map(|alone| {
            let there = there.unwrap_or(alone.rate());
            (alone, Some(there))
        }))
    }
}

impl Simulate for Machines<'_> {
    fn trial(&self, cell: &Cell, seed: u64, stop: &AtomicBool) -> Option<Simulated> {
        let came = self.run(cell, seed, stop);
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        Some(came.unwrap_or_else(|reason| Simulated {
            failed: Some(reason),
            ..Simulated::default()
        }))
    }
}

/// Ends a phase when the user wants to stop.
struct Watch<'s>(&'s AtomicBool);

impl Monitor for Watch<'_> {
    fn poll(&mut self, _: Driving) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// What the disks have done so far.
fn disks(machine: &Machine, cell: &Cell) -> Vec<MemberIo> {
    let names = &cell.setup.array.members;
    let disks = machine.host().device().disks().enumerate();
    disks
        .map(|(index, disk)| {
            let counters = disk.counters();
            MemberIo {
                disk: names
                    .get(index)
                    .cloned()
                    .unwrap_or_else(|| index.to_string()),
                model: disk.model().name().to_owned(),
                reads: counters.reads,
                writes: counters.writes,
                read_bytes: counters.sectors_read * SECTOR,
                written_bytes: counters.sectors_written * SECTOR,
            }
        })
        .collect()
}

fn since(before: &[MemberIo], mut now: Vec<MemberIo>) -> Vec<MemberIo> {
    for (now, then) in now.iter_mut().zip(before) {
        now.reads -= then.reads;
        now.writes -= then.writes;
        now.read_bytes -= then.read_bytes;
        now.written_bytes -= then.written_bytes;
    }
    now
}

fn explained(why: &Why, elapsed: Span, members: Vec<MemberIo>) -> Explained {
    let Why { shares, sentence } = why;
    let elapsed = elapsed.0 as f64;
    let nanos = |time: f64| time.max(0.0) as u64;
    let resources = shares.iter().map(|share| {
        let busy = share.busy * elapsed * f64::from(share.units.max(1));
        let parts = share.parts.iter().map(|(name, part)| BusyPart {
            name: (*name).to_owned(),
            ns: nanos(part * busy),
        });
        Resource {
            name: share.title(),
            kind: kind(share.kind).to_owned(),
            units: share.units,
            busy_ns: nanos(busy),
            parts: parts.collect(),
        }
    });
    Explained {
        why: sentence.clone(),
        resources: resources.collect(),
        members,
    }
}

fn kind(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Disk => "disk",
        ResourceKind::Electronics => "electronics",
        ResourceKind::Channel => "channel",
        ResourceKind::Bus => "bus",
        ResourceKind::Controller => "controller",
        ResourceKind::Volume => "volume",
        ResourceKind::Cpu => "cpu",
        ResourceKind::Thread => "thread",
    }
}

/// How far a resync or rebuild is, and when.
#[derive(Clone, Copy)]
struct Reached {
    at: Instant,
    done: u64,
    total: u64,
}

fn resync(machine: &Machine) -> Option<Reached> {
    let progress = machine.resync()?;
    Some(Reached {
        at: machine.now(),
        done: progress.done,
        total: progress.total,
    })
}

/// A resync or rebuild by itself is looked at for as many bytes, of small arrays for all: it begins slowly while a stripe cache
/// grows, and fast while md's control lets it.
const STEADY: u64 = 8 * GIB;

/// At how many bytes a second a resync or rebuild goes by itself through the first `bytes`.
fn pace_alone(mut machine: Machine, bytes: u64, watch: &mut Watch<'_>) -> Option<f64> {
    let alone = machine.run_resync(|driving| match driving.bytes {
        done if done >= bytes => ControlFlow::Break(()),
        _ => watch.poll(driving),
    });
    alone.map(|alone| alone.rate())
}

/// Seconds of a resync or rebuild beside a load: its bytes and time by itself, and from each byte what the load takes where it goes at
/// `rate` beside that and at `there` by itself. No load makes it shorter; in a short time it may seem so by a request or two.
fn beside_load(alone: (u64, Span), rate: f64, there: Option<f64>) -> f64 {
    let taken = there.map_or(0.0, |there| (1.0 / rate - 1.0 / there).max(0.0));
    alone.1.as_secs_f64() + alone.0 as f64 * taken
}

/// A resync or rebuild as a phase of its own: its rate and time with nothing else going on, and beside
/// the load of the phases.
///
/// The load has seen it in a part of the disks, mostly the outermost, where they are fast: what it would take is its time by itself,
/// and for each byte what the load took from it there: by how much longer one took than by itself in that part (`there`). What is taken by
/// waiting for the load, or for md's control, does not depend on the zone.
fn rebuild(alone: &Resynced, there: Option<f64>, begun: Reached, now: Reached) -> PhaseRecord {
    let figure = |name: &str, value: f64, unit: Unit| Figure {
        name: name.to_owned(),
        value,
        unit,
    };
    let mut figures = vec![figure(
        "rebuild-time",
        alone.elapsed.as_secs_f64(),
        Unit::Seconds,
    )];
    let loaded = now.at.since(begun.at);
    let bytes = now.done.saturating_sub(begun.done) * SECTOR;
    if loaded > Span::ZERO && bytes > 0 {
        let rate = bytes as f64 / loaded.as_secs_f64();
        let whole = beside_load((alone.bytes, alone.elapsed), rate, there);
        figures.push(figure("rebuild-rate-loaded", rate, Unit::BytesPerSecond));
        figures.push(figure("rebuild-time-loaded", whole, Unit::Seconds));
    }
    PhaseRecord {
        bytes: Some(alone.bytes),
        elapsed_ns: Some(alone.elapsed.0),
        figures,
        explained: Some(explained(&alone.why, alone.elapsed, Vec::new())),
        ..PhaseRecord::bare("rebuild", Some(alone.rate()), Unit::BytesPerSecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a load takes is the same for each byte, wherever it lies: one that leaves little time is what counts, and one that
    /// takes none leaves the zones to count.
    #[test]
    fn a_load_makes_a_rebuild_longer_by_what_it_takes_from_each_byte() {
        // A TiB at 200 MiB/s where it begins, 150 on average.
        let (tib, mib, alone) = (1_u64 << 40, 1_048_576.0, Span::from_secs(6991));
        let whole = |rate: f64, there: Option<f64>| {
            beside_load((tib, alone), rate * mib, there.map(|there| there * mib))
        };
        let (heavy, divided) = (whole(2.0, Some(200.0)), mib / 2.0);
        assert!((heavy / divided - 1.0).abs() < 0.005, "{heavy} {divided}");
        let half = whole(100.0, Some(200.0));
        assert!((half - (6991.0 + mib / 200.0)).abs() < 1.0, "{half}");
        // No slower than by itself.
        for (rate, there) in [(200.0, Some(200.0)), (200.0, Some(150.0)), (2.0, None)] {
            assert!((whole(rate, there) - 6991.0).abs() < 1.0, "{rate}");
        }
        // Seen from end to end.
        let all = whole(1.0, Some(mib / 6991.0));
        assert!((all - mib).abs() < 1.0, "{all}");
    }
}
