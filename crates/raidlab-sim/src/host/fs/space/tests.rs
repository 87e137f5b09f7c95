//! Free space: nothing is given twice, and all comes back.
use super::*;
use proptest::prelude::*;

#[derive(Debug)]
struct Ten;
impl Shape for Ten {
    fn prefix(&self, _: u64) -> u64 {
        10
    }
}

#[test]
fn a_fresh_device_of_any_size_takes_no_memory() {
    let mut space = Space::new(Ten, 1 << 32, 32_768);
    assert_eq!(space.free(), (1 << 32) - 10 * (1 << 17));
    assert!(space.touched.is_empty());
    assert_eq!(space.take(0, 5), Some(Run { start: 10, len: 5 }));
    assert_eq!(space.touched.len(), 1);
}

#[test]
fn the_goal_is_met_or_the_next_place_after_it() {
    let mut space = Space::new(Ten, 300, 100);
    assert_eq!(space.take(50, 20), Some(Run { start: 50, len: 20 }));
    assert_eq!(space.take(55, 50), Some(Run { start: 70, len: 30 }));
    assert_eq!(space.take(99, 5), Some(Run { start: 110, len: 5 }));
    assert_eq!(space.take(299, 5), Some(Run { start: 299, len: 1 }));
    assert_eq!(space.take(299, 5), Some(Run { start: 10, len: 5 }));
}

#[test]
fn an_aligned_place_is_a_buddy_of_its_group() {
    let mut space = Space::new(Ten, 300, 100);
    assert_eq!(space.take_aligned(50, 16), Some(Run { start: 16, len: 16 }));
    assert_eq!(space.take_aligned(0, 8), Some(Run { start: 32, len: 8 }));
    // The smallest that has room, not the first.
    assert_eq!(space.take_aligned(0, 4), Some(Run { start: 12, len: 4 }));
    // Neither group has 64 free blocks from its 64th on.
    assert_eq!(space.take_aligned(0, 64), None);
    assert_eq!(
        space.take_aligned(150, 16),
        Some(Run {
            start: 116,
            len: 16
        })
    );
}

#[test]
fn a_place_right_there_is_all_of_it_or_none() {
    let mut space = Space::new(Ten, 300, 100);
    assert_eq!(space.take_here(5, 10), None);
    assert_eq!(space.take_here(50, 20), Some(Run { start: 50, len: 20 }));
    assert_eq!(space.take_here(45, 10), None);
    assert_eq!(space.take_here(90, 11), None);
    assert_eq!(space.take_here(90, 10), Some(Run { start: 90, len: 10 }));
    assert_eq!(space.take_here(300, 1), None);
}

/// What has room for a row begins with one, and leaves what is in front to what has not.
#[test]
fn whole_stretches_begin_with_a_row() {
    let mut space = Space::uneven(Bare, 300, vec![(0, 0), (100, 12), (200, 0)]);
    let run = |start, len| Some(Run { start, len });
    assert_eq!(space.take_whole(105, 12), run(112, 12));
    assert_eq!(space.take_whole(105, 11), run(124, 11));
    assert_eq!(space.take_whole(105, 7), run(105, 7));
    // What is left of the group's last row has no room for one.
    assert_eq!(space.take_whole(185, 15), run(200, 15));
    assert_eq!(space.take_whole(50, 30), run(50, 30), "it has no rows");
}

#[test]
fn an_exact_place_is_aligned_and_what_it_leaves_in_front_stays_free() {
    let mut space = Space::new(Bare, 256, 128);
    let at = |run: Option<Run>| run.map(|run| run.start);
    assert_eq!(at(space.take_exact(0, 0, 3, 1)), Some(0));
    assert_eq!(at(space.take_exact(0, 0, 32, 32)), Some(32));
    assert_eq!(at(space.take_exact(0, 64, 32, 32)), Some(64));
    // The gap in front, from its start; no other is behind the cursor.
    assert_eq!(at(space.take_exact(0, 3, 3, 1)), Some(3));
    assert_eq!(at(space.take_exact(0, 3, 20, 4)), Some(8));
    assert_eq!(at(space.take_exact(0, 0, 32, 32)), Some(96));
    assert_eq!(space.take_exact(0, 0, 32, 32), None);
    assert_eq!(at(space.take_exact(1, 128, 128, 128)), Some(128));
}

proptest! {
    #[test]
    fn no_block_is_given_twice_and_all_come_back(
        steps in proptest::collection::vec((0_u64..2000, 1_u64..90, any::<bool>()), 1..120),
        uneven: bool,
    ) {
        // Of unlike sizes, and the last one begins behind the end.
        let mut space = match uneven {
            true => Space::uneven(Ten, 1990, [0, 300, 350, 1000, 1100, 1900, 2500].map(|at| (at, 7)).into()),
            false => Space::new(Ten, 1990, 128),
        };
        prop_assert_eq!(space.groups(), if uneven { 6 } else { 16 });
        let begins: Vec<u64> = (0..space.groups()).map(|group| space.start_of(group)).collect();
        let all = space.free();
        let mut held: Vec<Run> = Vec::new();
        for (goal, want, back) in steps {
            if back && !held.is_empty() {
                let run = held.swap_remove(goal as usize % held.len());
                space.give(run);
                continue;
            }
            let whole = want % 2 == 0;
            let taken = if whole { space.take_whole(goal, want) } else { space.take(goal, want) };
            if let Some(run) = taken {
                prop_assert!(run.len <= want && run.end() <= 1990);
                let begin = begins[space.group_of(run.start) as usize];
                let in_rows = uneven && whole && run.len >= 7;
                prop_assert!(!in_rows || (run.start - begin).is_multiple_of(7));
                prop_assert!(run.start >= begin + 10);
                prop_assert!(begins.iter().all(|at| !(run.start + 1..run.end()).contains(at)));
                prop_assert!(held.iter().all(|h| h.end() <= run.start || run.end() <= h.start));
                held.push(run);
            } else {
                prop_assert_eq!(space.free(), 0);
            }
            let taken: u64 = held.iter().map(|run| run.len).sum();
            prop_assert_eq!(space.free() + taken, all);
        }
        held.drain(..).for_each(|run| space.give(run));
        prop_assert!((0..space.groups()).all(|g| space.runs(g).len() <= 1));
    }
}
