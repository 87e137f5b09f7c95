//! Formats that are seldom met, and further places of those that are: the rest of what util-linux's libblkid knows (2.42).

use std::io;

use super::{KIB, Probe, Signature, at, before_end};

/// Magic numbers with a fixed place.
pub(super) const PROBES: &[Probe] = &[
    // File systems, and other places and byte orders of those in the first table.
    at("minix file system", 0x410, &[0x13, 0x7f]),
    at("minix file system", 0x410, &[0x13, 0x8f]),
    at("minix file system", 0x410, &[0x24, 0x68]),
    at("minix file system", 0x410, &[0x24, 0x78]),
    at("minix file system", 0x418, &[0x5a, 0x4d]),
    at("minix file system", 0x418, &[0x4d, 0x5a]),
    at("reiserfs file system", 0x2034, b"ReIsErFs"),
    at("reiserfs file system", 0x2014, b"ReIsErFs"),
    at("f2fs file system", 0x1400, &[0x10, 0x20, 0xf5, 0xf2]),
    before_end("nilfs2 file system", 4096 - 6, &[0x34, 0x34]),
    at("squashfs file system", 0, b"sqsh"),
    at("iso9660 file system", 0x8009, b"CDROM"),
    at("udf file system", 0x8001, b"NSR02"),
    at("udf file system", 0x8001, b"NSR03"),
    at("udf file system", 0x8001, b"BOOT2"),
    at("udf file system", 0x8001, b"CDW02"),
    at("udf file system", 0x8001, b"TEA01"),
    at("fat file system", 0x52, b"MSWIN"),
    at("fat file system", 0x36, b"MSDOS"),
    at("refs file system", 0, b"\0\0\0ReFS\0"),
    at("hpfs file system", 0x2000, &[0x49, 0xe8, 0x95, 0xf9]),
    at("ocfs file system", 0x2000, b"OracleCFS"),
    at("oracle asm disk", 0x20, b"ORCLDISK"),
    at("vxfs file system", 0x400, &[0xf5, 0xfc, 0x01, 0xa5]),
    at("vxfs file system", 0x2000, &[0xa5, 0x01, 0xfc, 0xf5]),
    at("vmfs file system", 0x20_0000, &[0x5e, 0xf1, 0xab, 0x2f]),
    at("befs file system", 0x20, b"BFS1"),
    at("befs file system", 0x20, b"1SFB"),
    at("befs file system", 0x220, b"BFS1"),
    at("befs file system", 0x220, b"1SFB"),
    at("bfs file system", 0, &[0xce, 0xfa, 0xad, 0x1b]),
    at("netware file system", 0x1000, b"SPB5"),
    at("scoutfs file system", 0x1_0004, &[0x8b, 0x42, 0x3c, 0x10]),
    at("sysv file system", 0x3f8, &[0x20, 0x7e, 0x18, 0xfd]),
    at("sysv file system", 0x3f8, &[0xfd, 0x18, 0x7e, 0x20]),
    at("sysv file system", 0x27f8, &[0x20, 0x7e, 0x18, 0xfd]),
    at("sysv file system", 0x3ff8, &[0x20, 0x7e, 0x18, 0xfd]),
    at("sysv file system", 0x4bf8, &[0x20, 0x7e, 0x18, 0xfd]),
    at("xenix file system", 0x800, &[0x2b, 0x55, 0x44]),
    at("xenix file system", 0x800, &[0x44, 0x55, 0x2b]),
    at("cramfs file system", 0, &[0x45, 0x3d, 0xcd, 0x28]),
    at("cramfs file system", 0, &[0x28, 0xcd, 0x3d, 0x45]),
    at("romfs file system", 0, b"-rom1fs-"),
    at("zonefs file system", 0, b"SFOZ"),
    at("exfs file system", 0, b"EXFS"),
    at("mpool device", 0, b"mpoolDev"),
    at("ubi volume", 0, b"UBI#"),
    at("ubifs file system", 0, &[0x31, 0x18, 0x10, 0x06]),
    // Volume managers, encryption, snapshots.
    at("LVM1 physical volume", 0, b"HM\x01\0"),
    at("LVM1 physical volume", 0, b"HM\x02\0"),
    at("LVM snapshot", 0, b"SnAp"),
    at("apple core storage volume", 88, b"CS"),
    before_end("drbd device", 4096 - 60, &[0x83, 0x74, 0x02, 0x6c]),
    at("drbd control volume", 0, b"$DRBDmgr=q"),
    at("drbd proxy log", 0, b"DRBDdlh*"),
    at("bcachefs file system", 0x20_0018, BCACHEFS),
    before_end("bcachefs file system", 0x10_0000 - 0x18, BCACHEFS),
    // Arrays of controllers.
    at("Highpoint array member", 0x1220, &[0xf0, 0x16, 0x78, 0x5a]),
    at("Highpoint array member", 0x1220, &[0xf3, 0x16, 0x78, 0x5a]),
    at("Highpoint array member", 0x1220, &[0xfd, 0x16, 0x78, 0x5a]),
    before_end(
        "Highpoint array member",
        11 * 512,
        &[0xf3, 0x16, 0x78, 0x5a],
    ),
    before_end(
        "Highpoint array member",
        11 * 512,
        &[0xfd, 0x16, 0x78, 0x5a],
    ),
    before_end("Adaptec array member", 512, &[0x37, 0xfc, 0x4d, 0x1e]),
    before_end("Silicon Image array member", 512 - 0x60, &[0, 0, 0, 0x2f]),
    before_end("JMicron array member", 512, b"JM"),
    before_end("VIA array member", 512, &[0x55, 0xaa]),
    // Partition tables.
    at("AIX partition table", 0, &[0xc9, 0xc2, 0xd4, 0xc1]),
    at("BSD disk label", 64, BSD),
    at("BSD disk label", 128, BSD),
    at("BSD disk label", 512, BSD),
    at("Apple partition table", 0, b"ER\x02\0"),
    at("Apple partition table", 0, b"ER\x08\0"),
    at("Apple partition table", 0, b"ER\x10\0"),
    at("SGI partition table", 0, &[0x0b, 0xe5, 0xa9, 0x41]),
    at("Sun partition table", 508, &[0xda, 0xbe]),
    at("Solaris partition table", 0x20c, &[0xee, 0xde, 0x0d, 0x60]),
    at("Ultrix disk label", 0x3fb8, &[0x57, 0x29, 0x03, 0]),
];

const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const BSD: &[u8] = &[0x57, 0x45, 0x56, 0x82];

/// Sectors before the end at which Promise's controllers keep their metadata, besides 63.
const PROMISE: [u64; 12] = [255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087];
/// Swap is signed in the last ten bytes of its first page, which is as large as pages were where it was made.
const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
const SWAP: [(&str, &[u8]); 6] = [
    ("swap space", b"SWAP-SPACE"),
    ("swap space", b"SWAPSPACE2"),
    ("hibernation image", b"S1SUSPEND"),
    ("hibernation image", b"S2SUSPEND"),
    ("hibernation image", b"ULSUSPEND"),
    ("hibernation image", b"LINHIB0001"),
];
const TUXONICE: &[u8] = &[0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c];
/// Where LUKS2 may have its second header: after the first, which is as large as it was made.
const LUKS2: [u64; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// UFS and its variants, in the byte order of a PC, at 0x55c of the superblock.
const UFS: [u32; 6] = [
    0x0001_1954,
    0x1954_0119,
    0x0019_5612,
    0x0009_5014,
    0x0061_2195,
    0x0523_1994,
];

/// Finds those of a few magic numbers that may be in many places.
///
/// # Errors
/// As `read` does.
pub(super) fn in_many_places(
    size: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    found: &mut Vec<Signature>,
) -> io::Result<()> {
    let mut look = |what: &str, offset: Option<u64>, magics: &[&[u8]]| -> io::Result<()> {
        let Some(offset) = offset.filter(|offset| offset + 16 <= size) else {
            return Ok(());
        };
        let mut bytes = [0_u8; 16];
        read(offset, &mut bytes)?;
        if magics.iter().any(|magic| bytes.starts_with(magic)) {
            found.push(Signature {
                what: what.to_owned(),
                offset,
            });
        }
        Ok(())
    };
    for sectors in PROMISE {
        let offset = size.checked_sub(sectors * 512);
        look("Promise array member", offset, &[b"Promise Technolo"])?;
    }
    look("hibernation image", Some(0), &[TUXONICE])?;
    for page in PAGES {
        for (what, magic) in SWAP {
            look(what, Some(page - 10), &[magic])?;
        }
    }
    for kib in LUKS2 {
        look(
            "LUKS2 secondary header",
            Some(kib * KIB),
            &[b"SKUL\xba\xbe"],
        )?;
    }
    for kib in [0, 8, 64, 256] {
        for magic in UFS {
            let either = [magic.to_le_bytes(), magic.to_be_bytes()];
            let offset = Some(kib * KIB + 0x55c);
            look("ufs file system", offset, &[&either[0], &either[1]])?;
        }
    }
    external_log(size, read, found)
}

/// The log of an XFS that keeps it on a device of its own: each of its records begins a sector with this number, and the
/// first is within 256 KiB.
fn external_log(
    size: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    found: &mut Vec<Signature>,
) -> io::Result<()> {
    const RECORD: &[u8] = &[0xfe, 0xed, 0xba, 0xbe];
    let whole = usize::try_from(size.min(256 * KIB)).unwrap_or(0) / 512 * 512;
    let mut start = vec![0_u8; whole];
    read(0, &mut start)?;
    let record = start.chunks_exact(512).position(|s| s.starts_with(RECORD));
    found.extend(record.map(|sector| Signature {
        what: "xfs log".to_owned(),
        offset: sector as u64 * 512,
    }));
    Ok(())
}
