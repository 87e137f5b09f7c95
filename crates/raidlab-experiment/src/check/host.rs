//! The host and the file system of a cell.
use super::place::Hardware;
use super::view::View;
use super::write_back;
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::Link;
use crate::kernel::{FilesystemKind, JournalMode, Kernel, Scheduler};
use crate::read::key::Key;
use crate::read::tree::At;
use crate::setup::{Array, Engine, Filesystem, Host};
use raidlab_core::units::Bytes;

/// Memory of a host of which nothing is said.
const MEMORY: Bytes = Bytes::gib(4);

pub(super) fn kernel(view: &View<'_>) -> Kernel {
    view.kernel(Key::Kernel)
        .map_or(Kernel::DEFAULT, |k| k.value)
}

pub(super) fn host(
    problems: &Problems,
    view: &View<'_>,
    hardware: Option<&Hardware>,
    array: Option<&Array>,
    kernel: Kernel,
) -> Option<Host> {
    let memory = view.size(Key::Memory);
    if let Some(memory) = memory.as_ref().filter(|m| m.value < Bytes::mib(1)) {
        let message = format!("a host with {} of memory runs nothing", memory.value);
        problems.wrong(&memory.at, message, "write for instance \"4GiB\"");
    }
    let size = |key: Key| {
        let size = view.size(key)?;
        if size.value.0 > 0 && !size.value.0.is_multiple_of(512) {
            let message = format!("'{}' is no whole number of sectors", key.name());
            problems.wrong(&size.at, message, "use a multiple of 512 bytes");
        }
        Some(size)
    };
    let request_size = size(Key::RequestSize);
    if let Some(zero) = request_size.as_ref().filter(|r| r.value.0 == 0) {
        let message = "a request of 0 bytes moves nothing";
        problems.wrong(&zero.at, message, "write for instance \"512KiB\"");
    }
    Some(Host {
        cpu: view.text(Key::Cpu).map(|c| c.value),
        cores: view.count(Key::Cores).map_or(1, |c| c.value),
        cpu_mhz: view.count(Key::CpuMhz).map(|c| c.value),
        memory: memory.map_or(MEMORY, |m| m.value),
        kernel,
        scheduler: scheduler(problems, view, hardware, array, kernel)?,
        read_ahead: size(Key::ReadAhead).map(|r| r.value),
        request_size: request_size.map(|r| r.value),
        queue_requests: view.count(Key::QueueRequests).map(|r| r.value),
        write_cache: view.flag(Key::WriteCache).is_none_or(|w| w.value),
        drive_queue: view.count(Key::DriveQueue).map(|d| d.value),
        write_back: write_back::write_back(problems, view, array, kernel)?,
    })
}

/// The scheduler given, when the kernel has it, else what ZFS sets, else the kernel's own choice.
fn scheduler(
    problems: &Problems,
    view: &View<'_>,
    hardware: Option<&Hardware>,
    array: Option<&Array>,
    kernel: Kernel,
) -> Option<Option<Scheduler>> {
    let Some(given) = view.scheduler(Key::Scheduler) else {
        let nvme = hardware.is_some_and(|h| h.controllers.iter().all(|c| c.link == Link::Nvme));
        // blk-mq devices with many queues have no scheduler by default.
        let own = match kernel.default_scheduler() {
            Some(_) if nvme && kernel >= Kernel::Linux(3, 13, 0) => Some(Scheduler::None),
            // ZFS gives the whole disks of a pool noop (`vdev_elevator_switch`, `zfs_vdev_scheduler`); its queue
            // for each disk orders requests. Of partitions it leaves the scheduler as it is, and since blk-mq
            // alone is left there is no noop (openzfs issues 90, 8427; dropped by 9609).
            Some(_) if whole_disks_of_zfs(array) && kernel.lacks(Scheduler::Noop).is_none() => {
                Some(Scheduler::Noop)
            }
            own => own,
        };
        return Some(own);
    };
    let Some(why) = kernel.lacks(given.value) else {
        return Some(Some(given.value));
    };
    let message = format!("kernel {kernel} has no scheduler '{}'", given.value);
    let has = Scheduler::ALL
        .iter()
        .filter(|s| kernel.lacks(**s).is_none());
    let has: Vec<&str> = has.map(|s| s.name()).collect();
    let remedy = match has.is_empty() {
        true => "drop it".to_owned(),
        false => format!("it has {}; or set 'kernel' in [host]", has.join(", ")),
    };
    let problem = Diagnostic::new(given.at, message).label(why).help(remedy);
    problems.push(problem.also(view.place(&[Key::Kernel]), "this kernel"));
    None
}

/// Whether the array is a pool of ZFS on whole disks.
fn whole_disks_of_zfs(array: Option<&Array>) -> bool {
    let whole = |a: &Array| a.member_size.is_none() && a.member_start.is_none();
    array.is_some_and(|a| a.engine == Engine::Zfs && whole(a))
}

/// Whether a file system can be on the array and under the system; told when not.
fn suits(
    problems: &Problems,
    given: &At<FilesystemKind>,
    array: Option<&Array>,
    kernel: Kernel,
) -> Option<()> {
    let kind = given.value;
    let on_zfs = array.map(|a| a.engine == Engine::Zfs);
    if on_zfs.is_some_and(|zfs| zfs != (kind == FilesystemKind::Zfs)) {
        let not = if on_zfs == Some(true) { "" } else { " not" };
        let message = format!("file system '{kind}' on an array that is{not} ZFS");
        let help = "ZFS is both: use a layout of ZFS (zfs-mirror, raidz1, or single with engine zfs) and file system zfs together, and leave the other combinations out with [[exclude]]";
        problems.wrong(&given.at, message, help);
        return None;
    }
    if array.is_some_and(|a| a.engine == Engine::Btrfs) && kind != FilesystemKind::Btrfs {
        let message = format!("file system '{kind}' on an array of btrfs");
        let help = "btrfs is both: leave 'filesystem' out, or use engine = \"md\"";
        problems.wrong(&given.at, message, help);
        return None;
    }
    let windows = [FilesystemKind::Ntfs, FilesystemKind::None];
    if kernel == Kernel::Windows2000 && !windows.contains(&kind) {
        let message = format!("{kernel} has no {kind}");
        problems.wrong(&given.at, message, "use ntfs, or a version of Linux");
        return None;
    }
    Some(())
}

/// The file system: what is given, or what a profile that makes files would find, on an array of logical sectors of `sector`.
pub(super) fn filesystem(
    problems: &Problems,
    view: &View<'_>,
    array: Option<&Array>,
    kernel: Kernel,
    (makes_files, sector): (bool, Bytes),
) -> Option<Option<Filesystem>> {
    let given = view.filesystem(Key::Filesystem);
    let zfs = array.is_some_and(|a| a.engine == Engine::Zfs);
    let kind = match &given {
        Some(given) => given.value,
        None if zfs => FilesystemKind::Zfs,
        None if array.is_some_and(|a| a.engine == Engine::Btrfs) => FilesystemKind::Btrfs,
        None if makes_files => kernel.default_filesystem(),
        None => FilesystemKind::None,
    };
    if let Some(given) = &given {
        suits(problems, given, array, kernel)?;
    }
    if kind == FilesystemKind::None {
        return Some(None);
    }
    let journalled = matches!(kind, FilesystemKind::Ext3 | FilesystemKind::Ext4);
    let mode = journalled.then(|| view.journal(Key::FilesystemMode));
    let mode = mode.map(|mode| mode.map_or(JournalMode::Ordered, |m| m.value));
    let has_journal = journalled && mode != Some(JournalMode::None) || kind == FilesystemKind::Xfs;
    let journal = has_journal
        .then(|| view.size(Key::FilesystemJournal))
        .flatten();
    let block = view.size(Key::FilesystemBlock);
    if let Some(block) = &block
        && (!block.value.0.is_power_of_two() || !(512..=65_536).contains(&block.value.0))
    {
        let message = format!("no file system has blocks of {}", block.value);
        let help = "use a power of two from 512B to 64KiB";
        problems.wrong(&block.at, message, help);
        return None;
    }
    if let Some(block) = &block
        && kind != FilesystemKind::Zfs
        && block.value < sector
    {
        let message = format!(
            "blocks of {} on an array of disks whose logical sectors have {sector}",
            block.value
        );
        let help = format!("no file system can be made so: use {sector} or more");
        problems.wrong(&block.at, message, &help);
        return None;
    }
    // ZFS has records, see `record-size`.
    let block = match kind {
        FilesystemKind::Zfs => block.map(|b| b.value),
        _ => Some(block.map_or(Bytes::kib(4), |b| b.value)),
    };
    Some(Some(Filesystem {
        kind,
        block,
        journal: journal.map(|j| j.value),
        mode,
        mount_options: view.text(Key::MountOptions).map(|o| o.value),
    }))
}
