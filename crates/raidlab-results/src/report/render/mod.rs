//! A document as text, HTML, images and JSON.
mod chart;
mod command;
mod html;
mod images;
mod markdown;
mod terminal;
mod text_chart;

pub use html::render_html;
pub use images::{ImageError, RenderedImage, render_images};
pub use markdown::render_markdown;
pub use terminal::{TerminalOptions, render_terminal, spelled};

use super::document::{Cell, Document};
use raidlab_core::words::steers;

/// A document as JSON (see [`Document`]), indented, with a final newline.
///
/// # Errors
/// Does not fail for documents made here: they hold no map with keys that are not text.
pub fn to_json(document: &Document) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document).map(|text| text + "\n")
}

/// Columns of command lines on a page.
const COMMAND_WIDTH: usize = 88;

/// Command lines on a page, long ones broken as a shell has them.
fn commands(lines: &[String]) -> String {
    let broken = lines
        .iter()
        .map(|line| command::broken(line, COMMAND_WIDTH));
    broken.collect::<Vec<_>>().join("\n")
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// References to footnotes: `¹ ³`, or `[1][3]` where only ASCII can be shown.
fn marks(cell: &Cell, ascii: bool) -> String {
    let one = |mark: &u32| {
        if ascii {
            return format!("[{mark}]");
        }
        let digits = mark.to_string();
        digits
            .bytes()
            .map(|b| SUPERSCRIPTS[usize::from(b - b'0')])
            .collect()
    };
    let all: Vec<String> = cell.marks.iter().map(one).collect();
    all.join(if ascii { "" } else { " " })
}

/// The blank between words that stay on one line.
const BOUND: &str = "\u{a0}";

/// A figure and its per cent stay on one line.
fn bound(text: &str) -> String {
    text.replace(" %", &format!("{BOUND}%"))
}

/// A page of several lines in which nothing steers.
fn shown(page: &str) -> String {
    page.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Labels are paths and other tools' words: what would steer a terminal is shown as a sign instead.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect()
}
