//! How much work a cell is, and how long an experiment takes on the simulator: a guess from the number
//! of calls, before anything has run.
use raidlab_core::profile::{Place, ProfileContext};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_experiment::{Cell, Plan};

/// Room where nobody knows how large the disks are.
const ROOM: Bytes = Bytes(1 << 50);
/// Bytes of a call where the profile tells no number of calls.
const CALL: u64 = 8 << 10;
/// Time of one call in the simulator, all layers below included.
const SECONDS_A_CALL: f64 = 0.5e-6;
/// Calls of one process a second of virtual time, for phases that end by the clock.
const CALLS_A_SECOND: f64 = 2000.0;
/// Building a machine, storing a trial.
const SECONDS_A_TRIAL: f64 = 2e-3;

/// What one trial of a cell asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Counted bytes of all phases that know theirs.
    pub(super) bytes: u64,
    /// Calls, as far as they are known.
    pub(super) calls: u64,
    /// Time of the phases that end by the clock.
    pub(super) clock: Span,
}

impl Work {
    pub(super) fn of(cell: &Cell) -> Self {
        let setup = &cell.setup;
        let room = setup.array.capacity.unwrap_or(ROOM);
        let place = match setup.filesystem {
            Some(_) => Place::Directory { free: room },
            None => Place::Device { size: room },
        };
        let context = ProfileContext {
            memory: setup.host.memory,
            place,
            writable: true,
            alignment: 512,
        };
        let Ok(plan) = setup.profile.plan(&context) else {
            // The experiment was resolved with this plan already.
            return Self::default();
        };
        let calls = plan.phases.iter().map(|phase| {
            let expected = phase.expected();
            let by_bytes = expected.bytes.map(|bytes| bytes / CALL);
            expected.ops.or(by_bytes).unwrap_or(0)
        });
        Self {
            bytes: plan.bytes_planned().0,
            calls: calls.sum(),
            clock: plan.time_planned(),
        }
    }

    /// Guessed time in the simulator.
    pub(super) fn seconds(self) -> f64 {
        let by_clock = self.clock.as_secs_f64() * CALLS_A_SECOND;
        SECONDS_A_TRIAL + (self.calls as f64 + by_clock) * SECONDS_A_CALL
    }
}

/// Seconds that the trials of a plan take on so many processors, roughly.
pub(super) fn seconds(plan: &Plan<'_>, processors: u32) -> f64 {
    let cells: Vec<f64> = plan
        .experiment
        .cells
        .iter()
        .map(|cell| Work::of(cell).seconds())
        .collect();
    let all: f64 = plan.trials.iter().map(|trial| cells[trial.cell]).sum();
    let longest = cells.iter().copied().fold(0.0, f64::max);
    (all / f64::from(processors.max(1))).max(longest)
}

/// A guess in words that do not promise more than it can hold.
pub(crate) fn told(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "a second".to_owned(),
        s if s < 10.0 => format!("{s:.0} s"),
        s if s < 120.0 => format!("{:.0} s", (s / 5.0).round() * 5.0),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
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
    }
}
