//! What a key wants where something of another type was written, and how that is written rightly.
use super::key::Key;
use super::value::label;
use raidlab_core::suggest::list;
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// What is wanted.
pub(crate) struct Wanted {
    /// In a sentence: "'chunk' is a size".
    pub(crate) what: &'static str,
    /// One, as it is written; none of a text that may be anything.
    example: Option<&'static str>,
}

impl Wanted {
    const fn such_as(what: &'static str, example: &'static str) -> Self {
        Self {
            what,
            example: Some(example),
        }
    }

    /// One, as it is written.
    pub(crate) fn example(&self) -> &'static str {
        self.example.unwrap_or("\"…\"")
    }

    /// The remedy where there is `found` instead.
    pub(crate) fn help(&self, key: &str, found: &DeValue<'_>) -> String {
        let written = label(found);
        match (self.example, found) {
            (Some(example), DeValue::Array(_)) => {
                format!("write one, such as {example}{}", levels(key))
            }
            (None, DeValue::Array(_)) => format!("write one, in quotes{}", levels(key)),
            // 6.1 is a kernel for whoever knows no quotes.
            (Some(_), DeValue::Integer(_) | DeValue::Float(_)) if key == "kernel" => {
                format!("put it in quotes: \"{written}\"")
            }
            (Some(example), _) => format!("write one, such as {example}"),
            (None, DeValue::Table(_)) => "write it in quotes, such as \"…\"".to_owned(),
            (None, DeValue::Boolean(flag)) => format!("put it in quotes: \"{flag}\""),
            (None, _) => format!("put it in quotes: \"{written}\""),
        }
    }
}

impl Wanted {
    /// The remedy where there is an empty text.
    pub(crate) fn help_where_empty(&self, key: &str) -> String {
        match (self.example, key) {
            (Some(example), _) => format!("write one, such as {example}"),
            (None, "title") => "write what is compared".to_owned(),
            (None, _) if MAY_BE_LEFT_OUT.contains(&key) => {
                "write something or drop the key".to_owned()
            }
            (None, _) => "write one".to_owned(),
        }
    }
}

/// Texts that nothing misses.
const MAY_BE_LEFT_OUT: [&str; 7] = ["question", "cpu", "mount-options", "x", "y", "lines", "per"];

pub(crate) const SIZE: Wanted = Wanted::such_as("a size", "\"64KiB\"");
pub(crate) const RATE: Wanted = Wanted::such_as("a rate", "\"133MB/s\"");
pub(crate) const TIME: Wanted = Wanted::such_as("a time", "\"8.5ms\"");
pub(crate) const WHILE: Wanted = Wanted::such_as("a time", "\"30s\"");
pub(crate) const DIRTY: Wanted =
    Wanted::such_as("a share of the memory or a size", "\"20%\" or \"256MiB\"");

/// What a key wants whose value is written as a text.
pub(crate) fn of(key: &str) -> Wanted {
    match key {
        "layout" => Wanted::such_as("a text", "\"raid5\""),
        "state" => Wanted::such_as("a text", "\"degraded 1\""),
        "kernel" => Wanted::such_as("a version of the kernel", "\"6.1\""),
        "profile" => Wanted::such_as("the name of a profile", "\"bonnie\""),
        "model" => Wanted::such_as("the name of a model", "\"nearline-24tb\""),
        "price" => Wanted::such_as("a price", "\"430 EUR\""),
        "members" => Wanted::such_as(
            "how many members, or which",
            "4, \"2 internal + 6 external\" or [\"sda\", \"sdc\"]",
        ),
        _ => Wanted {
            what: "a text",
            example: None,
        },
    }
}

/// The remedy where a whole number of a range is wanted.
pub(crate) fn number(key: &str, found: &DeValue<'_>, range: &RangeInclusive<u64>) -> String {
    let within = |text: &str| text.trim().parse().is_ok_and(|n| range.contains(&n));
    let (least, most) = (range.start(), range.end());
    match found {
        DeValue::String(text) if within(text) => {
            format!("write it without quotes: {}", text.trim())
        }
        DeValue::Array(_) => format!("write one, from {least} to {most}{}", levels(key)),
        _ => format!("write one from {least} to {most}"),
    }
}

/// The remedy where one of a few words is wanted. Some of them are numbers for whoever does not put them in quotes.
pub(crate) fn word(key: &str, found: &DeValue<'_>, known: &[&str]) -> String {
    let written = label(found);
    let known_words = list(known.iter().copied());
    match found {
        DeValue::Array(_) => format!("write one of {known_words}{}", levels(key)),
        _ if known.contains(&written.as_str()) => format!("put it in quotes: \"{written}\""),
        _ => format!("write one of {known_words}, in quotes"),
    }
}

/// Where a list belongs that was written for one value.
fn levels(key: &str) -> &'static str {
    match Key::named(key) {
        Some(_) => "; a list of levels stands in [factors]",
        None => "",
    }
}
