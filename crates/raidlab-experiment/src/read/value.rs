//! Single values: sizes, rates, counts, times, words.
use super::tree::{At, Entry, Node, shown};
use super::wanted::{self, Wanted};
use crate::diagnostic::{Diagnostic, Problems};
use crate::dirty::{Dirty, ParseDirtyError};
use crate::words::Word;
use raidlab_core::price::Price;
use raidlab_core::suggest::{list, nearest};
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, ParseBytesError};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::de::DeValue;

impl Node<'_, '_> {
    /// What the thing of this table costs.
    pub(crate) fn price(&self) -> Option<At<Price>> {
        let entry = self.entry("price")?;
        let number = match entry.get_ref() {
            DeValue::Integer(n) => Some(n.as_str()),
            DeValue::Float(n) => Some(n.as_str()),
            _ => None,
        };
        if let Some(number) = number {
            let message = "'price' is a number without a currency";
            let help = format!(
                "write \"{} EUR\", or the letters of another one",
                shown(number)
            );
            self.problems.wrong(&entry.span(), message, &help);
            return None;
        }
        let price = self.problems.parsed("price", entry)?;
        Some(At::new(price, entry.span()))
    }
}

impl Problems {
    /// A text.
    pub(crate) fn text(&self, key: &str, entry: Entry<'_, '_>) -> Option<At<String>> {
        self.text_for(&wanted::of(key), key, entry)
    }

    /// A text that says what is wanted.
    fn text_for(&self, wanted: &Wanted, key: &str, entry: Entry<'_, '_>) -> Option<At<String>> {
        match entry.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => {
                Some(At::new(text.trim().to_owned(), entry.span()))
            }
            DeValue::String(_) => {
                self.wrong(
                    &entry.span(),
                    format!("'{key}' is empty"),
                    &wanted.help_where_empty(key),
                );
                None
            }
            _ => {
                let help = wanted.help(key, entry.get_ref());
                self.of_type(key, wanted.what, entry, &help);
                None
            }
        }
    }

    /// A text that is read as something.
    pub(crate) fn parsed<T>(&self, key: &str, entry: Entry<'_, '_>) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = self.text(key, entry)?;
        match text.value.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(Diagnostic::from_error(text.at, &error.to_string()));
                None
            }
        }
    }

    /// A size with its unit; a bare 0 is one too.
    pub(crate) fn size(&self, key: &str, entry: Entry<'_, '_>) -> Option<Bytes> {
        let text = match entry.get_ref() {
            DeValue::Integer(n) if n.as_str() == "0" => return Some(Bytes(0)),
            DeValue::Integer(n) if n.as_str().starts_with('-') => return self.negative(key, entry),
            DeValue::Integer(_) | DeValue::Float(_) => {
                let n = match entry.get_ref() {
                    DeValue::Integer(n) => n.as_str(),
                    DeValue::Float(n) => n.as_str(),
                    _ => "",
                };
                let message = format!("'{key}' is a size without a unit");
                let bytes = match entry.get_ref() {
                    DeValue::Integer(_) => format!(", or \"{}B\" for bytes", shown(n)),
                    _ => String::new(),
                };
                let help = format!(
                    "write what is meant, such as \"{0}KiB\" or \"{0}MiB\"{bytes}",
                    shown(n)
                );
                self.wrong(&entry.span(), message, &help);
                return None;
            }
            DeValue::String(text) if text.trim_start().starts_with('-') => {
                return self.negative(key, entry);
            }
            _ => self.text_for(&wanted::SIZE, key, entry)?.value,
        };
        match text.parse::<Bytes>() {
            Ok(size) => Some(size),
            Err(ParseBytesError::Ambiguous {
                binary,
                binary_bytes,
                decimal,
                decimal_bytes,
                ..
            }) => {
                let message = format!("the size '{}' is ambiguous", shown(&text));
                let help = format!(
                    "write \"{binary}\" ({binary_bytes} bytes) or \"{decimal}\" ({decimal_bytes} bytes)"
                );
                self.wrong(&entry.span(), message, &help);
                None
            }
            Err(error) => {
                self.push(Diagnostic::from_error(entry.span(), &error.to_string()));
                None
            }
        }
    }

    /// Bytes a second: a size with `/s`.
    pub(crate) fn rate(&self, key: &str, entry: Entry<'_, '_>) -> Option<u64> {
        if let DeValue::Integer(_) | DeValue::Float(_) = entry.get_ref() {
            let message = format!("'{key}' is a rate without a unit");
            let help = format!(
                "write what is meant, such as \"{}MB/s\"",
                label(entry.get_ref())
            );
            self.wrong(&entry.span(), message, &help);
            return None;
        }
        let text = self.text_for(&wanted::RATE, key, entry)?.value;
        if text.starts_with('-') {
            return self.not_above_zero(key, entry);
        }
        let Some(size) = text.strip_suffix("/s") else {
            let message = format!("'{}' is no rate", shown(&text));
            self.wrong(
                &entry.span(),
                message,
                "write bytes a second, such as \"133MB/s\" or \"100MiB/s\"",
            );
            return None;
        };
        match size.parse::<Bytes>() {
            Ok(size) if size.0 > 0 => Some(size.0),
            Ok(_) => {
                let message = format!("a rate of 0 for '{key}' moves nothing");
                self.wrong(&entry.span(), message, "write more than 0");
                None
            }
            Err(error) => {
                self.push(Diagnostic::from_error(entry.span(), &error.to_string()));
                None
            }
        }
    }

    /// A length of time, above 0.
    pub(crate) fn span(&self, key: &str, entry: Entry<'_, '_>) -> Option<Span> {
        if matches!(entry.get_ref(), DeValue::String(text) if text.trim().starts_with('-')) {
            return self.not_above_zero(key, entry);
        }
        let span = self.time_as(&wanted::TIME, key, entry)?;
        if span == Span::ZERO {
            let message = format!("'{key}' is no time at all");
            self.wrong(&entry.span(), message, "write more than 0");
            return None;
        }
        Some(span)
    }

    /// A length of time, which may be none.
    pub(crate) fn time(&self, key: &str, entry: Entry<'_, '_>) -> Option<Span> {
        self.time_as(&wanted::WHILE, key, entry)
    }

    fn time_as(&self, wanted: &Wanted, key: &str, entry: Entry<'_, '_>) -> Option<Span> {
        if matches!(entry.get_ref(), DeValue::Integer(_) | DeValue::Float(_)) {
            let message = format!("'{key}' is a time without a unit");
            let help = format!("write it with its unit, such as {}", wanted.example());
            self.wrong(&entry.span(), message, &help);
            return None;
        }
        let text = self.text_for(wanted, key, entry)?.value;
        if text.starts_with('-') {
            return self.negative(key, entry);
        }
        match text.parse::<Span>() {
            Ok(span) => Some(span),
            Err(error) => {
                self.push(Diagnostic::from_error(entry.span(), &error.to_string()));
                None
            }
        }
    }

    /// A share of the memory in per cent, or a size.
    pub(crate) fn dirty(&self, key: &str, entry: Entry<'_, '_>) -> Option<Dirty> {
        let bare = match entry.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => true,
            // Bytes of a size, which nobody means here.
            DeValue::String(text) => text.trim().parse::<u64>().is_ok(),
            _ => false,
        };
        if bare {
            let written = label(entry.get_ref());
            let message = format!("'{key}' is a number without a unit");
            let help = format!("write \"{written}%\" of the memory, or a size such as \"256MiB\"");
            self.wrong(&entry.span(), message, &help);
            return None;
        }
        let text = self.text_for(&wanted::DIRTY, key, entry)?.value;
        if text.starts_with('-') {
            return self.negative(key, entry);
        }
        match text.parse::<Dirty>() {
            Ok(dirty) => Some(dirty),
            // Told as any other size.
            Err(ParseDirtyError::Size(_)) => self.size(key, entry).map(Dirty::Size),
            Err(error) => {
                self.push(Diagnostic::from_error(entry.span(), &error.to_string()));
                None
            }
        }
    }

    /// A whole number in a range.
    pub(crate) fn count(
        &self,
        key: &str,
        entry: Entry<'_, '_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let DeValue::Integer(n) = entry.get_ref() else {
            let help = wanted::number(key, entry.get_ref(), &range);
            self.of_type(key, "a whole number", entry, &help);
            return None;
        };
        let digits = n.as_str().trim_start_matches('+').replace('_', "");
        match u64::from_str_radix(&digits, n.radix()) {
            Ok(n) if range.contains(&n) => Some(n),
            _ => {
                let message = format!(
                    "'{key}' is from {} to {}, not {}",
                    range.start(),
                    range.end(),
                    shown(n.as_str())
                );
                self.push(Diagnostic::new(entry.span(), message));
                None
            }
        }
    }

    /// As [`Self::count`], of 32 bits.
    pub(crate) fn count32(
        &self,
        key: &str,
        entry: Entry<'_, '_>,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        u32::try_from(self.count(key, entry, range)?).ok()
    }

    /// Yes or no.
    pub(crate) fn flag(&self, key: &str, entry: Entry<'_, '_>) -> Option<bool> {
        match entry.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            DeValue::String(word) if matches!(&**word, "yes" | "on") => Some(true),
            DeValue::String(word) if matches!(&**word, "no" | "off") => Some(false),
            DeValue::String(other) => {
                let message = format!("'{key}' is yes or no, not '{}'", shown(other));
                self.wrong(&entry.span(), message, "write true or false");
                None
            }
            _ => {
                self.of_type(key, "yes or no", entry, "write true or false");
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn word<W: Word>(&self, key: &str, entry: Entry<'_, '_>) -> Option<W> {
        let known: Vec<&str> = W::all().iter().map(|w| w.word()).collect();
        if !entry.get_ref().is_str() {
            let help = wanted::word(key, entry.get_ref(), &known);
            self.of_type(key, "a word", entry, &help);
            return None;
        }
        let text = self.text(key, entry)?;
        let found = W::all().iter().find(|w| w.word() == text.value);
        if found.is_none() {
            self.unknown(&text.at, W::WHAT, &text.value, known);
        }
        found.copied()
    }

    /// A list; one value counts as a list of one.
    pub(crate) fn items<'a, 'i>(entry: Entry<'a, 'i>) -> Vec<Entry<'a, 'i>> {
        match entry.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![entry],
        }
    }

    /// A list of texts; one text counts as a list of one.
    pub(crate) fn texts(&self, key: &str, entry: Entry<'_, '_>) -> Vec<At<String>> {
        let items = Self::items(entry);
        items.iter().filter_map(|i| self.text(key, i)).collect()
    }

    /// A share: `0.02`, or `"2%"`.
    pub(crate) fn share(&self, key: &str, entry: Entry<'_, '_>) -> Option<f64> {
        let value = match entry.get_ref() {
            DeValue::Float(n) => n.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(n) => n.as_str().parse().ok(),
            DeValue::String(text) => text
                .strip_suffix('%')
                .and_then(|n| n.trim().parse::<f64>().ok())
                .map(|n| n / 100.0),
            _ => None,
        };
        if let Some(share) = value.filter(|n: &f64| *n > 0.0 && *n < 1.0) {
            return Some(share);
        }
        self.wrong(
            &entry.span(),
            format!("'{key}' is a share above 0 and below 1"),
            "write 0.02 or \"2%\" for two per cent",
        );
        None
    }

    fn not_above_zero<T>(&self, key: &str, entry: Entry<'_, '_>) -> Option<T> {
        let message = format!("'{key}' must be more than 0");
        self.push(Diagnostic::new(entry.span(), message));
        None
    }

    fn negative<T>(&self, key: &str, entry: Entry<'_, '_>) -> Option<T> {
        self.push(Diagnostic::new(
            entry.span(),
            format!("'{key}' must not be negative"),
        ));
        None
    }

    /// A name that must be one of those that the file or the caller has.
    pub(crate) fn reference<'k>(
        &self,
        name: &At<String>,
        what: &str,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) -> bool {
        let found = known.clone().into_iter().any(|one| one == name.value);
        if !found {
            self.unknown(&name.at, what, &name.value, known);
        }
        found
    }
}

/// What a report calls a value: the words of the file.
pub(crate) fn label(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => shown(text.trim()),
        DeValue::Integer(n) => shown(n.as_str()),
        DeValue::Float(n) => shown(n.as_str()),
        DeValue::Boolean(true) => "yes".to_owned(),
        DeValue::Boolean(false) => "no".to_owned(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) if items.is_empty() => "none".to_owned(),
        DeValue::Array(items) => {
            let numbers = items.iter().all(|i| i.get_ref().is_integer());
            let all: Vec<String> = items.iter().map(|i| label(i.get_ref())).collect();
            shown(&all.join(if numbers { "+" } else { "," }))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A size as reports write it, exactly: `64KiB`; as it was written when no binary unit divides it.
pub(crate) fn size_label(size: Bytes, written: &str) -> String {
    let text = size.to_string().replace(' ', "");
    match text.parse::<Bytes>() {
        Ok(same) if same == size => text,
        _ => shown(written),
    }
}

/// A hint with the nearest name, for messages that are not about an unknown word alone.
pub(crate) fn hint<'k>(typed: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> String {
    match nearest(typed, known.clone()) {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("known: {}", list(known)),
    }
}
