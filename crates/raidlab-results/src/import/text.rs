//! From bytes to lines: encoding, line ends, and where in the file something is.
use super::error::{Fault, Remark};
use raidlab_core::words::count;
pub(super) use raidlab_core::words::quoted;
use std::borrow::Cow;

/// Largest file taken, in bytes. A fio result with full histograms is some 30 KiB a job; more than
/// this is no benchmark result, and would only fill the memory.
pub const MAX_INPUT: usize = 32 << 20;

/// One line without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    /// A fault at a byte offset into the line.
    pub(super) fn fault(&self, offset: usize, found: impl Into<String>) -> Fault {
        let before = self.text.get(..offset).unwrap_or(self.text);
        Fault::at(self.number, before.chars().count() + 1, found)
    }

    /// A fault at a part of the line (a subslice of its text).
    pub(super) fn fault_at(&self, part: &str, found: impl Into<String>) -> Fault {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.fault(offset.min(self.text.len()), found)
    }

    /// A fault at the end of the line.
    pub(super) fn cut(&self, found: impl Into<String>) -> Fault {
        self.fault(self.text.len(), found)
    }

    /// A fault unless there are as many cells as column titles.
    pub(super) fn has_cells(&self, cells: usize, titles: usize) -> Result<(), Fault> {
        if cells == titles {
            return Ok(());
        }
        Err(self
            .cut(count(cells, "cell"))
            .expected(count(titles, "cell")))
    }

    /// The line in quotes, shortened: what was found.
    pub(super) fn quoted(&self) -> String {
        quoted(self.text)
    }

    pub(super) fn words(&self) -> std::str::SplitWhitespace<'a> {
        self.text.split_whitespace()
    }
}

/// A decoded file.
#[derive(Debug)]
pub(super) struct Text<'a> {
    body: Cow<'a, str>,
    pub(super) remarks: Vec<Remark>,
}

impl<'a> Text<'a> {
    /// Decodes UTF-8 (with or without a byte order mark), or ISO 8859-1 with a remark.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Fault> {
        if bytes.len() > MAX_INPUT {
            return Err(Fault::at(1, 1, format!("{} MiB", bytes.len() >> 20))
                .expected(format!("at most {} MiB", MAX_INPUT >> 20))
                .remedy("Import the tool's result, not its log"));
        }
        if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
            return Err(Fault::at(1, 1, "a UTF-16 byte order mark")
                .expected("text in UTF-8")
                .remedy("Convert it first: iconv -f UTF-16 -t UTF-8"));
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        if let Some(at) = bytes.iter().position(|&b| b == 0) {
            return Err(fault_at_byte(bytes, at, "a zero byte").expected("text"));
        }
        let invalid = match std::str::from_utf8(bytes) {
            Ok(text) => {
                return Ok(Self {
                    body: Cow::Borrowed(text),
                    remarks: Vec::new(),
                });
            }
            Err(e) => e.valid_up_to(),
        };
        // Old machine names are Latin-1. C1 controls do not occur in it, and a file that is UTF-8
        // up to here is damaged UTF-8.
        let latin1 = bytes[..invalid].is_ascii() && !bytes.iter().any(|b| (0x80..0xA0).contains(b));
        let found = format!("the byte 0x{:02X}, which is not UTF-8", bytes[invalid]);
        let fault = fault_at_byte(bytes, invalid, found);
        if !latin1 {
            return Err(fault.expected("text in UTF-8 or ISO 8859-1"));
        }
        Ok(Self {
            body: Cow::Owned(bytes.iter().map(|&b| char::from(b)).collect()),
            remarks: vec![Remark::on(
                fault.line,
                format!("{}: the file is read as ISO 8859-1", fault.found),
            )],
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.body
    }

    /// The lines, without `\n` or `\r\n`.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> + Clone {
        self.body.lines().enumerate().map(|(i, text)| Line {
            number: i + 1,
            text,
        })
    }

    /// Just after the last line that is not empty: where something is missing.
    pub(super) fn end(&self) -> Fault {
        let last = self
            .lines()
            .filter(|line| !line.text.trim().is_empty())
            .last()
            .unwrap_or(Line {
                number: 1,
                text: "",
            });
        last.cut("the file ends here")
    }

    /// Refuses a last line without a line end. Every tool ends its last line; in a format whose
    /// last value can be any number of digits, a cut file cannot be told otherwise.
    pub(super) fn whole_last_line(&self) -> Result<(), Fault> {
        match self.lines().last() {
            Some(line) if !self.body.ends_with('\n') => Err(line
                .cut("the file ends within a line")
                .expected("a line end")
                .remedy("The file may be cut short; if the last line is whole, add a line end")),
            _ => Ok(()),
        }
    }
}

fn fault_at_byte(bytes: &[u8], at: usize, found: impl Into<String>) -> Fault {
    let before = &bytes[..at];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |i| i + 1);
    // Continuation bytes are not characters of their own.
    let column = before[start..]
        .iter()
        .filter(|&&b| b & 0xC0 != 0x80)
        .count()
        + 1;
    Fault::at(line, column, found)
}
