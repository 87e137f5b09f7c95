//! What the kernel's log says went wrong in a trial, with the member that it says it of.
use crate::exit::{Failure, TRIAL_FAILED};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_experiment::Cell;
use raidlab_host::kmsg::Trouble;
use raidlab_host::provision::ProvisionPlan;
use raidlab_results::record::Place;

/// Why a trial failed: the kernel's word, and what came of it here.
pub(super) fn failure(
    said: &Trouble,
    cell: &Cell,
    plan: &ProvisionPlan,
    place: Place,
    came: Option<Failure>,
) -> Failure {
    let mut reason = told(said, cell, plan);
    if let Some(came) = came {
        reason.push_str("; ");
        reason.push_str(&came.message);
    }
    let failure = Failure::new(TRIAL_FAILED, reason);
    if place == Place::Host && member(said, cell, plan).is_some() {
        return failure.remedy(
            "look at the device (dmesg, smartctl -a): when it is sound again, the same command goes on with the trials that are \
             left; with another one in its place in the allow-list it begins anew",
        );
    }
    failure
}

/// Why a trial could not be built: with the member that the kernel names, if it names one.
pub(super) fn before(
    said: &Trouble,
    cell: &Cell,
    plan: &ProvisionPlan,
    place: Place,
    built: Failure,
) -> Failure {
    // Without a member the tool's own word tells more, and the kernel's stands behind it.
    match member(said, cell, plan) {
        Some(_) => failure(said, cell, plan, place, Some(built)),
        None => built,
    }
}

/// The doubt about the phase in which a member failed.
pub(super) fn flag(said: &Trouble, cell: &Cell, plan: &ProvisionPlan) -> Option<Flag> {
    let member = said.is_member() || member(said, cell, plan).is_some();
    member.then(|| Flag::new(FlagKind::MemberFailed, told(said, cell, plan)))
}

fn told(said: &Trouble, cell: &Cell, plan: &ProvisionPlan) -> String {
    let Trouble { what, line, after } = said;
    let of = match member(said, cell, plan) {
        // `a member failed` is said of the array.
        Some(name) if said.is_member() => format!("member {name} failed"),
        Some(name) => format!("{what} on member {name}"),
        None => (*what).to_owned(),
    };
    format!("{of} after {after} of the trial: the kernel said '{line}'")
}

/// The member that a line names, with its device.
fn member(said: &Trouble, cell: &Cell, plan: &ProvisionPlan) -> Option<String> {
    let mut members = plan.members.iter().zip(&cell.setup.array.members);
    let (device, name) = members.find(|(device, _)| said.names(&device.identity.name))?;
    let known = &device.identity;
    // Of a loop device, the serial number is its file's.
    let serial = known.serial.as_ref().filter(|_| known.backing.is_none());
    Some(match serial {
        Some(serial) => format!("{name} ({}, serial number {serial})", known.name),
        None => format!("{name} ({})", known.name),
    })
}

/// What could not be undone; `None` when all of it was.
pub(super) fn not_undone(left: &[String]) -> Option<Failure> {
    let told = left.join("; ");
    (!left.is_empty()).then(|| {
        Failure::new(TRIAL_FAILED, format!("not all could be undone: {told}"))
            .remedy("'raidlab clean' tries again and tells what it finds")
    })
}

/// Of what is left on the machine at the end, what the failure that the run ends with does not tell already.
pub(super) fn untold<'l>(
    left: &'l [String],
    ended: Option<&'l Failure>,
) -> impl Iterator<Item = &'l String> {
    let told = ended.map_or("", |failure| failure.message.as_str());
    left.iter()
        .filter(move |left| !told.contains(left.as_str()))
}

/// Why a trial failed, and what of it could not be undone: the first is most often the cause of the second.
pub(super) fn both(failure: &Failure, stuck: Failure) -> Failure {
    let message = format!("{}; and {}", failure.message, stuck.message);
    let remedies = [failure.remedy.as_deref(), stuck.remedy.as_deref()];
    let remedies: Vec<&str> = remedies.into_iter().flatten().collect();
    Failure::new(stuck.code(), message).remedy(remedies.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::MISSING;
    #[test]
    fn why_a_trial_failed_is_told_before_what_could_not_be_undone() {
        let failure =
            Failure::new(MISSING, "block-write: input/output error").remedy("look at the disk");
        let stuck = not_undone(&["unmount /mnt: busy".to_owned()]).expect("something is left");
        let told = both(&failure, stuck);
        assert_eq!(
            told.message,
            "block-write: input/output error; and not all could be undone: unmount /mnt: busy"
        );
        let remedy = told.remedy.expect("two remedies");
        assert!(
            remedy.starts_with("look at the disk; 'raidlab clean'"),
            "{remedy}"
        );
        assert!(not_undone(&[]).is_none());
    }

    #[test]
    fn what_the_failure_says_was_left_is_not_told_again() {
        let left = ["unmount /mnt: busy", "/dev/sdb is not cleared"].map(str::to_owned);
        let stuck = not_undone(&left[..1]).expect("something is left");
        let rest: Vec<_> = untold(&left, Some(&stuck)).collect();
        assert_eq!(rest, [&left[1]]);
        let rest: Vec<_> = untold(&left, None).collect();
        assert_eq!(rest.len(), 2, "nothing else tells");
    }
}
