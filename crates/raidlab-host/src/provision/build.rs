//! Carrying out a plan: each step in the journal first, and looked at afterwards.
use super::plan::{ProvisionPlan, Target};
use super::refill::{Filled, Refill};
use super::step::{Node, Step, UUID};
use super::sync;
use super::take::fail;
use crate::claim::{Claim, Own};
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::{Journal, Report, StepNumber, Undo};
use raidlab_io::observe::Roots;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What building is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// In a few words.
    pub what: String,
    /// Bytes done; 0 when that is not known.
    pub done: u64,
    /// Bytes to be done; 0 when that is not known.
    pub of: u64,
}

/// With what a plan is carried out.
pub struct Context<'a> {
    /// The machine.
    pub roots: &'a Roots,
    /// Set to end it.
    pub cancel: &'a AtomicBool,
    /// Told what it is at; `Break` ends it.
    pub monitor: &'a mut dyn FnMut(&Stage) -> ControlFlow<()>,
}

impl Context<'_> {
    pub(super) fn tell(&mut self, stage: &Stage) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) || (self.monitor)(stage).is_break() {
            return Err(HostError::Interrupted);
        }
        Ok(())
    }
}

/// What was built. Its end is [`Built::undo`]; dropped without it, the journal undoes it later.
#[derive(Debug)]
pub struct Built {
    pub(super) plan: ProvisionPlan,
    pub(super) uuids: Vec<String>,
    pub(super) arrays: BTreeMap<u32, Claim>,
    pub(super) mark: StepNumber,
    pub(super) members: Vec<Identity>,
    pub(super) synced: Vec<(u32, Duration)>,
    /// The steps of the journal by which a file system was mounted last.
    pub(super) mounted: Range<StepNumber>,
    pub(super) refill: Option<Refill>,
    pub(super) filled: Option<Filled>,
}

/// Builds a plan on claimed members, given in the plan's order. When a step fails, what was built is undone before
/// the error is returned.
///
/// # Errors
/// What failed; with what could not be undone, if there is such.
pub fn build(
    plan: &ProvisionPlan,
    claims: &mut [Claim],
    journal: &mut Journal,
    context: &mut Context<'_>,
) -> Result<Built> {
    for (member, claim) in plan.members.iter().zip(claims.iter()) {
        if member.identity != *claim.identity() {
            let why = "it is not the device that was planned with";
            return Err(HostError::refused(claim.path(), why));
        }
    }
    if plan.members.len() != claims.len() {
        return Err(HostError::BadRequest(
            "a claim for each member is needed".to_owned(),
        ));
    }
    let mut built = Built {
        plan: plan.clone(),
        uuids: (0..count_uuids(plan))
            .map(|_| random_uuid())
            .collect::<Result<_>>()?,
        arrays: BTreeMap::new(),
        mark: journal.mark(),
        members: plan
            .members
            .iter()
            .map(|member| member.identity.clone())
            .collect(),
        synced: Vec::new(),
        mounted: 0..0,
        refill: None,
        filled: None,
    };
    let steps = plan.steps.clone();
    let made = built.announce(journal).and_then(|()| {
        steps
            .iter()
            .try_for_each(|step| built.take(step, claims, journal, context))?;
        // Last, for making a file system sets bits. Files that a phase lays out set theirs after this.
        let mut arrays = built.arrays().into_iter();
        arrays.try_for_each(|number| sync::wait_for_bitmap(context, number))
    });
    match made {
        Ok(()) => Ok(built),
        Err(error) => {
            let report = built.undo(claims, journal, context.roots)?;
            if report.left.is_empty() {
                return Err(error);
            }
            Err(HostError::Unexpected(format!(
                "{error}; and not all of it could be undone: {}",
                report.left.join("; ")
            )))
        }
    }
}

fn count_uuids(plan: &ProvisionPlan) -> usize {
    let lines = plan.lines().join("\n");
    let numbers = lines.split(UUID).skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Version 4, from the kernel.
fn random_uuid() -> Result<String> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let text = std::fs::read_to_string(path).map_err(HostError::call("read", path))?;
    Ok(text.trim().to_owned())
}

impl Built {
    /// By what it was built.
    #[must_use]
    pub fn plan(&self) -> &ProvisionPlan {
        &self.plan
    }

    /// What is measured.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.plan.target
    }

    /// The claim on the measured device: a member's own, or the array's. `None` when a file system is measured.
    #[must_use]
    pub fn device<'c>(&'c self, claims: &'c [Claim]) -> Option<&'c Claim> {
        match &self.plan.target {
            Target::Device(Node::Member(member)) => claims.get(*member),
            Target::Device(Node::Array(number)) => self.arrays.get(number),
            Target::Directory(_) => None,
        }
    }

    /// Lets go of the measured device while `tool` runs on it, so that whoever closes it there is the last to do so.
    /// Nothing is let go of when a file system is measured.
    ///
    /// # Errors
    /// When this is no guest of raidlab's, or the device is not there afterwards as it was.
    pub fn without_hold<T>(
        &mut self,
        claims: &mut [Claim],
        own: &Own,
        tool: impl FnOnce() -> T,
    ) -> Result<T> {
        let claim = match &self.plan.target {
            Target::Device(Node::Member(member)) => claims.get_mut(*member),
            Target::Device(Node::Array(number)) => self.arrays.get_mut(number),
            Target::Directory(_) => None,
        };
        let Some(claim) = claim else {
            return Ok(tool());
        };
        claim.let_go(own)?;
        let came = tool();
        claim.take_again()?;
        Ok(came)
    }

    /// How long the initial sync of each array took.
    #[must_use]
    pub fn synced(&self) -> &[(u32, Duration)] {
        &self.synced
    }

    /// Numbers of the arrays, in the order of making.
    #[must_use]
    pub fn arrays(&self) -> Vec<u32> {
        self.plan.arrays()
    }

    /// Names of the pools, as they were made.
    #[must_use]
    pub fn pools(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::Pool { name, .. } => Some(self.filled_word(name)),
            _ => None,
        };
        self.plan.steps.iter().filter_map(name).collect()
    }

    /// What is to go on during the phases begins: a resync, a rebuild.
    ///
    /// # Errors
    /// When a step fails; nothing is undone by that.
    pub fn start(
        &mut self,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let steps = self.plan.start.clone();
        steps
            .iter()
            .try_for_each(|step| self.take(step, claims, journal, context))
    }

    /// The arrays that a resync or rebuild goes on in after [`Self::start`].
    #[must_use]
    pub fn busy_arrays(&self) -> Vec<u32> {
        let numbers = self.plan.start.iter().filter_map(|step| match step {
            Step::Release { number } | Step::Replace { number, .. } => Some(*number),
            _ => None,
        });
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.dedup();
        numbers
    }

    /// Rebuilds by itself what was being rebuilt during the phases, from the beginning and with nothing else going on, unless
    /// [`Self::fill_alone`] has;
    /// returns how long it took until all was whole, and how many bytes of each member were filled. `None` when nothing was
    /// rebuilt.
    ///
    /// # Errors
    /// When a step fails.
    pub fn rebuild_alone(
        &mut self,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<Option<(Duration, u64)>> {
        if let Some(filled) = &self.filled {
            return Ok(Some((filled.took, filled.bytes.iter().sum())));
        }
        let replaced: Vec<Step> = self.plan.start.clone();
        let replaced: Vec<&Step> = replaced
            .iter()
            .filter(|step| matches!(step, Step::Replace { .. }))
            .collect();
        let numbers = self.busy_arrays();
        let Some(first) = numbers.first().filter(|_| !replaced.is_empty()) else {
            return Ok(None);
        };
        for step in &replaced {
            if let Step::Replace {
                words,
                number,
                container,
                ..
            } = step
            {
                let device = words.last().cloned().unwrap_or_default();
                fail(*number, *container, &device, context)?;
            }
        }
        for step in &replaced {
            self.take(step, claims, journal, context)?;
        }
        let begun = Instant::now();
        // All of them: two arrays below a third may have lost a member each.
        for number in &numbers {
            sync::wait(context, *number)?;
        }
        let filled = sync::component(context.roots, *first).unwrap_or(0);
        Ok(Some((begun.elapsed(), filled)))
    }

    /// Undoes all of it and takes the members back, each empty and held again; members that are no longer what was claimed
    /// are told among what is left, and so are those that something is on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn undo(
        mut self,
        claims: &mut [Claim],
        journal: &mut Journal,
        roots: &Roots,
    ) -> Result<Report> {
        self.arrays.clear();
        if let Some(refill) = &self.refill {
            refill.end();
        }
        // A member that has gone is no reason to leave anything on the others.
        let gone: Vec<String> = claims
            .iter_mut()
            .filter_map(|claim| claim.lend().err())
            .map(|error| error.to_string())
            .collect();
        let mut report = journal.undo_since(roots, self.mark)?;
        report.left.extend(gone);
        for claim in claims.iter_mut() {
            if report.left.is_empty()
                && let Err(error) = claim.retake_empty()
            {
                report.left.push(error.to_string());
            }
        }
        Ok(report)
    }

    /// What will be on the members, before anything is: the first to be announced, so the last to be undone.
    fn announce(&mut self, journal: &mut Journal) -> Result<()> {
        let uuids = self.plain_uuids();
        let undo: Vec<Undo> = self.contents(&uuids);
        let step = journal.intend("write on the members", &undo)?;
        journal.done(step)
    }

    pub(super) fn contents(&self, uuids: &[String]) -> Vec<Undo> {
        let clear = |member: &Identity| Undo::Contents {
            member: member.clone(),
            uuids: uuids.to_vec(),
        };
        self.members.iter().map(clear).collect()
    }
}

#[cfg(test)]
mod tests;
