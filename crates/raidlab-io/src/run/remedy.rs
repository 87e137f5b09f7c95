//! What helps when the system gives an error: by what the place is, and on what it stands.
use crate::observe::environment::space_at;
use crate::observe::stack::{DeviceKind, DeviceStack};
use crate::observe::{LoopShows, PathKind, Resolved, Roots, loop_shows, privilege, quota, resolve};
use raidlab_core::units::{Bytes, SECTOR};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Why fewer of `wanted` bytes were moved: a device that is pulled out has no bytes from then on, and soon no name; a file system
/// writes what a quota or its space still allows, and only then says so.
pub(super) fn shortened(path: &Path, wanted: u64) -> String {
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return "the device has gone, or has become smaller: see the kernel's log (dmesg)"
            .to_owned();
    }
    let roots = Roots::system();
    if quota::tightest(&roots, path).is_some_and(|quota| quota.left() < Some(wanted)) {
        return quota::told(&roots, path);
    }
    match space_at(path) {
        Ok(space) if space.available < wanted => {
            "the disk is full: free some space, or give a smaller size".to_owned()
        }
        _ => "is the file shorter than the workload believes, or the disk full?".to_owned(),
    }
}

/// What helps, in words that follow the error.
pub(super) fn remedy(source: &io::Error, path: &Path) -> String {
    if let Some(libc::EACCES | libc::EPERM) = source.raw_os_error() {
        let otherwise = "run as a user who may, or name another path";
        return format!("; {}", privilege::remedy(privilege::is_root(), otherwise));
    }
    if source.raw_os_error() == Some(libc::EDQUOT) {
        return format!("; {}", quota::told(&Roots::system(), path));
    }
    let is_device =
        || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if source.raw_os_error() == Some(libc::ENOSPC) && is_device() {
        return "; what the device gets its space from is full (a thin pool, the file system of a loop file): make room there"
            .to_owned();
    }
    if source.raw_os_error() == Some(libc::EIO) {
        let resolved = resolve(&Roots::system(), path).ok();
        let shrunk = resolved.as_ref().and_then(Resolved::stack);
        let shrunk = shrunk.and_then(|stack| short_file(&Roots::system(), stack));
        return shrunk
            .unwrap_or_else(|| failed(&resolved.map_or_else(Vec::new, |of| beneath(&of))));
    }
    if source.raw_os_error() == Some(libc::ENOSPC)
        && space_at(path).is_ok_and(|space| space.no_files())
    {
        return "; the file system has no inodes left for further files: remove some, or give fewer files".to_owned();
    }
    other_remedy(source).to_owned()
}

/// What gave an I/O error: of a file, and of a device on others, the path alone does not say which to look at. Which of them it was is in
/// the kernel's log alone.
fn failed(beneath: &[String]) -> String {
    let device = match beneath {
        [] => "the device".to_owned(),
        names => format!("the device, or one beneath it ({}),", names.join(" on ")),
    };
    format!("; {device} gave an I/O error: see the kernel's log (dmesg)")
}

/// A file that has become shorter than the loop device which shows it: what is behind its end gives errors, of a disk that is whole.
fn short_file(roots: &Roots, stack: &DeviceStack) -> Option<String> {
    stack.devices.iter().find_map(|device| {
        let DeviceKind::Loop {
            backing_file: Some(file),
        } = &device.kind
        else {
            return None;
        };
        let sectors = std::fs::read_to_string(roots.block(&device.name).join("size")).ok()?;
        let sectors: u64 = sectors.trim().parse().ok()?;
        let offset = match loop_shows(roots, &device.name) {
            Some(LoopShows::Told(told)) => told.offset,
            _ => 0,
        };
        let found = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
        let shown = sectors.saturating_mul(SECTOR);
        (found.len() < offset.saturating_add(shown)).then(|| {
            format!(
                "; {}, which {} shows, has {} by now, and {} of it are shown: it has been truncated",
                file.display(),
                device.name,
                Bytes(found.len()),
                Bytes(shown)
            )
        })
    })
}

/// The devices beneath a file or device, from the uppermost to the lowest, by the kernel's names. None of a device that stands on no
/// other: the path names it.
fn beneath(resolved: &Resolved) -> Vec<String> {
    let own = usize::from(resolved.kind == PathKind::BlockDevice);
    let levels = resolved.stack().map(levels).unwrap_or_default();
    levels.into_iter().skip(own).collect()
}

/// The names of each level of a stack.
fn levels(stack: &DeviceStack) -> Vec<String> {
    let mut levels = Vec::new();
    let mut level: Vec<&str> = stack.top_names().collect();
    // No stack is higher than it has devices.
    while !level.is_empty() && levels.len() < stack.devices.len() {
        levels.push(level.join(", "));
        let below = level.iter().filter_map(|name| stack.device(name));
        level = below
            .flat_map(|device| &device.below)
            .map(String::as_str)
            .collect();
        level.sort_unstable();
        level.dedup();
    }
    levels
}

fn other_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EROFS) => "; remount it for writing, or name another path",
        Some(libc::ENOSPC) => "; free some space, or give a smaller size",
        Some(libc::EFBIG) => "; the file system or a limit (ulimit -f) allows no file of this size",
        Some(libc::ENXIO | libc::ENODEV) => "; the device has gone: see the kernel's log (dmesg)",
        Some(libc::ENOTCONN) => {
            "; the program that served the file system has ended: mount it again"
        }
        Some(libc::ESTALE) => "; the server has another file system there by now: mount it again",
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n)",
        Some(libc::ENOENT) => "; is the path right?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::resolve::device_stack;
    use crate::run::RunError;

    #[test]
    fn an_io_error_names_the_devices_beneath() {
        let tree = tempfile::tempdir().expect("a tree");
        std::fs::create_dir_all(tree.path().join("proc/self")).expect("made");
        std::fs::write(tree.path().join("proc/self/mountinfo"), "").expect("made");
        let class = tree.path().join("sys/class/block");
        std::fs::create_dir_all(&class).expect("made");
        for (name, slaves) in [("md0", &["sdb", "sda"][..]), ("sda", &[]), ("sdb", &[])] {
            let dir = tree.path().join("sys/devices").join(name);
            std::fs::create_dir_all(dir.join("slaves")).expect("made");
            for slave in slaves {
                std::fs::write(dir.join("slaves").join(slave), "").expect("made");
            }
            std::os::unix::fs::symlink(&dir, class.join(name)).expect("made");
        }
        let stack = device_stack(&Roots::under(tree.path()), vec!["md0".to_owned()]);
        let levels = levels(&stack.expect("a stack"));
        assert_eq!(levels, ["md0", "sda, sdb"]);
        assert_eq!(
            failed(&levels),
            "; the device, or one beneath it (md0 on sda, sdb), gave an I/O error: see the kernel's log (dmesg)"
        );
        assert_eq!(
            failed(&[]),
            "; the device gave an I/O error: see the kernel's log (dmesg)"
        );
    }

    #[test]
    fn a_device_that_has_gone_is_not_taken_for_a_short_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let told = |path: &Path| {
            let what = "operation 852 moved 0 of 4096 bytes".to_owned();
            let (path, why) = (path.to_owned(), shortened(path, 4096));
            RunError::Short { path, what, why }.to_string()
        };
        assert!(told(file.path()).contains("is the file shorter"));
        // Seen with a disk of scsi_debug: its node goes with it.
        let gone = told(Path::new("/dev/sd-no-more"));
        assert!(gone.contains("the device has gone"), "{gone}");
    }

    #[test]
    fn a_loop_file_that_was_truncated_is_no_failed_disk() {
        let tree = crate::observe::tree::Tree::new();
        let image = tree.path("image");
        tree.file("image", &"x".repeat(8192));
        tree.device("virtual/block/loop7", "7:7")
            .attribute("loop7", "size", "16")
            .attribute("loop7", "loop/backing_file", image.to_str().expect("UTF-8"));
        let stack = device_stack(&tree.roots, vec!["loop7".to_owned()]).expect("a stack");
        assert_eq!(short_file(&tree.roots, &stack), None);
        tree.file("image", &"x".repeat(4096));
        let told = short_file(&tree.roots, &stack).expect("it is short");
        let end =
            "which loop7 shows, has 4 KiB by now, and 8 KiB of it are shown: it has been truncated";
        assert!(told.ends_with(end), "{told}");
    }

    #[test]
    fn a_file_system_without_inodes_is_not_told_to_be_full() {
        if !crate::observe::tree::is_root("a_file_system_without_inodes_is_not_told_to_be_full") {
            return;
        }
        let mounted = crate::observe::tree::MountedLoop::ext4(16 << 20, &["-N", "64"]);
        let point = mounted.point.path();
        let error = (0..100).find_map(|n| std::fs::File::create(point.join(n.to_string())).err());
        let told = remedy(&error.expect("no inodes"), point);
        assert!(told.contains("no inodes left"), "{told}");
    }
}
