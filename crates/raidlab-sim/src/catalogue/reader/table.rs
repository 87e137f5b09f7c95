//! One table of a model file, and the values in it.
use super::{Fact, Mark, Reader};
use raidlab_core::suggest;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One table of the file; remembers which keys were read.
pub(in crate::catalogue) struct Table<'r, 'i> {
    pub(in crate::catalogue) reader: &'r Reader<'r>,
    table: Option<&'r DeTable<'i>>,
    path: String,
    /// Source of all values that have none of their own.
    source: Option<String>,
    used: RefCell<BTreeSet<String>>,
}

type Value<'r, 'i> = &'r Spanned<DeValue<'i>>;

impl<'r, 'i> Table<'r, 'i> {
    pub(in crate::catalogue) fn root(reader: &'r Reader<'r>, table: &'r DeTable<'i>) -> Self {
        Self {
            reader,
            table: Some(table),
            path: String::new(),
            source: None,
            used: RefCell::default(),
        }
    }

    fn child(
        &self,
        path: String,
        table: Option<&'r DeTable<'i>>,
        at: Option<Range<usize>>,
    ) -> Self {
        if let Some(at) = at {
            self.reader
                .notes
                .borrow_mut()
                .spans
                .insert(path.clone(), at);
        }
        let mut child = Self {
            reader: self.reader,
            table,
            path,
            source: self.source.clone(),
            used: RefCell::default(),
        };
        if let Some(source) = child.text_if("source") {
            child.source = Some(source);
        }
        child
    }

    pub(in crate::catalogue) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn entry(&self, key: &str) -> Option<Value<'r, 'i>> {
        self.used.borrow_mut().insert(key.to_owned());
        self.table?.get(key)
    }

    pub(in crate::catalogue) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    fn wrong<T>(&self, key: &str, expected: &str, value: Value<'_, '_>) -> Option<T> {
        let found = value.get_ref().type_str();
        let path = self.path_of(key);
        let message = format!("'{path}' is a value of type {found}, but {expected} is needed");
        self.reader.report(&value.span(), message);
        None
    }

    /// A table below this one; one that is not there has no keys.
    pub(in crate::catalogue) fn table(&self, key: &str) -> Self {
        let path = self.path_of(key);
        let Some(value) = self.entry(key) else {
            return self.child(path, None, None);
        };
        match value.get_ref() {
            DeValue::Table(table) => self.child(path, Some(table), Some(value.span())),
            _ => {
                self.wrong::<()>(key, "a table", value);
                self.child(path, None, Some(value.span()))
            }
        }
    }

    /// The tables of a list of tables.
    pub(in crate::catalogue) fn tables(&self, key: &str) -> Vec<Self> {
        let Some(value) = self.entry(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong::<()>(key, "a list of tables", value);
            return Vec::new();
        };
        let table = |(number, item): (usize, Value<'r, 'i>)| match item.get_ref() {
            DeValue::Table(table) => {
                let path = format!("{}.{number}", self.path_of(key));
                Some(self.child(path, Some(table), Some(item.span())))
            }
            _ => self.wrong(key, "a table", item),
        };
        items.iter().enumerate().filter_map(table).collect()
    }

    fn text_if(&self, key: &str) -> Option<String> {
        let value = self.entry(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.wrong(key, "a text", value),
        }
    }

    /// A text without a source that must be there.
    pub(in crate::catalogue) fn text(&self, key: &str) -> Option<String> {
        if !self.has(key) {
            self.missing(key, "a text");
        }
        self.text_if(key)
    }

    /// Says that something must be there.
    pub(in crate::catalogue) fn missing(&self, key: &str, what: &str) {
        let path = self.path_of(key);
        self.reader
            .report_at(&path, format!("'{path}' is missing: give {what}"));
    }

    /// One of some words, without a source.
    pub(in crate::catalogue) fn choice(
        &self,
        key: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let text = self.text(key)?;
        self.one_of(key, &text, words)
    }

    fn one_of(&self, key: &str, text: &str, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().find(|word| **word == text);
        if found.is_none() {
            let path = self.path_of(key);
            let message = format!("'{path}' is '{text}': write {}", words.join(" or "));
            self.reader.report(&self.entry(key)?.span(), message);
        }
        found.copied()
    }

    /// The value of a key with its source booked; `None` when it is not there.
    fn sourced(&self, key: &str) -> Option<Value<'r, 'i>> {
        let outer = self.entry(key)?;
        let path = self.path_of(key);
        let mut value = outer;
        let mut source = self.source.clone();
        if let DeValue::Table(table) = outer.get_ref() {
            let inner = Self {
                reader: self.reader,
                table: Some(table),
                path: path.clone(),
                source: None,
                used: RefCell::default(),
            };
            source = inner.text_if("source").or(source);
            let Some(found) = inner.entry("value") else {
                let message =
                    format!("'{path}' has no value: write {{ value = ..., source = \"...\" }}");
                self.reader.report(&outer.span(), message);
                return None;
            };
            inner.deny_unknown();
            value = found;
        }
        self.reader
            .notes
            .borrow_mut()
            .spans
            .insert(path.clone(), value.span());
        let split = source.as_deref().and_then(Mark::split);
        let Some((mark, source)) = split else {
            let message = match source {
                None => format!(
                    "'{path}' has no source: write {{ value = ..., source = \"S: ...\" }}, or a source for its whole table"
                ),
                Some(source) => format!(
                    "the source of '{path}' is '{source}': begin it with M:, S:, K:, K-low:, D:, fitted: or assumed:"
                ),
            };
            self.reader.report(&outer.span(), message);
            return Some(value);
        };
        let fact = Fact {
            key: path,
            value: words(value.get_ref()),
            mark,
            source: source.to_owned(),
        };
        let at = outer.span().start;
        self.reader.notes.borrow_mut().facts.push((at, fact));
        Some(value)
    }

    /// A number that is not negative.
    pub(in crate::catalogue) fn number(&self, key: &str) -> Option<f64> {
        let value = self.sourced(key)?;
        self.number_of(key, value)
    }

    fn number_of(&self, key: &str, value: Value<'_, '_>) -> Option<f64> {
        let text = match value.get_ref() {
            DeValue::Integer(n) => n.as_str(),
            DeValue::Float(n) => n.as_str(),
            _ => return self.wrong(key, "a number", value),
        };
        match text.replace('_', "").parse::<f64>() {
            Ok(number) if (0.0..1e15).contains(&number) => Some(number),
            _ => {
                let path = self.path_of(key);
                let message = format!(
                    "'{path}' is {text}: write a number that is neither negative nor beyond all bounds"
                );
                self.reader.report(&value.span(), message);
                None
            }
        }
    }

    /// A number that was or will be read elsewhere: nothing is booked or reported.
    pub(in crate::catalogue) fn peek(&self, key: &str) -> Option<f64> {
        let mut value = self.table?.get(key)?;
        if let DeValue::Table(table) = value.get_ref() {
            value = table.get("value")?;
        }
        match value.get_ref() {
            DeValue::Integer(n) => n.as_str().parse().ok(),
            DeValue::Float(n) => n.as_str().parse().ok(),
            _ => None,
        }
    }

    /// A whole number below 2^53.
    pub(in crate::catalogue) fn whole(&self, key: &str) -> Option<u64> {
        let value = self.sourced(key)?;
        self.whole_of(key, value)
    }

    fn whole_of(&self, key: &str, value: Value<'_, '_>) -> Option<u64> {
        let number = self.number_of(key, value)?;
        if libm::floor(number) == number && number < (1_u64 << 53) as f64 {
            return Some(number as u64);
        }
        let path = self.path_of(key);
        let message = format!("'{path}' is {number}: write a whole number");
        self.reader.report(&value.span(), message);
        None
    }

    /// A whole number below 2^32.
    pub(in crate::catalogue) fn count(&self, key: &str) -> Option<u32> {
        let whole = self.whole(key)?;
        let count = u32::try_from(whole).ok();
        if count.is_none() {
            let path = self.path_of(key);
            self.reader
                .report_at(&path, format!("'{path}' is {whole}: that is too large"));
        }
        count
    }

    pub(in crate::catalogue) fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.sourced(key)?;
        match value.get_ref() {
            DeValue::Boolean(yes) => Some(*yes),
            _ => self.wrong(key, "true or false", value),
        }
    }

    /// One of some words, with a source.
    pub(in crate::catalogue) fn word(
        &self,
        key: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let value = self.sourced(key)?;
        match value.get_ref() {
            DeValue::String(text) => self.one_of(key, text, words),
            _ => self.wrong(key, "a text", value),
        }
    }

    /// A list of whole numbers.
    pub(in crate::catalogue) fn wholes(&self, key: &str) -> Option<Vec<u64>> {
        let value = self.sourced(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(key, "a list of whole numbers", value);
        };
        items.iter().map(|item| self.whole_of(key, item)).collect()
    }

    /// A list of pairs of numbers.
    pub(in crate::catalogue) fn pairs(&self, key: &str) -> Option<Vec<(f64, f64)>> {
        let value = self.sourced(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(key, "a list of pairs", value);
        };
        let pair = |item: Value<'_, '_>| match item.get_ref() {
            DeValue::Array(pair) if pair.len() == 2 => Some((
                self.number_of(key, &pair[0])?,
                self.number_of(key, &pair[1])?,
            )),
            _ => self.wrong(key, "a pair such as [1, 0.8]", item),
        };
        items.iter().map(pair).collect()
    }

    /// Reports the keys that nothing has read, with the known key that is most like each.
    pub(in crate::catalogue) fn deny_unknown(&self) {
        let used = self.used.borrow();
        for key in self.table.into_iter().flat_map(|table| table.keys()) {
            if !used.contains(key.get_ref().as_ref()) {
                let path = self.path_of(key.get_ref());
                let known: Vec<_> = used
                    .iter()
                    .map(String::as_str)
                    .filter(|k| *k != "source")
                    .collect();
                let message = format!(
                    "'{path}' is not known here{}: known are {}",
                    suggest::meant(nearest(key.get_ref(), &known)),
                    known.join(", ")
                );
                self.reader.report(&key.span(), message);
            }
        }
    }
}

/// The key that was most likely meant; those of model files have underscores, names elsewhere dashes.
fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let dashed: Vec<String> = known.iter().map(|key| key.replace('_', "-")).collect();
    let found = suggest::nearest(typed, dashed.iter().map(String::as_str))?;
    let at = dashed.iter().position(|key| key == found)?;
    known.get(at).copied()
}

fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(n) => n.as_str().to_owned(),
        DeValue::Float(n) => n.as_str().to_owned(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) if items.len() > 8 => format!("{} entries", items.len()),
        DeValue::Array(items) => {
            let all: Vec<_> = items.iter().map(|item| words(item.get_ref())).collect();
            format!("[{}]", all.join(", "))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}
