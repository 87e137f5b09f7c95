//! Directories of raidlab's own that go with all that is in them, but for what is mounted there: that is not raidlab's.
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Removes a directory and all that is in it. With something mounted in it nothing is removed.
///
/// # Errors
/// With the mount and the remedy, or as the system says.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    let whole = fs::canonicalize(path)?;
    let mounts = mounts(&fs::read("/proc/self/mountinfo")?);
    match mounts.iter().rfind(|mount| mount.starts_with(&whole)) {
        None => fs::remove_dir_all(path),
        Some(mount) => {
            let mount = mount.display();
            let said = format!(
                "something is mounted at {mount}; unmount it ('umount {mount}') and try again"
            );
            Err(Error::new(ErrorKind::ResourceBusy, said))
        }
    }
}

/// The fifth field of each line, with `\040` and the like for what would divide it.
fn mounts(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.map(unescaped).collect()
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal =
            octal.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = octal.map_or(after, |_| &after[3..]);
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::Command;

    #[test]
    fn mount_points_are_read_as_they_are() {
        let table = b"29 1 254:0 / / rw - ext4 /dev/vda rw\n31 29 0:27 / /a\\040b\\134c rw shared:1 - tmpfs t rw\n";
        assert_eq!(mounts(table), [Path::new("/"), Path::new("/a b\\c")]);
        assert_eq!(unescaped(b"\\9"), Path::new("\\9"));
        assert_eq!(unescaped(b"x\\777"), Path::new("x\\777"));
    }

    #[test]
    fn what_is_mounted_in_a_directory_keeps_it() {
        let lab = tempfile::tempdir().expect("a directory");
        let (tree, beside) = (lab.path().join("tree"), lab.path().join("tree and more"));
        let point = tree.join("a b");
        for directory in [&point, &beside] {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(beside.join("file"), "kept").expect("a file");
        let mounted = Command::new("mount")
            .arg("--bind")
            .args([&beside, &point])
            .output();
        if !mounted.is_ok_and(|done| done.status.success()) {
            let message =
                "SKIPPED what_is_mounted_in_a_directory_keeps_it: it needs root for a mount";
            assert!(std::env::var_os("CI").is_none(), "{message}");
            let _ = writeln!(std::io::stderr(), "{message}");
            return;
        }
        let refused = remove_tree(&tree);
        let unmounted = Command::new("umount").arg(&point).status().expect("umount");
        assert!(unmounted.success());
        let said = refused.expect_err("something is mounted").to_string();
        assert!(said.contains("/tree/a b; unmount it"), "{said}");
        assert!(beside.join("file").exists());
        remove_tree(&tree).expect("nothing is mounted");
        assert!(!tree.exists() && beside.join("file").exists());
    }
}
