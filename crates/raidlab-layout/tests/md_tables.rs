//! Known tables of Linux md, row by row.
mod common;
use common::sectors;
use raidlab_core::units::{Lba, Sectors};
use raidlab_layout::draw::draw;
use raidlab_layout::*;

const CHUNK: u64 = 128;

fn members(n: usize, chunks: u64) -> Vec<Sectors> {
    vec![Sectors(chunks * CHUNK); n]
}

fn raid5(n: usize, algorithm: ParityAlgorithm) -> Layout {
    Layout::raid5(&members(n, 64), Sectors(CHUNK), algorithm).unwrap()
}

fn raid6(n: usize, algorithm: ParityAlgorithm) -> Layout {
    Layout::raid6(&members(n, 64), Sectors(CHUNK), algorithm).unwrap()
}

fn raid10(n: usize, chunks: u64, copies: Copies) -> Layout {
    Layout::raid10(&members(n, chunks), Sectors(CHUNK), copies).unwrap()
}

/// The first rows as one line each, without labels.
fn rows(layout: &Layout, n: usize) -> Vec<String> {
    let cells = |line: &str| {
        line.split_whitespace()
            .skip(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    draw(layout, n)
        .lines()
        .skip(1)
        .filter(|l| l.starts_with("row"))
        .map(cells)
        .collect()
}

#[test]
fn raid5_rotations_on_four() {
    use ParityAlgorithm as A;
    assert_eq!(
        rows(&raid5(4, A::LeftSymmetric), 5),
        [
            "D0 D1 D2 P",
            "D4 D5 P D3",
            "D8 P D6 D7",
            "P D9 D10 D11",
            "D12 D13 D14 P",
        ]
    );
    assert_eq!(
        rows(&raid5(4, A::LeftAsymmetric), 4),
        ["D0 D1 D2 P", "D3 D4 P D5", "D6 P D7 D8", "P D9 D10 D11",]
    );
    assert_eq!(
        rows(&raid5(4, A::RightSymmetric), 4),
        ["P D0 D1 D2", "D5 P D3 D4", "D7 D8 P D6", "D9 D10 D11 P",]
    );
    assert_eq!(
        rows(&raid5(4, A::RightAsymmetric), 4),
        ["P D0 D1 D2", "D3 P D4 D5", "D6 D7 P D8", "D9 D10 D11 P",]
    );
    assert_eq!(rows(&raid5(3, A::ParityFirst), 2), ["P D0 D1", "P D2 D3"]);
    assert_eq!(rows(&raid5(3, A::ParityLast), 2), ["D0 D1 P", "D2 D3 P"]);
    let raid4 = Layout::raid4(&members(4, 64), Sectors(CHUNK)).unwrap();
    assert_eq!(rows(&raid4, 2), ["D0 D1 D2 P", "D3 D4 D5 P"]);
}

#[test]
fn raid6_rotations_on_five() {
    use ParityAlgorithm as A;
    assert_eq!(
        rows(&raid6(5, A::LeftSymmetric), 5),
        [
            "Q D0 D1 D2 P",
            "D3 D4 D5 P Q",
            "D7 D8 P Q D6",
            "D11 P Q D9 D10",
            "P Q D12 D13 D14",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::LeftAsymmetric), 5),
        [
            "Q D0 D1 D2 P",
            "D3 D4 D5 P Q",
            "D6 D7 P Q D8",
            "D9 P Q D10 D11",
            "P Q D12 D13 D14",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::RightSymmetric), 5),
        [
            "P Q D0 D1 D2",
            "D5 P Q D3 D4",
            "D7 D8 P Q D6",
            "D9 D10 D11 P Q",
            "Q D12 D13 D14 P",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::RightAsymmetric), 5),
        [
            "P Q D0 D1 D2",
            "D3 P Q D4 D5",
            "D6 D7 P Q D8",
            "D9 D10 D11 P Q",
            "Q D12 D13 D14 P",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::ParityFirst), 2),
        ["P Q D0 D1 D2", "P Q D3 D4 D5"]
    );
    assert_eq!(
        rows(&raid6(5, A::ParityLast), 2),
        ["D0 D1 D2 P Q", "D3 D4 D5 P Q"]
    );
}

#[test]
fn raid6_rotations_of_ddf_on_five() {
    use ParityAlgorithm as A;
    assert_eq!(
        rows(&raid6(5, A::RotatingZeroRestart), 5),
        [
            "P Q D0 D1 D2",
            "D3 P Q D4 D5",
            "D6 D7 P Q D8",
            "D9 D10 D11 P Q",
            "Q D12 D13 D14 P",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::RotatingNRestart), 5),
        [
            "D0 D1 D2 P Q",
            "D3 D4 P Q D5",
            "D6 P Q D7 D8",
            "P Q D9 D10 D11",
            "Q D12 D13 D14 P",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::RotatingNContinue), 5),
        [
            "D0 D1 D2 Q P",
            "D4 D5 Q P D3",
            "D8 Q P D6 D7",
            "Q P D9 D10 D11",
            "P D12 D13 D14 Q",
        ]
    );
}

#[test]
fn raid6_as_a_raid5_with_q_on_the_last_member() {
    use ParityAlgorithm as A;
    assert_eq!(
        rows(&raid6(5, A::LeftSymmetric6), 4),
        [
            "D0 D1 D2 P Q",
            "D4 D5 P D3 Q",
            "D8 P D6 D7 Q",
            "P D9 D10 D11 Q",
        ]
    );
    assert_eq!(
        rows(&raid6(5, A::RightAsymmetric6), 4),
        [
            "P D0 D1 D2 Q",
            "D3 P D4 D5 Q",
            "D6 D7 P D8 Q",
            "D9 D10 D11 P Q",
        ]
    );
    assert_eq!(rows(&raid6(5, A::ParityFirst6), 1), ["P D0 D1 D2 Q"]);
}

#[test]
fn q_counts_from_after_q_or_by_member() {
    use ParityAlgorithm as A;
    let exponents = |layout: &Layout, stripe| match layout {
        Layout::Parity(l) => (0..5)
            .map(|m| l.q_exponent(stripe, Member(m)))
            .collect::<Vec<Option<u32>>>(),
        _ => unreachable!(),
    };
    // D9 P Q D10 D11: md starts after Q, so array order is not the order in Q.
    assert_eq!(
        exponents(&raid6(5, A::LeftAsymmetric), 3),
        [Some(2), None, None, Some(0), Some(1)]
    );
    // D11 P Q D9 D10: here it is.
    assert_eq!(
        exponents(&raid6(5, A::LeftSymmetric), 3),
        [Some(2), None, None, Some(0), Some(1)]
    );
    // D6 P Q D7 D8, by member.
    assert_eq!(
        exponents(&raid6(5, A::RotatingNRestart), 2),
        [Some(0), None, None, Some(3), Some(4)]
    );
    assert_eq!(
        exponents(&raid6(5, A::LeftSymmetric6), 1),
        [Some(0), Some(1), None, Some(2), None]
    );
    assert_eq!(exponents(&raid5(5, A::LeftSymmetric), 0), [None; 5]);
}

#[test]
fn raid10_near() {
    assert_eq!(
        rows(&raid10(4, 64, Copies::near(2)), 2),
        ["D0 D0 D1 D1", "D2 D2 D3 D3"]
    );
    assert_eq!(
        rows(&raid10(3, 64, Copies::near(2)), 3),
        ["D0 D0 D1", "D1 D2 D2", "D3 D3 D4"]
    );
    assert_eq!(
        rows(&raid10(4, 64, Copies::near(3)), 3),
        ["D0 D0 D0 D1", "D1 D1 D2 D2", "D2 D3 D3 D3"]
    );
    // 5 chunks on each of 3 members hold 7 pairs; the last slot is empty.
    let layout = raid10(3, 5, Copies::near(2));
    assert_eq!(layout.capacity(), Sectors(7 * CHUNK));
    assert_eq!(rows(&layout, 9)[4], "D6 D6 .");
}

#[test]
fn raid10_far() {
    assert_eq!(
        rows(&raid10(4, 8, Copies::far(2)), 2),
        ["D0 D1 D2 D3", "D4 D5 D6 D7", "D3 D0 D1 D2", "D7 D4 D5 D6",]
    );
    assert_eq!(
        rows(&raid10(3, 6, Copies::far(3)), 2),
        [
            "D0 D1 D2", "D3 D4 D5", "D2 D0 D1", "D5 D3 D4", "D1 D2 D0", "D4 D5 D3",
        ]
    );
    // An odd row at the end of a member is left: 7 rows are two sections of 3.
    assert_eq!(raid10(2, 7, Copies::far(2)).capacity(), Sectors(6 * CHUNK));
    assert_eq!(
        rows(
            &raid10(
                4,
                4,
                Copies {
                    near: 2,
                    far: 2,
                    offset: false
                }
            ),
            2
        ),
        ["D0 D0 D1 D1", "D2 D2 D3 D3", "D1 D1 D0 D0", "D3 D3 D2 D2",]
    );
}

#[test]
fn raid10_offset() {
    assert_eq!(
        rows(&raid10(4, 8, Copies::offset(2)), 4),
        ["D0 D1 D2 D3", "D3 D0 D1 D2", "D4 D5 D6 D7", "D7 D4 D5 D6",]
    );
    assert_eq!(
        rows(&raid10(3, 8, Copies::offset(2)), 2),
        ["D0 D1 D2", "D2 D0 D1"]
    );
}

#[test]
fn raid0_zones_in_both_orders() {
    let sizes = sectors(&[2, 3, 4].map(|c| c * CHUNK + 5));
    let layout = |order| Layout::raid0(&sizes, Sectors(CHUNK), order).unwrap();
    let alternate = layout(Raid0Order::Alternate);
    assert_eq!(
        rows(&alternate, 9),
        ["D0 D1 D2", "D3 D4 D5", ". D6 D7", ". . D8"]
    );
    assert_eq!(alternate.capacity(), Sectors(9 * CHUNK));
    // Chunks 0 to 5 are zone 0, so zone 1 starts at chunk 6, which is even: the same.
    assert_eq!(rows(&layout(Raid0Order::Original), 9), rows(&alternate, 9));
    // With one row less zone 1 starts at chunk 3: before 3.14 on its second member.
    let sizes = sectors(&[1, 3, 3].map(|c| c * CHUNK));
    let layout = |order| Layout::raid0(&sizes, Sectors(CHUNK), order).unwrap();
    assert_eq!(
        rows(&layout(Raid0Order::Original), 9),
        ["D0 D1 D2", ". D4 D3", ". D6 D5"]
    );
    assert_eq!(
        rows(&layout(Raid0Order::Alternate), 9),
        ["D0 D1 D2", ". D3 D4", ". D5 D6"]
    );
}

#[test]
fn linear_goes_on_where_a_member_ends() {
    let layout = Layout::linear(&sectors(&[100, 205]), None).unwrap();
    assert_eq!(layout.locate(Lba(99)).unwrap()[0], common::place(0, 99));
    assert_eq!(layout.locate(Lba(100)).unwrap()[0], common::place(1, 0));
    assert_eq!(layout.capacity(), Sectors(305));
    let rounded = Layout::linear(&sectors(&[100, 205]), Some(Sectors(8))).unwrap();
    assert_eq!(rounded.capacity(), Sectors(96 + 200));
}

#[test]
fn capacities_are_rounded_to_chunks_as_md_does() {
    let sizes = sectors(&[10 * CHUNK + 1, 11 * CHUNK, 12 * CHUNK - 1, 99 * CHUNK]);
    let chunk = Sectors(CHUNK);
    let of = |layout: Result<Layout, LayoutError>| layout.unwrap().capacity().0;
    let order = Raid0Order::Alternate;
    assert_eq!(
        of(Layout::raid0(&sizes, chunk, order)),
        (10 + 11 + 11 + 99) * CHUNK
    );
    assert_eq!(of(Layout::raid1(&sizes)), 10 * CHUNK + 1);
    assert_eq!(of(Layout::raid4(&sizes, chunk)), 30 * CHUNK);
    assert_eq!(
        of(Layout::raid5(&sizes, chunk, ParityAlgorithm::default())),
        30 * CHUNK
    );
    assert_eq!(
        of(Layout::raid6(&sizes, chunk, ParityAlgorithm::default())),
        20 * CHUNK
    );
    assert_eq!(
        of(Layout::raid10(&sizes, chunk, Copies::near(2))),
        20 * CHUNK
    );
    assert_eq!(
        of(Layout::raid10(&sizes, chunk, Copies::near(3))),
        13 * CHUNK
    );
    assert_eq!(
        of(Layout::raid10(&sizes, chunk, Copies::far(3))),
        12 * CHUNK
    );
}
