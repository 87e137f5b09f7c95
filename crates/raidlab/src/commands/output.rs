//! Where a report goes: the terminal, Markdown, JSON, an HTML file, images.
use super::{files, print};
use crate::args::Output;
use crate::exit::{Failure, MISSING};
use crate::screen;
use crate::talk;
use raidlab_results::report::{
    Document, RenderedImage, TerminalOptions, render_html, render_images, render_markdown,
    render_terminal, to_json,
};
use std::io::IsTerminal;
use std::path::Path;

/// Writes the document wherever it was asked for.
pub(crate) fn emit(document: &Document, output: &Output) -> Result<(), Failure> {
    check_stdout(output, output.json)?;
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
    check_stdout(output, output.json)
}

/// Whether standard output has room for what was asked for, beside other `data`.
pub(crate) fn check_stdout(output: &Output, data: bool) -> Result<(), Failure> {
    if output.images.as_deref().is_some_and(files::is_stdout) {
        let failure = Failure::bad_request("--images - is no directory: charts are files");
        return Err(failure.remedy("name a directory, such as ./charts"));
    }
    let html = output.html.as_deref();
    html.map_or(Ok(()), |path| give_stdout("--html", path, data))
}

/// Keeps standard output for a file that an option names so; what is to be read goes to standard error then.
pub(crate) fn give_stdout(option: &str, path: &Path, data: bool) -> Result<(), Failure> {
    if !files::is_stdout(path) {
        return Ok(());
    }
    if data {
        return Err(Failure::bad_request(format!(
            "{option} - and the JSON or CSV that was asked for both go to standard output"
        ))
        .remedy("name a file for one of them, or leave one out"));
    }
    talk::give_stdout();
    Ok(())
}

/// Whether all files of a run can be written: those of its report, and its trials.
pub(crate) fn check_run(output: &Output, out: Option<&Path>) -> Result<(), Failure> {
    check(output)?;
    let Some(out) = out else {
        return Ok(());
    };
    files::check(out)?;
    give_stdout("--out", out, output.json)?;
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
        let images =
            render_images(document).map_err(|error| Failure::from_error(MISSING, &error))?;
        if images.is_empty() {
            talk::note("there is no chart in this report: no image was written");
        } else {
            files::directory(directory)?;
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
    // Wide enough for most tables where there is neither a terminal nor a wish.
    let width = screen::columns().map_or(120, |columns| u16::try_from(columns).unwrap_or(u16::MAX));
    let options = TerminalOptions {
        ascii: !screen::utf8(),
        ..TerminalOptions::new(width, terminal && talk::colours())
    };
    screen::shown(&render_terminal(document, options), terminal)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    files::write(path, content)?;
    wrote(path);
    Ok(())
}

/// Tells of a file that was written, but for standard output.
pub(crate) fn wrote(path: &Path) {
    if !files::is_stdout(path) {
        talk::note(&format!("wrote {}", path.display()));
    }
}
