//! What the kernel answers to an entry that must not wait.
use super::super::{Content, ExtentMode};
use super::*;
use raidlab_core::data::DataPolicy;
use raidlab_core::drive::{DriveError, DriveOptions, Lane, drive};
use raidlab_core::rng::Stream;
use raidlab_core::units::Extent as Region;
use raidlab_core::workload::spec::{Arrival, BlockSpec, Blocks, Limit, Order};
use std::fs::File;
use std::path::Path;

const BLOCK: u32 = 4096;
const SIZE: u64 = 16 << 20;

/// Asks the kernel not to wait (`RWF_NOWAIT`) when an operation is submitted for the first time, and to tell of it: what a
/// device does that ends with EAGAIN what it took.
struct Impatient(Uring);

impl Target for Impatient {
    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
        let Op::Block(block) = op else { unreachable!() };
        let mut entry = self.0.entries.entry(tag, block)?;
        if block.kind != BlockKind::Flush {
            entry.op_flags = libc::RWF_NOWAIT as u32;
        }
        // SAFETY: as in `Uring::submit`.
        assert!(unsafe { self.0.rings.filling().push(entry) });
        Ok(())
    }

    fn again(&mut self, tag: Tag, op: Op) -> Result<bool, TargetError> {
        self.0.again(tag, op)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        self.0.wait(until, done)
    }
}

fn content() -> Content {
    Content::new(DataPolicy::Seeded, 7)
}

/// On the file system of the build: one in memory never has to wait.
fn on_disk() -> tempfile::TempDir {
    let program = std::env::current_exe().expect("its path");
    tempfile::tempdir_in(program.parent().expect("a directory")).expect("a directory")
}

/// A file that is not in the page cache.
fn cold(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("extent");
    let mut bytes = vec![0; SIZE as usize];
    content().fill(0, 0, &mut bytes);
    std::fs::write(&path, bytes).expect("a file");
    let file = File::open(&path).expect("the file");
    file.sync_all().expect("it is on the device");
    let advice = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(&file, 0, None, advice).expect("it leaves the cache");
    path
}

fn target(path: &Path, depth: u32) -> Impatient {
    let mode = ExtentMode {
        write: true,
        ..ExtentMode::default()
    };
    let extent = Extent::open(path, mode).expect("an extent");
    let options = TargetOptions::new(depth, BLOCK, content());
    Impatient(Uring::new(extent, options).expect("a ring"))
}

fn random(read_percent: u8) -> Blocks {
    let spec = BlockSpec {
        order: Order::Random,
        read_percent,
        block: BLOCK,
        region: Region::new(0, SIZE),
        first: 0,
        limit: Limit {
            ops: Some(500),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 50,
        flush_data: false,
        flush_end: true,
    };
    Blocks::new(spec, Stream::new(3))
}

#[test]
fn what_the_kernel_would_have_had_to_wait_for_is_submitted_again_and_succeeds() {
    for (read_percent, depth) in [(100, 1), (100, 8), (50, 8), (0, 4)] {
        let directory = on_disk();
        let path = cold(directory.path());
        let mut target = target(&path, depth);
        let workload = random(read_percent);
        let mut lanes = [Lane { workload, depth }];
        let options = DriveOptions::default();
        let mut driven = match drive(&mut lanes, &mut target, &options, &mut ()) {
            Err(DriveError::Op {
                errno: Errno(libc::EOPNOTSUPP),
                ..
            }) => {
                assert!(std::env::var_os("CI").is_none(), "no RWF_NOWAIT here");
                return eprintln!("skipped: this file system has no RWF_NOWAIT");
            }
            other => other.expect("all of it"),
        };
        let tally = driven.tallies.remove(0);
        assert_eq!(tally.ops, 500);
        // Writes that find no page in the cache need none of the device.
        if read_percent > 0 {
            assert!(tally.again > 0, "none of {} was put off", tally.all_ops);
        }
        assert_eq!(target.0.in_flight(), 0);
        drop(target);
        let bytes = std::fs::read(&path).expect("the file");
        assert_eq!(content().check(0, 0, &bytes), None, "what was written");
    }
}

#[test]
fn bytes_of_the_write_source_are_lent_again() {
    let directory = on_disk();
    let path = cold(directory.path());
    let mut target = target(&path, 2);
    let op = Op::Block(BlockOp {
        kind: BlockKind::Write,
        len: BLOCK,
        offset: 5 * u64::from(BLOCK),
    });
    let mut done = Vec::new();
    for _ in 0..100 {
        assert!(target.again(Tag(1), op).expect("the slot is free"));
        target.wait(None, &mut done).expect("an end");
    }
    assert_eq!(done.len(), 100);
    assert!(done.iter().all(|end| end.result == Ok(BLOCK)));
    assert!(target.again(Tag(0), op).is_ok() && target.again(Tag(0), op).is_err());
}
