//! Recorded requests: reading them, replaying them, and how far the replay is from the record.
//!
//! A [`Reader`] takes lines from anywhere and gives records one by one, in constant memory (but for
//! the requests in flight in a blkparse text, and the file names of an fio log).
mod blkparse;
mod demerit;
mod device;
mod fields;
mod fio;
mod order;
mod pairing;
mod replay;
mod rows;

pub use demerit::Demerit;
pub use device::{DeviceName, NoDevice};
pub use replay::{Misfit, Replay, ReplayError, ReplayOptions, Replayed, grain, replay};

use device::{Hosts, Wanted};
use order::{Order, TooLate};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use std::collections::BTreeMap;
use std::fmt;

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Line of the trace, from 1.
    pub line: usize,
    /// When it came, from the first request of the trace on.
    pub at: Span,
    /// Number of the device, whose name is [`Reader::device`]'s: as in the trace, of two numbers or host and disk
    /// in one, or in the order of appearance where devices have names.
    pub device: u32,
    /// Read, write or flush.
    pub kind: BlockKind,
    /// First sector of 512 bytes.
    pub lba: u64,
    /// Sectors; 0 for a flush. Requests of odd bytes are widened to whole sectors.
    pub sectors: u32,
    /// A write before which all that was written is to be on the medium (`REQ_PREFLUSH`), as the commit of a journal wants it.
    pub preflush: bool,
    /// A write that is itself to be on the medium when it is told to have ended (`REQ_FUA`).
    pub fua: bool,
    /// How long it took when it was recorded, if the trace says.
    pub response: Option<Span>,
}

/// The forms of traces that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's log of issued I/O, version 2 (no times but `wait`, see [`Reader::has_times`]) or 3 (times in microseconds).
    Fio,
    /// Text of blkparse in its default form: arrivals (`Q`) paired with completions (`C`).
    Blkparse,
    /// Storage Performance Council: ASU, LBA, bytes, opcode, seconds, and perhaps more.
    Spc,
    /// MSR Cambridge: file time, host, disk, type, offset, bytes, response.
    Msr,
    /// DiskSim ASCII: milliseconds, device, block, blocks, flags (1 = read); a sixth column, when
    /// there is one, is the measured response in milliseconds.
    DiskSim,
}

impl Format {
    /// All of them with the names that users write.
    pub const ALL: [(&'static str, Self); 5] = [
        ("fio", Self::Fio),
        ("blkparse", Self::Blkparse),
        ("spc", Self::Spc),
        ("msr", Self::Msr),
        ("disksim", Self::DiskSim),
    ];

    /// The format that a trace's first line that is not empty has; `None` when it is like none.
    #[must_use]
    pub fn detect(line: &str) -> Option<Self> {
        let columns: Vec<_> = line.split(',').map(str::trim).collect();
        // The fourth column of both SPC and MSR is what is done; SPC has room for columns of one's own behind.
        let spc = |columns: &[&str]| matches!(columns[3], "R" | "r" | "W" | "w");
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |word: &&str| word.parse::<f64>().is_ok();
        if line.starts_with("fio version ") {
            Some(Self::Fio)
        } else if columns.len() == 7 && !spc(&columns) {
            Some(Self::Msr)
        } else if columns.len() >= 5 {
            Some(Self::Spc)
        } else if blkparse::is_input(line)
            || words.first().is_some_and(|word| blkparse::is_device(word))
        {
            Some(Self::Blkparse)
        } else if (5..=6).contains(&words.len()) && words[..4].iter().all(number) {
            Some(Self::DiskSim)
        } else {
            None
        }
    }
}

/// What is wrong with a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is there, what should be, and what to do.
    pub message: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TraceError {}

/// What of a trace is no request that can be replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines that are nothing that the format has, between those that are.
    pub unread: u64,
    /// The first of them, from 1.
    pub first: Option<usize>,
    /// Discards, which models do not know.
    pub discards: u64,
    /// Requests of yet other kinds, which models do not know either: zeroes without data, commands of programs, zones.
    pub others: u64,
    /// Requests that failed when they were recorded: they are given, without the time that they took.
    pub failed: u64,
}

/// State of the format that is read.
enum State {
    Fio(fio::State),
    Blkparse(blkparse::State),
    Rows(rows::State),
}

/// Gives the records of a trace in the order of their times. After an error it gives nothing more.
pub struct Reader<L> {
    lines: L,
    format: Format,
    wanted: Option<Wanted>,
    /// Records of devices that are not wanted.
    others: BTreeMap<u32, u64>,
    number: usize,
    state: State,
    /// There are no more lines.
    ended: bool,
    /// There are no more records in them either.
    all_read: bool,
    order: Order,
    /// What ended the trace, told after the records before it.
    error: Option<TraceError>,
}

impl<L, S> Reader<L>
where
    L: Iterator<Item = S>,
    S: AsRef<str>,
{
    /// Reads `lines` (without their ends) as `format`.
    pub fn new(format: Format, lines: L) -> Self {
        let state = match format {
            Format::Fio => State::Fio(fio::State::default()),
            Format::Blkparse => State::Blkparse(blkparse::State::default()),
            Format::Spc | Format::Msr | Format::DiskSim => State::Rows(rows::State::new(format)),
        };
        Self {
            lines,
            format,
            wanted: None,
            others: BTreeMap::new(),
            number: 0,
            state,
            ended: false,
            all_read: false,
            order: Order::default(),
            error: None,
        }
    }

    /// Gives the records of one device alone. To be said before any is asked for.
    ///
    /// # Errors
    /// When no device of such a trace can have that name.
    pub fn only(&mut self, name: &DeviceName) -> Result<(), NoDevice> {
        let wanted = match &mut self.state {
            State::Rows(state) => {
                let wanted = Wanted::of(name, self.format, state.hosts_mut())?;
                if let Some(disk) = wanted.of_one_host {
                    state.of_one_host(disk);
                }
                wanted
            }
            State::Fio(state) => {
                state.only(name);
                return Ok(());
            }
            State::Blkparse(state) => {
                let wanted = Wanted::of(name, self.format, &mut Hosts::default())?;
                state.only(wanted.number());
                wanted
            }
        };
        self.wanted = Some(wanted);
        Ok(())
    }

    fn wants(&self, device: u32) -> bool {
        match &self.state {
            State::Fio(state) => state.wants(device),
            State::Blkparse(_) | State::Rows(_) => {
                self.wanted.is_none_or(|wanted| wanted.matches(device))
            }
        }
    }

    /// Numbers of other devices than the one that was asked for, and records of each, so far.
    #[must_use]
    pub const fn others(&self) -> &BTreeMap<u32, u64> {
        &self.others
    }

    /// A device as the trace calls it: `8,16` in blkparse's text, `usr:0` (host and disk) in a trace of MSR, the file in
    /// fio's log, else its number.
    #[must_use]
    pub fn device(&self, number: u32) -> String {
        match &self.state {
            State::Fio(state) => state.name(number).to_owned(),
            State::Rows(state) => device::name(self.format, state.hosts(), number),
            State::Blkparse(_) => device::name(self.format, &Hosts::default(), number),
        }
    }

    /// Records so far that stood after a younger one, and were put into their place.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.order.late()
    }

    /// Whether the trace says when its requests came; reads on until the next one is known. fio's version 2 has
    /// no times but in lines of `wait`: where none has stood so far, the order of the requests is all that is known.
    pub fn has_times(&mut self) -> bool {
        self.fill();
        match &self.state {
            State::Fio(state) => state.has_times(),
            State::Blkparse(_) | State::Rows(_) => true,
        }
    }

    /// What was left out so far.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        match &self.state {
            State::Fio(state) => state.left_out(),
            State::Blkparse(state) => state.left_out(),
            State::Rows(_) => LeftOut::default(),
        }
    }

    /// Nothing more is given after it.
    fn too_late(&mut self, late: TooLate) -> TraceError {
        self.order = Order::default();
        self.error = None;
        self.all_read = true;
        TraceError {
            line: late.line,
            column: 1,
            message:
                "this request came before others that are far above it: sort the trace by time, or split the file where a \
                 second trace begins"
                    .to_owned(),
        }
    }

    /// Reads on until it is known which record is the next.
    fn fill(&mut self) {
        while !self.all_read && !self.order.is_full() {
            match self.read() {
                Some(Ok(record)) => self.order.take(record),
                Some(Err(error)) => {
                    self.error = Some(error);
                    self.all_read = true;
                }
                None => self.all_read = true,
            }
        }
    }

    /// The next record as it is written, with the time that the trace gives.
    fn read(&mut self) -> Option<Result<Record, TraceError>> {
        loop {
            // Requests that were waiting for their completion come first.
            if let State::Blkparse(state) = &mut self.state
                && let Some(record) = state.ready(self.ended)
            {
                return Some(Ok(record));
            }
            if self.ended {
                return None;
            }
            let Some(line) = self.lines.next() else {
                self.ended = true;
                continue;
            };
            self.number += 1;
            let line = line.as_ref().trim_end();
            if line.trim_start().is_empty() {
                continue;
            }
            let fields = fields::Fields::new(line, self.number);
            let read = match &mut self.state {
                State::Fio(state) => state.line(fields),
                State::Blkparse(state) => state.line(fields).map(|()| None),
                State::Rows(state) => state.line(fields),
            };
            match read {
                Ok(Some(record)) => return Some(Ok(record)),
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    if let State::Blkparse(state) = &mut self.state {
                        state.forget();
                    }
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<L, S> Iterator for Reader<L>
where
    L: Iterator<Item = S>,
    S: AsRef<str>,
{
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.fill();
            match self.order.give(self.all_read) {
                // Times count from the first request of the trace, whosesoever it is.
                Some(Ok(record)) if !self.wants(record.device) => {
                    *self.others.entry(record.device).or_default() += 1;
                }
                Some(given) => return Some(given.map_err(|late| self.too_late(late))),
                None => return self.error.take().map(Err),
            }
        }
    }
}

#[cfg(test)]
mod tests;
