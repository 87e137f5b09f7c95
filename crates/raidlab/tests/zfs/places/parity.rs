//! The parities of a block of RAID-Z, from its data: P is the sum; Q and R are sums in which everything so far is
//! multiplied by 2 and by 4 before the next column is added, in the field of 256 elements with 0x11d, so that the *last*
//! column has the factor 1 (OpenZFS `vdev_raidz.c`). Where a column has no more data it counts as zeros.
use raidlab_layout::raidz::{Column, ColumnKind};

/// What each column holds, of a block with this content.
pub(super) fn columns(columns: &[Column], content: &[u8]) -> Vec<Vec<u8>> {
    let of = |column: &Column, from: usize| {
        let end = from + column.size.0 as usize;
        content.get(from..end).unwrap_or_default().to_vec()
    };
    let copies = columns
        .iter()
        .filter(|column| column.kind == ColumnKind::Data(0));
    if copies.count() > 1 {
        return columns.iter().map(|column| of(column, 0)).collect();
    }
    let mut data = Vec::new();
    let mut from = 0;
    for column in columns {
        if let ColumnKind::Data(_) = column.kind {
            data.push(of(column, from));
            from += column.size.0 as usize;
        }
    }
    let mut left = data.iter();
    let held = columns.iter().map(|column| match column.kind {
        ColumnKind::Data(_) => left.next().cloned().unwrap_or_default(),
        ColumnKind::Parity(parity) => sum(&data, parity, column.size.0 as usize),
    });
    held.collect()
}

/// Parity 0, 1 or 2 of these columns of data.
fn sum(data: &[Vec<u8>], parity: usize, length: usize) -> Vec<u8> {
    let mut sum = vec![0_u8; length];
    for column in data {
        for (at, byte) in sum.iter_mut().enumerate() {
            for _ in 0..parity {
                *byte = twice(*byte);
            }
            *byte ^= column.get(at).copied().unwrap_or(0);
        }
    }
    sum
}

const fn twice(byte: u8) -> u8 {
    let reduced = if byte & 0x80 == 0 { 0 } else { 0x1d };
    (byte << 1) ^ reduced
}

#[test]
fn the_last_column_has_the_factor_one() {
    let data = [vec![0x80, 1], vec![3]];
    assert_eq!(sum(&data, 0, 2), [0x83, 1]);
    // 2 * 0x80 = 0x11d - 0x100.
    assert_eq!(sum(&data, 1, 2), [0x1d ^ 3, 2]);
    assert_eq!(sum(&data, 2, 2), [0x3a ^ 3, 4]);
}
