//! Sizes: [`Bytes`], [`Sectors`], [`Lba`], [`Extent`], and the reading of what a user typed.
//!
//! A size is binary or decimal and says which. `64K` could be either, so it is refused with both
//! readings offered; tools differ by 2.4 % a prefix here, which is more than many a result.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The logical sector of Linux block layer accounting, in bytes.
pub const SECTOR: u64 = 512;
/// 1024 bytes.
pub const KIB: u64 = 1 << 10;
/// 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// 1024 MiB.
pub const GIB: u64 = 1 << 30;

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A number of 512-byte sectors.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sectors(pub u64);

/// The address of a 512-byte sector on one device.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Lba(pub u64);

/// A run of bytes on a device or in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// First byte.
    pub start: Bytes,
    /// Number of bytes.
    pub len: Bytes,
}

impl Extent {
    /// From the first byte and the number of bytes.
    #[must_use]
    pub const fn new(start: u64, len: u64) -> Self {
        Self {
            start: Bytes(start),
            len: Bytes(len),
        }
    }

    /// The byte after the last one.
    #[must_use]
    pub const fn end(self) -> Bytes {
        Bytes(self.start.0 + self.len.0)
    }
}

impl Sectors {
    /// The same length in bytes.
    #[must_use]
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR)
    }
}

impl Bytes {
    /// `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n * KIB)
    }

    /// `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n * GIB)
    }

    /// Whole sectors that fit.
    #[must_use]
    pub const fn to_sectors(self) -> Sectors {
        Sectors(self.0 / SECTOR)
    }

    /// The length in MiB, for reports.
    #[must_use]
    pub fn as_mib_f64(self) -> f64 {
        self.0 as f64 / MIB as f64
    }
}

const BINARY: [(&str, u64); 6] = [
    ("KiB", KIB),
    ("MiB", MIB),
    ("GiB", GIB),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("EiB", 1 << 60),
];
const DECIMAL: [(&str, u64); 6] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("EB", 1_000_000_000_000_000_000),
];

impl fmt::Display for Bytes {
    /// Exact when a binary unit divides the size (`64 KiB`), one decimal when not (`1.4 GiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, scale) in BINARY.iter().rev() {
            if self.0 >= *scale {
                if self.0.is_multiple_of(*scale) {
                    return write!(f, "{} {name}", self.0 / scale);
                }
                return write!(f, "{:.1} {name}", self.0 as f64 / *scale as f64);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// A prefix that both the binary and the decimal reading claim.
    #[error(
        "'{text}' is ambiguous: write '{binary}' ({binary_bytes} bytes) or '{decimal}' ({decimal_bytes} bytes)"
    )]
    Ambiguous {
        /// What was typed.
        text: String,
        /// The binary reading, spelled so that it is understood.
        binary: String,
        /// Its bytes.
        binary_bytes: u64,
        /// The decimal reading, spelled so that it is understood.
        decimal: String,
        /// Its bytes.
        decimal_bytes: u64,
    },
    /// Not a number followed by a known unit.
    #[error(
        "'{0}' is not a size: write a number with B, KiB, MiB, GiB, TiB, PiB or EiB (binary), or kB, MB, GB, TB, PB or EB (decimal)"
    )]
    Malformed(String),
    /// Does not come to a whole number of bytes.
    #[error("'{text}' is not a whole number of bytes: write '{near}', which is near it")]
    Fraction {
        /// As it was written.
        text: String,
        /// A size that can be written.
        near: String,
    },
    /// More than 2^63 bytes.
    #[error("'{0}' is too large")]
    TooLarge(String),
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = (&text[..split], text[split..].trim());
        if unit.is_empty() || unit == "B" {
            return scaled(text, number, 1);
        }
        for (name, scale) in BINARY.iter().chain(&DECIMAL) {
            // `KB` is left out on purpose: half the tools mean 1024 by it.
            if unit == *name || (name.ends_with("iB") && unit.eq_ignore_ascii_case(name)) {
                return scaled(text, number, *scale);
            }
        }
        let letter = match unit.to_ascii_uppercase().as_str() {
            "K" | "KB" => 0,
            "M" => 1,
            "G" => 2,
            "T" => 3,
            "P" => 4,
            "E" => 5,
            _ => return Err(ParseBytesError::Malformed(text.to_owned())),
        };
        let ((binary, kib), (decimal, kb)) = (BINARY[letter], DECIMAL[letter]);
        Err(ParseBytesError::Ambiguous {
            text: text.to_owned(),
            binary: format!("{number}{binary}"),
            binary_bytes: scaled(text, number, kib)?.0,
            decimal: format!("{number}{decimal}"),
            decimal_bytes: scaled(text, number, kb)?.0,
        })
    }
}

/// So many bytes in a unit of which there are a thousand at least, as they are written; at least a byte.
fn near(bytes: u128) -> String {
    let units = BINARY.iter().rev();
    let mut fitting = units.filter(|(_, unit)| bytes >= 1000 * u128::from(*unit));
    match fitting.next() {
        Some((name, unit)) => format!("{}{name}", bytes / u128::from(*unit)),
        None => format!("{}B", bytes.max(1)),
    }
}

/// `number` times `scale`, exactly: a decimal fraction is fine as long as whole bytes come out.
fn scaled(text: &str, number: &str, scale: u64) -> Result<Bytes, ParseBytesError> {
    let malformed = || ParseBytesError::Malformed(text.to_owned());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 18 || number.ends_with('.') {
        return Err(malformed());
    }
    let too_large = || ParseBytesError::TooLarge(text.to_owned());
    if !whole
        .bytes()
        .chain(fraction.bytes())
        .all(|b| b.is_ascii_digit())
    {
        return Err(malformed());
    }
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    let unit = 10_u128.pow(fraction.len() as u32);
    let part: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| malformed())?
    };
    let scaled = whole
        .checked_mul(unit)
        .and_then(|n| n.checked_add(part))
        .and_then(|n| n.checked_mul(u128::from(scale)))
        .ok_or_else(too_large)?;
    if scaled % unit != 0 {
        return Err(ParseBytesError::Fraction {
            text: text.to_owned(),
            near: near(scaled / unit),
        });
    }
    match u64::try_from(scaled / unit) {
        Ok(n) if n <= i64::MAX as u64 => Ok(Bytes(n)),
        _ => Err(too_large()),
    }
}

/// The least common multiple; 0 when either is 0. Both are sizes, far from what would overflow.
#[must_use]
pub const fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    match a.checked_div(divisor) {
        Some(times) => times * b,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_say_binary_or_decimal() {
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("64 kib".parse(), Ok(Bytes(65_536)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("2GB".parse(), Ok(Bytes(2_000_000_000)));
        assert_eq!("0.1GB".parse(), Ok(Bytes(100_000_000)));
        assert_eq!("512".parse(), Ok(Bytes(512)));
        assert_eq!("512 B".parse(), Ok(Bytes(512)));
        assert_eq!("1.5PiB".parse(), Ok(Bytes(3 << 49)));
        assert_eq!("2 PB".parse(), Ok(Bytes(2_000_000_000_000_000)));
        assert_eq!("7EiB".parse(), Ok(Bytes(7 << 60)));
        assert_eq!(Bytes(3 << 49).to_string(), "1.5 PiB");
        assert_eq!(Bytes(2 << 60).to_string(), "2 EiB");
    }

    #[test]
    fn an_ambiguous_size_offers_both_readings() {
        let message = "2P".parse::<Bytes>().unwrap_err().to_string();
        assert!(
            message.contains("'2PiB'") && message.contains("'2PB'"),
            "{message}"
        );
        for text in ["64K", "64k", "64KB"] {
            let message = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(
                message.contains("'64KiB' (65536 bytes) or '64kB' (64000 bytes)"),
                "{message}"
            );
        }
        assert!(matches!(
            "1G".parse::<Bytes>(),
            Err(ParseBytesError::Ambiguous { .. })
        ));
    }

    #[test]
    fn a_common_multiple_is_the_least() {
        assert_eq!(common_multiple(4 << 20, 3 << 19), 12 << 20);
        assert_eq!(common_multiple(7, 7), 7);
        assert_eq!((common_multiple(0, 5), common_multiple(5, 0)), (0, 0));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "KiB",
            "-1",
            "1e3",
            "1..5MiB",
            "12 parsecs",
            "1.",
            ".5GiB",
            "٣KiB",
        ] {
            assert!(
                matches!(text.parse::<Bytes>(), Err(ParseBytesError::Malformed(_))),
                "{text}"
            );
        }
        for (text, near) in [
            ("0.3B", "1B"),
            ("15.4GiB", "15769MiB"),
            ("1.1TiB", "1126GiB"),
            ("0.3KiB", "307B"),
        ] {
            let error = text.parse::<Bytes>().expect_err("no whole bytes");
            let told = format!(
                "'{text}' is not a whole number of bytes: write '{near}', which is near it"
            );
            assert_eq!(error.to_string(), told);
            assert!(near.parse::<Bytes>().is_ok());
        }
        assert!(matches!(
            "99999999TiB".parse::<Bytes>(),
            Err(ParseBytesError::TooLarge(_))
        ));
        let digits = "9".repeat(60);
        assert!(matches!(
            digits.parse::<Bytes>(),
            Err(ParseBytesError::TooLarge(_))
        ));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn whole_units_come_back_as_printed(n in 1_u64..1024, unit in 0_usize..BINARY.len()) {
            // At most half of what a size may be: 4 EiB.
            let size = Bytes((n % (1 << 62 >> (10 * (unit + 1))).max(1)).max(1) * BINARY[unit].1);
            prop_assert_eq!(size.to_string().parse::<Bytes>(), Ok(size));
        }
    }
}
