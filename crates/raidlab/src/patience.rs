//! A dead disk or network mount holds whoever asks it, for as long as the kernel likes. Nothing can be done
//! about that from here, but nobody should have to wonder what the program is doing.
use crate::talk;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What has not answered for so long is said to be silent, and again each time the wait has doubled.
const LONG: Duration = Duration::from_secs(5);

/// Does `work`, which asks something of `path`, and says so on standard error when that takes long.
pub(crate) fn asking<R>(path: &Path, work: impl FnOnce() -> R) -> R {
    told(LONG, |waited| talk::warn(&silent(path, waited)), work)
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
    let (working, ended) = channel::<()>();
    let tell = &tell;
    std::thread::scope(|scope| {
        let begun = Instant::now();
        // Without a thread to spare nothing is said, and all else is as it was.
        let watch = std::thread::Builder::new().name("patience".to_owned());
        let _ = watch.spawn_scoped(scope, move || {
            let mut next = long;
            let left = |next: Duration| next.saturating_sub(begun.elapsed());
            while ended.recv_timeout(left(next)) == Err(RecvTimeoutError::Timeout) {
                tell(begun.elapsed());
                next *= 2;
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
