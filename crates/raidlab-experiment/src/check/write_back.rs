//! How much written data the host of a cell keeps in memory.
use super::view::View;
use crate::diagnostic::Problems;
use crate::dirty::{CENTISECOND, Dirty, LONGEST, SIZES, WriteBack};
use crate::kernel::Kernel;
use crate::read::key::Key;
use crate::read::tree::At;
use crate::setup::{Array, Engine};
use raidlab_core::time::Span;

/// What is set of it; `None` where something is that the kernel does not take, which is told.
pub(super) fn write_back(
    problems: &Problems,
    view: &View<'_>,
    array: Option<&Array>,
    kernel: Kernel,
) -> Option<WriteBack> {
    // ZFS has limits of its own (`zfs_dirty_data_max`), which these do not reach.
    if array.is_some_and(|array| array.engine == Engine::Zfs) {
        return Some(WriteBack::default());
    }
    let given = Given { problems, kernel };
    let limit = given.share(Key::DirtyLimit, view.dirty(Key::DirtyLimit));
    let background = given.share(Key::DirtyBackground, view.dirty(Key::DirtyBackground));
    let expire = given.time(Key::DirtyExpire, view.time(Key::DirtyExpire));
    let wake = given.time(Key::DirtyWriteback, view.time(Key::DirtyWriteback));
    Some(WriteBack {
        limit: limit?,
        background: background?,
        expire: expire?,
        wake: wake?,
    })
}

struct Given<'a> {
    problems: &'a Problems,
    kernel: Kernel,
}

impl Given<'_> {
    /// Whether the system has such settings at all; told when not.
    fn has<T>(&self, key: Key, given: &At<T>) -> Option<()> {
        let (system, instead) = match self.kernel {
            Kernel::Windows2000 => ("Windows 2000", "its lazy writer has limits of its own"),
            kernel if kernel < Kernel::Linux(2, 6, 0) => {
                ("Linux 2.4", "it has /proc/sys/vm/bdflush in its place")
            }
            _ => return Some(()),
        };
        let message = format!("{system} has no '{}': {instead}", key.name());
        let help = "drop it, or set 'kernel' in [host] to Linux 2.6 or newer";
        self.problems.wrong(&given.at, message, help);
        None
    }

    fn share(&self, key: Key, given: Option<At<Dirty>>) -> Option<Option<Dirty>> {
        let Some(given) = given else {
            return Some(None);
        };
        self.has(key, &given)?;
        let least = match (key, given.value) {
            (Key::DirtyLimit, Dirty::Percent(0)) => "1%".to_owned(),
            (Key::DirtyLimit, Dirty::Size(size)) if size < Dirty::LEAST => {
                Dirty::LEAST.to_string().replace(' ', "")
            }
            (_, Dirty::Size(size)) if size.0 == 0 => "0%".to_owned(),
            (_, Dirty::Size(_)) if self.kernel < SIZES => {
                let message = format!(
                    "Linux {} takes no size for '{}': it does since {SIZES}",
                    self.kernel,
                    key.name()
                );
                let help = "write a share of the memory, such as \"10%\", or use a newer 'kernel'";
                self.problems.wrong(&given.at, message, help);
                return None;
            }
            (_, value) => return Some(Some(value)),
        };
        let message = format!("the kernel takes no '{}' of so little", key.name());
        let help = format!("write \"{least}\" at least");
        self.problems.wrong(&given.at, message, &help);
        None
    }

    fn time(&self, key: Key, given: Option<At<Span>>) -> Option<Option<Span>> {
        let Some(given) = given else {
            return Some(None);
        };
        self.has(key, &given)?;
        if !given.value.0.is_multiple_of(CENTISECOND.0) {
            let message = format!(
                "the kernel counts '{}' in hundredths of a second",
                key.name()
            );
            let help = "write a multiple of 10ms";
            self.problems.wrong(&given.at, message, help);
            return None;
        }
        if given.value > LONGEST {
            let message = format!("'{}' is longer than the kernel can count", key.name());
            self.problems
                .wrong(&given.at, message, "write \"960h\" at most");
            return None;
        }
        Some(Some(given.value))
    }
}
