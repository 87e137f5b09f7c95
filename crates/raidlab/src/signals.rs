//! Ctrl-C and its like: the first asks the run to end and clean up, the second ends the program.
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once a signal has asked the program to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP. A second signal while the first is being obeyed
    /// ends the program at once with the usual code.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered first, so that it acts only when the flag is already set.
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.0.clone())?;
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        // A file that grows past `ulimit -f` is an error of the write that did it; unheeded, the
        // signal would end the program with its files left behind.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(stop)
    }

    /// Whether to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for code that runs in other threads.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
