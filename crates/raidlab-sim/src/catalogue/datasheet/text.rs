//! Writing a model file: each value with its source, tables in the order of the catalogue's own files.
use super::{GB, TB};
use raidlab_core::units::Bytes;
use toml::Value;

/// A number with three decimals at most.
pub(super) fn figure(value: f64) -> String {
    let rounded = libm::round(value * 1e3) / 1e3;
    format!("{rounded}")
}

/// A capacity as drives are sold.
pub(super) fn capacity(bytes: Bytes) -> String {
    let of = |unit: u64, name: &str| format!("{} {name}", figure(bytes.0 as f64 / unit as f64));
    match bytes.0 {
        TB.. => of(TB, "TB"),
        GB.. => of(GB, "GB"),
        _ => of(1_000_000, "MB"),
    }
}

/// Bytes of which no more than two digits are known.
pub(super) fn roughly(bytes: f64) -> String {
    let unit = libm::pow(10.0, libm::floor(libm::log10(bytes.max(10.0))) - 1.0);
    capacity(Bytes((libm::round(bytes / unit) * unit) as u64))
}

/// A file as it grows.
pub(super) struct File(String);

impl File {
    pub(super) fn new(name: &str, kind: &str, description: &str) -> Self {
        let quoted = |text: &str| Value::from(text).to_string();
        Self(format!(
            "# Made from the figures of a datasheet. The mark before each source says how far the value can be trusted:\n\
             # K: given; D: by arithmetic from what is given; assumed: chosen, as it is said there. Put right what you\n\
             # know better, and say from where: 'M: measured', 'S: title of what was read'.\n\
             name = {}\nkind = \"{kind}\"\ndescription = {}\n",
            quoted(name),
            quoted(description)
        ))
    }

    pub(super) fn table(&mut self, name: &str) {
        self.0.push_str(&format!("\n[{name}]\n"));
    }

    pub(super) fn word(&mut self, key: &str, value: &str, source: &str) {
        self.line(key, &Value::from(value).to_string(), source);
    }

    pub(super) fn number(&mut self, key: &str, value: f64, source: &str) {
        self.line(key, &figure(value), source);
    }

    pub(super) fn whole(&mut self, key: &str, value: u64, source: &str) {
        self.line(key, &value.to_string(), source);
    }

    pub(super) fn flag(&mut self, key: &str, value: bool, source: &str) {
        self.line(key, &value.to_string(), source);
    }

    fn line(&mut self, key: &str, value: &str, source: &str) {
        let source = Value::from(source);
        self.0.push_str(&format!(
            "{key} = {{ value = {value}, source = {source} }}\n"
        ));
    }

    pub(super) fn end(self) -> String {
        self.0
    }
}
