//! Where on a disk the data of a member begins: partitions, and the metadata of md by its era.
use crate::array::{BitmapSpec, bitmap_room};
use raidlab_core::units::SECTOR;
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::{Engine, Metadata};

/// First sector of the first partition where cylinders of 63 sectors are counted (fdisk to
/// util-linux 2.17, DOS, Windows to 2003).
const PARTITION_OLD: u64 = 63;
/// The same since partitions begin at whole mebibytes (util-linux 2.17.2 of 2010, the time of
/// 2.6.33); ZFS on Linux makes its partitions so at all times.
const PARTITION: u64 = 2048;

/// Where md's metadata 0.90 is: in the last 64 to 128 KiB (`md_p.h`: `MD_NEW_SIZE_SECTORS`).
const RESERVED_090: u64 = 128;
/// Data offset of metadata 1.2 as mdadm 3.1 to 3.2 makes it (2009 to 2013).
const OFFSET_12: u64 = 2048;
/// Room for a later reshape that mdadm 3.3 (September 2013, the time of 3.12) leaves before the data:
/// 128 MiB, halved until it is at most a thousandth of the device (`super1.c:validate_geometry1`).
const HEADROOM: u64 = 128 << 11;
/// The rest of what is before the data there: superblock and bitmap, at most; rounded up to a
/// mebibyte together with the headroom.
const BEFORE_DATA: u64 = 24 + 8;

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    /// First sector.
    pub(super) offset: u64,
    /// Sectors.
    pub(super) sectors: u64,
}

/// First sector of a partition over the whole disk. That disks are partitioned is assumed.
fn partition(kernel: Kernel, engine: Engine) -> u64 {
    match kernel {
        _ if engine == Engine::Zfs => PARTITION,
        Kernel::Windows2000 => PARTITION_OLD,
        old if old < Kernel::Linux(2, 6, 33) => PARTITION_OLD,
        _ => PARTITION,
    }
}

/// What of a device of `sectors` a file system, an array's member or ZFS gets: what begins at sector `start`, or in the
/// first partition.
pub(super) fn area(kernel: Kernel, engine: Engine, sectors: u64, start: Option<u64>) -> Area {
    let start = start.unwrap_or_else(|| partition(kernel, engine));
    let left = sectors.saturating_sub(start);
    if engine != Engine::Md {
        return Area {
            offset: start,
            sectors: left,
        };
    }
    if kernel < Kernel::Linux(2, 6, 32) {
        let whole = left / RESERVED_090 * RESERVED_090;
        return Area {
            offset: start,
            sectors: whole.saturating_sub(RESERVED_090),
        };
    }
    let mut data = OFFSET_12;
    if kernel >= Kernel::Linux(3, 12, 0) {
        let mut headroom = HEADROOM;
        while headroom << 10 > left && headroom > 0 {
            headroom /= 2;
        }
        data = (BEFORE_DATA + headroom).next_multiple_of(2048);
    }
    Area {
        offset: start + data,
        sectors: left.saturating_sub(data),
    }
}

/// Kernels of the time of mdadm 3.1 and 3.1.1 (October and November 2009): metadata 1.1, later 1.2, and bitmaps of few bits.
const COARSE: Kernel = Kernel::Linux(2, 6, 32);
/// Since then mirrors are written by whoever submits ("md/raid1: submit IO from originating thread instead of md thread").
const BY_SUBMITTER: Kernel = Kernel::Linux(3, 6, 0);
/// Room for a bitmap behind a superblock of 0.90, bytes (`super0.c:add_internal_bitmap0`).
const ROOM_090: u64 = 60 << 10;

/// Metadata that mdadm makes when it is not told.
fn usual(kernel: Kernel) -> Metadata {
    if kernel >= COARSE {
        Metadata::V1_2
    } else {
        Metadata::V0_90
    }
}

/// Sectors of md's superblock of this form, or that of the time: of 0.90 4 KiB, of 1.x 256 bytes and two for each of 128 members
/// (`super_1_load` on `max_dev`; mdadm 4.2 with Linux 6.1 writes one sector, as seen in a guest).
pub(super) fn superblock_sectors(kernel: Kernel, form: Option<Metadata>) -> u32 {
    match form.unwrap_or_else(|| usual(kernel)) {
        Metadata::V0_90 => 8,
        _ => 1,
    }
}

/// Where md's superblock of this form, or that of the time, is on members of disks with `sectors`, in sectors from the first one of
/// data.
pub(super) fn superblock(
    kernel: Kernel,
    form: Option<Metadata>,
    sectors: u64,
    start: Option<u64>,
) -> i64 {
    let start = start.unwrap_or_else(|| partition(kernel, Engine::Md));
    let data = area(kernel, Engine::Md, sectors, Some(start)).offset - start;
    let left = sectors.saturating_sub(start);
    let at = match form.unwrap_or_else(|| usual(kernel)) {
        // In the last 64 to 128 KiB.
        Metadata::V0_90 => (left / RESERVED_090 * RESERVED_090).saturating_sub(RESERVED_090),
        // In the last 8 to 12 KiB.
        Metadata::V1_0 => left.saturating_sub(16) / 8 * 8,
        // At the beginning, or 4 KiB from it.
        Metadata::V1_1 => 0,
        _ => 8,
    };
    at as i64 - data as i64
}

/// Where mdadm puts a bitmap on members of disks with `sectors`, and the room that it has there, with metadata of this form or
/// that of the time. `used` is what the array uses of each.
pub(super) fn bitmap(
    kernel: Kernel,
    form: Option<Metadata>,
    sectors: u64,
    start: Option<u64>,
    used: Option<u64>,
) -> BitmapSpec {
    let area = area(kernel, Engine::Md, sectors, start);
    let used = used.unwrap_or(area.sectors).min(area.sectors);
    let form = form.unwrap_or_else(|| usual(kernel));
    let old = form == Metadata::V0_90;
    let room = if old { ROOM_090 } else { bitmap_room(used) };
    let superblock = superblock(kernel, Some(form), sectors, start);
    let at = match form {
        // Before the superblock is the list of bad blocks, before that the bitmap.
        Metadata::V1_0 => superblock - 8 - (room / SECTOR) as i64,
        // 4 KiB after the superblock's beginning.
        _ => superblock + 8,
    };
    BitmapSpec {
        chunk: None,
        at,
        block: 1,
        room,
        coarse: kernel >= COARSE,
        by_submitter: kernel >= BY_SUBMITTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_where_each_era_has_it() {
        let of = |kernel, engine, sectors| {
            let area = area(kernel, engine, sectors, None);
            (area.offset, area.sectors)
        };
        let (old, new) = (Kernel::Linux(2, 6, 16), Kernel::Linux(6, 1, 0));
        assert_eq!(of(old, Engine::None, 1000), (63, 937));
        // 0.90 at the end: 64 KiB-aligned, at least 64 KiB.
        assert_eq!(of(old, Engine::Md, 78_165_360), (63, 78_165_120));
        assert_eq!(
            of(Kernel::Linux(2, 6, 35), Engine::Md, 78_165_360),
            (2048 + 2048, 78_165_360 - 4096)
        );
        // 1.2 of today: 128 MiB and what is before, as `mdadm -E` shows for disks of terabytes.
        assert_eq!(of(new, Engine::Md, 7_814_037_168).0, 2048 + 264_192);
        assert_eq!(of(new, Engine::Zfs, 10_000), (2048, 7952));
        assert_eq!(of(new, Engine::Md, 100).1, 0, "nothing is left");
    }

    /// Sectors from the first one of a disk of 4 TB without partitions, as mdadm's `super0.c` and `super1.c` have it: a superblock of
    /// 1.2 at sector 8, of 1.1 at 0, of 1.0 at the end.
    #[test]
    fn a_bitmap_is_behind_its_superblock_or_before_that_of_1_0() {
        const DISK: u64 = 7_814_037_168;
        let new = Kernel::Linux(6, 1, 0);
        let at = |kernel, form| {
            let spec = bitmap(kernel, form, DISK, Some(0), None);
            let data = area(kernel, Engine::Md, DISK, Some(0)).offset;
            spec.at + data as i64
        };
        assert_eq!(at(new, None), 16);
        assert_eq!(at(new, Some(Metadata::V1_2)), 16);
        assert_eq!(at(new, Some(Metadata::V1_1)), 8);
        // 128 KiB before the list of bad blocks (4 KiB), that before the superblock in the last 8 KiB.
        let last = at(new, Some(Metadata::V1_0));
        assert_eq!(last, (DISK - 16) as i64 / 8 * 8 - 8 - 256);
        // In the last 64 to 128 KiB, behind the superblock of 4 KiB.
        let old = at(Kernel::Linux(2, 6, 16), None);
        assert_eq!(old, (DISK / 128 * 128 - 128 + 8) as i64);
        let data = area(new, Engine::Md, DISK, Some(0)).offset as i64;
        assert_eq!(superblock(new, None, DISK, Some(0)), 8 - data);
        assert_eq!(superblock(new, Some(Metadata::V1_1), DISK, Some(0)), -data);
        assert!(bitmap(Kernel::Linux(3, 6, 0), None, DISK, None, None).by_submitter);
        assert!(!bitmap(Kernel::Linux(3, 5, 0), None, DISK, None, None).by_submitter);
    }
}
