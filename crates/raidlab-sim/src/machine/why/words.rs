//! How a sentence names things and their shares.
use super::Share;
use crate::block::ResourceKind;

/// A part of the busy time that is told.
const PART: f64 = 0.40;

pub(super) fn named(share: &Share) -> String {
    match share.kind {
        ResourceKind::Cpu | ResourceKind::Bus | ResourceKind::Controller => {
            format!("the {}", share.name)
        }
        ResourceKind::Electronics => format!("the {}", share.title()),
        _ => share.name.clone(),
    }
}

/// `both disks`, `all four disks`, `disk0 and disk2`, `5 of 9 disks`.
pub(super) fn names(group: &[&Share], of: usize, kind: ResourceKind) -> String {
    let plural = match kind {
        ResourceKind::Disk | ResourceKind::Electronics => "disks",
        ResourceKind::Channel => "channels",
        ResourceKind::Bus => "buses",
        ResourceKind::Controller => "controllers",
        ResourceKind::Cpu => "processors",
        ResourceKind::Thread => "threads",
        ResourceKind::Volume => "volumes",
    };
    const WORDS: [&str; 10] = [
        "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ];
    match (group, of) {
        (_, 2) => format!("both {plural}"),
        (group, of) if group.len() == of => match WORDS.get(of - 3) {
            Some(word) => format!("all {word} {plural}"),
            None => format!("all {of} {plural}"),
        },
        ([a, b], _) if kind == ResourceKind::Electronics => format!("{} and {}", a.name, b.name),
        ([a, b], _) => format!("{} and {}", named(a), named(b)),
        (group, of) => format!("{} of {of} {plural}", group.len()),
    }
}

/// What the group is busy with, when that is mostly one thing.
pub(super) fn part(group: &[&Share]) -> String {
    let Some((name, _)) = group.first().and_then(|s| s.parts.first()) else {
        return String::new();
    };
    let of = |s: &&Share| {
        let found = s.parts.iter().find(|(n, _)| n == name);
        found.map_or(0.0, |(_, share)| *share)
    };
    let mean = group.iter().map(of).sum::<f64>() / group.len() as f64;
    // A thing that does one thing only need not say so.
    if mean < PART || group.iter().all(|s| s.parts.len() < 2) {
        return String::new();
    }
    let doing = match *name {
        "seek" => "seeking",
        "rotation" => "waiting for the sector to come round",
        "transfer" => "transferring",
        other => other,
    };
    format!(", of that {} {doing}", percent(mean))
}

pub(super) fn percent(share: f64) -> String {
    format!("{} %", libm::round(share * 100.0))
}

pub(super) fn range(low: f64, high: f64) -> String {
    let (low, high) = (libm::round(low * 100.0), libm::round(high * 100.0));
    if low < high {
        format!("{low}-{high} %")
    } else {
        format!("{high} %")
    }
}
