//! Text of blkparse: arrivals paired with completions.
//!
//! A record is given out when its completion has been read, or when it cannot come any more (the end
//! of the trace, or [`MOST`] younger requests), in the order of the arrivals. What was merged into
//! another request has no completion of its own.
use super::device::joined;
use super::fields::{Field, Fields};
use super::pairing::{Completion, Waiting};
use super::{LeftOut, Record, TraceError};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use std::collections::BTreeMap;

/// Requests that wait for their completion at most.
const MOST: usize = 65_536;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct State {
    open: Waiting,
    /// Whether there was a line of a device.
    begun: bool,
    /// Whether the summary has begun, which is the end.
    summary: bool,
    /// Latest number and time of each processor of each device, which in one trace never both go back.
    latest: BTreeMap<(u32, u64), (u64, u64)>,
    /// The device whose requests alone are wanted: of others nothing is counted.
    only: Option<u32>,
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

/// Whether the letters of a write have an `F` behind the `W`: it must be durable when it ends.
fn is_fua(letters: &str) -> bool {
    letters.trim_start_matches('F').contains('F')
}

/// What stands behind the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// First sector and sectors, at least 1.
    Sectors(u64, u32),
    /// `[name]` alone, or a block before it, or 0 sectors.
    Nothing,
    /// A command that a program has sent past the block layer (SG_IO): its bytes in parentheses, or nothing that an end of
    /// a request has.
    Command,
    /// None of these: half of a line, or one of another form.
    Unread,
}

/// What a line is of: an arrival (`Q`) or an end (`C`), and its kind.
#[derive(Clone, Copy, Debug)]
struct Event<'a> {
    arrived: bool,
    letters: &'a str,
}

fn extent(fields: &mut Fields<'_>, event: Event<'_>) -> Result<Extent, TraceError> {
    let is_name = |field: &Field<'_>| field.text.starts_with('[');
    let in_parentheses = |field: &Field<'_>| field.text.starts_with('(');
    let Some(place) = fields.word_if() else {
        return Ok(Extent::Unread);
    };
    if is_name(&place) {
        // All other ends have at least a block.
        let command = !event.arrived && !event.letters.starts_with('F');
        return Ok(if command {
            Extent::Command
        } else {
            Extent::Nothing
        });
    }
    if in_parentheses(&place) {
        return Ok(Extent::Command);
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
        // Bytes and command of what came; of what ended, the time it took (blkparse -t).
        Some(open) if in_parentheses(&open) && event.arrived => Ok(Extent::Command),
        Some(open) if in_parentheses(&open) => Ok(Extent::Nothing),
        _ => Ok(Extent::Unread),
    }
}

/// Whether the line of an end has an error in its brackets: of any sign, for the kernel counts down and blkparse's field is
/// unsigned.
fn has_failed(line: &str) -> bool {
    let inside = line
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['));
    let number = inside.and_then(|(_, error)| error.trim().parse::<i64>().ok());
    number.is_some_and(|error| error != 0)
}

impl State {
    /// Counts what is left out of this device alone.
    pub(super) fn only(&mut self, device: u32) {
        self.only = Some(device);
    }

    fn wants(&self, device: u32) -> bool {
        self.only.is_none_or(|only| only == device)
    }

    /// The oldest request when nothing more is to be learned of it.
    pub(super) fn ready(&mut self, ended: bool) -> Option<Record> {
        let over = ended || self.open.len() > MOST;
        self.open.pop(over)
    }

    /// Device, CPU, number, time, process, action, kind, block, `+`, blocks, and the program's name.
    pub(super) fn line(&mut self, mut fields: Fields<'_>) -> Result<(), TraceError> {
        let first = fields.word("the device")?;
        if !is_device(first.text) {
            return self.no_device(fields, first);
        }
        if self.summary {
            return Err(fields.wrong(first, second_trace("below the summary of the one above")));
        }
        self.begun = true;
        let cpu = fields.word("the CPU")?;
        let number = fields.word("the number")?;
        let time = fields.word("the time")?;
        fields.word("the process")?;
        let action = fields.word("the action")?;
        if !matches!(action.text, "Q" | "C") {
            return Ok(());
        }
        let at = fields.time(time, SECOND, "a time in seconds")?.0;
        let device = device_number(first.text);
        if self.goes_back(device, [cpu, number], at) {
            let message = second_trace("where number and time of this processor go back");
            return Err(fields.wrong(first, message));
        }
        let event = Event {
            arrived: action.text == "Q",
            letters: fields.word("the kind")?.text,
        };
        let extent = extent(&mut fields, event)?;
        let Some((kind, lba, sectors)) = self.request(&fields, device, event, extent) else {
            return Ok(());
        };
        if event.arrived {
            self.open.push(Record {
                line: fields.number(),
                at: Span(at),
                device,
                kind,
                lba,
                sectors,
                preflush: kind == BlockKind::Write && event.letters.starts_with('F'),
                fua: kind == BlockKind::Write && is_fua(event.letters),
                response: None,
            });
        } else {
            let failed = self.open.complete(&Completion {
                at,
                device,
                kind,
                lba,
                sectors,
                failed: has_failed(fields.line()),
            });
            self.left_out.failed += if self.wants(device) { failed } else { 0 };
        }
        Ok(())
    }

    /// Whether a line cannot be of the trace that those above are of: each processor writes its events down one after the
    /// other, numbered, and blkparse sorts those of several by time alone.
    fn goes_back(&mut self, device: u32, [cpu, number]: [Field<'_>; 2], at: u64) -> bool {
        let (Ok(cpu), Ok(number)) = (cpu.text.parse(), number.text.parse()) else {
            return false;
        };
        let latest = self.latest.insert((device, cpu), (number, at));
        latest.is_some_and(|latest| number < latest.0 && at < latest.1)
    }

    /// What a request does and where; what is none is counted once, as it arrives.
    fn request(
        &mut self,
        fields: &Fields<'_>,
        device: u32,
        event: Event<'_>,
        extent: Extent,
    ) -> Option<(BlockKind, u64, u32)> {
        let flush = Some((BlockKind::Flush, 0, 0));
        let wanted = self.wants(device);
        match (kind(event.letters), extent) {
            (Kind::None, _) | (_, Extent::Unread) => {
                self.unread(fields);
                None
            }
            // Only what goes through the block layer is seen to arrive (Q), and this is seen to end.
            (_, Extent::Command) => {
                self.left_out.others += u64::from(wanted && !event.arrived);
                None
            }
            (Kind::Data(kind), Extent::Sectors(lba, sectors)) => Some((kind, lba, sectors)),
            (Kind::Discard, _) => {
                self.left_out.discards += u64::from(wanted && event.arrived);
                None
            }
            (_, Extent::Nothing) if event.letters.starts_with('F') => flush,
            // A read that failed at once.
            (Kind::Data(BlockKind::Read), Extent::Nothing) if !event.arrived => None,
            // The end of a flush is not marked by all kernels.
            (_, Extent::Nothing) if !event.arrived => flush,
            (Kind::Data(_), Extent::Nothing) => {
                self.unread(fields);
                None
            }
            (Kind::Other, _) => {
                self.left_out.others += u64::from(wanted && event.arrived);
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

fn second_trace(which: &str) -> String {
    format!(
        "a second trace begins here, {which}, and its times begin again: split the file and replay each by itself"
    )
}

fn device_number(text: &str) -> u32 {
    let (major, minor) = text.split_once(',').unwrap_or((text, ""));
    let part = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    joined(part(major), part(minor))
}
