//! What a phase was asked for and did not come to.
use super::Phase;
use crate::drive::Tally;
use crate::flag::{Flag, FlagKind};
use crate::outcome::PhaseOutcome;
use crate::time::Span;
use crate::workload::spec::{Arrival, BlockSpec, WorkloadSpec};

/// In flight over asked for below which the depth counts as not reached (goal P8 of the engine,
/// `docs/validation/engine.md`).
const DEPTH_REACHED: f64 = 0.9;
/// Operations done over those due below which a rate counts as not reached.
const RATE_REACHED: f64 = 0.95;
/// Standard deviations by which a number of arrivals by chance may be less than its mean.
const CHANCE: f64 = 4.0;

impl Phase {
    /// What is to be said when less was in flight, or less was done, than was asked for.
    #[must_use]
    pub fn not_reached(&self, outcome: &PhaseOutcome) -> Option<Flag> {
        self.depth_missed(outcome.mean_in_flight)
            .or_else(|| self.rate_missed(outcome))
    }

    /// Whether operations ended, and all of them before any was counted.
    #[must_use]
    pub fn ended_in_ramp(&self, tallies: &[Tally]) -> bool {
        let any = |of: fn(&Tally) -> u64| tallies.iter().any(|tally| of(tally) > 0);
        self.ramp > Span::ZERO && any(|tally| tally.all_ops) && !any(|tally| tally.ops)
    }

    /// Of `mean` operations in flight on average. Only jobs that always have something to ask for can be held to their depth.
    fn depth_missed(&self, mean: f64) -> Option<Flag> {
        let mut wanted = 0;
        for job in &self.jobs {
            match job.workload {
                WorkloadSpec::Blocks(spec) if spec.arrival == Arrival::Closed => {
                    wanted += job.depth;
                }
                _ => return None,
            }
        }
        let missed = wanted > 0 && mean < DEPTH_REACHED * f64::from(wanted);
        missed.then(|| {
            let reason = format!(
                "{mean:.1} operations were in flight on average where {wanted} were asked for"
            );
            Flag::new(FlagKind::DepthNotReached, reason)
        })
    }

    /// Operations that are due at times of their own queue up where the device is slower: each then waits for longer than the one
    /// before it, and how long the last ones waited is a matter of when the phase ended.
    fn rate_missed(&self, outcome: &PhaseOutcome) -> Option<Flag> {
        let specs = self.jobs.iter().map(|job| match job.workload {
            WorkloadSpec::Blocks(spec) => Some(spec),
            _ => None,
        });
        let specs: Vec<BlockSpec> = specs.collect::<Option<_>>()?;
        let (mut rate, mut by_chance) = (0.0, false);
        for spec in &specs {
            rate += match spec.arrival {
                Arrival::Closed => return None,
                Arrival::Constant { per_second } => f64::from(per_second),
                Arrival::Poisson { per_second } => {
                    by_chance = true;
                    f64::from(per_second)
                }
            };
        }
        let seconds = self.due_within(&specs, outcome).as_secs_f64();
        let (due, done) = (rate * seconds, outcome.ops as f64);
        // The last one may have been due just after.
        let chance = if by_chance {
            CHANCE * due.sqrt()
        } else {
            specs.len() as f64
        };
        if seconds <= 0.0 || done >= RATE_REACHED * due - chance {
            return None;
        }
        let reason = format!(
            "{:.0} operations a second of {rate:.0} asked for: they queued up, and response times grow with the length of the phase",
            done / seconds
        );
        Some(Flag::new(FlagKind::RateNotReached, reason))
    }

    /// The time in which operations that are counted were due: not that in which the last ones were waited for. Where a number of
    /// operations ends the phase that is told by the one that was answered soonest, as all are where the rate is kept.
    fn due_within(&self, specs: &[BlockSpec], outcome: &PhaseOutcome) -> Span {
        let limits: Option<Vec<Span>> = specs.iter().map(|spec| spec.limit.time).collect();
        let most = limits.and_then(|limits| limits.into_iter().max());
        let soonest = outcome.latency().percentile(0.0).unwrap_or_default();
        let at_most = most.map_or(Span::MAX, |most| most - self.ramp);
        (outcome.elapsed - soonest).min(at_most)
    }
}

#[cfg(test)]
mod tests;
