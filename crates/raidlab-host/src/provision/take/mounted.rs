//! File systems are mounted.
use super::super::build::Built;
use super::super::step::Step;
use super::taken;
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::identity::FileId;
use crate::journal::{Journal, Undo};
use raidlab_io::observe::Roots;
use raidlab_io::observe::mountinfo;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;

impl Built {
    pub(super) fn mount(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
        roots: &Roots,
    ) -> Result<()> {
        let Step::Mount {
            fs_type,
            options,
            source,
            point,
            on,
        } = step
        else {
            return Ok(());
        };
        self.lend(on, claims)?;
        let first = journal.mark();
        if let Some(parent) = point.parent() {
            std::fs::create_dir_all(parent).map_err(HostError::call("make", parent))?;
        }
        let made = journal.intend("make the mount point", &[Undo::NewDirectory(point.clone())])?;
        if let Err(error) = std::fs::create_dir(point) {
            // What is there is not ours, and not ours to remove.
            journal.done_with(made, &[])?;
            return Err(match error.kind() {
                std::io::ErrorKind::AlreadyExists => taken(point),
                _ => HostError::call("make", point)(error),
            });
        }
        journal.done_with(made, &[Undo::Directory(FileId::of(point)?)])?;
        let undo = Undo::Mount {
            point: point.clone(),
            members: self.members.clone(),
        };
        let taken = journal.intend(&step.what(), &[undo])?;
        let (flags, data) = flags_of(options);
        let data = CString::new(data).unwrap_or_default();
        mount(source, point, *fs_type, flags, Some(data.as_c_str()))
            .map_err(|error| HostError::Unexpected(format!("'{step}' failed: {error}")))?;
        journal.done(taken)?;
        self.mounted = first..journal.mark();
        let table = roots.proc.join("self/mountinfo");
        let text = std::fs::read_to_string(&table).map_err(HostError::call("read", &table))?;
        let mounts = mountinfo::parse(&text)?;
        if mounts.iter().rfind(|mount| mount.point == *point).is_none() {
            return Err(HostError::Unexpected(format!(
                "{} is not mounted",
                point.display()
            )));
        }
        for node in on {
            if let Some(claim) = self.claim(node, claims) {
                claim.held_by(&[])?;
            }
        }
        Ok(())
    }

    /// Unmounts what was mounted last, as if it were to be undone.
    pub(super) fn unmount(&mut self, journal: &mut Journal, roots: &Roots) -> Result<()> {
        let report = journal.undo_steps(roots, self.mounted.clone())?;
        match report.left.first() {
            Some(left) => Err(HostError::Unexpected(left.clone())),
            None => Ok(()),
        }
    }
}

/// Splits mount options into those that are flags of the call and those that the file system reads.
fn flags_of(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut rest = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "nodev" => flags |= MountFlags::NODEV,
            "nosuid" => flags |= MountFlags::NOSUID,
            "noexec" => flags |= MountFlags::NOEXEC,
            "defaults" | "rw" | "async" | "atime" => {}
            other => rest.push(other),
        }
    }
    (flags, rest.join(","))
}
