//! What only root may do: mounts, loop devices, other users. Taken back when dropped.
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a test that needs root may go on. Where it may not, it says so; in CI that is a failure.
pub(crate) fn may(name: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let message = format!("SKIPPED {name}: needs root for mounts, loop devices or another user");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    // Not `eprintln!`: the harness keeps that of a test that passes to itself.
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// Whether a test that runs this program may go on. Where it may not, it says so; in CI that is a failure.
pub(crate) fn has(name: &str, program: &str) -> bool {
    let found = ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
        .iter()
        .any(|place| Path::new(place).join(program).exists());
    if !found {
        let message = format!("SKIPPED {name}: needs {program}");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        let _ = writeln!(std::io::stderr(), "{message}");
    }
    found
}

#[track_caller]
pub(crate) fn system(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {error}");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain text")
}

/// A mounted file system.
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
}

impl Mounted {
    /// A file system in memory of this size (as `mount` writes it).
    pub(crate) fn tmpfs(path: &Path, size: &str) -> Self {
        std::fs::create_dir_all(path).expect("a mount point");
        let options = format!("size={size},mode=0755");
        system(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tmpfs", text(path)],
        );
        Self {
            path: path.to_owned(),
        }
    }

    /// One in memory without a size.
    pub(crate) fn ramfs(path: &Path) -> Self {
        std::fs::create_dir_all(path).expect("a mount point");
        system("mount", &["-t", "ramfs", "ramfs", text(path)]);
        Self {
            path: path.to_owned(),
        }
    }

    /// ext4 on a loop device.
    pub(crate) fn ext4(path: &Path, device: &Loop) -> Self {
        system("mkfs.ext4", &["-q", "-F", text(&device.path)]);
        Self::on(path, device)
    }

    /// What is on a loop device already.
    pub(crate) fn on(path: &Path, device: &Loop) -> Self {
        std::fs::create_dir_all(path).expect("a mount point");
        system("mount", &[text(&device.path), text(path)]);
        Self {
            path: path.to_owned(),
        }
    }

    pub(crate) fn make_read_only(&self) {
        system("mount", &["-o", "remount,ro", text(&self.path)]);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .args(["-l", text(&self.path)])
            .status();
    }
}

/// A loop device on a file.
pub(crate) struct Loop {
    pub(crate) path: PathBuf,
}

impl Loop {
    pub(crate) fn on(file: &Path) -> Self {
        let path = system("losetup", &["--find", "--show", text(file)]);
        Self {
            path: PathBuf::from(path),
        }
    }

    /// One whose sectors have so many bytes.
    pub(crate) fn of_sectors(file: &Path, bytes: u32) -> Self {
        let size = bytes.to_string();
        let words = ["--find", "--show", "--sector-size", &size, text(file)];
        Self {
            path: PathBuf::from(system("losetup", &words)),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .args(["--detach", text(&self.path)])
            .status();
    }
}
