//! What calls with names take of a processor, beside a real kernel.
use super::files::files;
use super::raw::one;
use super::*;
use raidlab_core::workload::spec::FilesAction;

/// Making and removing 16384 empty files in one directory, and `stat` of them: microseconds of processor time a file on Linux 6.18, the
/// file system on a loop device in memory, once the kernel has had as many before (medians of four rounds; the first one, in which
/// it gets memory for inodes, took half as much again to make them). Of what core it was the ratios do not depend on.
const MEASURED: [(FilesystemKind, f64, f64, f64); 4] = [
    (FilesystemKind::Ext3, 9.5, 1.05, 7.8),
    (FilesystemKind::Ext4, 10.7, 1.07, 9.2),
    (FilesystemKind::Xfs, 14.9, 1.06, 10.4),
    (FilesystemKind::Btrfs, 14.0, 1.19, 19.6),
];

#[test]
fn files_are_made_and_removed_as_fast_beside_stat_as_on_a_real_kernel() {
    let predicted = |kind| {
        let mut host = host(Kernel::DEFAULT, 4096, kind, Toy::new());
        [FilesAction::Create, FilesAction::Stat, FilesAction::Delete].map(|action| {
            let tally = one(&mut host, files(action, 4000, 0, false));
            // The median leaves out what waits for blocks of directories.
            let times = tally
                .response
                .iter()
                .flatten()
                .max_by_key(|times| times.count());
            times.unwrap().percentile(50.0).unwrap().0 as f64
        })
    };
    let (base, ext4) = (predicted(FilesystemKind::Ext4)[1], MEASURED[1].2);
    for (kind, made, looked, removed) in MEASURED {
        for (what, measured) in predicted(kind).into_iter().zip([made, looked, removed]) {
            let (ratio, wanted) = (what / base, measured / ext4);
            assert!(
                (ratio / wanted - 1.0).abs() < 0.12,
                "{kind}: {ratio} {wanted}"
            );
        }
    }
}

/// What is dirty is above the size of the memory for a while, and has to go when it is written: 256 MiB of files are not in the cache
/// of 64 MiB when they are looked at.
#[test]
fn small_files_that_do_not_fit_are_read() {
    for kind in [
        FilesystemKind::Ext4,
        FilesystemKind::Xfs,
        FilesystemKind::Btrfs,
    ] {
        let mut host = host(Kernel::DEFAULT, 64, kind, Toy::new());
        let _ = one(&mut host, files(FilesAction::Create, 4096, 65_536, false));
        let before = host.counters().read;
        let _ = one(&mut host, files(FilesAction::Stat, 4096, 65_536, false));
        let read = host.counters().read - before;
        assert!(read > 192 * MIB, "{kind}: {} MiB", read / MIB);
    }
}
