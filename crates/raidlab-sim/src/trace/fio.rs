//! fio's log of issued I/O, versions 2 and 3.
//!
//! Version 2, which fio before 3.31 writes, has no times: requests are due at once, but for `wait` lines, whose
//! microseconds count from the wait before. Version 3 begins each line with the microseconds since the job began.
use super::device::DeviceName;
use super::fields::{Field, Fields};
use super::{LeftOut, Record, TraceError};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;

const MICROSECOND: u64 = 1000;

const SECOND: &str = "a second log begins here, and its times begin again (fio adds to the file that write_iolog names): \
     split the file and replay each by itself; jobs that run together need a file each";

#[derive(Default)]
pub(super) struct State {
    version: Option<u32>,
    names: Vec<String>,
    /// The file whose requests alone are wanted, and its number once it has come.
    only: Option<(DeviceName, Option<u32>)>,
    now: u64,
    discards: u64,
    /// Requests to write out what a cache of files holds, which ask nothing of a disk by themselves.
    others: u64,
    /// There was a `wait`.
    waits: bool,
}

impl State {
    pub(super) fn line(&mut self, mut fields: Fields<'_>) -> Result<Option<Record>, TraceError> {
        let first = fields.word("the file name")?;
        let Some(version) = self.version else {
            return self.heading(fields, first).map(|()| None);
        };
        if is_heading(&fields, first) {
            return Err(fields.wrong(first, SECOND.to_owned()));
        }
        let name = if version == 3 {
            self.now = fields.time(first, MICROSECOND, "a time in microseconds")?.0;
            fields.word("the file name")?
        } else {
            first
        };
        let action = fields.word("the action")?;
        let kind = match action.text {
            "add" | "open" | "close" | "unlink" => return Ok(None),
            "trim" => {
                self.discards += u64::from(self.is_wanted(name.text));
                return Ok(None);
            }
            "read" => BlockKind::Read,
            "write" => BlockKind::Write,
            "sync_file_range" => {
                self.others += u64::from(self.is_wanted(name.text));
                return Ok(None);
            }
            "sync" | "datasync" | "syncfs" => BlockKind::Flush,
            "wait" if version == 2 => {
                let time = fields.word("the microseconds")?;
                let span = fields.time(time, MICROSECOND, "a time in microseconds")?;
                self.now = self.now.saturating_add(span.0);
                self.waits = true;
                return Ok(None);
            }
            _ => return Err(fields.error(action, "an action of fio's log")),
        };
        let (mut lba, mut sectors) = (0, 0);
        if kind != BlockKind::Flush {
            let offset = fields.word("the offset")?;
            let offset = fields.whole(offset, "an offset in bytes")?;
            let size = fields.word("the length")?;
            let bytes = fields.whole(size, "a length in bytes")?;
            (lba, sectors) = fields.extent(offset, bytes, size)?;
        }
        Ok(Some(Record {
            line: fields.number(),
            at: Span(self.now),
            device: self.device(name.text),
            kind,
            lba,
            sectors,
            preflush: false,
            fua: false,
            response: None,
        }))
    }

    pub(super) fn left_out(&self) -> LeftOut {
        LeftOut {
            discards: self.discards,
            others: self.others,
            ..LeftOut::default()
        }
    }

    /// Whether it is known when requests came.
    pub(super) fn has_times(&self) -> bool {
        self.version != Some(2) || self.waits
    }

    fn heading(&mut self, mut fields: Fields<'_>, first: Field<'_>) -> Result<(), TraceError> {
        let wrong = |fields: &Fields<'_>, field| {
            fields.error(
                field,
                "the heading 'fio version 2 iolog' or 'fio version 3 iolog'",
            )
        };
        if first.text != "fio" {
            return Err(wrong(&fields, first));
        }
        fields.word("the heading")?;
        let version = fields.word("the version")?;
        self.version = match version.text {
            "2" => Some(2),
            "3" => Some(3),
            _ => return Err(wrong(&fields, version)),
        };
        Ok(())
    }

    fn device(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            let number = self.names.len() - 1;
            if let Some((only, found)) = &mut self.only
                && only.is_file(name)
            {
                found.get_or_insert(number as u32);
            }
            number
        }) as u32
    }

    /// Wants the requests of one file alone.
    pub(super) fn only(&mut self, name: &DeviceName) {
        self.only = Some((name.clone(), None));
    }

    fn is_wanted(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|(only, _)| only.is_file(name))
    }

    pub(super) fn wants(&self, number: u32) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|(_, found)| *found == Some(number))
    }

    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("?", String::as_str)
    }
}

/// Whether a line below the first is a heading, too; `fields` stand behind its first word. No file that is called `fio` has such an action.
fn is_heading(fields: &Fields<'_>, first: Field<'_>) -> bool {
    let mut fields = fields.clone();
    first.text == "fio" && fields.word_if().is_some_and(|next| next.text == "version")
}
