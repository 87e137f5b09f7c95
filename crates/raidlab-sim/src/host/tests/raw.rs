//! The raw device: streams, caching, thresholds, direct access.
use super::*;
use raidlab_core::op::BlockKind;

fn pass(action: PassAction, size: u64, call: u32, durable: Durable) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: Handle::new(0, OpenMode::Update),
        action,
        start: Bytes(0),
        size: Bytes(size),
        call,
        durable,
    })
}

pub(super) fn one<D: Device>(host: &mut Host<D>, job: WorkloadSpec) -> Tally {
    run(host, &[(job, 1)]).remove(0)
}

/// Bytes a second.
pub(super) fn rate(tally: &Tally) -> f64 {
    tally.bytes as f64 / tally.elapsed().as_secs_f64()
}

pub(super) fn close(got: f64, wanted: f64, within: f64) {
    assert!(
        (got / wanted - 1.0).abs() <= within,
        "{got} is not near {wanted}"
    );
}

/// What the disk streams from its outermost tracks, read by commands of 256 KiB back to back.
fn media_rate() -> f64 {
    let mut host = host(OLD, 512, FilesystemKind::None, disk());
    let blocks = WorkloadSpec::Blocks(blocks(Order::Sequential, 100, 256 << 10, 512));
    rate(&run(&mut host, &[(blocks, 4)])[0])
}

pub(super) fn blocks(order: Order, read_percent: u8, block: u32, ops: u64) -> BlockSpec {
    BlockSpec {
        order,
        read_percent,
        block,
        region: Extent::new(0, 1 << 30),
        first: 0,
        limit: Limit {
            ops: Some(ops),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    }
}

/// Somebody else has the device open: closing it is not the last time.
fn shared<D: Device>(mut host: Host<D>) -> Host<D> {
    let file = host.known(0);
    host.files[file as usize].opens += 1;
    host
}

#[test]
fn the_last_close_writes_back_and_empties_the_cache() {
    let mut host = host(OLD, 512, FilesystemKind::None, Toy::new());
    let write = pass(PassAction::Write, 8 * MIB, 65_536, Durable::Never);
    let wrote = one(&mut host, write);
    assert_eq!(host.counters().written, 8 * MIB);
    assert!(host.is_clean());
    // 128 KiB in 100 us and 256 times 8 us; no flush of the drive.
    let device = 131_072.0 / 2148e-6;
    assert!(rate(&wrote) <= 1.001 * device, "{}", rate(&wrote));
    let read = pass(PassAction::Read, 8 * MIB, 65_536, Durable::Never);
    for times in 1..=2 {
        one(&mut host, read);
        assert!(host.counters().read >= times * 8 * MIB);
    }
    // While somebody else has it open, it stays in memory.
    let mut host = shared(host);
    one(&mut host, read);
    let before = host.counters();
    one(&mut host, read);
    one(&mut host, write);
    assert_eq!(host.counters(), before);
}

#[test]
fn a_sequential_read_comes_at_the_rate_of_the_media() {
    let media = media_rate();
    close(media, 46.5e6, 0.03);
    for kernel in [OLD, Kernel::Linux(2, 6, 32), Kernel::DEFAULT] {
        let mut host = host(kernel, 128, FilesystemKind::None, disk());
        let read = one(
            &mut host,
            pass(PassAction::Read, 64 * MIB, 8192, Durable::Never),
        );
        assert_eq!(read.bytes, 64 * MIB);
        assert!(
            rate(&read) >= 0.97 * media,
            "{kernel}: {} of {media}",
            rate(&read)
        );
        assert!(
            rate(&read) <= 1.01 * media,
            "{kernel}: {} of {media}",
            rate(&read)
        );
        // Nothing is read twice, and little more than what was wanted.
        let got = host.counters().read;
        assert!((64 * MIB..64 * MIB + (512 << 10)).contains(&got), "{got}");
    }
}

#[test]
fn two_windows_are_on_their_way_to_a_reader_who_waits() {
    for (kernel, two) in [
        (OLD, true),
        (Kernel::Linux(2, 6, 32), true),
        (Kernel::DEFAULT, true),
        (Kernel::Windows2000, false),
    ] {
        let mut host = host(kernel, 64, FilesystemKind::None, Toy::new());
        let job = pass(PassAction::Read, 8 * MIB, 8192, Durable::Never);
        assert_eq!(one(&mut host, job).bytes, 8 * MIB);
        // Each request takes 100 us and 8 us a sector, one after the other; windows have grown after eight.
        let mut end = Instant::ZERO;
        let asked = host.device().asked[..40].windows(2);
        let early = asked.map(|pair| {
            let (at, bio) = pair[0];
            end = end.max(at) + Span::from_micros(100 + 8 * u64::from(bio.sectors));
            pair[1].0 + Span::from_micros(500) < end
        });
        let early = early.skip(8).filter(|early| *early).count();
        assert_eq!(early > 24, two, "{kernel}: {early} of 31");
    }
}

#[test]
fn a_file_in_memory_costs_processor_time_alone() {
    let mut host = shared(host(OLD, 128, FilesystemKind::None, disk()));
    let job = pass(PassAction::Read, 32 * MIB, 8192, Durable::Never);
    one(&mut host, job);
    let (counters, cpu) = (host.counters(), host.cpu());
    let again = one(&mut host, job);
    assert_eq!(host.counters(), counters);
    let used = Span(host.cpu().total().0 - cpu.total().0);
    let shares = used.0 as f64 / again.elapsed().0 as f64;
    close(shares, 1.0, 0.001);
    // 400 ns a call, 200 ns a page, 8 KiB at 2.4 GB/s; opening and closing come on top.
    let call = 400.0 + 2.0 * 200.0 + 8192.0 / 2.4;
    close(again.elapsed().0 as f64, 4096.0 * call, 0.01);
}

/// Calls of one process that find all in memory are copied by its thread, one after the other.
#[test]
fn calls_in_memory_take_one_core_however_many_are_under_way() {
    let seconds = |kernel: Kernel, depth: u32, read_percent: u8| {
        let spec = HostSpec {
            cores: 4,
            ..machine(kernel, 512)
        };
        let fs = FsSpec::new(FilesystemKind::None, kernel, Toy::new().sectors);
        let mut host = shared(Host::new(&spec, Toy::new(), FileSystem::new(&fs).unwrap()));
        host.set_direct(false);
        let job = BlockSpec {
            region: Extent::new(0, 16 * MIB),
            ..blocks(Order::Sequential, read_percent, 65_536, 256)
        };
        let job = [(WorkloadSpec::Blocks(job), depth)];
        run(&mut host, &job);
        run(&mut host, &job)[0].elapsed().as_secs_f64()
    };
    for kernel in [OLD, Kernel::Linux(5, 10, 0), Kernel::DEFAULT] {
        close(seconds(kernel, 4, 100), seconds(kernel, 1, 100), 0.01);
    }
    // Workers read before 5.9, and write to a device since there is io_uring.
    let between = Kernel::Linux(5, 4, 0);
    close(
        seconds(between, 4, 100),
        seconds(between, 1, 100) / 4.0,
        0.1,
    );
    close(seconds(OLD, 4, 0), seconds(OLD, 1, 0), 0.01);
    close(
        seconds(Kernel::DEFAULT, 4, 0),
        seconds(Kernel::DEFAULT, 1, 0) / 4.0,
        0.1,
    );
}

#[test]
fn a_stream_of_writes_ends_at_the_rate_of_the_device() {
    for kernel in [OLD, Kernel::Linux(2, 6, 32), Kernel::DEFAULT] {
        let mut host = host(kernel, 64, FilesystemKind::None, Toy::new());
        let job = pass(PassAction::Write, 256 * MIB, 8192, Durable::AtEnd);
        let wrote = one(&mut host, job);
        // 128 KiB in 100 us and 256 times 8 us.
        let device = 131_072.0 / 2148e-6;
        assert_eq!(host.counters().written, 256 * MIB);
        assert!(host.is_clean());
        let whole = rate(&wrote);
        assert!(
            (0.93 * device..=1.001 * device).contains(&whole),
            "{kernel}: {whole} of {device}"
        );
        // The first megabytes go to memory; in the middle the writer is held back.
        let windows = &wrote.series.windows;
        assert!(
            windows[0].bytes as f64 > 1.1 * device,
            "{kernel}: {windows:?}"
        );
        close(windows[2].bytes as f64, device, 0.06);
    }
}

#[test]
fn write_back_of_the_device_itself_is_a_request_for_each_page() {
    let writes = |kind, mode| {
        let mut host = host(Kernel::DEFAULT, 64, kind, Toy::new());
        let job = WorkloadSpec::Pass(PassSpec {
            handle: Handle::new(0, mode),
            action: PassAction::Write,
            start: Bytes(0),
            size: Bytes(8 * MIB),
            call: 8192,
            durable: Durable::AtEnd,
        });
        assert_eq!(one(&mut host, job).bytes, 8 * MIB);
        let asked = host.device().asked.iter();
        let large = asked.filter(|(_, bio)| bio.kind == BlockKind::Write && bio.sectors > 64);
        large.map(|(_, bio)| bio.origin.paged).collect::<Vec<_>>()
    };
    let raw = writes(FilesystemKind::None, OpenMode::Update);
    assert!(raw.len() > 32 && raw.iter().all(|paged| *paged));
    let file = writes(FilesystemKind::Xfs, OpenMode::Create);
    assert!(file.len() > 32 && file.iter().all(|paged| !*paged));
}

#[test]
fn dirty_pages_stay_below_the_limit() {
    for (kernel, percent) in [
        (OLD, 40),
        (Kernel::Linux(2, 6, 24), 10),
        (Kernel::DEFAULT, 20),
    ] {
        let mut host = shared(host(kernel, 64, FilesystemKind::None, Toy::new()));
        let job = pass(PassAction::Write, 128 * MIB, 8192, Durable::Never);
        one(&mut host, job);
        let dirty = (host.cache.dirty() + host.cache.writing()) * PAGE;
        let limit = 64 * MIB * percent / 100;
        assert!(
            dirty <= limit + 4 * MIB + (4 << 20),
            "{kernel}: {dirty} of {limit}"
        );
        assert!(dirty >= limit / 4, "{kernel}: {dirty} of {limit}");
        host.sync().unwrap();
        assert!(host.is_clean());
        assert_eq!(host.counters().written, 128 * MIB);
    }
}

#[test]
fn few_dirty_pages_wait_for_thirty_seconds() {
    let mut host = shared(host(OLD, 512, FilesystemKind::None, Toy::new()));
    one(
        &mut host,
        pass(PassAction::Write, MIB, 8192, Durable::Never),
    );
    let mut done = Vec::new();
    host.wait(Some(Instant(29_000_000_000)), &mut done).unwrap();
    assert_eq!(host.counters().written, 0);
    host.wait(Some(Instant(36_000_000_000)), &mut done).unwrap();
    assert_eq!(host.counters().written, MIB);
    assert!(host.is_clean());
}

#[test]
fn random_reads_hit_in_proportion_to_what_is_in_memory() {
    let mut host = shared(host(OLD, 128, FilesystemKind::None, Toy::new()));
    let region = 192 * MIB;
    // Filled from the start on: what was read last is in memory.
    one(
        &mut host,
        pass(PassAction::Read, region, 65_536, Durable::Never),
    );
    let cached = host.cache.pages_of(1) * PAGE;
    assert!((80 * MIB..100 * MIB).contains(&cached), "{cached}");
    let before = host.counters().read;
    let job = WorkloadSpec::Calls(CallsSpec {
        handle: Handle::new(0, OpenMode::Read),
        action: CallAction::Read,
        size: Bytes(region),
        call: 8192,
        count: 8000,
        at_least: Span::ZERO,
        at_most: 0,
        durable: Durable::Never,
    });
    let tally = one(&mut host, job);
    assert_eq!(tally.ops, 8000);
    let missed = (host.counters().read - before) as f64 / (8000.0 * 8192.0);
    close(missed, 1.0 - cached as f64 / region as f64, 0.05);
}

#[test]
fn part_of_a_page_is_read_before_it_is_written() {
    let mut host = host(OLD, 64, FilesystemKind::None, Toy::new());
    let job = pass(PassAction::Write, 8192, 1024, Durable::AtEnd);
    one(&mut host, job);
    assert_eq!(host.counters().read, 8192);
    assert_eq!(host.counters().written, 8192);
    // Whole pages are not.
    one(
        &mut host,
        pass(PassAction::Write, 1 << 20, 4096, Durable::AtEnd),
    );
    assert_eq!(host.counters().read, 8192);
}

#[test]
fn direct_calls_leave_the_cache_alone_and_see_what_is_dirty() {
    let mut host = shared(host(OLD, 64, FilesystemKind::None, Toy::new()));
    one(
        &mut host,
        pass(PassAction::Write, MIB, 8192, Durable::Never),
    );
    assert_eq!(host.counters().written, 0);
    let mut direct = pass(PassAction::Read, MIB, 65_536, Durable::Never);
    if let WorkloadSpec::Pass(spec) = &mut direct {
        spec.handle.direct = true;
    }
    one(&mut host, direct);
    assert_eq!(host.counters().written, MIB, "dirty pages go first");
    assert_eq!(host.counters().read, MIB);
    one(&mut host, direct);
    assert_eq!(host.counters().read, 2 * MIB);
}

#[test]
fn requests_are_sent_off_when_somebody_waits() {
    let mut toy = Toy::new();
    toy.plugged = Some(std::collections::VecDeque::new());
    let mut host = host(OLD, 64, FilesystemKind::None, toy);
    for (action, durable) in [
        (PassAction::Read, Durable::Never),
        (PassAction::Write, Durable::AtEnd),
        (PassAction::Rewrite, Durable::EveryWrite),
    ] {
        let tally = one(&mut host, pass(action, 2 * MIB, 8192, durable));
        assert_eq!(tally.bytes, 2 * MIB);
    }
    let all = blocks(Order::Random, 50, 4096, 200);
    run(&mut host, &[(WorkloadSpec::Blocks(all), 8)]);
}

#[test]
fn a_read_error_reaches_the_call_that_wants_the_page() {
    let mut toy = Toy::new();
    toy.bad = Some(1000);
    let mut host = host(OLD, 64, FilesystemKind::None, toy);
    let job = pass(PassAction::Read, MIB, 8192, Durable::Never);
    let mut lanes = [Lane {
        workload: job.build(Stream::new(1)),
        depth: 1,
    }];
    let error = drive(&mut lanes, &mut host, &DriveOptions::default(), &mut ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("failed with error 5"), "{text}");
}

#[test]
fn what_read_ahead_could_not_have_is_read_page_by_page() {
    for kernel in [OLD, Kernel::Linux(2, 6, 32), Kernel::DEFAULT] {
        let mut toy = Toy::new();
        toy.full = true;
        let mut host = host(kernel, 64, FilesystemKind::None, toy);
        let tally = one(&mut host, pass(PassAction::Read, MIB, 8192, Durable::Never));
        assert_eq!(tally.bytes, MIB, "{kernel}");
        let (ahead, alone): (Vec<_>, Vec<_>) = (host.below.device.asked.iter())
            .map(|asked| asked.1)
            .partition(|bio| bio.origin.ahead);
        // Each page is asked for once in a run, and once alone; a run ends beyond what is read.
        let sectors: u32 = ahead.iter().map(|bio| bio.sectors).sum();
        assert!(u64::from(sectors) * SECTOR >= MIB, "{kernel}: {sectors}");
        let pages: Vec<u64> = alone.iter().map(|bio| bio.lba.0 / 8).collect();
        assert_eq!(pages, (0..256).collect::<Vec<_>>(), "{kernel}");
        assert!(alone.iter().all(|bio| bio.sectors == 8), "{kernel}");
    }
}

#[test]
fn a_thread_below_has_the_cores_that_processes_leave_it() {
    let [one, two] = [1, 2].map(|cores| {
        let spec = HostSpec {
            cores,
            ..machine(OLD, 64)
        };
        let fs = FsSpec::new(FilesystemKind::None, OLD, Toy::new().sectors);
        let mut toy = Toy::new();
        toy.thread = Some(Span::from_millis(1));
        let mut host = Host::new(&spec, toy, FileSystem::new(&fs).unwrap());
        one(&mut host, pass(PassAction::Read, MIB, 8192, Durable::Never));
        let Toy { worked, waited, .. } = host.below.device;
        let used = host.cpu();
        assert!(worked > Span::ZERO && used.kernel > worked);
        (used.total() - worked, waited)
    });
    // Interrupts come to the other core, too.
    assert_eq!(one.0, two.0);
    assert!(
        3 * one.1.0 > one.0.0 && 4 * two.1.0 < one.1.0,
        "{one:?} {two:?}"
    );
}
