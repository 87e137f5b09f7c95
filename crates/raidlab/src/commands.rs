//! The commands that work on results, studies, layouts and the machine.
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
use serde::Serialize;
use std::io::IsTerminal;

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
    let words: Vec<String> = std::env::args()
        .enumerate()
        .map(|(i, word)| {
            if i == 0 {
                "raidlab".to_owned()
            } else {
                quoted(&word)
            }
        })
        .collect();
    words.join(" ")
}

/// A word as a POSIX shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else if word.chars().any(char::is_control) {
        // Such as a shell takes them, and as no terminal does.
        let escaped: String = word
            .chars()
            .map(|c| match c {
                '\'' | '\\' => format!("\\{c}"),
                '\n' => r"\n".to_owned(),
                c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
                c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            })
            .collect();
        format!("$'{escaped}'")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
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
        assert_eq!(quoted("a\nb \x1b[31m it's"), r"$'a\nb \x1b[31m it\'s'");
    }
}
