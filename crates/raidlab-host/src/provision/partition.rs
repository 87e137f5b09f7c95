//! One partition over a disk: ZFS wants partitions where no udev makes links for the ones that it would make itself.
use crate::error::{HostError, Result};
use raidlab_core::units::SECTOR;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes before the partition, and bytes left free at the end: 1 MiB each, as partitioning tools do.
const MARGIN: u64 = 1 << 20;
/// Entries of the table, 128 bytes each, as UEFI 2.10 has at the least.
const ENTRIES: usize = 128;
const ENTRY: usize = 128;
/// Type "Solaris /usr & Apple ZFS", 6A898CC3-1DD2-11B2-99A6-080020736631, in the order of the disk.
const ZFS: [u8; 16] = [
    0xc3, 0x8c, 0x89, 0x6a, 0xd2, 0x1d, 0xb2, 0x11, 0x99, 0xa6, 0x08, 0x00, 0x20, 0x73, 0x66, 0x31,
];
/// What a table begins with.
const MAGIC: &[u8] = b"EFI PART";
/// linux/blkpg.h
const BLKPG: libc::Ioctl = 0x1269;
const ADD: libc::c_int = 1;
const DELETE: libc::c_int = 2;

/// `struct blkpg_partition`.
#[repr(C)]
struct Partition {
    start: libc::c_longlong,
    length: libc::c_longlong,
    number: libc::c_int,
    names: [u8; 128],
}

/// `struct blkpg_ioctl_arg`.
#[repr(C)]
struct Request {
    operation: libc::c_int,
    flags: libc::c_int,
    length: libc::c_int,
    data: *const Partition,
}

/// The node of the first partition of a disk.
pub(crate) fn node(disk: &str) -> String {
    let digit = disk.ends_with(|c: char| c.is_ascii_digit());
    format!("{disk}{}1", if digit { "p" } else { "" })
}

/// Writes the table with the disk's own id over a disk that is held, and shows the kernel the partition. Both ends of the partition
/// are emptied before: what was in one that has long gone is nobody's, and would be taken for someone's when this is undone.
pub(crate) fn write(file: &File, path: &Path, size: u64, id: [u8; 16]) -> Result<()> {
    // A table counts in the disk's own sectors; a file has none.
    let sector = rustix::fs::ioctl_blksszget(file).map_or(SECTOR, u64::from);
    let disk = Disk::new(size, sector);
    if disk.sectors < 4 * disk.margin {
        let text = format!("{} is too small for a partition", path.display());
        return Err(HostError::BadRequest(text));
    }
    let entries = disk.entries(id);
    let last = disk.sectors - 1;
    let first_table = disk.header(1, last, 2, id, &entries);
    let second_table = disk.header(last, 1, last - disk.table, id, &entries);
    let end = disk.last_of_partition() + 1;
    let blank = vec![0_u8; MARGIN as usize];
    let pieces = [
        (disk.margin, blank.clone()),
        (end - disk.margin, blank),
        (0, disk.protective()),
        (1, first_table),
        (2, entries.clone()),
        (last - disk.table, entries),
        (last, second_table),
    ];
    for (at, bytes) in pieces {
        file.write_all_at(&bytes, at * sector)
            .map_err(HostError::call("partition", path))?;
    }
    file.sync_all()
        .map_err(HostError::call("partition", path))?;
    let (from, to) = (disk.margin, disk.last_of_partition());
    match tell(file, ADD, from * sector, (to + 1 - from) * sector) {
        // It has read the table by itself.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        other => other.map_err(HostError::call("show the kernel the partition of", path)),
    }
}

/// Where the partition of a table of raidlab's is: its first byte and its length. `None` when the table has been changed since,
/// of which partitioning tools say nothing in the disk's id.
pub(crate) fn extent(file: &File, size: u64) -> std::io::Result<Option<(u64, u64)>> {
    let sector = rustix::fs::ioctl_blksszget(file).map_or(SECTOR, u64::from);
    let disk = Disk::new(size, sector);
    let mut header = disk.empty_sector();
    file.read_exact_at(&mut header, sector)?;
    let mut entries = vec![0_u8; ENTRIES * ENTRY];
    file.read_exact_at(&mut entries, 2 * sector)?;
    let mut id = [0_u8; 16];
    id.copy_from_slice(&header[56..72]);
    // What was cut short when it was written, or when it was cleared, has no entries, or no first table.
    let blank = !header.starts_with(MAGIC) || entries.iter().all(|byte| *byte == 0);
    let (from, to) = (disk.margin, disk.last_of_partition());
    let own = blank || entries == disk.entries(id);
    Ok(own.then_some((from * sector, (to + 1 - from) * sector)))
}

/// Has the kernel forget the partition.
pub(crate) fn forget(file: &File) -> std::io::Result<()> {
    match tell(file, DELETE, 0, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        other => other,
    }
}

/// Tells the kernel of partition 1, instead of having it read the table: not every kernel knows this kind of table.
fn tell(file: &File, operation: libc::c_int, start: u64, length: u64) -> std::io::Result<()> {
    let bytes = |n: u64| libc::c_longlong::try_from(n).unwrap_or(libc::c_longlong::MAX);
    let partition = Partition {
        start: bytes(start),
        length: bytes(length),
        number: 1,
        names: [0; 128],
    };
    let request = Request {
        operation,
        flags: 0,
        length: size_of::<Partition>() as libc::c_int,
        data: &raw const partition,
    };
    // SAFETY: BLKPG reads one struct blkpg_ioctl_arg and the struct blkpg_partition that it points to, both laid out as in
    // linux/blkpg.h and alive over the call; the descriptor is open.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKPG, &raw const request) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A disk as a table sees it: all counted in its logical sectors.
struct Disk {
    /// Bytes of a sector.
    sector: u64,
    sectors: u64,
    /// First sector of the partition, and sectors left free at the end.
    margin: u64,
    /// Sectors of the entries.
    table: u64,
}

impl Disk {
    fn new(size: u64, sector: u64) -> Self {
        Self {
            sector,
            sectors: size / sector,
            margin: MARGIN / sector,
            table: ((ENTRIES * ENTRY) as u64).div_ceil(sector),
        }
    }

    fn last_of_partition(&self) -> u64 {
        (self.sectors - self.margin) / self.margin * self.margin - 1
    }

    fn empty_sector(&self) -> Vec<u8> {
        vec![0_u8; self.sector as usize]
    }

    /// The old table says that all of the disk is taken, so that old tools leave it alone.
    fn protective(&self) -> Vec<u8> {
        let mut sector = self.empty_sector();
        let length = u32::try_from(self.sectors - 1).unwrap_or(u32::MAX);
        sector[446..462]
            .copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0]);
        sector[458..462].copy_from_slice(&length.to_le_bytes());
        sector[510..512].copy_from_slice(&[0x55, 0xaa]);
        sector
    }

    fn entries(&self, id: [u8; 16]) -> Vec<u8> {
        let mut entries = vec![0_u8; ENTRIES * ENTRY];
        let mut own = id;
        own[15] ^= 1;
        entries[..16].copy_from_slice(&ZFS);
        entries[16..32].copy_from_slice(&own);
        entries[32..40].copy_from_slice(&self.margin.to_le_bytes());
        entries[40..48].copy_from_slice(&self.last_of_partition().to_le_bytes());
        entries
    }

    /// UEFI 2.10, section 5.3.2.
    fn header(&self, at: u64, other: u64, table: u64, id: [u8; 16], entries: &[u8]) -> Vec<u8> {
        let mut header = self.empty_sector();
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &0x0001_0000_u32.to_le_bytes());
        put(12, &92_u32.to_le_bytes());
        put(24, &at.to_le_bytes());
        put(32, &other.to_le_bytes());
        put(40, &(2 + self.table).to_le_bytes());
        put(48, &(self.sectors - 2 - self.table).to_le_bytes());
        put(56, &id);
        put(72, &table.to_le_bytes());
        put(80, &(ENTRIES as u32).to_le_bytes());
        put(84, &(ENTRY as u32).to_le_bytes());
        put(88, &crc32(entries).to_le_bytes());
        let sum = crc32(&header[..92]);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
        header
    }
}

/// CRC-32 of IEEE 802.3, as GPT has it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Tool, find};

    #[test]
    fn the_sum_is_that_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn partitions_of_disks_with_a_number_have_a_p() {
        assert_eq!(node("/dev/sdb"), "/dev/sdb1");
        assert_eq!(node("/dev/nbd0"), "/dev/nbd0p1");
    }

    #[test]
    fn other_tools_find_nothing_wrong_with_the_table() {
        use std::io::Write as _;
        if find("sgdisk").is_none() {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED partition table: needs sgdisk (package gdisk)"
            );
            assert!(std::env::var_os("CI").is_none());
            return;
        }
        let size = 64_u64 << 20;
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(size).expect("its size");
        // A file has no kernel that would read its table.
        let told = write(file.as_file(), file.path(), size, [7; 16]);
        assert!(told.is_err_and(|error| error.to_string().contains("show the kernel")));
        let path = file.path().to_str().expect("a name");
        let said = Tool::new(["sgdisk", "--verify", "--print", path])
            .run()
            .expect("it reads it")
            .out;
        assert!(said.contains("No problems found"), "{said}");
        assert!(
            said.contains("1            2048          129023") && said.contains("BF01"),
            "{said}"
        );
    }
}
