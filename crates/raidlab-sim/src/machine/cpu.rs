//! Processors by name. Rates of copying are those of memory and caches of the time, work a clock is
//! relative to the reference of [`CpuModel::per_clock`].
use crate::host::CpuModel;
use raidlab_core::units::{KIB, MIB};
use raidlab_experiment::kernel::Kernel;

/// What is told of a processor.
struct Known {
    /// Words that its name has, in lower case.
    words: &'static [&'static str],
    mhz: u32,
    per_clock: u32,
    /// Millions of bytes a second.
    copy: u64,
    copy_cached: u64,
    cache: u64,
}

/// Clocks and caches K (datasheets). Copying in memory assumed as a third of the memory's peak (it is
/// read and written, and a line is read before it is written): two channels of DDR-400 6.4 GB/s,
/// DDR2-533 8.5, DDR-200 3.2 (two channels of PC1600), DDR4-3200 51. Work a clock assumed from
/// published integer suites: NetBurst 0.6 of an Athlon 64, Core 1.3, cores since 2017 2.0.
const KNOWN: &[Known] = &[
    Known {
        words: &["athlon 64"],
        mhz: 2000,
        per_clock: 1000,
        copy: 2100,
        copy_cached: 4000,
        cache: 512 * KIB,
    },
    Known {
        words: &["pentium d"],
        mhz: 2800,
        per_clock: 600,
        copy: 2800,
        copy_cached: 5600,
        cache: MIB,
    },
    Known {
        words: &["xeon 1.6"],
        mhz: 1600,
        per_clock: 600,
        copy: 1100,
        copy_cached: 3200,
        cache: MIB,
    },
    Known {
        words: &["core 2", "core2"],
        mhz: 2400,
        per_clock: 1300,
        copy: 3500,
        copy_cached: 7000,
        cache: 4 * MIB,
    },
];

/// A processor of today, where nothing is said.
const TODAY: Known = Known {
    words: &[],
    mhz: 3500,
    per_clock: 2000,
    copy: 15_000,
    copy_cached: 30_000,
    cache: 16 * MIB,
};

/// The processor of that name, or one of the kernel's time. A name that is not known still has its
/// clock, when it says one.
pub(super) fn find(name: Option<&str>, kernel: Kernel) -> CpuModel {
    let lower = name.unwrap_or_default().to_lowercase();
    let is = |known: &&Known| known.words.iter().any(|word| lower.contains(word));
    let old = kernel < Kernel::Linux(2, 6, 32);
    let of_its_time = if old { &KNOWN[0] } else { &TODAY };
    let known = KNOWN.iter().find(is).unwrap_or(of_its_time);
    CpuModel {
        name: name.unwrap_or("a processor of the time").to_owned(),
        mhz: clock(&lower).unwrap_or(known.mhz),
        per_clock: known.per_clock,
        copy: known.copy * 1_000_000,
        copy_cached: known.copy_cached * 1_000_000,
        cache: known.cache,
    }
}

/// `2.8 ghz`, `800mhz` in a name.
fn clock(name: &str) -> Option<u32> {
    let (before, scale) = match (name.find("ghz"), name.find("mhz")) {
        (Some(at), _) => (&name[..at], 1000.0),
        (None, Some(at)) => (&name[..at], 1.0),
        (None, None) => return None,
    };
    let number = before.split_whitespace().next_back()?;
    let value: f64 = number.parse().ok()?;
    (value > 0.0 && value * scale < 100_000.0).then(|| libm::round(value * scale) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_known_by_their_names() {
        let of = |name| {
            let cpu = find(Some(name), Kernel::Linux(2, 6, 16));
            (cpu.mhz, cpu.per_clock)
        };
        assert_eq!(of("Athlon 64 X2 3800+"), (2000, 1000));
        assert_eq!(of("Pentium D 2.8 GHz"), (2800, 600));
        assert_eq!(of("Xeon 1.6 GHz"), (1600, 600));
        assert_eq!(of("Something 800 MHz"), (800, 1000));
        assert_eq!(find(None, Kernel::DEFAULT).mhz, 3500);
    }
}
