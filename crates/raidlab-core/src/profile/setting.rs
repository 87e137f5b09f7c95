//! Settings by name: read from text, shown as resolved, described for help.
use crate::time::Span;
use crate::units::Bytes;
use std::collections::BTreeMap;

/// One setting of a profile, for help and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as in `--set chunk=64KiB` and in experiment files.
    pub key: &'static str,
    /// What it takes: `SIZE`, `COUNT`, a whole number of a range (`1..4096`), `yes|no` …
    pub form: &'static str,
    /// What it means, with the default.
    pub help: &'static str,
}

/// A value that a setting can have.
pub(super) trait Value: Sized {
    /// From what a user typed; the error says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;
    /// As stored with a trial: sizes in bytes, times in nanoseconds with their unit.
    fn show(&self) -> String;
}

impl Value for Bytes {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|e| format!("{e}"))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl Value for Span {
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        text.parse().map_err(|e| format!("{e}"))
    }

    fn show(&self) -> String {
        match self.0 {
            ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
            ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
            ns => format!("{ns}ns"),
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn read(text: &str) -> Result<Self, String> {
                text.trim()
                    .parse()
                    .map_err(|_| format!("'{text}' is not a whole number from 0 to {}", Self::MAX))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
whole_numbers!(u8, u32, u64);

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "yes" | "true" | "on" | "1" => Ok(true),
            "no" | "false" | "off" | "0" => Ok(false),
            other => Err(format!("'{other}' is neither yes nor no")),
        }
    }

    fn show(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

/// `auto`: left to the profile, which decides when it knows the machine.
impl<T: Value> Value for Option<T> {
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "auto" {
            Ok(None)
        } else {
            T::read(text).map(Some)
        }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_owned(), T::show)
    }
}

/// A list with commas.
impl<T: Value> Value for Vec<T> {
    fn read(text: &str) -> Result<Self, String> {
        text.split(',').map(T::read).collect()
    }

    fn show(&self) -> String {
        let items: Vec<String> = self.iter().map(T::show).collect();
        items.join(",")
    }
}

/// Values that are one of a few words.
macro_rules! words {
    ($type:ident { $($word:literal => $value:expr),+ $(,)? }) => {
        impl crate::profile::setting::Value for $type {
            fn read(text: &str) -> Result<Self, String> {
                match text.trim() {
                    $($word => Ok($value),)+
                    other => Err(format!(
                        "'{other}' is not known: choose from {}",
                        [$($word),+].join(", ")
                    )),
                }
            }

            fn show(&self) -> String {
                $(if *self == $value {
                    return $word.to_owned();
                })+
                String::new()
            }
        }
    };
}
pub(super) use words;

/// The settings of one profile.
pub(super) trait Settings: Default {
    /// All of them.
    const SETTINGS: &'static [Setting];
    /// Sets one; `Ok(false)` when there is none of that name.
    fn set(&mut self, key: &str, value: &str) -> Result<bool, String>;
    /// All of them as stored.
    fn shown(&self) -> BTreeMap<String, String>;
}

/// Whether a number is one of the range that a form such as `1..4096` has. What its type can hold is no range that anyone asked for.
pub(super) fn in_range(form: &str, text: &str) -> Result<(), String> {
    let Some((least, most)) = form.split_once("..") else {
        return Ok(());
    };
    let text = text.trim();
    let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>()) else {
        return Ok(());
    };
    let within = text
        .parse::<u64>()
        .is_ok_and(|n| (least..=most).contains(&n));
    if within {
        return Ok(());
    }
    Err(format!(
        "'{text}' is not a whole number from {least} to {most}"
    ))
}

/// Implements [`Settings`] for a struct: `"key" => field, "FORM", "help";`.
macro_rules! settings {
    ($type:ident { $($key:literal => $field:ident, $form:literal, $help:literal;)+ }) => {
        impl crate::profile::setting::Settings for $type {
            const SETTINGS: &'static [crate::profile::setting::Setting] = &[
                $(crate::profile::setting::Setting { key: $key, form: $form, help: $help }),+
            ];

            fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
                use crate::profile::setting::{Value, in_range};
                match key {
                    $($key => {
                        let read = Value::read(value);
                        // `auto` is no number where it is one that may be left to the profile.
                        if read.is_err() || value.trim() != "auto" {
                            in_range($form, value)?;
                        }
                        self.$field = read?;
                    })+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn shown(&self) -> std::collections::BTreeMap<String, String> {
                use crate::profile::setting::Value;
                [$(($key.to_owned(), self.$field.show())),+].into()
            }
        }
    };
}
pub(super) use settings;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for span in [Span::ZERO, Span(500_000_000), Span::from_secs(3), Span(17)] {
            assert_eq!(Span::read(&span.show()), Ok(span));
        }
        assert_eq!(Option::<Bytes>::read("auto"), Ok(None));
        assert_eq!(Option::<Bytes>::read("4KiB"), Ok(Some(Bytes(4096))));
        assert_eq!(
            Vec::<u32>::read("1,2,8").map(|v| v.show()),
            Ok("1,2,8".into())
        );
        assert!(bool::read("maybe").is_err());
        assert!(u8::read("256").unwrap_err().contains("0 to 255"));
    }

    #[test]
    fn the_range_that_is_told_is_the_one_that_is_allowed() {
        for (form, text, why) in [
            (
                "1..4096",
                "0",
                Some("'0' is not a whole number from 1 to 4096"),
            ),
            (
                "1..4096",
                "-1",
                Some("'-1' is not a whole number from 1 to 4096"),
            ),
            (
                "1..4096",
                "many",
                Some("'many' is not a whole number from 1 to 4096"),
            ),
            ("1..4096", " 4096 ", None),
            (
                "1..4096",
                "auto",
                Some("'auto' is not a whole number from 1 to 4096"),
            ),
            ("COUNT", "-1", None),
            ("SIZE,…", "1..2", None),
        ] {
            assert_eq!(in_range(form, text).err().as_deref(), why, "{form} {text}");
        }
    }
}
