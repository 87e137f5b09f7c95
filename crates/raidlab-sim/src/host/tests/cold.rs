//! Reads of btrfs whose checksums have to be read first.
use super::*;
use raidlab_core::op::{BlockKind, BlockOp, Op};
use raidlab_core::target::{Tag, Target as _};

const EACH: Span = Span::from_millis(10);
/// Reads so far apart have leaves of their own, with the four that large ones read with theirs.
const APART: u64 = 84 * MIB;

/// A file of 512 MiB, mounted anew, of which so many pieces are read by one process, handed over together.
struct Read {
    /// In how many requests' time the calls ended, in the order in which the process heard of them.
    ended: Vec<u64>,
    /// And when leaves were asked for.
    leaves: Vec<u64>,
    data: Vec<u64>,
}

fn read(kernel: Kernel, pieces: u32, len: u32) -> Read {
    let mut device = Toy::new();
    (device.each, device.sector) = (EACH, Span::ZERO);
    let mut host = host(kernel, 64, FilesystemKind::Btrfs, device);
    host.provide(0, 512 * MIB).unwrap();
    host.mount_anew();
    let begun = host.now();
    for tag in 0..pieces {
        let read = BlockOp {
            kind: BlockKind::Read,
            offset: u64::from(tag) * APART,
            len,
        };
        host.submit(Tag(tag), Op::Block(read)).unwrap();
    }
    let mut done = Vec::new();
    while done.len() < pieces as usize {
        host.wait(None, &mut done).expect("it ends");
    }
    assert!(done.iter().all(|end| end.result.is_ok()), "{done:?}");
    let times = |at: Instant| (at.0 - begun.0) / EACH.0;
    let asked = |leaf: bool| {
        let asked = host.device().asked.iter();
        let asked = asked.filter(|(_, bio)| (bio.sectors > len / 512) == leaf);
        asked.map(|(at, _)| times(*at)).collect()
    };
    Read {
        ended: done.iter().map(|end| times(end.at)).collect(),
        leaves: asked(true),
        data: asked(false),
    }
}

/// Each waits for its leaf before the next one begins, the data of those before is read meanwhile, and the process hears of all when the
/// last one is submitted.
#[test]
fn who_hands_over_several_waits_for_one_leaf_after_the_other() {
    for kernel in [Kernel::Linux(6, 1, 0), Kernel::Linux(5, 10, 0)] {
        let read = read(kernel, 4, 4096);
        // The device does one at a time: leaf, data and leaf, data and leaf.
        assert_eq!(read.leaves, [0, 1, 3, 5], "{kernel}");
        assert_eq!(read.data, [1, 3, 5, 7], "{kernel}");
        assert_eq!(read.ended, [7, 7, 7, 8], "{kernel}");
    }
}

/// Larger ones are workers', of whom there are four a core, and who wait side by side; before 6.0 they are as small ones are.
#[test]
fn workers_wait_for_leaves_side_by_side() {
    let new = read(Kernel::Linux(6, 1, 0), 6, 65_536);
    // The first is by itself when it comes. The sixth has the second one's worker.
    assert_eq!(new.leaves, [0, 0, 0, 0, 0, 2]);
    assert_eq!(new.ended, [6, 7, 9, 10, 11, 12]);
    let old = read(Kernel::Linux(5, 10, 0), 3, 65_536);
    assert_eq!(old.leaves, [0, 1, 3]);
}
