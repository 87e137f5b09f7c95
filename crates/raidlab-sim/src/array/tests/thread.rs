//! When the thread of a parity array hands over what it asks for, and what its work takes.
use super::parity::raid5;
use super::resync::{in_state, layout};
use super::toy::Toy;
use super::*;
use crate::block::Busy;
use BlockKind::{Read, Write};
use raidlab_core::time::Span;

#[test]
fn parity_takes_the_thread_its_time() {
    let mut spec = raid5(5, 128);
    spec.cost.xor = 1_000_000_000;
    let mut toy = Toy::new(&spec, 0);
    toy.submit(bio(0, Write, 0, 512));
    toy.settle();
    // Four blocks of 64 KiB at 1 GB/s, then the write.
    assert_eq!(toy.ended[0].at, Instant(4 * 65_536 + 100_000));
    let mut busy = Vec::new();
    toy.array.busy(toy.now, &mut busy);
    assert_eq!(busy.len(), 1);
    assert_eq!(busy[0].busy, Span(4 * 65_536));
    assert_eq!(busy[0].parts[0], ("parity", Span(4 * 65_536)));
}

/// Of the first array's thread, until then.
fn busy(toy: &Toy, now: Instant) -> Busy {
    let mut busy = Vec::new();
    toy.array.busy(now, &mut busy);
    busy.swap_remove(0)
}

/// A writer of whole and parted stripes and a reader, with so many workers beside the thread.
fn at_work(workers: u16) -> Toy {
    let mut spec = raid5(5, 128);
    (spec.cost.xor, spec.cost.copy) = (1_000_000_000, 3_000_000_000);
    (spec.cost.stripe, spec.cost.submit) = (1_700, 900);
    spec.group_threads = workers;
    let mut toy = Toy::new(&spec, 0);
    toy.submit(bio(0, Write, 0, 512 + 100));
    toy.submit(bio(1, Read, 4096, 64));
    toy.unplug();
    toy
}

/// What is booked and has not passed yet is in neither.
#[test]
fn what_the_thread_did_is_the_sum_of_its_parts_at_any_time() {
    for workers in [0, 2] {
        let mut toy = at_work(workers);
        let mut used = Vec::new();
        loop {
            // Between what happens, too.
            for now in [toy.now, toy.now + Span(700)] {
                let busy = busy(&toy, now);
                let parts: u64 = busy.parts.iter().map(|part| part.1.0).sum();
                let apart = parts.abs_diff(busy.busy.0);
                assert!(apart <= 3 * u64::from(1 + workers), "{now:?}: {busy:?}");
                used.push(busy.busy);
            }
            if !toy.step() {
                break;
            }
        }
        assert!(used.len() > 20 && used.last() > used.first(), "{used:?}");
    }
}

/// Whoever has the core takes it away in the middle of whatever is being done.
#[test]
fn what_the_thread_did_stays_done_without_a_core() {
    for workers in [0, 2] {
        let mut toy = at_work(workers);
        let busy = |toy: &Toy, now| busy(toy, now).busy;
        let (mut last, mut waits) = (Span::ZERO, 0);
        loop {
            let half = toy
                .array
                .next_event()
                .map(|next| Span(next.since(toy.now).0 / 2));
            let now = toy.now + half.unwrap_or_default();
            toy.run_to(now);
            let before = busy(&toy, now);
            for thread in 0..=usize::from(workers) {
                toy.array.wait(now, thread, Span(50_000));
            }
            let after = busy(&toy, now);
            assert!(
                last <= before && before <= after,
                "{last:?} {before:?} {after:?} at {now:?}"
            );
            assert!(after <= before + Span(1), "{before:?} {after:?} at {now:?}");
            waits += u64::from(busy(&toy, now + Span(40_000)) == after);
            last = after;
            if !toy.step() {
                break;
            }
        }
        assert!(waits > 10, "{waits}");
    }
}

#[test]
fn workers_are_woken_by_batches_of_eight_stripes() {
    // Nanoseconds for 64 rows of four blocks at 1 GB/s: how many are at it?
    let at_it = |workers, rows: u64| {
        let mut spec = raid5(5, 128);
        spec.cost.xor = 1_000_000_000;
        spec.group_threads = workers;
        let mut toy = Toy::new(&spec, 0);
        toy.submit(bio(0, Write, 0, 4 * 8 * rows as u32));
        toy.settle();
        assert_eq!(toy.check(&[]), Ok(()));
        let mut busy = Vec::new();
        toy.array.busy(toy.now, &mut busy);
        let whole = rows * 4 * 4096;
        assert_eq!(
            (busy[0].units, busy[0].busy),
            (1 + u32::from(workers), Span(whole))
        );
        whole as f64 / (toy.ended[0].at.0 - 100_000) as f64
    };
    assert_eq!(at_it(0, 64), 1.0);
    assert_eq!(at_it(1, 64), 2.0);
    // Of few stripes the thread and the first worker take all, however many more there are.
    assert_eq!(at_it(7, 16), 2.0);
    let many = at_it(7, 256);
    assert!((6.0..=8.0).contains(&many), "{many}");
}

#[test]
fn workers_wait_for_cores_each_for_itself() {
    let mut spec = raid5(5, 64);
    spec.cost.xor = 1_000_000_000;
    spec.group_threads = 2;
    let mut toy = Toy::new(&spec, 0);
    assert_eq!(toy.array.threads(), 3);
    for i in 0..3 {
        toy.submit(bio(i, Write, i * 256, 256));
    }
    toy.unplug();
    let given: Vec<_> = (0..4).map(|thread| toy.array.worked(thread)).collect();
    assert!(
        given[..3].iter().all(|given| *given > Span::ZERO),
        "{given:?}"
    );
    assert_eq!(given[3], Span::ZERO);
    // One of the three has no core: the others go on, and all that it had to do comes later.
    toy.array.wait(toy.now, 1, Span::from_secs(1));
    toy.settle();
    let ends: Vec<_> = toy
        .ended
        .iter()
        .map(|end| end.at.0 / 1_000_000_000)
        .collect();
    assert!(ends.contains(&0) && ends.contains(&1), "{ends:?}");
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn the_thread_hands_over_what_it_asks_for_when_it_has_nothing_more_to_do() {
    let mut spec = raid5(5, 128);
    spec.cost.xor = 1_000_000_000;
    let mut toy = Toy::new(&spec, 0);
    toy.submit(bio(0, Write, 0, 512 * 2));
    toy.unplug();
    let mut steps = 0;
    while toy.log.is_empty() {
        assert!(toy.step(), "it is written");
        steps += 1;
    }
    // Many computations of a few rows each; all is asked for after the last.
    assert!(steps >= 8, "{steps}");
    let sectors: u32 = toy.log.iter().map(|asked| asked.bio.sectors).sum();
    assert_eq!(sectors, 2 * 5 * 128);
    assert!(toy.log.iter().all(|a| a.at == Instant(2 * 4 * 65_536)));
    toy.settle();
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn what_comes_before_the_thread_does_makes_a_row_whole() {
    let mut spec = raid5(5, 128);
    spec.cost.xor = 1_000_000_000;
    let mut toy = Toy::new(&spec, 0);
    // A stripe and a half, and the rest a little later, while the thread is at the first stripe.
    toy.submit(bio(0, Write, 0, 512 + 256));
    toy.unplug();
    toy.submit(bio(1, Write, 512 + 256, 256));
    toy.unplug();
    toy.settle();
    assert_eq!((toy.count(Read), toy.check(&[])), (0, Ok(())));
    // A thread that has nothing else to do reads at once.
    toy.submit(bio(2, Write, 512 * 8, 256));
    toy.unplug();
    toy.submit(bio(3, Write, 512 * 8 + 256, 256));
    toy.settle();
    assert!(toy.count(Read) > 0);
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn a_full_plug_is_handed_over_before_the_thread_is_through() {
    let mut spec = raid5(5, 128);
    spec.cost.xor = 1_000_000_000;
    let mut toy = Toy::new(&spec, 0);
    // Rows far apart: two requests each, and their parity is known from the first round.
    for round in 0..2 {
        for i in 0..50 {
            toy.submit(bio(round * 50 + i, Write, i * 512 * 3, 8));
        }
        let before = toy.log.len();
        toy.unplug();
        while toy.log.len() == before {
            assert!(toy.step(), "it is written");
        }
        if round == 1 {
            let writes = toy.log.len() - before;
            assert!((64..100).contains(&writes), "{writes} of 100");
        }
        toy.settle();
    }
    assert_eq!(toy.check(&[]), Ok(()));
}

#[test]
fn rows_that_were_read_make_room_when_the_thread_has_come_to_them_again() {
    let mut spec = raid5(4, 128);
    (spec.stripe_cache, spec.era.cache_grows, spec.cost.stripe) = (32, false, 3_000);
    (spec.state, spec.failed) = ("degraded 1".parse().unwrap(), vec![1]);
    let ahead = |id, lba| {
        let mut bio = bio(id, Read, lba, 384);
        bio.origin.ahead = true;
        bio
    };
    for waits in [Span::ZERO, Span::from_millis(1)] {
        let mut toy = Toy::new(&spec, 0);
        toy.submit(bio(0, Read, 0, 2 * 384));
        toy.unplug();
        while toy.ended.is_empty() {
            assert!(toy.step(), "it is read");
        }
        // All 32 rows have been handed over, and half of them at least are still to be left.
        toy.array.wait(toy.now, 0, waits);
        assert!(toy.array.next_event() >= Some(Instant(toy.now.0 + waits.0)));
        toy.submit(ahead(1, 6 * 384));
        toy.settle();
        toy.submit(ahead(2, 6 * 384));
        toy.settle();
        let result = |id| toy.ended.iter().find(|end| end.id == id).unwrap().result;
        assert_eq!(result(1), Err(DiskError::Unreadable));
        assert_eq!(result(2), Ok(()));
        // Each row costs the thread three microseconds, in all.
        let mut busy = Vec::new();
        toy.array.busy(toy.now, &mut busy);
        let rows: u64 = 32 + 16;
        assert!(busy[0].busy >= Span(rows * 3_000), "{:?}", busy[0]);
    }
}

/// Calls that share a row: before 2.6.32 whoever submits asks for what he wants of it, although others read there;
/// the thread is kept from it until all that is read there has come.
#[test]
fn what_more_is_wanted_of_a_row_is_asked_for_by_who_wants_it() {
    let asked = |submitter_handles: bool, gone: &[u16]| {
        let mut spec = raid5(5, 8);
        (spec.era.aligned_reads, spec.era.submitter_handles) = (false, submitter_handles);
        let mut toy = Toy::new(&spec, 0);
        toy.fill(gone);
        for member in gone {
            toy.array.fail(toy.now, *member);
        }
        for chunk in 0..3 {
            toy.submit(bio(chunk, Read, chunk * 8, 8));
        }
        toy.unplug();
        let at_once = toy.log.iter().filter(|a| a.at == Instant::ZERO).count();
        toy.settle();
        assert!(toy.ended.iter().all(|end| end.result.is_ok()));
        (at_once, toy.log.len(), toy.ended.len())
    };
    assert_eq!(asked(true, &[]), (3, 3, 3));
    assert_eq!(asked(false, &[]), (1, 3, 3));
    // Of the second, which is lost, all others are wanted; then nothing is left to be asked for.
    assert_eq!(asked(true, &[1]), (4, 4, 3));
    assert_eq!(asked(false, &[1]), (1, 4, 3));
}

/// What the thread takes for a stripe of four members that is synchronised, in stripes of others.
fn of_a_stripe(level: &str, state: &str, failed: &[u16]) -> f64 {
    let mut spec = in_state(layout(level, 4, 64 * 100), state, failed);
    (spec.cost.stripe, spec.era.checkpoints) = (1000, Checkpoints::AtTheEnd);
    let mut toy = Toy::new(&spec, 0);
    toy.settle();
    let rows = 64 * 100 / 8;
    toy.array.worked(0).0 as f64 / f64::from(1000 * rows)
}

#[test]
fn a_rebuild_of_raid6_checks_the_parity_that_it_does_not_need() {
    assert!((of_a_stripe("raid5", "rebuilding 1", &[2]) - 1.0).abs() < 1e-9);
    for failed in 0..4 {
        let one = of_a_stripe("raid6", "rebuilding 1", &[failed]);
        assert!((one - 1.5).abs() < 1e-9, "{failed}: {one}");
    }
    // There is none to check, and with none missing it is all that there is to do.
    assert!((of_a_stripe("raid6", "rebuilding 2", &[1, 2]) - 1.0).abs() < 1e-9);
    assert!((of_a_stripe("raid6", "resyncing", &[]) - 1.0).abs() < 1e-9);
}
