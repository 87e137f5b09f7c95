//! A layout in words: what it is, what it holds, what it survives, where a sector is.
use crate::covered::{covering, outer_of};
use crate::draw::draw;
use crate::layout::Layout;
use crate::mirror::{Copies, Raid10};
use crate::parity::{Parity, ParityLevel};
use crate::pool::Pool;
use crate::stripe::Raid0Order;
use crate::survival::{Survival, Tolerance, fatal_among, second_among};
use crate::types::{Content, Member, MemberSet, ParityKind, Place};
use raidlab_core::units::{Lba, Sectors};
use raidlab_core::words::count;

/// Fatal patterns that are written out; more are only mentioned.
pub(crate) const PATTERNS: usize = 12;

/// Members in all patterns together: of large ones fewer are written out.
pub(crate) const NAMED: usize = 60;

/// Numbers of failures beyond the guarantee that are written out.
const LUCKY: usize = 5;

/// One line: level, variant, members, chunk.
#[must_use]
pub fn name(layout: &Layout) -> String {
    let chunk = layout
        .chunk()
        .map_or_else(String::new, |c| format!(", chunk {}", c.to_bytes()));
    match layout {
        Layout::Nested(nested) => {
            let inner = nested.inner();
            let same = inner.iter().all(|l| name(l) == name(&inner[0]));
            let inner = if same {
                format!("{} x ({})", inner.len(), name(&inner[0]))
            } else {
                inner
                    .iter()
                    .map(|l| format!("({})", name(l)))
                    .collect::<Vec<_>>()
                    .join(" + ")
            };
            let outer = nested.outer();
            let chunk = outer
                .chunk()
                .map_or_else(String::new, |c| format!(", chunk {}", c.to_bytes()));
            format!("{}{chunk}, over {inner}", level(outer))
        }
        _ => format!(
            "{}, {}{chunk}",
            level(layout),
            count(layout.members(), "member")
        ),
    }
}

fn level(layout: &Layout) -> String {
    match layout {
        Layout::Linear(_) => "linear".into(),
        Layout::Raid0(l) if l.zone_starts().len() > 1 => match l.order() {
            Raid0Order::Original => "raid0 in zones, order of Linux before 3.14".into(),
            Raid0Order::Alternate => "raid0 in zones, order of Linux 3.14 and later".into(),
        },
        Layout::Raid0(_) => "raid0".into(),
        Layout::Raid1(_) => "raid1".into(),
        Layout::Parity(l) => parity_level(l),
        Layout::Raid10(l) => raid10_level(l),
        Layout::Nested(l) => format!("({} over arrays)", level(l.outer())),
    }
}

fn parity_level(layout: &Parity) -> String {
    match layout.level() {
        ParityLevel::Raid4 => "raid4".into(),
        level => format!("{} {}", level.name(), layout.algorithm().name()),
    }
}

fn raid10_level(layout: &Raid10) -> String {
    let Copies { near, far, offset } = layout.copies();
    let far_kind = if offset { "offset" } else { "far" };
    match (near, far) {
        (n, 1) => format!("raid10 {n} near copies"),
        (1, f) => format!("raid10 {f} {far_kind} copies"),
        (n, f) => format!("raid10 {n} near x {f} {far_kind} copies"),
    }
}

/// Capacity and what it is of the members.
#[must_use]
pub fn capacity(layout: &Layout, sizes: &[Sectors]) -> String {
    let (capacity, raw) = (
        layout.capacity(),
        sizes
            .iter()
            .fold(0, |sum: u64, s| sum.saturating_add(s.0).min(1 << 54)),
    );
    let mut line = format!("{} ({} sectors)", capacity.to_bytes(), capacity.0);
    if raw > 0 {
        let share = capacity.0 as f64 / raw as f64 * 100.0;
        line.push_str(&format!(", {share:.1} % of {}", Sectors(raw).to_bytes()));
    }
    let held = held(layout);
    if held < raw {
        line.push_str(&format!(
            "; {} of the members unused",
            Sectors(raw - held).to_bytes()
        ));
    }
    line
}

/// Sectors of the members that hold something. What raid10 reaches has gaps: the last row has no room for another chunk with
/// all its copies where the members are no multiple of these.
fn held(layout: &Layout) -> u64 {
    match layout {
        Layout::Raid10(l) => layout.capacity().0 * l.copies().total() as u64,
        Layout::Nested(l) => l.inner().iter().map(held).sum(),
        _ => (0..layout.members())
            .map(|m| layout.used(Member::new(m)).0)
            .sum(),
    }
}

/// What is survived: the guarantee, how far luck reaches, and the smallest fatal patterns.
#[must_use]
pub fn tolerance(layout: &Layout) -> Vec<String> {
    tolerance_told(&layout.tolerance(), &|set| layout.survives(set))
}

/// The same of a pool of ZFS.
#[must_use]
pub fn tolerance_of_pool(pool: &Pool) -> Vec<String> {
    tolerance_told(&pool.tolerance(), &|set| pool.survives(set))
}

/// What is left with these members failed.
type Survives<'a> = &'a dyn Fn(MemberSet) -> Survival;

fn tolerance_told(tolerance: &Tolerance, survives: Survives<'_>) -> Vec<String> {
    let (sure, best) = (tolerance.guaranteed(), tolerance.best_case());
    let mut lines = vec![match sure {
        0 => "does not survive every single failure".into(),
        n => format!("survives any {}", count(n, "failure")),
    }];
    if best == 0 {
        lines[0] = "survives no failure".into();
    }
    let told = best.min(sure + LUCKY);
    for k in sure + 1..=told {
        lines.push(lucky(tolerance, survives, k));
    }
    if told < best {
        lines.push(format!(
            "survives at most {}, if they are the right ones",
            count(best, "failure")
        ));
    }
    if best > 0 {
        lines.push(fatal(tolerance, survives, sure + 1));
    }
    lines
}

/// How likely `k` failures are survived.
fn lucky(tolerance: &Tolerance, survives: Survives<'_>, k: usize) -> String {
    let (survived, all) = (tolerance.survived(k), tolerance.patterns(k));
    // Rounding must not turn nearly all into all.
    let share = (survived as f64 / all as f64 * 100.0).min(99.9);
    let failures = count(k, "failure");
    let patterns = format!("{survived} of {all} patterns of {failures} ({share:.1} %)");
    let second = if k == 2 {
        second_among(tolerance.members(), survives)
    } else {
        None
    };
    match second {
        Some((least, most)) if least == most => {
            format!(
                "survives {least} of {}: {patterns}",
                count(tolerance.members() - 1, "second failure")
            )
        }
        Some((least, most)) => format!(
            "survives {least} to {most} of {}, by the first: {patterns}",
            count(tolerance.members() - 1, "second failure")
        ),
        None => format!("survives {patterns}"),
    }
}

/// The smallest fatal patterns.
fn fatal(tolerance: &Tolerance, survives: Survives<'_>, k: usize) -> String {
    if tolerance.survived(k) == 0 {
        return format!("lost with any {}", count(k, "failure"));
    }
    let most = PATTERNS.min(NAMED / k.max(1)).max(1);
    let (found, more) = fatal_among(tolerance.members(), survives, k, most);
    if found.is_empty() {
        // Too many to look through.
        return format!("lost with some patterns of {}", count(k, "failure"));
    }
    let list = found
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    format!("lost with {list}{}", if more { ", ..." } else { "" })
}

/// Everything `raidlab layout` shows of a layout: name, capacity, tolerance, drawing.
#[must_use]
pub fn describe(layout: &Layout, sizes: &[Sectors], rows: usize) -> Vec<String> {
    let mut lines = vec![
        name(layout),
        format!("capacity: {}", capacity(layout, sizes)),
    ];
    lines.extend(
        tolerance(layout)
            .into_iter()
            .map(|line| format!("failures: {line}")),
    );
    lines.push(String::new());
    lines.extend(draw(layout, rows).lines().map(str::to_owned));
    lines
}

/// Where an array sector is: one line a copy, and a line for each parity that covers it; or why it
/// is nowhere.
#[must_use]
pub fn where_is(layout: &Layout, lba: Lba) -> Vec<String> {
    let Some(places) = layout.locate(lba) else {
        let last = layout.capacity().0.saturating_sub(1);
        return vec![format!(
            "sector {} is beyond the array: its last one is {last}",
            lba.0
        )];
    };
    let copies = places.len();
    let mut lines: Vec<String> = (places.iter().enumerate())
        .map(|(i, Place { member, sector })| {
            let which = if copies > 1 {
                format!(" (copy {} of {copies})", i + 1)
            } else {
                String::new()
            };
            format!("sector {} is sector {} of {member}{which}", lba.0, sector.0)
        })
        .collect();
    for parity in covering(layout, lba) {
        let Place { member, sector } = parity.place;
        lines.push(format!(
            "{} of its stripe {} is at sector {} of {member}",
            kind(parity.kind),
            of(parity.outer, parity.stripe),
            sector.0
        ));
    }
    lines
}

/// `P` or `Q`.
#[must_use]
pub const fn kind(kind: ParityKind) -> &'static str {
    match kind {
        ParityKind::P => "P",
        ParityKind::Q => "Q",
    }
}

/// A stripe, and of which array of arrays.
fn of(outer: Option<ParityLevel>, stripe: u64) -> String {
    let outer = outer.map(|level| format!(" of the outer {}", level.name()));
    format!("{stripe}{}", outer.unwrap_or_default())
}

/// What a member's sector holds, in words.
#[must_use]
pub fn what_is(layout: &Layout, place: Place) -> String {
    let at = format!("sector {} of {}", place.sector.0, place.member);
    match layout.content(place.member, place.sector) {
        Content::Data(lba) => format!("{at} is array sector {}", lba.0),
        Content::Parity {
            stripe,
            kind: which,
        } => {
            let stripe = of(outer_of(layout, place), stripe);
            format!("{at} is {} of stripe {stripe}", kind(which))
        }
        Content::Unused => format!("{at} is not used"),
    }
}
