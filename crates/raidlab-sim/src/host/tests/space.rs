//! File systems that are nearly full, and space that comes back.
use super::files::{KINDS, files, pass};
use super::*;
use crate::host::tests::raw::one;
use raidlab_core::workload::spec::FilesAction;

/// A quick device of so many MiB: what is done on it is over before a transaction is committed by itself.
fn small(kind: FilesystemKind, kernel: Kernel, mib: u64) -> Host<Toy> {
    with_memory(64, kind, kernel, mib)
}

fn with_memory(memory: u64, kind: FilesystemKind, kernel: Kernel, mib: u64) -> Host<Toy> {
    let mut device = Toy::new();
    device.sectors = mib * 2048;
    (device.each, device.sector) = (Span::from_micros(20), Span(800));
    host(kernel, memory, kind, device)
}

/// What is not ZFS, which has transactions all the time.
fn kinds() -> impl Iterator<Item = (FilesystemKind, Kernel)> {
    let kinds = KINDS.into_iter();
    kinds.filter(|(kind, _)| *kind != FilesystemKind::Zfs)
}

fn write(size: u64, direct: bool) -> WorkloadSpec {
    let mut write = pass(PassAction::Write, OpenMode::Create, size, Durable::Never);
    if let WorkloadSpec::Pass(pass) = &mut write {
        pass.handle.direct = direct;
        pass.call = 256 << 10;
    }
    write
}

/// The bytes that it moved, or why it could not.
fn tried(host: &mut Host<Toy>, spec: &WorkloadSpec) -> Result<u64, DriveError> {
    let mut lanes = [Lane {
        workload: spec.build(Stream::new(1)),
        depth: 1,
    }];
    let driven = drive(&mut lanes, host, &DriveOptions::default(), &mut ())?;
    Ok(driven.tallies[0].bytes)
}

/// More than half of the device, emptied and written again long before the next commit.
#[test]
fn a_file_that_is_written_again_has_the_space_that_it_had() {
    for (kind, kernel) in kinds() {
        for direct in [false, true] {
            let mut host = small(kind, kernel, 400);
            let size = 240 * MIB;
            for _ in 0..3 {
                let wrote = tried(&mut host, &write(size, direct));
                assert_eq!(wrote.unwrap_or_else(|e| panic!("{kind}: {e}")), size);
            }
            let second = Instant(3_000_000_000);
            assert!(host.now() < second, "{kind}: {}", host.now().0);
            host.sync().unwrap();
            assert!(host.is_clean(), "{kind}");
        }
    }
}

/// Two writers of 64 KiB anywhere in a file of so many MiB on a device of 1 GiB.
fn overwritten(file: u64, direct: bool) -> Result<Vec<u64>, DriveError> {
    let mut host = with_memory(2048, FilesystemKind::Btrfs, Kernel::DEFAULT, 1024);
    let size = file * MIB;
    one(&mut host, write(size, direct));
    host.sync().unwrap();
    let writers = [0, 1].map(|_| {
        let spec = CallsSpec {
            handle: Handle::new(0, OpenMode::Update).direct(direct),
            action: CallAction::Write,
            size: Bytes(size),
            call: 65_536,
            count: 12_000,
            at_least: Span::ZERO,
            at_most: 0,
            durable: Durable::Never,
        };
        (WorkloadSpec::Calls(spec), 1)
    });
    let done = attempt(&mut host, &writers)?;
    Ok(done.iter().map(|tally| tally.bytes).collect())
}

/// Copies of what is overwritten fill the device while the transaction that frees what was there is still open.
#[test]
fn overwriting_of_btrfs_waits_for_the_space_that_it_frees() {
    for direct in [false, true] {
        assert_eq!(overwritten(400, direct).unwrap(), [12_000 * 65_536; 2]);
    }
}

/// Of extents of 128 MiB nothing is free while any of it is in use: on Linux 6.18, too, 600 MiB end with ENOSPC, and 430 MiB come to use 857.
#[test]
fn overwriting_of_btrfs_may_need_twice_the_space() {
    assert!(overwritten(430, false).is_ok());
    let Err(DriveError::Op { errno, .. }) = overwritten(600, false) else {
        panic!("all of it had room");
    };
    assert_eq!(errno, ENOSPC);
}

#[test]
fn a_device_that_is_full_is_full() {
    for (kind, kernel) in kinds() {
        for direct in [false, true] {
            let mut host = small(kind, kernel, 400);
            one(&mut host, write(100 * MIB, direct));
            let failed = tried(&mut host, &write(500 * MIB, direct));
            let failed = failed.expect_err("there is no such space");
            let DriveError::Op { errno, .. } = failed else {
                panic!("{kind}: {failed}");
            };
            assert_eq!(errno, ENOSPC, "{kind}");
        }
    }
}

#[test]
fn files_that_are_made_again_have_the_space_of_those_that_were_removed() {
    for (kind, kernel) in kinds() {
        let mut host = small(kind, kernel, 400);
        for _ in 0..3 {
            for action in [FilesAction::Create, FilesAction::Delete] {
                let mut spec = files(action, 240, 1 << 20, false);
                if let WorkloadSpec::Files(files) = &mut spec {
                    files.sync_end = false;
                }
                tried(&mut host, &spec).unwrap_or_else(|e| panic!("{kind}: {e}"));
            }
        }
        host.sync().unwrap();
        assert!(host.is_clean(), "{kind}");
    }
}
