//! Text of blkparse: arrivals paired with completions.
//!
//! A record is given out when its completion has been read, or when it cannot come any more (the end
//! of the trace, or [`MOST`] younger requests), in the order of the arrivals. What was merged into
//! another request has no completion of its own.
use super::fields::{Field, Fields};
use super::{LeftOut, Record, TraceError};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use std::collections::VecDeque;

/// Requests that wait for their completion at most.
const MOST: usize = 65_536;
const SECOND: u64 = 1_000_000_000;

/// A request that arrived.
struct Open {
    came: u64,
    record: Record,
    /// Sectors whose completion was not read yet; the kernel splits requests that are too large for a device.
    left: u32,
    known: bool,
}

#[derive(Default)]
pub(super) struct State {
    open: VecDeque<Open>,
    /// Whether there was a request.
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

impl State {
    /// The oldest request when nothing more is to be learned of it.
    pub(super) fn ready(&mut self, ended: bool) -> Option<Record> {
        let over = ended || self.open.len() > MOST;
        let known = self.open.front().is_some_and(|open| open.known || over);
        if known {
            self.open.pop_front().map(|open| open.record)
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
        fields.word("the CPU")?;
        fields.word("the number")?;
        let time = fields.word("the time")?;
        fields.word("the process")?;
        let action = fields.word("the action")?;
        if !matches!(action.text, "Q" | "C") {
            return Ok(());
        }
        let at = fields.time(time, SECOND, "a time in seconds")?.0;
        let kind = fields.word("the kind")?;
        let kind = match kind.text {
            text if text.contains('D') => {
                self.left_out.discards += u64::from(action.text == "Q");
                return Ok(());
            }
            text if text.contains('R') => BlockKind::Read,
            text if text.contains('W') => BlockKind::Write,
            text if text.contains('F') => BlockKind::Flush,
            _ => return Ok(()),
        };
        let place = fields
            .word_if()
            .filter(|field| field.text != "[" && !field.text.starts_with('['));
        let (lba, sectors) = match place {
            None => (0, 0),
            Some(place) => {
                let lba = fields.whole(place, "a block")?;
                match fields.word_if() {
                    Some(plus) if plus.text == "+" => {
                        let size = fields.word("the size")?;
                        (lba, fields.small(size, "a number of blocks")?)
                    }
                    _ => (lba, 0),
                }
            }
        };
        // A flush without data is printed as a write of nothing.
        let kind = if sectors == 0 { BlockKind::Flush } else { kind };
        let number = device_number(device.text);
        if action.text == "Q" {
            self.begun = true;
            let record = Record {
                at: Span(at),
                device: number,
                kind,
                lba,
                sectors,
                response: None,
            };
            self.open.push_back(Open {
                came: at,
                record,
                left: sectors,
                known: false,
            });
        } else {
            self.complete(at, number, kind, lba, sectors);
        }
        Ok(())
    }

    /// The summary at the end, or a line that is nothing: what another program wrote between, or half of a line. A file without any
    /// request is not a trace.
    fn no_device(&mut self, mut fields: Fields<'_>, first: Field<'_>) -> Result<(), TraceError> {
        if !self.begun {
            return Err(fields.error(first, "a device such as 8,0"));
        }
        let of_device = |next: Field<'_>| next.text.starts_with('(');
        let counted = first.text.starts_with("CPU") || first.text == "Total";
        self.summary |= counted && fields.word_if().is_some_and(of_device);
        if !self.summary {
            self.left_out.unread += 1;
            self.left_out.first.get_or_insert(fields.number());
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

    /// A completion covers the requests that were merged into it, or a part of one that was split: that one has ended with the
    /// last of its parts.
    fn complete(&mut self, at: u64, device: u32, kind: BlockKind, lba: u64, sectors: u32) {
        let end = lba.saturating_add(u64::from(sectors));
        for open in &mut self.open {
            let record = &mut open.record;
            if open.known || record.device != device || record.kind != kind {
                continue;
            }
            let last = record.lba.saturating_add(u64::from(record.sectors));
            let covered = last.min(end).saturating_sub(record.lba.max(lba));
            if covered == 0 && kind != BlockKind::Flush {
                continue;
            }
            open.left = open
                .left
                .saturating_sub(u32::try_from(covered).unwrap_or(u32::MAX));
            if open.left > 0 {
                continue;
            }
            record.response = Some(Span(at.saturating_sub(open.came)));
            open.known = true;
            if kind == BlockKind::Flush {
                return;
            }
        }
    }
}

/// Major and minor number in one: 12 bits and 20, as the kernel has them.
fn device_number(text: &str) -> u32 {
    let (major, minor) = text.split_once(',').unwrap_or((text, ""));
    let part = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    (part(major) & 0xfff) << 20 | (part(minor) & 0xf_ffff)
}
