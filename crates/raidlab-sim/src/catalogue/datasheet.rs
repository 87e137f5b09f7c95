//! Model files from the few figures of a datasheet. What the sheet says is marked `K`, what follows from it by arithmetic
//! `D`, and what had to be chosen `assumed`, each with how it came about, so that it can be put right line by line.
mod hdd;
mod interface;
mod iops;
mod ssd;
mod text;

pub use hdd::HddSheet;
pub use interface::{HDD_INTERFACES, Interface, SSD_INTERFACES};
pub use ssd::SsdSheet;

use raidlab_core::units::Bytes;

/// Decimal gigabyte, in which drives are sold.
const GB: u64 = 1_000_000_000;
/// Decimal terabyte.
const TB: u64 = 1000 * GB;

/// Something on the sheet that no disk can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{figure}: {message}")]
pub struct SheetProblem {
    /// The figure, by the name that the command line has for it: `rpm`.
    pub figure: &'static str,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// All that is wrong with a sheet.
#[derive(Debug, Default)]
struct Check(Vec<SheetProblem>);

impl Check {
    fn wrong(&mut self, figure: &'static str, message: impl Into<String>) {
        self.0.push(SheetProblem {
            figure,
            message: message.into(),
        });
    }

    /// A figure that is there must lie within a range; not-a-number does not.
    fn range(&mut self, figure: &'static str, value: Option<f64>, least: f64, most: f64, of: &str) {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            let message = format!("{value}{of} is no disk's: between {least} and {most} is");
            self.wrong(figure, message);
        }
    }

    /// A rate must be one of a disk's, and one that the interface carries.
    fn rate(&mut self, figure: &'static str, rate: Option<f64>, interface: &Interface) {
        let Some(rate) = rate else { return };
        if rate < 1e5 {
            let message = format!("{rate} bytes a second is no disk's: write it as 215MB/s");
            self.wrong(figure, message);
        } else if rate > interface.mb_s * 1e6 {
            let message = format!(
                "{} MB/s is more than {} carries, {} MB/s: is the rate one of the buffer, or the interface another (--interface)?",
                text::figure(rate / 1e6),
                interface.what,
                text::figure(interface.mb_s)
            );
            self.wrong(figure, message);
        }
    }

    /// A buffer, from `least` bytes on, and a physical sector.
    fn buffer_and_sector(&mut self, cache: Option<Bytes>, least: f64, sector: Option<u32>) {
        self.range(
            "cache",
            cache.map(|size| size.0 as f64),
            least,
            1e11,
            " bytes",
        );
        if sector.is_some_and(|size| ![512, 4096].contains(&size)) {
            self.wrong("sector-physical", "512 or 4096 bytes");
        }
    }

    fn capacity(&mut self, capacity: Bytes, least: u64) {
        if capacity.0 < least || capacity.0 > (1 << 40) * 512 {
            let message = format!(
                "{} bytes, {} sectors, are no disk's: between {} and {} is; write it as 8TB",
                capacity.0,
                capacity.0 / 512,
                text::capacity(Bytes(least)),
                text::capacity(Bytes((1 << 40) * 512))
            );
            self.wrong("capacity", message);
        }
    }
}

/// Sectors of 512 bytes of a drive that is sold by this capacity, and how they were counted: IDEMA LBA1-03 for whole
/// gigabytes from 50 to 8000, whole 2^21 sectors as makers count above, and the very bytes of anything else.
fn sectors(capacity: Bytes) -> (u64, String) {
    let (whole, gb) = (capacity.0.is_multiple_of(GB), capacity.0 / GB);
    let given = format!("datasheet, {}", text::capacity(capacity));
    if whole && (50..=8000).contains(&gb) {
        let sectors = 97_696_368 + 1_953_504 * (gb - 50);
        return (
            sectors,
            format!("K: {given}, counted as IDEMA LBA1-03 does"),
        );
    }
    if whole && gb > 8000 {
        let sectors = (capacity.0 / 512).next_multiple_of(1 << 21);
        let how = "in whole GiB as makers count above 8 TB";
        return (sectors, format!("K: {given}, {how}"));
    }
    (capacity.0 / 512, format!("K: {given}"))
}

/// The file, when it can be read back: some figures contradict each other only as a whole, which is told of `figure`.
fn readable(text: String, figure: &'static str) -> Result<String, Vec<SheetProblem>> {
    match super::parse("the model", &text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let told = |problem: super::Problem| SheetProblem {
                figure,
                message: problem.message,
            };
            Err(error.problems.into_iter().map(told).collect())
        }
    }
}

/// A physical sector and why.
fn physical(given: Option<u32>, large: bool) -> (u32, &'static str) {
    match (given, large) {
        (Some(size), _) => (size, "K: datasheet"),
        (None, true) => (
            4096,
            "assumed: drives of 1 TB and more have 4 KiB sectors, emulated or not",
        ),
        (None, false) => (512, "assumed: drives below 1 TB that do not say otherwise"),
    }
}

#[cfg(test)]
mod tests;
