//! The ATA IDENTIFY DEVICE data as `hdparm -i` reads it, by the `HDIO_GET_IDENTITY` ioctl.

use std::fs::File;
use std::os::fd::AsRawFd;

use serde::{Deserialize, Serialize};

use crate::observe::roots::Roots;
use crate::observe::safety::open_node;
use crate::observe::stack::{DeviceKind, StackDevice};

/// Bytes of the identify data: 256 words.
pub const IDENTIFY_BYTES: usize = 512;

/// `HDIO_GET_IDENTITY`, linux/hdreg.h.
const HDIO_GET_IDENTITY: libc::Ioctl = 0x030d;

/// What an ATA disk says of itself. Words are numbered as in ATA8-ACS, table "IDENTIFY DEVICE data".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Model, words 27-46.
    pub model: Option<String>,
    /// Firmware revision, words 23-26.
    pub firmware: Option<String>,
    /// Serial number, words 10-19.
    pub serial: Option<String>,
    /// Addressable sectors, words 100-103 or 60-61.
    pub sectors: Option<u64>,
    /// Volatile write cache enabled, word 85 bit 5.
    pub write_cache: Option<bool>,
    /// Read look-ahead enabled, word 85 bit 6.
    pub look_ahead: Option<bool>,
    /// Commands it queues (NCQ or TCQ), word 75.
    pub queue_depth: Option<u8>,
    /// Sectors of a READ/WRITE MULTIPLE as set, word 59.
    pub multiple_sectors: Option<u8>,
    /// Size of the buffer in KiB, word 21 (obsolete since ATA-4; old disks tell it, new ones mostly 0).
    pub buffer_kib: Option<u32>,
    /// Active Ultra DMA mode, word 88.
    pub udma_mode: Option<u8>,
    /// Highest supported Ultra DMA mode, word 88.
    pub udma_supported: Option<u8>,
    /// Turns a minute, word 217; 0 is a disk that does not turn.
    pub rotation_rpm: Option<u16>,
}

/// Parses identify data as `HDIO_GET_IDENTITY` returns it: words in the byte order of the machine, but the strings
/// already put into reading order by the kernel (`ata_get_identity`, drivers/ata/libata-scsi.c). `None` when the data
/// are all zero or have no model.
pub fn parse_identify(data: &[u8; IDENTIFY_BYTES]) -> Option<Identity> {
    let word = |at: usize| u16::from_ne_bytes([data[2 * at], data[2 * at + 1]]);
    let string = |first: usize, last: usize| {
        let text: String = data[2 * first..2 * (last + 1)]
            .iter()
            .filter(|byte| byte.is_ascii_graphic() || **byte == b' ')
            .map(|byte| char::from(*byte))
            .collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let model = Some(string(27, 46)?);
    let lba28 = u64::from(word(60)) | u64::from(word(61)) << 16;
    let lba48 = (0..4).fold(0u64, |sum, index| {
        sum | u64::from(word(100 + index)) << (16 * index)
    });
    // Words 83 and 87 say "valid" by bits 15:14 = 01.
    let valid = |at: usize| word(at) >> 14 == 0b01;
    let sectors = if valid(83) && word(83) & 1 << 10 != 0 && lba48 != 0 {
        lba48
    } else {
        lba28
    };
    let settings = valid(87).then(|| word(85));
    let udma = (word(53) & 1 << 2 != 0).then(|| word(88));
    let highest = |bits: u16| (0..7u8).rev().find(|mode| bits & 1 << mode != 0);
    // Word 76 bit 8 is NCQ, word 83 bit 1 the older TCQ.
    let ncq = !matches!(word(76), 0 | 0xffff) && word(76) & 1 << 8 != 0;
    let queued = ncq || (valid(83) && word(83) & 1 << 1 != 0);
    Some(Identity {
        model,
        firmware: string(23, 26),
        serial: string(10, 19),
        sectors: (sectors != 0).then_some(sectors),
        write_cache: settings.map(|bits| bits & 1 << 5 != 0),
        look_ahead: settings.map(|bits| bits & 1 << 6 != 0),
        queue_depth: queued.then(|| (word(75) & 0x1f) as u8 + 1),
        multiple_sectors: (word(59) & 1 << 8 != 0).then(|| word(59).to_le_bytes()[0]),
        buffer_kib: Some(u32::from(word(21)) / 2).filter(|kib| *kib != 0),
        udma_mode: udma.and_then(|bits| highest(bits >> 8 & 0x7f)),
        udma_supported: udma.and_then(|bits| highest(bits & 0x7f)),
        rotation_rpm: match word(217) {
            1 => Some(0),
            rpm @ 0x0401..=0xfffe => Some(rpm),
            _ => None,
        },
    })
}

/// Asks a disk; `None` for anything that is no ATA disk, or when the device may not be opened.
pub(super) fn read(roots: &Roots, device: &StackDevice) -> Option<Identity> {
    let ata_like = device.name.starts_with("sd") || device.name.starts_with("hd");
    if device.kind != DeviceKind::Disk || !ata_like || !roots.is_live() {
        return None;
    }
    parse_identify(&ask(&open_node(roots, &device.name).ok()?)?)
}

fn ask(device: &File) -> Option<[u8; IDENTIFY_BYTES]> {
    let mut data = [0u8; IDENTIFY_BYTES];
    // SAFETY: HDIO_GET_IDENTITY writes at most 512 bytes (struct hd_driveid) to the buffer, which is that long and
    // lives over the call; the descriptor is open.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), HDIO_GET_IDENTITY, data.as_mut_ptr()) };
    (answer == 0).then_some(data)
}

#[cfg(test)]
#[path = "../tests/identify.rs"]
mod tests;
