//! What the rebuild of a failed member reads of the others, and how likely one of those sectors cannot be read.
use crate::layout::Layout;
use crate::nested::Nested;
use crate::parity::ParityLevel;
use crate::pool::{Pool, Vdev};
use crate::types::Member;
use raidlab_core::units::Bytes;
use raidlab_core::words::count;

/// Bits of a byte.
const BITS: f64 = 8.0;

/// One member is filled again, after some have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// So many members have failed, one of which is filled; of several arrays all in the same one.
    pub failed: usize,
    /// What is read of the others, of a pool of ZFS when it is full.
    pub reads: Bytes,
    /// A sector that cannot be read is made from what redundancy is left.
    pub made_good: bool,
}

impl Rebuild {
    /// How likely at least one sector cannot be read, when one in so many bits cannot, each by itself: what is expected of a
    /// Poisson distribution.
    #[must_use]
    pub fn meets_unreadable(&self, bits: f64) -> f64 {
        -(-(self.reads.0 as f64) * BITS / bits).exp_m1()
    }
}

/// The first rebuild, and that after as many failures as the array survives whichever they are; none without redundancy.
#[must_use]
pub fn rebuilds(layout: &Layout) -> Vec<Rebuild> {
    let sure = layout.tolerance().guaranteed();
    of_both(sure, |failed| reads(layout, failed))
}

/// The same of a pool of ZFS that is full.
#[must_use]
pub fn rebuilds_of_pool(pool: &Pool) -> Vec<Rebuild> {
    of_both(pool.guaranteed(), |failed| {
        let of = |(vdev, smallest): (&Vdev, Bytes)| match vdev {
            Vdev::Mirror(_) => smallest.0,
            // A resilver reads all columns that are there, parity as well (`vdev_raidz_io_start`).
            Vdev::Raidz(raidz) => {
                let columns = raidz.children() - failed.min(raidz.parity());
                smallest.0.saturating_mul(columns as u64)
            }
        };
        pool.parts().map(of).max().map(Bytes)
    })
}

/// The lines that tell it; `bits` is how many bits are read for each sector that cannot be, `stated` how that was written.
#[must_use]
pub fn told(rebuilds: &[Rebuild], bits: f64, stated: &str) -> Vec<String> {
    let tell = |rebuild: &Rebuild| {
        let share = percent(rebuild.meets_unreadable(bits));
        let fate = match rebuild.made_good {
            true => "it is made from the redundancy that is left",
            false => "nothing is left to make it from",
        };
        format!(
            "after {} {} of the others are read; at one unreadable sector in {stated} bits, {share} of rebuilds meet one: {fate}",
            count(rebuild.failed, "failure"),
            rebuild.reads,
        )
    };
    rebuilds.iter().map(tell).collect()
}

/// Two digits that count, and never all or none.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p < 0.01 => "less than 0.01 %".into(),
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p if p < 99.0 => format!("{p:.0} %"),
        _ => "more than 99 %".into(),
    }
}

pub(crate) fn of_both(sure: usize, reads: impl Fn(usize) -> Option<Bytes>) -> Vec<Rebuild> {
    let mut numbers = vec![1, sure];
    numbers.dedup();
    let rebuild = |failed: usize| {
        Some(Rebuild {
            failed,
            reads: reads(failed)?,
            made_good: failed < sure,
        })
    };
    match sure {
        0 => Vec::new(),
        _ => numbers.into_iter().filter_map(rebuild).collect(),
    }
}

/// The most that is read to fill a member of which so many failed; `None` where that depends on which they are.
fn reads(layout: &Layout, failed: usize) -> Option<Bytes> {
    let used = |layout: &Layout| {
        let members = (0..layout.members()).map(|m| layout.used(Member::new(m)));
        members.max().map(|sectors| sectors.to_bytes().0)
    };
    let bytes = match layout {
        Layout::Linear(_) | Layout::Raid0(_) => return None,
        Layout::Raid1(_) | Layout::Raid10(_) => used(layout)?,
        // md reads the whole row, of raid6 both parities as well (`raid5.c:need_this_block`).
        Layout::Parity(parity) => {
            let most = match parity.level() {
                ParityLevel::Raid6 => 2,
                _ => 1,
            };
            let others = layout.members().checked_sub(failed.min(most))?;
            used(layout)?.checked_mul(others as u64)?
        }
        Layout::Nested(nested) => of_nested(nested, failed)?.0,
    };
    Some(Bytes(bytes))
}

/// An array with redundancy fills its own members. One without is a failed member of the outer array as a whole, and is
/// filled as that.
fn of_nested(nested: &Nested, failed: usize) -> Option<Bytes> {
    let sure = |layout: &Layout| layout.tolerance().guaranteed();
    let inner = nested.inner().iter();
    if nested.inner().iter().any(|array| sure(array) == 0) {
        return reads(nested.outer(), failed);
    }
    if failed > 1 && sure(nested.outer()) > 0 {
        return None;
    }
    inner.filter_map(|array| reads(array, failed)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Geometry, Spec};
    use crate::{Content, PoolSpec};
    use raidlab_core::units::Lba;

    const TB: u64 = 1_000_000_000_000;

    fn of(level: &str, members: usize) -> Vec<(usize, u64, bool)> {
        let spec: Spec = level.parse().expect("a level");
        let geometry = Geometry::equal(members, Bytes(24 * TB), Bytes::kib(512)).expect("sizes");
        let layout = spec.build(&geometry).expect("a layout");
        let told = rebuilds(&layout).into_iter();
        // Chunks that are not whole are not used.
        told.map(|r| (r.failed, (r.reads.0 + TB / 2) / TB, r.made_good))
            .collect()
    }

    #[test]
    fn each_level_reads_what_it_makes_a_member_from() {
        assert_eq!(of("raid0", 4), []);
        assert_eq!(of("linear", 4), []);
        assert_eq!(of("raid1", 2), [(1, 24, false)]);
        assert_eq!(of("raid1", 3), [(1, 24, true), (2, 24, false)]);
        assert_eq!(of("raid10", 6), [(1, 24, false)]);
        assert_eq!(of("raid10-n3", 6), [(1, 24, true), (2, 24, false)]);
        assert_eq!(of("raid5", 6), [(1, 120, false)]);
        assert_eq!(of("raid6", 6), [(1, 120, true), (2, 96, false)]);
        assert_eq!(of("raid50 2x3", 6), [(1, 48, false)]);
        assert_eq!(of("raid01 2x3", 6), [(1, 72, false)]);
        assert_eq!(of("raid60 2x4", 8), [(1, 72, true), (2, 48, false)]);
        // Of three failures it depends on which array they are in.
        assert_eq!(of("raid51 2x3", 6), [(1, 48, true)]);
    }

    #[test]
    fn a_pool_reads_all_columns_that_are_there() {
        let of = |level: &str, members: usize| -> Vec<(usize, u64, bool)> {
            let spec: PoolSpec = level.parse().expect("a pool");
            let pool = spec.build(&vec![Bytes(24 * TB); members], 12).expect("it");
            let told = rebuilds_of_pool(&pool).into_iter();
            told.map(|r| (r.failed, r.reads.0 / TB, r.made_good))
                .collect()
        };
        assert_eq!(of("zfs-mirror", 2), [(1, 24, false)]);
        assert_eq!(of("raidz2", 6), [(1, 120, true), (2, 96, false)]);
        assert_eq!(of("raidz1 2x3", 6), [(1, 48, false)]);
    }

    /// Whatever a member of two copies holds is read of the others once.
    #[test]
    fn a_member_of_copies_is_read_once() {
        for level in ["raid10-n2", "raid10-f2", "raid10-o2"] {
            let spec: Spec = level.parse().expect("a level");
            let geometry = Geometry::equal(5, Bytes::mib(4), Bytes::kib(64)).expect("sizes");
            let layout = spec.build(&geometry).expect("a layout");
            let sectors = Bytes::mib(4).to_sectors().0;
            let held = (0..sectors)
                .filter(|s| matches!(layout.content(Member::new(1), Lba(*s)), Content::Data(_)))
                .count() as u64;
            assert_eq!(rebuilds(&layout)[0].reads.to_sectors().0, held, "{level}");
        }
    }

    #[test]
    fn chances_are_those_of_rare_events() {
        let rebuild = |tb: u64| Rebuild {
            failed: 1,
            reads: Bytes(tb * TB),
            made_good: false,
        };
        // 1 - exp(-0.96), and a billionth that does not round to none.
        assert!((rebuild(120).meets_unreadable(1e15) - 0.617_107).abs() < 1e-6);
        let rare = rebuild(1).meets_unreadable(8e21);
        assert!((rare / 1e-9 - 1.0).abs() < 1e-6, "{rare}");
        assert_eq!(
            [1e-9, 0.004, 0.052, 0.617, 0.9999].map(percent),
            [
                "less than 0.01 %",
                "0.40 %",
                "5.2 %",
                "62 %",
                "more than 99 %"
            ]
        );
    }
}
