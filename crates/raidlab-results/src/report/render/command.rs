//! Command lines that are too long for a line: broken so that a shell reads them as before.

/// What a line that goes on ends with.
const ON: &str = " \\";
/// What its rest begins with.
const INDENT: &str = "    ";

/// The command on lines of `width` characters, as far as its words allow: before options, with a backslash at the end of each
/// line but the last. A comment, and what a shell would not read to its end, is left alone.
pub(super) fn broken(line: &str, width: usize) -> String {
    if line.chars().count() <= width || line.starts_with('#') || line.contains('\n') {
        return line.to_owned();
    }
    let Some(words) = words(line) else {
        return line.to_owned();
    };
    let length = |text: &str| text.chars().count();
    let (mut out, mut used) = (String::new(), 0);
    for piece in pieces(&words) {
        let room = width.saturating_sub(length(ON));
        if used == 0 {
            // The first.
        } else if used + 1 + length(&piece) <= room {
            out.push(' ');
            used += 1;
        } else {
            out.push_str(ON);
            out.push('\n');
            out.push_str(INDENT);
            used = length(INDENT);
        }
        used += length(&piece);
        out.push_str(&piece);
    }
    out
}

/// The words, as written; `None` when a quote is not closed or the line ends with a backslash.
fn words(line: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let (mut begun, mut quote, mut escaped) = (None, None, false);
    for (at, c) in line.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => escaped = true,
            (Some(_), _) => {}
            (None, ' ') => {
                if let Some(from) = begun.take() {
                    words.push(&line[from..at]);
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {}
        }
        begun.get_or_insert(at);
    }
    words.extend(begun.map(|from| &line[from..]));
    (quote.is_none() && !escaped).then_some(words)
}

/// What is kept together: an option and the first word after it, any other word by itself.
fn pieces(words: &[&str]) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut takes = false;
    for word in words {
        let option = word.starts_with('-') && word.len() > 1;
        match pieces.last_mut() {
            Some(last) if takes && !option => {
                last.push(' ');
                last.push_str(word);
                takes = false;
            }
            _ => {
                pieces.push((*word).to_owned());
                takes = option && !word.contains('=');
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: &str = "raidlab bench /mnt/array '/mnt/a b --x' --profile bonnie,random --repeats 5 --seed 17 --width 2% --engine uring --direct --baseline 'bonnie in /mnt/array'";

    #[test]
    fn it_is_broken_before_options() {
        insta::assert_snapshot!(broken(LONG, 60), @r"
        raidlab bench /mnt/array '/mnt/a b --x' \
            --profile bonnie,random --repeats 5 --seed 17 \
            --width 2% --engine uring --direct \
            --baseline 'bonnie in /mnt/array'
        ");
        assert_eq!(broken(LONG, 400), LONG);
    }

    #[test]
    fn what_no_shell_would_read_is_left_alone() {
        for line in [
            "dd if=/dev/sda of=/dev/null count=100 don't",
            "# … and 14 more, one with each trial",
            "a b c d e f g h \\",
        ] {
            assert_eq!(broken(line, 10), line);
        }
    }

    /// What a shell makes of it: words without quotes, a backslash before a line's end taken away.
    fn read(text: &str) -> Vec<String> {
        let joined = text.replace("\\\n", "");
        let words = words(&joined).expect("whole");
        words.into_iter().map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn a_shell_reads_the_same(
            words in prop::collection::vec("(--?[a-z]{1,9}(=[a-z0-9]{1,4})?|[a-z/0-9]{1,12}|'[a-z \\\\\"-]{0,12}'|\"[a-z ]{0,9}\")", 1..30),
            width in 1_usize..120,
        ) {
            let line = words.join(" ");
            let told = broken(&line, width);
            prop_assert_eq!(read(&told), words);
            for part in told.lines() {
                // One piece may be longer than the line.
                prop_assert!(part.chars().count() <= width || part.matches(' ').count() <= 24 + INDENT.len());
            }
        }
    }
}
