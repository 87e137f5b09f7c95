mod bitmap;
mod btrfs;
mod checkpoints;
mod clean;
mod content;
mod copier;
mod mirrors;
mod parity;
mod pools;
mod replace;
mod resilver;
mod resync;
mod room;
mod rows;
mod thread;
mod toy;
mod windows;

use super::*;
use raidlab_core::op::BlockKind;
use raidlab_core::units::{Lba, Sectors};

/// A request by process 1.
fn bio(id: u64, kind: BlockKind, lba: u64, sectors: u32) -> Bio {
    Bio {
        id,
        kind,
        lba: Lba(lba),
        sectors,
        fua: false,
        origin: Origin {
            task: 1,
            sync: true,
            ..Default::default()
        },
    }
}

fn sizes(members: usize, sectors: u64) -> Vec<Sectors> {
    vec![Sectors(sectors); members]
}
