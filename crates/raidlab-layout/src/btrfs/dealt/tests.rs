//! Full file systems: they are what dealing chunk for chunk comes to.
use super::*;
use crate::btrfs::RESERVED;
use crate::btrfs::told::on;
use proptest::prelude::*;
use std::collections::BTreeMap;

const TB: u64 = 1_000_000_000_000;

fn dealt(profile: BtrfsProfile, sizes: &[u64]) -> Dealt {
    let sizes: Vec<Sectors> = sizes.iter().map(|size| Bytes(*size).to_sectors()).collect();
    Dealt::new(profile, &sizes, true).expect("an array")
}

fn tb(profile: BtrfsProfile, tb: &[u64]) -> Dealt {
    dealt(profile, &tb.iter().map(|tb| tb * TB).collect::<Vec<_>>())
}

/// The chunks of data made one by one, by their members: how many, and their sectors. No piece of them is on another.
fn one_by_one(
    profile: BtrfsProfile,
    sizes: &[u64],
    degenerate: bool,
) -> BTreeMap<Vec<Member>, (u64, u64)> {
    let sizes: Vec<u64> = sizes.iter().map(|size| size / SECTOR).collect();
    let metadata = metadata_chunk(sizes.iter().sum::<u64>() * SECTOR) / SECTOR;
    let made = deal::of_mkfs(profile, &sizes, metadata, degenerate);
    let (mut chunks, mut deal) = made.expect("an array");
    while let Some(chunk) = deal.next(0) {
        chunks.push(chunk);
    }
    let mut pieces: Vec<(u16, u64, u64)> = Vec::new();
    for chunk in &chunks {
        let each = Group::of(chunk, 1).each.0;
        let of = |(member, begin): &(u16, u64)| (*member, *begin, begin + each);
        pieces.extend(chunk.pieces.iter().map(of));
    }
    pieces.sort_unstable();
    assert!(pieces.iter().all(|(member, begin, end)| {
        *begin >= RESERVED.0 && *end <= sizes[usize::from(*member)]
    }));
    let apart = |pair: &[(u16, u64, u64)]| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1;
    assert!(pieces.windows(2).all(apart), "{pieces:?}");
    let mut groups = BTreeMap::new();
    for chunk in &chunks[1..] {
        let group = groups.entry(members(chunk)).or_insert((0, 0));
        group.0 += 1;
        group.1 += chunk.end - chunk.begin;
    }
    groups
}

/// What is filled continuously, a GiB of each of the members with the most left: data in GiB.
fn in_turn(profile: BtrfsProfile, gib: &[u64]) -> u64 {
    let (least, most, multiple, copies, parities) = match profile {
        BtrfsProfile::Single => (1, 1, 1, 1, 0),
        BtrfsProfile::Raid0 => (1, 99, 1, 1, 0),
        BtrfsProfile::Raid1 => (2, 2, 1, 2, 0),
        BtrfsProfile::Raid1c3 => (3, 3, 1, 3, 0),
        BtrfsProfile::Raid1c4 => (4, 4, 1, 4, 0),
        BtrfsProfile::Raid10 => (2, 99, 2, 2, 0),
        BtrfsProfile::Raid5 => (2, 99, 1, 1, 1),
        BtrfsProfile::Raid6 => (3, 99, 1, 1, 2),
    };
    let (mut left, mut data) = (gib.to_vec(), 0);
    loop {
        left.sort_unstable_by(|a, b| b.cmp(a));
        let having = left.iter().filter(|gib| **gib > 0).count().min(most);
        let wide = having / multiple * multiple;
        if wide < least {
            return data;
        }
        left[..wide].iter_mut().for_each(|gib| *gib -= 1);
        data += ((wide - parities) / copies) as u64;
    }
}

#[test]
fn unequal_members_have_the_room_that_calculators_tell() {
    let of = |profile, sizes: &[u64]| {
        let has = tb(profile, sizes).capacity().to_bytes().0;
        (has + TB / 20) / (TB / 10)
    };
    let sizes = [8, 8, 4, 2];
    let all: Vec<u64> = ALL.iter().map(|profile| of(*profile, &sizes)).collect();
    // Tenths of a TB.
    assert_eq!(all, [220, 220, 110, 60, 20, 110, 140, 60]);
    assert_eq!(of(BtrfsProfile::Raid1, &[8, 2, 2]), 40);
    let array = tb(BtrfsProfile::Raid1, &[8, 2, 2]);
    let left: Vec<_> = array.left_over();
    assert_eq!(left.len(), 1);
    assert_eq!(
        (left[0].0, (left[0].1.to_bytes().0 + TB / 20) / (TB / 10)),
        (Member(0), 40)
    );
}

/// `mkfs` begins with the last members, and stripes with all of them.
#[test]
fn the_first_files_are_on_the_last_members() {
    let of = |profile, members, degenerate| {
        let sizes = vec![Sectors(8 << 21); members];
        let first = Dealt::with_first_files(profile, &sizes, degenerate);
        first.iter().map(|member| member.0).collect::<Vec<_>>()
    };
    assert_eq!(of(BtrfsProfile::Raid1, 2, true), [0, 1]);
    assert_eq!(of(BtrfsProfile::Raid1, 6, true), [4, 5]);
    assert_eq!(of(BtrfsProfile::Raid1c3, 5, true), [2, 3, 4]);
    assert_eq!(of(BtrfsProfile::Raid10, 5, true), [1, 2, 3, 4]);
    assert_eq!(of(BtrfsProfile::Raid5, 4, true), [0, 1, 2, 3]);
    assert_eq!(of(BtrfsProfile::Raid10, 2, false), []);
}

const ALL: [BtrfsProfile; 8] = BtrfsProfile::ALL;

/// As Linux 6.18 dealt out files on loop devices until there was no room: chunks by their members, and MiB of data.
#[test]
fn a_full_file_system_is_that_of_a_real_one() {
    let of = |profile, gib: &[u64]| {
        let array = dealt(
            profile,
            &gib.iter().map(|gib| gib << 30).collect::<Vec<_>>(),
        );
        let told = |group: &Group| {
            let mib = group.data.to_bytes().0 as f64 / 1_048_576.0;
            (on(group), group.chunks, mib)
        };
        array.groups().iter().map(told).collect::<Vec<_>>()
    };
    let named = |name: &str, chunks, mib| (name.to_owned(), chunks, mib);
    assert_eq!(
        of(BtrfsProfile::Raid5, &[8, 8, 4, 2]),
        [
            named("m0-m3", 3, 1689.5625 + 2256.0 + 1403.4375),
            named("m0 m1 m2", 2, 4096.0),
            named("m0 m1", 6, 4.0 * 1024.0 + 244.0 + 20.0),
        ]
    );
    assert_eq!(
        of(BtrfsProfile::Raid6, &[8, 8, 4, 4]),
        [named("m0-m3", 4, 3.0 * 2048.0 + 1518.0)]
    );
    assert_eq!(
        of(BtrfsProfile::Raid1c3, &[8, 8, 4, 4]),
        [
            named("m1=m2=m3", 1, 1024.0),
            named("m0=m1=m2", 3, 2.0 * 1024.0 + 759.0),
            named("m0=m1=m3", 3, 2.0 * 1024.0 + 759.0),
        ]
    );
    assert_eq!(
        of(BtrfsProfile::Raid1, &[6; 4]),
        [
            named("m2=m3", 6, 5.0 * 1024.0 + 759.0),
            named("m0=m1", 6, 5.0 * 1024.0 + 1023.0),
        ]
    );
    let four = of(BtrfsProfile::Raid1c4, &[6; 5]);
    let all: f64 = four.iter().map(|(_, _, mib)| mib).sum();
    assert_eq!((four.len(), all), (5, 6.0 * 1024.0 + 759.0));
}

#[test]
fn what_is_lost_is_what_shares_a_chunk() {
    let named = |array: &Dealt| {
        let fatal = array.fatal();
        fatal
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    // Four with as much take turns in pairs that stay together.
    let array = tb(BtrfsProfile::Raid1, &[8; 4]);
    assert_eq!(named(&array), "m0+m1, m2+m3");
    let array = tb(BtrfsProfile::Raid1, &[8; 3]);
    assert_eq!(array.fatal().len() as u64, array.patterns(2));
    let array = tb(BtrfsProfile::Raid5, &[8; 4]);
    assert_eq!(array.fatal().len() as u64, array.patterns(2));
    let array = tb(BtrfsProfile::Raid6, &[8; 5]);
    assert_eq!(array.fatal().len() as u64, array.patterns(3));
    assert_eq!(tb(BtrfsProfile::Raid1c4, &[8; 4]).fatal().len(), 1);
    // The metadata of single is on the last two, and its data on all.
    assert_eq!(named(&tb(BtrfsProfile::Single, &[8; 3])), "m0, m1, m2");
}

#[test]
fn a_rebuild_reads_what_the_fullest_member_is_made_from() {
    let of = |profile, sizes: &[u64]| {
        let told = tb(profile, sizes).rebuilds().into_iter();
        told.map(|r| (r.failed, (r.reads.0 + TB / 2) / TB, r.made_good))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(BtrfsProfile::Raid0, &[8; 4]), []);
    assert_eq!(of(BtrfsProfile::Raid1, &[8, 8, 4, 2]), [(1, 8, false)]);
    assert_eq!(of(BtrfsProfile::Raid1, &[8, 2, 2]), [(1, 4, false)]);
    assert_eq!(of(BtrfsProfile::Raid5, &[8; 4]), [(1, 24, false)]);
    // Two of four members, two of three, four of two.
    assert_eq!(of(BtrfsProfile::Raid5, &[8, 8, 4, 2]), [(1, 14, false)]);
    assert_eq!(
        of(BtrfsProfile::Raid6, &[8; 5]),
        [(1, 32, true), (2, 24, false)]
    );
    assert_eq!(
        of(BtrfsProfile::Raid1c3, &[8; 3]),
        [(1, 8, true), (2, 8, false)]
    );
}

/// Some 1.4 million chunks; and as many as there could be at all.
#[test]
fn large_arrays_are_dealt_in_rounds() {
    for profile in ALL {
        let array = tb(profile, &[24; 60]);
        let share = array.capacity().0 as f64 / array.raw().0 as f64;
        let wanted = match profile {
            BtrfsProfile::Raid5 => 59.0 / 60.0,
            BtrfsProfile::Raid6 => 58.0 / 60.0,
            _ => 1.0 / profile.copies() as f64,
        };
        assert!((share / wanted - 1.0).abs() < 1e-3, "{profile:?} {share}");
        let unlike: Vec<u64> = (1..=128).map(|member| member * 400 * TB).collect();
        assert!(dealt(profile, &unlike).capacity().0 > 0);
    }
    let sizes = [Sectors(1 << 54); 2];
    let refused = Dealt::new(BtrfsProfile::Raid0, &sizes, true);
    assert_eq!(refused, Err(LayoutError::TooLarge));
}

proptest! {
    /// Rounds are told as if each chunk had been made.
    #[test]
    fn rounds_are_the_chunks_that_they_stand_for(
        profile in prop::sample::select(&ALL[..]),
        large in any::<bool>(),
        degenerate in any::<bool>(),
        sizes in prop::collection::vec(
            (prop::sample::select(vec![2_u64, 3, 8, 20, 20, 100, 400]), prop::sample::select(vec![0_u64, 0, 1, 700])), 4..9
        ),
    ) {
        let scale = if large { 3 } else { 1 };
        let sizes: Vec<u64> = sizes.iter().map(|(gib, mib)| ((gib * scale) << 30) + (mib << 20)).collect();
        let sectors: Vec<Sectors> = sizes.iter().map(|size| Bytes(*size).to_sectors()).collect();
        let array = Dealt::new(profile, &sectors, degenerate).expect("an array");
        let mut expected = one_by_one(profile, &sizes, degenerate);
        for group in array.groups() {
            let known = expected.remove(&group.members);
            prop_assert_eq!(known, Some((group.chunks, group.data.0)), "{:?}", group);
        }
        prop_assert!(expected.is_empty(), "{expected:?}");
        // No member has more in its chunks than there is, nor less than is told to be left.
        for (member, size) in sectors.iter().enumerate() {
            let member = Member::new(member);
            let held = array.held(member).0 + array.left(member).0;
            prop_assert!(held <= size.0 && held + (38 << 11) >= size.0, "{member} {held} of {}", size.0);
        }
    }

    /// Continuous filling comes to the same within what metadata takes, and some chunks.
    #[test]
    fn chunks_hold_what_is_filled_continuously(
        profile in prop::sample::select(&ALL[..]),
        gib in prop::collection::vec(50_u64..900, 4..8),
    ) {
        let sizes: Vec<u64> = gib.iter().map(|gib| gib << 30).collect();
        let has = dealt(profile, &sizes).capacity().to_bytes().0 >> 30;
        let expected = in_turn(profile, &gib);
        prop_assert!(has.abs_diff(expected) <= 6, "{has} for {expected}");
    }
}
