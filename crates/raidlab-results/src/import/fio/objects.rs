//! Where fio's objects are in a file: however they are laid out, with its notes and errors before,
//! between and after them.
use super::row::is_terse;
use crate::import::draft::Harvest;
use crate::import::error::Fault;
use crate::import::text::{Line, quoted};
use raidlab_core::words::count;

/// The key that is in every object of fio's, and in those of no other tool.
const KEY: &str = "\"fio version\"";

/// Where the first object is in a text that is fio's.
pub(in crate::import) fn first_object(text: &str) -> Option<usize> {
    text.contains(KEY).then(|| next_object(text, 0)).flatten()
}

/// How far a file has been read.
pub(super) struct Objects<'a> {
    body: &'a str,
    at: usize,
    /// From 1, of `at`.
    line: usize,
    /// Lines of terse output between the objects, which `--output-format=terse,json` prints, too.
    pub(super) terse: Vec<Line<'a>>,
}

impl<'a> Objects<'a> {
    pub(super) fn of(body: &'a str) -> Self {
        Self {
            body,
            at: 0,
            line: 1,
            terse: Vec::new(),
        }
    }

    /// The text from the next object on. What is in between is told.
    pub(super) fn next(&mut self, harvest: &mut Harvest) -> Option<&'a str> {
        let start = next_object(self.body, self.at);
        let chatter = &self.body[self.at..start.unwrap_or(self.body.len())];
        let lines = chatter
            .lines()
            .enumerate()
            .filter(|(_, line)| !is_separator(line));
        let (terse, others): (Vec<_>, Vec<_>) =
            lines.partition(|(_, line)| is_terse(line) && line.trim_start().starts_with("3;"));
        let begun = self.line;
        self.terse.extend(terse.into_iter().map(|(i, text)| Line {
            number: begun + i,
            text,
        }));
        let mut lines = others.into_iter();
        if let Some((i, first)) = lines.next() {
            let told = match lines.count() {
                0 => format!("not JSON, left out: {}", quoted(first)),
                more => format!(
                    "not JSON, left out: {} and {}",
                    quoted(first),
                    count(more, "more line")
                ),
            };
            harvest.remark(self.line + i, told);
        }
        self.pass(chatter.len());
        start.map(|at| &self.body[at..])
    }

    /// Leaves that many bytes behind.
    pub(super) fn pass(&mut self, bytes: usize) {
        let part = &self.body[self.at..self.at + bytes];
        self.line += part.bytes().filter(|b| *b == b'\n').count();
        self.at += bytes;
    }

    /// A fault at a byte of the object, which found what is there.
    pub(super) fn fault(&self, offset: usize) -> Fault {
        let before = self.body.get(self.at..self.at + offset).unwrap_or("");
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").len() + 1;
        let found = self.body[self.at..].get(offset..).unwrap_or("");
        self.fault_at(line, column, quoted(found.lines().next().unwrap_or("")))
    }

    /// A fault at a line and a byte of it, both from 1, counted from where the object begins.
    pub(super) fn fault_at(&self, line: usize, column: usize, found: impl Into<String>) -> Fault {
        let line = line.max(1);
        let start = if line == 1 {
            // The object may begin within a line.
            self.body[..self.at].rfind('\n').map_or(0, |at| at + 1)
        } else {
            let ends = self.body[self.at..].match_indices('\n');
            let end = ends.map(|(at, _)| at).nth(line - 2);
            end.map_or(self.body.len(), |at| self.at + at + 1)
        };
        let from = if line == 1 { self.at } else { start };
        let end = (from + column.max(1) - 1).min(self.body.len());
        let before = self.body.get(start..end).unwrap_or("");
        Fault::at(
            self.line + line - 1,
            before.chars().count() + 1,
            found.into(),
        )
    }
}

/// White space, and what stands between the objects of a list.
fn is_separator(part: &str) -> bool {
    part.chars()
        .all(|c| c.is_whitespace() || matches!(c, '[' | ',' | ']'))
}

/// The next brace that begins an object: at the head of a line or after an object, or before the key
/// on one line with other words. Notes that have a brace in them are none.
fn next_object(body: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in body[from..].split_inclusive('\n') {
        let key = line.rfind(KEY);
        for (offset, _) in line.match_indices('{') {
            let inside = body[at + offset + 1..].trim_start();
            let opens = inside.is_empty() || inside.starts_with(['"', '}']);
            let leads = is_separator(&line[..offset]);
            if opens && (leads || key.is_some_and(|key| offset < key)) {
                return Some(at + offset);
            }
        }
        at += line.len();
    }
    None
}
