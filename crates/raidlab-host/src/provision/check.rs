//! Whether an array is still consistent: asked after the phases, for a fast array that holds something else than what was
//! written to it is not to be ranked.
//!
//! md compares copies, or parity with the data; ZFS and btrfs read what they hold and compare checksums. Nothing is
//! mended that would not be mended by reading it.
mod btrfs;
mod compare;
mod pool;
mod progress;
mod status;

pub(super) use progress::{HEARS, Progress, STALLED};
pub(super) use status::{Status, WHOLE};

use super::build::{Built, Context, Stage};
use super::plan::{Draft, Target};
use crate::error::{HostError, Result};
use crate::journal::Journal;
use raidlab_core::words::count;
use raidlab_experiment::setup::{ArrayState, Engine};
use raidlab_layout::Layout;
use raidlab_layout::parity::ParityLevel;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What a check of an md array compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// So many copies over so many members.
    Copies {
        /// Copies of each block.
        copies: usize,
        /// Members.
        members: usize,
    },
    /// Parity, of which so many members may be lost.
    Parity(usize),
}

impl Compared {
    /// `None` without redundancy.
    pub(super) fn of(layout: &Layout) -> Option<Self> {
        match layout {
            Layout::Raid1(_) => Some(Self::Copies {
                copies: layout.members(),
                members: layout.members(),
            }),
            Layout::Raid10(raid10) => {
                let copies = raid10.copies();
                Some(Self::Copies {
                    copies: copies.near * copies.far,
                    members: layout.members(),
                })
            }
            Layout::Parity(parity) => Some(Self::Parity(match parity.level() {
                ParityLevel::Raid4 | ParityLevel::Raid5 => 1,
                ParityLevel::Raid6 => 2,
            })),
            _ => None,
        }
    }

    /// Whether anything is left to compare when so many members are missing.
    const fn without(self, lost: usize) -> bool {
        match self {
            Self::Copies { copies, members } => {
                members.saturating_sub(lost) > members.div_ceil(copies)
            }
            Self::Parity(spare) => lost < spare,
        }
    }
}

/// One check, as data: what it does can be printed before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// md compares the members of an array.
    Array {
        /// Its number.
        number: u32,
        /// It keeps copies: those of pages that changed while they were written may differ, and nobody reads them.
        mirror: bool,
    },
    /// ZFS reads all that is in a pool.
    Pool {
        /// Its name, with the place of its uuid.
        name: String,
    },
    /// btrfs reads all that is in a file system.
    Filesystem {
        /// Where it is mounted.
        point: PathBuf,
        /// The place of its uuid.
        uuid: String,
        /// Members that it is mounted without: what is on the others is compared with its checksums.
        missing: usize,
    },
}

/// When a check has something to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As long as the data of the phases are there: a scrub reads what is allocated.
    WithData,
    /// When nothing goes on in the array any more: md compares all of its members.
    AtRest,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What was checked: `md119`, the name of a pool, `btrfs`.
    pub of: String,
    /// By what: `md check`, `zpool scrub`, `btrfs scrub`.
    pub by: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Of md bytes of each member, of a scrub bytes of all that was read; `None` when that was not told.
    pub bytes: Option<u64>,
    /// What was counted, by the names that the kernel and the tools have for it.
    pub counts: BTreeMap<String, u64>,
    /// What does not agree.
    pub found: Option<Found>,
}

/// Something that does not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// In words, with what it means.
    pub what: String,
    /// It need not be a fault of the array.
    pub may_be_benign: bool,
}

impl Check {
    /// When it is to be run.
    #[must_use]
    pub const fn when(&self) -> When {
        match self {
            Self::Array { .. } => When::AtRest,
            Self::Pool { .. } | Self::Filesystem { .. } => When::WithData,
        }
    }

    /// The tool that it needs.
    pub(super) const fn tool(&self) -> Option<&'static str> {
        match self {
            Self::Array { .. } => None,
            Self::Pool { .. } => Some("zpool"),
            Self::Filesystem { .. } => Some("btrfs"),
        }
    }
}

/// The command lines, as a shell would take them.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array { number, .. } => {
                let md = format!("/sys/block/md{number}/md");
                write!(
                    f,
                    "echo check > {md}/sync_action && until [ $(cat {md}/sync_action) = idle ]; do sleep 1; done && cat \
                     {md}/mismatch_cnt"
                )
            }
            Self::Pool { name } => write!(f, "zpool scrub -w {name} && zpool status -p {name}"),
            Self::Filesystem { point, .. } => {
                let point = point.display();
                write!(
                    f,
                    "btrfs scrub start -B -R {point} && btrfs device stats {point}"
                )
            }
        }
    }
}

/// Plans the check of an md array of which so many members are missing.
pub(super) fn array(
    draft: &mut Draft<'_>,
    number: u32,
    compared: Option<Compared>,
    lost: usize,
    unsynced: Option<ArrayState>,
) {
    let Some(compared) = compared.filter(|_| draft.options.verify) else {
        return;
    };
    let label = &draft.setup.array.layout;
    if let Some(state) = unsynced {
        let what = match state {
            ArrayState::InitialSync => "in its initial sync: that",
            _ => "resyncing: the resync",
        };
        draft.notes.push(format!(
            "{label} is not verified while it is {what} writes what a check would compare"
        ));
    } else if compared.without(lost) {
        let mirror = matches!(compared, Compared::Copies { .. });
        draft.checks.push(Check::Array { number, mirror });
    } else {
        draft.notes.push(format!(
            "{label} is not verified with {} missing: nothing is left that its data could be compared with",
            count(lost, "member")
        ));
    }
}

/// Says that arrays without redundancy are not checked.
pub(super) fn nothing_to_compare(draft: &mut Draft<'_>) {
    if draft.options.verify {
        draft.notes.push(format!(
            "{} is not verified: it has no redundancy, so that there is nothing to compare its data with",
            draft.setup.array.layout
        ));
    }
}

/// Says that what is not the kernel's is not checked.
pub(super) fn not_asked(draft: &mut Draft<'_>) {
    match draft.setup.array.engine {
        Engine::Controller if draft.options.verify => draft.notes.push(format!(
            "{} of a controller is not verified: only the controller can compare its disks (its patrol read or \
             consistency check)",
            draft.setup.array.layout
        )),
        _ => nothing_to_compare(draft),
    }
}

/// Plans the scrub of a pool. Data have checksums there without redundancy, too.
pub(super) fn pool(draft: &mut Draft<'_>, name: &str) {
    if draft.options.verify {
        let name = name.to_owned();
        draft.checks.push(Check::Pool { name });
    }
}

/// Plans the scrub of an array of btrfs of this uuid, which is without so many of its members then.
pub(super) fn btrfs(draft: &mut Draft<'_>, uuid: &str, missing: usize) {
    if draft.options.verify {
        draft.checks.push(Check::Filesystem {
            point: draft.options.mount.clone(),
            uuid: uuid.to_owned(),
            missing,
        });
    }
}

impl Built {
    /// Carries out the checks of the plan that belong there; what came of each, or why it could not be carried out, which
    /// keeps the others from nothing. A check that is not to go on is stopped, so that the array is idle again.
    ///
    /// # Errors
    /// [`HostError::Interrupted`]; when what is still to be written cannot be.
    pub fn verify(
        &self,
        when: When,
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<Vec<Result<Checked>>> {
        let checks: Vec<&Check> = self.plan.checks.iter().collect();
        let mut all = Vec::new();
        for check in checks.into_iter().filter(|check| check.when() == when) {
            context.tell(&Stage {
                what: "writing back what is in memory".to_owned(),
                done: 0,
                of: 0,
            })?;
            if let Some(refill) = &self.refill {
                // Nothing is scrubbed while members are replaced.
                refill.wait(context)?;
            }
            self.flush()?;
            let came = match check {
                Check::Array { number, mirror } => compare::array(context, *number, *mirror),
                Check::Pool { name } => pool::scrub(context, &self.filled_word(name)),
                Check::Filesystem {
                    point,
                    uuid,
                    missing,
                } => {
                    let uuid = self.filled_word(uuid);
                    btrfs::scrub(context, journal, (point, &uuid), *missing)
                }
            };
            match came {
                Err(HostError::Interrupted) => return Err(HostError::Interrupted),
                other => all.push(other),
            }
        }
        Ok(all)
    }

    /// What is still to be written is, so that it is compared, too.
    fn flush(&self) -> Result<()> {
        let Target::Directory(point) = self.target() else {
            return Ok(());
        };
        let directory = std::fs::File::open(point).map_err(HostError::call("open", point))?;
        rustix::fs::syncfs(&directory).map_err(HostError::call("sync", point))
    }
}

#[cfg(test)]
mod stalled;
#[cfg(test)]
mod tests;
