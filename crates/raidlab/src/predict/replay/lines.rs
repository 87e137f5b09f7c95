//! The lines of a trace, from a file or standard input.
use crate::commands::files;
use crate::exit::Failure;
use raidlab_sim::trace::Format;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Bytes of the longest line, with its end. Lines of traces have some hundred with the longest of file names; what has no
/// end of a line is no text, and would only fill the memory.
const LONGEST: u64 = 64 << 10;

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
