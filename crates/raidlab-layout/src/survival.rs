//! What survives which failures: for one pattern, in counts over all patterns, and as a list.
use crate::layout::Layout;
use crate::mirror::Raid10;
use crate::types::{Member, MemberSet};

/// What is left of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Survival {
    /// Nothing has failed.
    Intact,
    /// All data can still be read.
    Degraded,
    /// Some data cannot.
    Lost,
}

/// How many failures an array survives, over all patterns of failed members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tolerance {
    survived: Vec<u128>,
}

impl Tolerance {
    pub(crate) fn of(layout: &Layout) -> Self {
        let leaf = Branch {
            survives: vec![1, 0],
            lost: vec![0, 1],
        };
        let mut survived = survivors(layout, &vec![leaf; layout.members()]);
        survived.resize(layout.members() + 1, 0);
        Self { survived }
    }

    /// Of a pool of ZFS: of each vdev its children, and how many of them may be lost. It is lost with any vdev.
    pub(crate) fn of_vdevs(vdevs: impl Iterator<Item = (usize, usize)>) -> Self {
        let leaf = Branch {
            survives: vec![1, 0],
            lost: vec![0, 1],
        };
        let mut members = 0;
        let mut survived = vec![1];
        for (children, tolerated) in vdevs {
            let vdev = at_most_lost(&vec![leaf.clone(); children], tolerated);
            let mut together = Vec::new();
            add_product(&mut together, &survived, &vdev);
            (survived, members) = (together, members + children);
        }
        survived.resize(members + 1, 0);
        Self { survived }
    }

    /// Of the patterns of exactly `k` failed members, how many are survived.
    #[must_use]
    pub fn survived(&self, k: usize) -> u128 {
        self.survived.get(k).copied().unwrap_or(0)
    }

    /// How many patterns of exactly `k` failed members there are: n over k.
    #[must_use]
    pub fn patterns(&self, k: usize) -> u128 {
        binomial(self.members(), k)
    }

    /// Members of the array.
    #[must_use]
    pub fn members(&self) -> usize {
        self.survived.len() - 1
    }

    /// Any pattern of this many failures is survived.
    #[must_use]
    pub fn guaranteed(&self) -> usize {
        (0..=self.members())
            .take_while(|k| self.survived(*k) == self.patterns(*k))
            .count()
            - 1
    }

    /// Some pattern of this many failures is survived, and none of more.
    #[must_use]
    pub fn best_case(&self) -> usize {
        self.survived.iter().rposition(|n| *n > 0).unwrap_or(0)
    }
}

/// In how many ways k of some members can fail so that the part of the array they form survives,
/// or is lost; index k.
#[derive(Clone)]
struct Branch {
    survives: Vec<u128>,
    lost: Vec<u128>,
}

/// In how many ways k members can fail and `layout` survives, when its members are `branches`:
/// single disks, or the inner arrays of a nested layout. Exact, without going through the
/// patterns: the counts are coefficients of products of polynomials, all at most 128 over 64,
/// which a u128 holds.
fn survivors(layout: &Layout, branches: &[Branch]) -> Vec<u128> {
    match layout {
        Layout::Linear(_) | Layout::Raid0(_) => at_most_lost(branches, 0),
        Layout::Raid1(_) => at_most_lost(branches, branches.len() - 1),
        Layout::Parity(parity) => at_most_lost(branches, parity.level().parities()),
        // A window of all members is lost only with all of them: as raid1, and much faster.
        Layout::Raid10(raid10) if raid10.window() == branches.len() => {
            at_most_lost(branches, branches.len() - 1)
        }
        Layout::Raid10(raid10) => no_window_lost(raid10, branches),
        Layout::Nested(nested) => {
            let groups = nested
                .inner()
                .iter()
                .zip(nested.bases())
                .map(|(inner, base)| {
                    let branches = &branches[base..base + inner.members()];
                    let survives = survivors(inner, branches);
                    let mut lost = at_most_lost(branches, branches.len());
                    for (lost, survives) in lost.iter_mut().zip(&survives) {
                        *lost -= survives;
                    }
                    Branch { survives, lost }
                });
            survivors(nested.outer(), &groups.collect::<Vec<_>>())
        }
    }
}

/// At most `tolerated` of the branches are lost.
fn at_most_lost(branches: &[Branch], tolerated: usize) -> Vec<u128> {
    // by_lost[j]: counts with exactly j branches lost so far.
    let mut by_lost = vec![vec![1]];
    for branch in branches {
        let mut next = vec![Vec::new(); (by_lost.len() + 1).min(tolerated + 1)];
        for (j, counts) in by_lost.iter().enumerate() {
            add_product(&mut next[j], counts, &branch.survives);
            if j < tolerated {
                add_product(&mut next[j + 1], counts, &branch.lost);
            }
        }
        by_lost = next;
    }
    let mut total = Vec::new();
    for counts in by_lost {
        add_product(&mut total, &counts, &[1]);
    }
    total
}

/// No window of the ring is lost as a whole. The members are walked once for each number `lead` of
/// lost ones at the start, with the number of lost ones up to here as the state; windows that wrap
/// are judged at the end from both.
fn no_window_lost(raid10: &Raid10, branches: &[Branch]) -> Vec<u128> {
    let (n, window, step) = (branches.len(), raid10.window(), raid10.window_step());
    let mut total = Vec::new();
    for lead in 0..=window {
        // trailing[t]: counts with t (at most `window`) lost branches just before here.
        let mut trailing = vec![Vec::new(); window + 1];
        trailing[0] = vec![1];
        for (at, branch) in branches.iter().enumerate() {
            let mut next = vec![Vec::new(); window + 1];
            for (t, counts) in trailing.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
                // With fewer than `window` at the start, the one after them is alive.
                let must_fail = at < lead;
                let must_live = at == lead && lead < window;
                if !must_fail {
                    add_product(&mut next[0], counts, &branch.survives);
                }
                let run = (t + 1).min(window);
                let ends_window = run == window && (at + 1 - window).is_multiple_of(step);
                if !must_live && !ends_window {
                    add_product(&mut next[run], counts, &branch.lost);
                }
            }
            trailing = next;
        }
        for (t, counts) in trailing.iter().enumerate() {
            let wraps = (1..window)
                .filter(|tail| *tail <= n && (n - tail).is_multiple_of(step))
                .any(|tail| t >= tail && lead >= window - tail);
            if !wraps {
                add_product(&mut total, counts, &[1]);
            }
        }
    }
    total
}

/// `into += a * b`, as polynomials.
fn add_product(into: &mut Vec<u128>, a: &[u128], b: &[u128]) {
    if a.is_empty() || b.is_empty() {
        return;
    }
    if into.len() < a.len() + b.len() - 1 {
        into.resize(a.len() + b.len() - 1, 0);
    }
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x > 0) {
        for (j, y) in b.iter().enumerate() {
            into[i + j] += x * y;
        }
    }
}

/// n over k, exact for n up to 128.
pub(crate) fn binomial(n: usize, k: usize) -> u128 {
    if k > n {
        return 0;
    }
    let mut row = vec![0_u128; k + 1];
    row[0] = 1;
    for _ in 0..n {
        for j in (1..=k).rev() {
            row[j] += row[j - 1];
        }
    }
    row[k]
}

/// All sets of exactly `k` of `n` members, in ascending order of their bits.
fn patterns(n: usize, k: usize) -> impl Iterator<Item = MemberSet> {
    let all = MemberSet::first(n);
    let mut next = (k <= all.len()).then(|| MemberSet::first(k));
    std::iter::from_fn(move || {
        let now = next?;
        next = following(now).filter(|set| all.contains_all(*set));
        Some(now)
    })
}

/// The next larger number with as many bits (Gosper); `None` after the largest.
fn following(set: MemberSet) -> Option<MemberSet> {
    let now = set.bits();
    let low = now & now.wrapping_neg();
    let ripple = now.checked_add(low).filter(|_| now != 0)?;
    Some(MemberSet::from_bits((((ripple ^ now) >> 2) / low) | ripple))
}

/// The patterns of `k` failed members that lose the array although none of their parts does: the
/// smallest fatal ones, at most `limit` of them, and whether there are more. Enumerates, and looks
/// at no more than about a million patterns.
#[must_use]
pub fn fatal_patterns(layout: &Layout, k: usize, limit: usize) -> (Vec<MemberSet>, bool) {
    fatal_among(layout.members(), |set| layout.survives(set), k, limit)
}

/// The same for anything of `n` members that tells what is left of it.
pub(crate) fn fatal_among(
    n: usize,
    survives: impl Fn(MemberSet) -> Survival,
    k: usize,
    limit: usize,
) -> (Vec<MemberSet>, bool) {
    const LOOKED_AT: usize = 1 << 20;
    let lost = |set: MemberSet| survives(set) == Survival::Lost;
    let mut found = Vec::new();
    let mut looked_at = 0;
    for set in patterns(n, k) {
        looked_at += 1;
        if looked_at > LOOKED_AT {
            return (found, true);
        }
        let parts = |member: Member| set.without(MemberSet::one(member));
        if lost(set) && !set.iter().any(|member| lost(parts(member))) {
            if found.len() == limit {
                return (found, true);
            }
            found.push(set);
        }
    }
    (found, false)
}

/// After one failure, how many of the n - 1 second failures are survived: the least and the most
/// over all first failures. `None` when some first failure is already fatal.
#[must_use]
pub fn second_failures(layout: &Layout) -> Option<(usize, usize)> {
    second_among(layout.members(), |set| layout.survives(set))
}

/// The same for anything of `n` members that tells what is left of it.
pub(crate) fn second_among(
    n: usize,
    survives: impl Fn(MemberSet) -> Survival,
) -> Option<(usize, usize)> {
    let lost = |set: MemberSet| survives(set) == Survival::Lost;
    let (mut least, mut most) = (n, 0);
    for first in (0..n).map(Member::new) {
        let one = MemberSet::one(first);
        if lost(one) {
            return None;
        }
        let others = (0..n).map(Member::new).filter(|second| *second != first);
        let survived = others
            .filter(|second| !lost(one.union(MemberSet::one(*second))))
            .count();
        (least, most) = (least.min(survived), most.max(survived));
    }
    Some((least, most))
}
