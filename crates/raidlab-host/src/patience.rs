//! Waiting for what the kernel, or a tool that looks at every new device, lets go of a moment later.
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(20);

/// Tries until it goes well, but no longer than `most`; what came of it last.
pub(crate) fn patiently<T, E>(
    most: Duration,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(_) if begun.elapsed() < most => std::thread::sleep(STEP),
            other => return other,
        }
    }
}
