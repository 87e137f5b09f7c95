use std::io::Write;
use std::path::PathBuf;

use crate::observe::tree::{LoopDevice, is_root};

use super::*;

const SIZE: u64 = 4 << 20;

/// A file of 4 MiB, on a disk where one of the usual places is on one: /tmp and build directories may be memory.
fn written() -> tempfile::NamedTempFile {
    let beside = std::env::current_exe().unwrap();
    let places = [
        beside.parent().unwrap().to_owned(),
        std::env::temp_dir(),
        "/var/tmp".into(),
    ];
    let made = |place: &PathBuf| {
        let mut file = tempfile::NamedTempFile::new_in(place).ok()?;
        file.write_all(&vec![7u8; SIZE as usize]).ok()?;
        Some(file)
    };
    let mut files: Vec<_> = places.iter().filter_map(made).collect();
    let on_disk = files.iter().position(|file| !in_memory(file));
    files.swap_remove(on_disk.unwrap_or(0))
}

fn in_memory(file: &tempfile::NamedTempFile) -> bool {
    let on = crate::observe::resolve(&Roots::system(), file.path());
    on.unwrap().in_memory()
}

fn evictable(file: &tempfile::NamedTempFile) -> bool {
    let memory = in_memory(file);
    if memory {
        let message =
            "SKIPPED eviction: build directory, temporary directory and /var/tmp are in memory";
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
    }
    !memory
}

#[test]
fn a_written_file_is_resident_and_can_be_evicted_dirty_or_clean() {
    let file = written();
    assert_eq!(residency(file.path()).unwrap(), 1.0);
    if !evictable(&file) {
        return;
    }
    let eviction = evict(file.path()).unwrap();
    assert_eq!(eviction.method, EvictionMethod::Advise);
    assert_eq!(eviction.resident_before, Some(1.0));
    assert!(eviction.proved, "{eviction:?}");
    std::fs::read(file.path()).unwrap();
    assert_eq!(residency(file.path()).unwrap(), 1.0);
}

#[test]
fn both_ways_of_asking_agree() {
    let file = written();
    let open = File::open(file.path()).unwrap();
    let pages = SIZE / rustix::param::page_size() as u64;
    assert_eq!(mincore(&open, SIZE).unwrap(), pages);
    match cachestat(&open, SIZE) {
        Ok(cached) => assert_eq!(cached, pages),
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS)),
    }
    // A length that ends within a page still has that page.
    assert_eq!(mincore(&open, 4097).unwrap(), 2);
}

#[test]
fn memory_cannot_be_evicted_and_is_not_said_to_be() {
    let Ok(mut file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
        let message = "SKIPPED memory_cannot_be_evicted: no /dev/shm";
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
        return;
    };
    file.write_all(&[1; 65536]).unwrap();
    let eviction = evict(file.path()).unwrap();
    assert_eq!(eviction.resident_after, Some(1.0));
    assert!(!eviction.proved);
}

#[test]
fn an_empty_file_is_cold_and_an_absent_one_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(residency(file.path()).unwrap(), 0.0);
    assert!(evict(file.path()).unwrap().proved);
    let error = evict(Path::new("/nonexistent/file"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot open /nonexistent/file: "),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    crate::observe::tree::run("mkfifo", &[pipe.to_str().unwrap()]);
    assert!(matches!(
        residency(&pipe),
        Err(ObserveError::WrongKind { .. })
    ));
    let error = evict(Path::new("/")).unwrap_err().to_string();
    assert_eq!(error, "/ is not a regular file or a block device");
}

/// On an invented `/proc`, because the real one would empty the caches of everybody on the machine.
#[test]
fn the_global_drop_is_believed_only_when_seen() {
    let tree = crate::observe::tree::Tree::new();
    let file = written();
    let error = drop_global(&Roots::under(Path::new("/nonexistent")), file.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot write to /nonexistent/proc/sys/vm/drop_caches")
    );
    tree.file("proc/sys/vm/drop_caches", "0");
    let eviction = drop_global(&tree.roots, file.path()).unwrap();
    let control = std::fs::read_to_string(tree.path("proc/sys/vm/drop_caches")).unwrap();
    assert_eq!(control, "3\n");
    assert_eq!(
        (eviction.resident_after, eviction.proved),
        (Some(1.0), false)
    );
}

#[test]
fn nothing_is_proved_without_a_look_or_above_the_threshold() {
    let proved = |after| Eviction::new(EvictionMethod::Advise, Some(1.0), after).proved;
    assert!(proved(Some(0.0)) && proved(Some(0.0009)));
    assert!(!proved(Some(0.001)) && !proved(None));
}

#[test]
fn the_buffers_of_a_block_device_can_be_flushed() {
    if !is_root("the_buffers_of_a_block_device_can_be_flushed") {
        return;
    }
    let device = LoopDevice::new(SIZE);
    // The kernel drops the pages of a device at its last close, so it is kept open.
    let mut open = File::open(&device.node).unwrap();
    io::copy(&mut open, &mut io::sink()).unwrap();
    assert_eq!(residency(&device.node).unwrap(), 1.0);
    let eviction = evict(&device.node).unwrap();
    assert_eq!(eviction.method, EvictionMethod::FlushBuffers);
    assert!(eviction.proved, "{eviction:?}");
}
