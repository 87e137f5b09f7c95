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

/// `1.17`: two decimals, more below 0.1 so that a small ratio is not printed as zero.
pub(crate) fn ratio(value: f64) -> String {
    let decimals = match value.abs() {
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

/// `1 run`, `3 runs`.
pub(crate) fn plural(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

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
    fn ratios_have_two_decimals_and_small_ones_more() {
        let shown: Vec<_> = [1.169_194, 0.609_164, 0.994_9, 0.095, 0.05, 0.000_12, 0.0]
            .iter()
            .map(|x| ratio(*x))
            .collect();
        assert_eq!(
            shown,
            ["1.17", "0.61", "0.99", "0.10", "0.050", "1.2e-4", "0.00"]
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
