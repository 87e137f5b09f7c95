//! Importers: what other tools printed becomes trial records.
//!
//! An importer takes a file whole or not at all. It knows the defects of the tools (bonnie++'s
//! `+++++`, tiotest's inflated random rates, fio's sum row of all clients …) and does not pass them
//! on: such a figure is left out or flagged, and a [`Remark`] says so.
//!
//! A run that a file tells several times is one trial: reports of fio on the way, of which the last has
//! all, and output that was saved twice, which is equal in its time stamp or seed, or in so many figures
//! that no repeat is. Fewer figures can come out the same, and are of repeats.
//!
//! Rates are kept in bytes or operations a second, whatever the tool's own unit: bonnie++'s K is
//! 1024 bytes, tiotest's, hdparm's, elbencho's and vdbench's MB are 2^20 bytes, HDBENCH clone's kB
//! is 1000 bytes, and dd's rate is computed from its bytes and seconds.
mod bonnie;
mod dd;
mod draft;
mod elbencho;
mod error;
mod fio;
mod format;
mod hdbench;
mod hdparm;
mod iozone;
mod scan;
mod sysbench;
mod text;
mod tiobench;
mod tiotest;
mod vdbench;

pub use error::{ImportError, Remark};
pub use format::{Format, Wanted, detect};
pub use text::MAX_INPUT;

use crate::record::{Session, TrialRecord};
use draft::Harvest;
use error::Fault;
use text::Text;

/// Most runs taken from one file, so that its records fit the memory.
const MOST_TRIALS: usize = 100_000;

/// Where a text came from and what is known about it beforehand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// What messages and the provenance call the file.
    pub file: &'a str,
    /// The format, when it should not be guessed.
    pub format: Option<Format>,
    /// The tool ([`Format::tool`]), when the format should be guessed among its own.
    pub tool: Option<&'static str>,
    /// What the cells are called, instead of the machine, device or path that the output names or
    /// else the file: trials of one cell count as repeats of each other, also across files.
    pub label: Option<&'a str>,
    /// Random operations of a tiotest run, all threads together. tiotest 0.3.5 to 0.4.2 credits a
    /// random phase with the whole file instead of the operations done; with their number the rate
    /// is computed, without it such a rate is voided. (tiobench.pl's `--random` is this total;
    /// tiotest's own `-r` is a number per thread.)
    pub tiotest_random_ops: Option<u64>,
    /// How many equal texts of the same label this one is a repeat of: their trials are others. A run
    /// that has a time stamp or seed in its text is the same run however often it is told.
    pub repeat: u32,
}

impl<'a> Source<'a> {
    /// A file whose format is to be guessed.
    #[must_use]
    pub const fn new(file: &'a str) -> Self {
        Self {
            file,
            format: None,
            tool: None,
            label: None,
            tiotest_random_ops: None,
            repeat: 0,
        }
    }

    /// The same file, taken as what a user says it is.
    #[must_use]
    pub const fn wanted(mut self, wanted: Wanted) -> Self {
        match wanted {
            Wanted::Format(format) => self.format = Some(format),
            Wanted::Tool(tool) => self.tool = Some(tool),
        }
        self
    }

    /// The same file, taken as `format`.
    #[must_use]
    pub const fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }
}

/// What came of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The format it was read as.
    pub format: Format,
    /// Id of the session that the trials belong to, made from the file's content and labels.
    pub session: String,
    /// A title for that session.
    pub title: String,
    /// The trials in the order of the file.
    pub trials: Vec<TrialRecord>,
    /// What to know about them.
    pub remarks: Vec<Remark>,
    /// Of each trial the id that is made of its content alone, which trials had in stores before labels
    /// were a part of what identifies them.
    pub contents: Vec<String>,
    /// Whether each run's text has a time stamp or seed in it: an equal one is of the same run. Where it
    /// has none, it may be a repeat with equal figures ([`Source::repeat`]).
    pub is_one_run: bool,
}

impl Imported {
    /// The session record. `created` is the time of the import (RFC 3339 in UTC), `command` the
    /// command line that asked for it and `raidlab` the version that did it. The remarks become the
    /// session's notes.
    #[must_use]
    pub fn session_record(&self, created: &str, command: &str, raidlab: &str) -> Session {
        Session {
            id: self.session.clone(),
            title: self.title.clone(),
            created: created.to_owned(),
            command: command.to_owned(),
            raidlab: raidlab.to_owned(),
            plan: None,
            planned: None,
            finished: true,
            notes: self.remarks.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Reads a tool's output.
///
/// The same bytes give the same ids under the same labels. What the label is of which the output says
/// nothing, a name of the file's, is a part of the ids as well as one that is given.
///
/// # Errors
/// When the text is of no known format, or is damaged or cut short anywhere: then nothing of it is
/// imported, and the error says where, what was expected and what to do.
pub fn import(bytes: &[u8], source: &Source<'_>) -> Result<Imported, ImportError> {
    read(bytes, source).map_err(|fault| fault.in_file(source.file))
}

fn read(bytes: &[u8], source: &Source<'_>) -> Result<Imported, Fault> {
    let text = Text::decode(bytes)?.unquoted();
    let format = match (source.format, source.tool) {
        (Some(format), _) => format,
        (None, None) => detect(text.as_str()).ok_or_else(|| unknown(&text))?,
        (None, Some(tool)) => format::detect_among(text.as_str(), |f| f.tool() == tool)
            .or_else(|| Format::ALL.into_iter().find(|f| f.tool() == tool))
            .ok_or_else(|| unknown(&text))?,
    };
    let forced = source.format.is_some() || source.tool.is_some();
    let looks = detect(text.as_str()).filter(|looks| forced && *looks != format);
    let text = format::without_margin(text, format);
    let margins = text.margins();
    let read = read_as(text, format, bytes, source);
    read.map_err(|fault| match looks {
        Some(looks) => fault.remedy(format!(
            "It looks like the output of {} ({looks}): name that format, or none",
            looks.tool()
        )),
        None => fault,
    })
    .map_err(|fault| Text::placed(&margins, fault))
}

fn read_as(
    mut text: Text<'_>,
    format: Format,
    bytes: &[u8],
    source: &Source<'_>,
) -> Result<Imported, Fault> {
    let decoding = std::mem::take(&mut text.remarks);
    let mut harvest = match format {
        Format::Bonnie => bonnie::read(&text),
        Format::Tiotest => tiotest::read_table(&text, source),
        Format::TiotestTerse => tiotest::read_terse(&text, source),
        Format::TiobenchLines => tiobench::read_lines(&text),
        Format::TiobenchSections => tiobench::read_sections(&text, source),
        Format::Hdparm => hdparm::read(&text),
        Format::Dd => dd::read(&text),
        Format::FioJson => fio::read_json(&text),
        Format::FioTerse => fio::read_terse(&text),
        Format::FioNormal => fio::refuse_normal(&text),
        Format::Iozone => iozone::read(&text),
        Format::HdbenchClone => hdbench::read(&text),
        Format::Elbencho => elbencho::read(&text),
        Format::Vdbench => vdbench::read(&text),
        Format::Sysbench => sysbench::read(&text),
    }?;
    if harvest.drafts.is_empty() {
        return Err(nothing(&text, format));
    }
    if harvest.drafts.len() > MOST_TRIALS {
        return Err(text
            .end()
            .expected(format!(
                "at most {MOST_TRIALS} runs, not {}",
                harvest.drafts.len()
            ))
            .remedy("Split the file"));
    }
    check(&harvest, &text)?;
    if source.format.is_none() && source.tool.is_none() {
        for (line, other) in format::others(&text, format) {
            let told = format!(
                "output of {} is left out: import it from a file of its own, or with --format {other}",
                other.tool()
            );
            harvest.remark_first(line, told);
        }
    }
    let mut imported = draft::finish(harvest, format, bytes, source);
    imported.remarks.splice(0..0, decoding);
    Ok(imported)
}

fn unknown(text: &Text<'_>) -> Fault {
    let found = match text.lines().find(|line| !line.text.trim().is_empty()) {
        Some(line) => line.fault(0, line.quoted()),
        None => Fault::at(1, 1, "an empty file"),
    };
    let tools = "bonnie++, tiotest, tiobench, hdparm, dd, fio, iozone, HDBENCH clone, elbencho, \
                 vdbench, sysbench, or a whole export of raidlab";
    found
        .expected(format!("the output of {tools}"))
        .remedy("Give the format by name if the beginning of the output is missing")
}

fn nothing(text: &Text<'_>, format: Format) -> Fault {
    text.end()
        .expected(format!("a result of {}", format.tool()))
}

/// Figures that no disk and no clock can give are damage, and would break every sum they enter.
fn check(harvest: &Harvest, text: &Text<'_>) -> Result<(), Fault> {
    let sound = |value: f64| (0.0..=scan::LARGEST).contains(&value);
    for phase in harvest.drafts.iter().flat_map(|draft| &draft.phases) {
        let figures = phase.figures.iter().map(|f| (f.name.as_str(), f.value));
        let own = [("rate", phase.rate), ("%CP", phase.cpu_percent)];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        if let Some((name, value)) = own.chain(figures).find(|(_, value)| !sound(*value)) {
            return Err(text.end().expected(format!(
                "a possible {name} in phase {}, not {value}",
                phase.phase
            )));
        }
    }
    Ok(())
}

/// The only result of an importer that found nothing wrong.
type Reading = Result<Harvest, Fault>;
