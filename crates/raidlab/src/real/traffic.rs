//! What the members of an array were given during a phase: beside the same figures of the simulator they tell whether
//! both do the same, not only whether it takes as long.
use raidlab_host::provision::ProvisionPlan;
use raidlab_io::observe::Roots;
use raidlab_io::observe::diskstats::Snapshot;
use raidlab_results::record::{Figure, PhaseRecord, Unit};

/// Counters of the members at the beginning of a phase.
pub(super) struct Traffic {
    names: Vec<String>,
    before: Option<Snapshot>,
}

/// What all members did: requests that they were given (after merging), and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    reads: u64,
    writes: u64,
    read: u64,
    written: u64,
}

impl Traffic {
    /// A phase begins.
    pub(super) fn begin(roots: &Roots, plan: &ProvisionPlan) -> Self {
        let names = plan.members.iter();
        Self {
            names: names.map(|member| member.identity.name.clone()).collect(),
            before: Snapshot::take(roots).ok(),
        }
    }

    /// It has ended. Nothing is noted when a member's counters are not known over the whole time: a part would pass for
    /// the whole.
    pub(super) fn end(&self, roots: &Roots, record: &mut PhaseRecord) {
        let Some(sum) = self.since(roots) else { return };
        let seconds = record.elapsed_ns.unwrap_or(0) as f64 / 1e9;
        if seconds > 0.0 {
            record.figures.extend(figures(sum, seconds));
        }
    }

    fn since(&self, roots: &Roots) -> Option<Sum> {
        let difference = Snapshot::take(roots).ok()?.since(self.before.as_ref()?);
        let mut sum = Sum::default();
        for name in &self.names {
            let device = difference.devices.get(name)?;
            sum.reads += device.read.completed;
            sum.writes += device.write.completed;
            sum.read += device.read.bytes();
            sum.written += device.write.bytes();
        }
        Some(sum)
    }
}

fn figures(sum: Sum, seconds: f64) -> [Figure; 4] {
    let figure = |name: &str, amount: u64, unit| Figure {
        name: name.to_owned(),
        value: amount as f64 / seconds,
        unit,
    };
    [
        figure("member-reads", sum.reads, Unit::PerSecond),
        figure("member-writes", sum.writes, Unit::PerSecond),
        figure("member-read", sum.read, Unit::BytesPerSecond),
        figure("member-written", sum.written, Unit::BytesPerSecond),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_members_did_is_told_a_second() {
        let sum = Sum {
            reads: 10,
            writes: 20,
            read: 4096,
            written: 8192,
        };
        let values = figures(sum, 2.0).map(|figure| figure.value);
        assert_eq!(values, [5.0, 10.0, 2048.0, 4096.0]);
    }
}
