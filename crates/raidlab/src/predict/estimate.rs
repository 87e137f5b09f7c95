//! How much work a cell is, and how long an experiment takes on the simulator: told before anything has run,
//! as a range, from what is moved and from rates that were measured.
//!
//! The rates are processor time of release builds on one core of an AMD EPYC at 2.6 GHz, n = 1 of each cell,
//! with one processor: bonnie's and hdbench's phases on the shipped experiments, random reads and writes for 5 s
//! on raid0 and raid5 of four models at depths of 1 and 32, resyncs of 1 to 24 TB. Estimates by these rates lay
//! between a third and twice of what it took.
use super::run::{Spent, Took};
use raidlab_core::phase::{Access, Job, Phase};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, GIB};
use raidlab_core::workload::spec::{Arrival, Order, WorkloadSpec};
use raidlab_experiment::setup::{Array, ArrayState, Engine};
use raidlab_experiment::{Cell, Experiment, Plan};
use raidlab_sim::catalogue;
use raidlab_sim::disk::DiskModel;
use raidlab_sim::machine::PASSED_OVER_FROM;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a call where the profile tells no number of calls.
const CALL: u64 = 8 << 10;
/// Time of one call in the simulator; measured 0.1 to 0.4 us.
const SECONDS_A_CALL: f64 = 0.2e-6;
/// Bytes of what the layers below are given at a time.
const REQUEST: u64 = 64 << 10;
/// Time of so many bytes in all layers below; measured 0.9 to 2 us.
const SECONDS_A_REQUEST: f64 = 1.5e-6;
/// Time of a second of virtual time on hard disks; measured 0.1 to 3 ms.
const SECONDS_A_SECOND: f64 = 1e-3;
/// Calls that solid-state disks end in a second of virtual time, by the depth and at most; measured 20 000 to
/// 50 000 at a depth of 1, 200 000 to 450 000 at 32.
const SOLID_CALLS: (f64, f64) = (35e3, 350e3);
/// Time of one of these with all layers below; measured 0.14 to 0.82 us.
const SECONDS_A_SOLID_CALL: f64 = 0.6e-6;
/// Building a machine, storing a trial; measured 5 to 20 ms.
const SECONDS_A_TRIAL: f64 = 10e-3;
/// A resync or rebuild of all disks, which is leapt through; measured 0.1 to 1.8 s of up to twelve disks, 3.6 s for the resync of
/// RAID50 of twelve.
const SECONDS_A_RESYNC: f64 = 0.5;
/// The same of one that writes next to what it compares, whose pace is known after minutes in each zone: at the most, and for each
/// GiB of a member when it is run as it is. Measured 2 to 20 s for six disks of 24 TB, of which raid6 takes most, and 26 s for twelve,
/// on a machine that was busy besides; 1.3 s for 100 GiB of four, by the ratio of those of six a seventh less now.
const SECONDS_AN_UNEVEN_RESYNC: (f64, f64) = (12.0, 0.011);
/// A block that ZFS resilvers or btrfs copies, none of which is leapt over, with its reads and writes, and to lay it out twice; measured 0.8 us in a
/// mirror, 1.5 us in a raidz1 of four, 1.9 us in a raidz2 of six, 2.4 us of records of 1 MiB there.
const SECONDS_A_BLOCK: f64 = 1.6e-6;
/// A raw device is leapt through beyond so much in a phase, as a rule.
const LEAPT: u64 = 256 * GIB;
/// How far off the time of earlier trials may be: other work on the machine.
const AGAIN: (f64, f64) = (0.8, 1.25);
/// How far off an estimate may be: a slower processor and other work on the machine included.
const OFF: (f64, f64) = (0.5, 3.0);

/// What one trial of a cell asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Counted bytes of all phases that know theirs.
    pub(super) bytes: u64,
    /// Calls, as far as they are known.
    pub(super) calls: u64,
    /// Time of the phases that end by the clock.
    pub(super) clock: Span,
    /// Calls and bytes that are not leapt over.
    run: (u64, u64),
    /// Of the time by the clock what is passed over, where there are as many calls as of solid-state disks.
    passed: Span,
    /// Calls in flight at the most, if a member has no heads to move.
    solid_depth: Option<u64>,
    /// Time of a resync or rebuild that goes through all members.
    resync: f64,
    /// Blocks that a resilver goes through by itself.
    blocks: u64,
}

/// The work of an experiment's cells.
pub(super) struct Works<'e> {
    /// Names of the disks that have no heads to move. To read a model takes milliseconds, and a thousand cells
    /// may have the same eight disks.
    solid: BTreeSet<&'e str>,
}

impl<'e> Works<'e> {
    pub(super) fn new(experiment: &'e Experiment) -> Self {
        let mut known: BTreeMap<(&str, Option<&str>), bool> = BTreeMap::new();
        let solid = experiment.disks.iter().filter(|disk| {
            let text = disk.model_text.as_deref();
            *known
                .entry((disk.model.as_str(), text))
                .or_insert_with(|| is_solid(&disk.model, text))
        });
        Self {
            solid: solid.map(|disk| disk.name.as_str()).collect(),
        }
    }

    /// What one trial of the cell asks for.
    pub(super) fn of(&self, cell: &Cell) -> Work {
        let mut members = cell.setup.array.members.iter();
        Work::of(cell, members.any(|name| self.solid.contains(name.as_str())))
    }
}

impl Work {
    fn of(cell: &Cell, is_solid: bool) -> Self {
        let setup = &cell.setup;
        let Ok(plan) = setup.profile.plan(&setup.context(512)) else {
            // The experiment was resolved with this plan already.
            return Self::default();
        };
        let mut work = Self {
            bytes: plan.bytes_planned().0,
            clock: plan.time_planned(),
            ..Self::default()
        };
        let mut depth = 1;
        for phase in &plan.phases {
            let expected = phase.expected();
            let bytes = expected.bytes.unwrap_or(0);
            let calls = expected.ops.unwrap_or(bytes / CALL);
            work.calls += calls;
            let share = match setup.filesystem {
                None if bytes > LEAPT => LEAPT as f64 / bytes as f64,
                _ => 1.0,
            };
            work.run.0 += (calls as f64 * share) as u64;
            work.run.1 += (bytes as f64 * share) as u64;
            let in_flight = phase.jobs.iter().map(|job| u64::from(job.depth)).sum();
            depth = depth.max(in_flight);
            if setup.filesystem.is_none() && !setup.array.state.syncs() && by_chance(phase) {
                work.passed += passed_over(expected.time.unwrap_or_default(), in_flight);
            }
        }
        work.solid_depth = is_solid.then_some(depth);
        let by_use = matches!(setup.array.engine, Engine::Zfs | Engine::Btrfs);
        work.resync = resync(&setup.array);
        if by_use && matches!(setup.array.state, ArrayState::Rebuilding(_)) {
            let record = setup.array.record_size.map_or(128 << 10, |size| size.0);
            let files = plan.phases.iter().flat_map(|phase| &phase.needs);
            let files = files.map(|need| need.size.0).max().unwrap_or(0);
            let allocated = setup.array.allocated.map_or(files, |given| given.0);
            work.blocks = allocated.div_ceil(record.max(512));
        }
        work
    }

    /// Estimated time in the simulator when all is leapt through that can be.
    pub(super) fn seconds(self) -> f64 {
        let (calls, bytes) = (self.run.0 as f64, self.run.1 as f64);
        let (a_second, clock) = match self.solid_depth {
            None => (SECONDS_A_SECOND, self.clock),
            Some(depth) => {
                let a_second = solid_calls(depth) * SECONDS_A_SOLID_CALL;
                (a_second, self.clock - self.passed)
            }
        };
        SECONDS_A_TRIAL
            + calls * SECONDS_A_CALL
            + bytes / REQUEST as f64 * SECONDS_A_REQUEST
            + clock.as_secs_f64() * a_second
            + self.resync
            + self.blocks as f64 * SECONDS_A_BLOCK
    }
}

/// Calls of solid-state disks in a second of virtual time.
fn solid_calls(depth: u64) -> f64 {
    (SOLID_CALLS.0 * depth as f64).min(SOLID_CALLS.1)
}

/// Whether all jobs of a phase make random calls past the page cache, as soon as they can and for a given time.
fn by_chance(phase: &Phase) -> bool {
    let random = |job: &Job| match &job.workload {
        WorkloadSpec::Blocks(blocks) => {
            blocks.order == Order::Random
                && blocks.arrival == Arrival::Closed
                && blocks.limit.ops.is_none()
        }
        _ => false,
    };
    phase.access == Access::Direct && phase.jobs.iter().all(random)
}

/// What of so long a phase of random calls on solid-state disks is passed over: run is what settles, an eighth of the rest or more, and
/// what is left at its end. Measured on four NVMe drives, raid0 and raid5: 2.0 s of 5 that are run, 2.3 of 10, 4.6 of 20, 6.9 of 30, 8.4
/// of 60.
fn passed_over(time: Span, depth: u64) -> Span {
    let run = Span::from_millis(2200).max(Span(time.0 / 5));
    let passed = time - run;
    if passed.as_secs_f64() * solid_calls(depth) < PASSED_OVER_FROM as f64 {
        return Span::ZERO;
    }
    passed
}

/// Time of the resync or rebuild of an array of md.
fn resync(array: &Array) -> f64 {
    if matches!(array.engine, Engine::Zfs | Engine::Btrfs) || !array.state.syncs() {
        return 0.0;
    }
    // Parities and copies that lie beside what is read; far copies are written elsewhere, and evenly.
    let layout = array.layout.to_string();
    let compares = layout.starts_with("raid6") || layout.starts_with("raid10");
    if array.state != ArrayState::InitialSync || !compares || layout.starts_with("raid10-f") {
        return SECONDS_A_RESYNC;
    }
    let (most, a_gib) = SECONDS_AN_UNEVEN_RESYNC;
    let run = |size: Bytes| SECONDS_A_RESYNC + a_gib * size.0 as f64 / GIB as f64;
    array.member_size.map_or(most, |size| run(size).min(most))
}

/// Whether a model is a solid-state disk, which ends a thousand times the requests.
fn is_solid(name: &str, text: Option<&str>) -> bool {
    let model = match text {
        Some(text) => catalogue::parse(name, text).ok(),
        None => catalogue::find(name).ok(),
    };
    model.is_some_and(|model| matches!(model.disk, DiskModel::Ssd(_)))
}

/// How long the trials of a plan take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Seconds on so many processors, at the least.
    pub(super) from: f64,
    /// And at the most.
    pub(super) to: f64,
    /// Cells whose earlier trials tell.
    pub(super) known: usize,
    /// These trials.
    pub(super) trials: u32,
}

/// How long the trials of a plan take on so many processors: cells of which there are trials in the store as long as
/// those took, the others by the rates above.
pub(super) fn estimate(plan: &Plan<'_>, took: &Took, processors: u32) -> Estimate {
    let experiment = plan.experiment;
    let works = Works::new(experiment);
    let known = |cell: &Cell| took.of(&experiment.cell_digest(cell));
    let earlier: Vec<Option<Spent>> = experiment.cells.iter().map(known).collect();
    let spread = |guess_off: f64, earlier_off: f64| {
        let cells = experiment.cells.iter().zip(&earlier);
        let cells: Vec<f64> = cells
            .map(|(cell, earlier)| match earlier {
                Some(spent) => earlier_off * spent.mean(),
                None => guess_off * works.of(cell).seconds(),
            })
            .collect();
        spread(plan, &cells, processors)
    };
    Estimate {
        from: spread(OFF.0, AGAIN.0),
        to: spread(OFF.1, AGAIN.1),
        known: earlier.iter().flatten().count(),
        trials: earlier.iter().flatten().map(|spent| spent.trials).sum(),
    }
}

/// How long those trials of a plan take, one after the other, whose cells have earlier trials; `None` when none has.
pub(super) fn earlier(plan: &Plan<'_>, took: &Took) -> Option<Estimate> {
    let cells = plan.experiment.cells.iter();
    let earlier: Vec<Option<Spent>> = cells
        .map(|cell| took.of(&plan.experiment.cell_digest(cell)))
        .collect();
    let trials = plan.trials.iter();
    let all: f64 = trials
        .filter_map(|trial| earlier[trial.cell])
        .map(Spent::mean)
        .sum();
    let known = earlier.iter().flatten().count();
    (known > 0).then(|| Estimate {
        from: AGAIN.0 * all,
        to: AGAIN.1 * all,
        known,
        trials: earlier.iter().flatten().map(|spent| spent.trials).sum(),
    })
}

/// Trials dealt out to the processors: no shorter than the longest of them.
fn spread(plan: &Plan<'_>, cells: &[f64], processors: u32) -> f64 {
    let all: f64 = plan.trials.iter().map(|trial| cells[trial.cell]).sum();
    let longest = cells.iter().copied().fold(0.0, f64::max);
    (all / f64::from(processors.max(1))).max(longest)
}

/// A range in words.
pub(super) fn range((from, to): (f64, f64)) -> String {
    match (told(from), told(to)) {
        (from, to) if from == to => format!("about {to}"),
        (_, to) if from < 1.0 => format!("at most about {to}"),
        (from, to) => format!("about {from} to {to}"),
    }
}

/// A guess in words that do not promise more than it can hold.
pub(crate) fn told(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".to_owned(),
        s if s < 10.0 => format!("{s:.0} s"),
        s if s < 120.0 => format!("{:.0} s", (s / 5.0).round() * 5.0),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// Processors that this process may use.
pub(super) fn processors() -> u32 {
    let given = std::thread::available_parallelism();
    given.map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_rounded() {
        assert_eq!(told(0.2), "a second");
        assert_eq!(told(4.4), "4 s");
        assert_eq!(told(62.0), "60 s");
        assert_eq!(told(600.0), "10 min");
        assert_eq!(told(9000.0), "2.5 h");
        assert_eq!(told(1650.0 * 3600.0), "68.8 days");
    }

    #[test]
    fn a_range_promises_no_more_than_it_can_hold() {
        assert_eq!(range((0.1, 0.6)), "about a second");
        assert_eq!(range((0.4, 3.0)), "at most about 3 s");
        assert_eq!(range((4.0, 24.0)), "about 4 s to 25 s");
    }

    /// Seconds from and to of an experiment's trials on one processor.
    fn of(text: &str) -> (f64, f64) {
        use super::super::catalogue::read;
        let experiment = read(text, "x.toml", std::path::Path::new("")).unwrap();
        let plan = raidlab_experiment::expand(&experiment, 1);
        let told = estimate(&plan, &Took::default(), 1);
        assert_eq!(told.known, 0);
        (told.from, told.to)
    }

    #[test]
    fn what_takes_long_is_told_to() {
        let text = |disks: &str, state: &str, layout: &str| {
            format!(
                "title = 't'\ndisks = {{ {disks} }}\n[profile]\nname = 'random'\ndepth = 32\nsize = '1GiB'\n\
                 time = '30s'\n[array]\nstate = '{state}'\n[factors]\nlayout = ['{layout}']\n\
                 [design]\nrepeats = 2\n"
            )
        };
        let hard = "model = 'nearline-24tb', count = 6";
        let (_, clean) = of(&text(hard, "clean", "raid10"));
        let (from, resyncing) = of(&text(hard, "resyncing", "raid10"));
        // Measured: 0.1 to 1.7 s for the resync of an array.
        assert!(clean < 2.0, "{clean}");
        assert!(from < 0.8 && 3.4 < resyncing, "{from} to {resyncing}");
        // Measured: 2 s for raid10 of six disks, 20 s for raid6; 0.2 s where nothing is written next to what is read.
        for layout in ["raid10", "raid6"] {
            let (from, to) = of(&text(hard, "initial-sync", layout));
            assert!(from < 16.0 && 40.0 < to, "{layout}: {from} to {to}");
        }
        let (_, far) = of(&text(hard, "initial-sync", "raid10-f2"));
        assert!(far < 6.0, "{far}");
        // Measured: 6.4 s, most of the two phases of two trials being passed over, and 5.5 s of phases of 10 s.
        let (from, to) = of(&text("model = 'nvme-ssd', count = 4", "clean", "raid5"));
        assert!(from < 6.4 && 6.4 < to, "{from} to {to}");
        let text = text("model = 'nvme-ssd', count = 4", "clean", "raid5");
        let (from, to) = of(&text.replace("30s", "10s"));
        assert!(from < 5.5 && 5.5 < to, "{from} to {to}");
        // Where calls come at a rate nothing is.
        let (_, at_a_rate) = of(&text.replace("depth = 32", "depth = 32\nrate = 100000"));
        assert!(at_a_rate > 34.8, "{at_a_rate}");
    }
}
