//! A dead disk or network mount holds whoever asks it, for as long as the kernel likes. Nothing can be done
//! about that from here, but nobody should have to wonder what the program is doing.
use crate::talk;
use raidlab_io::observe::held;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What has not answered for so long is said to be silent, and again each time the wait has doubled.
const LONG: Duration = Duration::from_secs(5);
/// How often it is looked whether a signal has come.
const LOOK: Duration = Duration::from_millis(250);

/// Does `work`, which asks something of `path`, and says so on standard error when that takes long.
pub(crate) fn asking<R>(path: &Path, work: impl FnOnce() -> R) -> R {
    told(LONG, |waited| talk::warn(&silent(path, waited)), work)
}

/// Does `work`, which ends soon when `stop` is set; says so on standard error when it takes long after that, with what is waited
/// for in the kernel.
pub(crate) fn stopping<R>(stop: &AtomicBool, work: impl FnOnce() -> R) -> R {
    let since = Mutex::new(None);
    // Asked often, so that what is told counts from the signal on.
    let look = |waited: Duration| {
        if !stop.load(Ordering::Relaxed) {
            return;
        }
        let mut since = since.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, next) = since.get_or_insert((waited, LONG));
        let stopping = waited.saturating_sub(*begun);
        if stopping >= *next {
            *next *= 2;
            talk::warn(&slow_to_stop(stopping, &held()));
        }
    };
    every(LOOK, look, work)
}

fn slow_to_stop(waited: Duration, waits: &[String]) -> String {
    let what = match waits {
        [] => "what is still to be written is, or a disk does not answer".to_owned(),
        waits => format!("{} does not return", waits.join(", ")),
    };
    format!(
        "stopping takes {} s so far: {what}. raidlab waits, and then takes apart what it built; a second Ctrl-C ends it as soon as \
         the kernel lets go, and 'raidlab clean' takes the rest apart",
        waited.as_secs()
    )
}

/// Says what of this program is still held in the kernel when it is about to end: until that lets go, it cannot.
pub(crate) fn tell_of_left_behind() {
    let mut waits = held();
    if !waits.is_empty() {
        // Whoever writes is held for a moment.
        std::thread::sleep(LOOK);
        let still = held();
        waits.retain(|wait| still.contains(wait));
    }
    if !waits.is_empty() {
        talk::warn(&format!(
            "{} does not return: a disk, a server or a file system behind it may be dead. All else is done; this program is gone \
             as soon as the kernel lets go of it, and no signal makes that sooner",
            waits.join(", ")
        ));
    }
}

fn silent(path: &Path, waited: Duration) -> String {
    format!(
        "{} has not answered for {} s: a disk, a server or a file system behind it may be dead. \
         raidlab waits; Ctrl-C (twice) ends it, or kill -9, as soon as the kernel lets go",
        path.display(),
        waited.as_secs()
    )
}

/// Does `work`; meanwhile `tell` is told how long it takes, after `long` and each doubling of it.
fn told<R>(long: Duration, tell: impl Fn(Duration) + Sync, work: impl FnOnce() -> R) -> R {
    watched(long, |next| next * 2, tell, work)
}

/// Does `work`; meanwhile `look` is called as often as this.
fn every<R>(step: Duration, look: impl Fn(Duration) + Sync, work: impl FnOnce() -> R) -> R {
    watched(step, |next| next + step, look, work)
}

/// Does `work`; meanwhile `tell` is told how long it takes, after `first` and at the times that follow from it.
fn watched<R>(
    first: Duration,
    after: impl Fn(Duration) -> Duration + Send,
    tell: impl Fn(Duration) + Sync,
    work: impl FnOnce() -> R,
) -> R {
    let (working, ended) = channel::<()>();
    let tell = &tell;
    std::thread::scope(|scope| {
        let begun = Instant::now();
        // Without a thread to spare nothing is said, and all else is as it was.
        let watch = std::thread::Builder::new().name("patience".to_owned());
        let _ = watch.spawn_scoped(scope, move || {
            let mut next = first;
            let left = |next: Duration| next.saturating_sub(begun.elapsed());
            while ended.recv_timeout(left(next)) == Err(RecvTimeoutError::Timeout) {
                tell(begun.elapsed());
                next = after(next);
            }
        });
        let result = work();
        drop(working);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn only_what_takes_long_is_told() {
        let count = AtomicU32::new(0);
        let tell = |_| _ = count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(told(Duration::from_secs(60), tell, || 7), 7);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        let until_told = || {
            while count.load(Ordering::Relaxed) < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        told(Duration::from_millis(1), tell, until_told);
        assert!(count.load(Ordering::Relaxed) >= 2);
    }

    #[test]
    fn it_is_said_who_is_silent_and_what_helps() {
        let said = silent(Path::new("/mnt/dead"), Duration::from_millis(5003));
        assert!(
            said.starts_with("/mnt/dead has not answered for 5 s"),
            "{said}"
        );
        assert!(said.contains("kill -9"), "{said}");
    }
}
