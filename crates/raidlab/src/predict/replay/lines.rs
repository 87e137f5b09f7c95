//! The lines of a trace, from a file or standard input.
use crate::commands::files;
use crate::exit::Failure;
use raidlab_sim::trace::Format;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Bytes of the longest line, with its end. Lines of traces have some hundred with the longest of file names; what has no
/// end of a line is no text, and would only fill the memory.
const LONGEST: u64 = 64 << 10;

/// UTF-8's, which some editors write.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What traces come in beside text, by its first bytes, and how it becomes text.
const BEGINNINGS: [(&[u8], &str, &str); 8] = [
    (
        b"\x1F\x8B",
        "compressed by gzip",
        "gunzip -c FILE | raidlab replay - ...",
    ),
    (
        b"\x28\xB5\x2F\xFD",
        "compressed by zstd",
        "zstd -dc FILE | raidlab replay - ...",
    ),
    (
        b"\xFD7zXZ",
        "compressed by xz",
        "xz -dc FILE | raidlab replay - ...",
    ),
    (
        b"BZh",
        "compressed by bzip2",
        "bunzip2 -c FILE | raidlab replay - ...",
    ),
    (
        b"PK\x03\x04",
        "a ZIP archive",
        "unzip -p FILE NAME | raidlab replay - ...",
    ),
    (b"\xFF\xFE", UTF_16, TO_UTF_8),
    (b"\xFE\xFF", UTF_16, TO_UTF_8),
    // Version 7 in the machine's order, little endian, below the magic number.
    (
        b"\x07tae",
        "what blktrace writes",
        "blkparse -i FILE | raidlab replay - ...",
    ),
];
const UTF_16: &str = "text in UTF-16";
const TO_UTF_8: &str = "iconv -f UTF-16 -t UTF-8 FILE | raidlab replay - ...";

/// Lines of a file until one cannot be read, which is kept.
pub(super) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead>,
    /// Empty lines before the first that says something, for the numbers in messages, and that one.
    head: (usize, Option<String>),
    /// Lines read so far.
    number: usize,
    failed: Option<Failure>,
}

impl Lines {
    /// Of a file, or of standard input (`-`), read up to the first line that says something.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let input: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            let file = files::open(path).map_err(|error| cannot_read(path, &error))?;
            Box::new(BufReader::new(file))
        };
        let mut lines = Self {
            path: path.to_owned(),
            input,
            head: (0, None),
            number: 0,
            failed: None,
        };
        lines.refuse_others()?;
        while let Some(line) = lines.read() {
            if !line.trim().is_empty() {
                lines.head.1 = Some(line);
                break;
            }
            lines.head.0 += 1;
        }
        lines.failure()?;
        Ok(lines)
    }

    /// What begins like something else than text is told as that; a mark of its encoding is passed over.
    fn refuse_others(&mut self) -> Result<(), Failure> {
        let begin = self.input.fill_buf();
        let begin = begin.map_err(|error| cannot_read(&self.path, &error))?;
        let found = BEGINNINGS
            .iter()
            .find(|(bytes, ..)| begin.starts_with(bytes));
        if begin.starts_with(BYTE_ORDER_MARK) {
            self.input.consume(BYTE_ORDER_MARK.len());
        }
        let Some((_, what, remedy)) = found else {
            return Ok(());
        };
        let trace = self.path.display();
        Err(Failure::bad_request(format!("{trace}: this is {what}")).remedy(*remedy))
    }

    /// The format that was asked for, or that the first line has.
    pub(super) fn format(&self, asked: Option<Format>) -> Result<Format, Failure> {
        let (trace, first) = (self.path.display(), self.head.1.as_deref());
        let found = asked.or_else(|| first.and_then(Format::detect));
        found.ok_or_else(|| match first {
            None => Failure::bad_request(format!("{trace}: there is nothing in it")),
            Some(_) => {
                let known = "name the format with --format: fio, blkparse, spc, msr or disksim";
                Failure::bad_request(format!("{trace}: no known trace begins like this"))
                    .remedy(known)
            }
        })
    }

    /// What ended the lines, if it was not their end.
    pub(super) fn failure(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn read(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.input).take(LONGEST + 1);
        self.number += 1;
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(read) if read as u64 > LONGEST => {
                self.failed = Some(too_long(&self.path, self.number));
                None
            }
            Ok(_) => {
                while line.last().is_some_and(|end| matches!(end, b'\n' | b'\r')) {
                    line.pop();
                }
                // What is not text is no number either, and is told with its place.
                Some(String::from_utf8_lossy(&line).into_owned())
            }
            Err(error) => {
                self.failed = Some(cannot_read(&self.path, &error));
                None
            }
        }
    }
}

impl Iterator for Lines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.head.0 > 0 {
            self.head.0 -= 1;
            return Some(String::new());
        }
        self.head.1.take().or_else(|| self.read())
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_request(format!("cannot read {}: {error}", path.display()))
}

fn too_long(path: &Path, number: usize) -> Failure {
    let message = format!(
        "{}:{number}: this line has more than {} KiB, which none of a trace has",
        path.display(),
        LONGEST >> 10
    );
    Failure::bad_request(message)
        .remedy("name a trace that is text; 'blkparse -i NAME' prints what blktrace has written")
}
