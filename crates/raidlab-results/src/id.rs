//! Identifiers: 32 lower-case hexadecimal digits (128 bits), random or made from a content.
//!
//! Sessions and measured trials get random ones. What is imported gets one made from its content,
//! so that importing it twice adds nothing. A content id depends on the bytes alone: it is the same
//! on every machine and in every version, and `sha256sum` can check it.
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Digits of an identifier.
pub const DIGITS: usize = 32;

/// Digits of the usual short form; like git's, enough to be unique in most stores.
pub const SHORT_DIGITS: usize = 8;

/// The operating system could not give random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes for a new identifier: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);

/// A new random identifier.
///
/// # Errors
/// When the operating system has no source of random bytes.
pub fn random() -> Result<String, NoRandomness> {
    let mut bytes = [0; DIGITS / 2];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// The identifier of a content: the first 128 bits of SHA-256 over `domain` and `parts`, each
/// preceded by its length as 8 little-endian bytes, so that `["ab", "c"]` and `["a", "bc"]` differ.
///
/// `domain` names what is identified (`bonnie++ trial`), so that equal bytes of different meaning
/// do not share an identifier.
#[must_use]
pub fn of_content<P: AsRef<[u8]>>(domain: &str, parts: &[P]) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(domain.as_bytes());
    parts.iter().for_each(|bytes| part(bytes.as_ref()));
    hex(&hash.finalize()[..DIGITS / 2])
}

/// The identifier of a JSON value, whatever the order of its keys and its white space.
#[must_use]
pub fn of_json(domain: &str, value: &serde_json::Value) -> String {
    of_content(domain, &[canonical_json(value)])
}

/// The one text of a JSON value: keys sorted by their bytes, no white space.
///
/// Sorted here and not by `serde_json`'s map, whose order depends on a feature that any crate of
/// the program can switch on.
#[must_use]
pub fn canonical_json(value: &serde_json::Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &serde_json::Value, text: &mut String) {
    use serde_json::Value;
    match value {
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(item, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// Whether a text is an identifier.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == DIGITS && is_prefix(text)
}

/// Whether a text can be the beginning of an identifier: one to 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_prefix(text: &str) -> bool {
    (1..=DIGITS).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The usual short form of an identifier (the whole text when it is shorter).
#[must_use]
pub fn short(id: &str) -> &str {
    id.get(..SHORT_DIGITS).unwrap_or(id)
}

/// How many digits tell all of `ids` apart, at least [`SHORT_DIGITS`].
#[must_use]
pub fn digits_needed<'a>(ids: impl IntoIterator<Item = &'a str>) -> usize {
    let mut sorted: Vec<&str> = ids.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |pair: &[&str]| {
        pair[0]
            .bytes()
            .zip(pair[1].bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    sorted
        .windows(2)
        .map(|pair| common(pair) + 1)
        .max()
        .unwrap_or(0)
        .clamp(SHORT_DIGITS, DIGITS)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_content_id_never_changes() {
        // printf '\5\0\0\0\0\0\0\0trial\3\0\0\0\0\0\0\0abc' | sha256sum | cut -c-32
        assert_eq!(
            of_content("trial", &["abc"]),
            "628b734b1363ad9ffadf6b2ffe82d6f3"
        );
    }

    #[test]
    fn the_parts_are_told_apart() {
        let all = [
            of_content("a", &["bc"]),
            of_content("ab", &["c"]),
            of_content("a", &["b", "c"]),
            of_content("a", &["bc", ""]),
            of_content::<&str>("abc", &[]),
        ];
        assert!(all.iter().all(|id| is_id(id)));
        for (i, id) in all.iter().enumerate() {
            assert!(!all[..i].contains(id), "{all:?}");
        }
    }

    #[test]
    fn json_has_one_text() {
        let one: serde_json::Value =
            serde_json::from_str(r#"{"b": [1, 2.5, null], "a": {"z": "\u00e9\"", "y": true}}"#)
                .unwrap();
        insta::assert_snapshot!(canonical_json(&one), @r#"{"a":{"y":true,"z":"é\""},"b":[1,2.5,null]}"#);
        assert_eq!(
            of_json("environment", &one),
            of_json(
                "environment",
                &json!({"a": {"y": true, "z": "é\""}, "b": [1, 2.5, null]})
            )
        );
        assert_ne!(
            of_json("environment", &one),
            of_json("environment", &json!({}))
        );
    }

    #[test]
    fn random_ids_differ() {
        let (a, b) = (random().unwrap(), random().unwrap());
        assert!(is_id(&a) && is_id(&b));
        assert_ne!(a, b);
        assert_eq!(short(&a), &a[..8]);
        assert_eq!(short("12"), "12");
    }

    #[test]
    fn only_lower_case_digits_are_an_id() {
        for wrong in ["", "g", "AB", "0x1", "12 ", "é"] {
            assert!(!is_prefix(wrong), "{wrong}");
        }
        assert!(is_prefix("0af"));
        assert!(!is_id("0af"));
        assert!(!is_prefix(&"0".repeat(33)));
    }

    #[test]
    fn short_forms_are_as_long_as_needed() {
        assert_eq!(digits_needed([]), 8);
        let (a, b) = ("0123456789a".to_owned(), "0123456789b".to_owned());
        assert_eq!(digits_needed([&*a, &*b]), 11);
        assert_eq!(digits_needed([&*a, &*a]), 8);
    }

    proptest! {
        #[test]
        fn so_many_digits_tell_all_apart(ids in prop::collection::hash_set("[0-9a-f]{32}", 2..20)) {
            let n = digits_needed(ids.iter().map(String::as_str));
            let cut: std::collections::BTreeSet<_> = ids.iter().map(|id| &id[..n]).collect();
            prop_assert_eq!(cut.len(), ids.len());
        }
    }
}
