//! Work on all processors: items in order of their number, results as they come.
use crate::exit::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Works on `count` items on `jobs` threads. What has come meanwhile is handed to `take` together, on
/// the caller's thread, as number and result; a panic is an error with its message. No item is begun
/// after `stop` is set or `take` has failed.
///
/// # Errors
/// The first of `take`.
pub(super) fn run<T: Send>(
    count: usize,
    jobs: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(Vec<(usize, Result<T, String>)>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let halted = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(count).max(1) {
            let sender = sender.clone();
            let (next, work, halted) = (&next, &work, &halted);
            scope.spawn(move || {
                while !halted() {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= count {
                        return;
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| work(item)));
                    let result = result.map_err(|panic| message(&*panic));
                    if sender.send((item, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut ended = Ok(());
        while let Ok(first) = receiver.recv() {
            let mut batch = vec![first];
            batch.extend(receiver.try_iter());
            if ended.is_ok() {
                ended = take(batch);
                if ended.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
            }
        }
        ended
    })
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("for an unknown reason").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_item_is_worked_on_once() {
        for jobs in [1, 2, 7] {
            let mut seen = Vec::new();
            let go = AtomicBool::new(false);
            let took = |batch: Vec<(usize, Result<usize, String>)>| {
                seen.extend(batch.into_iter().map(|(i, r)| (i, r.expect("no panic"))));
                Ok(())
            };
            run(100, jobs, &go, |i| i * i, took).expect("it works");
            assert_eq!(seen.len(), 100);
            let all: BTreeSet<_> = seen.into_iter().collect();
            assert_eq!(all, (0..100).map(|i| (i, i * i)).collect());
        }
    }

    #[test]
    fn nothing_is_begun_after_a_stop_or_a_failure() {
        let stop = AtomicBool::new(false);
        let mut seen = 0;
        let took = |batch: Vec<(usize, Result<(), String>)>| {
            seen += batch.len();
            Ok(())
        };
        let work = |i| {
            if i == 3 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        run(1000, 1, &stop, work, took).expect("it works");
        assert_eq!(seen, 4);
        let failing = |_: Vec<(usize, Result<(), String>)>| Err(Failure::bad_request("full"));
        let go = AtomicBool::new(false);
        let failure = run(1000, 2, &go, |_| (), failing).expect_err("it fails");
        assert_eq!(failure.message, "full");
    }

    #[test]
    fn a_panic_is_the_error_of_its_item() {
        let mut errors = Vec::new();
        let took = |batch: Vec<(usize, Result<(), String>)>| {
            errors.extend(batch.into_iter().filter_map(|(i, r)| Some((i, r.err()?))));
            Ok(())
        };
        let work = |i| assert!(i != 2, "item {i} is bad");
        run(4, 2, &AtomicBool::new(false), work, took).expect("it goes on");
        assert_eq!(errors, [(2, "item 2 is bad".to_owned())]);
    }
}
