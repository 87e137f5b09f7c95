//! Writers that are held back.
use super::raw::{close, one, rate};
use super::*;

pub(super) fn write(call: u32, size: u64) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: Handle::new(0, OpenMode::Create),
        action: PassAction::Write,
        start: Bytes(0),
        size: Bytes(size),
        call,
        durable: Durable::AtEnd,
    })
}

/// Where a writer is held back in the middle of a page, the page is written twice when it is on its way by then; that is
/// to be once in a while, not every eighth page. Most of what may be dirty fits into the device's queue here.
#[test]
fn calls_of_half_a_page_write_few_pages_twice() {
    let size = 96 * MIB;
    for (kernel, memory, more) in [
        (OLD, 32, 64),
        (Kernel::Linux(2, 6, 24), 128, 64),
        (Kernel::Linux(2, 6, 32), 64, 256),
        (Kernel::DEFAULT, 64, 256),
    ] {
        let mut rates = [0.0; 2];
        for (call, rate_of) in [4096, 2048].into_iter().zip(&mut rates) {
            let mut host = host(kernel, memory, FilesystemKind::Xfs, Toy::new());
            let wrote = one(&mut host, write(call, size));
            let written = host.counters().written;
            assert!(
                written < size + size / more,
                "{kernel}: {} pages twice in calls of {call}",
                (written - size) / 4096
            );
            *rate_of = rate(&wrote);
        }
        close(rates[1], rates[0], 0.03);
    }
}

/// Windows asks in each call whether there is too much dirty (`CcCanIWrite`); only Linux looks less often with more memory
/// for each processor. What is left dirty at the end of a write is then as much with any number of cores.
#[test]
fn windows_holds_writers_back_at_the_same_mark_with_any_number_of_cores() {
    let spec = FsSpec::new(
        FilesystemKind::Ntfs,
        Kernel::Windows2000,
        Toy::new().sectors(),
    );
    let left = |cores, call| {
        let machine = HostSpec {
            cores,
            ..machine(Kernel::Windows2000, 128)
        };
        let mut host = Host::new(&machine, Toy::new(), FileSystem::new(&spec).unwrap());
        let WorkloadSpec::Pass(pass) = write(call, 96 * MIB) else {
            panic!("a pass")
        };
        one(
            &mut host,
            WorkloadSpec::Pass(PassSpec {
                durable: Durable::Never,
                ..pass
            }),
        );
        (host.cache.dirty() + host.cache.writing()) * PAGE
    };
    for call in [4096, 65_536, 1 << 20] {
        let one = left(1, call);
        // Three eighths of memory, and no more than a part of a call above.
        let most = 128 * MIB * 37 / 100;
        assert!(one <= most + (256 << 10), "{call}: {one} of {most}");
        for cores in [2, 4] {
            assert_eq!(left(cores, call), one, "{cores} cores, calls of {call}");
        }
    }
}

/// Before there were reservations (ext3 of 2.6.10) the blocks of files that grow side by side alternate. Linux 2.4 writes them as they
/// became dirty, so that they go to the disk in a row; file by file each would be written with gaps, and the other one into them.
#[test]
fn files_that_grow_side_by_side_are_written_side_by_side_on_old_kernels() {
    for kind in [FilesystemKind::Ext2, FilesystemKind::Ext3] {
        let mut host = host(Kernel::Linux(2, 4, 20), 64, kind, Toy::new());
        let job = |file| {
            let WorkloadSpec::Pass(pass) = write(4096, 48 * MIB) else {
                panic!("a pass")
            };
            let handle = Handle::new(file, OpenMode::Create);
            (WorkloadSpec::Pass(PassSpec { handle, ..pass }), 1)
        };
        let _ = run(&mut host, &[job(0), job(1)]);
        let (mut highest, mut back) = (0, Vec::new());
        for (_, bio) in &host.device().asked {
            highest = highest.max(bio.end());
            back.push(highest - bio.end());
        }
        back.sort_unstable();
        let most = back[back.len() * 9 / 10];
        assert!(most <= 1024, "{kind:?}: {most} sectors back and more");
    }
}
