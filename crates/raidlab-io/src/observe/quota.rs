//! Quotas: what a user, a group, a project or a subvolume may take of a file system.
//!
//! Of ext4, XFS and their like by `quotactl_fd` (Linux 5.14), of btrfs by its quota groups in sysfs (Linux 5.9). What cannot be
//! asked is not known, and then writing tells (`EDQUOT`).

use super::mountinfo::{self, Mount};
use super::roots::Roots;
use raidlab_core::units::Bytes;
use std::fmt;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What a quota is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A user, by number.
    User(u32),
    /// A group of users, by number.
    Group(u32),
    /// A project: a tree of directories (`chattr -p`), by number.
    Project(u32),
    /// A quota group of btrfs: `0/256` is of subvolume 256.
    Subvolume(String),
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user {id}"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Project(id) => write!(f, "project {id}"),
            Self::Subvolume(id) => write!(f, "quota group {id}"),
        }
    }
}

/// A limit on a part of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Of what.
    pub whose: Whose,
    /// Bytes that may be used.
    pub bytes: Option<u64>,
    /// Bytes that are used.
    pub used: u64,
    /// Files that may be there.
    pub files: Option<u64>,
    /// Files that are there.
    pub files_used: u64,
}

impl Quota {
    /// Bytes that may still be written.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        self.bytes.map(|limit| limit.saturating_sub(self.used))
    }
}

impl fmt::Display for Quota {
    /// `the quota of user 1000 (40 MiB, 12 MiB used)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limits = Vec::new();
        if let Some(bytes) = self.bytes {
            limits.push(format!("{}, {} used", Bytes(bytes), Bytes(self.used)));
        }
        if let Some(files) = self.files {
            limits.push(format!("{files} files, {} there", self.files_used));
        }
        write!(f, "the quota of {} ({})", self.whose, limits.join("; "))
    }
}

/// The quotas that hold for what this process writes in a directory, or to a file; what cannot be asked is left out.
#[must_use]
pub fn quotas(roots: &Roots, path: &Path) -> Vec<Quota> {
    let Some((file, mount)) = place(roots, path) else {
        return Vec::new();
    };
    if mount.fs_type == "btrfs" {
        return subvolume(roots, &file, &mount).into_iter().collect();
    }
    let Ok(found) = file.metadata() else {
        return Vec::new();
    };
    // A directory with the set-group-id bit hands its group on; else it is the process's.
    let group = match found.is_file() || found.mode() & libc::S_ISGID != 0 {
        true => found.gid(),
        false => rustix::process::getegid().as_raw(),
    };
    let user = match found.is_file() {
        true => found.uid(),
        false => rustix::process::geteuid().as_raw(),
    };
    let asked = [
        Some(Whose::User(user)),
        Some(Whose::Group(group)),
        project(&file).map(Whose::Project),
    ];
    asked
        .into_iter()
        .flatten()
        .filter_map(|whose| ask(&file, whose))
        .filter(|quota| quota.bytes.is_some() || quota.files.is_some())
        .collect()
}

/// The quota that leaves least room to what this process writes there, where one does that.
#[must_use]
pub fn tightest(roots: &Roots, path: &Path) -> Option<Quota> {
    let mut all = quotas(roots, path);
    // ext4 and its like let whoever may take all resources go beyond quotas.
    if all.iter().any(|quota| !is_subvolume(quota)) && may_exceed(roots) && !is_xfs(roots, path) {
        all.clear();
    }
    all.retain(|quota| quota.bytes.is_some());
    all.into_iter().min_by_key(|quota| quota.left())
}

/// The quota by which no more than `available` bytes may be written.
#[must_use]
pub fn limiting(roots: &Roots, path: &Path, available: u64) -> Option<Quota> {
    tightest(roots, path).filter(|quota| quota.left().is_some_and(|left| left <= available))
}

/// What to say of a write that a quota forbade: which, where, and what helps.
#[must_use]
pub fn told(roots: &Roots, path: &Path) -> String {
    let mount = place(roots, path).map(|(_, mount)| mount);
    let on = mount.as_ref().map_or(String::new(), |mount| {
        format!(" on {} ({})", mount.point.display(), mount.fs_type)
    });
    let used_up: Vec<String> = quotas(roots, path).iter().map(Quota::to_string).collect();
    let which = match used_up.as_slice() {
        [] => "a quota".to_owned(),
        some => some.join(" or "),
    };
    let look = match mount.map(|mount| mount.fs_type) {
        Some(fs_type) if fs_type == "btrfs" => "'btrfs qgroup show -re' shows it",
        _ => "'quota' and 'repquota -a' show it",
    };
    format!("{which}{on} is used up: give a smaller size, or have the quota raised ({look})")
}

fn is_subvolume(quota: &Quota) -> bool {
    matches!(quota.whose, Whose::Subvolume(_))
}

fn is_xfs(roots: &Roots, path: &Path) -> bool {
    place(roots, path).is_some_and(|(_, mount)| mount.fs_type == "xfs")
}

/// What is at a path, or above it, and on which mount that is.
fn place(roots: &Roots, path: &Path) -> Option<(File, Mount)> {
    let (file, path) = nearest(path)?;
    let mounts = mountinfo::parse(&roots.proc_text("self/mountinfo").ok()?).ok()?;
    Some((file, mountinfo::mount_of(&mounts, &path, None)?.clone()))
}

/// The path, or the directory above it that is there: what failed may have been removed meanwhile.
fn nearest(path: &Path) -> Option<(File, PathBuf)> {
    let mut real = path.to_owned();
    loop {
        let is_place = std::fs::metadata(&real).is_ok_and(|its| its.is_dir() || its.is_file());
        if let Some(file) = is_place.then(|| File::open(&real).ok()).flatten() {
            return Some((file, std::fs::canonicalize(&real).ok()?));
        }
        if !real.pop() {
            return None;
        }
    }
}

/// Whether this process may go beyond quotas of ext4 (`CAP_SYS_RESOURCE`, bit 24).
fn may_exceed(roots: &Roots) -> bool {
    let status = roots.proc_text("self/status").unwrap_or_default();
    let bits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << 24) != 0)
}

/// One quota of the file system of an open file; `None` when there are none, or it may not be asked for.
fn ask(file: &File, whose: Whose) -> Option<Quota> {
    // <linux/quota.h>: QCMD(Q_GETQUOTA, type).
    let (kind, id) = match whose {
        Whose::User(id) => (0, id),
        Whose::Group(id) => (1, id),
        Whose::Project(id) => (2, id),
        Whose::Subvolume(_) => return None,
    };
    let command = (libc::Q_GETQUOTA << 8) | kind;
    let mut told = MaybeUninit::<libc::dqblk>::zeroed();
    // SAFETY: the kernel writes a `dqblk` to the pointer, which is one, or nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            file.as_raw_fd(),
            command,
            id,
            told.as_mut_ptr(),
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: all zeros are a `dqblk`, and the kernel filled it in.
    let told = unsafe { told.assume_init() };
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec as u64;
    let bytes = limit(
        told.dqb_bhardlimit,
        told.dqb_bsoftlimit,
        told.dqb_btime,
        now,
    );
    Some(Quota {
        whose,
        // Blocks of 1 KiB, whatever those of the file system are.
        bytes: bytes.map(|blocks| blocks.saturating_mul(1024)),
        used: told.dqb_curspace,
        files: limit(
            told.dqb_ihardlimit,
            told.dqb_isoftlimit,
            told.dqb_itime,
            now,
        ),
        files_used: told.dqb_curinodes,
    })
}

/// The limit that holds: the soft one from the end of its grace on (seconds since 1970, 0 for none).
fn limit(hard: u64, soft: u64, grace: u64, now: u64) -> Option<u64> {
    match (hard, soft) {
        (_, soft) if soft != 0 && grace != 0 && now >= grace => Some(soft),
        (0, _) => None,
        (hard, _) => Some(hard),
    }
}

/// The project of a file or directory: `FS_IOC_FSGETXATTR` (<linux/fs.h>).
fn project(file: &File) -> Option<u32> {
    /// `struct fsxattr`: flags, extent size, extents, project, extent size for copies, eight bytes of padding.
    type Attributes = [u32; 7];
    const GET: libc::c_ulong = 0x801c_581f;
    let mut told: Attributes = [0; 7];
    // SAFETY: the request writes 28 bytes, which is what there is.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), GET as _, told.as_mut_ptr()) };
    (result == 0).then_some(told[3])
}

/// The quota group of the subvolume that a file of btrfs is in.
fn subvolume(roots: &Roots, file: &File, mount: &Mount) -> Option<Quota> {
    let id = subvolume_id(file)?;
    let device = Path::new(&mount.source).file_name()?;
    let all = std::fs::read_dir(roots.sys.join("fs/btrfs")).ok()?;
    let groups = all
        .flatten()
        .map(|entry| entry.path())
        .find(|its| its.join("devices").join(device).exists())?
        .join("qgroups");
    let number = |name: &str| -> Option<u64> {
        let mut text = [0; 24];
        let its = File::open(groups.join(format!("0_{id}")).join(name)).ok()?;
        let read = its.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..read]).ok()?.trim().parse().ok()
    };
    // <linux/btrfs.h>: BTRFS_QGROUP_LIMIT_MAX_RFER, BTRFS_QGROUP_LIMIT_MAX_EXCL.
    let flags = number("limit_flags")?;
    let reserved = number("rsv_data").unwrap_or(0);
    let limits = [
        (1, "max_referenced", "referenced"),
        (2, "max_exclusive", "exclusive"),
    ];
    let (bytes, used) = limits
        .into_iter()
        .filter(|(bit, ..)| flags & bit != 0)
        .filter_map(|(_, most, used)| Some((number(most)?, number(used)? + reserved)))
        .min_by_key(|(most, used)| most.saturating_sub(*used))?;
    Some(Quota {
        whose: Whose::Subvolume(format!("0/{id}")),
        bytes: Some(bytes),
        used,
        files: None,
        files_used: 0,
    })
}

/// `BTRFS_IOC_INO_LOOKUP` (<linux/btrfs.h>) of the first object of a tree, which anybody may ask: in which tree a file is.
fn subvolume_id(file: &File) -> Option<u64> {
    #[repr(C)]
    struct Lookup {
        tree: u64,
        object: u64,
        name: [u8; 4080],
    }
    const LOOKUP: libc::c_ulong = 0xd000_9412;
    let mut asked = Lookup {
        tree: 0,
        object: 256,
        name: [0; 4080],
    };
    // SAFETY: the request reads and writes a structure of 4096 bytes, which is what there is.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), LOOKUP as _, &raw mut asked) };
    (result == 0).then_some(asked.tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_limit_holds_when_its_grace_is_over() {
        assert_eq!(limit(0, 0, 0, 100), None);
        assert_eq!(
            limit(80, 40, 0, 100),
            Some(80),
            "not yet above the soft one"
        );
        assert_eq!(limit(80, 40, 101, 100), Some(80), "in its grace");
        assert_eq!(limit(80, 40, 100, 100), Some(40));
        assert_eq!(limit(0, 40, 100, 100), Some(40));
    }

    #[test]
    fn a_quota_in_words() {
        let quota = |whose, bytes, files| Quota {
            whose,
            bytes,
            used: 12 << 20,
            files,
            files_used: 7,
        };
        let of_user = quota(Whose::User(1000), Some(40 << 20), None);
        assert_eq!(of_user.left(), Some(28 << 20));
        let told = [
            of_user.to_string(),
            quota(Whose::Project(5), Some(1 << 20), Some(10)).to_string(),
            quota(Whose::Subvolume("0/256".to_owned()), Some(0), None).to_string(),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
    the quota of user 1000 (40 MiB, 12 MiB used)
    the quota of project 5 (1 MiB, 12 MiB used; 10 files, 7 there)
    the quota of quota group 0/256 (0 B, 12 MiB used)
    ");
    }
}
