//! Which process is at work on a session, so that a session that is still running elsewhere is not
//! offered for resuming.
use std::fmt;
use std::fs;

/// A process of one boot of one machine. The start time tells it from a later one of the same id.
///
/// A process in another container of the same machine has its own numbers and may be taken for
/// ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runner {
    boot: String,
    pub(super) process: u32,
    /// Clock ticks from the boot to the start of the process (`proc_pid_stat(5)`, field 22).
    start: u64,
}

impl Runner {
    /// This process; `None` where the kernel does not tell.
    pub(super) fn current() -> Option<Self> {
        let process = std::process::id();
        Some(Self {
            boot: boot()?,
            process,
            start: start(process)?,
        })
    }

    /// Reads the stored form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (boot, process, start) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            boot: boot.to_owned(),
            process: process.parse().ok()?,
            start: start.parse().ok()?,
        })
    }

    /// Whether that process still exists.
    pub(super) fn is_alive(&self) -> bool {
        boot().as_deref() == Some(&self.boot) && start(self.process) == Some(self.start)
    }
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.boot, self.process, self.start)
    }
}

fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// When a living process started; `None` when there is none, or only its unreaped remains.
fn start(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the command in parentheses and may hold anything, `)` included.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_others_are_not() {
        let here = Runner::current().expect("/proc is there on Linux");
        assert_eq!(Runner::parse(&here.to_string()).as_ref(), Some(&here));
        assert!(here.is_alive());
        let (mut earlier, mut elsewhere) = (here.clone(), here);
        earlier.start -= 1;
        assert!(!earlier.is_alive());
        elsewhere.boot = "another".to_owned();
        assert!(!elsewhere.is_alive());
    }

    #[test]
    fn an_ended_process_is_not_alive_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = child.id();
        // WNOWAIT is not in the standard library; /proc shows the zombie as soon as it is one.
        let state = |p| fs::read_to_string(format!("/proc/{p}/stat")).unwrap();
        while !state(process).contains(") Z ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(start(process), None);
        child.wait().unwrap();
        assert_eq!(start(process), None);
    }

    #[test]
    fn nonsense_is_no_runner() {
        for text in ["", "a", "a 1", "a b 2", "a 1 -2"] {
            assert_eq!(Runner::parse(text), None, "{text}");
        }
    }
}
