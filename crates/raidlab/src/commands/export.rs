//! `raidlab export`.
use super::files;
use crate::args::{ExportArgs, ExportFormat};
use crate::bench::{open_store, store_failure};
use crate::exit::{Failure, MISSING, Outcome};
use crate::place;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::export::{ExportError, export_csv, export_jsonl};
use raidlab_results::store::TrialFilter;

pub(crate) fn run(args: &ExportArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let mut store = open_store(store)?;
    let sessions = super::show::sessions(&store, &args.sessions)?;
    let sessions = sessions.into_iter().map(|session| session.id).collect();
    let filter = TrialFilter {
        sessions,
        ..TrialFilter::default()
    };
    let to = args
        .output
        .as_deref()
        .filter(|path| !files::is_stdout(path));
    let mut out = match to {
        None => files::Stream::to_stdout_later()?,
        Some(path) => files::Stream::to_file(path)?,
    };
    let written = match args.format {
        ExportFormat::Jsonl => export_jsonl(&mut out, &mut store, &filter),
        ExportFormat::Csv => export_csv(&mut out, &mut store, &filter),
    };
    let trials = written.map_err(|error| match error {
        ExportError::Record(error) => store_failure(error),
        ExportError::Io(error) => out.failed(&error),
        error => Failure::from_error(MISSING, &error),
    })?;
    out.finish()?;
    if let Some(path) = to {
        talk::note(&format!(
            "wrote {} to {}",
            count(trials, "trial"),
            path.display()
        ));
    }
    Ok(Outcome::Done)
}
