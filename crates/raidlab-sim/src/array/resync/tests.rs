//! The speed control by itself.
use super::*;

/// What is due while it sleeps has all that is in flight end first: nothing of the sleep may be left to be looked at until then.
#[test]
fn a_sleep_that_is_over_is_no_event() {
    let (near, due) = (Instant(CHECK_TIME.0 - 1), Instant(CHECK_TIME.0 + 1));
    let mut spec = ArraySpec::new(crate::array::ArrayKind::Single(
        raidlab_core::units::Sectors(0),
    ));
    spec.era.checkpoints = Checkpoints::Sixteenths;
    for (courtesy, most) in [(Courtesy::Ticks, u64::MAX), (Courtesy::Waits, 0)] {
        (spec.era.resync_courtesy, spec.sync_speed_max) = (courtesy, most);
        spec.sync_speed_min = spec.sync_speed_min.min(most);
        let mut resync = Resync::new(1 << 30, 4, LOOK, &spec, &spec.era);
        resync.ask_for(LOOK);
        assert!(resync.may(near, &mut []) && resync.lets_pass(near, false));
        resync.went(LOOK);
        assert!(!resync.may(near, &mut []) || !resync.lets_pass(near, true));
        let until = resync.next_event().expect("it sleeps");
        assert!(until > near);
        let woken = until.max(due);
        assert!(!resync.may(woken, &mut []), "something is in flight");
        assert_eq!(resync.next_event(), None);
        // That has ended: it is noted how far it is, and then it goes on unless it is too fast still.
        (resync.first, resync.active) = (1, 0);
        resync.window.clear();
        assert_eq!(resync.may(woken, &mut []), most > 0);
        assert!(resync.notes);
    }
}

#[test]
fn alone_it_asks_for_more_at_a_time_but_not_for_more_in_all() {
    // Windows of raid10 and raid1, and stripe caches: grown, as they begin, and the least.
    let windows = [512 * UNIT, 32 * UNIT, 1024 * 8, 256 * 8, 17 * 8];
    let units = windows.map(|window| coarse(window, u64::MAX, None));
    assert_eq!(units, [512, 256, 512, 128, 128]);
    // No request goes beyond a chunk.
    assert_eq!(
        [16, 128, 256, 1024].map(|chunk| coarse(512 * UNIT, chunk, None)),
        [128, 128, 256, 512]
    );
    // 168 pages are ten of 16, and five of 32, but two of 64; 128 are two of those.
    assert_eq!(
        [168, 128, 127].map(|pages| coarse(1024 * 8, 1024, Some(pages * 8))),
        [256, 512, 128]
    );
    let spec = ArraySpec::new(crate::array::ArrayKind::Single(
        raidlab_core::units::Sectors(0),
    ));
    let mut resync = Resync::new(1 << 30, DEPTH_RAID10, UNIT, &spec, &spec.era);
    resync.limit(Instant::ZERO, None, 1024, None);
    assert_eq!((resync.depth, resync.unit), (128, 512));
    resync.limit(Instant::ZERO, Some(1 << 30), 1024, None);
    assert_eq!((resync.depth, resync.unit), (DEPTH_RAID10, UNIT));
    // The first one after sectors that are done ends where they all do.
    (resync.next, resync.unit) = (640, 512);
    assert_eq!(resync.piece(), (0, 640, 1024));
}
