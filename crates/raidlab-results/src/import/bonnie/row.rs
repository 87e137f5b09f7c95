//! One run of bonnie++, wherever it was read, and what becomes of it.
use crate::import::draft::{Draft, bytes_phase, figure};
use crate::import::error::Fault;
use crate::import::scan::{integer, parse_part};
use crate::import::text::{Line, quoted};
use crate::record::{PhaseRecord, Unit};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::{GIB, KIB, MIB};
use winnow::combinator::{alt, eof, opt, preceded};
use winnow::prelude::*;

/// The phases in the order of every bonnie++ row.
pub(super) const PHASES: [&str; 12] = [
    "putc",
    "block-write",
    "rewrite",
    "getc",
    "block-read",
    "seeks",
    "seq-create",
    "seq-stat",
    "seq-delete",
    "ran-create",
    "ran-stat",
    "ran-delete",
];

/// The phases up to this one count bytes, the others operations.
pub(super) const FIRST_OF_OPS: usize = 5;
/// Phases before this one are about the big file, the others about small files.
pub(super) const FIRST_OF_FILES: usize = 6;

/// The chunk when the size names none.
const DEFAULT_CHUNK: u64 = 8 * KIB;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Csv,
    Table,
}

/// One phase's cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Rate {
    /// Not run.
    #[default]
    Skipped,
    /// `+++++`.
    TooShort,
    /// Printed wrongly by the tool.
    Garbage,
    /// Bytes or operations a second.
    Value(f64),
}

/// Largest share by which a rate of 2.00's table, two digits in MiB or GiB, is off.
const TABLE_ROUNDING: f64 = 0.06;

impl Rate {
    /// Whether a table's cell can be the rounded form of a CSV line's.
    fn agrees(self, csv: Self) -> bool {
        match (self, csv) {
            (Self::Value(a), Self::Value(b)) => (a - b).abs() <= TABLE_ROUNDING * b,
            (Self::Garbage, Self::Value(_)) => true,
            (a, b) => a == b,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) rate: Rate,
    pub(super) cpu_percent: Option<f64>,
    /// Seconds.
    pub(super) latency_max: Option<f64>,
}

/// The big file's size and what else stands beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) chunk: Option<u64>,
    pub(super) concurrency: Option<u64>,
    pub(super) seeks: Option<u64>,
    pub(super) seekers: Option<u64>,
}

/// The small files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// In units of 1024, as bonnie++'s `-n` and raidlab's own profile have it.
    pub(super) thousands: u64,
    /// Largest size in bytes, or `link` or `symlink`.
    pub(super) largest: Option<String>,
    pub(super) smallest: Option<u64>,
    pub(super) directories: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) origin: Origin,
    pub(super) line: usize,
    /// The version that decides the format; a 27-field CSV line has none and is taken as 1.03.
    pub(super) version: String,
    /// The version as printed.
    pub(super) printed: Option<String>,
    pub(super) name: String,
    pub(super) size: Option<Size>,
    pub(super) files: Option<Files>,
    pub(super) seed: Option<u64>,
    pub(super) phases: [Measured; 12],
    pub(super) identity: Option<String>,
    /// A line of its own above the row, such as the name of a controller.
    pub(super) heading: Option<String>,
}

impl Row {
    pub(super) fn new(origin: Origin, line: usize, version: &str) -> Self {
        Self {
            origin,
            line,
            version: version.to_owned(),
            printed: Some(version.to_owned()),
            name: String::new(),
            size: None,
            files: None,
            seed: None,
            phases: [Measured::default(); 12],
            identity: None,
            heading: None,
        }
    }

    /// Versions from 1.98 on print no chunk in the CSV, even when it is not the default.
    fn hides_chunk(&self) -> bool {
        self.origin == Origin::Csv && !(self.version.starts_with("1.0") || is_1_9x(&self.version))
    }

    /// Whether this is the table of the run that `csv` is the line of.
    pub(super) fn is_table_of(&self, csv: &Self) -> bool {
        let bytes = |row: &Self| row.size.map(|size| size.bytes);
        let version = match &csv.printed {
            Some(printed) => *printed == self.version,
            None => self.version.starts_with("1.0"),
        };
        let figures = self.phases.iter().zip(&csv.phases);
        // The table cuts a name that it has no room for.
        self.origin == Origin::Table
            && version
            && csv.name.starts_with(self.name.as_str())
            && bytes(self) == bytes(csv)
            && figures
                .into_iter()
                .all(|(table, csv)| table.rate.agrees(csv.rate))
    }

    /// Takes from the table what the CSV line does not tell.
    pub(super) fn complete_from(&mut self, table: &Self) {
        if let (Some(size), Some(told)) = (&mut self.size, table.size) {
            // Every table shows a chunk that is not the default.
            size.chunk = size.chunk.or(told.chunk).or(Some(DEFAULT_CHUNK));
        }
        self.heading.clone_from(&table.heading);
        self.version.clone_from(&table.version);
        self.printed.clone_from(&table.printed);
    }

    pub(super) fn into_draft(self) -> Result<Draft, Fault> {
        if self.phases.iter().all(|p| p.rate == Rate::Skipped) {
            return Err(
                Fault::at(self.line, 1, "a row in which every phase was skipped")
                    .expected("at least one figure"),
            );
        }
        let mut draft = Draft::new("bonnie", "bonnie++", &self.name);
        draft.version.clone_from(&self.printed);
        draft.seed = self.seed;
        draft.identity.clone_from(&self.identity);
        draft.is_one_run = self.identity.is_some() && self.seed.is_some();
        if let Some(heading) = &self.heading {
            draft.factor("heading", heading);
        }
        if let Some(size) = self.size {
            draft.factor("file-size", size.bytes);
            let default = (!self.hides_chunk()).then_some(DEFAULT_CHUNK);
            if let Some(chunk) = size.chunk.or(default) {
                draft.factor("block-size", chunk);
            }
            let rest = [
                ("concurrency", size.concurrency),
                ("seeks", size.seeks),
                ("seekers", size.seekers),
            ];
            for (name, value) in rest.into_iter().filter_map(|(n, v)| Some((n, v?))) {
                draft.setting(name, value);
            }
        }
        if let Some(files) = &self.files {
            draft.factor("files", files.thousands);
            if let Some(largest) = &files.largest {
                draft.factor("file-size-max", largest);
            }
            if let Some(smallest) = files.smallest {
                draft.factor("file-size-min", smallest);
            }
            if let Some(directories) = files.directories {
                draft.factor("directories", directories);
            }
        }
        draft.phases = (0..PHASES.len()).filter_map(|i| self.phase(i)).collect();
        Ok(draft)
    }

    fn phase(&self, i: usize) -> Option<PhaseRecord> {
        let measured = self.phases[i];
        let mut phase = bytes_phase(PHASES[i], 0.0);
        if i >= FIRST_OF_OPS {
            phase.unit = Unit::PerSecond;
        }
        phase.rate = None;
        match measured.rate {
            Rate::Skipped => return None,
            Rate::TooShort => phase.flags.push(Flag::new(
                FlagKind::TooShort,
                "bonnie++ printed +++++: the phase took less than 0.5 s",
            )),
            Rate::Garbage => phase.flags.push(Flag::new(
                FlagKind::ToolDefect,
                "bonnie++ 1.98 to 2.00 prints no usable create, stat and delete rates in its table; \
                 its CSV line has them",
            )),
            Rate::Value(rate) => phase.rate = Some(rate),
        }
        phase.cpu_percent = measured.cpu_percent;
        if let Some(seconds) = measured.latency_max {
            figure(&mut phase, "latency-max", seconds, Unit::Seconds);
        }
        // Rewrite reads and writes the file but counts it once, as its rate does. How much of the
        // file the per-character phases of 1.9x and 2.00 cover is not printed.
        let block = matches!(PHASES[i], "block-write" | "rewrite" | "block-read");
        phase.bytes = self.size.filter(|_| block).map(|size| size.bytes);
        phase.ops = match PHASES[i] {
            "seeks" => self.size.and_then(|size| size.seeks),
            _ if i >= FIRST_OF_FILES => {
                let files = self.files.as_ref();
                files.and_then(|files| files.thousands.checked_mul(1024))
            }
            _ => None,
        };
        Some(phase)
    }
}

/// Versions whose CSV has 48 fields.
pub(super) fn is_1_9x(version: &str) -> bool {
    ["1.93", "1.94", "1.95", "1.96", "1.97"]
        .iter()
        .any(|known| version.starts_with(known))
}

/// `1G`, `512M:64k`, `1G:512`, and 2.00's `2G:::65536:5`.
pub(super) fn size(input: &mut &str) -> winnow::Result<Size> {
    let bytes = (integer, alt(("G".value(GIB), "M".value(MIB))))
        .verify_map(|(n, unit)| n.checked_mul(unit))
        .parse_next(input)?;
    let chunk = (integer, alt(("k".value(KIB), "".value(1))))
        .verify_map(|(n, unit): (u64, u64)| n.checked_mul(unit));
    let chunk = opt(preceded(':', opt(chunk))).parse_next(input)?.flatten();
    let mut more = || {
        opt(preceded(':', opt(integer)))
            .parse_next(input)
            .map(Option::flatten)
    };
    Ok(Size {
        bytes,
        chunk,
        concurrency: more()?,
        seeks: more()?,
        seekers: more()?,
    })
}

/// `16`, `64:1024:128/4`, `16:link`, in units of 1024 files.
pub(super) fn files(input: &mut &str) -> winnow::Result<Files> {
    let mut files = Files {
        thousands: integer.parse_next(input)?,
        ..Files::default()
    };
    if opt(':').parse_next(input)?.is_some() {
        let largest = alt(("symlink", "link", winnow::ascii::digit1)).parse_next(input)?;
        files.largest = Some(largest.to_owned());
        files.smallest = opt(preceded(':', integer)).parse_next(input)?;
    }
    files.directories = opt(preceded('/', integer)).parse_next(input)?;
    Ok(files)
}

/// A rate as CSV and 1.0x and 1.9x tables print it: KiB/s, or operations a second.
pub(super) fn plain_rate(line: Line<'_>, cell: &str, i: usize) -> Result<Rate, Fault> {
    match cell {
        "" => Ok(Rate::Skipped),
        "+++++" => Ok(Rate::TooShort),
        _ => {
            let scale = if i < FIRST_OF_OPS { KIB as f64 } else { 1.0 };
            crate::import::scan::number(line, cell, PHASES[i]).map(|n| Rate::Value(n * scale))
        }
    }
}

pub(super) fn cpu(line: Line<'_>, cell: &str) -> Result<Option<f64>, Fault> {
    match cell {
        "" | "+++" => Ok(None),
        _ => crate::import::scan::number(line, cell, "%CP").map(Some),
    }
}

/// `13273us`, `46ms`, `2s`: seconds.
pub(super) fn latency(line: Line<'_>, cell: &str) -> Result<Option<f64>, Fault> {
    if cell.is_empty() {
        return Ok(None);
    }
    let unit = alt(("us".value(1e6), "ms".value(1e3), "s".value(1.0)));
    let parser = (integer, unit, eof).map(|(n, unit, _): (u64, f64, &str)| n as f64 / unit);
    parse_part(line, cell, "a latency such as 446us, 12ms or 3s", parser).map(Some)
}

/// The sum check of a rate and its %CP: both or none.
pub(super) fn paired(line: Line<'_>, rate: (&str, Rate), cpu: &str) -> Result<(), Fault> {
    let fault = |what| {
        line.fault_at(
            cpu,
            format!("the %CP {} beside the rate {}", quoted(cpu), quoted(rate.0)),
        )
        .expected(what)
    };
    match rate.1 {
        Rate::Skipped if !cpu.is_empty() => Err(fault("no %CP for a phase that was skipped")),
        Rate::TooShort if cpu != "+++" => Err(fault("+++ beside +++++")),
        Rate::Value(_) | Rate::Garbage if cpu.is_empty() => Err(fault("a %CP")),
        _ => Ok(()),
    }
}
