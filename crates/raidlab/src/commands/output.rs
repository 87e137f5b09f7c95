//! Where a report goes: the terminal, Markdown, JSON, an HTML file, images.
use super::{files, print};
use crate::args::Output;
use crate::exit::{Failure, MISSING};
use crate::talk;
use raidlab_results::report::{
    Document, RenderedImage, TerminalOptions, render_html, render_images, render_markdown,
    render_terminal, to_json,
};
use std::io::IsTerminal;
use std::path::Path;

/// Writes the document wherever it was asked for.
pub(crate) fn emit(document: &Document, output: &Output) -> Result<(), Failure> {
    let text = if output.json {
        to_json(document).map_err(|error| Failure::new(MISSING, error.to_string()))?
    } else {
        as_text(document, output)
    };
    print(&text)?;
    write_files(document, output)
}

/// Prints a document on standard output alone.
pub(crate) fn print_document(document: &Document) -> Result<(), Failure> {
    print(&terminal(document))
}

/// Whether the files that were asked for can be written: known before any work is done for them.
pub(crate) fn check(output: &Output) -> Result<(), Failure> {
    if let Some(path) = &output.html {
        files::check(path)?;
    }
    if let Some(path) = &output.images {
        files::check_directory(path)?;
    }
    Ok(())
}

/// Whether all files of a run can be written: those of its report, and its trials.
pub(crate) fn check_run(output: &Output, out: Option<&Path>) -> Result<(), Failure> {
    check(output)?;
    let Some(out) = out else {
        return Ok(());
    };
    files::check(out)?;
    match &output.html {
        Some(html) if files::same(html, out) => Err(Failure::bad_request(format!(
            "--html and --out name the same file, {}: one would replace the other",
            out.display()
        ))
        .remedy("give each a file of its own")),
        _ => Ok(()),
    }
}

/// Writes the files that were asked for, and nothing to standard output.
pub(crate) fn write_files(document: &Document, output: &Output) -> Result<(), Failure> {
    if let Some(path) = &output.html {
        let html = render_html(document).map_err(|error| Failure::from_error(MISSING, &error))?;
        write(path, html.as_bytes())?;
    }
    if let Some(directory) = &output.images {
        files::directory(directory)?;
        let images =
            render_images(document).map_err(|error| Failure::from_error(MISSING, &error))?;
        if images.is_empty() {
            talk::note("there is no chart in this report: no image was written");
        }
        for RenderedImage { name, svg, png } in images {
            write(&directory.join(format!("{name}.svg")), svg.as_bytes())?;
            write(&directory.join(format!("{name}.png")), &png)?;
        }
    }
    Ok(())
}

fn as_text(document: &Document, output: &Output) -> String {
    if output.markdown {
        let images = output
            .images
            .as_ref()
            .map(|directory| directory.to_string_lossy().into_owned());
        return render_markdown(document, images.as_deref());
    }
    terminal(document)
}

fn terminal(document: &Document) -> String {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && talk::colours();
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_none_or(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"));
    let options = TerminalOptions {
        ascii: terminal && !utf8,
        ..TerminalOptions::new(width(terminal), colour)
    };
    render_terminal(document, options)
}

/// Columns of the terminal; wide enough for most tables when there is none.
fn width(terminal: bool) -> u16 {
    let given = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let of_terminal = terminal.then(|| console::Term::stdout().size().1);
    given
        .or(of_terminal)
        .filter(|columns| *columns > 0)
        .unwrap_or(120)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    files::write(path, content)?;
    talk::note(&format!("wrote {}", path.display()));
    Ok(())
}
