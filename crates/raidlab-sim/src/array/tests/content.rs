//! What is written is where the layout says, for every level.
use super::toy::Toy;
use super::*;
use proptest::prelude::*;
use raidlab_layout::{Copies, Layout, MemberSet, ParityAlgorithm, Plan, Raid0Order, Run, Spec};

/// Layouts without parity over small members.
fn plain() -> impl Strategy<Value = Layout> {
    let chunk = prop_oneof![Just(8_u64), Just(16)];
    let uneven = proptest::collection::vec(40..200_u64, 2..6);
    (uneven, chunk, 0..7_usize).prop_filter_map("fits", |(sizes, chunk, what)| {
        let sizes: Vec<Sectors> = sizes.into_iter().map(Sectors).collect();
        let chunk = Sectors(chunk);
        match what {
            0 => Layout::linear(&sizes, None),
            1 => Layout::raid0(&sizes, chunk, Raid0Order::Original),
            2 => Layout::raid1(&sizes),
            3 => Layout::raid10(&sizes, chunk, Copies::near(2)),
            4 => Layout::raid10(&sizes, chunk, Copies::far(2)),
            5 => Layout::raid10(&sizes, chunk, Copies::offset(2)),
            _ => Layout::raid0(&sizes, chunk, Raid0Order::Alternate),
        }
        .ok()
    })
}

/// Raid4, raid5 and raid6 in every rotation.
pub(super) fn parity() -> impl Strategy<Value = Layout> {
    let chunk = prop_oneof![Just(8_u64), Just(16), Just(64)];
    let algorithm = 0..ParityAlgorithm::ALL.len();
    (4..8_usize, chunk, 0..3_usize, algorithm).prop_map(|(n, chunk, level, a)| {
        let (sizes, chunk) = (sizes(n, chunk * 7 + 3), Sectors(chunk));
        match level {
            0 => Layout::raid4(&sizes[1..], chunk),
            1 => Layout::raid5(&sizes[1..], chunk, ParityAlgorithm::ALL[a % 6]),
            _ => Layout::raid6(&sizes, chunk, ParityAlgorithm::ALL[a]),
        }
        .unwrap()
    })
}

const NESTED: [&str; 8] = [
    "raid10 2x2",
    "raid01 2x3",
    "raid1+1 2x2",
    "raid10-f2+0 2x3",
    "raid50 2x3",
    "raid60 2x4",
    "raid1+5 3x2",
    "raid5+1 2x3",
];

/// The first so many of the nested layouts; four have no parity.
fn nested(most: usize) -> impl Strategy<Value = Layout> {
    (0..most).prop_map(|n| NESTED[n]).prop_map(|text| {
        let spec: Spec = text.parse().unwrap();
        let members = spec.shape_members().unwrap();
        let geometry = raidlab_layout::Geometry {
            sizes: sizes(members, 128),
            chunk: Sectors(16),
            outer_chunk: None,
        };
        spec.build(&geometry).unwrap()
    })
}

/// Requests: kind, fractions of place and length, and whether the submitter waits after it.
pub(super) fn requests() -> impl Strategy<Value = Vec<(bool, u64, u64, bool)>> {
    proptest::collection::vec(
        (any::<bool>(), any::<u64>(), 1..90_u64, any::<bool>()),
        1..30,
    )
}

pub(super) fn run_all(toy: &mut Toy, requests: &[(bool, u64, u64, bool)]) {
    let capacity = toy.array.sectors();
    for (id, (write, from, len, waits)) in requests.iter().enumerate() {
        let from = from % capacity;
        let len = (*len).min(capacity - from) as u32;
        let kind = if *write {
            BlockKind::Write
        } else {
            BlockKind::Read
        };
        toy.submit(bio(id as u64, kind, from, len));
        if *waits {
            toy.unplug();
            toy.step();
        }
    }
    toy.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn written_data_is_where_the_layout_says(
        layout in prop_oneof![2 => plain(), 3 => parity(), 2 => nested(8)],
        requests in requests(),
        seed in 1..1000_u64,
        xor in prop_oneof![Just(0_u64), Just(400_000_000)],
        workers in prop_oneof![Just(0_u16), 1..5_u16],
    ) {
        let mut spec = ArraySpec::new(ArrayKind::Md(layout));
        (spec.stripe_cache, spec.group_threads) = (17, workers);
        (spec.cost.xor, spec.cost.syndrome) = (xor, xor / 2);
        let mut toy = Toy::new(&spec, seed);
        run_all(&mut toy, &requests);
        prop_assert_eq!(toy.check(&[]), Ok(()));
        prop_assert_eq!(toy.ended.len(), requests.len());
        prop_assert!(toy.ended.iter().all(|end| end.result.is_ok()));
        let mut again = Toy::new(&spec, seed);
        run_all(&mut again, &requests);
        prop_assert!(toy.log == again.log && toy.ended == again.ended);
    }

    #[test]
    fn member_sectors_are_those_of_the_plan(
        layout in prop_oneof![2 => plain(), 1 => nested(4)],
        (write, from, len) in (any::<bool>(), any::<u64>(), 1..90_u64),
    ) {
        let from = from % layout.capacity().0;
        let len = len.min(layout.capacity().0 - from);
        let mut plan = Plan::new();
        let (run, none) = (Run::new(from, len), MemberSet::EMPTY);
        if write {
            layout.plan_write(run, none, Default::default(), &mut plan).unwrap();
        } else {
            layout.map_read(run, none, &mut plan).unwrap();
        }
        let mut toy = Toy::new(&ArraySpec::new(ArrayKind::Md(layout)), 0);
        let kind = if write { BlockKind::Write } else { BlockKind::Read };
        toy.submit(bio(0, kind, from, len as u32));
        toy.settle();
        let planned: u64 = plan.ios().map(|io| io.run.len.0).sum();
        let asked: u64 = toy.log.iter().map(|asked| u64::from(asked.bio.sectors)).sum();
        prop_assert_eq!(planned, asked);
    }
}
