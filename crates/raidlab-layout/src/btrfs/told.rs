//! A full file system in words.
use super::{BtrfsProfile, Dealt, Group, Takes};
use crate::describe::{NAMED, PATTERNS};
use crate::types::Member;
use raidlab_core::units::{Bytes, GIB, MIB, SECTOR, Sectors};
use raidlab_core::words::count;

/// Members in a row that are written as from the first to the last.
const IN_A_ROW: usize = 4;
/// Sets of copies that are written out.
const SETS: usize = 4;
/// Members or rows of them that are.
const ROWS: usize = 8;

impl Dealt {
    /// Level and members.
    #[must_use]
    pub fn name(&self) -> String {
        format!(
            "btrfs-{}, {}",
            self.profile().name(),
            count(self.members(), "member")
        )
    }

    /// What data has, what of the members that is, and what is not taken off.
    #[must_use]
    pub fn capacity_told(&self) -> String {
        let (capacity, raw, metadata) = (self.capacity(), self.raw(), self.metadata());
        format!(
            "{} of data, {:.1} % of {}; one chunk of metadata ({}, {} on each of {}) is taken off, and not what many files or \
             snapshots need besides",
            capacity.to_bytes(),
            capacity.0 as f64 / raw.0 as f64 * 100.0,
            raw.to_bytes(),
            self.profile().of_metadata().name(),
            metadata.each.to_bytes(),
            in_a_row(&metadata.by_number()),
        )
    }

    /// What finds no partner, a line for all members that have the same left; none of less than a hundredth of a member and 1 GiB.
    #[must_use]
    pub fn left_told(&self) -> Vec<String> {
        let mut alike: Vec<(String, Vec<Member>)> = Vec::new();
        for (member, left) in self.left_over() {
            let left = left.to_bytes().to_string();
            match alike.iter_mut().find(|(known, _)| *known == left) {
                Some((_, members)) => members.push(member),
                None => alike.push((left, vec![member])),
            }
        }
        let least = self.profile().takes(true).least;
        let tell = |(left, members): (String, Vec<Member>)| {
            let each = if members.len() > 1 { "each of " } else { "" };
            format!(
                "{left} of {each}{}: a chunk is on at least {}, and fewer have room",
                in_a_row(&members),
                count(least, "member"),
            )
        };
        alike.into_iter().map(tell).collect()
    }

    /// The members with room that is in no chunk, where that is more than 1 GiB or a hundredth of them.
    #[must_use]
    pub fn left_over(&self) -> Vec<(Member, Sectors)> {
        let members = (0..self.members()).map(Member::new);
        let left = members.map(|member| (member, self.left(member)));
        let told = |(member, left): &(Member, Sectors)| {
            left.0
                > (GIB / SECTOR)
                    .min(self.size(*member).0 / 100)
                    .max(32 * MIB / SECTOR)
        };
        left.filter(told).collect()
    }

    /// What is survived for certain, and what of one failure more is by the chunks as they are.
    #[must_use]
    pub fn tolerance(&self) -> Vec<String> {
        let sure = self.profile().survives();
        match self.profile() {
            BtrfsProfile::Single => {
                return vec![
                    "survives no failure: what has a chunk on the failed member is lost; the rest can be read, as metadata is on two \
                     (mount -o degraded,ro)"
                        .into(),
                ];
            }
            BtrfsProfile::Raid0 => return vec!["survives no failure".into()],
            _ => {}
        }
        let mut lines = vec![format!("survives any {}", count(sure, "failure"))];
        let (fatal, failures) = (self.fatal(), count(sure + 1, "failure"));
        let all = self.patterns(sure + 1);
        let survived = all.saturating_sub(fatal.len() as u64);
        if survived == 0 {
            lines.push(format!("lost with any {failures}"));
            return lines;
        }
        // Rounding must not turn nearly all into all.
        let share = (survived as f64 / all as f64 * 100.0).min(99.9);
        lines.push(format!(
            "survives {survived} of {all} patterns of {failures} ({share:.1} %) by the chunks below, all full"
        ));
        let most = PATTERNS.min(NAMED / (sure + 1));
        let named: Vec<String> = fatal.iter().take(most).map(ToString::to_string).collect();
        let more = if fatal.len() > most { ", ..." } else { "" };
        lines.push(format!("lost with {}{more}", named.join(", ")));
        lines.push(format!(
            "count on {} alone: the members of each chunk are chosen anew, so that a balance, a member more or files deleted in \
             between deal others",
            count(sure, "failure"),
        ));
        lines
    }

    /// What is to be known of parity before data is put there, or nothing of other profiles: what its documentation says, and what was
    /// seen of `btrfs replace` (docs/validation/vm-levels.md).
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let profile = self.profile();
        let (name, copies) = (profile.name(), profile.of_metadata().name());
        let two = match profile.parities() {
            0 => return None,
            1 => "",
            _ => {
                "; of two members that are lost at once Linux (6.1 and 6.18 were tried) fills the new ones wrongly where both had data, \
                 and tells that it went well: scrub it before another one fails"
            }
        };
        Some(format!(
            "btrfs(5) says of raid5 and raid6 that they \"should not be used in production, only for evaluation or testing\", names \
             the write hole among what is not solved, and wants no metadata in them: mkfs.btrfs -d {name} -m {copies}{two}"
        ))
    }

    /// What of the kernel matters: which ones have the profile, and what has room before Linux 5.15.
    #[must_use]
    pub fn kernels_told(&self) -> Vec<String> {
        let name = self.profile().name();
        let new = matches!(
            self.profile(),
            BtrfsProfile::Raid1c3 | BtrfsProfile::Raid1c4
        );
        let since = new.then(|| format!("{name} is of Linux 5.5 and later"));
        since.into_iter().chain(self.before_5_15_told()).collect()
    }

    /// What has room without chunks of fewer members than kernels before Linux 5.15 make, where that is less.
    #[must_use]
    pub fn before_5_15(&self) -> Option<Option<Sectors>> {
        let least = Takes::of(self.profile().name(), false)?.least;
        let fewer = |group: &Group| group.members.len() < least;
        let sizes: Vec<Sectors> = self.sizes.iter().map(|size| Sectors(*size)).collect();
        let has_such = self.groups().iter().any(fewer);
        has_such.then(|| {
            let old = Self::new(self.profile(), &sizes, false);
            old.ok().map(|old| old.capacity())
        })
    }

    fn before_5_15_told(&self) -> Option<String> {
        let name = self.profile().name();
        let least = Takes::of(name, false)?.least;
        let then = match self.before_5_15()? {
            // The rests of the last chunks alone.
            Some(capacity) if capacity.0 >= self.capacity().0 / 100 * 99 => return None,
            Some(capacity) => format!("{} of data", capacity.to_bytes()),
            None => "none of these".into(),
        };
        Some(format!(
            "before Linux 5.15 {then}, as chunks of {name} were on at least {}",
            count(least, "member")
        ))
    }

    /// What data has on the others when a member that has most is out and none comes instead: how much of it, or nothing where
    /// those are too few; and which member.
    #[must_use]
    pub fn without_one(&self) -> (Member, Option<Sectors>) {
        let most = self.sizes.iter().max();
        let out = self
            .sizes
            .iter()
            .position(|size| Some(size) == most)
            .unwrap_or(0);
        let mut others: Vec<Sectors> = self.sizes.iter().map(|size| Sectors(*size)).collect();
        others.remove(out);
        let others = Self::new(self.profile(), &others, true);
        (
            Member::new(out),
            others.ok().map(|others| others.capacity()),
        )
    }

    /// That in words; nothing where no failure is survived.
    #[must_use]
    pub fn without_one_told(&self) -> Option<String> {
        if self.profile().survives() == 0 {
            return None;
        }
        Some(match self.without_one() {
            (out, Some(capacity)) => format!(
                "without {out}, a largest one, the others have room for {} of data ('btrfs device remove missing'); with more than \
                 that it has to be replaced ('btrfs replace')",
                capacity.to_bytes()
            ),
            (_, None) => format!(
                "the others are too few for {}: it has to be replaced ('btrfs replace')",
                self.profile().name()
            ),
        })
    }

    /// A table of the chunks: no more than so many lines of them.
    #[must_use]
    pub fn drawn(&self, most: usize) -> Vec<String> {
        let groups = self.groups();
        let shown = if groups.len() > most + 1 {
            most
        } else {
            groups.len()
        };
        let names: Vec<String> = groups[..shown].iter().map(on).collect();
        let wide = names.iter().map(String::len).max().unwrap_or(0).max(10);
        let mut lines = vec![format!(
            "{:wide$}  {:>8}  {:>14}  {:>10}",
            "members", "chunks", "of each member", "data"
        )];
        let line = |group: &Group, name: &str, wide: usize| {
            let size = |sectors: Sectors| sectors.to_bytes().to_string();
            format!(
                "{name:wide$}  {:>8}  {:>14}  {:>10}",
                group.chunks,
                size(group.each),
                size(group.data)
            )
        };
        lines.extend((groups.iter().zip(&names)).map(|(group, name)| line(group, name, wide)));
        let rest = &groups[shown..];
        if !rest.is_empty() {
            let (chunks, data) = rest.iter().fold((0, 0), |(chunks, data), group| {
                (chunks + group.chunks, data + group.data.0)
            });
            lines.push(format!(
                "and {}: {chunks} chunks, {} of data",
                count(rest.len(), "more pattern"),
                Bytes(data * SECTOR)
            ));
        }
        let takes = self.profile().takes(true);
        match takes.parities {
            1 => lines.push("Parity is on another of them every 64 KiB.".into()),
            2 => lines.push("Both parities are on others of them every 64 KiB.".into()),
            _ if takes.copies > 1 => lines.push("= joins members that have the same.".into()),
            _ => {}
        }
        lines
    }

    fn size(&self, member: Member) -> Sectors {
        Sectors(self.sizes[member.index()])
    }
}

/// The members of a group: those with copies of the same joined by `=`.
pub(super) fn on(group: &Group) -> String {
    if group.copies == 1 {
        return in_a_row(&group.members);
    }
    let sets = group.sets().map(|set| {
        let names: Vec<String> = set.iter().map(ToString::to_string).collect();
        names.join("=")
    });
    let sets: Vec<String> = sets.collect();
    match sets.len() {
        all if all > SETS + 1 => format!("{} and {} more", sets[..SETS].join(" "), all - SETS),
        _ => sets.join(" "),
    }
}

/// `m0 m1 m3`, and `m0-m5` of many in a row.
fn in_a_row(members: &[Member]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut left = members.len();
    for row in members.chunk_by(|one, next| one.index() + 1 == next.index()) {
        if names.len() > ROWS {
            names.push(format!("and {left} more"));
            break;
        }
        match row {
            [first, .., last] if row.len() >= IN_A_ROW => names.push(format!("{first}-{last}")),
            _ => names.extend(row.iter().map(ToString::to_string)),
        }
        left -= row.len();
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_in_few_words() {
        let told = |numbers: &[usize]| {
            let members: Vec<Member> = numbers.iter().copied().map(Member::new).collect();
            in_a_row(&members)
        };
        assert_eq!(told(&[0, 1, 3]), "m0 m1 m3");
        assert_eq!(told(&[0, 1, 2, 3, 7]), "m0-m3 m7");
        let even: Vec<usize> = (0..60).step_by(2).collect();
        assert_eq!(told(&even), "m0 m2 m4 m6 m8 m10 m12 m14 m16 and 21 more");
    }
}
