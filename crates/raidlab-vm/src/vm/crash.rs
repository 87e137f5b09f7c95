//! QEMU's own crashes, which are none of the guest's: rare, but an experiment of hundreds of boots is not to end with one.
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// So often QEMU is started anew for a guest: what crashes three times does not do so by chance.
pub(super) const MOST: usize = 2;

/// How a process crashed; `None` when it ended otherwise, or somebody ended it.
pub(super) fn of(status: ExitStatus) -> Option<String> {
    let faults = [
        Signal::SEGV,
        Signal::BUS,
        Signal::ILL,
        Signal::FPE,
        Signal::ABORT,
        Signal::TRAP,
    ];
    let signal = status.signal()?;
    faults
        .iter()
        .any(|fault| fault.as_raw() == signal)
        .then(|| status.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_crashes_and_what_somebody_sends_is_none() {
        let of = |wait| of(ExitStatus::from_raw(wait));
        assert_eq!(of(11).as_deref(), Some("signal: 11 (SIGSEGV)"));
        assert!(of(6).is_some() && of(0x80 | 7).is_some());
        assert_eq!(
            [of(9), of(15), of(2), of(0), of(1 << 8)],
            [const { None }; 5]
        );
    }
}
