//! Loop devices that lie on devices: their driver neither holds what it shows nor is in the kernel's list of holders.
use super::*;

/// A loop device over something, which is detached when dropped.
pub(super) struct Over(PathBuf);

impl Over {
    pub(super) fn new(options: &[&str], below: &str) -> Self {
        let words = [&["losetup", "--find", "--show"], options, &[below]];
        Self(PathBuf::from(system(&words.concat())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a name")
    }

    pub(super) fn name(&self) -> &str {
        self.path().trim_start_matches("/dev/")
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        let _ = Tool::new(["losetup", "--detach", self.path()]).run();
        // It goes with its last user: whoever looks at all devices is one for a moment.
        let told = Path::new("/sys/class/block").join(self.name());
        let shown = told.join("loop/backing_file");
        let gone = || if shown.exists() { Err(()) } else { Ok(()) };
        let _ = patiently(Duration::from_secs(10), gone);
    }
}

/// A file system that is mounted as long as this lives.
pub(super) struct Mounted(tempfile::TempDir);

impl Mounted {
    fn ext4(on: &str) -> Self {
        system(&["mkfs.ext4", "-q", "-F", on]);
        Self::with(&[on])
    }

    /// In memory, where device nodes may be opened whatever is forbidden at the place of temporary files.
    pub(super) fn memory() -> Self {
        Self::with(&["-t", "tmpfs", "none"])
    }

    fn with(what: &[&str]) -> Self {
        let point = tempfile::tempdir().expect("a directory");
        let at = point.path().to_str().expect("a name");
        system(&[&["mount"], what, &[at]].concat());
        Self(point)
    }

    pub(super) fn at(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at().to_str().expect("a name");
        let _ = Tool::new(["umount", at]).run();
    }
}

/// Another node of a device.
pub(super) fn node(of: &Path, at: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::MetadataExt as _;
    let number = std::fs::metadata(of).expect("a node").rdev();
    mknodat(
        CWD,
        at,
        FileType::BlockDevice,
        Mode::RUSR | Mode::WUSR,
        number,
    )
    .expect("a node");
}

#[test]
fn a_device_on_which_a_loop_device_lies_is_refused() {
    let name = "a_device_on_which_a_loop_device_lies_is_refused";
    if !may(name) {
        return;
    }
    let theirs = Theirs::new();
    let below = theirs.path().trim_start_matches("/dev/");
    // Where no signature of what is on it can be found on the device itself.
    let over = Over::new(&["--offset", "16MiB"], theirs.path());
    let lies = format!("{} lies on {below}", over.name());
    theirs.refused_by(&[Gate::Kernel], &[&lies]);
    let mounted = Mounted::ext4(over.path());
    let is_mounted = format!("{} is mounted at {}", over.name(), mounted.at().display());
    theirs.refused_by(&[Gate::Kernel], &[&lies, &is_mounted]);
    drop(mounted);
    // Loop over loop.
    let upper = Over::new(&["--offset", "8MiB"], over.path());
    let mounted = Mounted::ext4(upper.path());
    let is_mounted = format!("{} is mounted at {}", upper.name(), mounted.at().display());
    theirs.refused_by(&[Gate::Kernel], &[&lies, &is_mounted]);
    drop(mounted);
    drop(upper);
    drop(over);
    theirs.given();
}

/// The name of what a loop device shows may be any other, and gone.
#[test]
fn a_loop_device_over_another_node_of_a_device_is_seen() {
    let name = "a_loop_device_over_another_node_of_a_device_is_seen";
    if !may(name) {
        return;
    }
    let (theirs, memory) = (Theirs::new(), Mounted::memory());
    let other = memory.at().join("disk");
    node(&theirs.path, &other);
    let over = Over::new(&["--offset", "16MiB"], other.to_str().expect("a name"));
    std::fs::remove_file(&other).expect("a node");
    theirs.refused_by(&[Gate::Kernel], &[&format!("{} lies on", over.name())]);
    drop(over);
    theirs.given();
}

/// What else is on the device below it is not kept away by holding the one above.
#[test]
fn a_loop_device_that_shows_a_device_is_refused() {
    let name = "a_loop_device_that_shows_a_device_is_refused";
    if !may(name) {
        return;
    }
    let theirs = Theirs::new();
    let over = Over::new(&["--offset", "16MiB"], theirs.path());
    let own = Own(OwnKind::Guest);
    let device = device_at(&Roots::system(), &over.0).expect("a device");
    let take = |gates: &[Gate]| {
        Claim::through(&Roots::system(), &device, Right::Own(&own), gates).map(drop)
    };
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("shows the device loop"), "{error}");
    take(&all_but(&[Gate::Kernel])).expect("nothing else refuses");
}

#[test]
fn a_partition_whose_disk_a_loop_device_shows_is_refused() {
    let name = "a_partition_whose_disk_a_loop_device_shows_is_refused";
    if !may(name) {
        return;
    }
    let theirs = Theirs::with(&["--partscan"]);
    system(&["sgdisk", "-n", "1:2048:+8M", "-n", "2:0:+8M", theirs.path()]);
    system(&["partx", "--update", theirs.path()]);
    let [first, second] = ["p1", "p2"].map(|part| format!("{}{part}", theirs.path()));
    let own = Own(OwnKind::Guest);
    let take = |gates: &[Gate]| {
        let device = device_at(&Roots::system(), Path::new(&first)).expect("a device");
        Claim::through(&Roots::system(), &device, Right::Own(&own), gates).map(drop)
    };
    for below in [theirs.path(), &first, &second] {
        let over = Over::new(&[], below);
        let error = take(Gate::ALL).expect_err("refused").to_string();
        assert!(
            error.contains(&format!("{} lies on", over.name())),
            "{error}"
        );
        take(&all_but(&[Gate::Kernel])).expect("nothing else refuses");
    }
    take(Gate::ALL).expect("a claim");
    system(&["partx", "--delete", theirs.path()]);
}
