//! From a cell's setup and its members to the steps that build it. Pure: nothing is looked at or touched.
use super::check::{self, Check};
use super::step::{Node, Step};
use super::{filesystem, md, tune};
use crate::identity::Identity;
use crate::volume::Volume;
use raidlab_core::words::count;
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_experiment::setup::{ArrayState, Engine, Setup};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A device that is to be a member, with what of it decides how it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDevice {
    /// Its node.
    pub path: PathBuf,
    /// By what it is known.
    pub identity: Identity,
    /// I/O schedulers that its queue can have.
    pub schedulers: Vec<String>,
    /// Whether its write cache is on; `None` when the kernel does not know.
    pub write_cache: Option<bool>,
    /// Whether hdparm can switch its cache.
    pub ata: bool,
    /// Whether the commands given to it at once can be set.
    pub has_queue_depth: bool,
    /// Whether its write-back can be throttled (`wbt_lat_usec`).
    pub throttles: bool,
}

/// Whether a new array's members are made to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialSync {
    /// By md, as for a real array, and waited for.
    #[default]
    Real,
    /// They are taken to agree: right for members that are all zero, where copies and parity agree already.
    AssumeClean,
}

/// What of the machine a plan depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where a file system is mounted; made for it.
    pub mount: PathBuf,
    /// Numbers of md arrays that are free.
    pub arrays: Vec<u32>,
    /// Whether new arrays are synced.
    pub initial_sync: InitialSync,
    /// Whether mdadm can put a disk into a DDF container ([`adds_to_ddf`](super::adds_to_ddf)).
    pub adds_to_ddf: bool,
    /// Whether arrays are checked after the phases.
    pub verify: bool,
    /// Whether the members are modelled disks, which hold what the state of the array asks for.
    pub modelled: bool,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The array or disk itself, past all file systems.
    Device(Node),
    /// A directory on the file system that is mounted here.
    Directory(PathBuf),
}

/// Why a setup cannot be built here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// The steps that build a setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionPlan {
    /// The members, in role order.
    pub members: Vec<MemberDevice>,
    /// Steps before the trial.
    pub steps: Vec<Step>,
    /// Steps before [`start`](Self::start), when the files of the first phase are there: members that get what is in use are filled with
    /// nothing else going on. Empty for all other arrays.
    pub fill: Vec<Step>,
    /// Steps directly before the first phase: what the array is to be doing meanwhile begins.
    pub start: Vec<Step>,
    /// Asked after the phases: whether what was built is still consistent.
    pub checks: Vec<Check>,
    /// What is measured.
    pub target: Target,
    /// What of the setup is not as asked for, and why.
    pub notes: Vec<String>,
}

/// Plans how a setup is built on members.
///
/// # Errors
/// What of the setup cannot be built on a real machine.
pub fn plan(
    setup: &Setup,
    members: &[MemberDevice],
    options: &Options,
) -> Result<ProvisionPlan, PlanError> {
    let volume = Volume::of(&setup.array);
    if let Some(volume) = &volume
        && setup.array.state != ArrayState::Clean
    {
        return Err(PlanError(format!(
            "{volume} is the controller's own: its disks are failed and replaced there, not by raidlab; leave the \
             state out, or bring it about there and measure it as a clean one"
        )));
    }
    let wanted = volume.as_ref().map_or(setup.array.members.len(), |_| 1);
    if members.len() != wanted {
        let message = format!(
            "{} needed, and {} given",
            count(wanted, "member"),
            members.len()
        );
        return Err(PlanError(message));
    }
    let mut draft = Draft {
        setup,
        members,
        options,
        steps: Vec::new(),
        fill: Vec::new(),
        start: Vec::new(),
        checks: Vec::new(),
        notes: Vec::new(),
        uuids: 0,
    };
    tune::members(&mut draft)?;
    let kind = setup.filesystem.as_ref().map(|filesystem| filesystem.kind);
    let target = match setup.array.engine {
        Engine::None | Engine::Controller => {
            check::not_asked(&mut draft);
            if let Some(volume) = &volume {
                draft.notes.push(format!(
                    "{} is taken to be the {volume} that the allow-list says it is: the controller is not asked",
                    members[0].path.display()
                ));
            }
            filesystem::on(&mut draft, &Node::Member(0), None)?
        }
        Engine::Md => {
            let (top, layout) = md::arrays(&mut draft)?;
            filesystem::on(&mut draft, &Node::Array(top), Some(&layout))?
        }
        Engine::Btrfs => filesystem::btrfs(&mut draft)?,
        Engine::Zfs => filesystem::zfs(&mut draft)?,
    };
    tune::system(&mut draft);
    if kind == Some(FilesystemKind::Ntfs) {
        return Err(PlanError(
            "ntfs is of Windows, and this is Linux".to_owned(),
        ));
    }
    Ok(ProvisionPlan {
        members: members.to_vec(),
        steps: draft.steps,
        fill: draft.fill,
        start: draft.start,
        checks: draft.checks,
        target,
        notes: draft.notes,
    })
}

/// A plan while it is made.
pub(super) struct Draft<'a> {
    pub(super) setup: &'a Setup,
    pub(super) members: &'a [MemberDevice],
    pub(super) options: &'a Options,
    pub(super) steps: Vec<Step>,
    pub(super) fill: Vec<Step>,
    pub(super) start: Vec<Step>,
    pub(super) checks: Vec<Check>,
    pub(super) notes: Vec<String>,
    pub(super) uuids: usize,
}

impl Draft<'_> {
    /// The place of a new uuid in a command line.
    pub(super) fn uuid(&mut self) -> String {
        self.uuids += 1;
        format!("{}{}", super::step::UUID, self.uuids)
    }

    /// The node's path.
    pub(super) fn path(&self, node: &Node) -> String {
        match node {
            Node::Member(member) => self.members[*member].path.display().to_string(),
            Node::Array(number) => format!("/dev/md{number}"),
        }
    }
}

impl ProvisionPlan {
    /// The command lines that build it, in order.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let before = self.steps.iter().map(ToString::to_string);
        let fill = self.fill.iter().map(Step::alone);
        let start = self.start.iter().map(ToString::to_string);
        before.chain(fill).chain(start).collect()
    }

    /// All steps, in order.
    pub(super) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.fill).chain(&self.start)
    }

    /// Those that check it after the phases.
    #[must_use]
    pub fn check_lines(&self) -> Vec<String> {
        self.checks.iter().map(ToString::to_string).collect()
    }

    /// What undoes it, as command lines, in order.
    #[must_use]
    pub fn undo_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Step::Refill { point, .. }) = self.start.last() {
            lines.push(format!("btrfs replace cancel {}", point.display()));
        }
        let mut cleared: Vec<usize> = Vec::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Mount { point, .. } => {
                    lines.push(format!("umount {0} && rmdir {0}", point.display()));
                }
                Step::Pool { name, .. } => lines.push(format!("zpool destroy -f {name}")),
                Step::Array { number, .. } => lines.push(format!("mdadm --stop /dev/md{number}")),
                _ => {}
            }
            let on = match step {
                Step::Array { on, .. } | Step::Filesystem { on, .. } | Step::Pool { on, .. } => on,
                _ => continue,
            };
            cleared.extend(on.iter().filter_map(|node| match node {
                Node::Member(member) => Some(*member),
                Node::Array(_) => None,
            }));
        }
        let settings = |step: &&Step| {
            let of_member = matches!(
                step,
                Step::Set {
                    node: Node::Member(_),
                    ..
                }
            );
            of_member || matches!(step, Step::WriteCache { .. } | Step::System { .. })
        };
        for step in self.steps.iter().filter(settings).rev() {
            lines.push(format!("{} back as it was", step.what()));
        }
        cleared.sort_unstable();
        cleared.dedup();
        for member in cleared {
            let path = self.members[member].path.display();
            lines.push(format!("wipe the first and last 2 MiB of {path}"));
        }
        lines
    }

    /// Whether settings of the whole system are changed.
    #[must_use]
    pub fn sets_system(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::System { .. }))
    }

    /// Numbers of the arrays that it makes, in order.
    #[must_use]
    pub fn arrays(&self) -> Vec<u32> {
        let numbers = self.steps.iter().filter_map(|step| match step {
            Step::Array { number, .. } => Some(*number),
            _ => None,
        });
        numbers.collect()
    }

    /// SHA-256 of the members and all command lines, as 64 hexadecimal digits: another device, another option or
    /// another order is another digest.
    #[must_use]
    pub fn digest(&self) -> String {
        digest([self])
    }
}

/// One digest over several plans, in order.
pub fn digest<'p>(plans: impl IntoIterator<Item = &'p ProvisionPlan>) -> String {
    let mut text = String::new();
    for plan in plans {
        for member in &plan.members {
            let Identity { size, serial, .. } = &member.identity;
            let _ = writeln!(text, "{} {size} {serial:?}", member.path.display());
        }
        let lines = [plan.lines(), plan.check_lines(), plan.undo_lines()];
        for line in lines.into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
    }
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
