//! What a user reads: drawings, descriptions, refusals. As snapshots.
mod common;
use common::{place, sectors};
use insta::assert_snapshot;
use raidlab_core::units::{Bytes, Lba, Sectors};
use raidlab_layout::describe::{capacity, describe, what_is, where_is};
use raidlab_layout::draw::draw;
use raidlab_layout::*;

const CHUNK: Bytes = Bytes::kib(64);

/// A layout of equal members of 1 GiB with a chunk of 64 KiB.
fn layout(spec: &str, members: usize) -> Layout {
    let geometry = Geometry::equal(members, Bytes::gib(1), CHUNK).unwrap();
    spec.parse::<Spec>().unwrap().build(&geometry).unwrap()
}

fn described(spec: &str, members: usize) -> String {
    let sizes = vec![Bytes::gib(1).to_sectors(); members];
    describe(&layout(spec, members), &sizes, 5).join("\n")
}

#[test]
fn descriptions() {
    assert_snapshot!("raid0", described("raid0", 3));
    assert_snapshot!("raid1", described("raid1", 3));
    assert_snapshot!("raid5", described("raid5", 4));
    assert_snapshot!("raid6", described("raid6", 6));
    assert_snapshot!("raid10_near", described("raid10", 4));
    assert_snapshot!("raid10_near_odd", described("raid10-n2", 5));
    assert_snapshot!("raid10_far", described("raid10-f2", 4));
    assert_snapshot!("raid10_offset_three", described("raid10-o3", 7));
    assert_snapshot!("raid01", described("raid01 2x2", 4));
    assert_snapshot!("raid1+0", described("raid10 2x2", 4));
    assert_snapshot!("raid50", described("raid50 2x3", 6));
    assert_snapshot!("raid60_wide", described("raid60 3x8", 24));
}

#[test]
fn a_description_of_unequal_members() {
    let sizes = [2, 5, 5, 8].map(|c| Sectors(c * 128 + 9));
    let layout = Layout::raid0(&sizes, Sectors(128), Raid0Order::Original).unwrap();
    assert_snapshot!("raid0_zones", describe(&layout, &sizes, 3).join("\n"));
    let layout = Layout::raid5(&sizes, Sectors(128), ParityAlgorithm::default()).unwrap();
    assert_snapshot!("raid5_unequal", describe(&layout, &sizes, 3).join("\n"));
    let layout = Layout::linear(&sizes, None).unwrap();
    assert_snapshot!("linear", describe(&layout, &sizes, 3).join("\n"));
}

/// What raid10 has no room for a pair in is unused, as the tails beyond whole chunks are.
#[test]
fn what_is_unused_is_all_that_holds_nothing() {
    let told = |spec: &str, n: usize, sectors: u64| {
        let geometry = Geometry::equal(n, Sectors(sectors).to_bytes(), CHUNK).unwrap();
        let layout = spec.parse::<Spec>().unwrap().build(&geometry).unwrap();
        let empty = (0..n)
            .flat_map(|m| (0..sectors).map(move |at| (Member::new(m), Lba(at))))
            .filter(|(m, at)| layout.content(*m, *at) == Content::Unused)
            .count();
        let line = capacity(&layout, &vec![Sectors(sectors); n]);
        let unused = line.split_once("; ").map_or("none", |(_, unused)| unused);
        (empty as u64 / 2, unused.to_owned())
    };
    let unused = |kib: u64| (kib, format!("{kib} KiB of the members unused"));
    // Three rows of 5, of which 14 are pairs; and half a chunk at the end of each.
    assert_eq!(told("raid10", 5, 3 * 128 + 64), unused(64 + 5 * 32));
    assert_eq!(told("raid10", 3, 3 * 128), unused(64));
    assert_eq!(told("raid10", 4, 3 * 128), (0, "none".to_owned()));
    assert_eq!(told("raid10-f2", 5, 5 * 128), unused(5 * 64));
    assert_eq!(told("raid10-o2", 5, 4 * 128), (0, "none".to_owned()));
    assert_eq!(told("raid10-n3", 5, 2 * 128), unused(64));
    assert_eq!(told("raid5", 4, 2 * 128 + 8), unused(4 * 4));
}

#[test]
fn a_wide_array_is_drawn_in_blocks() {
    assert_snapshot!("wide", draw(&layout("raid6", 40), 3));
}

#[test]
fn every_line_of_a_drawing_fits() {
    for n in 4..=128 {
        let drawing = draw(&layout("raid6", n), 40);
        assert!(drawing.lines().all(|line| line.len() <= 100), "{drawing}");
        let named = (0..n).all(|m| {
            drawing
                .split_whitespace()
                .any(|word| word == format!("m{m}"))
        });
        assert!(named, "{drawing}");
    }
}

#[test]
fn where_a_sector_is() {
    let mut lines = Vec::new();
    for (spec, n, lba) in [
        ("raid5", 4, 1000),
        ("raid6", 6, 1000),
        ("raid10-f2", 4, 1000),
        ("raid50 2x3", 6, 1000),
        ("raid0+1 2x2", 4, 1000),
        ("raid1", 2, 1 << 40),
    ] {
        lines.push(format!("{spec}:"));
        lines.extend(where_is(&layout(spec, n), Lba(lba)));
    }
    let raid5 = layout("raid5", 4);
    lines.push("raid5:".into());
    for sector in [0, 128 * 3, u64::MAX / 2] {
        lines.push(what_is(&raid5, place(3, sector)));
    }
    assert_snapshot!("where", lines.join("\n"));
}

#[test]
fn a_geometry_that_is_no_array_is_refused_with_the_remedy() {
    let big = |n: usize| vec![Sectors(1 << 20); n];
    let (chunk, ls) = (Sectors(128), ParityAlgorithm::default());
    let order = Raid0Order::Alternate;
    let refused = [
        Layout::raid5(&big(1), chunk, ls),
        Layout::raid5(&[], chunk, ls),
        Layout::raid6(&big(3), chunk, ls),
        Layout::raid1(&big(1)),
        Layout::raid0(&big(200), chunk, order),
        Layout::raid0(&big(2), Sectors(0), order),
        Layout::raid5(&big(3), Sectors(0), ls),
        Layout::raid5(&big(3), Sectors(96), ls),
        Layout::raid5(&big(3), Sectors(4), ls),
        Layout::raid10(&big(3), Sectors(1 << 40), Copies::near(2)),
        Layout::raid10(&big(3), Sectors(u64::MAX), Copies::near(2)),
        Layout::raid10(&big(3), chunk, Copies::near(4)),
        Layout::raid10(
            &big(3),
            chunk,
            Copies {
                near: 2,
                far: 2,
                offset: true,
            },
        ),
        Layout::raid10(&big(3), chunk, Copies::near(1)),
        Layout::raid10(&sectors(&[200, 1000]), chunk, Copies::far(2)),
        Layout::raid0(&sectors(&[1000, 127, 1000]), chunk, order),
        Layout::raid5(&big(5), chunk, ParityAlgorithm::RotatingNContinue),
        Layout::linear(&sectors(&[u64::MAX, u64::MAX]), None),
        Layout::nested(vec![Layout::raid1(&big(2)).unwrap()], |_| {
            Layout::raid1(&big(2))
        }),
        Layout::nested(vec![Layout::raid1(&big(2)).unwrap(); 2], |_| {
            Layout::raid1(&[Sectors(1 << 30); 2])
        }),
        Layout::nested(vec![Layout::raid1(&big(100)).unwrap(); 2], Layout::raid1),
    ];
    let lines = refused.map(|layout| layout.unwrap_err().to_string());
    assert_snapshot!("refused", lines.join("\n"));
}

#[test]
fn a_text_that_is_no_level_is_refused_with_the_remedy() {
    let texts = [
        "",
        "raid",
        "raid7",
        "raid-5",
        "stripe",
        "mirrored",
        "raid3",
        "R5",
        "raidd10",
        "raid5-xx",
        "raid1-n2",
        "raid10-n2n2",
        "raid10-n0",
        "raid10-",
        "raid10-é",
        "raid10-n99999999999999999999",
        "raid50",
        "raid50 2",
        "raid50 0x3",
        "raid50 2xthree",
        "raid5 2x3",
        "raid0 2",
        "raid10 4",
        "raid10-f2 2x2",
        "raid6-ddf",
        "zfs",
        "raidz2",
        "raid0+",
        "raid+0",
        "raid5+0",
        "raid99 2x2",
        "raidé0",
    ];
    let lines = texts.map(|text| match text.parse::<Spec>() {
        Ok(spec) => format!("{text}: {spec:?}"),
        Err(error) => format!("{text}: {error}"),
    });
    assert_snapshot!("not_a_level", lines.join("\n"));
    let spec: Spec = "raid50 2x3".parse().unwrap();
    let five = Geometry::equal(5, Bytes::gib(1), CHUNK).unwrap();
    assert_snapshot!(
        "shape_of_other_members",
        spec.build(&five).unwrap_err().to_string()
    );
    let odd = Geometry::equal(5, Bytes::gib(1), Bytes(1000)).unwrap_err();
    assert_snapshot!("odd_chunk", odd.to_string());
}

#[test]
fn levels_are_read_in_their_spellings() {
    let name = |spec: &str, n| describe::name(&layout(spec, n));
    let same = [
        ("raid5", "RAID5-ls", 4),
        ("raid5", "raid5-left-symmetric", 4),
        ("raid6-ra-6", "raid6-right-asymmetric-6", 5),
        ("raid6-ddf-N-continue", "raid6-ddf-n-continue", 5),
        ("raid10", "raid10-n2", 4),
        ("raid10 2x2", "raid1+0 2x2", 4),
        ("raid50 2x3", "raid5-ls+0  2x3", 6),
        ("raid0", "raid0-alternate", 2),
        ("linear", "jbod", 2),
    ];
    for (a, b, n) in same {
        assert_eq!(name(a, n), name(b, n));
        assert_eq!(layout(a, n), layout(b, n));
    }
    let Layout::Raid10(raid10) = layout("raid10-n2o3", 7) else {
        panic!("no raid10")
    };
    assert_eq!(
        raid10.copies(),
        Copies {
            near: 2,
            far: 3,
            offset: true
        }
    );
    let Layout::Nested(nested) = layout("raid60 2x4", 8) else {
        panic!("not nested")
    };
    assert_eq!((nested.inner().len(), nested.inner()[1].members()), (2, 4));
    assert_eq!("raid60 2x4".parse::<Spec>().unwrap().least_members(), 8);
    assert_eq!("raid10-f3".parse::<Spec>().unwrap().least_members(), 3);
}

/// What a level does is to be seen where nobody says how many members it has.
#[test]
fn members_that_show_what_a_level_does() {
    let members = |text: &str| text.parse::<Spec>().unwrap().telling_members();
    let flat = [
        "linear",
        "raid0",
        "raid1",
        "raid4",
        "raid5-la",
        "raid6",
        "raid10",
        "raid10-f3",
        "raid10-n3f2",
        "raid50 3x5",
    ];
    assert_eq!(flat.map(members), [2, 2, 2, 3, 3, 4, 4, 4, 6, 15]);
    let nested = |text: &str| Spec::with_telling_shape(text).unwrap().shape();
    let shapes = [
        "raid01",
        "raid1+0",
        "raid50",
        "raid5-la+0",
        "raid60",
        "raid15",
    ];
    let expected = [(2, 2), (2, 2), (2, 3), (2, 3), (2, 4), (3, 2)];
    assert_eq!(shapes.map(nested), expected.map(Some));
    for text in shapes {
        let spec = Spec::with_telling_shape(text).unwrap();
        let geometry = Geometry::equal(spec.telling_members(), Bytes::gib(1), CHUNK).unwrap();
        spec.build(&geometry).unwrap();
    }
    // A level that is not nested has none.
    assert!(Spec::with_telling_shape("raid5").is_err());
}

#[test]
fn an_outer_chunk_of_its_own() {
    let mut geometry = Geometry::equal(6, Bytes::gib(1), CHUNK).unwrap();
    geometry.outer_chunk = Some(Bytes::kib(128).to_sectors());
    let layout = "raid50 2x3"
        .parse::<Spec>()
        .unwrap()
        .build(&geometry)
        .unwrap();
    assert_snapshot!("raid50_wide_outer_chunk", draw(&layout, 4));
}

/// What is said of the failures that one array more than is survived for sure is lost with.
fn lost_with(spec: &str, members: usize) -> String {
    let geometry = Geometry::equal(members, Bytes::gib(1), CHUNK).unwrap();
    let layout = spec.parse::<Spec>().unwrap().build(&geometry).unwrap();
    let lines = describe(&layout, &geometry.sizes, 1);
    let fatal = lines.into_iter().find(|line| line.contains("lost with"));
    fatal.expect("what it is lost with")
}

/// Twelve patterns of eight members each were 340 characters in a line.
#[test]
fn of_large_fatal_patterns_few_are_written_out() {
    let fatal = lost_with("raid0+1 8x3", 24);
    assert!(fatal.len() < 300, "{fatal}");
    assert!(
        fatal.contains("m0+m3+m6") && fatal.ends_with("..."),
        "{fatal}"
    );
}

/// Patterns that would take too long to find were told as "lost with , ...".
#[test]
fn fatal_patterns_that_are_not_found_are_counted_only() {
    let fatal = lost_with("raid0+1 12x4", 48);
    assert_eq!(fatal, "failures: lost with some patterns of 12 failures");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn reading_and_building_never_panic(
        text in "(raid|linear)?[0-9+a-zé]{0,3}[-nofx0-9 ]{0,6}", members in 0..20_usize,
        size in 0..1_u64 << 24, chunk in 0..1_u64 << 20
    ) {
        let Ok(spec) = text.parse::<Spec>() else { return Ok(()) };
        let Ok(geometry) = Geometry::equal(members, Bytes(size), Bytes(chunk / 512 * 512)) else { return Ok(()) };
        if let Ok(layout) = spec.build(&geometry) {
            let lines = describe(&layout, &geometry.sizes, 3);
            proptest::prop_assert!(!lines.is_empty());
            proptest::prop_assert!(!where_is(&layout, Lba(size / 512)).is_empty());
        }
    }

    #[test]
    fn any_layout_can_be_described(layout in common::any_layout()) {
        let lines = describe(&layout, &[], 4);
        let longest = lines.iter().max_by_key(|line| line.len()).expect("lines");
        proptest::prop_assert!(longest.len() < 1000, "{longest}");
    }
}

#[test]
fn a_small_member_is_told_with_its_number_in_the_array() {
    let spec: Spec = "raid50 2x3".parse().unwrap();
    let geometry = Geometry {
        sizes: sectors(&[1000, 1000, 1000, 1000, 100, 1000]),
        chunk: Sectors(128),
        outer_chunk: None,
    };
    let told = spec.build(&geometry).unwrap_err().to_string();
    assert!(told.starts_with("member 4 has 50 KiB"), "{told}");
}
