//! The thread that makes copies agree.
use super::resync::{in_state, layout};
use super::toy::Toy;
use super::*;
use BlockKind::{Read, Write};
use raidlab_core::time::Span;

/// What it takes to send a request: ten times what a member takes for one.
const SUBMIT: Span = Span::from_millis(1);

fn slow(text: &str, state: &str, failed: &[u16]) -> ArraySpec {
    let mut spec = in_state(layout(text, 4, 64 * 200), state, failed);
    spec.cost.submit = SUBMIT.0;
    spec
}

#[test]
fn it_sends_no_more_than_it_has_time_for() {
    for (text, state, failed) in [
        ("raid1", "resyncing", &[][..]),
        ("raid1", "rebuilding 1", &[1]),
        ("raid10", "resyncing", &[]),
        ("raid10", "initial-sync", &[]),
        ("raid10-f2", "rebuilding 1", &[2]),
    ] {
        let mut toy = Toy::new(&slow(text, state, failed), 7);
        assert_eq!(toy.array.threads(), 1, "{text} {state}");
        // It begins with all that may be under way, and comes to the rest as it is through with what it has sent.
        toy.unplug();
        let window = toy.log.len() as u64;
        while toy.step() {
            let given = toy.array.worked(0).0;
            assert_eq!(given, toy.log.len() as u64 * SUBMIT.0);
            let most = toy.now.0 + 4 * window * SUBMIT.0;
            assert!(given <= most, "{text} {state}: {given} of {most}");
        }
        assert_eq!(toy.array.resync(), None);
        let (sent, took) = (toy.log.len() as u64, toy.now.0);
        let through = 4 * window + took / SUBMIT.0;
        assert!(sent > 5 * window && sent <= through, "{text} {state}");
        let mut busy = Vec::new();
        toy.array.busy(toy.now, &mut busy);
        assert!(busy[0].busy <= Span(took), "{text} {state}");
    }
}

#[test]
fn without_a_core_it_sends_nothing() {
    let mut toy = Toy::new(&slow("raid1", "resyncing", &[]), 7);
    toy.unplug();
    let second = Span::from_secs(1);
    // All of its first requests end, and what was read is written; nothing more is read before the core is there.
    let reads = toy.count(Read);
    toy.array.wait(toy.now, 0, second);
    toy.run_to(Instant::ZERO + second);
    assert_eq!((toy.count(Read), toy.count(Write)), (reads, 3 * reads));
    toy.run_to(Instant::ZERO + second + Span::from_secs(5));
    assert!(toy.count(Read) > reads);
    // Nobody else's thread is meant.
    assert_eq!(toy.array.wait(toy.now, 1, second), NEVER);
}

#[test]
fn other_arrays_have_no_such_thread() {
    for (text, state) in [
        ("raid1", "clean"),
        ("raid10", "degraded 1"),
        ("raid0", "clean"),
    ] {
        let toy = Toy::new(&slow(text, state, &[]), 7);
        assert_eq!(toy.array.threads(), 0, "{text} {state}");
    }
    let free = in_state(layout("raid1", 4, 64 * 200), "resyncing", &[]);
    assert_eq!(Toy::new(&free, 7).array.threads(), 0);
}

#[test]
fn a_sleep_that_ends_while_it_is_at_work_is_over_when_it_is_through() {
    // A mirror that is much faster than it may be sleeps for half a second, with reads under way.
    let mut spec = slow("raid1", "resyncing", &[]);
    spec.cost.submit = 1000;
    (spec.sync_speed_min, spec.sync_speed_max) = (0, 1 << 20);
    let mut toy = Toy::new(&spec, 7);
    toy.unplug();
    let sleeps = |toy: &Toy| toy.array.next_event() > Some(toy.now + Span::from_millis(400));
    while !sleeps(&toy) {
        assert!(toy.step());
    }
    // What has been read is written; that keeps its thread for longer than the sleep, since others have the core.
    let before = toy.log.len();
    while toy.log.len() == before {
        assert!(toy.step());
    }
    toy.array.wait(toy.now, 0, Span::from_secs(1));
    toy.settle();
    assert_eq!(toy.array.resync(), None);
}

/// What it has done stays done while it has no core, and it does nothing more then.
#[test]
fn without_a_core_it_takes_no_time() {
    let mut toy = Toy::new(&slow("raid1", "resyncing", &[]), 7);
    toy.unplug();
    let busy = |toy: &Toy, now: Instant| {
        let mut all = Vec::new();
        toy.array.busy(now, &mut all);
        all[0].busy
    };
    // It has sent more than that.
    let (now, second) = (Instant::ZERO + Span::from_millis(5), Span::from_secs(1));
    toy.run_to(now);
    let before = busy(&toy, now);
    assert_eq!(before, Span::from_millis(5));
    for (after, wanted) in [(0, 5), (400, 5), (1000, 5), (1002, 7)] {
        if after == 0 {
            toy.array.wait(now, 0, second);
        }
        let then = now + Span::from_millis(after);
        assert_eq!(
            busy(&toy, then),
            Span::from_millis(wanted),
            "{after} ms later"
        );
    }
    // It is put off once more before it has gone on.
    toy.array.wait(now + Span::from_millis(500), 0, second);
    assert_eq!(busy(&toy, now + Span::from_millis(1900)), before);
    assert_eq!(busy(&toy, now + Span::from_millis(2001)), before + SUBMIT);
}
