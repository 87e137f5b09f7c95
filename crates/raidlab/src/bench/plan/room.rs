//! Room for what a profile makes: bytes and files.
use super::{Arm, Bytes, Failure, MISSING, Path, ProfilePlan, TargetRecord};
use raidlab_io::observe::environment::Space;

/// Free space of a directory. Some file systems tell of no size at all: what is behind a server may have room all the same and
/// says so when it is full, ramfs takes memory until the machine has none, and what the kernel makes up keeps nothing.
pub(super) fn free(path: &Path, target: &TargetRecord) -> Result<Bytes, Failure> {
    let filesystem = target.filesystem.as_ref();
    let Some((fs, space)) = filesystem.and_then(|f| f.space.map(|space| (&f.fs_type, space)))
    else {
        return Ok(Bytes(u64::MAX));
    };
    if space.total > 0 {
        return Ok(Bytes(space.available));
    }
    if fs.starts_with("fuse") {
        return Ok(Bytes(u64::MAX));
    }
    let (what, remedy) = match fs.as_str() {
        "ramfs" => (
            "tells of no size and ends where the memory does",
            "mount tmpfs with a size instead (mount -t tmpfs -o size=1G tmpfs PATH)",
        ),
        _ => (
            "has no space to keep files in",
            "name a directory on a file system that keeps data",
        ),
    };
    Err(Failure::new(MISSING, format!("{}: {fs} {what}", path.display())).remedy(remedy))
}

/// Refuses what needs more files than can be made, where the file system has a number for that.
pub(super) fn enough_files(
    arm: &Arm,
    plan: &ProfilePlan,
    space: Option<Space>,
) -> Result<(), Failure> {
    let left = space.filter(|space| space.files > 0);
    match left.map(|space| space.files_free) {
        Some(left) if plan.files_needed > left => Err(Failure::new(
            MISSING,
            format!(
                "profile {} needs {} files, and {left} can be made yet (inodes): choose fewer 'files'",
                arm.profile.name(),
                plan.files_needed
            ),
        )
        .remedy(format!("the place is {}", arm.path.display()))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Place, Profile, ProfileContext};
    use super::*;

    #[test]
    fn more_files_than_there_are_inodes_are_refused() {
        let arm = |files: &str| {
            let mut profile = Profile::named("bonnie").unwrap();
            profile.set("files", files).unwrap();
            Arm {
                label: "/mnt".to_owned(),
                path: "/mnt".into(),
                profile,
            }
        };
        let plan = |arm: &Arm| {
            let place = Place::Directory {
                free: Bytes::gib(100),
            };
            let context = ProfileContext {
                memory: Bytes::gib(1),
                place,
                writable: true,
                alignment: 4096,
            };
            arm.profile.plan(&context).unwrap()
        };
        let space = |files, files_free| {
            Some(Space {
                block_size: 4096,
                total: 1 << 30,
                free: 1 << 30,
                available: 1 << 30,
                files,
                files_free,
            })
        };
        let sixteen = arm("16");
        let failure = enough_files(&sixteen, &plan(&sixteen), space(64, 53)).unwrap_err();
        assert_eq!(failure.code(), MISSING);
        assert_eq!(
            failure.message,
            "profile bonnie needs 16388 files, and 53 can be made yet (inodes): choose fewer 'files'"
        );
        // Not fixed (btrfs), unknown, enough, and none.
        for space in [space(0, 0), None, space(20_000, 16_388)] {
            assert!(enough_files(&sixteen, &plan(&sixteen), space).is_ok());
        }
        let none = arm("0");
        assert!(enough_files(&none, &plan(&none), space(64, 53)).is_ok());
    }
}
