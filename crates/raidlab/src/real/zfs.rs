//! ZFS of guests: built when it is asked for, taken from the cache by the runs that need it.
use super::guests;
use crate::exit::{Failure, MISSING};
use crate::predict::told;
use crate::signals::Stop;
use crate::talk;
use indicatif::ProgressBar;
use raidlab_experiment::Experiment;
use raidlab_experiment::setup::Engine;
use raidlab_vm::zfs::Progress;
use raidlab_vm::{Cache, Flavour, Kernel, VmError, Zfs};
use std::time::{Duration, Instant};

/// Where there is no terminal, a line as often as this.
const OFTEN: Duration = Duration::from_secs(60);
/// After a smaller share of all, what is left cannot be told.
const TOLD_FROM: f64 = 0.02;

/// ZFS for a kernel: from the cache unless a newer one is asked for, else built. `None` when interrupted.
pub(super) fn built(
    cache: &Cache,
    kernel: &Kernel,
    refresh: bool,
    stop: &Stop,
) -> Result<Option<Zfs>, Failure> {
    if let Some(zfs) = Zfs::cached(cache, &kernel.release).filter(|_| !refresh) {
        return Ok(Some(zfs));
    }
    talk::note(
        "building ZFS from Debian's source package: some minutes. Its licence is the CDDL, the kernel's the GPL: it is \
         built on this machine for this machine, and raidlab passes on none of it",
    );
    let mut view = View::new();
    let made = Zfs::build(cache, kernel, &mut |at| view.at(at), &stop.flag());
    view.end();
    match made {
        Ok(zfs) => Ok(Some(zfs)),
        Err(VmError::Interrupted) => Ok(None),
        Err(error) => Err(guests::failure(&error)),
    }
}

/// ZFS for the guests of an experiment: `None` when it has no use for it, or the kernel and this machine have their own.
///
/// # Errors
/// When it has not been built.
pub(super) fn of_experiment(
    cache: &Cache,
    kernel: &Kernel,
    flavour: Flavour,
    experiment: &Experiment,
) -> Result<Option<Zfs>, Failure> {
    let mut cells = experiment.cells.iter();
    if !cells.any(|cell| cell.setup.array.engine == Engine::Zfs) {
        return Ok(None);
    }
    of_kernel(cache, kernel, flavour)
}

/// ZFS for guests with this kernel: `None` when the kernel and this machine have their own.
///
/// # Errors
/// When it has not been built.
pub(super) fn of_kernel(
    cache: &Cache,
    kernel: &Kernel,
    flavour: Flavour,
) -> Result<Option<Zfs>, Failure> {
    if let Some(zfs) = Zfs::cached(cache, &kernel.release) {
        return Ok(Some(zfs));
    }
    if kernel.has_module("zfs") {
        return Ok(None);
    }
    let message = format!(
        "pools take ZFS, which is not built for the guest's kernel {}",
        kernel.release
    );
    let which = match flavour {
        Flavour::Cloud => "",
        Flavour::Generic => " --kernel generic",
    };
    Err(Failure::new(MISSING, message).remedy(format!(
        "'raidlab vm setup --zfs{which}' builds it, once, from Debian's source package: some minutes, with gcc and make"
    )))
}

/// How far a build is: one line that moves, or a line now and then.
struct View {
    bar: Option<ProgressBar>,
    /// What is being done, since when, and how much of all was done then.
    part: (String, Instant, f64),
    said: Instant,
}

impl View {
    fn new() -> Self {
        Self {
            bar: talk::bar(),
            part: (String::new(), Instant::now(), 0.0),
            said: Instant::now(),
        }
    }

    fn at(&mut self, at: &Progress) {
        let another = self.part.0 != at.what;
        if another {
            self.part = (at.what.clone(), Instant::now(), at.done);
        }
        let line = line(at, self.part.1.elapsed(), self.part.2);
        if let Some(bar) = &self.bar {
            bar.set_position((at.done * 1000.0) as u64);
            talk::message(bar, &line);
        } else if another || self.said.elapsed() > OFTEN {
            talk::note(&line);
            self.said = Instant::now();
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What is being done, and how long the rest takes at the pace of this part, of which so much was done before: a build that
/// goes on where another was has not been fast.
fn line(at: &Progress, elapsed: Duration, before: f64) -> String {
    let share = at.done - before;
    if share < TOLD_FROM {
        return format!("{} · {:.0} %", at.what, 100.0 * at.done);
    }
    let left = elapsed.as_secs_f64() * (1.0 - at.done) / share;
    format!(
        "{} · {:.0} %, about {} left",
        at.what,
        100.0 * at.done,
        told(left)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_when_there_is_something_to_judge_by() {
        let at = |done| Progress {
            what: "compiling".to_owned(),
            done,
        };
        assert_eq!(
            line(&at(0.51), Duration::from_secs(5), 0.5),
            "compiling · 51 %"
        );
        let told = line(&at(0.6), Duration::from_secs(100), 0.5);
        assert_eq!(told, "compiling · 60 %, about 7 min left");
    }
}
