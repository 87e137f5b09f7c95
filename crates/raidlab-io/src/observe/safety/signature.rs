//! Magic numbers by which the content of a block device is known.
//!
//! Offsets and values are those of the formats' own definitions, as collected in util-linux's libblkid. The table errs
//! towards finding something: a wrong hit refuses a device, a miss would destroy data.

mod rare;

use std::io;

use serde::{Deserialize, Serialize};

/// Something that is on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// What, with its article-free name: `ext2/3/4 file system`.
    pub what: String,
    /// Where its magic number was found, bytes from the start of the device.
    pub offset: u64,
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (signature at byte {})", self.what, self.offset)
    }
}

/// Where a magic number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// So many bytes from the start.
    Start(u64),
    /// So many bytes before the end.
    End(u64),
    /// The superblock of md 0.90: the last 64 KiB boundary at least 64 KiB before the end (linux/raid/md_p.h).
    Md090,
    /// The superblock of md 1.0: 8 KiB before the end, rounded down to 4 KiB (drivers/md/md.c, `super_1_load`).
    Md10,
}

impl Place {
    fn offset(self, size: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => Some(offset),
            Self::End(distance) => size.checked_sub(distance),
            Self::Md090 => (size & !0xffff).checked_sub(0x1_0000),
            Self::Md10 => Some((size / 512).checked_sub(16)? / 8 * 8 * 512),
        }
    }
}

/// One magic number.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    what: &'static str,
    place: Place,
    magic: &'static [u8],
}

impl Probe {
    /// What it is the sign of.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Where the magic number is on a device of `size` bytes; `None` when it has no room there.
    pub fn offset(&self, size: u64) -> Option<u64> {
        let offset = self.place.offset(size)?;
        let end = offset.checked_add(self.magic.len() as u64)?;
        (end <= size).then_some(offset)
    }

    /// The bytes.
    pub fn magic(&self) -> &'static [u8] {
        self.magic
    }
}

const fn at(what: &'static str, offset: u64, magic: &'static [u8]) -> Probe {
    Probe {
        what,
        place: Place::Start(offset),
        magic,
    }
}

const fn before_end(what: &'static str, distance: u64, magic: &'static [u8]) -> Probe {
    Probe {
        what,
        place: Place::End(distance),
        magic,
    }
}

const MD_LE: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const MD_BE: &[u8] = &[0xa9, 0x2b, 0x4e, 0xfc];

/// Those that are met often; [`rare::PROBES`] are the others.
const PROBES: &[Probe] = &[
    // File systems.
    at("ext2/3/4 file system", 0x438, &[0x53, 0xef]),
    at("xfs file system", 0, b"XFSB"),
    at("btrfs file system", 0x1_0040, b"_BHRfS_M"),
    at("f2fs file system", 0x400, &[0x10, 0x20, 0xf5, 0xf2]),
    at("jfs file system", 0x8000, b"JFS1"),
    at("reiserfs file system", 0x1_0034, b"ReIsErFs"),
    at("reiserfs file system", 0x1_0034, b"ReIsEr2Fs"),
    at("reiserfs file system", 0x1_0034, b"ReIsEr3Fs"),
    at("reiser4 file system", 0x1_0000, b"ReIsEr4"),
    at("nilfs2 file system", 0x406, &[0x34, 0x34]),
    at("gfs2 file system", 0x1_0000, &[0x01, 0x16, 0x19, 0x70]),
    at("ocfs2 file system", 0x400, b"OCFSV2"),
    at("ocfs2 file system", 0x800, b"OCFSV2"),
    at("ocfs2 file system", 0x1000, b"OCFSV2"),
    at("ocfs2 file system", 0x2000, b"OCFSV2"),
    at("squashfs file system", 0, b"hsqs"),
    at("erofs file system", 0x400, &[0xe2, 0xe1, 0xf5, 0xe0]),
    at("iso9660 file system", 0x8001, b"CD001"),
    at("udf file system", 0x8001, b"BEA01"),
    at("hfs+ file system", 0x400, b"H+"),
    at("hfs+ file system", 0x400, b"HX"),
    at("hfs file system", 0x400, b"BD"),
    at("apfs container", 0x20, b"NXSB"),
    at("ntfs file system", 3, b"NTFS    "),
    at("exfat file system", 3, b"EXFAT   "),
    at("bitlocker volume", 3, b"-FVE-FS-"),
    at("fat file system", 0x36, b"FAT12   "),
    at("fat file system", 0x36, b"FAT16   "),
    at("fat file system", 0x36, b"FAT     "),
    at("fat file system", 0x52, b"FAT32   "),
    at("vmfs volume", 0x10_0000, &[0x0d, 0xd0, 0x01, 0xc0]),
    at("minix file system", 0x410, &[0x7f, 0x13]),
    at("minix file system", 0x410, &[0x8f, 0x13]),
    at("minix file system", 0x410, &[0x68, 0x24]),
    at("minix file system", 0x410, &[0x78, 0x24]),
    // Volume managers, encryption, caches.
    at("LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    at("LVM2 physical volume", 0x18, b"LVM2 001"),
    at("LVM2 physical volume", 0x218, b"LVM2 001"),
    at("LVM2 physical volume", 0x418, b"LVM2 001"),
    at("LVM2 physical volume", 0x618, b"LVM2 001"),
    at(
        "bcache device",
        0x1018,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    at(
        "bcachefs file system",
        0x1018,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    at("stratis device", 0x204, b"!Stra0tis\x86\xff\x02^\x41rh"),
    at("stratis device", 0x1204, b"!Stra0tis\x86\xff\x02^\x41rh"),
    at("ceph bluestore", 0, b"bluestore block device"),
    at("vdo volume", 0, b"dmvdo001"),
    at("dm-integrity device", 0, b"integrt\0"),
    at("dm-verity hash device", 0, b"verity\0\0"),
    before_end("drbd device", 4096 - 60, &[0x83, 0x74, 0x02, 0x67]),
    before_end("drbd device", 4096 - 60, &[0x83, 0x74, 0x02, 0x6b]),
    before_end("drbd device", 4096 - 60, &[0x83, 0x74, 0x02, 0x6d]),
    // Arrays.
    Probe {
        what: "md array member (metadata 0.90)",
        place: Place::Md090,
        magic: MD_LE,
    },
    Probe {
        what: "md array member (metadata 0.90)",
        place: Place::Md090,
        magic: MD_BE,
    },
    Probe {
        what: "md array member (metadata 1.0)",
        place: Place::Md10,
        magic: MD_LE,
    },
    at("md array member (metadata 1.1)", 0, MD_LE),
    at("md array member (metadata 1.2)", 0x1000, MD_LE),
    before_end("DDF array member", 512, &[0xde, 0x11, 0xde, 0x11]),
    before_end("DDF array member", 512, &[0x11, 0xde, 0x11, 0xde]),
    before_end("DDF array member", 257 * 512, &[0xde, 0x11, 0xde, 0x11]),
    before_end("DDF array member", 4096, &[0xde, 0x11, 0xde, 0x11]),
    before_end(
        "Intel (IMSM) array member",
        1024,
        b"Intel Raid ISM Cfg Sig. ",
    ),
    before_end(
        "Intel (IMSM) array member",
        8192,
        b"Intel Raid ISM Cfg Sig. ",
    ),
    before_end("Nvidia array member", 1024, b"NVIDIA"),
    before_end("LSI array member", 512, b"$XIDE$"),
    before_end(
        "Promise array member",
        63 * 512,
        b"Promise Technology, Inc.",
    ),
    // Partition tables, for both sizes of sector.
    at("GPT partition table", 512, b"EFI PART"),
    at("GPT partition table", 4096, b"EFI PART"),
    before_end("GPT partition table (backup)", 512, b"EFI PART"),
    before_end("GPT partition table (backup)", 4096, b"EFI PART"),
    at("Apple partition table", 512, b"PM\0\0"),
];

/// All magic numbers with a fixed place; what may be in many places, ZFS labels and the MBR are looked for besides.
pub fn probes() -> impl Iterator<Item = &'static Probe> {
    PROBES.iter().chain(rare::PROBES)
}

/// Finds all known signatures on something of `size` bytes. `read` fills the buffer from an offset.
///
/// # Errors
/// As `read` does.
pub fn find_signatures(
    size: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<Signature>> {
    let mut found: Vec<Signature> = Vec::new();
    let mut buffer = [0u8; 32];
    for probe in probes() {
        let Some(offset) = probe.offset(size) else {
            continue;
        };
        let buffer = &mut buffer[..probe.magic.len()];
        read(offset, buffer)?;
        if buffer == probe.magic {
            found.push(Signature {
                what: probe.what.to_owned(),
                offset,
            });
        }
    }
    rare::in_many_places(size, &mut read, &mut found)?;
    zfs_labels(size, &mut read, &mut found)?;
    // FAT, NTFS and their kin end their first sector with the same two bytes as an MBR.
    let boot_sector = |s: &Signature| s.offset < 512 && !s.what.starts_with("md");
    if !found.iter().any(boot_sector) {
        master_boot_record(size, &mut read, &mut found)?;
    }
    found.sort_by_key(|signature| signature.offset);
    found.dedup();
    Ok(found)
}

const KIB: u64 = 1024;

/// Each of the four labels of 256 KiB holds an XDR list at 16 KiB, whose first pair is named `version`, and a ring of
/// uberblocks at 128 KiB (OpenZFS `vdev_impl.h`, `uberblock_impl.h`). The labels at the end are at multiples of 256 KiB.
fn zfs_labels(
    size: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    found: &mut Vec<Signature>,
) -> io::Result<()> {
    const LABEL: u64 = 256 * KIB;
    const MAGIC: u64 = 0x00ba_b10c;
    let aligned = size / LABEL * LABEL;
    if aligned < 4 * LABEL {
        return Ok(());
    }
    let mut ring = vec![0u8; 128 * 1024];
    for label in [0, LABEL, aligned - 2 * LABEL, aligned - LABEL] {
        let mut list = [0u8; 31];
        read(label + 16 * KIB, &mut list)?;
        read(label + 128 * KIB, &mut ring)?;
        // nvs_header (4), nvl_version (4), nvl_nvflag (4), two sizes (8), length of the name (4), name.
        let named = list[0] == 1 && list[20..24] == [0, 0, 0, 7] && &list[24..31] == b"version";
        let uberblock = ring
            .chunks_exact(1024)
            .filter_map(|slot| slot.first_chunk::<8>())
            .any(|magic| {
                u64::from_le_bytes(*magic) == MAGIC || u64::from_be_bytes(*magic) == MAGIC
            });
        if named || uberblock {
            found.push(Signature {
                what: "zfs pool member".to_owned(),
                offset: label,
            });
        }
    }
    Ok(())
}

fn master_boot_record(
    size: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    found: &mut Vec<Signature>,
) -> io::Result<()> {
    if size < 512 {
        return Ok(());
    }
    let mut sector = [0u8; 512];
    read(0, &mut sector)?;
    if sector[510..] != [0x55, 0xaa] {
        return Ok(());
    }
    // Four entries of 16 bytes from 446; byte 4 of each is the type, 0 is unused.
    let used = sector[446..510].chunks_exact(16).any(|entry| entry[4] != 0);
    let what = if used {
        "MBR partition table"
    } else {
        "boot sector"
    };
    found.push(Signature {
        what: what.to_owned(),
        offset: 510,
    });
    Ok(())
}
