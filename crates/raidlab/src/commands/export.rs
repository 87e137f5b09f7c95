//! `raidlab export`.
use super::files;
use crate::args::{ExportArgs, ExportFormat};
use crate::bench::{open_store, store_failure};
use crate::exit::{Failure, MISSING, Outcome};
use crate::place;
use crate::talk;
use raidlab_results::export::{ExportError, write_csv, write_jsonl};
use raidlab_results::store::{Bundle, TrialFilter};

pub(crate) fn run(args: &ExportArgs, store: &place::Store) -> Result<Outcome, Failure> {
    let mut store = open_store(store)?;
    let sessions = args
        .sessions
        .iter()
        .map(|wanted| {
            store
                .find_session(wanted)
                .map(|session| session.id)
                .map_err(store_failure)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let filter = TrialFilter {
        sessions,
        ..TrialFilter::default()
    };
    let bundle = store.bundle(&filter).map_err(store_failure)?;
    let mut text = Vec::new();
    write(&mut text, &bundle, args.format).map_err(|error| Failure::from_error(MISSING, &error))?;
    match &args.output {
        None => super::print(&String::from_utf8_lossy(&text))?,
        Some(path) => {
            files::write(path, &text)?;
            talk::note(&format!(
                "wrote {} trials to {}",
                bundle.trials.len(),
                path.display()
            ));
        }
    }
    Ok(Outcome::Done)
}

fn write(out: &mut Vec<u8>, bundle: &Bundle, format: ExportFormat) -> Result<(), ExportError> {
    match format {
        ExportFormat::Jsonl => write_jsonl(out, bundle),
        ExportFormat::Csv => write_csv(out, bundle),
    }
}
