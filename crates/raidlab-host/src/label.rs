//! What is on a device, with the uuid by which its maker can be told.
use crate::error::{HostError, Result};
use crate::tool::Tool;
use raidlab_io::observe::safety::{Signature, find_signatures};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Before the uuid in the name of a pool that raidlab makes.
pub(crate) const POOL: &str = "raidlab-";

/// A signature and the uuid beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// What it is the sign of.
    pub(crate) what: String,
    /// Hexadecimal digits without separators; `None` when the format has none or it is not known how to read it.
    pub(crate) uuid: Option<String>,
}

impl Label {
    /// Whether it is that of a member of an md array.
    pub(crate) fn is_of_array(&self) -> bool {
        ["md array member", "Intel", "DDF"]
            .iter()
            .any(|kind| self.what.starts_with(kind))
    }

    /// Whether it carries one of these uuids.
    pub(crate) fn is_one_of(&self, uuids: &[String]) -> bool {
        self.uuid.as_ref().is_some_and(|uuid| uuids.contains(uuid))
    }
}

/// A uuid as labels are compared: hexadecimal digits, lower case, without separators.
pub(crate) fn plain(uuid: &str) -> String {
    let digits = uuid.chars().filter(char::is_ascii_hexdigit);
    digits.map(|c| c.to_ascii_lowercase()).collect()
}

/// A part of an open device, read as if it was one by itself.
#[derive(Clone, Copy)]
struct Part<'f> {
    file: &'f File,
    path: &'f Path,
    start: u64,
    size: u64,
}

impl Part<'_> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, self.start + offset)
    }

    fn bytes<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0_u8; N];
        self.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

/// All labels of an open device.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(file: &File, size: u64, path: &Path) -> Result<Vec<Label>> {
    let start = 0;
    labels(Part {
        file,
        path,
        start,
        size,
    })
}

/// All labels of a partition, read through its disk: there may be no node of it.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read_partition(
    file: &File,
    (start, size): (u64, u64),
    path: &Path,
) -> Result<Vec<Label>> {
    // What is written by the partition's own node does not reach the pages that the disk's has.
    let _ = fadvise(file, start, NonZeroU64::new(size), Advice::DontNeed);
    labels(Part {
        file,
        path,
        start,
        size,
    })
}

fn labels(part: Part<'_>) -> Result<Vec<Label>> {
    let signatures = find_signatures(part.size, |offset, buffer| {
        part.read_exact_at(buffer, offset)
    })
    .map_err(HostError::call("read", part.path))?;
    let label = |signature: Signature| Label {
        uuid: uuid_of(part, &signature),
        what: signature.what,
    };
    // A GPT comes with an old table that says so; its uuid is the GPT's.
    let gpt = signatures
        .iter()
        .any(|signature| signature.what.starts_with("GPT"));
    let protective = |signature: &Signature| gpt && signature.what == "MBR partition table";
    let signatures = signatures
        .into_iter()
        .filter(|signature| !protective(signature));
    Ok(signatures.map(label).collect())
}

/// All known signatures, read through the descriptor.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn signatures(file: &File, size: u64, path: &Path) -> Result<Vec<Signature>> {
    find_signatures(size, |offset, buffer| file.read_exact_at(buffer, offset))
        .map_err(HostError::call("read", path))
}

/// Where formats keep their uuid, from where their magic number is.
fn uuid_of(part: Part<'_>, signature: &Signature) -> Option<String> {
    let Signature { what, offset } = signature;
    let bytes = |at: u64| Some(hexadecimal(&part.bytes::<16>(at)?));
    match what.as_str() {
        // s_uuid is 104 bytes into the superblock, whose magic number is 56 bytes into it.
        "ext2/3/4 file system" => bytes(offset + 48),
        // sb_uuid, xfs_format.h.
        "xfs file system" => bytes(offset + 32),
        // fsid, 32 bytes into the superblock, the magic number 64.
        "btrfs file system" => bytes(offset - 32),
        // set_uuid, linux/raid/md_p.h.
        what if what.starts_with("md array member (metadata 1") => bytes(offset + 16),
        "md array member (metadata 0.90)" => {
            // set_uuid0 is word 5 of the superblock, the others are words 13 to 15, in the byte order of the machine.
            let word = |number: u64| {
                let word = u32::from_le_bytes(part.bytes(offset + 4 * number)?);
                Some(format!("{word:08x}"))
            };
            Some([word(5)?, word(13)?, word(14)?, word(15)?].concat())
        }
        // The disk's own id, 56 bytes into the header.
        what if what.starts_with("GPT") => bytes(offset + 56),
        "zfs pool member" => pool_uuid(part, *offset),
        // mdadm reads whole devices.
        what if what.starts_with("Intel") || what.starts_with("DDF") => {
            (part.start == 0).then(|| container_uuid(part.path))?
        }
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Metadata of BIOS RAIDs is told apart by the family number or id in it; mdadm makes a uuid of it.
fn container_uuid(path: &Path) -> Option<String> {
    let words = ["mdadm", "--examine", "--export", path.to_str()?];
    let words = words.map(str::to_owned);
    let said = Tool::new(words)
        .with(&crate::provision::CONTAINER_ENVIRONMENT)
        .run()
        .ok()?;
    let mut lines = said.out.lines();
    lines
        .find_map(|line| line.strip_prefix("MD_UUID="))
        .map(plain)
}

/// What tells a pool: the uuid that raidlab puts into the names of its own, which is known before there is a label, or the
/// pool's `pool_guid`.
fn pool_uuid(part: Part<'_>, label: u64) -> Option<String> {
    let mut list = vec![0_u8; 112 * 1024];
    part.read_exact_at(&mut list, label + 16 * 1024).ok()?;
    own_pool(&list).or_else(|| {
        // A type (8, uint64), a count of 1 and the number.
        let number = value(&list, b"\0\0\0\x09pool_guid\0\0\0\0\0\0\x08\0\0\0\x01")?;
        Some(hexadecimal(number.get(..8)?))
    })
}

/// The uuid in the name of a pool of raidlab's.
fn own_pool(list: &[u8]) -> Option<String> {
    // A type (9, string), a count of 1, the length and the text.
    let text = value(list, b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01")?;
    let length = u32::from_be_bytes(text.get(..4)?.try_into().ok()?) as usize;
    let name = std::str::from_utf8(text.get(4..)?.get(..length)?).ok()?;
    Some(plain(name.strip_prefix(POOL)?))
}

/// What stands behind the name, type and count of an entry of a list (XDR) in a ZFS label.
fn value<'l>(list: &'l [u8], entry: &[u8]) -> Option<&'l [u8]> {
    let at = list
        .windows(entry.len())
        .position(|window| window == entry)?;
    list.get(at + entry.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list with this name, as ZFS writes it.
    fn list(name: &str) -> Vec<u8> {
        let mut list = b"\0\0\0\x07version\0\0\0\x08\0\0\0\x01\0\0\0\0\0\0\x13\x88".to_vec();
        list.extend(b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01");
        list.extend((name.len() as u32).to_be_bytes());
        list.extend(name.as_bytes());
        list
    }

    const SIZE: u64 = 4 << 20;

    /// The labels of something of 4 MiB that has these bytes at these places, by itself and as a part of a disk.
    fn labels_of(bytes: &[(u64, &[u8])]) -> Vec<Label> {
        let made = |start: u64| {
            let file = tempfile::tempfile().expect("a file");
            file.set_len(start + SIZE + 4096).expect("as large");
            for (at, bytes) in bytes {
                file.write_all_at(bytes, start + at).expect("written");
            }
            file
        };
        let path = Path::new("a device");
        let whole = read(&made(0), SIZE, path).expect("readable");
        let part = read_partition(&made(1 << 20), (1 << 20, SIZE), path).expect("readable");
        assert_eq!(whole, part);
        whole
    }

    /// Each where the headers of the format's own maker have it.
    #[test]
    fn each_format_has_its_uuid_in_its_own_place() {
        let id: [u8; 16] = std::array::from_fn(|i| 0x11 * i as u8);
        let told = "00112233445566778899aabbccddeeff";
        let md = &0xa92b_4efc_u32.to_le_bytes();
        let before_end = SIZE - 64 * 1024;
        // Words 5, 13, 14 and 15 of the oldest superblock of md are numbers of the machine.
        let words: Vec<Vec<u8>> = id
            .chunks(4)
            .map(|w| w.iter().rev().copied().collect())
            .collect();
        let old = [5, 13, 14, 15].map(|word| before_end + 4 * word);
        for (what, bytes) in [
            (
                "ext2/3/4 file system",
                vec![(1024 + 0x38, &[0x53, 0xef][..]), (1024 + 0x68, &id)],
            ),
            ("xfs file system", vec![(0, b"XFSB"), (32, &id)]),
            (
                "btrfs file system",
                vec![(0x1_0040, b"_BHRfS_M"), (0x1_0020, &id)],
            ),
            (
                "md array member (metadata 1.2)",
                vec![(4096, md), (4096 + 16, &id)],
            ),
            (
                "md array member (metadata 0.90)",
                vec![
                    (before_end, md),
                    (old[0], &words[0]),
                    (old[1], &words[1]),
                    (old[2], &words[2]),
                    (old[3], &words[3]),
                ],
            ),
            (
                "GPT partition table",
                // With the old table that protects it.
                vec![
                    (512, b"EFI PART"),
                    (512 + 56, &id),
                    (446 + 4, &[0xee]),
                    (510, &[0x55, 0xaa]),
                ],
            ),
        ] {
            let label = Label {
                what: what.to_owned(),
                uuid: Some(told.to_owned()),
            };
            assert!(label.is_one_of(&[plain("FFFF"), plain(told)]));
            assert_eq!(labels_of(&bytes), [label], "{what}");
        }
        // A format whose uuid is not looked for is nobody's known one.
        let [luks] = &labels_of(&[(0, b"LUKS\xba\xbe"), (168, &id)])[..] else {
            panic!("one label");
        };
        assert_eq!(luks.uuid, None);
        assert!(!luks.is_one_of(&[told.to_owned()]));
    }

    /// An old table of partitions stands by itself where there is no GPT.
    #[test]
    fn an_old_partition_table_is_a_label() {
        let entry = [0x80, 0, 2, 0, 0x83, 0, 1, 0, 0, 8, 0, 0, 0, 8, 0, 0];
        let told = labels_of(&[(446, &entry), (510, &[0x55, 0xaa])]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            (told[0].what.as_str(), &told[0].uuid),
            ("MBR partition table", &None)
        );
    }

    #[test]
    fn a_pool_of_raidlabs_is_known_by_its_name() {
        let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert_eq!(own_pool(&list(&format!("{POOL}{uuid}"))), Some(plain(uuid)));
        assert_eq!(own_pool(&list("tank")), None);
        assert_eq!(own_pool(&list("")), None);
        let mut cut = list(&format!("{POOL}{uuid}"));
        cut.truncate(cut.len() - 1);
        assert_eq!(own_pool(&cut), None);
    }
}
