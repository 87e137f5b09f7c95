//! What queueing theory, geometry and datasheets say.
use super::*;
use raidlab_core::time::Span;

const ROTATING: [&str; 10] = [
    "ST340015A",
    "ST3250624AS",
    "ST3160812AS",
    "ST3000DM001",
    "u160-10k-2002",
    "ST336706LW",
    "MAN3367MP",
    "KW036",
    "HP-C3323A",
    "nearline-24tb",
];

fn random(model: &DiskModel, ops: u64) -> BlockSpec {
    blocks(model, Order::Random, 4096, ops)
}

#[test]
fn the_mean_rotational_delay_is_half_a_turn() {
    for name in ROTATING {
        let model = model(name);
        let (tally, target) = run(&model, random(&model, 100_000), 1);
        let mean = target.device().counters().rotation.0 as f64 / tally.ops as f64;
        let turn = hdd(&model).spindle(0).revolution() as f64;
        close(mean, turn / 2.0, 0.01);
    }
}

#[test]
fn the_mean_seek_between_uniform_cylinders_is_the_integral() {
    // One zone, so that uniform sectors are uniform cylinders: P(x) = 2 (C-x) / C^2.
    let model = changed("ST340015A", |spec| {
        spec.zones = vec![geometry::ZoneSpec {
            cylinders: 80_000,
            sectors_per_track: 1000,
            ..Default::default()
        }];
        spec.sectors = 80_000_000;
    });
    let curve = &hdd(&model).seek;
    let cylinders = 80_000_u64;
    let integral: f64 = (1..cylinders)
        .map(|d| 2.0 * (cylinders - d) as f64 * curve.nanos(d as u32) as f64)
        .sum::<f64>()
        / (cylinders * cylinders) as f64;
    close(integral, 12.5e6, 0.001);
    let (tally, target) = run(&model, random(&model, 200_000), 1);
    close(
        target.device().counters().seek.0 as f64 / tally.ops as f64,
        integral,
        0.005,
    );
}

#[test]
fn a_random_read_takes_the_average_seek_half_a_turn_and_the_overhead() {
    for (name, seek) in [
        ("ST340015A", 12.5),
        ("ST3250624AS", 11.0),
        ("ST3160812AS", 11.0),
        ("ST3000DM001", 13.0),
        ("u160-10k-2002", 4.7),
        ("ST336706LW", 5.2),
        ("MAN3367MP", 4.5),
        ("KW036", 4.5),
        ("nearline-24tb", 8.0),
    ] {
        let model = model(name);
        let (tally, _) = run(&model, random(&model, 100_000), 1);
        let spec = &hdd(&model).spec;
        let turn = hdd(&model).spindle(0).revolution() as f64 / 1e6;
        let expected = seek + turn / 2.0 + spec.overhead.read_miss.as_millis_f64();
        close(1e3 / per_second(&tally), expected, 0.03);
    }
}

#[test]
fn streaming_reaches_the_sustained_rate_of_the_outer_tracks() {
    for (name, outer) in [
        ("ST340015A", 46.5),
        ("ST3250624AS", 67.5),
        ("ST3160812AS", 76.5),
        ("ST3000DM001", 210.0),
        ("ST336706LW", 60.0),
        ("MAN3367MP", 65.0),
        ("KW036", 55.0),
        ("nearline-24tb", 285.0),
    ] {
        let model = model(name);
        close(hdd(&model).sustained(0), outer * 1e6, 0.003);
        // 1 GiB lies in the outermost zone of all of them.
        let spec = blocks(&model, Order::Sequential, 128 << 10, 8192);
        let (tally, _) = run(&model, spec, 1);
        close(bytes_per_second(&tally), outer * 1e6, 0.02);
        let writes = BlockSpec {
            read_percent: 0,
            flush_end: true,
            ..spec
        };
        if hdd(&model).spec.cache.write_back {
            let (tally, _) = run(&model, writes, 1);
            close(bytes_per_second(&tally), outer * 1e6, 0.02);
        }
    }
}

#[test]
fn streaming_is_what_a_cylinder_holds_over_its_turns_and_skews() {
    let model = model("u160-10k-2002");
    let turn = 60e3 / 10_025.0;
    let slots = |ms: f64| (ms * 720.0 / turn).ceil() * turn / 720.0;
    let cylinder = 4.0 * turn + 3.0 * slots(0.8) + slots(1.1);
    let rate = 4.0 * 720.0 * 512.0 / cylinder * 1e3;
    close(hdd(&model).sustained(0), rate, 1e-6);
    let spec = blocks(&model, Order::Sequential, 64 << 10, 10_000);
    let (tally, _) = run(&model, spec, 1);
    close(bytes_per_second(&tally), rate, 0.01);
}

#[test]
fn poisson_arrivals_at_a_fixed_service_time_wait_as_in_m_d_1() {
    // All time is in the drive's processor and the link: no seeks, a constant service time.
    let model = changed("ST3250624AS", |spec| {
        spec.overhead.write = Span::from_micros(1000);
        spec.cache.write_sectors = 1 << 30;
        spec.cache.write_runs = u32::MAX;
    });
    let base = BlockSpec {
        read_percent: 0,
        block: 512,
        ..blocks(&model, Order::Sequential, 512, 400_000)
    };
    for load in [0.3_f64, 0.6, 0.8] {
        let spec = BlockSpec {
            arrival: Arrival::Poisson {
                per_second: (load * 1000.0) as u32,
            },
            ..base
        };
        let (tally, _) = run(&model, spec, 4096);
        let mean = tally.response[1]
            .as_ref()
            .unwrap()
            .mean()
            .unwrap()
            .as_millis_f64();
        let service = 1.0 + 512.0 / 300e3;
        // W = S + rho S / (2 (1 - rho)), with the processor as the server.
        let wait = load / (2.0 * (1.0 - load));
        close(mean, service + wait, 0.02);
    }
}

#[test]
fn queueing_raises_random_reads_as_measured_on_drives() {
    let rate = |model: &DiskModel, depth| per_second(&run(model, random(model, 30_000), depth).0);
    for (name, least, most) in [
        ("ST3250624AS", 1.3, 1.7),
        ("ST3000DM001", 1.3, 1.7),
        ("nearline-24tb", 1.5, 2.1),
    ] {
        let model = model(name);
        let gain = rate(&model, 32) / rate(&model, 1);
        assert!((least..=most).contains(&gain), "{name} gains {gain}");
        let middle = rate(&model, 4) / rate(&model, 1);
        assert!(
            1.0 < middle && middle <= gain * 1.01,
            "{name} gains {middle} at 4, {gain} at 32"
        );
    }
    // A drive without queueing only overlaps its overhead.
    let model = model("ST340015A");
    let gain = rate(&model, 32) / rate(&model, 1);
    assert!((1.0..1.03).contains(&gain), "{gain}");
}

#[test]
fn littles_law_holds() {
    for (name, depth) in [("ST3250624AS", 7), ("nearline-24tb", 32), ("nvme-ssd", 64)] {
        let model = model(name);
        let spec = BlockSpec {
            read_percent: 70,
            ..random(&model, 20_000)
        };
        let (tally, _) = run(&model, spec, depth);
        let responses = tally.response.iter().flatten();
        let in_system: u128 = responses.map(|latencies| latencies.sum()).sum();
        let arrived = tally.ops as f64 / tally.elapsed().as_secs_f64();
        let mean = in_system as f64 / tally.ops as f64 / 1e9;
        close(arrived * mean, tally.mean_in_flight(), 1e-6);
    }
}

#[test]
fn busy_and_idle_time_add_up() {
    let model = model("ST3250624AS");
    let (tally, target) = run(&model, random(&model, 10_000), 1);
    let counters = target.device().counters();
    let end = raidlab_core::target::Target::now(&target);
    assert_eq!(
        counters.busy() + counters.idle(end),
        end.since(Instant::ZERO)
    );
    // At depth 1 what is not the arm is overhead and the last sector on the link.
    let idle = counters.idle(end).0 as f64 / tally.ops as f64;
    close(idle, 200_000.0, 0.03);
}
