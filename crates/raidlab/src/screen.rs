//! What the screen of the user can show: so many columns, these signs.
use raidlab_results::report::spelled;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// Columns of text that goes to no terminal: what most terminals have that it is looked at on later.
const USUAL: usize = 80;
/// Narrower, nothing is folded any more.
const NARROWEST: usize = 40;
/// A label ends no further to the right than this.
const LABEL: usize = 24;

/// Columns that the environment (`COLUMNS`) or the terminal of standard output says.
pub(crate) fn columns() -> Option<usize> {
    let given = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let of_terminal = || {
        let terminal = std::io::stdout().is_terminal();
        terminal.then(|| usize::from(console::Term::stdout().size().1))
    };
    given
        .or_else(of_terminal)
        .filter(|columns: &usize| *columns > 0)
}

/// Columns for lists and plans.
pub(crate) fn width() -> usize {
    columns().unwrap_or(USUAL).max(NARROWEST)
}

/// Whether text may have signs beyond ASCII: unless the locale says otherwise.
pub(crate) fn utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .is_none_or(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"))
    })
}

/// Text as the locale can show it: own signs are spelled. Letters of labels and paths are not lost in a file or a pipe; a
/// terminal shows a question mark for each.
pub(crate) fn shown(text: &str, terminal: bool) -> String {
    if utf8() || text.is_ascii() {
        return text.to_owned();
    }
    let text = spelled(text);
    if !terminal {
        return text;
    }
    let seen = |c: char| if c.is_ascii() { c } else { '?' };
    text.chars().map(seen).collect()
}

/// Lines longer than the screen go on below where their text begins: behind a label that two blanks end, behind a dash, or
/// a little further in than the line itself.
pub(crate) fn folded(text: &str, width: usize) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| match line.chars().count() > width {
            true => fold(line, width),
            false => line.to_owned(),
        })
        .collect()
}

fn fold(line: &str, width: usize) -> String {
    let (body, end) = match line.strip_suffix('\n') {
        Some(body) => (body, "\n"),
        None => (line, ""),
    };
    // A figure and its per cent stay on one line.
    let body = &body.replace(" %", "\u{a0}%");
    let lead = body.len() - body.trim_start_matches(' ').len();
    let (hang, first) = hang(&body[lead..], lead);
    // What stands before the text lays out the line and stays as it is.
    let mut out = body[..first].to_owned();
    let (mut column, mut empty) = (first, true);
    for word in body[first..].split(' ') {
        let length = word.chars().count();
        if !empty && column + 1 + length > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            (column, empty) = (hang, true);
        }
        if word.is_empty() && empty {
            continue;
        }
        if !empty {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        empty = false;
    }
    let trimmed = out.trim_end_matches(' ').len();
    out.truncate(trimmed);
    out.replace('\u{a0}', " ") + end
}

/// Where the continuation of a line begins whose words begin at `lead`, and where the text of the line itself does.
fn hang(text: &str, lead: usize) -> (usize, usize) {
    if text.starts_with("- ") {
        return (lead + 2, lead + 2);
    }
    match text.find("  ") {
        // A label is ASCII, so that bytes are columns.
        Some(at) if lead + at < LABEL && text[..at].is_ascii() => {
            let blanks = text[at..].len() - text[at..].trim_start_matches(' ').len();
            let begins = lead + at + blanks;
            (begins, begins)
        }
        _ => (lead + 2, lead),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_below_their_text() {
        let text = "short\n\
                    device    vda: 256 GiB, virtio, rotating, sectors 512/4096\n\
                    \x20 - something is wrong with that and with this\n\
                    \x20    raid5 of large0 large1 large2 large3, by md\n\
                    \x20 12  a label with words that are many of them\n\
                    A sentence from the margin is 12 % longer\n\
                    /a/path/that/has/no/blanks/and/is/long/all/the/same end\n";
        insta::assert_snapshot!(folded(text, 32));
        assert_eq!(folded(text, 80), text);
    }

    #[test]
    fn two_blanks_where_a_line_is_broken_are_none_at_its_end() {
        assert_eq!(
            folded("/dev/loop0 is a device that is made of  a file\n", 40),
            "/dev/loop0 is a device that is made of\n  a file\n"
        );
    }

    #[test]
    fn no_line_is_longer_and_no_word_is_lost() {
        let text = "größe  ist µ und – noch mehr davon, das länger ist\n\
                    An experiment of many words\n - it  has several of them in all\n";
        let folded = folded(text, 20);
        assert!(
            folded.lines().all(|line| line.chars().count() <= 20),
            "{folded}"
        );
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&folded), words(text));
    }
}
