//! What of an experiment is drawn by itself: layouts, how disks are joined, loads.
use super::{BUSES, Draws, KIB, Kind, Load, MIB, Topology};

pub(super) fn layout(draws: &mut Draws) -> (&'static str, usize) {
    let any = |draws: &mut Draws, least: u64, most: u64| least + draws.below(most - least + 1);
    let (layout, disks) = match draws.below(15) {
        0 => ("single", 1),
        1 => ("linear", any(draws, 2, 4)),
        2 | 3 => ("raid0", any(draws, 2, 12)),
        4 | 5 => ("raid1", any(draws, 2, 3)),
        6 => ("raid4", any(draws, 3, 8)),
        7 | 8 => ("raid5", any(draws, 3, 12)),
        9 => ("raid6", any(draws, 4, 12)),
        10 => ("raid10", any(draws, 2, 9)),
        11 => ("raid10-f2", any(draws, 2, 8)),
        12 => ("raid10-o2", any(draws, 2, 8)),
        13 => draws.of(&[("raid01 2x2", 4), ("raid01 2x3", 6)]),
        _ => draws.of(&[("raid50 2x3", 6), ("raid50 2x4", 8)]),
    };
    (layout, disks as usize)
}

/// A pool of ZFS.
pub(super) fn pool(draws: &mut Draws) -> (&'static str, usize) {
    let any = |draws: &mut Draws, least: u64, most: u64| least + draws.below(most - least + 1);
    let (layout, disks) = match draws.below(7) {
        0 => ("single", 1),
        6 => ("zfs-stripe", any(draws, 2, 4)),
        1 => ("zfs-mirror", any(draws, 2, 3)),
        2 => ("zfs-mirror 2x2", 4),
        3 => ("raidz1", any(draws, 3, 6)),
        4 => ("raidz2", any(draws, 4, 8)),
        _ => ("raidz1 2x3", 6),
    };
    (layout, disks as usize)
}

pub(super) fn topology(draws: &mut Draws, kind: Kind) -> Topology {
    let cards = |on_channel: usize, draws: &mut Draws| Topology::Cards {
        on_channel,
        bus: draws.of(BUSES),
    };
    match (kind, draws.below(4)) {
        (_, 0) => Topology::Own,
        (Kind::Nvme, _) => cards(1, draws),
        (_, 1) => Topology::Hardware {
            cache: draws.of(&["32MiB", "512MiB"]),
            back: !draws.once_in(3),
        },
        (Kind::Pata, _) => {
            let on_channel = draws.of(&[1, 2]);
            cards(on_channel, draws)
        }
        (Kind::Scsi, _) => {
            let on_channel = draws.of(&[4, 12]);
            cards(on_channel, draws)
        }
        _ => cards(1, draws),
    }
}

pub(super) fn load(draws: &mut Draws, kind: Kind, file: bool) -> Load {
    let random = draws.once_in(2);
    let read = draws.once_in(2);
    let direct = !draws.once_in(3);
    let block = if random {
        draws.of(&[512, 4 * KIB, 4 * KIB, 8 * KIB, 64 * KIB, MIB])
    } else {
        draws.of(&[
            512,
            4 * KIB,
            64 * KIB,
            128 * KIB,
            256 * KIB,
            MIB,
            MIB,
            4 * MIB,
        ])
    };
    let depth = if direct {
        draws.of(&[1, 1, 2, 4, 8, 16, 32, 64, 128, 1024])
    } else {
        1
    };
    let jobs = if draws.once_in(5) {
        draws.of(&[2, 4])
    } else {
        1
    };
    let solid = matches!(kind, Kind::Solid | Kind::Nvme);
    let ops = if solid { 6000 } else { 1200 } + 4 * depth * jobs;
    let total = match random {
        true => (block * ops)
            .min(160 * MIB)
            .max(block * 16 * (depth * jobs).min(32)),
        false => draws.of(&[64, 128, 256]) * MIB.min(block * 64),
    };
    let size = if file {
        draws.of(&[1, 4]) * (256 * MIB).max(total)
    } else {
        0
    };
    Load {
        random,
        read,
        direct,
        block,
        depth,
        jobs,
        total: total / (block * jobs) * block * jobs,
        size,
    }
}
