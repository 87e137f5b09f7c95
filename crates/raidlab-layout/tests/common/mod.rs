//! Layouts to hold the laws against: every level, small, with awkward sizes.
#![allow(dead_code, unreachable_pub, missing_docs)]
use proptest::prelude::*;
use raidlab_core::units::{Lba, Sectors};
use raidlab_layout::*;

pub fn sectors(sizes: &[u64]) -> Vec<Sectors> {
    sizes.iter().map(|s| Sectors(*s)).collect()
}

pub fn place(member: u16, sector: u64) -> Place {
    Place {
        member: Member(member),
        sector: Lba(sector),
    }
}

pub fn set(members: &[usize]) -> MemberSet {
    members.iter().map(|m| Member::new(*m)).collect()
}

/// Sizes of `n` members around `chunks` chunks, uneven.
fn sizes(
    n: usize,
    chunk: u64,
    chunks: std::ops::Range<u64>,
) -> impl Strategy<Value = Vec<Sectors>> {
    let one = (chunks, 0..chunk).prop_map(move |(c, odd)| Sectors(c * chunk + odd));
    proptest::collection::vec(one, n)
}

fn chunk() -> impl Strategy<Value = u64> {
    prop_oneof![Just(8_u64), Just(16), Just(64)]
}

pub fn linear() -> impl Strategy<Value = Layout> {
    (1..6_usize, prop_oneof![Just(None), Just(Some(Sectors(8)))])
        .prop_flat_map(|(n, rounding)| (sizes(n, 8, 1..9), Just(rounding)))
        .prop_map(|(sizes, rounding)| Layout::linear(&sizes, rounding).unwrap())
}

pub fn raid0() -> impl Strategy<Value = Layout> {
    let chunk = prop_oneof![Just(8_u64), Just(16), Just(12), Just(1)];
    let order = prop_oneof![Just(Raid0Order::Original), Just(Raid0Order::Alternate)];
    (1..7_usize, chunk, order)
        .prop_flat_map(|(n, chunk, order)| (sizes(n, chunk, 1..7), Just(chunk), Just(order)))
        .prop_map(|(sizes, chunk, order)| Layout::raid0(&sizes, Sectors(chunk), order).unwrap())
}

pub fn raid1() -> impl Strategy<Value = Layout> {
    (2..6_usize)
        .prop_flat_map(|n| sizes(n, 8, 1..9))
        .prop_map(|s| Layout::raid1(&s).unwrap())
}

/// Raid4, raid5, raid6 in every rotation; enough stripes for a full turn.
pub fn parity() -> impl Strategy<Value = Layout> {
    let what = (
        0..3_usize,
        0..ParityAlgorithm::ALL.len(),
        4..9_usize,
        chunk(),
    );
    what.prop_flat_map(|(level, a, n, chunk)| {
        (
            Just(level),
            Just(a),
            sizes(n, chunk, 9..20),
            Just(Sectors(chunk)),
        )
    })
    .prop_map(|(level, a, sizes, chunk)| match level {
        0 => Layout::raid4(&sizes[2..], chunk).unwrap(),
        1 => Layout::raid5(&sizes[2..], chunk, ParityAlgorithm::ALL[a % 6]).unwrap(),
        _ => Layout::raid6(&sizes, chunk, ParityAlgorithm::ALL[a]).unwrap(),
    })
}

pub fn raid10() -> impl Strategy<Value = Layout> {
    (2..8_usize, 1..4_usize, 1..4_usize, any::<bool>(), chunk())
        .prop_filter("copies", |(n, near, far, ..)| {
            (2..=*n).contains(&(near * far))
        })
        .prop_flat_map(|(n, near, far, offset, chunk)| {
            let sizes = sizes(n, chunk, 12..20);
            (
                sizes,
                Just(Sectors(chunk)),
                Just(Copies { near, far, offset }),
            )
        })
        .prop_map(|(sizes, chunk, copies)| Layout::raid10(&sizes, chunk, copies).unwrap())
}

pub fn simple() -> impl Strategy<Value = Layout> {
    prop_oneof![linear(), raid0(), raid1(), parity(), raid10()]
}

/// An outer layout over two to four inner ones of any kind.
pub fn nested() -> impl Strategy<Value = Layout> {
    let inner = proptest::collection::vec(simple(), 2..5);
    (inner, 0..6_usize).prop_filter_map("outer fits", |(inner, outer)| {
        let chunk = Sectors(8);
        let rotation = ParityAlgorithm::default();
        Layout::nested(inner, |sizes| match outer {
            0 => Layout::linear(sizes, None),
            1 => Layout::raid1(sizes),
            2 => Layout::raid5(sizes, chunk, rotation),
            3 => Layout::raid10(sizes, chunk, Copies::near(2)),
            4 => Layout::raid10(sizes, chunk, Copies::offset(2)),
            _ => Layout::raid0(sizes, chunk, Raid0Order::Alternate),
        })
        .ok()
    })
}

/// Arrays of arrays of arrays.
fn deep() -> impl Strategy<Value = Layout> {
    (proptest::collection::vec(nested(), 2..4), any::<bool>()).prop_filter_map(
        "outer fits",
        |(inner, mirror)| {
            Layout::nested(inner, |sizes| {
                if mirror {
                    Layout::raid1(sizes)
                } else {
                    Layout::raid0(sizes, Sectors(8), Raid0Order::Original)
                }
            })
            .ok()
        },
    )
}

pub fn any_layout() -> impl Strategy<Value = Layout> {
    prop_oneof![6 => simple(), 2 => nested(), 1 => deep()]
}

/// A run within the array, from two fractions.
pub fn run_in(layout: &Layout, from: u64, len: u64) -> Run {
    let capacity = layout.capacity().0;
    let start = from % capacity;
    Run::new(start, 1 + len % (capacity - start))
}
