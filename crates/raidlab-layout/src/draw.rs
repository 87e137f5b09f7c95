//! A drawing of a layout: members as columns, chunk rows as rows.
use crate::layout::Layout;
use crate::types::{Content, Member, ParityKind};
use raidlab_core::units::{Lba, Sectors};
use std::fmt::Write as _;

/// The widest line of a drawing, in characters; more members go below.
const WIDTH: usize = 100;

/// The unit of the drawing: the chunk, or 64 KiB for levels without.
#[must_use]
pub fn unit(layout: &Layout) -> Sectors {
    layout.chunk().unwrap_or(Sectors(128))
}

/// The first `rows` rows of each part of the layout (a raid0 zone, a far section, each linear
/// member has just its first part), in chunks: `D7` is chunk 7 of the array, `P` and `Q` parity,
/// `.` nothing. Where levels have no chunk, 64 KiB is drawn as one. `D7+` starts within chunk 7.
#[must_use]
pub fn draw(layout: &Layout, rows: usize) -> String {
    let unit = unit(layout).0;
    let lines = row_starts(layout, rows, unit);
    let mut out = String::new();
    let members: Vec<usize> = (0..layout.members()).collect();
    let label = lines
        .iter()
        .flatten()
        .map(|row| format!("row {}", row / unit).len())
        .max();
    let label = label.unwrap_or(0).max("...".len());
    let cell = |member: usize, row: u64| content(layout, member, row, unit);
    let widest = members
        .iter()
        .flat_map(|m| lines.iter().flatten().map(|row| cell(*m, *row).len()));
    let column = widest
        .max()
        .unwrap_or(1)
        .max(format!("m{}", members.len() - 1).len())
        + 2;
    let fit = ((WIDTH - label) / column).max(1);
    // Blocks of equal width read better than a full one and a remainder.
    let blocks = members.len().div_ceil(fit);
    for (i, block) in members.chunks(members.len().div_ceil(blocks)).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let _ = write!(out, "{:label$}", "");
        for member in block {
            let _ = write!(out, "{:>column$}", Member::new(*member).to_string());
        }
        out.push('\n');
        for line in &lines {
            let Some(row) = line else {
                out.push_str("...\n");
                continue;
            };
            let _ = write!(out, "{:label$}", format!("row {}", row / unit));
            for member in block {
                let _ = write!(out, "{:>column$}", cell(*member, *row));
            }
            out.push('\n');
        }
    }
    out
}

fn content(layout: &Layout, member: usize, sector: u64, unit: u64) -> String {
    match layout.content(Member::new(member), Lba(sector)) {
        Content::Data(lba) if lba.0.is_multiple_of(unit) => format!("D{}", lba.0 / unit),
        Content::Data(lba) => format!("D{}+", lba.0 / unit),
        Content::Parity {
            kind: ParityKind::P,
            ..
        } => "P".into(),
        Content::Parity {
            kind: ParityKind::Q,
            ..
        } => "Q".into(),
        Content::Unused => ".".into(),
    }
}

/// First sectors of the rows to draw; `None` for a gap.
fn row_starts(layout: &Layout, rows: usize, unit: u64) -> Vec<Option<u64>> {
    let used = (0..layout.members())
        .map(|m| layout.used(Member::new(m)).0)
        .max()
        .unwrap_or(0);
    let mut out: Vec<Option<u64>> = Vec::new();
    let mut next = 0;
    for part in parts(layout) {
        let first = part.max(next);
        for row in (first..used).step_by(unit as usize).take(rows) {
            if row != next {
                out.push(None);
            }
            out.push(Some(row));
            next = row + unit;
        }
    }
    if next < used {
        out.push(None);
    }
    out
}

/// Where on the members a new order of things begins, ascending.
fn parts(layout: &Layout) -> Vec<u64> {
    let mut parts: Vec<u64> = match layout {
        Layout::Raid0(l) => l.zone_starts().map(|s| s.0).collect(),
        Layout::Raid10(l) => l.section_starts().map(|s| s.0).collect(),
        Layout::Nested(l) => l.inner().iter().flat_map(parts).collect(),
        Layout::Linear(_) | Layout::Raid1(_) | Layout::Parity(_) => vec![0],
    };
    parts.sort_unstable();
    parts.dedup();
    parts
}
