//! Disks that die in the middle of a trial, because the user wants to see what comes of it.
use super::super::death::Death;
use super::disks::Members;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::time::Span;
use raidlab_experiment::Cell;
use std::time::Instant;

/// A disk that is to die.
struct One<'d> {
    death: &'d Death,
    member: usize,
    /// When it did, after the beginning of the first phase.
    died: Option<Span>,
}

/// Those of a trial. Time is the guest's.
pub(super) struct Deaths<'d> {
    members: &'d Members,
    all: Vec<One<'d>>,
    begun: Option<Instant>,
}

impl<'d> Deaths<'d> {
    /// Deaths of members of this cell; disks that it does not have do not die in it.
    pub(super) fn new(deaths: &'d [Death], cell: &Cell, members: &'d Members) -> Self {
        let names = &cell.setup.array.members;
        let one = |death: &'d Death| {
            let member = names.iter().position(|name| *name == death.disk)?;
            Some(One {
                death,
                member,
                died: None,
            })
        };
        Self {
            members,
            all: deaths.iter().filter_map(one).collect(),
            begun: None,
        }
    }

    /// A phase begins; time counts from the first.
    pub(super) fn phase(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// Kills what is due.
    pub(super) fn tick(&mut self) {
        let Some(begun) = self.begun.filter(|_| !self.all.is_empty()) else {
            return;
        };
        let now = Span::from(begun.elapsed());
        for one in &mut self.all {
            if one.died.is_none() && now >= one.death.after && self.members.kill(one.member) {
                one.died = Some(now);
            }
        }
    }

    /// What the trial's record says of them.
    pub(super) fn flags(&self) -> Vec<Flag> {
        let flag = |one: &One<'_>| {
            let disk = &one.death.disk;
            match one.died {
                Some(at) => Flag::new(
                    FlagKind::MemberFailed,
                    format!(
                        "{disk} was made to fail {at} after the first phase began, as asked for"
                    ),
                ),
                None => Flag::new(
                    FlagKind::Other,
                    format!(
                        "{disk} was to fail after {}: the phases were over before",
                        one.death.after
                    ),
                ),
            }
        };
        self.all.iter().map(flag).collect()
    }
}
