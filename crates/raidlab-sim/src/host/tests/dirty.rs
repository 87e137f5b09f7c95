//! What may be dirty, and for how long, where it is set (`vm.dirty_*`).
use super::raw::one;
use super::*;
use raidlab_core::time::Instant;
use raidlab_experiment::dirty::Dirty;

const fn share(percent: u8) -> Option<Dirty> {
    Some(Dirty::Percent(percent))
}

const fn size(bytes: u64) -> Option<Dirty> {
    Some(Dirty::Size(Bytes(bytes)))
}

fn pages(kernel: Kernel, limit: Option<Dirty>, background: Option<Dirty>) -> (u64, u64) {
    let spec = HostSpec {
        write_back: WriteBack {
            limit,
            background,
            ..WriteBack::default()
        },
        ..machine(kernel, 400)
    };
    // A hundred pages for files of 102 400 in all.
    spec.dirty_pages(&Era::of(kernel), 10_000)
}

#[test]
fn what_may_be_dirty_is_what_is_set_within_the_kernels_bounds() {
    let new = Kernel::DEFAULT;
    assert_eq!(pages(new, None, None), (2000, 1000));
    assert_eq!(pages(new, share(20), share(10)), (2000, 1000));
    assert_eq!(pages(new, share(50), None), (5000, 1000));
    // What is not below the limit is half of it.
    assert_eq!(pages(new, share(1), None), (100, 50));
    assert_eq!(pages(new, share(8), share(80)), (800, 400));
    assert_eq!(pages(new, None, size(4097)), (2000, 2));
    assert_eq!(pages(new, size(40_960), None), (10, 5));
    assert_eq!(pages(new, share(100), share(0)), (10_000, 0));

    let bounded = Kernel::Linux(2, 6, 36);
    assert_eq!(pages(bounded, share(1), None), (500, 250));
    assert_eq!(pages(bounded, size(40_960), None), (10, 5));
    let half = Kernel::Linux(2, 6, 24);
    assert_eq!(pages(half, share(90), None), (5000, 500));
    // Of all memory.
    assert_eq!(pages(OLD, None, None), (40_960, 10_240));
    assert_eq!(pages(OLD, share(10), share(5)), (10_240, 5120));
}

fn set(kernel: Kernel, set: WriteBack) -> Host<Toy> {
    let device = Toy::new();
    let spec = FsSpec::new(FilesystemKind::Xfs, kernel, device.sectors());
    let machine = HostSpec {
        write_back: set,
        ..machine(kernel, 256)
    };
    Host::new(&machine, device, FileSystem::new(&spec).unwrap())
}

fn write(host: &mut Host<Toy>, call: u32, bytes: u64) {
    let pass = PassSpec {
        handle: Handle::new(0, OpenMode::Create),
        action: PassAction::Write,
        start: Bytes(0),
        size: Bytes(bytes),
        call,
        durable: Durable::Never,
    };
    one(host, WorkloadSpec::Pass(pass));
}

#[test]
fn writers_are_held_back_at_what_is_set() {
    let kernels = [
        OLD,
        Kernel::Linux(2, 6, 32),
        Kernel::Linux(3, 0, 0),
        Kernel::DEFAULT,
    ];
    for kernel in kernels {
        for limit in [size(8192), size(MIB), size(24 * MIB), share(10), share(40)] {
            let mut host = set(
                kernel,
                WriteBack {
                    limit,
                    ..WriteBack::default()
                },
            );
            let most = host.back.limit;
            write(&mut host, 65_536, 160 * MIB);
            let left = host.cache.dirty() + host.cache.writing();
            // A writer is looked at once in 4 MiB at most, and a call ends where it ends.
            let above = if most > 1024 { 1024 } else { most / 3 + 16 };
            assert!(
                left <= most + above,
                "{kernel}, {limit:?}: {left} of {most}"
            );
            // Of two pages none may be left at the end.
            assert!(
                left * 3 + 6 >= most,
                "{kernel}, {limit:?}: {left} of {most}"
            );
        }
    }
}

/// Whether a megabyte is on the device after so long.
fn is_written_after(times: WriteBack, seconds: u64) -> bool {
    let mut host = set(Kernel::DEFAULT, times);
    write(&mut host, 65_536, MIB);
    let until = Instant::ZERO + Span::from_secs(seconds);
    host.wait(Some(until), &mut Vec::new())
        .expect("time passes");
    host.counters().written >= MIB
}

#[test]
fn what_is_dirty_is_written_when_it_is_old_and_looked_at() {
    let times = |expire, wake| WriteBack {
        expire: Some(Span::from_millis(expire)),
        wake: Some(Span::from_millis(wake)),
        ..WriteBack::default()
    };
    let own = WriteBack::default();
    assert!(!is_written_after(own, 29));
    assert!(is_written_after(own, 40));
    assert!(!is_written_after(times(3000, 1000), 2));
    assert!(is_written_after(times(3000, 1000), 6));
    // Old, and not looked at before.
    assert!(!is_written_after(times(3000, 10_000), 9));
    assert!(is_written_after(times(3000, 10_000), 12));
    assert!(is_written_after(times(0, 10), 1));
    // Nobody ever looks.
    assert!(!is_written_after(times(3000, 0), 500));
}
