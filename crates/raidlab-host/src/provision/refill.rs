//! Members that are filled anew with what is in use, beside the phases: those of btrfs by `btrfs replace`, those of a pool of ZFS by
//! its resilver.
mod btrfs;
mod pool;

use super::build::{Built, Context};
use super::step::Step;
use super::sync::SyncState;
use crate::claim::Claim;
use crate::error::Result;
use crate::journal::{Journal, Undo};
use btrfs::Replacement;
pub(super) use btrfs::words as replaces;
use pool::Resilver;
pub(super) use pool::words as resilvers;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is replaced, as a step has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refilled {
    /// The member.
    pub member: usize,
    /// Its path.
    pub path: PathBuf,
}

/// Members that are being filled.
#[derive(Debug)]
pub(super) enum Refill {
    /// Of btrfs.
    Replacement(Replacement),
    /// Of ZFS.
    Resilver(Resilver),
}

/// Members that were filled with nothing else going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// How long that took.
    pub(super) took: Duration,
    /// Bytes of each of what is counted by itself: members of btrfs, which are filled one after the other, and vdevs of ZFS.
    pub(super) bytes: Vec<u64>,
}

impl Refill {
    /// Ends it, where what is built could not be undone else.
    pub(super) fn end(&self) {
        match self {
            Self::Replacement(replacement) => replacement.end(),
            // It goes with its pool.
            Self::Resilver(_) => {}
        }
    }

    /// Waits until all are whole; bytes as in [`Filled`].
    pub(super) fn wait(&self, context: &mut Context<'_>) -> Result<Vec<u64>> {
        match self {
            Self::Replacement(replacement) => replacement.wait(context),
            Self::Resilver(resilver) => resilver.wait(context),
        }
    }

    /// How far it is; what members were filled with by themselves is known.
    fn state(&self, alone: Option<&Filled>) -> Result<SyncState> {
        match self {
            Self::Replacement(replacement) => {
                replacement.check()?;
                Ok(replacement.state(alone))
            }
            Self::Resilver(resilver) => resilver.state(alone),
        }
    }
}

impl Built {
    /// Whether new members get what is in use when the phases begin, so that the files of the first phase have to be there before.
    #[must_use]
    pub fn awaits_files(&self) -> bool {
        !self.plan.fill.is_empty()
    }

    /// How far all is that goes on beside the phases.
    ///
    /// # Errors
    /// What it has failed of.
    pub fn syncs(&self, roots: &raidlab_io::observe::Roots) -> Result<Vec<SyncState>> {
        let numbers = self.busy_arrays().into_iter();
        let mut states: Vec<SyncState> = numbers.map(|n| SyncState::of(roots, n)).collect();
        if let Some(refill) = &self.refill {
            states.push(refill.state(self.filled.as_ref())?);
        }
        Ok(states)
    }

    /// Has the members fail that are to be replaced, and fills them with nothing else going on: before the phases, for these change
    /// what is in use. Does nothing to other arrays.
    ///
    /// # Errors
    /// When a step fails.
    pub fn fill_alone(
        &mut self,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        for step in self.plan.fill.clone() {
            self.take(&step, claims, journal, context)?;
            let fills = matches!(step, Step::Refill { .. } | Step::Resilver { .. });
            if let (true, Some(refill)) = (fills, &self.refill) {
                let begun = Instant::now();
                let bytes = refill.wait(context)?;
                let took = begun.elapsed();
                self.filled = Some(Filled { took, bytes });
            }
        }
        Ok(())
    }

    /// Begins to fill members of a file system of btrfs.
    pub(super) fn refill(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
    ) -> Result<()> {
        let Step::Refill {
            point,
            uuid,
            members,
            profile,
            of,
        } = step
        else {
            return Ok(());
        };
        let mut held = Vec::new();
        for refilled in members {
            let claim = claims.get_mut(refilled.member);
            held.push(claim.map_or(Ok(None), Claim::hand_over)?);
        }
        let used = rustix::fs::statvfs(point).map_or(0, |found| {
            (found.f_blocks - found.f_bfree).saturating_mul(found.f_frsize)
        });
        let all = *of as u64;
        let data = (all - (profile.parities() as u64).min(all)).max(1);
        let expected = used * profile.copies() as u64 / data * members.len() as u64;
        let undo = Undo::Replacement {
            point: point.clone(),
            uuid: self.filled_word(uuid),
        };
        let step = journal.intend("replacement of members of btrfs", &[undo])?;
        let replacement = Replacement::begin(point, members, held, (expected, (data, all)));
        // Kept whether or not it has begun: it is ended before anything else is undone.
        let refill = self.refill.insert(Refill::Replacement(replacement));
        if let Refill::Replacement(replacement) = refill {
            replacement.begun()?;
        }
        for refilled in members.iter().take(1) {
            if let Some(claim) = claims.get(refilled.member) {
                claim.held_by(&[])?;
            }
        }
        journal.done(step)
    }

    /// Puts new members into a pool, which are filled from then on, all of them at once.
    pub(super) fn resilver(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        context: &mut Context<'_>,
    ) -> Result<()> {
        let Step::Resilver {
            name,
            members,
            ashift,
            each,
        } = step
        else {
            return Ok(());
        };
        let name = self.filled_word(name);
        let new: Vec<(&Refilled, &str)> = members
            .iter()
            .map(|refilled| (refilled, self.members[refilled.member].name.as_str()))
            .collect();
        let mut resilver = Resilver::new(context.roots, &name, &new, *each);
        for refilled in members {
            // Held until it is its turn: it is empty, and nobody else is to take it.
            if let Some(claim) = claims.get_mut(refilled.member) {
                claim.lend()?;
            }
            resilver.replace(refilled, *ashift)?;
        }
        resilver.begun(context)?;
        self.refill = Some(Refill::Resilver(resilver));
        Ok(())
    }
}
