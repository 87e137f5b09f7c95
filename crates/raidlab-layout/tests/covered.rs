//! The parity that is said to cover a sector is the parity that writing the sector writes.
mod common;
use common::{any_layout, place, run_in};
use proptest::prelude::*;
use raidlab_core::units::{Bytes, Lba, Sectors};
use raidlab_layout::covered::covering;
use raidlab_layout::describe::{what_is, where_is};
use raidlab_layout::*;
use std::collections::BTreeSet;

fn written(layout: &Layout, run: Run) -> BTreeSet<Place> {
    let mut plan = Plan::new();
    layout
        .plan_write(run, MemberSet::EMPTY, WritePolicy::LINUX, &mut plan)
        .unwrap();
    let mut places = BTreeSet::new();
    for io in plan.ios().filter(|io| io.kind == IoKind::Write) {
        let sectors = io.run.start.0..io.run.end();
        places.extend(sectors.map(|sector| Place {
            member: io.member,
            sector: Lba(sector),
        }));
    }
    places
}

proptest! {
    #[test]
    fn parity_that_covers_a_sector_is_what_a_write_of_it_writes(layout in any_layout(), from: u64) {
        let lba = run_in(&layout, from, 0).start;
        let written = written(&layout, Run { start: lba, len: Sectors(1) });
        let told = covering(&layout, lba);
        for parity in &told {
            prop_assert!(written.contains(&parity.place), "{parity:?} of {lba:?} is not written");
            let Content::Parity { stripe, kind } = layout.content(parity.place.member, parity.place.sector) else {
                return Err(TestCaseError::fail(format!("{parity:?} of {lba:?} is no parity")));
            };
            prop_assert_eq!((stripe, kind), (parity.stripe, parity.kind));
        }
    }

    #[test]
    fn all_parity_that_a_write_writes_is_told_for_the_sectors_it_covers(which in 0..ONE_PARITY.len(), from: u64) {
        let (spec, members) = ONE_PARITY[which];
        let layout = built(spec, members);
        let lba = run_in(&layout, from, 0).start;
        // A write is of whole rows of 4 KiB.
        let row = lba.0 / 8 * 8..lba.0 / 8 * 8 + 8;
        let content = |place: &Place| layout.content(place.member, place.sector);
        let mut written = written(&layout, Run { start: lba, len: Sectors(1) });
        written.retain(|place| matches!(content(place), Content::Parity { .. }));
        let told: BTreeSet<Place> = row
            .flat_map(|lba| covering(&layout, Lba(lba)))
            .map(|parity| parity.place)
            .collect();
        prop_assert_eq!(written, told);
    }
}

/// Arrays with parity once on the way to a disk.
const ONE_PARITY: [(&str, usize); 13] = [
    ("raid4", 4),
    ("raid5", 3),
    ("raid6", 6),
    ("raid50 2x3", 6),
    ("raid60 2x4", 8),
    ("raid51 2x3", 6),
    ("raid61 2x4", 8),
    ("raid05 3x2", 6),
    ("raid15 3x2", 6),
    ("raid06 4x2", 8),
    ("raid16 4x2", 8),
    ("raid5-ra+0 2x3", 6),
    ("raid10-f2+5 3x2", 6),
];

fn built(spec: &str, members: usize) -> Layout {
    let geometry = Geometry::equal(members, Bytes::gib(1), Bytes::kib(64)).unwrap();
    spec.parse::<Spec>().unwrap().build(&geometry).unwrap()
}

/// A mirror, and beside it a raid5 over three mirrors: parity within an array that is itself within another.
#[test]
fn parity_two_levels_down_is_told_with_its_level() {
    let mirror = || Layout::raid1(&[Sectors(1024); 2]).unwrap();
    let parity = |sizes: &[Sectors]| Layout::raid5(sizes, Sectors(8), ParityAlgorithm::default());
    let inner = Layout::nested(vec![mirror(), mirror(), mirror()], parity).unwrap();
    let outer = |sizes: &[Sectors]| Layout::raid0(sizes, Sectors(8), Raid0Order::Alternate);
    let layout = Layout::nested(vec![mirror(), inner], outer).unwrap();
    let told = [0, 2, 4, 6, 7].map(|member| what_is(&layout, place(member, 0)));
    insta::assert_snapshot!(told.join("\n"), @r"
    sector 0 of m0 is array sector 0
    sector 0 of m2 is array sector 8
    sector 0 of m4 is array sector 24
    sector 0 of m6 is P of stripe 0 of the outer raid5
    sector 0 of m7 is P of stripe 0 of the outer raid5
    ");
}

#[test]
fn parity_over_arrays_is_told_with_its_level() {
    let mut lines = Vec::new();
    for (spec, members, lba) in [
        ("raid05 3x2", 6, 128),
        ("raid15 3x2", 6, 128),
        ("raid05 3x2", 6, 5011),
        ("raid06 4x2", 8, 0),
        ("raid55 3x3", 9, 5011),
    ] {
        let layout = built(spec, members);
        lines.push(format!("{spec}:"));
        lines.extend(where_is(&layout, Lba(lba)));
    }
    let raid05 = built("raid05 3x2", 6);
    lines.push("raid05 3x2:".to_owned());
    lines.extend([0, 4].map(|member| what_is(&raid05, place(member, 0))));
    let raid55 = built("raid55 3x3", 9);
    lines.push("raid55 3x3:".to_owned());
    lines.extend((0..9).map(|member| what_is(&raid55, place(member, 0))));
    insta::assert_snapshot!("outer_parity", lines.join("\n"));
}
