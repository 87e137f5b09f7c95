//! Text of blkparse: arrivals paired with completions.
//!
//! A record is given out when its completion has been read, or when it cannot come any more (the end
//! of the trace, or [`MOST`] younger requests), in the order of the arrivals. What was merged into
//! another request has no completion of its own.
use super::device::joined;
use super::fields::{Field, Fields};
use super::pairing::{Completion, Open, complete};
use super::{LeftOut, Record, TraceError};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use std::collections::VecDeque;

/// Requests that wait for their completion at most.
const MOST: usize = 65_536;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct State {
    open: VecDeque<Open>,
    /// Whether there was a line of a device.
    begun: bool,
    /// Whether the summary has begun, which is the end.
    summary: bool,
    left_out: LeftOut,
}

/// Whether a word is a device as blkparse prints it: `8,0`.
pub(super) fn is_device(word: &str) -> bool {
    word.split_once(',').is_some_and(|(major, minor)| {
        [major, minor]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Whether a line is blkparse's word on its input, which has one for each processor.
pub(super) fn is_input(line: &str) -> bool {
    line.starts_with("Input file ") && line.trim_end().ends_with(" added")
}

/// What the letters of a kind say (`RWBS`): a flush before (`F`), what is done, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data(BlockKind),
    Discard,
    /// Zeroes without data, a command of a program, something of a zone.
    Other,
    /// Those are not the letters of a kind.
    None,
}

fn kind(letters: &str) -> Kind {
    if letters.is_empty() || !letters.bytes().all(|b| b.is_ascii_uppercase()) {
        return Kind::None;
    }
    match letters.trim_start_matches('F').bytes().next() {
        Some(b'R') => Kind::Data(BlockKind::Read),
        Some(b'W') if !letters.contains('Z') => Kind::Data(BlockKind::Write),
        Some(b'D') => Kind::Discard,
        _ => Kind::Other,
    }
}

/// What stands behind the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// First sector and sectors, at least 1.
    Sectors(u64, u32),
    /// `[name]` alone, or a block before it, or 0 sectors.
    Nothing,
    /// Neither: half of a line, or one of another form.
    Unread,
}

fn extent(fields: &mut Fields<'_>) -> Result<Extent, TraceError> {
    let is_name = |field: &Field<'_>| field.text.starts_with('[');
    let Some(place) = fields.word_if() else {
        return Ok(Extent::Unread);
    };
    if is_name(&place) {
        return Ok(Extent::Nothing);
    }
    let lba = fields.block(place, "a block")?;
    match fields.word_if() {
        Some(plus) if plus.text == "+" => {
            let Some(size) = fields.word_if() else {
                return Ok(Extent::Unread);
            };
            let sectors = fields.small(size, "a number of blocks")?;
            if sectors == 0 {
                return Ok(Extent::Nothing);
            }
            let (lba, sectors) = fields.extent(lba * SECTOR, u64::from(sectors) * SECTOR, size)?;
            Ok(Extent::Sectors(lba, sectors))
        }
        Some(name) if is_name(&name) => Ok(Extent::Nothing),
        _ => Ok(Extent::Unread),
    }
}

impl State {
    /// The oldest request when nothing more is to be learned of it.
    pub(super) fn ready(&mut self, ended: bool) -> Option<Record> {
        let over = ended || self.open.len() > MOST;
        let known = self.open.front().is_some_and(|open| open.known || over);
        if known {
            self.open.pop_front().map(|open| open.record())
        } else {
            None
        }
    }

    /// Device, CPU, number, time, process, action, kind, block, `+`, blocks, and the program's name.
    pub(super) fn line(&mut self, mut fields: Fields<'_>) -> Result<(), TraceError> {
        let device = fields.word("the device")?;
        if !is_device(device.text) {
            return self.no_device(fields, device);
        }
        self.begun = true;
        fields.word("the CPU")?;
        fields.word("the number")?;
        let time = fields.word("the time")?;
        fields.word("the process")?;
        let action = fields.word("the action")?;
        if !matches!(action.text, "Q" | "C") {
            return Ok(());
        }
        let at = fields.time(time, SECOND, "a time in seconds")?.0;
        let word = fields.word("the kind")?;
        let extent = extent(&mut fields)?;
        let arrived = action.text == "Q";
        let Some((kind, lba, sectors)) = self.request(&fields, word.text, extent, arrived) else {
            return Ok(());
        };
        let device = device_number(device.text);
        if arrived {
            let record = Record {
                line: fields.number(),
                at: Span(at),
                device,
                kind,
                lba,
                sectors,
                response: None,
            };
            self.open.push_back(Open::new(record));
        } else {
            let ended = Completion {
                at,
                device,
                kind,
                lba,
                sectors,
            };
            complete(&mut self.open, &ended);
        }
        Ok(())
    }

    /// What a request does and where; what is none is counted when it arrives.
    fn request(
        &mut self,
        fields: &Fields<'_>,
        letters: &str,
        extent: Extent,
        arrived: bool,
    ) -> Option<(BlockKind, u64, u32)> {
        let flush = Some((BlockKind::Flush, 0, 0));
        match (kind(letters), extent) {
            (Kind::Data(kind), Extent::Sectors(lba, sectors)) => Some((kind, lba, sectors)),
            (Kind::Discard, _) => {
                self.left_out.discards += u64::from(arrived);
                None
            }
            (Kind::None, _) | (_, Extent::Unread) => {
                self.unread(fields);
                None
            }
            (_, Extent::Nothing) if letters.starts_with('F') => flush,
            // The end of a flush is not marked by all kernels.
            (_, Extent::Nothing) if !arrived => flush,
            (Kind::Data(_), Extent::Nothing) => {
                self.unread(fields);
                None
            }
            (Kind::Other, _) => {
                self.left_out.others += u64::from(arrived);
                None
            }
        }
    }

    /// A line that is no part of the format is left out, and not without a word.
    fn unread(&mut self, fields: &Fields<'_>) {
        self.left_out.unread += 1;
        self.left_out.first.get_or_insert(fields.number());
    }

    /// The input's name before the first line of a device, the summary at the end, or a line that is nothing: what another program wrote
    /// between, or half of a line. A file that has none of blkparse's lines above such a one is not a trace.
    fn no_device(&mut self, mut fields: Fields<'_>, first: Field<'_>) -> Result<(), TraceError> {
        if is_input(fields.line()) {
            return Ok(());
        }
        if !self.begun {
            return Err(fields.error(first, "a device such as 8,0"));
        }
        let of_device = |next: Field<'_>| next.text.starts_with('(');
        let counted = first.text.starts_with("CPU") || first.text == "Total";
        self.summary |= counted && fields.word_if().is_some_and(of_device);
        if !self.summary {
            self.unread(&fields);
        }
        Ok(())
    }

    pub(super) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Gives up what waits for its completion.
    pub(super) fn forget(&mut self) {
        self.open.clear();
    }
}

fn device_number(text: &str) -> u32 {
    let (major, minor) = text.split_once(',').unwrap_or((text, ""));
    let part = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    joined(part(major), part(minor))
}
