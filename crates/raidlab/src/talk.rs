//! Talk on standard error: remarks, warnings, failures. Data never goes here.
use crate::exit::Failure;
use crate::screen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use raidlab_core::words::steers;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Whether talk may be coloured: on a terminal that can, unless `NO_COLOR` is set.
pub(crate) fn coloured() -> bool {
    colours() && std::io::stderr().is_terminal()
}

/// Whether colours are wanted, and known to a terminal if there is one.
pub(crate) fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    !unwanted && !is_dumb()
}

/// Whether the terminal can do nothing but print: a line that moves would come as rubbish.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn paint(text: &str, code: &str) -> String {
    if coloured() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

fn line(text: &str) {
    // A closed standard error must not end a run.
    let text = screen::shown(text, std::io::stderr().is_terminal());
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Text without what would command a terminal: labels and titles may come from anywhere.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if steers(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// [`plain`] on one line, for what stands in lists and tables.
pub(crate) fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], "\u{fffd}")
}

/// A bar of a thousand steps on one line with a message, where there is a terminal.
pub(crate) fn bar() -> Option<ProgressBar> {
    on_terminal(Some(1000), "{bar:24.cyan/dim} {wide_msg}")
}

/// A line that moves by itself, with a message and the time it has been there, where there is a terminal.
pub(crate) fn spinner(what: &str) -> Option<ProgressBar> {
    let bar = on_terminal(None, "{spinner} {wide_msg} {elapsed}")?.with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    Some(bar)
}

fn on_terminal(length: Option<u64>, template: &str) -> Option<ProgressBar> {
    (std::io::stderr().is_terminal() && !is_dumb()).then(|| {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = match screen::utf8() {
            true => style,
            false => style.progress_chars("#>-").tick_chars("|/-\\ "),
        };
        ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(10))
            .with_style(style)
    })
}

/// What a moving line says.
pub(crate) fn message(bar: &ProgressBar, text: &str) {
    bar.set_message(screen::shown(&one_line(text), true));
}

/// Something the user should know.
pub(crate) fn note(text: &str) {
    line(&plain(text));
}

/// Something that makes a figure doubtful.
pub(crate) fn warn(text: &str) {
    line(&format!("{} {}", paint("warning:", "33;1"), plain(text)));
}

/// As [`warn`], of what is met again and again and is told the first time.
pub(crate) fn warn_once(text: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(text.to_owned()) {
        warn(text);
    }
}

/// Why the command failed, and what would help.
pub(crate) fn failure(failure: &Failure) {
    if failure.laid_out {
        return line(failure.message.trim_end());
    }
    let message = plain(&failure.message);
    line(&format!("{} {message}", paint("error:", "31;1")));
    let descriptors = too_many_files(&message).then_some(FILES);
    if let Some(remedy) = failure.remedy.as_deref().or(descriptors) {
        help(remedy);
    }
}

/// What would help against what was just told.
pub(crate) fn help(remedy: &str) {
    let remedy = plain(remedy);
    line(&format!("{} {remedy}", paint("  help:", "36;1")));
}

/// What helps when the limit of open files was reached.
const FILES: &str = "raise the limit of open files (ulimit -n), or give fewer jobs";

/// Whether a message tells of the limit of open files and not yet of the remedy: any call that opens a
/// file may be the one that meets it. 24 is EMFILE.
fn too_many_files(message: &str) -> bool {
    message.contains("(os error 24)") && !message.contains("ulimit -n")
}

/// Standard output is for a file that was named `-`.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// Keeps standard output for a file that was named `-`: what else would be printed goes to standard error.
pub(crate) fn give_stdout() {
    GIVEN.store(true, Ordering::Relaxed);
}

/// Writes data to standard output, unless that is for a file.
pub(crate) fn data(text: &str) -> std::io::Result<()> {
    if GIVEN.load(Ordering::Relaxed) {
        return std::io::stderr().lock().write_all(text.as_bytes());
    }
    stdout(text.as_bytes())
}

/// Writes a file to standard output.
pub(crate) fn stdout(content: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(content).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_has_a_remedy_wherever_it_is_met() {
        let error = std::io::Error::from_raw_os_error(24);
        assert!(too_many_files(&format!("cannot read /proc/stat: {error}")));
        assert!(!too_many_files(&format!("no ring: {error}; {FILES}")));
        assert!(!too_many_files("cannot read /proc/stat: not there"));
    }
}
