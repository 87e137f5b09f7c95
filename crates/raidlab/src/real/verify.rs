//! What came of asking an array, after the phases, whether it is still consistent: evidence in the record, and flags.
mod time;

pub(super) use time::told as time;

use super::busy::watched;
use super::trial::{Came, Lab, Watch, in_one_line};
use crate::exit::{BAD_REQUEST, Failure};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_experiment::{Cell, Experiment};
use raidlab_host::kmsg::KernelLog;
use raidlab_host::provision::{Built, Check as Asked, Checked, ProvisionPlan, When};
use raidlab_results::record::Check;
use std::sync::atomic::Ordering;

/// Where trials are carried out, of an experiment whose arrays are verified: they are other trials, and take longer.
pub(super) const fn told(experiment: &Experiment) -> &'static str {
    match experiment.design.verify {
        true => ", arrays verified",
        false => "",
    }
}

/// What did not agree before the phases says nothing of them afterwards: members hold what earlier trials left there.
pub(super) fn agreed_before(
    cell: &Cell,
    plan: &ProvisionPlan,
    assume_clean: bool,
) -> Result<(), Failure> {
    let compared = |check: &Asked| matches!(check, Asked::Array { .. });
    if !assume_clean || cell.setup.array.initial_sync || !plan.checks.iter().any(compared) {
        return Ok(());
    }
    let message = format!(
        "cell '{}': an array that was only taken to agree (--assume-clean) cannot be verified: its members hold what \
         earlier trials wrote",
        cell.label
    );
    let remedy = "leave out --assume-clean, or verify (of [design], or --verify)";
    Err(Failure::new(BAD_REQUEST, message).remedy(remedy))
}

/// Carries out the checks that the plan has for now, unless the trial has failed already. One that cannot be carried out
/// leaves the figures as they are, with a flag of its own.
pub(super) fn verify(
    when: When,
    lab: &mut Lab<'_>,
    built: &Built,
    watch: &mut dyn Watch,
    came: &mut Came,
    log: Option<&mut KernelLog>,
) -> Result<(), Failure> {
    if came.in_trouble() || lab.stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let checked = watched(lab, watch, |lab, context| {
        built.verify(when, lab.journal, context)
    });
    match checked {
        Ok(all) => {
            // What the kernel says of it is known then, or is why.
            if all
                .iter()
                .any(|one| one.as_ref().map_or(true, |checked| checked.found.is_some()))
            {
                came.hear_what_was_found(log);
            }
            for one in &all {
                match one {
                    Ok(checked) => note(checked, came),
                    Err(error) => came.flags.push(could_not_be_told(&error.to_string())),
                }
            }
            Ok(())
        }
        Err(failure) if lab.stop.load(Ordering::Relaxed) => Err(failure),
        Err(failure) => {
            came.flags.push(could_not_be_told(&failure.message));
            Ok(())
        }
    }
}

/// The figures are as good as without a check, but that is not what was asked for.
fn could_not_be_told(why: &str) -> Flag {
    let why = in_one_line(why);
    let reason = format!("whether the array is still consistent could not be told: {why}");
    Flag::new(FlagKind::Unverified, reason)
}

/// A check as it is kept, with what it found.
fn note(checked: &Checked, came: &mut Came) {
    came.checks.push(Check {
        of: checked.of.clone(),
        by: checked.by.to_owned(),
        elapsed_ns: u64::try_from(checked.took.as_nanos()).unwrap_or(u64::MAX),
        bytes: checked.bytes,
        counts: checked.counts.clone(),
        consistent: checked.found.is_none(),
    });
    if let Some(found) = &checked.found {
        let flag = Flag::new(FlagKind::Inconsistent, found.what.clone());
        came.flags.push(match found.may_be_benign {
            true => flag.remark(),
            false => flag,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_host::provision::Found;
    use std::time::Duration;

    fn checked(found: Option<Found>) -> Checked {
        Checked {
            of: "md119".to_owned(),
            by: "md check",
            took: Duration::from_millis(1500),
            bytes: Some(4096),
            counts: [("mismatch_cnt".to_owned(), 8)].into(),
            found,
        }
    }

    #[test]
    fn what_does_not_agree_voids_the_trial_unless_it_may_be_benign() {
        for (may_be_benign, voids) in [(false, true), (true, false)] {
            let mut came = Came::default();
            let what = "parity differs".to_owned();
            let found = Found {
                what,
                may_be_benign,
            };
            note(&checked(Some(found)), &mut came);
            let flag = &came.flags[0];
            assert_eq!((flag.kind, flag.voids), (FlagKind::Inconsistent, voids));
            assert_eq!(flag.reason, "parity differs");
            assert!(!came.checks[0].consistent);
        }
    }

    #[test]
    fn what_could_not_be_told_is_a_doubt_of_its_own_which_leaves_the_figures() {
        let flag = could_not_be_told("'btrfs scrub' failed:\n  no such device");
        assert_eq!((flag.kind, flag.voids), (FlagKind::Unverified, false));
        assert_eq!(
            flag.reason,
            "whether the array is still consistent could not be told: 'btrfs scrub' failed: no such device"
        );
    }

    #[test]
    fn what_agrees_is_evidence_and_no_flag() {
        let mut came = Came::default();
        note(&checked(None), &mut came);
        assert!(came.flags.is_empty());
        let check = &came.checks[0];
        assert_eq!((check.elapsed_ns, check.consistent), (1_500_000_000, true));
    }
}
