//! The conformance suite against both engines, and what only real ones can be asked.
#[path = "conformance/suite.rs"]
mod suite;

use raidlab_core::data::DataPolicy;
use raidlab_core::op::{BlockKind, Entry, FileOp, Op, OpenMode};
use raidlab_core::target::{Errno, Tag, Target, TargetError};
use raidlab_io::engine::{
    Blocking, Content, Extent, ExtentMode, Files, TargetOptions, Uring, data_name,
};
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
    assert!(target.features().file);
    target
        .submit(Tag(2), block(BlockKind::Read, 8192, BLOCK))
        .unwrap();
    assert_eq!(collect(&mut target, 1)[0].result, Ok(BLOCK));
    assert_eq!(
        target.buffer(Tag(2), BLOCK),
        &bytes[8192..8192 + BLOCK as usize]
    );
}

struct Calls {
    target: Blocking,
    directory: tempfile::TempDir,
}

impl Calls {
    fn new() -> Self {
        let directory = on_disk();
        let files = Files::new(directory.path(), SEED).unwrap();
        let target = Blocking::new(None, Some(files), options(1)).unwrap();
        Self { target, directory }
    }

    fn ask(&mut self, op: FileOp) -> Result<u32, Errno> {
        self.target.submit(Tag(0), Op::File(op)).unwrap();
        collect(&mut self.target, 1)[0].result
    }

    fn open(&mut self, mode: OpenMode, direct: bool, sync: bool) {
        assert_eq!(
            self.ask(FileOp::Open {
                file: 3,
                mode,
                direct,
                sync
            }),
            Ok(0)
        );
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(data_name(3))
    }
}

#[test]
fn files_are_written_read_and_removed() {
    for (direct, sync) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut calls = Calls::new();
        calls.open(OpenMode::Create, direct, sync);
        for piece in 0..8 {
            let write = FileOp::Write {
                file: 3,
                len: 8192,
                offset: piece * 8192,
            };
            assert_eq!(calls.ask(write), Ok(8192));
        }
        assert_eq!(
            calls.ask(FileOp::Sync {
                file: 3,
                data_only: sync
            }),
            Ok(0)
        );
        assert_eq!(calls.ask(FileOp::Close { file: 3 }), Ok(0));
        let bytes = std::fs::read(calls.path()).unwrap();
        assert_eq!((bytes.len(), content().check(3, 0, &bytes)), (65_536, None));
        calls.open(OpenMode::Read, direct, false);
        assert_eq!(
            calls.ask(FileOp::Read {
                file: 3,
                len: 8192,
                offset: 8192
            }),
            Ok(8192)
        );
        assert_eq!(calls.target.buffer(8192), &bytes[8192..16_384]);
        assert_eq!(
            calls.ask(FileOp::Read {
                file: 3,
                len: 8192,
                offset: 65_536
            }),
            Ok(0)
        );
        // Opened for reading only.
        let write = FileOp::Write {
            file: 3,
            len: 4096,
            offset: 0,
        };
        assert_eq!(calls.ask(write), Err(Errno(libc::EBADF)));
        calls.open(OpenMode::Update, direct, false);
        assert_eq!(calls.ask(write), Ok(4096));
        assert_eq!(calls.ask(FileOp::Close { file: 3 }), Ok(0));
        assert_eq!(std::fs::read(calls.path()).unwrap(), bytes);
        assert_eq!(calls.ask(FileOp::Remove { file: 3 }), Ok(0));
        assert!(!calls.path().exists());
    }
}

#[test]
fn characters_go_through_a_stream_of_their_own() {
    let mut calls = Calls::new();
    calls.open(OpenMode::Create, false, false);
    for piece in 0..3 {
        let put = FileOp::PutChars {
            file: 3,
            len: 5000,
            offset: piece * 5000,
        };
        assert_eq!(calls.ask(put), Ok(5000));
    }
    // The stream's buffer still has the last ones; a sync hands them over first.
    assert!(std::fs::metadata(calls.path()).unwrap().len() < 15_000);
    assert_eq!(
        calls.ask(FileOp::Sync {
            file: 3,
            data_only: false
        }),
        Ok(0)
    );
    let bytes = std::fs::read(calls.path()).unwrap();
    assert_eq!((bytes.len(), content().check(3, 0, &bytes)), (15_000, None));
    // Reading after writing, on the same stream, and short at the end.
    let get = |offset| FileOp::GetChars {
        file: 3,
        len: 5000,
        offset,
    };
    assert_eq!(calls.ask(get(0)), Ok(5000));
    assert_eq!(calls.target.buffer(5000), &bytes[..5000]);
    assert_eq!(calls.ask(get(5000)), Ok(5000));
    assert_eq!(calls.ask(get(12_000)), Ok(3000));
    assert_eq!(
        calls.ask(FileOp::PutChars {
            file: 3,
            len: 100,
            offset: 15_000
        }),
        Ok(100)
    );
    assert_eq!(calls.ask(FileOp::Close { file: 3 }), Ok(0));
    assert_eq!(
        content().check(3, 0, &std::fs::read(calls.path()).unwrap()),
        None
    );
    assert_eq!(std::fs::metadata(calls.path()).unwrap().len(), 15_100);
}

#[test]
fn a_full_disk_is_noticed_by_characters_too() {
    let directory = on_disk();
    std::os::unix::fs::symlink("/dev/full", directory.path().join(data_name(3))).unwrap();
    let files = Files::new(directory.path(), SEED).unwrap();
    let target = Blocking::new(None, Some(files), options(1)).unwrap();
    let mut calls = Calls { target, directory };
    calls.open(OpenMode::Update, false, false);
    assert_eq!(
        calls.ask(FileOp::PutChars {
            file: 3,
            len: 10,
            offset: 0
        }),
        Ok(10)
    );
    assert_eq!(
        calls.ask(FileOp::Sync {
            file: 3,
            data_only: false
        }),
        Err(Errno(libc::ENOSPC))
    );
}

#[test]
fn small_files_are_made_looked_at_and_removed() {
    let mut calls = Calls::new();
    let entry = |index, ordered| Entry {
        index,
        directory: 1,
        ordered,
    };
    assert_eq!(calls.ask(FileOp::MakeDirectory { directory: 1 }), Ok(0));
    assert_eq!(
        calls.ask(FileOp::MakeDirectory { directory: 1 }),
        Err(Errno(libc::EEXIST))
    );
    let directory = calls.directory.path().join("00001");
    for (index, ordered) in [(0, true), (1, true), (2, false)] {
        let entry = entry(index, ordered);
        let create = FileOp::Create {
            entry,
            size: 100 * index,
            sync: index == 1,
        };
        assert_eq!(calls.ask(create), Ok(100 * index));
        assert_eq!(calls.ask(create), Err(Errno(libc::EEXIST)));
        assert_eq!(
            calls.ask(FileOp::Stat {
                entry,
                size: 100 * index
            }),
            Ok(100 * index)
        );
        // Smaller than asked for: short.
        assert_eq!(
            calls.ask(FileOp::Stat { entry, size: 1000 }),
            Ok(100 * index)
        );
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 3);
    assert_eq!(calls.ask(FileOp::SyncDirectory { directory: 1 }), Ok(0));
    assert_eq!(
        calls.ask(FileOp::RemoveDirectory { directory: 1 }),
        Err(Errno(libc::ENOTEMPTY))
    );
    for (index, ordered) in [(0, true), (1, true), (2, false)] {
        assert_eq!(
            calls.ask(FileOp::Unlink {
                entry: entry(index, ordered)
            }),
            Ok(0)
        );
    }
    assert_eq!(
        calls.ask(FileOp::Unlink {
            entry: entry(0, true)
        }),
        Err(Errno(libc::ENOENT))
    );
    assert_eq!(calls.ask(FileOp::RemoveDirectory { directory: 1 }), Ok(0));
    assert!(!directory.exists());
}

#[test]
fn nothing_is_done_before_it_is_waited_for() {
    let mut calls = Calls::new();
    let make = FileOp::MakeDirectory { directory: 0 };
    calls.target.submit(Tag(0), Op::File(make)).unwrap();
    assert!(!calls.directory.path().join("00000").exists());
    collect(&mut calls.target, 1);
    assert!(calls.directory.path().join("00000").exists());
    assert_eq!(
        calls.ask(FileOp::Close { file: 9 }),
        Err(Errno(libc::EBADF))
    );
}

#[test]
fn a_given_file_is_data_file_0_and_is_kept() {
    let directory = on_disk();
    let path = directory.path().join("mine");
    std::fs::write(&path, [1; 8192]).unwrap();
    let mut target = Blocking::new(None, Some(Files::given(&path, false)), options(1)).unwrap();
    let open = |file, mode| {
        Op::File(FileOp::Open {
            file,
            mode,
            direct: false,
            sync: false,
        })
    };
    let entry = Entry {
        index: 0,
        directory: 0,
        ordered: true,
    };
    for refused in [
        open(0, OpenMode::Create),
        open(0, OpenMode::Update),
        open(1, OpenMode::Read),
        Op::File(FileOp::Remove { file: 0 }),
        Op::File(FileOp::Create {
            entry,
            size: 0,
            sync: false,
        }),
        Op::File(FileOp::MakeDirectory { directory: 0 }),
    ] {
        let result = target.submit(Tag(0), refused);
        assert!(
            matches!(result, Err(TargetError::Unsupported { .. })),
            "{refused:?}"
        );
    }
    target.submit(Tag(0), open(0, OpenMode::Read)).unwrap();
    assert_eq!(collect(&mut target, 1)[0].result, Ok(0));
    target
        .submit(
            Tag(0),
            Op::File(FileOp::Read {
                file: 0,
                len: 4096,
                offset: 4096,
            }),
        )
        .unwrap();
    assert_eq!(collect(&mut target, 1)[0].result, Ok(4096));
    assert_eq!(target.buffer(4096), [1; 4096]);
}
