//! Numbers of things, and quotations, in messages.
use std::fmt::Display;

/// Longest quotation in a message, in characters.
const EXCERPT: usize = 60;

/// A text in quotes, shortened, control characters escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    let text = text.trim();
    let mut short: String = text.chars().take(EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!(
        "'{}'",
        short.escape_debug().collect::<String>().replace("\\'", "'")
    )
}

/// Whether a character could steer what shows it instead of being shown: control characters, and those
/// that turn the direction of text or begin a line or a paragraph of their own (Unicode Standard Annex 9,
/// tables 1 and 2: embeddings, overrides and isolates; U+2028 and U+2029). With them a name or a command
/// of a foreign file could be read as another than it is.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}'
        )
}

/// `1 member`, `3 members`, `2 replies`, `0 flushes`: the thing is named in the singular, with what stands
/// before it if need be (`more run`).
#[must_use]
pub fn count(number: impl Display, one: &str) -> String {
    let number = number.to_string();
    if number == "1" {
        format!("1 {one}")
    } else {
        format!("{number} {}", plural(one))
    }
}

fn plural(one: &str) -> String {
    let before = |end: &str| {
        one.strip_suffix(end)
            .and_then(|rest| rest.chars().next_back())
    };
    if before("y").is_some_and(|c| !"aeiou".contains(c)) {
        return format!("{}ies", &one[..one.len() - 1]);
    }
    let hisses = ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| one.ends_with(end));
    format!("{one}{}", if hisses { "es" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_known_from_what_is_read() {
        for c in [
            '\0', '\x1b', '\n', '\u{7f}', '\u{9b}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}',
            '\u{2028}',
        ] {
            assert!(steers(c), "{c:?}");
        }
        // Letters of any script, marks that join them, and those that say which way a letter beside them runs.
        for c in [
            'a', 'é', 'א', '中', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202f}', '\u{2027}', ' ',
        ] {
            assert!(!steers(c), "{c:?}");
        }
    }

    #[test]
    fn quotations_are_short_and_on_one_line() {
        assert_eq!(quoted(" a 'b'\n\0 "), "'a 'b'\\n\\0'");
        assert_eq!(quoted(&"ä".repeat(61)), format!("'{}…'", "ä".repeat(60)));
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "member"), "1 member");
        assert_eq!(count(0_u64, "member"), "0 members");
        assert_eq!(count(2_usize, "reply"), "2 replies");
        assert_eq!(count(1, "reply"), "1 reply");
        assert_eq!(count(2, "array"), "2 arrays");
        assert_eq!(count(3, "flush"), "3 flushes");
        assert_eq!(count(3, "more run"), "3 more runs");
    }
}
