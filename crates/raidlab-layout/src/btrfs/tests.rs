//! Chunks of btrfs: where mkfs and the kernel put them, and where that leads.
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const META: Bytes = Bytes(256 * MIB);
const ALL: [BtrfsProfile; 8] = BtrfsProfile::ALL;

fn made(profile: BtrfsProfile, gib: &[u64]) -> Btrfs {
    let sizes: Vec<Sectors> = gib
        .iter()
        .map(|gib| Bytes(gib * GIB).to_sectors())
        .collect();
    let large = gib.iter().sum::<u64>() > 50;
    let metadata = if large { Bytes::gib(1) } else { META };
    Btrfs::new(profile, &sizes, metadata, true).expect("an array")
}

/// The members of each chunk of data, in their order.
fn dealt(array: &Btrfs) -> Vec<Vec<u16>> {
    let members = |chunk: &Chunk| chunk.pieces.iter().map(|piece| piece.0).collect();
    array.chunks[1..].iter().map(members).collect()
}

/// MiB that a chunk of data has of each member, and where on the first one of its.
fn sizes(array: &Btrfs) -> Vec<f64> {
    let of = |chunk: &Chunk| {
        let data = ((chunk.pieces.len() - chunk.parities) / chunk.copies) as u64;
        (chunk.end - chunk.begin) as f64 / data as f64 / 2048.0
    };
    array.chunks[1..].iter().map(of).collect()
}

/// As Linux 6.18 and mkfs 6.2 dealt out files of several GiB on loop devices.
#[test]
fn chunks_are_those_of_a_real_file_system() {
    let array = made(BtrfsProfile::Raid1, &[3; 2]);
    assert_eq!(sizes(&array)[..3], [307.1875, 624.0, 624.0]);
    assert_eq!(dealt(&array)[..3], [[0, 1], [1, 0], [1, 0]].map(Vec::from));
    let array = made(BtrfsProfile::Raid1, &[100; 2]);
    assert_eq!(sizes(&array)[..2], [1024.0; 2]);
    let array = made(BtrfsProfile::Raid1, &[100; 3]);
    let expected = [[1, 2], [0, 1], [0, 2], [0, 1], [0, 2], [0, 1]];
    assert_eq!(dealt(&array)[..6], expected.map(Vec::from));
    // What mkfs made there first has gone, so that it begins as the others do.
    assert_eq!(array.chunks[2].pieces[0], (0, RESERVED.0));
    // Of 16 GiB a tenth is more than a piece.
    assert_eq!(sizes(&made(BtrfsProfile::Raid1, &[8; 2]))[0], 1024.0);
    let array = made(BtrfsProfile::Raid10, &[3; 4]);
    assert_eq!(sizes(&array)[..3], [307.1875, 624.0, 624.0]);
    // Behind 8 MiB of the system's and 64 of metadata.
    let begins = array.chunks[1].pieces.iter().map(|piece| piece.1 / 2048);
    assert_eq!(begins.collect::<Vec<_>>(), [93, 73, 73, 73]);
    assert_eq!(
        dealt(&array)[..2],
        [[0, 1, 2, 3], [1, 2, 3, 0]].map(Vec::from)
    );
    let array = made(BtrfsProfile::Single, &[3; 2]);
    assert_eq!(sizes(&array)[..3], [8.0, 624.0, 624.0]);
    assert_eq!(dealt(&array)[..5], [[0], [1], [0], [1], [0]].map(Vec::from));
    let array = made(BtrfsProfile::Single, &[100; 3]);
    assert_eq!(dealt(&array)[..2], [[0], [0]].map(Vec::from));
    let array = made(BtrfsProfile::Raid0, &[100; 4]);
    assert_eq!(sizes(&array)[..2], [1024.0; 2]);
    // Ten GiB over twelve members, rounded down by mkfs and up by the kernel.
    let array = made(BtrfsProfile::Raid0, &[1024; 12]);
    assert_eq!(sizes(&array)[..2], [853.3125, 864.0]);
    assert_eq!(array.chunk(), Bytes(12 * 864 * MIB).to_sectors());
}

/// As Linux 6.1 dealt out 1500 MiB on members of 3 GiB, mounted without one of those that mkfs 6.2 had.
#[test]
fn a_degraded_one_deals_to_the_members_that_are_there() {
    let without = |profile, members: usize, missing: u16| {
        let sizes = vec![Bytes(3 * GIB).to_sectors(); members];
        let missing = MemberSet::one(Member(missing));
        Btrfs::degraded(profile, &sizes, META, true, missing).expect("an array")
    };
    // One disk of a mirror: once from then on, and no more than a tenth of it in a chunk.
    let array = without(BtrfsProfile::Raid1, 2, 1);
    assert_eq!(dealt(&array)[..3], [vec![0, 1], vec![0], vec![0]]);
    assert_eq!(sizes(&array)[1..3], [320.0; 2]);
    assert_eq!((array.raw(), array.profile().copies()), ((1, 1), 2));
    let array = without(BtrfsProfile::Raid1, 3, 1);
    assert_eq!(dealt(&array)[..3], [[1, 2], [0, 2], [0, 2]].map(Vec::from));
    assert_eq!(sizes(&array)[1..3], [624.0; 2]);
    let array = without(BtrfsProfile::Raid1, 3, 2);
    assert_eq!(dealt(&array)[..3], [[1, 2], [0, 1], [0, 1]].map(Vec::from));
    // Four of which three are there: a pair of them.
    let array = without(BtrfsProfile::Raid10, 4, 1);
    assert_eq!(dealt(&array)[..2], [vec![0, 1, 2, 3], vec![2, 3]]);
    assert_eq!(sizes(&array)[1], 928.0);
    assert_eq!(array.raw(), (2, 1));
    // Linux before 5.15 wants two pairs.
    let three = vec![Bytes(3 * GIB).to_sectors(); 4];
    let old = Btrfs::degraded(
        BtrfsProfile::Raid10,
        &three,
        META,
        false,
        MemberSet::one(Member(1)),
    )
    .expect("an array");
    assert_eq!(dealt(&old)[1].len(), 1);
}

/// What was written before a member failed is on it, what comes after is not.
#[test]
fn chunks_made_before_a_failure_are_on_all_members() {
    let data = RESERVED.0 + Bytes::gib(1).to_sectors().0;
    let written = |gib: u64| Lba(data + Bytes::gib(gib).to_sectors().0);
    let later = |profile, members: usize, missing: u16, gib: u64| {
        let sizes = vec![Bytes(100 * GIB).to_sectors(); members];
        let later = (MemberSet::one(Member(missing)), written(gib));
        Btrfs::degraded_later(profile, &sizes, Bytes::gib(1), true, later).expect("an array")
    };
    // Chunks as if it had never failed, and copies of the first ones.
    let of = |array: &Btrfs| {
        let sizes: Vec<Sectors> = array.sizes.iter().map(|size| Sectors(*size)).collect();
        let never = Btrfs::new(array.profile, &sizes, Bytes::gib(1), true).expect("an array");
        let both = array.chunks.iter().zip(&never.chunks);
        let copies = array.chunks[1..].iter().map(|chunk| chunk.copies);
        let whole = both.take_while(|(a, b)| a == b).count();
        (whole, copies.take(8).collect::<Vec<_>>())
    };
    // Chunks of 1 GiB each, and that of metadata; those after the failure are kept once.
    assert_eq!(
        of(&later(BtrfsProfile::Raid1, 2, 1, 4)),
        (5, vec![2, 2, 2, 2, 1, 1, 1, 1])
    );
    // One is begun.
    let begun = (MemberSet::one(Member(0)), Lba(written(4).0 + 1));
    let sizes = [Bytes(100 * GIB).to_sectors(); 2];
    let array =
        Btrfs::degraded_later(BtrfsProfile::Raid1, &sizes, Bytes::gib(1), true, begun).unwrap();
    assert_eq!(of(&array).0, 6);
    // mkfs has made the first of data in any case.
    let array = later(BtrfsProfile::Raid1, 3, 1, 0);
    assert_eq!(of(&array).0, 2);
    assert_eq!(
        array,
        Btrfs::degraded(
            BtrfsProfile::Raid1,
            &[Bytes(100 * GIB).to_sectors(); 3],
            Bytes::gib(1),
            true,
            MemberSet::one(Member(1))
        )
        .unwrap()
    );
    // Where enough are left, copies are kept, on the others.
    let array = later(BtrfsProfile::Raid1, 3, 1, 8);
    assert_eq!(of(&array), (9, vec![2; 8]));
    let after = dealt(&array).split_off(8);
    assert!(after.len() > 80 && after.iter().all(|members| !members.contains(&1)));
    // A file system that is full before has nothing to deal.
    let array = later(BtrfsProfile::Raid10, 4, 1, 1000);
    assert_eq!(of(&array).0, array.chunks.len());
}

/// As mkfs 6.2 made them on files: MiB of each piece of metadata and of data, and where those begin on the first member and the last.
#[test]
fn mkfs_makes_the_first_chunks_of_parity_and_of_many_copies() {
    let of = |profile, gib: &[u64]| {
        let array = made(profile, gib);
        let told = |chunk: &Chunk| {
            let data = (chunk.pieces.len() - chunk.parities) / chunk.copies;
            let mib = |sectors: u64| sectors as f64 / 2048.0;
            let (first, last) = (chunk.pieces[0], chunk.pieces[chunk.pieces.len() - 1]);
            let each = mib((chunk.end - chunk.begin) / data as u64);
            (each, (first.0, mib(first.1)), (last.0, mib(last.1)))
        };
        (told(&array.chunks[0]), told(&array.chunks[1]))
    };
    let (raid5, raid6) = (BtrfsProfile::Raid5, BtrfsProfile::Raid6);
    assert_eq!(
        of(raid5, &[3; 2]),
        (
            (256.0, (0, 29.0), (1, 9.0)),
            (307.1875, (0, 285.0), (1, 265.0))
        )
    );
    assert_eq!(
        of(raid5, &[3; 4]),
        (
            (256.0, (2, 9.0), (3, 9.0)),
            (307.1875, (0, 21.0), (3, 265.0))
        )
    );
    assert_eq!(
        of(raid6, &[100; 5]),
        (
            (1024.0, (2, 9.0), (4, 9.0)),
            (1024.0, (0, 21.0), (4, 1033.0))
        )
    );
    assert_eq!(
        of(raid6, &[200; 14]),
        (
            (1024.0, (11, 9.0), (13, 9.0)),
            (731.375, (0, 21.0), (13, 1033.0))
        )
    );
    assert_eq!(
        of(raid5, &[200; 37]),
        (
            (1024.0, (35, 9.0), (36, 9.0)),
            (276.75, (0, 21.0), (36, 1033.0))
        )
    );
    assert_eq!(
        of(BtrfsProfile::Raid1c3, &[3; 4]),
        (
            (256.0, (1, 9.0), (3, 9.0)),
            (1024.0, (1, 265.0), (3, 265.0))
        )
    );
    assert_eq!(
        of(BtrfsProfile::Raid1c4, &[100; 5]),
        (
            (1024.0, (1, 9.0), (4, 9.0)),
            (1024.0, (1, 1033.0), (4, 1033.0))
        )
    );
}

/// Every sector of a chunk with parity is one of data or in a row's P or Q, which come behind its data in turn.
#[test]
fn parity_leaves_each_sector_of_data_a_place_of_its_own() {
    for (profile, members) in [
        (BtrfsProfile::Raid5, 2),
        (BtrfsProfile::Raid5, 5),
        (BtrfsProfile::Raid6, 3),
        (BtrfsProfile::Raid6, 6),
    ] {
        let array = made(profile, &vec![2; members]);
        let chunk = &array.chunks[1];
        let rows = (chunk.end - chunk.begin) / STRIPE / (members - chunk.parities) as u64;
        let mut taken = BTreeSet::new();
        for stripe in 0..(chunk.end - chunk.begin) / STRIPE {
            let (copies, run) = array
                .locate(Lba(chunk.begin + stripe * STRIPE))
                .expect("a place");
            assert_eq!((copies.len(), run), (1, STRIPE));
            let member = copies[0].member.0;
            let piece = chunk.pieces.iter().position(|piece| piece.0 == member);
            let piece = piece.expect("one of its members");
            let row = (copies[0].sector.0 - chunk.pieces[piece].1) / STRIPE;
            assert!(taken.insert((row, piece)), "{profile:?} {stripe}");
        }
        for row in 0..rows {
            let free: BTreeSet<usize> = (0..members)
                .filter(|piece| !taken.contains(&(row, *piece)))
                .collect();
            let behind = |nth: usize| (row as usize + members - 1 - nth) % members;
            let parity: BTreeSet<usize> = (0..chunk.parities).map(behind).collect();
            assert_eq!(free, parity, "{profile:?} row {row}");
            let data = (members - chunk.parities) as u64 * STRIPE;
            let begin = chunk.begin + row * data;
            for at in [begin, begin + STRIPE / 2, begin + data - 1] {
                let told = array.row(Lba(at)).expect("a row");
                assert_eq!((told.begin.0, told.sectors()), (begin, data));
                for (turn, place) in told.pieces[..told.data()].iter().enumerate() {
                    let at = begin + turn as u64 * STRIPE;
                    assert_eq!(array.locate(Lba(at)).expect("a place").0[..], [*place]);
                }
                // Behind the data each of the other members has its part, as far from its beginning.
                for place in &told.pieces[told.data()..] {
                    let piece = chunk.pieces.iter().find(|p| p.0 == place.member.0);
                    let (member, begin) = *piece.expect("one of its members");
                    assert_eq!(place.sector.0, begin + row * STRIPE);
                    let piece = chunk.pieces.iter().position(|p| p.0 == member);
                    assert!(free.contains(&piece.expect("a piece")));
                }
            }
        }
    }
}

#[test]
fn profiles_have_the_names_of_mkfs_and_of_layouts() {
    for profile in ALL {
        assert_eq!(BtrfsProfile::named(profile.name()), Some(profile));
        assert_eq!(BtrfsProfile::of(profile.name()), Some(profile));
    }
    assert_eq!(BtrfsProfile::of("linear"), Some(BtrfsProfile::Single));
    assert_eq!(BtrfsProfile::of("raid10-n2"), Some(BtrfsProfile::Raid10));
    for none in ["raid7", "raid4", "raid10-f2", "raid5-la"] {
        assert_eq!(BtrfsProfile::of(none), None);
    }
}

#[test]
fn chunks_go_to_the_members_with_the_most_room() {
    // Four members of which one is small: pairs of all four while that has room, and then of two.
    let array = made(BtrfsProfile::Raid10, &[40, 40, 40, 12]);
    let widths: BTreeSet<usize> = dealt(&array).iter().map(Vec::len).collect();
    assert_eq!(widths, BTreeSet::from([2, 4]));
    // They find no room for four as Linux before 5.15 wants them.
    let sizes = [40, 40, 40, 12].map(|gib| Bytes(gib * GIB).to_sectors());
    let old = Btrfs::new(BtrfsProfile::Raid10, &sizes, META, false).expect("an array");
    assert!(dealt(&old).iter().all(|on| on.len() == 4));
}

#[test]
fn stripes_and_copies_are_where_the_kernel_maps_them() {
    let array = made(BtrfsProfile::Raid10, &[40; 4]);
    let begin = array.chunks[1].begin;
    let at = |sector: u64| {
        let (copies, run) = array.locate(Lba(begin + sector)).expect("a place");
        let members: Vec<u16> = copies.iter().map(|place| place.member.0).collect();
        let first = |piece: &&(u16, u64)| piece.0 == copies[0].member.0;
        let piece = array.chunks[1].pieces.iter().find(first).expect("a piece");
        let inside = copies[0].sector.0 - piece.1;
        (members, inside, run)
    };
    assert_eq!(at(0), (vec![0, 1], 0, 128));
    assert_eq!(at(130), (vec![2, 3], 2, 126));
    assert_eq!(at(256), (vec![0, 1], 128, 128));
    let single = made(BtrfsProfile::Single, &[40; 2]);
    let second = single.chunks[2].begin;
    let (copies, run) = single.locate(Lba(second + 5)).expect("a place");
    assert_eq!((copies.len(), run), (1, Bytes::gib(1).to_sectors().0 - 5));
}

#[test]
fn superblocks_are_on_all_members_that_have_room() {
    let array = made(BtrfsProfile::Raid0, &[300, 300, 200]);
    let of = |number| {
        array
            .super_of(Btrfs::super_at(number))
            .map(|(at, on)| (at.0, on.len()))
    };
    assert_eq!(of(0), Some((128, 3)));
    assert_eq!(of(1), Some((64 * 2048, 3)));
    assert_eq!(of(2), Some((256 << 21, 2)));
    assert_eq!(array.super_of(Lba(0)), None);
    assert_eq!(array.locate(Btrfs::super_at(0)), None);
}

#[test]
fn too_little_is_refused() {
    let of = |profile, sizes: &[u64]| {
        let sizes: Vec<Sectors> = sizes.iter().map(|size| Sectors(*size)).collect();
        Btrfs::new(profile, &sizes, META, true)
            .expect_err("no array")
            .to_string()
    };
    assert!(of(BtrfsProfile::Raid1, &[1 << 30]).contains("at least 2"));
    assert!(
        of(BtrfsProfile::Single, &[3, 3]).contains("member 0 has 1.5 KiB, less than the 21.1 MiB")
    );
    // What mkfs leaves on the first would be beyond its end.
    assert!(of(BtrfsProfile::Single, &[20_000, 1 << 24, 1 << 24]).contains("member 0"));
    assert!(of(BtrfsProfile::Raid1, &[1 << 24, 60_000]).contains("member 1"));
    assert!(of(BtrfsProfile::Raid0, &[1 << 30; 200]).contains("200 members"));
}

proptest! {
    /// No sector of a member is in two places, none is beyond its end, and copies are on different members.
    #[test]
    fn no_sector_is_given_out_twice(
        profile in prop::sample::select(&ALL[..]),
        gib in prop::collection::vec(2_u64..20, 4..8),
    ) {
        let array = made(profile, &gib);
        let mut taken: Vec<Vec<(u64, u64)>> = vec![Vec::new(); gib.len()];
        for chunk in &array.chunks {
            let on: BTreeSet<u16> = chunk.pieces.iter().map(|piece| piece.0).collect();
            prop_assert_eq!(on.len(), chunk.pieces.len());
            let data = (chunk.pieces.len() - chunk.parities) / chunk.copies;
            let each = (chunk.end - chunk.begin) / data as u64;
            for (member, begin) in &chunk.pieces {
                taken[usize::from(*member)].push((*begin, begin + each));
            }
        }
        for (member, mut runs) in taken.into_iter().enumerate() {
            runs.sort_unstable();
            prop_assert!(runs.first().is_none_or(|run| run.0 >= RESERVED.0), "{runs:?}");
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            let end = runs.last().map_or(0, |run| run.1);
            prop_assert!(end <= array.size(Member::new(member)).0);
        }
        prop_assert!(array.chunks.windows(2).all(|pair| pair[0].end == pair[1].begin));
    }

    /// What a member has of its chunks is what its addresses are mapped to, and all of that.
    #[test]
    fn shares_are_where_addresses_are_mapped_to(
        profile in prop::sample::select(&ALL[..]),
        gib in prop::collection::vec(3_u64..40, 4..7),
        member in 0_u16..7,
        at: u64,
    ) {
        let array = made(profile, &gib);
        let member = Member(member % gib.len() as u16);
        let shares = array.on(member);
        prop_assert!(shares.windows(2).all(|two| two[0].place + two[0].len <= two[1].place));
        for share in &shares {
            let inside = at % share.len;
            let here = Place { member, sector: Lba(share.place + inside) };
            match share.held(inside) {
                Held::Data { at, run } => {
                    prop_assert!(run > 0 && inside + run <= share.len);
                    prop_assert_eq!(share.inside(at), inside);
                    let (copies, follow) = array.locate(Lba(at)).expect("a chunk");
                    prop_assert_eq!(follow, run);
                    prop_assert!(copies.contains(&here));
                    // What comes behind a stretch is the first of the next one.
                    prop_assert_eq!(share.inside(at + run), inside + run);
                }
                Held::Parity { row, data, piece } => {
                    let of = array.row(Lba(row)).expect("a row");
                    prop_assert_eq!((of.begin, of.data()), (Lba(row), data));
                    prop_assert!(piece >= data);
                    let begin = inside / STRIPE * STRIPE;
                    let sector = Lba(share.place + begin);
                    prop_assert_eq!(of.pieces[piece], Place { member, sector });
                    for address in [row, row + of.sectors() - 1] {
                        prop_assert_eq!(share.inside(address), begin);
                    }
                }
            }
        }
        let address = at % array.capacity().0;
        if let Some((copies, _)) = array.locate(Lba(address)) {
            let has = |share: &Share| {
                let inside = share.inside(address);
                inside < share.len && matches!(share.held(inside), Held::Data { at, .. } if at == address)
            };
            prop_assert_eq!(shares.iter().any(has), copies.iter().any(|place| place.member == member));
        }
    }

    /// A run of addresses is a run on each of its members.
    #[test]
    fn a_run_lies_together(
        profile in prop::sample::select(&ALL[..]),
        gib in prop::collection::vec(2_u64..20, 4..8),
        spot in 0_u64..1 << 20,
    ) {
        let array = made(profile, &gib);
        let data = array.capacity().0 - RESERVED.0;
        let at = RESERVED.0 + spot * (data / (1 << 20));
        let (first, run) = array.locate(Lba(at)).expect("a place");
        prop_assert!(run > 0 && at + run <= array.capacity().0);
        let (last, rest) = array.locate(Lba(at + run - 1)).expect("a place");
        prop_assert_eq!(rest, 1);
        for (first, last) in first.iter().zip(&last) {
            prop_assert_eq!(first.member, last.member);
            prop_assert_eq!(first.sector.0 + run - 1, last.sector.0);
        }
    }
}
