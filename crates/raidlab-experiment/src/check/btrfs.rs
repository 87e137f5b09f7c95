//! What btrfs makes of so many members, and what fits into it on members of unlike sizes.
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::kernel::Kernel;
use crate::read::key::Key;
use raidlab_core::units::Bytes;
use raidlab_layout::btrfs::Takes;

/// Whether the kernel makes stripes over so few members of a layout; told when only a later one does.
pub(super) fn stripes(
    problems: &Problems,
    view: &View<'_>,
    kernel: Kernel,
    (layout, members): (&str, usize),
) -> bool {
    let least = |degenerate| Takes::of(layout, degenerate).map(|takes| takes.least);
    let (Some(then), Some(now)) = (least(false), least(true)) else {
        return true;
    };
    if kernel >= Kernel::DEGENERATE_STRIPES || members >= then || members < now {
        return true;
    }
    let at = view.place(&[Key::Members, Key::Channels, Key::Layout]);
    let message = format!(
        "{layout} of btrfs has at least {then} members with kernel {kernel}, and was given {members}"
    );
    let problem = Diagnostic::new(at, message).also(view.place(&[Key::Kernel]), "this system");
    problems.push(problem.help("add members, or use a kernel since 5.15, which makes it of fewer"));
    false
}

/// Bytes of data that btrfs has room for, or nothing of a layout that it has not: its chunks go to the members with the most
/// room, so that unlike ones are filled further than md's rows of the smallest. `degenerate`: `raid0` of one member and
/// `raid10` of two are chunks, too, as they are since Linux 5.15. What metadata takes is not taken off.
pub(crate) fn capacity(layout: &str, sizes: &[Bytes], degenerate: bool) -> Option<Bytes> {
    let takes = Takes::of(layout, degenerate)?;
    Some(Bytes(filled(&takes, sizes)))
}

fn filled(takes: &Takes, sizes: &[Bytes]) -> u64 {
    let mut left: Vec<u64> = sizes.iter().map(|size| size.0).filter(|s| *s > 0).collect();
    left.sort_unstable_by(|a, b| b.cmp(a));
    let mut data = 0;
    loop {
        let Some(wide) = takes.wide(left.len()).filter(|wide| *wide > 0) else {
            return data;
        };
        // The largest are in every chunk, and the others are filled in turn until nothing is left of them.
        let mut rest: u64 = left.iter().sum();
        let mut always = 0;
        let depth = loop {
            let depth = rest / (wide - always) as u64;
            if left[always] <= depth || always + 1 == wide {
                break depth;
            }
            rest -= left[always];
            always += 1;
        };
        data += depth * (wide - takes.parities) as u64 / takes.copies as u64;
        left.truncate(always);
        for size in &mut left {
            *size -= depth;
        }
        left.retain(|size| *size > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Known, KnownDisk, parse};
    use raidlab_core::units::Sectors;
    use raidlab_layout::{BtrfsProfile, Dealt};

    /// Chunk for chunk, as the kernel takes them: a unit of each of the members with the most room.
    fn in_turn(layout: &str, sizes: &[u64], degenerate: bool) -> u64 {
        let (least, most, multiple, copies, parities) = match layout {
            "raid0" => (if degenerate { 1 } else { 2 }, 99, 1, 1, 0),
            "raid1" => (2, 2, 1, 2, 0),
            "raid10" => (if degenerate { 2 } else { 4 }, 99, 2, 2, 0),
            "raid5" => (2, 99, 1, 1, 1),
            _ => (3, 99, 1, 1, 2),
        };
        let (mut left, mut data) = (sizes.to_vec(), 0);
        loop {
            left.sort_unstable_by(|a, b| b.cmp(a));
            let having = left.iter().filter(|size| **size > 0).count().min(most);
            let wide = having / multiple * multiple;
            if wide < least {
                return data;
            }
            left[..wide].iter_mut().for_each(|size| *size -= 1);
            data += (wide as u64 - parities) / copies;
        }
    }

    #[test]
    fn unlike_members_are_filled_as_chunk_for_chunk() {
        let members: [&[u64]; 9] = [
            &[240, 240, 30, 30],
            &[240, 30, 30],
            &[240, 30, 30, 30],
            &[240, 240, 30, 30, 30],
            &[240, 240, 240, 100, 10],
            &[100, 100, 100, 100, 100],
            &[100, 100, 10],
            &[500, 400, 300, 200, 100, 50],
            &[100, 70],
        ];
        for layout in ["raid0", "raid1", "raid10", "raid5", "raid6"] {
            for (sizes, degenerate) in members.iter().flat_map(|s| [(s, true), (s, false)]) {
                let (gib, bytes) = (
                    1 << 30,
                    sizes.iter().map(|s| Bytes(s << 30)).collect::<Vec<_>>(),
                );
                let has = capacity(layout, &bytes, degenerate).unwrap().0;
                let expected = in_turn(layout, sizes, degenerate) * gib;
                // The last units of an odd number of members find no partner.
                let off = has.abs_diff(expected);
                assert!(
                    off <= 4 * gib,
                    "{layout} {sizes:?} {degenerate}: {has} for {expected}"
                );
            }
        }
        let tb = |of: &[u64]| {
            of.iter()
                .map(|tb| Bytes(tb * 1_000_000_000_000))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            capacity("raid5", &tb(&[24, 24, 3, 3]), true),
            Some(Bytes(30_000_000_000_000))
        );
        assert_eq!(
            capacity("raid10", &tb(&[24, 24, 3, 3]), true),
            Some(Bytes(27_000_000_000_000))
        );
        assert_eq!(
            capacity("raid10", &tb(&[24, 24, 3, 3]), false),
            Some(Bytes(6_000_000_000_000))
        );
        assert_eq!(
            capacity("linear", &tb(&[24, 3]), true),
            Some(Bytes(27_000_000_000_000))
        );
        assert_eq!(capacity("raid4", &tb(&[24, 3]), true), None);
    }

    /// What is filled continuously is what chunks come to, but for those of the system and of metadata and the rests of the last.
    #[test]
    fn dealt_chunks_have_as_much() {
        let members: [&[u64]; 5] = [
            &[8000, 8000, 4000, 2000],
            &[8000, 8000, 8000, 8000],
            &[24000, 3000, 3000, 3000, 3000],
            &[500, 400, 300, 200, 100, 90],
            &[1000, 1000, 1000, 700, 700, 700, 60],
        ];
        for (profile, gb) in BtrfsProfile::ALL
            .into_iter()
            .flat_map(|profile| members.map(|gb| (profile, gb)))
        {
            for degenerate in [true, false] {
                let sizes: Vec<Bytes> = gb.iter().map(|gb| Bytes(gb * 1_000_000_000)).collect();
                let sectors: Vec<Sectors> = sizes.iter().map(|size| size.to_sectors()).collect();
                let dealt = Dealt::new(profile, &sectors, degenerate).unwrap();
                let dealt = dealt.capacity().to_bytes().0;
                let filled = capacity(profile.name(), &sizes, degenerate).unwrap().0;
                let off = filled.abs_diff(dealt) >> 30;
                assert!(
                    off <= 3,
                    "{profile:?} {gb:?} {degenerate}: {dealt} for {filled}"
                );
            }
        }
    }

    /// It was that of md's rows of the smallest: 9 TB of `raid5`, and 6 of `raid10`.
    #[test]
    fn cells_hold_as_much_as_btrfs_has_room_for() {
        let disk = |name, tb: u64| KnownDisk {
            name,
            capacity: Some(Bytes(tb * 1_000_000_000_000)),
            link: None,
        };
        let known = Known {
            disks: vec![disk("large", 24), disk("small", 3)],
            ..Known::default()
        };
        let of = |kernel: &str| {
            let text = format!(
                "title = 't'\nprofile = 'bonnie'\nhost = {{ kernel = '{kernel}' }}\n[disks.a]\nmodel = 'large'\ncount = 2\n\
                 [disks.b]\nmodel = 'small'\ncount = 2\n[array]\nengine = 'btrfs'\n[factors]\n\
                 layout = ['linear', 'raid0', 'raid1', 'raid10', 'raid5', 'raid6']\n"
            );
            let experiment = parse(&text, "lab.toml", &known)
                .map_err(|d| d.render(false))
                .unwrap();
            let cells = experiment.cells.iter();
            let tb = cells.map(|cell| cell.setup.array.capacity.unwrap().0 / 1_000_000_000_000);
            tb.collect::<Vec<_>>()
        };
        assert_eq!(of("6.1"), [54, 54, 27, 27, 30, 6]);
        assert_eq!(of("5.10"), [54, 54, 27, 6, 30, 6]);
    }
}
