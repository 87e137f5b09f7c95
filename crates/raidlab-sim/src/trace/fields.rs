//! The fields of a line, with their columns for messages.
use super::TraceError;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_core::words::quoted;

/// A line that is taken apart from the left.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    line: &'a str,
    at: usize,
    number: usize,
}

/// One field and where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) text: &'a str,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a str, number: usize) -> Self {
        Self {
            line,
            at: 0,
            number,
        }
    }

    /// Number of the line, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// All of the line.
    pub(super) fn line(&self) -> &'a str {
        self.line
    }

    fn error_at(&self, at: usize, message: String) -> TraceError {
        TraceError {
            line: self.number,
            column: self.line[..at].chars().count() + 1,
            message,
        }
    }

    pub(super) fn error(&self, field: Field<'_>, expected: &str) -> TraceError {
        let message = format!(
            "{} is not {expected}: correct or remove the line",
            quoted(field.text)
        );
        self.error_at(field.at, message)
    }

    /// Something else is wrong with a field than what it should be.
    pub(super) fn wrong(&self, field: Field<'_>, message: String) -> TraceError {
        self.error_at(field.at, message)
    }

    pub(super) fn missing(&self, what: &str) -> TraceError {
        let message =
            format!("{what} is missing at the end of the line: correct or remove the line");
        self.error_at(self.line.len(), message)
    }

    /// The next word, if there is one.
    pub(super) fn word_if(&mut self) -> Option<Field<'a>> {
        let rest = &self.line[self.at..];
        let begin = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.line[begin..];
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at = begin + length;
        let text = &rest[..length];
        (!text.is_empty()).then_some(Field { text, at: begin })
    }

    pub(super) fn word(&mut self, what: &str) -> Result<Field<'a>, TraceError> {
        self.word_if().ok_or_else(|| self.missing(what))
    }

    /// The next part up to a comma, without blanks around it.
    pub(super) fn part(&mut self, what: &str) -> Result<Field<'a>, TraceError> {
        if self.at > self.line.len() {
            return Err(self.missing(what));
        }
        let rest = &self.line[self.at..];
        let length = rest.find(',').unwrap_or(rest.len());
        let text = rest[..length].trim_start();
        let at = self.at + (length - text.len());
        let field = Field {
            text: text.trim_end(),
            at,
        };
        self.at += length + 1;
        if field.text.is_empty() {
            return Err(self.error_at(at, format!("{what} is missing: correct or remove the line")));
        }
        Ok(field)
    }

    pub(super) fn whole(&self, field: Field<'_>, what: &str) -> Result<u64, TraceError> {
        let digits = !field.text.is_empty() && field.text.bytes().all(|b| b.is_ascii_digit());
        let value = field.text.parse().ok().filter(|_| digits);
        value.ok_or_else(|| self.error(field, &format!("{what}, a whole number")))
    }

    /// The number of a block of 512 bytes, whose bytes can be counted, too.
    pub(super) fn block(&self, field: Field<'_>, what: &str) -> Result<u64, TraceError> {
        let lba = self.whole(field, what)?;
        if lba > u64::MAX / SECTOR {
            return Err(self.error(field, &format!("{what} below 2^55")));
        }
        Ok(lba)
    }

    pub(super) fn small(&self, field: Field<'_>, what: &str) -> Result<u32, TraceError> {
        let value = self.whole(field, what)?;
        u32::try_from(value).map_err(|_| self.error(field, &format!("{what} below 2^32")))
    }

    /// A decimal number of units of `unit` nanoseconds (a power of ten), exactly, cut to whole
    /// nanoseconds.
    pub(super) fn time(&self, field: Field<'_>, unit: u64, what: &str) -> Result<Span, TraceError> {
        let wrong = || {
            self.error(
                field,
                &format!("{what}, a decimal number that is not negative"),
            )
        };
        let (whole, fraction) = field.text.split_once('.').unwrap_or((field.text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if field.text.len() > 40 || whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(wrong());
        }
        let mut nanos = whole
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(unit))
            .ok_or_else(wrong)?;
        let mut place = unit;
        for digit in fraction.bytes() {
            place /= 10;
            nanos = nanos
                .checked_add(u64::from(digit - b'0') * place)
                .ok_or_else(wrong)?;
        }
        Ok(Span(nanos))
    }

    /// First sector and sectors of a request of bytes.
    pub(super) fn extent(
        &self,
        offset: u64,
        bytes: u64,
        field: Field<'_>,
    ) -> Result<(u64, u32), TraceError> {
        let end = offset.checked_add(bytes).filter(|_| bytes > 0);
        let end = end.ok_or_else(|| self.error(field, "a size that a request can have"))?;
        let lba = offset / SECTOR;
        let sectors = u32::try_from(end.div_ceil(SECTOR) - lba).ok();
        let sectors = sectors.filter(|n| *n < 1 << 23);
        let sectors = sectors.ok_or_else(|| self.error(field, "a size below 4 GiB"))?;
        Ok((lba, sectors))
    }
}
