//! What the checks of a plan take, before anything is begun: they may take longer than all phases.
use crate::predict::disk_rate;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_experiment::hardware::Disk;
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::provision::{Check, ProvisionPlan};

/// What the checks of a cell read, and how long that takes at least where the members are disks of the experiment's models.
/// Files do not have their disks' rates, and a guest's time costs nothing.
pub(in crate::real) fn told(
    experiment: &Experiment,
    cell: &Cell,
    plan: &ProvisionPlan,
    on_disks: bool,
) -> Vec<String> {
    let disks = || {
        let named = |name: &String| experiment.disks.iter().find(|disk| disk.name == *name);
        cell.setup.array.members.iter().filter_map(named)
    };
    let slowest = match on_disks {
        true => disks()
            .filter_map(rate_of)
            .min_by(|a, b| a.1.total_cmp(&b.1)),
        false => None,
    };
    let compared = compared(cell, plan);
    let one = |check: &Check| match check {
        Check::Array { number, .. } => {
            let takes = slowest.map_or(String::new(), |(name, rate)| {
                let time = Span((compared as f64 / rate * 1e9) as u64);
                format!(
                    ", which takes at least {time} a trial at {}/s (the mean of {name})",
                    Bytes(rate as u64)
                )
            });
            format!(
                "md{number} compares {} of each member{takes}",
                Bytes(compared)
            )
        }
        Check::Pool { .. } | Check::Filesystem { .. } => {
            "the scrub reads all copies of what the phases have left there".to_owned()
        }
    };
    plan.checks.iter().map(one).collect()
}

/// Bytes of each member that an array takes: all that the smallest has, but for a little of md's own.
fn compared(cell: &Cell, plan: &ProvisionPlan) -> u64 {
    let sizes = plan.members.iter().map(|member| member.identity.size);
    let smallest = sizes.min().unwrap_or(0);
    let given = cell.setup.array.member_size;
    given.map_or(smallest, |given| given.0.min(smallest))
}

fn rate_of(disk: &Disk) -> Option<(&str, f64)> {
    let rate = disk_rate(&disk.model, disk.model_text.as_deref())?;
    Some((&disk.model, rate))
}
