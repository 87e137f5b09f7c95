//! Which other processes have a block device, or the file of a loop device, open or mapped. Opening exclusively keeps out
//! only those that ask in the same way: a virtual machine whose disk it is, or a `dd` onto it, does not.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::io::Errno;

use crate::observe::roots::{self, DeviceNumber, Roots};

/// What processes are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A block device.
    Device(DeviceNumber),
    /// A file.
    File {
        /// Number of the file system it is on.
        device: DeviceNumber,
        /// Its inode there.
        inode: u64,
    },
}

/// A process that has one of them open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// Its id.
    pub pid: u32,
    /// Its name, as the kernel has it (15 bytes at most).
    pub name: String,
    /// The device's node, or the file, as the process knows it.
    pub node: String,
    /// It is mapped into its memory, which closing it does not end.
    pub mapped: bool,
}

impl std::fmt::Display for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.mapped { "mapped" } else { "open" };
        write!(f, "{} ({}) has {} {how}", self.name, self.pid, self.node)
    }
}

/// The other processes that have one of these open or mapped, as far as this user may look; its own threads are none.
#[must_use]
pub fn openers(roots: &Roots, targets: &[Target]) -> Vec<Opener> {
    let own = std::process::id();
    let pids = roots::names_in(&roots.proc).into_iter();
    pids.filter_map(|name| name.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| opener(roots, pid, targets))
        .collect()
}

/// A process whose open files may not be looked into: what it has open is not known, and [`openers`] does not tell of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id.
    pub pid: u32,
    /// Whether this process has `CAP_SYS_PTRACE`: then a security module forbids it, which no user and no right helps
    /// against. Root without it, as in most containers, may not look at everything either.
    pub privileged: bool,
}

/// The first of the processes whose open files may not be looked into.
#[must_use]
pub fn unreadable(roots: &Roots) -> Option<Unreadable> {
    let own = std::process::id();
    let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let pids = roots::names_in(&roots.proc).into_iter();
    let mut pids = pids.filter_map(|name| name.parse::<u32>().ok());
    let pid = pids.find(|pid| {
        let looked = fs::read_dir(roots.proc.join(pid.to_string()).join("fd"));
        let first = looked.map(|mut entries| entries.next().and_then(Result::ok));
        *pid != own
            && match first {
                Ok(Some(link)) => fs::read_link(link.path()).is_err_and(denied),
                Ok(None) => false,
                // Not of one that has ended meanwhile.
                Err(error) => denied(error),
            }
    })?;
    let privileged = may_look(roots);
    Some(Unreadable { pid, privileged })
}

/// Whether this process has the right to look at all others, by `CapEff` in `proc_pid_status(5)`.
fn may_look(roots: &Roots) -> bool {
    /// `CAP_SYS_PTRACE` in `linux/capability.h`.
    const PTRACE: u32 = 19;
    let status = roots::text(&roots.proc.join("self/status")).unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> PTRACE & 1 == 1)
}

/// Whether processes of the machine cannot be seen from here, because this one is in a container with process numbers of its
/// own.
#[must_use]
pub fn in_container(roots: &Roots) -> bool {
    // Of the first such space the kernel has this number at all times (`PROC_PID_INIT_INO`).
    let space = fs::read_link(roots.proc.join("self/ns/pid"));
    space.is_ok_and(|space| space != Path::new("pid:[4026531836]"))
}

fn opener(roots: &Roots, pid: u32, targets: &[Target]) -> Option<Opener> {
    let process = roots.proc.join(pid.to_string());
    let mut tables = vec![process.join("fd")];
    // The first thread of a program may have ended before the others, and has nothing then.
    if roots::names_in(&tables[0]).is_empty() {
        let tasks = process.join("task");
        let threads = roots::names_in(&tasks).into_iter();
        tables.extend(threads.map(|thread| tasks.join(thread).join("fd")));
    }
    let open = || {
        let links = tables.iter().flat_map(|table| {
            let names = roots::names_in(table).into_iter();
            names.map(|name| table.join(name))
        });
        let node = links
            .into_iter()
            .find_map(|link| leads_to(&link, targets))?;
        Some((node, false))
    };
    let mapped = || {
        let links = mappings(&process);
        let node = links.iter().find_map(|link| leads_to(link, targets))?;
        Some((node, true))
    };
    let (node, mapped) = open().or_else(mapped)?;
    Some(Opener {
        pid,
        name: roots::text(&process.join("comm")).unwrap_or_default(),
        node,
        mapped,
    })
}

/// Links to what a process has mapped, one for each file: a program has some of its libraries dozens of times.
fn mappings(process: &Path) -> Vec<PathBuf> {
    let Some(maps) = roots::text(&process.join("maps")) else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let links = maps.lines().filter_map(|line| {
        // 7f10a000-7f10b000 rw-s 00000000 08:01 131 /a file
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let file = (words.nth(2)?, words.next()?);
        let address = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        let link = process.join(format!("map_files/{start:x}-{end:x}"));
        (file.1 != "0" && seen.insert(file)).then_some(link)
    });
    links.collect()
}

/// What a link to an open file says, when it leads to one of these. The name tells nothing of what it is: the node of a
/// device may be anywhere (the root of a jail, say) and may have gone.
fn leads_to(link: &Path, targets: &[Target]) -> Option<String> {
    let name = fs::read_link(link).ok()?;
    // Sockets, pipes and their like have no place: `socket:[1234]`.
    if !name.is_absolute() {
        return None;
    }
    let found = target(link).ok()??;
    let told = || name.to_string_lossy().into_owned();
    targets.contains(&found).then(told)
}

/// What is behind a link to an open file, without asking the server of a file system that is on another machine: one that is
/// silent would not let go of who asks. What does not change in the life of an open file (its kind, numbers and inode) the
/// kernel has itself, and `AT_STATX_DONT_SYNC` has it answer from that: NFS, SMB, Ceph, AFS and FUSE do; 9p does not, but its
/// server is mostly the machine around this one. To skip file systems by their type would miss some: nodes of
/// devices lie on them, too (the root of a machine without disks), and a process may have files of a mount that no table
/// shows.
fn target(link: &Path) -> io::Result<Option<Target>> {
    let wanted = StatxFlags::TYPE | StatxFlags::INO;
    let found = match statx(CWD, link, AtFlags::STATX_DONT_SYNC, wanted) {
        Ok(found) => found,
        // Before Linux 4.11, and where it is forbidden. Better to wait for a server than to write to what is in use.
        Err(Errno::NOSYS | Errno::PERM) => return fs::metadata(link).map(|found| of(&found)),
        Err(error) => return Err(error.into()),
    };
    let number = |major, minor| DeviceNumber { major, minor };
    Ok(match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::BlockDevice => {
            let device = number(found.stx_rdev_major, found.stx_rdev_minor);
            Some(Target::Device(device))
        }
        FileType::RegularFile => Some(Target::File {
            device: number(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        }),
        _ => None,
    })
}

fn of(found: &fs::Metadata) -> Option<Target> {
    if found.file_type().is_block_device() {
        return Some(Target::Device(DeviceNumber::from_raw(found.rdev())));
    }
    let file = Target::File {
        device: DeviceNumber::from_raw(found.dev()),
        inode: found.ino(),
    };
    found.is_file().then_some(file)
}

#[cfg(test)]
#[path = "../tests/openers.rs"]
mod tests;
