//! Ctrl-C and its like: the first asks the run to end and clean up, the second ends the program.
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::BufRead as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often a question looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// Signals that come within so long of the first are taken for the same.
const SAME: Duration = Duration::from_millis(500);

/// Set once a signal has asked the program to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP, but not for a SIGHUP that whoever started it ignores (`nohup`). A second
    /// signal while the first is being obeyed ends the program at once with the usual code, unless it comes with the first:
    /// `timeout` signals what it has started and then all of its group, which that is in.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        let armed = Arc::<AtomicBool>::default();
        let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
        let signals: Vec<i32> = [SIGINT, SIGTERM].into_iter().chain(hangup).collect();
        for signal in &signals {
            signal_hook::flag::register_conditional_shutdown(*signal, 130, armed.clone())?;
            signal_hook::flag::register(*signal, stop.0.clone())?;
        }
        let mut first = Signals::new(&signals)?;
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                if first.forever().next().is_some() {
                    std::thread::sleep(SAME);
                    armed.store(true, Ordering::Relaxed);
                }
            })?;
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

    /// A line that a person types; `None` when a signal comes instead. Reading alone would go on after it: what is
    /// listened to interrupts no system call for good.
    ///
    /// # Errors
    /// As reading standard input.
    pub(crate) fn or_line(&self) -> std::io::Result<Option<String>> {
        self.or(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line)?;
            Ok(line)
        })
    }

    /// What is read, by a thread that is left to itself when a signal comes first.
    fn or(
        &self,
        read: impl FnOnce() -> std::io::Result<String> + Send + 'static,
    ) -> std::io::Result<Option<String>> {
        let (send, came) = mpsc::channel();
        std::thread::Builder::new()
            .name("answer".to_owned())
            .spawn(move || send.send(read()))?;
        while !self.asked() {
            match came.recv_timeout(LOOK) {
                Ok(line) => return line.map(Some),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(None)
    }
}

/// Whether a signal is ignored, as what starts a program may have it: a bit of `SigIgn` in `proc(5)`.
fn is_ignored(signal: i32) -> bool {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = text.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_hears_an_answer_and_a_signal() {
        let stop = Stop::default();
        let answer = stop.or(|| Ok("y\n".to_owned())).unwrap();
        assert_eq!(answer.as_deref(), Some("y\n"));
        // Nobody types anything; the signal comes.
        let (_open, never) = mpsc::channel::<()>();
        let flag = stop.flag();
        let signal = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        let answer = stop.or(move || {
            let _ = never.recv();
            Ok(String::new())
        });
        assert_eq!(answer.unwrap(), None);
        signal.join().unwrap();
    }
}
