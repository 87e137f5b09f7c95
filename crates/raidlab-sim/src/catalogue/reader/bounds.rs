//! Values within bounds.
use super::Table;
use std::fmt::Display;
use std::ops::RangeInclusive;

impl Table<'_, '_> {
    /// A number within bounds, which are told in `unit`. What is beyond is reported, and gives the bound, so that what else is
    /// wrong is found, too.
    pub(in crate::catalogue) fn between(
        &self,
        key: &str,
        bounds: RangeInclusive<f64>,
        unit: &str,
    ) -> Option<f64> {
        let value = self.number(key)?;
        self.within(key, value, &bounds, unit);
        Some(value.clamp(*bounds.start(), *bounds.end()))
    }

    /// The same of a whole number below 2^53.
    pub(in crate::catalogue) fn whole_between(
        &self,
        key: &str,
        bounds: RangeInclusive<u64>,
        unit: &str,
    ) -> Option<u64> {
        let value = self.whole(key)?;
        self.within(key, value, &bounds, unit);
        Some(value.clamp(*bounds.start(), *bounds.end()))
    }

    /// Reports a value that is beyond the bounds.
    fn within<T: PartialOrd + Display>(
        &self,
        key: &str,
        value: T,
        bounds: &RangeInclusive<T>,
        unit: &str,
    ) {
        let (path, least, most) = (self.path_of(key), bounds.start(), bounds.end());
        self.unless(
            bounds.contains(&value),
            key,
            format!("'{path}' is {value} {unit}: between {least} and {most} is possible"),
        );
    }

    /// A physical sector in bytes.
    pub(in crate::catalogue) fn physical_sector(&self, key: &str) -> Option<u64> {
        let bytes = self.whole(key)?;
        if matches!(bytes, 512 | 4096) {
            return Some(bytes);
        }
        let path = self.path_of(key);
        let message = format!("'{path}' is {bytes} bytes: 512 or 4096 is possible");
        self.reader.report_at(&path, message);
        Some(512)
    }

    /// Reports at a key unless something is fine.
    pub(in crate::catalogue) fn unless(&self, fine: bool, key: &str, message: impl Into<String>) {
        if !fine {
            self.reader.report_at(&self.path_of(key), message);
        }
    }
}
