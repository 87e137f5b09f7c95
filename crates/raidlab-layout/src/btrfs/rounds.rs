//! Chunks of large members, of which there may be millions, without making each of them.
//!
//! While members have room for whole pieces the kernel deals in rounds: members with as much left take turns, and one that has
//! more is in every chunk. After a round all that took part have less by the same, so that the next one is like it, until one of
//! them has no whole piece left or no more left than another.
use super::Chunk;
use super::deal::{Deal, PIECE, Room};

/// Tells of all chunks of data that the kernel makes, and how many times each is made in rounds that are alike. The order is
/// theirs, but within these rounds.
pub(super) fn all(deal: &mut Deal<'_>, mut told: impl FnMut(&Chunk, u64)) {
    loop {
        let before = deal.room.clone();
        let mut order: Vec<usize> = (0..before.sizes.len()).collect();
        order.sort_by_key(|member| u64::MAX - before.left(*member));
        let (mut round, mut again) = (Vec::new(), 0);
        // A round has no more chunks than there are members.
        while round.len() < before.sizes.len()
            && again == 0
            && let Some(chunk) = deal.next(0)
        {
            round.push(chunk);
            again = alike(&before, &order, &deal.room);
        }
        if round.is_empty() {
            return;
        }
        for member in 0..before.sizes.len() {
            let taken = deal.room.used[member] - before.used[member];
            deal.room.next[member] += taken * again;
            deal.room.used[member] += taken * again;
        }
        round.iter().for_each(|chunk| told(chunk, 1 + again));
    }
}

/// How many times the round between two states is dealt again at the least. `order`: the members, those with the most left before
/// it first.
fn alike(before: &Room<'_>, order: &[usize], after: &Room<'_>) -> u64 {
    let taken = |member: usize| after.used[member] - before.used[member];
    let mut times = u64::MAX;
    let mut above: Option<usize> = None;
    for member in order.iter().copied() {
        let whole = after.of(member as u16).checked_sub(PIECE);
        match (whole, taken(member)) {
            // It stays behind those that have a whole piece.
            (None, 0) => continue,
            // Its turn would be another one with less than a piece.
            (None, _) => return 0,
            (Some(_), 0) => {}
            (Some(whole), taken) => times = times.min(whole / taken),
        }
        if let Some(above) = above.replace(member)
            && taken(above) != taken(member)
        {
            // One that has as much or more taken within a round must not come to what the next one has.
            let gap = before.left(above) - before.left(member);
            let Some(ahead) = gap.checked_sub(taken(above) + 1) else {
                return 0;
            };
            if let Some(faster) = taken(above).checked_sub(taken(member)) {
                times = times.min(ahead / faster);
            }
        }
    }
    times
}
