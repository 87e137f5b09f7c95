//! The commands that work on results, studies, layouts and the machine.
mod chunks;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod files;
pub(crate) mod import;
pub(crate) mod layout;
pub(crate) mod list;
pub(crate) mod output;
mod pool;
pub(crate) mod reference;
pub(crate) mod remove;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod text;

use crate::exit::{Failure, MISSING};
use crate::screen;
use crate::talk;
use raidlab_core::words::steers;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt as _;

/// Prints a value as indented JSON; nothing else goes to standard output then.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|e| Failure::new(MISSING, e.to_string()))?;
    text.push('\n');
    print(&text)
}

/// Prints data.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    printed(talk::data(text))
}

/// Prints text to read, folded to the screen and with the signs that it can show.
pub(crate) fn print_folded(text: &str) -> Result<(), Failure> {
    print_text(&screen::folded(text, screen::width()))
}

/// Prints text to read with the signs that the screen can show; its lines stay as they are.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    print(&screen::shown(text, std::io::stdout().is_terminal()))
}

/// What became of something printed: a reader that has gone (`| head`) is not an error.
pub(crate) fn printed(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {error}");
            Err(Failure::new(MISSING, message))
        }
        _ => Ok(()),
    }
}

/// The command line as it was typed, quoted so that a shell takes it back.
pub(crate) fn command_line() -> String {
    let typed = std::env::args_os().skip(1);
    let words = typed.map(|word| quoted_os(&word));
    let all: Vec<String> = std::iter::once("raidlab".to_owned()).chain(words).collect();
    all.join(" ")
}

/// A word as a POSIX shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    quoted_os(word.as_ref())
}

/// The same of what may be no text, such as a file's name.
pub(crate) fn quoted_os(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(steers) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        // Such as a shell takes them, and as no terminal does.
        _ => format!("$'{}'", escaped(word.as_bytes())),
    }
}

/// What stands between `$'` and `'` for these bytes.
fn escaped(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            escaped.push_str(&match c {
                '\'' | '\\' => format!("\\{c}"),
                '\n' => r"\n".to_owned(),
                c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
                c if steers(c) => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            });
        }
        for byte in chunk.invalid() {
            let _ = write!(escaped, "\\x{byte:02x}");
        }
    }
    escaped
}

/// The present in UTC, as records keep it.
pub(crate) fn timestamp() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Millisecond)
        .unwrap_or_else(|_| jiff::Timestamp::now())
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("--size=64KiB"), "--size=64KiB");
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        let no_text = OsStr::from_bytes(b"p\xff\xc3 it's.html");
        assert_eq!(quoted_os(no_text), r"$'p\xff\xc3 it\'s.html'");
        assert_eq!(quoted("a\nb \x1b[31m it's"), r"$'a\nb \x1b[31m it\'s'");
    }
}
