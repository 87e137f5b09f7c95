//! Windows of sequential and random calls, and where they end.
use super::*;

/// Reads `calls` calls of `pages` pages one after another with nothing in memory that was not
/// read ahead; the windows issued, in order.
fn sequence(kind: Ahead, calls: u64, pages: u64) -> Vec<(u64, u64)> {
    sequence_of(kind, calls, pages, 0)
}

/// The same where a call may have up to `request` pages at once.
fn sequence_of(kind: Ahead, calls: u64, pages: u64, request: u64) -> Vec<(u64, u64)> {
    let (mut ahead, mut held, mut issued) = (ReadAhead::new(), 0_u64, Vec::new());
    for call in 0..calls {
        let page = call * pages;
        let mut at = page;
        while at < page + pages {
            let look = Look {
                page: at,
                pages: page + pages - at,
                most: 32,
                request,
                joined_fit: request > 0,
                keeps: false,
                end: 1 << 20,
            };
            let present = held.saturating_sub(at).min(look.pages);
            if kind == Ahead::Marked && present > 0 && ahead.quiet(at, present) {
                at += present;
                continue;
            }
            let known = held;
            let (windows, again) = ahead.look(kind, look, |from, n| {
                (from + n).saturating_sub(known.max(from))
            });
            for &(from, n) in windows.as_slice() {
                issued.push((from, n));
                held = held.max(from + n);
            }
            at = if kind == Ahead::Marked {
                held.min(page + pages)
            } else {
                again
            };
        }
    }
    issued
}

#[test]
fn two_windows_grow_to_the_largest_and_follow_each_other() {
    let issued = sequence(Ahead::Windows, 64, 2);
    // A quarter of the largest, then doubled; always one window ahead of the one in use.
    assert_eq!(&issued[..4], &[(0, 8), (8, 16), (24, 32), (56, 32)]);
    assert!(issued[3..].windows(2).all(|w| w[1] == (w[0].0 + 32, 32)));
}

#[test]
fn on_demand_grows_to_the_largest_window() {
    let issued = sequence(Ahead::Marked, 64, 2);
    assert_eq!(&issued[..4], &[(0, 4), (4, 8), (12, 16), (28, 32)]);
    assert!(issued[3..].windows(2).all(|w| w[1] == (w[0].0 + 32, 32)));
}

#[test]
fn a_call_of_more_than_the_window_has_as_much_as_a_request_takes() {
    // Calls of 512 pages, as hdparm's, of a device whose requests have up to 256: the window is one of them, not two.
    let issued = sequence_of(Ahead::Marked, 4, 512, 256);
    assert_eq!(&issued[..3], &[(0, 256), (256, 256), (512, 256)]);
    assert!(issued.windows(2).all(|w| w[1] == (w[0].0 + 256, 256)));
    // Less when less is left of the call: 40 pages of 96 here.
    let issued = sequence_of(Ahead::Marked, 1, 96, 56);
    assert_eq!(issued, [(0, 56), (56, 40)]);
    // Small calls keep to the window, and so do kernels that do not ask for it: to two, where a call uses one up.
    let issued = sequence_of(Ahead::Marked, 64, 2, 256);
    assert!(issued[4..].iter().all(|(_, pages)| *pages == 32));
    let issued = sequence_of(Ahead::Marked, 4, 512, 0);
    assert!(issued.iter().all(|(_, pages)| *pages == 64));
}

#[test]
fn windows_go_on_over_what_is_in_memory_and_behind_it() {
    // Pages 100 to 300 are in memory, and 1000 to 2000.
    let held = |page: u64| (100..300).contains(&page) || (1000..2000).contains(&page);
    let (mut ahead, mut read, mut alone) = (ReadAhead::new(), 0_u64, Vec::new());
    for page in 0..3000_u64 {
        let look = Look {
            page,
            pages: 1,
            most: 32,
            request: 0,
            joined_fit: false,
            keeps: false,
            end: 1 << 20,
        };
        let missing = |from: u64, n: u64| (from..from + n).filter(|p| !held(*p)).count() as u64;
        let (windows, _) = ahead.look(Ahead::Windows, look, missing);
        for (from, n) in windows.as_slice() {
            read = read.max(from + n);
        }
        if page >= read && !held(page) {
            // Nobody has asked for it.
            ahead.missed(page);
            alone.push(page);
            read = page + 1;
        }
    }
    // After 256 pages in a row that are in memory it is off, until the first one that is not.
    assert_eq!(alone, [2000]);
}

#[test]
fn random_calls_read_what_they_want_alone() {
    for kind in [Ahead::Windows, Ahead::Marked] {
        let mut ahead = ReadAhead::new();
        for page in [1000, 500, 9000, 40] {
            let look = Look {
                page,
                pages: 2,
                most: 32,
                request: 0,
                joined_fit: false,
                keeps: false,
                end: 1 << 20,
            };
            let (windows, again) = ahead.look(kind, look, |_, n| n);
            assert_eq!(windows.as_slice(), &[(page, 2)], "{kind:?}");
            assert_eq!(again, page + 2);
        }
    }
}

#[test]
fn nothing_is_read_past_the_end() {
    for kind in [Ahead::Windows, Ahead::Marked] {
        let mut ahead = ReadAhead::new();
        let look = Look {
            page: 0,
            pages: 2,
            most: 32,
            request: 0,
            joined_fit: false,
            keeps: false,
            end: 3,
        };
        let (windows, _) = ahead.look(kind, look, |_, n| n);
        assert_eq!(windows.as_slice(), &[(0, 3)], "{kind:?}");
    }
}

/// Calls of 1 MiB with a read-ahead of 256 KiB and requests of 1280 KiB: what a guest of 6.1.192 read ahead (probes at
/// `page_cache_ra_unbounded`), and the same before windows kept their size.
#[test]
fn a_window_keeps_its_size_in_the_middle_of_a_call() {
    let of = |keeps: bool| {
        let (mut ahead, mut all) = (ReadAhead::new(), Vec::new());
        for page in [0, 128, 256, 384, 512, 640, 768] {
            let look = Look {
                page,
                pages: 256 - page % 256,
                most: 64,
                request: 320,
                joined_fit: true,
                keeps,
                end: 1 << 20,
            };
            if page == 0 || !ahead.quiet(page, 128) {
                let (windows, _) = ahead.look(Ahead::Marked, look, |_, n| n);
                all.extend_from_slice(windows.as_slice());
            }
        }
        all
    };
    assert_eq!(
        of(true),
        [(0, 256), (256, 256), (512, 256), (768, 256), (1024, 256)]
    );
    assert_eq!(
        of(false)[..4],
        [(0, 256), (256, 128), (384, 256), (640, 128)]
    );
}
