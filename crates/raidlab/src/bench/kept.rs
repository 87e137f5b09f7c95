//! Trials come into the store, however long another process has it: what was measured may have taken an hour, and the other is a
//! backup or someone who looks at it.
use super::store_failure;
use crate::exit::Failure;
use crate::signals::Stop;
use crate::talk;
use raidlab_results::store::StoreError;

/// Keeps what was measured, and waits for as long as another process has the store locked, unless the user stops it.
///
/// # Errors
/// As `keep`, and when the user stops while the store is locked: then it is not kept, and measured anew when the session goes on.
pub(crate) fn kept<T>(
    stop: &Stop,
    mut keep: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let mut told = false;
    loop {
        match keep() {
            Err(StoreError::Locked { path, .. }) if !stop.asked() => {
                if !told {
                    talk::warn(&format!(
                        "{}: another process has the store locked (a backup, or an open transaction in sqlite3); what was \
                         measured is kept when that lets go of it. Ctrl-C gives up what is not kept yet, nothing else",
                        path.display()
                    ));
                    told = true;
                }
            }
            other => return other.map_err(store_failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    fn locked() -> StoreError {
        StoreError::Locked {
            path: "store".into(),
            waited: Duration::from_secs(30),
        }
    }

    #[test]
    fn a_store_that_another_has_is_waited_for() {
        let mut turns = 0;
        let came = kept(&Stop::default(), || {
            turns += 1;
            if turns < 4 { Err(locked()) } else { Ok(turns) }
        });
        assert_eq!(came.expect("kept in the end"), 4);
    }

    #[test]
    fn it_is_not_waited_for_when_the_user_stops_and_other_errors_are_told() {
        let stop = Stop::default();
        let mut turns = 0;
        let came = kept(&stop, || {
            turns += 1;
            stop.flag().store(turns == 2, Ordering::Relaxed);
            Err::<(), _>(locked())
        });
        assert!(came.is_err_and(|failure| failure.message.contains("locked by another")));
        assert_eq!(turns, 2);
        let full = || {
            Err::<(), _>(StoreError::Full {
                path: "store".into(),
            })
        };
        assert!(kept(&Stop::default(), full).is_err());
    }
}
