use super::*;
use crate::observe::resolve;
use crate::observe::tree::{LoopDevice, is_root, run};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

const MIB: u64 = 1 << 20;

/// On the file system of the build: a temporary directory may be in memory.
fn file() -> tempfile::NamedTempFile {
    let parent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    tempfile::NamedTempFile::new_in(&parent)
        .or_else(|_| tempfile::NamedTempFile::new())
        .expect("a file")
}

fn share(path: &std::path::Path, range: Range<u64>) -> Option<f64> {
    let roots = Roots::system();
    let resolved = resolve(&roots, path).expect("resolved");
    Holes::find(&roots, &resolved, range).map(|holes| holes.share)
}

#[test]
fn a_file_of_which_half_is_a_hole() {
    let mut half = file();
    half.write_all(&vec![7; MIB as usize]).expect("written");
    assert_eq!(share(half.path(), 0..MIB), None, "all of it was written");
    half.as_file().set_len(2 * MIB).expect("longer");
    assert_eq!(share(half.path(), 0..2 * MIB), Some(0.5));
    assert_eq!(
        share(half.path(), 0..MIB),
        None,
        "not the part that is used"
    );
    assert_eq!(share(half.path(), MIB..2 * MIB), Some(1.0));
    half.as_file()
        .write_all_at(&[1; 4096], 2 * MIB - 4096)
        .expect("written");
    assert_eq!(share(half.path(), MIB..2 * MIB), Some(1.0 - 1.0 / 256.0));
    assert_eq!(share(half.path(), 0..0), None);
}

#[test]
fn what_was_reserved_and_never_written_is_no_data() {
    let reserved = file();
    let flags = rustix::fs::FallocateFlags::empty();
    if rustix::fs::fallocate(reserved.as_file(), flags, 0, MIB).is_err() {
        return;
    }
    // Not of file systems without such a state (tmpfs).
    if mapped(reserved.as_file(), 0..MIB).is_ok() {
        assert_eq!(share(reserved.path(), 0..MIB), Some(1.0));
    }
    assert!(sought(reserved.as_file(), 0..MIB).is_ok());
}

#[test]
fn holes_behind_a_loop_device_are_found_in_what_it_shows() {
    if !is_root("holes_behind_a_loop_device_are_found_in_what_it_shows") {
        return;
    }
    let device = LoopDevice::prepared(4 * MIB, |path| {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .expect("opened");
        file.write_all_at(&vec![7; MIB as usize], 0)
            .expect("written");
        run("sync", &[path.to_str().expect("UTF-8")]);
    });
    assert_eq!(share(&device.node, 0..4 * MIB), Some(0.75));
    assert_eq!(share(&device.node, 0..MIB), None);
    let roots = Roots::system();
    let resolved = resolve(&roots, &device.node).expect("resolved");
    let told = Holes::find(&roots, &resolved, 0..4 * MIB)
        .expect("holes")
        .to_string();
    let of = format!(
        "75.0 % of {}, which {} shows, are holes",
        device.file.display(),
        device.name()
    );
    assert!(told.starts_with(&of), "{told}");
    // The part of the file that it shows.
    let node = device.node.to_str().expect("UTF-8");
    run("losetup", &["-d", node]);
    run(
        "losetup",
        &["-o", "524288", node, device.file.to_str().expect("UTF-8")],
    );
    assert_eq!(share(&device.node, 0..MIB), Some(0.5));
}
