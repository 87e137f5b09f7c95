//! Trials come into the store, however long another process has it: what was measured may have taken an hour, and the other is a
//! backup or someone who looks at it.
use super::store_failure;
use crate::exit::{Failure, INTERRUPTED};
use crate::signals::Stop;
use crate::talk;
use raidlab_results::store::{BUSY_TIMEOUT, Store, StoreError};
use std::time::{Duration, Instant};

/// For so long at a time SQLite waits, and sees no signal meanwhile.
const LOOK: Duration = Duration::from_millis(200);

/// How long is waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// Until it is told why nothing goes on.
    silent: Duration,
    /// After the user has asked to stop: what was measured is not given up for another run that is just keeping its own.
    stopped: Duration,
}

const PATIENCE: Patience = Patience {
    silent: Duration::from_secs(5),
    stopped: Duration::from_secs(2),
};

/// Keeps what was measured, and waits for as long as another process has the store locked, unless the user stops it.
///
/// # Errors
/// As `keep`, and when the user stops while the store is locked: then it is not kept, and measured anew when the session goes on.
pub(crate) fn kept<T>(
    stop: &Stop,
    store: &mut Store,
    mut keep: impl FnMut(&mut Store) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    looking(store, |store| waited_for(stop, PATIENCE, || keep(store)))?
}

/// Does something with a store that is waited for no longer than a moment.
fn looking<T>(store: &mut Store, act: impl FnOnce(&mut Store) -> T) -> Result<T, Failure> {
    store.set_busy_timeout(LOOK).map_err(store_failure)?;
    let came = act(store);
    let usual = store.set_busy_timeout(BUSY_TIMEOUT);
    usual.map(|()| came).map_err(store_failure)
}

/// What can as well be left undone: `None` when another process has the store locked for longer than a moment.
///
/// # Errors
/// As `act`.
pub(crate) fn unless_locked<T>(
    store: &mut Store,
    act: impl FnOnce(&mut Store) -> Result<T, StoreError>,
) -> Result<Option<T>, Failure> {
    match looking(store, act)? {
        Ok(done) => Ok(Some(done)),
        Err(StoreError::Locked { .. }) => Ok(None),
        Err(error) => Err(store_failure(error)),
    }
}

fn waited_for<T>(
    stop: &Stop,
    patience: Patience,
    mut keep: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    let mut stopped = None;
    let mut told = false;
    loop {
        let path = match keep() {
            Err(StoreError::Locked { path, .. }) => path,
            other => return other.map_err(store_failure),
        };
        let path = path.display();
        if stop.asked() && stopped.get_or_insert_with(Instant::now).elapsed() >= patience.stopped {
            return Err(Failure::new(
                INTERRUPTED,
                format!("{path}: another process has the store locked: what was measured last is not kept"),
            )
            .remedy("all that was kept before stays, and the session goes on from there when that has let go of it"));
        }
        if !told && begun.elapsed() >= patience.silent {
            talk::warn(&format!(
                "{path}: another process has the store locked (a backup, or an open transaction in sqlite3); what was \
                 measured is kept when that lets go of it. Ctrl-C gives up what is not kept yet, nothing else"
            ));
            told = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    fn locked() -> StoreError {
        StoreError::Locked {
            path: "store".into(),
            waited: LOOK,
        }
    }

    #[test]
    fn a_store_that_another_has_is_waited_for() {
        let mut turns = 0;
        let came = waited_for(&Stop::default(), PATIENCE, || {
            turns += 1;
            if turns < 4 { Err(locked()) } else { Ok(turns) }
        });
        assert_eq!(came.expect("kept in the end"), 4);
    }

    #[test]
    fn it_is_not_waited_for_when_the_user_stops_and_other_errors_are_told() {
        let stop = Stop::default();
        let patience = Patience {
            stopped: Duration::ZERO,
            ..PATIENCE
        };
        let mut turns = 0;
        let came = waited_for(&stop, patience, || {
            turns += 1;
            stop.flag().store(turns == 2, Ordering::Relaxed);
            Err::<(), _>(locked())
        });
        let failure = came.expect_err("given up");
        assert!(failure.message.contains("locked"), "{}", failure.message);
        assert_eq!(failure.code(), INTERRUPTED);
        assert_eq!(turns, 2);
        let full = || {
            Err::<(), _>(StoreError::Full {
                path: "store".into(),
            })
        };
        assert!(waited_for(&Stop::default(), PATIENCE, full).is_err());
    }

    #[test]
    fn one_that_is_locked_for_a_moment_is_waited_for_after_a_stop_too() {
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let mut turns = 0;
        let came = waited_for(&stop, PATIENCE, || {
            turns += 1;
            if turns < 3 { Err(locked()) } else { Ok(()) }
        });
        assert!(came.is_ok());
    }
}
