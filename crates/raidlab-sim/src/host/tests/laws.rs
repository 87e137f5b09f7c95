//! What holds in every run, whatever is done: Little's law, conservation of bytes, the same numbers
//! from the same seed.
use super::*;
use proptest::prelude::*;
use raidlab_core::histogram::Latencies;
use raidlab_core::op::{FileOp, Op};
use raidlab_core::rng::mix;
use raidlab_core::target::Tag;

/// A random mixture of jobs on the raw device.
fn jobs() -> impl Strategy<Value = Vec<(WorkloadSpec, u32)>> {
    let block = prop_oneof![
        Just(512_u32),
        Just(4096),
        Just(8192),
        Just(65_536),
        Just(1 << 20)
    ];
    let job = (any::<bool>(), 0..=100_u8, block, 1..200_u64, 1..17_u32).prop_map(
        |(random, read_percent, block, ops, depth)| {
            let spec = BlockSpec {
                order: if random {
                    Order::Random
                } else {
                    Order::Sequential
                },
                read_percent,
                block,
                region: Extent::new(0, 96 * MIB),
                first: 0,
                limit: Limit {
                    ops: Some(ops),
                    time: None,
                },
                arrival: Arrival::Closed,
                flush_every: 0,
                flush_data: false,
                flush_end: false,
            };
            (WorkloadSpec::Blocks(spec), depth)
        },
    );
    proptest::collection::vec(job, 1..4)
}

fn kernels() -> impl Strategy<Value = Kernel> {
    prop_oneof![
        Just(OLD),
        Just(Kernel::Linux(2, 6, 26)),
        Just(Kernel::Linux(2, 6, 36)),
        Just(Kernel::DEFAULT),
        Just(Kernel::Windows2000),
    ]
}

/// A page is dirtied again while its old content is on its way: the new one has to follow.
#[test]
fn a_sync_takes_pages_along_that_were_written_again_on_their_way() {
    let spec = BlockSpec {
        order: Order::Random,
        read_percent: 0,
        block: 65_536,
        region: Extent::new(0, 96 * MIB),
        first: 0,
        limit: Limit {
            ops: Some(144),
            time: None,
        },
        arrival: Arrival::Closed,
        flush_every: 0,
        flush_data: false,
        flush_end: false,
    };
    for kernel in [OLD, Kernel::Linux(2, 6, 36)] {
        let mut host = host(kernel, 32, FilesystemKind::None, Toy::new());
        host.set_direct(false);
        run(&mut host, &[(WorkloadSpec::Blocks(spec), 1)]);
        host.sync().unwrap();
        assert!(host.is_clean(), "{kernel}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn littles_law_and_conservation(jobs in jobs(), kernel in kernels(), direct: bool) {
        let mut host = host(kernel, 32, FilesystemKind::None, Toy::new());
        host.set_direct(direct);
        let start = host.now();
        let tallies = run(&mut host, &jobs);
        let wrote: u64 = tallies.iter().map(|t| t.bytes_written).sum();
        let read: u64 = tallies.iter().map(|t| t.bytes_read).sum();
        for (tally, (_, depth)) in tallies.iter().zip(&jobs) {
            // Mean in flight times elapsed is the sum of the response times, to the nanosecond but
            // for the rounding of the mean.
            let total = |l: &Latencies| l.mean().map_or(0.0, |m| m.0 as f64) * l.count() as f64;
            let sum: f64 = tally.response.iter().flatten().map(|l| total(l)).sum();
            let elapsed = host.now().since(start).0 as f64;
            let in_flight = tally.mean_in_flight() * tally.to.since(start).0 as f64;
            prop_assert!((sum - in_flight).abs() <= 0.02 * sum + 1e4, "{sum} {in_flight} {elapsed}");
            prop_assert!(tally.mean_in_flight() <= f64::from(*depth) + 1e-9);
        }
        host.sync().unwrap();
        prop_assert!(host.is_clean());
        let counters = host.counters();
        if direct {
            prop_assert_eq!(counters.written, wrote);
            prop_assert_eq!(counters.read, read);
        } else {
            // Pages that are written again before they go are written once.
            prop_assert!(counters.written <= wrote.div_ceil(512) * 4096);
        }
        prop_assert!(host.cpu().total().0 <= host.now().0);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers(jobs in jobs(), kernel in kernels(), direct: bool) {
        let digest = || {
            let mut host = host(kernel, 32, FilesystemKind::None, Toy::new());
            host.set_direct(direct);
            let tallies = run(&mut host, &jobs);
            let device = host.device().digest;
            tallies.iter().fold(device, |all, t| mix(all ^ t.to.0))
        };
        prop_assert_eq!(digest(), digest());
    }
}

/// Instead of going round in a circle for ever.
#[test]
#[should_panic(expected = "time stands still at 0.000")]
fn a_device_that_does_nothing_is_told() {
    let mut device = Toy::new();
    device.stuck = true;
    let mut host = host(OLD, 64, FilesystemKind::None, device);
    run(
        &mut host,
        &[(
            WorkloadSpec::Blocks(raw::blocks(Order::Sequential, 100, 4096, 1)),
            1,
        )],
    );
}

/// A process is one thread: what it has to do to have pages written is done before `fsync` ends, however many cores there are and
/// however fast the device is.
#[test]
fn fsync_ends_no_sooner_than_its_own_work() {
    let mut device = Toy::new();
    (device.each, device.sector) = (Span(100), Span::ZERO);
    let fs = FsSpec::new(
        FilesystemKind::Ext4,
        Kernel::Linux(6, 1, 0),
        device.sectors(),
    );
    let mut spec = machine(Kernel::Linux(6, 1, 0), 512);
    spec.cores = 4;
    let mut host = Host::new(&spec, device, FileSystem::new(&fs).unwrap());
    let mut call = |op| {
        let (begun, before) = (host.now(), host.cpu());
        host.submit(Tag(0), Op::File(op)).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            host.wait(None, &mut done).unwrap();
        }
        let used = host.cpu().system.0 - before.system.0;
        (done[0].at.since(begun), Span(used))
    };
    call(FileOp::Open {
        file: 0,
        mode: OpenMode::Create,
        direct: false,
        sync: false,
    });
    call(FileOp::Write {
        file: 0,
        len: 8 << 20,
        offset: 0,
    });
    let (took, worked) = call(FileOp::Sync {
        file: 0,
        data_only: false,
    });
    assert!(worked > Span::from_micros(100), "{worked:?}");
    assert!(took >= worked, "{took:?} {worked:?}");
}
