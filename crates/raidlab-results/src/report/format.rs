//! Numbers as a reader wants them.
use crate::record::Unit;
use raidlab_core::units::{GIB, KIB, MIB};

/// A number with so many digits after the point. A rounded zero has no sign.
#[must_use]
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// `[46.70, 47.30]`.
pub(crate) fn interval(lo: f64, hi: f64, decimals: usize) -> String {
    format!("[{}, {}]", number(lo, decimals), number(hi, decimals))
}

/// `1.17`: two decimals, more below 0.1 so that a small ratio is not printed as zero, fewer from 10 on: no ratio is known to five
/// digits.
pub(crate) fn ratio(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 99.95 => 0,
        x if x >= 9.995 => 1,
        x if x == 0.0 || x >= 0.095 => 2,
        x if x >= 0.0095 => 3,
        _ => return format!("{value:.1e}"),
    };
    number(value, decimals)
}

/// `[1.14, 1.20]`.
pub(crate) fn ratio_interval(lo: f64, hi: f64) -> String {
    format!("[{}, {}]", ratio(lo), ratio(hi))
}

/// Most digits after the point of a ratio.
const MOST_DIGITS: usize = 4;

/// Digits after the point with which an interval says the same as it does unrounded: `0.98 [0.98, 0.98]` does not
/// bear out that it is worse by more than 2 %, `0.979 [0.978, 0.979]` does. `None` when the usual digits do.
pub(crate) fn telling_digits<T: PartialEq>(
    (lo, hi): (f64, f64),
    says: impl Fn(f64, f64) -> T,
) -> Option<usize> {
    let exact = says(lo, hi);
    let read = |text: String| text.parse::<f64>().unwrap_or(f64::NAN);
    if says(read(ratio(lo)), read(ratio(hi))) == exact {
        return None;
    }
    let same = (3..MOST_DIGITS)
        .find(|digits| says(read(number(lo, *digits)), read(number(hi, *digits))) == exact);
    Some(same.unwrap_or(MOST_DIGITS))
}

/// A ratio with its interval, with more digits than usual where that is asked for.
pub(crate) fn ratio_parts(
    value: f64,
    interval: Option<(f64, f64)>,
    digits: Option<usize>,
) -> (String, Option<String>) {
    let Some(digits) = digits else {
        return (
            ratio(value),
            interval.map(|(lo, hi)| ratio_interval(lo, hi)),
        );
    };
    let ends = interval.map(|(lo, hi)| self::interval(lo, hi, digits));
    (number(value, digits), ends)
}

/// A unit to show figures in: its name and how much of the stored unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    /// As printed.
    pub(crate) name: &'static str,
    /// Stored units in one of these.
    pub(crate) scale: f64,
}

/// The unit that suits the largest figure of a table column or chart.
pub(crate) fn suited(unit: Unit, largest: f64) -> Shown {
    let shown = |name, scale| Shown { name, scale };
    match unit {
        Unit::BytesPerSecond if largest >= 10.0 * GIB as f64 => shown("GiB/s", GIB as f64),
        Unit::BytesPerSecond if largest >= MIB as f64 => shown("MiB/s", MIB as f64),
        Unit::BytesPerSecond => shown("KiB/s", KIB as f64),
        Unit::PerSecond => shown("1/s", 1.0),
        Unit::Seconds if largest >= 1.0 => shown("s", 1.0),
        Unit::Seconds if largest >= 1e-3 => shown("ms", 1e-3),
        Unit::Seconds => shown("µs", 1e-6),
        Unit::Percent => shown("%", 1.0),
    }
}

/// Digits after the point for about four significant ones.
pub(crate) fn decimals(value: f64) -> usize {
    match value.abs() {
        x if x == 0.0 || x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    }
}

pub(crate) use raidlab_core::words::count as plural;

/// Letters, digits and dashes: for ids and names of images.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// So many names are listed in a line.
const MOST_NAMES: usize = 20;

/// Names in a line, each once: the first of many, and how many more there are.
pub(crate) fn names(all: impl IntoIterator<Item = String>) -> String {
    let mut each: Vec<String> = Vec::new();
    for name in all {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    let more = each.len().saturating_sub(MOST_NAMES);
    each.truncate(MOST_NAMES);
    match more {
        0 => each.join("; "),
        more => format!("{}; and {more} more", each.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_letters_digits_and_single_dashes() {
        assert_eq!(slug("read-0.1gb"), "read-0-1gb");
        assert_eq!(slug("  Täst // x "), "t-st-x");
        assert_eq!(slug("../../x\"><y"), "x-y");
    }

    #[test]
    fn names_are_told_once_and_not_all_of_hundreds() {
        let of = |number: usize| (0..number).map(|n| format!("c{}", n % 300));
        assert_eq!(names(of(2).chain(of(3))), "c0; c1; c2");
        assert!(names(of(20)).ends_with("; c18; c19"));
        assert!(names(of(900)).ends_with("; c19; and 280 more"));
    }

    #[test]
    fn a_verdict_is_borne_out_by_the_digits() {
        let worse = |_: f64, hi: f64| hi < 0.98;
        assert_eq!(telling_digits((0.60, 0.70), worse), None);
        assert_eq!(telling_digits((0.977, 0.979), worse), Some(3));
        assert_eq!(telling_digits((0.977, 0.9798), worse), Some(4));
        assert_eq!(telling_digits((0.977, 0.983), worse), None);
        assert_eq!(
            ratio_parts(0.9781, Some((0.977, 0.979)), Some(3)),
            ("0.978".to_owned(), Some("[0.977, 0.979]".to_owned()))
        );
        assert_eq!(ratio_parts(1.171, None, None), ("1.17".to_owned(), None));
    }

    #[test]
    fn ratios_have_two_decimals_small_ones_more_and_large_ones_fewer() {
        let small = [1.169_194, 0.609_164, 0.994_9, 0.095, 0.05, 0.000_12, 0.0];
        assert_eq!(
            small.map(ratio),
            ["1.17", "0.61", "0.99", "0.10", "0.050", "1.2e-4", "0.00"]
        );
        let large = [9.994, 9.996, 10.04, 99.94, 99.96, 303.64, 1e9];
        assert_eq!(
            large.map(ratio),
            ["9.99", "10.0", "10.0", "99.9", "100", "304", "1000000000"]
        );
    }

    #[test]
    fn a_rounded_zero_has_no_sign() {
        assert_eq!(number(-0.001, 2), "0.00");
        assert_eq!(number(-1.006, 2), "-1.01");
    }

    #[test]
    fn the_unit_suits_the_largest_figure() {
        assert_eq!(suited(Unit::BytesPerSecond, 5e7).name, "MiB/s");
        assert_eq!(suited(Unit::BytesPerSecond, 5e4).name, "KiB/s");
        assert_eq!(suited(Unit::Seconds, 5e-5).name, "µs");
        assert_eq!(
            (decimals(47.2), decimals(130.0), decimals(4096.0)),
            (2, 1, 0)
        );
    }
}
