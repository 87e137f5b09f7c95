//! Each gate refuses, and without it the claim would have been given: on loop devices, as root. The same tests are run in
//! a guest, whose kernel has what holds devices, by the tests of raidlab's virtual machines.
mod busy;
mod content;
mod files;
mod holders;
mod leftover;
mod lent;
mod lost;
mod open;
mod partitions;
#[cfg(feature = "test-zfs")]
mod pools;
mod reused;
mod shown;

use super::*;
use crate::identity::FileId;
use crate::inventory::{device_at, look_at};
use crate::tool::Tool;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

const SIZE: u64 = 64 << 20;

/// Whether a test that needs root may go on; says so where it may not.
fn may(name: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let message = format!("SKIPPED {name}: needs root for loop devices");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// Set where these tests run in a guest: nothing may be missing there.
fn in_guest() -> bool {
    std::env::var_os("RAIDLAB_GATES_IN_GUEST").is_some()
}

fn system(words: &[&str]) -> String {
    // A guest has no udev that device-mapper's tools could wait for.
    let tool = Tool::new(words.iter().copied()).with(&[("DM_DISABLE_UDEV", "1")]);
    let ran = tool.run();
    ran.unwrap_or_else(|error| panic!("{error}"))
        .out
        .trim()
        .to_owned()
}

fn all_but(left_out: &[Gate]) -> Vec<Gate> {
    let asked = Gate::ALL.iter().filter(|gate| !left_out.contains(gate));
    asked.copied().collect()
}

/// A loop device over a file of someone else's.
struct Theirs {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Theirs {
    fn new() -> Self {
        Self::with(&[])
    }

    /// With further options of losetup.
    fn with(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("disk");
        File::create(&file)
            .and_then(|f| f.set_len(SIZE))
            .expect("a file");
        let mut words = vec!["losetup", "--find", "--show"];
        words.extend(options);
        words.push(file.to_str().expect("a name"));
        let path = PathBuf::from(system(&words));
        Self { directory, path }
    }

    fn device(&self) -> Device {
        device_at(&Roots::system(), &self.path).expect("a device")
    }

    /// An entry of an allow-list that fits it.
    fn entry(&self) -> Allowed {
        let device = self.device();
        Allowed {
            id: device.ids[0].clone(),
            serial: device.identity.serial.expect("a serial number"),
            size: device.identity.size,
            note: None,
            array: None,
            line: 2,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("a name")
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let file = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .expect("writable");
        file.write_all_at(bytes, at)
            .and_then(|()| file.sync_all())
            .expect("written");
    }

    /// Shows something else under the same name.
    fn show_instead(&self, words: &[&str]) {
        system(&["losetup", "--detach", self.path()]);
        let words = [&["losetup"], words].concat();
        // Another test may have been given the free number meanwhile.
        let shown = patiently(Duration::from_secs(60), || {
            Tool::new(words.iter().copied()).run()
        });
        shown.unwrap_or_else(|error| panic!("{error}"));
    }

    fn take(&self, gates: &[Gate]) -> Result<Claim> {
        let entry = self.entry();
        Claim::through(
            &Roots::system(),
            &self.device(),
            Right::Allowed(&entry),
            gates,
        )
    }

    /// Refused with these words, by these gates; given without them, and refused with all of them.
    #[track_caller]
    fn refused_by(&self, by: &[Gate], says: &[&str]) {
        let error = self.take(Gate::ALL).expect_err("refused").to_string();
        for words in says {
            assert!(error.contains(words), "no '{words}' in: {error}");
        }
        for left_out in by {
            assert_eq!(
                self.take(&all_but(&[*left_out])).is_ok(),
                by.len() == 1,
                "without {left_out:?}"
            );
        }
        drop(self.take(&all_but(by)).expect("nothing else refuses"));
    }

    /// The claim is given.
    #[track_caller]
    fn given(&self) {
        drop(self.take(Gate::ALL).expect("a claim"));
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // Its number may be another test's by now.
        let told = Path::new("/sys/class/block").join(self.path.file_name().expect("a name"));
        let shown = sysfs::text(&told.join("loop/backing_file")).unwrap_or_default();
        let own = self.directory.path().to_str().expect("a name");
        if shown.starts_with(own) {
            let _ = Tool::new(["losetup", "--detach", self.path()]).run();
        }
    }
}

#[test]
fn an_empty_device_of_the_allow_list_is_claimed_and_held() {
    if !may("an_empty_device_of_the_allow_list_is_claimed_and_held") {
        return;
    }
    let theirs = Theirs::new();
    let mut claim = theirs.take(Gate::ALL).expect("a claim");
    assert!(!claim.is_own());
    let second = theirs.take(Gate::ALL).expect_err("held");
    assert!(second.to_string().contains("busy"), "{second}");
    claim.lend().expect("lent");
    assert!(claim.held().is_none());
    drop(open_exclusively(&theirs.path).expect("free while it is lent"));
    claim.retake_empty().expect("taken back");
    assert!(open_exclusively(&theirs.path).is_err());
}

#[test]
fn a_device_that_someone_holds_is_refused() {
    if !may("a_device_that_someone_holds_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let holder = open_exclusively(&theirs.path).expect("free");
    theirs.refused_by(&[Gate::Exclusive], &["busy"]);
    drop(holder);
    theirs.given();
}

#[test]
fn another_serial_number_or_size_is_refused() {
    if !may("another_serial_number_or_size_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let right = theirs.entry();
    let wrong = [
        Allowed {
            serial: "file-0-1".to_owned(),
            ..right.clone()
        },
        Allowed {
            size: right.size + 512,
            ..right.clone()
        },
    ];
    for (entry, says) in wrong.iter().zip(["serial number", "size"]) {
        let take = |gates: &[Gate]| {
            Claim::through(
                &Roots::system(),
                &theirs.device(),
                Right::Allowed(entry),
                gates,
            )
        };
        let error = take(Gate::ALL).expect_err("refused").to_string();
        assert!(error.contains(says) && error.contains("line 2"), "{error}");
        assert!(
            take(&all_but(&[Gate::Right])).is_ok(),
            "it was the entry that did not fit"
        );
    }
}

#[test]
fn a_name_that_has_become_another_device_is_refused() {
    if !may("a_name_that_has_become_another_device_is_refused") {
        return;
    }
    let theirs = Theirs::new();
    let (entry, before) = (theirs.entry(), theirs.device());
    // The same name, another file of the same size.
    let other = theirs.directory.path().join("other");
    File::create(&other)
        .and_then(|f| f.set_len(SIZE))
        .expect("a file");
    theirs.show_instead(&[theirs.path(), other.to_str().expect("a name")]);
    let take =
        |gates: &[Gate]| Claim::through(&Roots::system(), &before, Right::Allowed(&entry), gates);
    let error = take(Gate::ALL).expect_err("refused").to_string();
    assert!(error.contains("no longer the device"), "{error}");
    let error = take(&all_but(&[Gate::Identity]))
        .expect_err("refused by the list")
        .to_string();
    assert!(error.contains("serial number"), "{error}");
    assert!(take(&all_but(&[Gate::Identity, Gate::Right])).is_ok());
}

#[test]
fn a_device_that_changes_while_it_is_lent_is_not_taken_back() {
    if !may("a_device_that_changes_while_it_is_lent_is_not_taken_back") {
        return;
    }
    let theirs = Theirs::new();
    let mut claim = theirs.take(Gate::ALL).expect("a claim");
    claim.lend().expect("lent");
    let file = theirs.directory.path().join("disk");
    OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|f| f.set_len(SIZE / 2))
        .expect("shorter");
    system(&["losetup", "--set-capacity", theirs.path()]);
    let error = claim.retake().expect_err("another size").to_string();
    assert!(error.contains("another device"), "{error}");
}

#[test]
fn raidlabs_own_is_its_own_file_and_no_other() {
    if !may("raidlabs_own_is_its_own_file_and_no_other") {
        return;
    }
    let theirs = Theirs::new();
    let device = theirs.device();
    let backing = device.identity.backing.clone().expect("its file");
    let own = Own::of_loop_file(backing.clone());
    let roots = Roots::system();
    drop(Claim::take(&roots, &device, Right::Own(&own)).expect("its own"));
    let foreign = Own::of_loop_file(FileId {
        inode: backing.inode + 1,
        ..backing
    });
    let error = Claim::take(&roots, &device, Right::Own(&foreign)).expect_err("not its own");
    assert!(error.to_string().contains("own file"), "{error}");
    assert!(
        Own::in_guest(&roots).is_none(),
        "this is no guest of raidlab's"
    );
}

#[test]
fn the_disk_that_this_system_runs_from_is_theirs() {
    let roots = Roots::system();
    let resolved = raidlab_io::observe::resolve(&roots, Path::new("/")).expect("a root");
    for name in resolved.stack().into_iter().flat_map(|stack| stack.names()) {
        let device = look_at(&roots, name).expect("a device");
        assert_eq!(device.witnesses.ownership(), Ownership::Theirs, "{name}");
    }
}
