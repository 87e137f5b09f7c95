//! Which disks are the members: so many, so many of a group, by name, or so many on each channel.
use super::tree::{At, Entry, shown};
use crate::diagnostic::Problems;
use raidlab_layout::MAX_MEMBERS;
use toml::de::DeValue;

/// Which disks are members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberChoice {
    /// The first so many, in the order of the file.
    First(u32),
    /// The first so many of each group: `2 internal + 6 external`.
    OfGroups(Vec<(u32, String)>),
    /// By name, in role order.
    Named(Vec<At<String>>),
}

const MOST: u64 = MAX_MEMBERS as u64;

pub(crate) fn members(problems: &Problems, entry: Entry<'_, '_>) -> Option<MemberChoice> {
    match entry.get_ref() {
        DeValue::Integer(_) => {
            let n = problems.count("members", entry, 1..=MOST)?;
            Some(MemberChoice::First(n as u32))
        }
        DeValue::Array(_) => {
            let names = problems.texts("members", entry);
            if names.is_empty() {
                problems.wrong(
                    &entry.span(),
                    "'members' names no disk",
                    "name at least one",
                );
                return None;
            }
            Some(MemberChoice::Named(names))
        }
        _ => groups(problems, entry),
    }
}

/// `2 internal + 6 external`.
fn groups(problems: &Problems, entry: Entry<'_, '_>) -> Option<MemberChoice> {
    let text = problems.text("members", entry)?;
    let term = |term: &str| {
        let (number, group) = term.trim().split_once(char::is_whitespace)?;
        let number = number.parse().ok().filter(|n| (1..=MOST).contains(n))?;
        let group = group.trim();
        let single = !group.is_empty() && !group.contains(char::is_whitespace);
        single.then(|| (number as u32, group.to_owned()))
    };
    let terms: Option<Vec<_>> = text.value.split('+').map(term).collect();
    if terms.is_none() {
        problems.wrong(
            &text.at,
            format!("'{}' chooses no members", shown(&text.value)),
            "write a number, \"2 internal + 6 external\" by groups, or a list of disk names",
        );
    }
    terms.map(MemberChoice::OfGroups)
}

/// Members on each channel, in the order of the channels.
pub(crate) fn channels(problems: &Problems, entry: Entry<'_, '_>) -> Option<Vec<u32>> {
    let DeValue::Array(items) = entry.get_ref() else {
        let help = "write the members on each channel, such as [1, 1]";
        problems.of_type("channels", "a list", entry, help);
        return None;
    };
    let mut counts = Vec::new();
    for item in items {
        counts.push(problems.count("channels", item, 0..=MOST)? as u32);
    }
    let all: u64 = counts.iter().map(|n| u64::from(*n)).sum();
    if all == 0 {
        problems.wrong(
            &entry.span(),
            "'channels' has no member on any channel",
            "write the members on each channel, such as [1, 1]",
        );
        return None;
    }
    Some(counts)
}

/// Roles of members, from 0.
pub(crate) fn roles(problems: &Problems, entry: Entry<'_, '_>) -> Option<Vec<u16>> {
    let mut roles = Vec::new();
    for item in Problems::items(entry) {
        let role = problems.count("failed", item, 0..=MOST - 1)? as u16;
        if roles.contains(&role) {
            problems.wrong(
                &item.span(),
                format!("member {role} is named twice"),
                "name each failed member once",
            );
            return None;
        }
        roles.push(role);
    }
    roles.sort_unstable();
    Some(roles)
}
