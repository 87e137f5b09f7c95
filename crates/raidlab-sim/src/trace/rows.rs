//! Traces with a request on each line: SPC, MSR and DiskSim.
use super::device::{Hosts, is_minor, joined};
use super::fields::{Field, Fields};
use super::{Format, Record, TraceError};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_core::words::quoted;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// Windows file times count 100 ns.
const FILE_TIME: u64 = 100;

pub(super) struct State {
    format: Format,
    /// Whether there was a request: a heading is above all of them.
    begun: bool,
    hosts: Hosts,
    /// The disk that is wanted of whichever host has one of its number, and that host once it has come.
    disk: Option<(u32, Option<String>)>,
}

impl State {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            begun: false,
            hosts: Hosts::default(),
            disk: None,
        }
    }

    /// Takes this disk of MSR to be the only one of its number.
    pub(super) fn of_one_host(&mut self, disk: u32) {
        self.disk = Some((disk, None));
    }

    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(super) fn hosts_mut(&mut self) -> &mut Hosts {
        &mut self.hosts
    }

    pub(super) fn line(&mut self, fields: Fields<'_>) -> Result<Option<Record>, TraceError> {
        match self.format {
            Format::Spc => self.spc(fields).map(Some),
            Format::Msr => self.msr(fields),
            _ => self.disksim(fields).map(Some),
        }
    }

    /// ASU, LBA in 512-byte blocks, bytes, opcode, seconds, and perhaps more.
    fn spc(&self, mut fields: Fields<'_>) -> Result<Record, TraceError> {
        let asu = fields.part("the ASU")?;
        let device = fields.small(asu, "an ASU")?;
        let lba = fields.part("the block")?;
        let lba = fields.block(lba, "a block")?;
        let size = fields.part("the size")?;
        let bytes = fields.whole(size, "a size in bytes")?;
        let opcode = fields.part("the opcode")?;
        let kind = match opcode.text {
            "R" | "r" => BlockKind::Read,
            "W" | "w" => BlockKind::Write,
            _ => return Err(fields.error(opcode, "an opcode, R or W")),
        };
        let time = fields.part("the time")?;
        let at = fields.time(time, SECOND, "a time in seconds")?;
        let (_, sectors) = fields.extent(lba * SECTOR, bytes, size)?;
        Ok(Record {
            line: fields.number(),
            at,
            device,
            kind,
            lba,
            sectors,
            preflush: false,
            fua: false,
            response: None,
        })
    }

    /// File time, host name, disk, type, offset, bytes, response in 100 ns; a heading is skipped.
    fn msr(&mut self, mut fields: Fields<'_>) -> Result<Option<Record>, TraceError> {
        let time = fields.part("the time stamp")?;
        if !self.begun && time.text.eq_ignore_ascii_case("Timestamp") {
            return Ok(None);
        }
        let at = fields.whole(time, "a time stamp")?.checked_mul(FILE_TIME);
        let at = at.ok_or_else(|| fields.error(time, "a time stamp before the year 2184"))?;
        self.begun = true;
        let host = fields.part("the host name")?;
        let disk = fields.part("the disk number")?;
        let device = self.device(&fields, host, disk)?;
        let kind = fields.part("the type")?;
        let kind = read_or_write(&fields, kind)?;
        let offset = fields.part("the offset")?;
        let offset = fields.whole(offset, "an offset in bytes")?;
        let size = fields.part("the size")?;
        let bytes = fields.whole(size, "a size in bytes")?;
        let (lba, sectors) = fields.extent(offset, bytes, size)?;
        let response = fields.part("the response time")?;
        let response = fields.whole(response, "a response time")?;
        Ok(Some(Record {
            line: fields.number(),
            at: Span(at),
            device,
            kind,
            lba,
            sectors,
            preflush: false,
            fua: false,
            response: Some(Span(response.saturating_mul(FILE_TIME))),
        }))
    }

    /// Disks of two hosts are two devices, also when their numbers are the same.
    fn device(
        &mut self,
        fields: &Fields<'_>,
        host: Field<'_>,
        disk: Field<'_>,
    ) -> Result<u32, TraceError> {
        let number = fields.small(disk, "a disk number")?;
        if !is_minor(number) {
            return Err(fields.error(disk, "a disk number below 2^20"));
        }
        if let Some((wanted, owner)) = &mut self.disk
            && *wanted == number
        {
            let owner = owner.get_or_insert_with(|| host.text.to_owned());
            if owner != host.text {
                let message = format!(
                    "host {} has a disk {number}, too, as host {} above: name the one that is meant with its host, \
                     as '{owner}:{number}'",
                    quoted(host.text),
                    quoted(owner)
                );
                return Err(fields.wrong(host, message));
            }
        }
        let host_number = self.hosts.number(host.text);
        let host_number = host_number.ok_or_else(|| fields.error(host, "one of 4096 hosts"))?;
        Ok(joined(host_number, number))
    }

    /// Milliseconds, device, block, blocks, flags in hexadecimal, and perhaps the response.
    fn disksim(&self, mut fields: Fields<'_>) -> Result<Record, TraceError> {
        let time = fields.word("the time")?;
        let at = fields.time(time, MILLISECOND, "a time in milliseconds")?;
        let device = fields.word("the device")?;
        let device = fields.small(device, "a device number")?;
        let lba = fields.word("the block")?;
        let lba = fields.block(lba, "a block")?;
        let size = fields.word("the size")?;
        let sectors = fields.small(size, "a number of blocks")?;
        fields.extent(lba * SECTOR, u64::from(sectors) * SECTOR, size)?;
        let flags = fields.word("the flags")?;
        let digits = flags.text.trim_start_matches("0x");
        let bits = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'));
        let bits = bits.ok_or_else(|| fields.error(flags, "flags in hexadecimal, 1 for a read"))?;
        let response = match fields.word_if() {
            Some(field) => Some(fields.time(field, MILLISECOND, "a response in milliseconds")?),
            None => None,
        };
        Ok(Record {
            line: fields.number(),
            at,
            device,
            kind: if bits & 1 == 1 {
                BlockKind::Read
            } else {
                BlockKind::Write
            },
            lba,
            sectors,
            preflush: false,
            fua: false,
            response,
        })
    }
}

fn read_or_write(fields: &Fields<'_>, field: Field<'_>) -> Result<BlockKind, TraceError> {
    if field.text.eq_ignore_ascii_case("Read") {
        Ok(BlockKind::Read)
    } else if field.text.eq_ignore_ascii_case("Write") {
        Ok(BlockKind::Write)
    } else {
        Err(fields.error(field, "a type, Read or Write"))
    }
}
