//! What an array of equal disks holds and survives, by level.

/// Usable capacity in disks of an array of `disks` equal disks; `None` when there is no such array.
///
/// | level | usable |
/// |---|---|
/// | single | 1 |
/// | raid0, linear | n |
/// | raid1 | 1 (n copies) |
/// | raid01, raid10 | n/2 (two copies) |
/// | raid4, raid5 | n − 1 |
/// | raid6 | n − 2 |
/// | raid50 | n − 2: two legs with a parity disk each |
#[must_use]
pub fn usable_disks(level: &str, disks: u32) -> Option<u32> {
    let at_least = |least: u32, usable: u32| (disks >= least).then_some(usable);
    let even = disks.is_multiple_of(2);
    match level {
        "single" => (disks == 1).then_some(1),
        "raid0" | "linear" => at_least(1, disks),
        "raid1" => at_least(2, 1),
        "raid01" | "raid10" if even => at_least(4, disks / 2),
        "raid4" | "raid5" => at_least(3, disks.saturating_sub(1)),
        "raid6" => at_least(4, disks.saturating_sub(2)),
        "raid50" if even => at_least(6, disks.saturating_sub(2)),
        _ => None,
    }
}

/// Failed disks that the array survives whichever they are.
#[must_use]
pub fn survives(level: &str, disks: u32) -> u32 {
    match level {
        "raid1" => disks.saturating_sub(1),
        "raid01" | "raid10" | "raid4" | "raid5" | "raid50" => 1,
        "raid6" => 2,
        _ => 0,
    }
}

/// The rule behind [`usable_disks`] in words, where it is not plain.
#[must_use]
pub fn rule(level: &str) -> Option<&'static str> {
    match level {
        "raid01" | "raid10" => Some("two copies of everything: half of the disks"),
        "raid50" => Some("taken as two RAID5 legs with a parity disk each: all disks but two"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_by_level() {
        let cases = [
            ("single", 1, Some(1)),
            ("raid0", 4, Some(4)),
            ("linear", 4, Some(4)),
            ("raid1", 2, Some(1)),
            ("raid01", 8, Some(4)),
            ("raid10", 5, None),
            ("raid5", 3, Some(2)),
            ("raid6", 4, Some(2)),
            ("raid50", 6, Some(4)),
            ("raid50", 8, Some(6)),
            ("raid50", 7, None),
            ("raid5", 2, None),
            ("raid0", 0, None),
            ("raid7", 3, None),
        ];
        for (level, disks, usable) in cases {
            assert_eq!(usable_disks(level, disks), usable, "{level} of {disks}");
        }
    }
}
