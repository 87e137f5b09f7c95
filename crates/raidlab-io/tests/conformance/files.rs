//! Operations through the file system, which only the blocking engine has.
use super::suite::collect;
use super::{SEED, content, on_disk, options};
use raidlab_core::op::{Entry, FileOp, Op, OpenMode};
use raidlab_core::target::{Errno, Tag, Target, TargetError};
use raidlab_io::engine::{Blocking, Files, data_name};
use std::path::PathBuf;

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
fn a_scan_reads_what_is_there_and_stops_at_the_end() {
    for direct in [false, true] {
        let mut calls = Calls::new();
        calls.open(OpenMode::Create, direct, false);
        let write = FileOp::Write {
            file: 3,
            len: 16_384,
            offset: 0,
        };
        assert_eq!(calls.ask(write), Ok(16_384));
        assert_eq!(calls.ask(FileOp::Close { file: 3 }), Ok(0));
        let bytes = std::fs::read(calls.path()).unwrap();
        let scan = |offset| FileOp::Scan {
            file: 3,
            len: 8192,
            offset,
        };
        // As any call on a file that is not open.
        assert_eq!(calls.ask(scan(0)), Err(Errno(libc::EBADF)));
        calls.open(OpenMode::Read, direct, false);
        for offset in [8192, 0, 4096] {
            assert_eq!(calls.ask(scan(offset)), Ok(8192));
            // What is there, with a byte of each sector looked at (and changed in memory alone).
            let mut seen = bytes[offset as usize..][..8192].to_vec();
            seen.iter_mut().step_by(512).for_each(|byte| *byte &= 1);
            assert!(calls.target.buffer(8192) == seen, "at {offset}");
        }
        // Cut short by the end, and beyond it.
        assert_eq!(calls.ask(scan(12_288)), Ok(4096));
        assert_eq!(calls.ask(scan(16_384)), Ok(0));
        assert!(std::fs::read(calls.path()).unwrap() == bytes);
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
