//! The conformance suite against both engines, and what only real ones can be asked.
#[path = "conformance/files.rs"]
mod files;
#[path = "conformance/suite.rs"]
mod suite;

use raidlab_core::data::DataPolicy;
use raidlab_core::op::{BlockKind, FileOp, Op, OpenMode};
use raidlab_core::target::{Errno, Tag, Target, TargetError};
use raidlab_io::engine::{Blocking, Content, Extent, ExtentMode, TargetOptions, Uring};
use std::cell::Cell;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use suite::{BLOCK, Subject, block, collect, conforms};

const SEED: u64 = 42;

fn content() -> Content {
    Content::new(DataPolicy::Seeded, SEED)
}

fn options(depth: u32) -> TargetOptions {
    TargetOptions::new(depth, 3 * BLOCK, content())
}

/// A file in a temporary directory.
struct FileSubject<F> {
    directory: tempfile::TempDir,
    mode: ExtentMode,
    made: Cell<bool>,
    engine: F,
}

impl<F> FileSubject<F> {
    fn new(directory: tempfile::TempDir, direct: bool, engine: F) -> Self {
        let mode = ExtentMode {
            direct,
            write: true,
            sync: false,
        };
        Self {
            directory,
            mode,
            made: Cell::new(false),
            engine,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("extent")
    }
}

impl<T: Target, F: Fn(Extent, u32) -> T> Subject for FileSubject<F> {
    type Target = T;

    fn make(&self, size: u64, depth: u32) -> T {
        if !self.made.replace(true) {
            let mut bytes = vec![0; size as usize];
            content().fill(0, 0, &mut bytes);
            std::fs::write(self.path(), bytes).unwrap();
        }
        let extent = Extent::open(&self.path(), self.mode).unwrap();
        assert_eq!(extent.size, size);
        (self.engine)(extent, depth)
    }

    fn first_wrong_byte(&self, offset: u64, len: u64) -> Option<u64> {
        let file = std::fs::File::open(self.path()).unwrap();
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, offset).unwrap();
        content().check(0, offset, &bytes)
    }
}

fn uring(extent: Extent, depth: u32) -> Uring {
    Uring::new(extent, options(depth)).unwrap()
}

fn blocking(extent: Extent, depth: u32) -> Blocking {
    Blocking::new(Some(extent), None, options(depth)).unwrap()
}

/// On the file system of the build, where direct I/O works on anything but exotic ones.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn io_uring_buffered() {
    conforms(&FileSubject::new(on_disk(), false, uring));
}

#[test]
fn io_uring_direct() {
    conforms(&FileSubject::new(on_disk(), true, uring));
}

#[test]
fn io_uring_where_workers_do_the_work() {
    // tmpfs cannot say beforehand whether it would block, so the kernel uses worker threads.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    conforms(&FileSubject::new(directory, false, uring));
}

#[test]
fn blocking_buffered() {
    conforms(&FileSubject::new(on_disk(), false, blocking));
}

#[test]
fn blocking_direct() {
    conforms(&FileSubject::new(on_disk(), true, blocking));
}

fn read_only(path: &Path) -> Extent {
    Extent::open(path, ExtentMode::default()).unwrap()
}

fn writable(path: &Path) -> Extent {
    let mode = ExtentMode {
        write: true,
        ..ExtentMode::default()
    };
    Extent::open(path, mode).unwrap()
}

/// Submits an operation and waits for its result.
type Ask<'a> = &'a mut dyn FnMut(Op) -> Result<u32, Errno>;

/// Asks both engines the same.
fn both(extent: impl Fn() -> Extent, ask: impl Fn(Ask<'_>)) {
    fn asking(target: &mut impl Target, ask: &dyn Fn(Ask<'_>)) {
        ask(&mut |op| {
            target.submit(Tag(0), op).unwrap();
            collect(target, 1)[0].result
        });
    }
    asking(&mut uring(extent(), 4), &ask);
    asking(&mut blocking(extent(), 4), &ask);
}

#[test]
fn errors_of_the_system_are_reported_by_the_completion() {
    both(
        || writable(Path::new("/dev/full")),
        |ask| {
            assert_eq!(
                ask(block(BlockKind::Write, 0, BLOCK)),
                Err(Errno(libc::ENOSPC))
            );
            assert_eq!(
                ask(block(BlockKind::Read, 0, BLOCK)),
                Ok(BLOCK),
                "it still works"
            );
        },
    );
    // No memory is mapped at address 0.
    both(
        || read_only(Path::new("/proc/self/mem")),
        |ask| assert_eq!(ask(block(BlockKind::Read, 0, BLOCK)), Err(Errno(libc::EIO))),
    );
    both(
        || read_only(Path::new("/tmp")),
        |ask| {
            let result = ask(block(BlockKind::Read, 0, BLOCK));
            assert_eq!(result, Err(Errno(libc::EISDIR)));
        },
    );
}

#[test]
fn a_full_file_system_is_reported_by_the_completion() {
    let directory = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new("mount")
            .args(arguments)
            .arg(directory.path())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=1m", "raidlab-test"]) {
        eprintln!(
            "skipped a_full_file_system_is_reported_by_the_completion: mounting a tmpfs takes root"
        );
        return;
    }
    let path = directory.path().join("extent");
    std::fs::write(&path, [0; 4096]).unwrap();
    both(
        || writable(&path),
        |ask| {
            assert_eq!(ask(block(BlockKind::Write, 0, BLOCK)), Ok(BLOCK));
            // The last pages are there, then there are no more: short, then an error.
            assert!(ask(block(BlockKind::Write, 1 << 20, 2 * BLOCK)).is_ok());
            let results: Vec<_> = (2..300)
                .map(|i| ask(block(BlockKind::Write, i * 4096, BLOCK)))
                .collect();
            assert!(results.contains(&Err(Errno(libc::ENOSPC))));
        },
    );
    // Nothing of a dropped target keeps the file system busy.
    let status = std::process::Command::new("umount")
        .arg(directory.path())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn what_is_opened_for_reading_is_never_written() {
    let directory = on_disk();
    let path = directory.path().join("kept");
    std::fs::write(&path, [7; 8192]).unwrap();
    let write = block(BlockKind::Write, 0, BLOCK);
    let refused = |result: Result<(), TargetError>| {
        assert!(matches!(result, Err(TargetError::Unsupported { .. })));
    };
    refused(uring(read_only(&path), 4).submit(Tag(0), write));
    refused(blocking(read_only(&path), 4).submit(Tag(0), write));
    assert_eq!(std::fs::read(&path).unwrap(), [7; 8192]);
}

#[test]
fn a_slot_in_use_or_beyond_the_depth_is_refused() {
    let mut target = uring(read_only(Path::new("/dev/zero")), 2);
    let read = block(BlockKind::Read, 0, BLOCK);
    target.submit(Tag(1), read).unwrap();
    assert!(target.submit(Tag(1), read).is_err());
    assert!(target.submit(Tag(2), read).is_err());
    assert_eq!(collect(&mut target, 1).len(), 1);
    let open = FileOp::Open {
        file: 0,
        mode: OpenMode::Read,
        direct: false,
        sync: false,
    };
    assert!(target.submit(Tag(0), Op::File(open)).is_err());
}

#[test]
fn what_was_read_is_in_the_slots_buffer() {
    let directory = on_disk();
    let path = directory.path().join("extent");
    let mut bytes = vec![0; 1 << 20];
    content().fill(0, 0, &mut bytes);
    std::fs::write(&path, &bytes).unwrap();
    let mut target = Uring::new(writable(&path), options(4)).unwrap();
    assert!(target.features().file && target.features().ring);
    target
        .submit(Tag(2), block(BlockKind::Read, 8192, BLOCK))
        .unwrap();
    assert_eq!(collect(&mut target, 1)[0].result, Ok(BLOCK));
    assert_eq!(
        target.buffer(Tag(2), BLOCK),
        &bytes[8192..8192 + BLOCK as usize]
    );
}
