//! Where the values of a table's row are.
//!
//! A row is 19 columns of name and size, then per phase a rate and its %CP, five and three columns
//! wide or wider, each after a space; a skipped phase is blank. A row in which nothing was skipped
//! is split at white space, any other is read by width from where the name and size end, because a
//! name that is too long shifts all that follows.
use super::row::size;
use crate::import::error::Fault;
use crate::import::scan::split_chars;
use crate::import::text::{Line, quoted};
use winnow::Parser as _;

/// Columns of name and size.
pub(super) const HEAD: usize = 19;
/// Longest name and size looked for in a row whose columns have shifted.
const LONGEST_HEAD: usize = 80;
/// Cells of a row, two a phase.
pub(super) const CELLS: usize = 12;

/// Name and size of a row, split before the size.
pub(super) fn split_head(head: &str) -> Option<(&str, &str)> {
    let head = head.trim_end();
    // The size is the longest tail that is one: digits, a unit, and what follows colons.
    let unit = head.rfind(['G', 'M'])?;
    let digits = head[..unit]
        .bytes()
        .rev()
        .take_while(u8::is_ascii_digit)
        .count();
    let (name, size_text) = head.split_at(unit - digits);
    (digits > 0 && size.parse(size_text).is_ok()).then_some((name, size_text))
}

/// The head of a row and its twelve cells (empty: skipped).
pub(super) fn split_io(line: Line<'_>) -> Result<(&str, Vec<&str>), Fault> {
    let words: Vec<&str> = line.words().collect();
    if let Some(first) = words.len().checked_sub(CELLS).and_then(|n| words.get(n)) {
        let at = first.as_ptr() as usize - line.text.as_ptr() as usize;
        let head = &line.text[..at];
        if split_head(head).is_some() {
            return Ok((head, words[words.len() - CELLS..].to_vec()));
        }
    }
    let mut widths: Vec<usize> = (2..=LONGEST_HEAD).collect();
    widths.sort_by_key(|width| width.abs_diff(HEAD));
    let mut nearest = None;
    for (head, rest) in widths.into_iter().filter_map(|w| split_chars(line.text, w)) {
        if head.ends_with(' ') || split_head(head).is_none() {
            continue;
        }
        match by_width(rest) {
            Ok(cells) => return Ok((head, cells)),
            Err(bad) => {
                nearest.get_or_insert(bad);
            }
        }
    }
    let (at, found) = match nearest {
        Some("") => (&line.text[line.text.len()..], "the row ends".to_owned()),
        Some(bad) => (bad, quoted(bad)),
        None => (line.text, line.quoted()),
    };
    Err(line
        .fault_at(at, found)
        .expected("name, size, and a rate and %CP for each phase in columns 5 and 3 wide"))
}

/// Cells by width; the place of the trouble otherwise.
fn by_width(mut rest: &str) -> Result<Vec<&str>, &str> {
    let mut cells = Vec::with_capacity(CELLS);
    while cells.len() < CELLS {
        let width = if cells.len() % 2 == 0 { 6 } else { 4 };
        if rest.trim().is_empty() {
            cells.push("");
            rest = split_chars(rest, width).map_or("", |(_, after)| after);
            continue;
        }
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        if blanks >= width {
            cells.push("");
            rest = &rest[width..];
            continue;
        }
        let token = rest[blanks..].split(' ').next().unwrap_or("");
        // Right-aligned in its width, or wider and after one space.
        let fits = blanks + token.len() == width || (blanks == 1 && token.len() >= width);
        if !fits {
            return Err(&rest[blanks..]);
        }
        cells.push(token);
        rest = &rest[blanks + token.len()..];
    }
    if rest.trim().is_empty() {
        Ok(cells)
    } else {
        Err(rest)
    }
}
