//! What is on a device, with the uuid by which its maker can be told.
use crate::error::{HostError, Result};
use crate::tool::Tool;
use raidlab_io::observe::safety::{Signature, find_signatures};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A signature and the uuid beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// What it is the sign of.
    pub(crate) what: String,
    /// Hexadecimal digits without separators; `None` when the format has none or it is not known how to read it.
    pub(crate) uuid: Option<String>,
}

impl Label {
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

/// All labels of an open device.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(file: &File, size: u64, path: &Path) -> Result<Vec<Label>> {
    let signatures = signatures(file, size, path)?;
    let label = |signature: Signature| Label {
        uuid: uuid_of(file, path, &signature),
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
fn uuid_of(file: &File, path: &Path, signature: &Signature) -> Option<String> {
    let Signature { what, offset } = signature;
    let bytes = |at: u64| {
        let mut uuid = [0_u8; 16];
        file.read_exact_at(&mut uuid, at).ok()?;
        Some(
            uuid.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>(),
        )
    };
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
                let mut word = [0_u8; 4];
                file.read_exact_at(&mut word, offset + 4 * number).ok()?;
                Some(format!("{:08x}", u32::from_le_bytes(word)))
            };
            Some([word(5)?, word(13)?, word(14)?, word(15)?].concat())
        }
        // The disk's own id, 56 bytes into the header.
        what if what.starts_with("GPT") => bytes(offset + 56),
        "zfs pool member" => pool_guid(file, *offset),
        what if what.starts_with("Intel") || what.starts_with("DDF") => container_uuid(path),
        _ => None,
    }
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

/// `pool_guid` in the list of a ZFS label: an XDR name, a type (8, uint64), a count of 1 and the number.
fn pool_guid(file: &File, label: u64) -> Option<String> {
    let mut list = vec![0_u8; 112 * 1024];
    file.read_exact_at(&mut list, label + 16 * 1024).ok()?;
    let name = b"\0\0\0\x09pool_guid\0\0\0\0\0\0\x08\0\0\0\x01";
    let at = list.windows(name.len()).position(|window| window == name)? + name.len();
    let number = list.get(at..at + 8)?;
    Some(number.iter().map(|byte| format!("{byte:02x}")).collect())
}
