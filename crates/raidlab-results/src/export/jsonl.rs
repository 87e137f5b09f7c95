//! JSON lines: a header, then one trial a line.
use super::exact::{Difference, difference};
use super::{ExportError, Stored, Trials};
use crate::record::{SCHEMA_VERSION, Session, TrialRecord};
use crate::store::{
    Bundle, Store, StoreError, TrialFilter, check_bundle, check_possible, check_trial,
};
use raidlab_core::words::count;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};

/// The value of `format` in the header line.
pub const FORMAT: &str = "raidlab-results";

/// How the first line begins, as it is written here.
const BEGINNING: &str = "{\"format\":\"raidlab-results\"";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// Version of raidlab that wrote it.
    raidlab: String,
    /// Trials that follow: a file cut short is noticed.
    trials: u64,
    sessions: Vec<Session>,
    environments: BTreeMap<String, Value>,
}

/// Writes a bundle as JSON lines.
///
/// # Errors
/// When a record must not be exported (then nothing is written) or the output cannot be written.
pub fn write_jsonl(out: impl Write, bundle: &Bundle) -> Result<(), ExportError> {
    write(out, bundle, bundle.trials.as_slice()).map(drop)
}

/// Writes the trials of a store that pass `filter` as JSON lines, with one of them in memory at a
/// time; returns how many.
///
/// # Errors
/// As [`write_jsonl`], and when the store cannot be read.
pub fn export_jsonl(
    out: impl Write,
    store: &mut Store,
    filter: &TrialFilter,
) -> Result<u64, ExportError> {
    store.in_one_view(|store| write(out, &store.references(filter)?, &Stored(store, filter)))
}

/// Writes `trials`, which refer to what is in `references`.
fn write(
    mut out: impl Write,
    references: &Bundle,
    trials: &(impl Trials + ?Sized),
) -> Result<u64, ExportError> {
    check_bundle(references)?;
    let mut known = References::new(&references.sessions, &references.environments);
    let mut count = 0;
    trials.each(&mut |trial| {
        check_trial(trial)?;
        known.check(trial)?;
        count += 1;
        Ok(())
    })?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: SCHEMA_VERSION,
        raidlab: env!("CARGO_PKG_VERSION").to_owned(),
        trials: count,
        sessions: references.sessions.clone(),
        environments: references.environments.clone(),
    };
    write_line(&mut out, &header)?;
    trials.each(&mut |trial| Ok(write_line(&mut out, trial)?))?;
    out.flush()?;
    Ok(count)
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Why a file of JSON lines cannot be imported, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct JsonlError {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The byte in the line, from 1.
    pub column: usize,
    /// What is wrong there.
    #[source]
    pub problem: JsonlProblem,
}

/// What is wrong with a file of JSON lines.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonlProblem {
    /// The first line is no header.
    #[error(
        "not an export of raidlab: the first line must be a header with \"format\":\"{FORMAT}\""
    )]
    NoHeader,
    /// Written by a later raidlab.
    #[error(
        "exported in version {found} of the format, but this raidlab knows versions up to {SCHEMA_VERSION}; use a newer raidlab"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// Not JSON, or not the JSON of a record.
    #[error("{0}")]
    Json(String),
    /// A line that ends within its record.
    #[error("the line ends before what is written on it is complete ({0}); is the file cut short?")]
    Cut(String),
    /// Not text.
    #[error("not UTF-8 text")]
    NotText,
    /// A field that this version does not know; dropping it would falsify the record.
    #[error("unknown field '{0}'; was the file written by a newer raidlab, or changed by hand?")]
    UnknownField(String),
    /// A value that no record can have, such as a histogram of other buckets.
    #[error("the value of '{0}' cannot be kept as it is; was the file changed by hand?")]
    Changed(String),
    /// A record that must not be stored.
    #[error("{0}")]
    Record(#[source] Box<StoreError>),
    /// Lines are missing or too many.
    #[error("the header announces {}, but {found} follow; is the file complete?", count(.announced, "trial"))]
    Count {
        /// What the header says.
        announced: u64,
        /// What there is.
        found: u64,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

/// Reads JSON lines back. Nothing is stored: give the result to
/// [`Store::import`](crate::store::Store::import). `file` is how messages call the input.
///
/// # Errors
/// When anything of it is not as written by [`write_jsonl`]; then nothing of it should be used.
pub fn import_jsonl(file: &str, input: impl BufRead) -> Result<Bundle, JsonlError> {
    let mut lines = Lines {
        file,
        input,
        number: 0,
        text: Vec::new(),
    };
    if !lines.advance()? {
        return Err(lines.fail(1, JsonlProblem::NoHeader));
    }
    let header = lines.header()?;
    let mut bundle = Bundle {
        sessions: header.sessions,
        environments: header.environments,
        trials: Vec::new(),
    };
    check_bundle(&bundle).map_err(|e| lines.fail(1, e.into()))?;
    let mut known = References::new(&bundle.sessions, &bundle.environments);
    let mut trials = Vec::new();
    while lines.advance()? {
        let trial: TrialRecord = lines.parse()?;
        check_trial(&trial)
            .and_then(|_| check_possible(&trial))
            .and_then(|()| known.check(&trial))
            .map_err(|e| lines.fail(1, e.into()))?;
        trials.push(trial);
    }
    let (announced, found) = (header.trials, trials.len() as u64);
    if announced != found {
        return Err(lines.fail(1, JsonlProblem::Count { announced, found }));
    }
    bundle.trials = trials;
    Ok(bundle)
}

impl From<StoreError> for JsonlProblem {
    fn from(error: StoreError) -> Self {
        Self::Record(Box::new(error))
    }
}

/// The lines of a file, blank ones left out.
struct Lines<'a, R> {
    file: &'a str,
    input: R,
    number: usize,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    /// Goes to the next line that is not blank; false at the end.
    fn advance(&mut self) -> Result<bool, JsonlError> {
        loop {
            self.text.clear();
            self.number += 1;
            match self.input.read_until(b'\n', &mut self.text) {
                Ok(0) => return Ok(false),
                Ok(_) if self.text.iter().all(u8::is_ascii_whitespace) => {}
                Ok(_) => return Ok(true),
                Err(e) => return Err(self.fail(1, JsonlProblem::Io(e))),
            }
        }
    }

    fn header(&self) -> Result<Header, JsonlError> {
        // The format first: a header of a later version may look different in all else.
        let value: Value = match self.read_json() {
            // Of a header that is cut, the beginning is there.
            Err(
                cut @ JsonlError {
                    problem: JsonlProblem::Cut(_),
                    ..
                },
            ) if self.text.starts_with(BEGINNING.as_bytes()) => return Err(cut),
            Err(JsonlError {
                problem: JsonlProblem::Json(_) | JsonlProblem::Cut(_),
                ..
            }) => return Err(self.fail(1, JsonlProblem::NoHeader)),
            other => other?,
        };
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(self.fail(1, JsonlProblem::NoHeader));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(found) if found > u64::from(SCHEMA_VERSION) => {
                Err(self.fail(1, JsonlProblem::Newer { found }))
            }
            Some(found) if found == u64::from(SCHEMA_VERSION) => self.parse(),
            _ => Err(self.fail(1, JsonlProblem::NoHeader)),
        }
    }

    /// Reads the line as a record, exactly: nothing of it may be dropped or changed.
    fn parse<T: DeserializeOwned + Serialize>(&self) -> Result<T, JsonlError> {
        let record: T = self.read_json()?;
        let again = serde_json::to_string(&record)
            .and_then(|text| serde_json::from_str::<Value>(&text))
            .map_err(|e| self.fail(1, JsonlProblem::Json(e.to_string())))?;
        match difference(&self.read_json()?, &again) {
            None => Ok(record),
            Some(Difference::Unknown(field)) => {
                Err(self.fail(1, JsonlProblem::UnknownField(field)))
            }
            Some(Difference::Changed(field)) => Err(self.fail(1, JsonlProblem::Changed(field))),
        }
    }

    fn read_json<T: DeserializeOwned>(&self) -> Result<T, JsonlError> {
        let text = std::str::from_utf8(&self.text)
            .map_err(|e| self.fail(e.valid_up_to() + 1, JsonlProblem::NotText))?;
        // Without the line end, so that an error at the end has a column in this line.
        serde_json::from_str(text.trim_end_matches(['\r', '\n'])).map_err(|e| {
            let place = format!(" at line {} column {}", e.line(), e.column());
            let what = e.to_string();
            let what = what.strip_suffix(&place).unwrap_or(&what).to_owned();
            let problem = match e.is_eof() {
                true => JsonlProblem::Cut(what),
                false => JsonlProblem::Json(what),
            };
            self.fail(e.column().max(1), problem)
        })
    }

    fn fail(&self, column: usize, problem: JsonlProblem) -> JsonlError {
        JsonlError {
            file: self.file.to_owned(),
            line: self.number,
            column,
            problem,
        }
    }
}

/// What trials may refer to, and the trials seen so far.
struct References {
    sessions: BTreeSet<String>,
    environments: BTreeSet<String>,
    trials: BTreeSet<String>,
}

impl References {
    fn new(sessions: &[Session], environments: &BTreeMap<String, Value>) -> Self {
        Self {
            sessions: sessions.iter().map(|s| s.id.clone()).collect(),
            environments: environments.keys().cloned().collect(),
            trials: BTreeSet::new(),
        }
    }

    fn check(&mut self, trial: &TrialRecord) -> Result<(), StoreError> {
        let bad = |reason: String| StoreError::BadRecord {
            what: format!("trial {}", trial.id),
            reason,
        };
        if !self.sessions.contains(&trial.session) {
            let reason = format!("its session {} is not in the header", trial.session);
            return Err(bad(reason));
        }
        if let Some(digest) = &trial.environment
            && !self.environments.contains(digest)
        {
            let reason = format!("its environment {digest} is not in the header");
            return Err(bad(reason));
        }
        if !self.trials.insert(trial.id.clone()) {
            return Err(bad("given twice".to_owned()));
        }
        Ok(())
    }
}
