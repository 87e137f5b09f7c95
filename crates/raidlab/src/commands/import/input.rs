//! The files: which of them are read, and what is in each.
use super::super::{command_line, timestamp};
use crate::args::ImportArgs;
use crate::exit::{BAD_REQUEST, Failure, MISSING};
use crate::talk;
use raidlab_results::export::{FORMAT, import_jsonl};
use raidlab_results::import::{Imported, MAX_INPUT, Source, Wanted, import};
use raidlab_results::store::Bundle;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The files without those that are given again, under whatever name: overlapping patterns are no
/// repeats.
pub(super) fn once(files: &[PathBuf]) -> Vec<&PathBuf> {
    let mut seen: BTreeMap<(u64, u64), &PathBuf> = BTreeMap::new();
    let mut once = Vec::with_capacity(files.len());
    for path in files {
        // What cannot be looked at is told when it is read; what is no regular file gives something
        // else each time.
        let found = (path != Path::new("-")).then(|| std::fs::metadata(path));
        let file = found
            .and_then(Result::ok)
            .filter(std::fs::Metadata::is_file);
        let Some(file) = file else {
            once.push(path);
            continue;
        };
        match seen.entry((file.dev(), file.ino())) {
            Entry::Vacant(place) => {
                place.insert(path);
                once.push(path);
            }
            Entry::Occupied(first) => talk::note(&format!(
                "{}: the same file as {}, read once",
                name_of(path),
                name_of(first.get())
            )),
        }
    }
    once
}

/// What is in a file.
pub(super) struct InFile {
    pub(super) path: PathBuf,
    pub(super) bundle: Bundle,
    /// What the reader of a tool's output has to say. Notes of an export's sessions were told when those were run.
    pub(super) remarks: Vec<String>,
    /// A tool's output, which can be read again as a repeat of an equal one.
    pub(super) output: Option<Output>,
}

/// A tool's output.
pub(super) struct Output {
    bytes: Vec<u8>,
    wanted: Option<Wanted>,
    /// [`Imported::contents`].
    pub(super) contents: Vec<String>,
    /// [`Imported::is_one_run`].
    pub(super) is_one_run: bool,
    /// [`Source::repeat`].
    pub(super) repeat: u32,
}

impl InFile {
    pub(super) fn read(
        path: &Path,
        wanted: Option<Wanted>,
        args: &ImportArgs,
    ) -> Result<Self, Failure> {
        let name = name_of(path);
        let mut reader = open(path, &name)?;
        let first = first_line(&mut reader).map_err(|error| cannot_read(&name, &error))?;
        if wanted.is_none() && is_export(&first) {
            if args.label.is_some() {
                return Err(Failure::bad_request(format!(
                    "{name} is an export of raidlab, whose cells have their labels: leave --label out"
                )));
            }
            // Read as it comes: an export may be larger than any tool's output.
            let bundle = import_jsonl(&name, first.as_slice().chain(reader))
                .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
            return Ok(Self {
                path: path.to_owned(),
                bundle,
                remarks: Vec::new(),
                output: None,
            });
        }
        let mut bytes = Vec::new();
        // One byte more than allowed tells a file that is too long from one that just fits.
        first
            .as_slice()
            .chain(reader)
            .take(MAX_INPUT as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| cannot_read(&name, &error))?;
        let output = Output {
            bytes,
            wanted,
            contents: Vec::new(),
            is_one_run: false,
            repeat: 0,
        };
        output.taken(path, args, 0)
    }

    /// The same output as the repeat of that many equal ones.
    pub(super) fn repeated(self, args: &ImportArgs, repeat: u32) -> Result<Self, Failure> {
        match self.output {
            Some(output) => output.taken(&self.path, args, repeat),
            None => Ok(self),
        }
    }
}

impl Output {
    fn taken(self, path: &Path, args: &ImportArgs, repeat: u32) -> Result<InFile, Failure> {
        let name = name_of(path);
        let mut source = Source {
            label: args.label.as_deref(),
            tiotest_random_ops: args.tiotest_random_ops,
            repeat,
            ..Source::new(&name)
        };
        if let Some(wanted) = self.wanted {
            source = source.wanted(wanted);
        }
        let imported = import(&self.bytes, &source)
            .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
        let session =
            imported.session_record(&timestamp(), &command_line(), env!("CARGO_PKG_VERSION"));
        let Imported {
            trials,
            contents,
            is_one_run,
            ..
        } = imported;
        Ok(InFile {
            path: path.to_owned(),
            remarks: session.notes.clone(),
            bundle: Bundle {
                sessions: vec![session],
                trials,
                ..Bundle::default()
            },
            output: Some(Self {
                contents,
                is_one_run,
                repeat,
                ..self
            }),
        })
    }
}

pub(in crate::commands) fn name_of(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

fn open(path: &Path, name: &str) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = std::fs::File::open(path).map_err(|error| cannot_read(name, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// The first line with its end, or as much of it as any input may have.
fn first_line(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader
        .take(MAX_INPUT as u64 + 1)
        .read_until(b'\n', &mut line)?;
    Ok(line)
}

fn cannot_read(name: &str, error: &std::io::Error) -> Failure {
    let code = if error.kind() == std::io::ErrorKind::PermissionDenied {
        MISSING
    } else {
        BAD_REQUEST
    };
    Failure::new(code, format!("cannot read {name}: {error}"))
}

/// Whether this is raidlab's own export, whose first line names its format.
fn is_export(bytes: &[u8]) -> bool {
    let first = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // One whose first line is cut is one all the same, and is told so.
    let begins = format!("{{\"format\":\"{FORMAT}\"");
    if first.starts_with(begins.as_bytes()) {
        return true;
    }
    serde_json::from_slice::<serde_json::Value>(first)
        .is_ok_and(|value| value.get("format").and_then(|format| format.as_str()) == Some(FORMAT))
}
