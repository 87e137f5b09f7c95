//! What dd says of its transfer: bytes, seconds and a rate, in English or in whatever language.
use crate::import::scan::{LARGEST, decimal, expected, integer, words};
use raidlab_core::units::{GIB, KIB, MIB};
use winnow::combinator::{alt, delimited, opt};
use winnow::prelude::*;
use winnow::token::take_till;

/// What the line of the transfer tells.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    /// Bytes a second and the step they were rounded to; `None` where dd could not divide.
    rate: Option<(f64, f64)>,
}

/// `2997 bytes (3.0 kB, 2.9 KiB) copied, 3.2217e-05 s, 93.0 MB/s` of GNU's,
/// `2997 bytes (2.9KB) copied, 0.000032 seconds, 88.7MB/s` of BusyBox's,
/// `2997 bytes transferred in 0.000032 secs (93003227 bytes/sec)` of BSD's and macOS's.
pub(super) fn transfer(input: &mut &str) -> winnow::Result<Transfer> {
    let bytes = integer.parse_next(input)?;
    (' ', alt(("bytes", "byte")), ' ')
        .context(expected("bytes"))
        .parse_next(input)?;
    let is_bsd = opt("transferred in ").parse_next(input)?.is_some();
    if is_bsd {
        let seconds = decimal.parse_next(input)?;
        let rate = delimited(" secs (", told_rate, " bytes/sec)");
        let rate = rate
            .context(expected("secs and a rate such as (93003227 bytes/sec)"))
            .parse_next(input)?;
        return Ok(Transfer {
            bytes,
            seconds,
            rate: Some(rate),
        });
    }
    opt(delimited('(', take_till(1.., ')'), ") ")).parse_next(input)?;
    words("copied,").parse_next(input)?;
    let seconds = decimal.parse_next(input)?;
    (' ', alt(("seconds", "s")), ", ")
        .context(expected("s,"))
        .parse_next(input)?;
    let rate = alt((
        "Infinity B/s".value(None),
        (told_rate, alt((decimal_unit, binary_unit)))
            .map(|((rate, step), unit)| Some((rate * unit, step * unit))),
    ));
    let rate = rate
        .context(expected("a rate such as 93.0 MB/s"))
        .parse_next(input)?;
    Ok(Transfer {
        bytes,
        seconds,
        rate,
    })
}

/// A number and the step of its last digit.
fn told_rate(input: &mut &str) -> winnow::Result<(f64, f64)> {
    let (rate, digits) = decimal.with_taken().parse_next(input)?;
    let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len().min(20));
    Ok((rate, 0.1_f64.powi(decimals as i32)))
}

/// GNU's units are powers of 1000 after a space.
fn decimal_unit(input: &mut &str) -> winnow::Result<f64> {
    let prefix = alt((
        "k".value(1e3),
        "M".value(1e6),
        "G".value(1e9),
        "T".value(1e12),
        "P".value(1e15),
        "E".value(1e18),
        "".value(1.0),
    ));
    delimited(' ', prefix, "B/s").parse_next(input)
}

/// BusyBox's are powers of 1024 without one.
fn binary_unit(input: &mut &str) -> winnow::Result<f64> {
    let prefix = alt((
        alt(("K", "k")).value(KIB as f64),
        "M".value(MIB as f64),
        "G".value(GIB as f64),
        "T".value(GIB as f64 * 1024.0),
        "".value(1.0),
    ));
    (prefix, "B/s").map(|(unit, _)| unit).parse_next(input)
}

impl Transfer {
    /// What the rate should be when it is not bytes by seconds. Seconds have six digits (GNU) or six
    /// decimals, the rate a last digit that is rounded one way or the other.
    pub(super) fn contradicted(&self) -> Option<f64> {
        let (rate, step) = self.rate?;
        let bytes = self.bytes as f64;
        if self.seconds <= 0.0 || bytes <= 0.0 {
            return None;
        }
        let slack = (self.seconds * 1e-5).max(1e-6);
        let least = bytes / (self.seconds + slack) - step;
        let most = bytes / (self.seconds - slack).max(0.0) + step;
        (rate < least || rate > most).then_some(bytes / self.seconds)
    }
}

/// The same in another language, by what no translation changes: whole bytes first, in brackets the same
/// rounded, seconds, and last a rate with its unit; a comma may stand before the decimals. That the rate
/// is bytes by seconds ([`Transfer::contradicted`]) tells whether it was understood.
pub(super) fn foreign(line: &str) -> Option<Transfer> {
    if line.split_whitespace().any(is_negative) {
        return None;
    }
    let numbers = numbers(line);
    let [first, rounded @ .., seconds, rate] = numbers.as_slice() else {
        return None;
    };
    if rounded.len() > 2 || first.decimals.is_some() {
        return None;
    }
    let unit = foreign_unit(&line[rate.end..])?;
    let step = 0.1_f64.powi(rate.decimals.unwrap_or(0).min(20) as i32);
    Some(Transfer {
        bytes: line[first.start..first.end].parse().ok()?,
        seconds: seconds.value,
        rate: Some((rate.value * unit, step * unit)),
    })
}

/// Whether a word is a number below zero, which dd writes in no language.
fn is_negative(word: &str) -> bool {
    let number = word.trim_start_matches('(').strip_prefix(['-', '\u{2212}']);
    number.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

/// `GB/s`, of which the second may be in another script; until the end of the line.
fn foreign_unit(rest: &str) -> Option<f64> {
    let (unit, time) = rest.trim().split_once("B/")?;
    let is_short = !time.is_empty() && time.chars().count() <= 8;
    let prefixes = ["", "k", "M", "G", "T", "P", "E"];
    let power = prefixes.iter().position(|prefix| *prefix == unit)?;
    is_short.then(|| 1e3_f64.powi(power as i32))
}

/// A number in a line.
struct Number {
    value: f64,
    /// Digits after a point or comma; `None` without one, and without an exponent.
    decimals: Option<usize>,
    start: usize,
    end: usize,
}

/// The numbers of a line: digits, a point or comma and more digits, an exponent.
fn numbers(line: &str) -> Vec<Number> {
    let bytes = line.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (start, whole) = (at, digits(at));
        if whole == 0 {
            at += 1;
            continue;
        }
        at += whole;
        let mut decimals = None;
        if matches!(bytes.get(at), Some(b'.' | b',')) && digits(at + 1) > 0 {
            decimals = Some(digits(at + 1));
            at += 1 + digits(at + 1);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(at + 1 + sign);
            if exponent > 0 {
                at += 1 + sign + exponent;
                decimals = decimals.or(Some(0));
            }
        }
        let value = line[start..at].replace(',', ".").parse::<f64>();
        if let Some(value) = value.ok().filter(|value| *value <= LARGEST) {
            found.push(Number {
                value,
                decimals,
                start,
                end: at,
            });
        }
    }
    found
}
