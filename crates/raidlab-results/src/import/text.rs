//! From bytes to lines: encoding, line ends, and where in the file something is.
use super::error::{Fault, Remark};
use raidlab_core::words::count;
pub(super) use raidlab_core::words::quoted;
use std::borrow::Cow;

/// Largest file taken, in bytes. A fio result with full histograms is some 30 KiB a job; more than
/// this is no benchmark result, and would only fill the memory.
pub const MAX_INPUT: usize = 32 << 20;

/// What a mail or a Markdown file puts before lines.
const MARGIN: [char; 3] = [' ', '\t', '>'];

/// Quote marks with what is between them and one space behind.
fn quote(line: &str) -> &str {
    let margin = &line[..line.len() - line.trim_start_matches(MARGIN).len()];
    match margin.rfind('>') {
        Some(last) => {
            let space = usize::from(margin[last + 1..].starts_with(' '));
            &margin[..last + 1 + space]
        }
        None => "",
    }
}

/// Whether a line has nothing but a margin.
fn is_blank(line: &str) -> bool {
    line.trim_end().trim_start_matches(MARGIN).is_empty()
}

/// How two lines begin alike.
fn shared<'a>(one: &'a str, other: &str) -> &'a str {
    let alike = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    &one[..alike.count()]
}

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
    /// Characters that were taken off each line's beginning; empty when none were of any.
    margins: Vec<usize>,
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
                // One more stands where files were joined.
                let body = match text.contains('\u{feff}') {
                    true => Cow::Owned(text.replace('\u{feff}', "")),
                    false => Cow::Borrowed(text),
                };
                return Ok(Self {
                    body,
                    remarks: Vec::new(),
                    margins: Vec::new(),
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
            margins: Vec::new(),
        })
    }

    /// Without the quote marks that a mail has put before all lines.
    pub(super) fn unquoted(self) -> Self {
        let mut common: Option<&str> = None;
        for line in self.body.lines().filter(|line| !is_blank(line)) {
            let quote = quote(line);
            let shared = common.map_or(quote, |before| shared(before, quote));
            common = Some(shared);
            if shared.is_empty() {
                break;
            }
        }
        match common.filter(|quote| quote.contains('>')) {
            Some(quote) => {
                let quote = quote.to_owned();
                self.without(|_| Some(quote.clone()))
            }
            None => self,
        }
    }

    /// Without what a mail or a Markdown file has put before a tool's lines: quote marks, and, of tools
    /// whose lines begin in the first column (`flush`), indentation. What it is, the lines tell that
    /// `begins` knows, for themselves and those up to the next; the first of them also for those before.
    pub(super) fn without_margin(self, begins: impl Fn(&str) -> bool, flush: bool) -> Self {
        let own = |line: &str| {
            let rest = line.trim_start_matches(MARGIN);
            let margin = if flush {
                &line[..line.len() - rest.len()]
            } else {
                quote(line)
            };
            begins(rest).then(|| margin.to_owned())
        };
        let Some(first) = self.body.lines().find_map(own) else {
            return self;
        };
        let mut margin = first;
        self.without(|line| {
            if let Some(found) = own(line) {
                margin = found;
            }
            Some(margin.clone()).filter(|margin| !margin.is_empty())
        })
    }

    /// Takes off each line what `margin` says of it, where it is there.
    fn without(self, mut margin: impl FnMut(&str) -> Option<String>) -> Self {
        let mut body = String::with_capacity(self.body.len());
        let mut margins = Vec::new();
        for (number, line) in self.body.split_inclusive('\n').enumerate() {
            let margin = margin(line).unwrap_or_default();
            let end = &line[line.trim_end_matches(['\n', '\r']).len()..];
            // Blank lines have lost their last spaces.
            let (taken, rest) = match line.strip_prefix(margin.as_str()) {
                Some(rest) => (margin.chars().count(), rest),
                None if line.trim_end() == margin.trim_end() => (0, end),
                None => (0, line),
            };
            let before = self.margins.get(number).copied().unwrap_or(0);
            margins.push(before + taken);
            body.push_str(rest);
        }
        if body.len() == self.body.len() {
            return self;
        }
        Self {
            body: Cow::Owned(body),
            margins,
            ..self
        }
    }

    /// The fault where it is in the file.
    pub(super) fn placed(margins: &[usize], mut fault: Fault) -> Fault {
        fault.column += margins.get(fault.line - 1).copied().unwrap_or(0);
        fault
    }

    /// For [`Self::placed`].
    pub(super) fn margins(&self) -> Vec<usize> {
        self.margins.clone()
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
