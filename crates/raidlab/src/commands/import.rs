//! `raidlab import`.
use super::{command_line, print_json, timestamp};
use crate::args::ImportArgs;
use crate::bench::store_failure;
use crate::exit::{BAD_REQUEST, Failure, MISSING, Outcome};
use crate::place;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::export::{FORMAT, import_jsonl};
use raidlab_results::id;
use raidlab_results::import::{Format, MAX_INPUT, Source, import};
use raidlab_results::store::{Bundle, Store};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

pub(crate) fn run(args: &ImportArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let format = args
        .format
        .as_deref()
        .map(str::parse::<Format>)
        .transpose()
        .map_err(Failure::bad_request)?;
    // All files are read before any is stored: an error in one imports nothing of it, and the user
    // sees it before half of the list is in.
    let bundles = args
        .files
        .iter()
        .map(|path| bundle(path, format, args).map(|bundle| (path, bundle)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut imported = Vec::new();
    let mut store = if args.dry_run {
        None
    } else {
        Some(Store::open(&store.to_write()?).map_err(store_failure)?)
    };
    for (path, InFile { bundle, remarks }) in &bundles {
        let name = name_of(path);
        for remark in remarks {
            talk::note(&format!("{name}: {remark}"));
        }
        let (added, skipped) = match &mut store {
            None => (bundle.trials.len(), 0),
            Some(store) => {
                let came = store.import(bundle).map_err(store_failure)?;
                (came.trials, came.skipped)
            }
        };
        let verb = if args.dry_run {
            "would import"
        } else {
            "imported"
        };
        let before = if skipped > 0 {
            format!(", {skipped} were there before")
        } else {
            String::new()
        };
        // What reports and comparisons name them by.
        let ids: Vec<&str> = bundle.sessions.iter().map(|s| id::short(&s.id)).collect();
        let session = match ids[..] {
            _ if args.dry_run => String::new(),
            [only] => format!(", session {only}"),
            [first, .., last] => format!(", {} sessions from {first} to {last}", ids.len()),
            [] => String::new(),
        };
        talk::note(&format!(
            "{name}: {verb} {}{before}{session}",
            count(added, "trial")
        ));
        imported.push(json!({
            "file": name,
            "trials": added,
            "skipped": skipped,
            "sessions": bundle.sessions.iter().map(|session| &session.id).collect::<Vec<_>>(),
        }));
    }
    if args.json {
        print_json(&imported)?;
    }
    Ok(Outcome::Done)
}

/// What is in a file.
struct InFile {
    bundle: Bundle,
    /// What the reader of a tool's output has to say. Notes of an export's sessions were told when those were run.
    remarks: Vec<String>,
}

fn bundle(path: &Path, format: Option<Format>, args: &ImportArgs) -> Result<InFile, Failure> {
    let name = name_of(path);
    let mut reader = open(path, &name)?;
    let first = first_line(&mut reader).map_err(|error| cannot_read(&name, &error))?;
    if format.is_none() && is_export(&first) {
        if args.label.is_some() {
            return Err(Failure::bad_request(format!(
                "{name} is an export of raidlab, whose cells have their labels: leave --label out"
            )));
        }
        // Read as it comes: an export may be larger than any tool's output.
        let bundle = import_jsonl(&name, first.as_slice().chain(reader))
            .map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
        return Ok(InFile {
            bundle,
            remarks: Vec::new(),
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
    let source = Source {
        format,
        label: args.label.as_deref(),
        tiotest_random_ops: args.tiotest_random_ops,
        ..Source::new(&name)
    };
    let imported =
        import(&bytes, &source).map_err(|error| Failure::from_error(BAD_REQUEST, &error))?;
    let session = imported.session_record(&timestamp(), &command_line(), env!("CARGO_PKG_VERSION"));
    Ok(InFile {
        remarks: session.notes.clone(),
        bundle: Bundle {
            sessions: vec![session],
            trials: imported.trials,
            ..Bundle::default()
        },
    })
}

fn name_of(path: &Path) -> String {
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
