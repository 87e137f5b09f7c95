//! Block operations: which blocks, which kind, when; and the digests of all kinds of workload.
use super::*;
use crate::op::{BlockKind, BlockOp, OpClass};
use crate::units::Extent;
use crate::workload::spec::{
    Arrival, BlockSpec, CallAction, CallsSpec, FilesAction, FilesSpec, Limit, Order, PassAction,
    PassSpec,
};

fn blocks(order: Order, read_percent: u8, ops: u64) -> BlockSpec {
    BlockSpec {
        order,
        read_percent,
        block: 4096,
        region: Extent::new(8192, 1 << 20),
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

fn block_ops(spec: BlockSpec) -> Vec<BlockOp> {
    let all = ops(WorkloadSpec::Blocks(spec)).into_iter();
    all.map(|(op, counted)| match op {
        Op::Block(op) => {
            assert_eq!(counted, !op.kind.is_flush());
            op
        }
        Op::File(op) => panic!("a file op: {op:?}"),
    })
    .collect()
}

proptest! {
    #[test]
    fn blocks_are_aligned_and_inside(
        start in 0_u64..1 << 40, len in 1_u64..1 << 40, block in 1_u32..1 << 20, random: bool, first: u64,
    ) {
        prop_assume!(len >= u64::from(block));
        let order = if random { Order::Random } else { Order::Sequential };
        let spec = BlockSpec { block, first, region: Extent::new(start, len), ..blocks(order, 50, 200) };
        let all = block_ops(spec);
        prop_assert_eq!(all.len(), 200);
        for op in all {
            prop_assert_eq!(op.len, block);
            prop_assert!((op.offset - start).is_multiple_of(u64::from(block)));
            prop_assert!(op.offset >= start && op.offset + u64::from(block) <= start + len);
        }
    }

    #[test]
    fn a_sequential_order_visits_every_block_in_turn(count in 1_u64..200, first in 0_u64..300) {
        let region = Extent::new(512, count * 4096 + 17);
        let spec = BlockSpec { region, first, ..blocks(Order::Sequential, 100, 2 * count) };
        let numbers: Vec<u64> = block_ops(spec).iter().map(|op| (op.offset - 512) / 4096).collect();
        let wanted: Vec<u64> = (0..2 * count).map(|i| (first + i) % count).collect();
        prop_assert_eq!(numbers, wanted);
    }
}

#[test]
fn the_mixture_is_by_chance_and_the_pure_ones_are_pure() {
    let reads = |percent| {
        let all = block_ops(blocks(Order::Random, percent, 10_000));
        all.iter().filter(|op| op.kind == BlockKind::Read).count()
    };
    assert_eq!(reads(100), 10_000);
    assert_eq!(reads(0), 0);
    // Mean 7000, standard deviation 46.
    assert!((6800..7200).contains(&reads(70)), "{}", reads(70));
}

#[test]
fn random_blocks_are_spread_evenly() {
    let mut visits = [0_u32; 256];
    for op in block_ops(blocks(Order::Random, 100, 25_600)) {
        visits[((op.offset - 8192) / 4096) as usize] += 1;
    }
    // Chi-squared with 255 degrees of freedom: 99.99 % are below 347.
    let squares: f64 = visits
        .iter()
        .map(|&n| (f64::from(n) - 100.0).powi(2) / 100.0)
        .sum();
    assert!((150.0..347.0).contains(&squares), "{squares}");
}

#[test]
fn flushes_come_after_every_nth_write() {
    let spec = BlockSpec {
        flush_every: 3,
        flush_data: false,
        ..blocks(Order::Sequential, 0, 10)
    };
    let kinds: Vec<u8> = block_ops(spec).iter().map(|op| op.kind as u8).collect();
    assert_eq!(kinds, [1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1]);
    // With `fdatasync` after so many, and `fsync` at the end.
    let data = BlockSpec {
        flush_every: 6,
        flush_data: true,
        flush_end: true,
        ..blocks(Order::Sequential, 0, 10)
    };
    let flushes: Vec<BlockKind> = block_ops(data).iter().map(|op| op.kind).collect();
    assert_eq!(flushes[6], BlockKind::FlushData);
    assert_eq!(flushes[11], BlockKind::Flush);
    let reads = BlockSpec {
        flush_every: 1,
        flush_data: false,
        ..blocks(Order::Random, 100, 10)
    };
    assert_eq!(block_ops(reads).len(), 10);
}

#[test]
fn the_last_flush_waits_for_all_writes() {
    let spec = BlockSpec {
        flush_end: true,
        ..blocks(Order::Random, 0, 10)
    };
    let (driven, model) = run(WorkloadSpec::Blocks(spec), 4, Span(100));
    assert_eq!(model.most, 4);
    assert_eq!(driven.tallies[0].ops, 10);
    assert_eq!(driven.tallies[0].all_ops, 11);
    let (at, last) = model.log[10];
    assert!(matches!(
        last,
        Op::Block(BlockOp {
            kind: BlockKind::Flush,
            ..
        })
    ));
    // Ten writes at depth 4 take three rounds.
    assert_eq!(at, Instant(3 + 300));
}

#[test]
fn a_constant_rate_is_kept_whether_or_not_the_target_follows() {
    let spec = BlockSpec {
        arrival: Arrival::Constant { per_second: 3000 },
        ..blocks(Order::Random, 100, 30)
    };
    let mut workload = WorkloadSpec::Blocks(spec).build(Stream::new(1));
    let start = Instant(777);
    for i in 0..30_u64 {
        // Thirds of a millisecond do not add up their rounding.
        let due = Instant(777 + i * 1_000_000_000 / 3000);
        if i > 0 {
            let early = Instant(due.0 - 1);
            assert_eq!(workload.next(early), Next::Idle { until: Some(due) });
        }
        // Asked late, it still says when the operation was due.
        let asked = if i == 0 { start } else { due + Span(i * 10) };
        let Next::Issue { intended, .. } = workload.next(asked) else {
            panic!("operation {i}");
        };
        assert_eq!(intended, Some(due));
    }
    assert_eq!(workload.next(Instant(u64::MAX / 2)), Next::Done);
}

#[test]
fn what_waits_for_a_slot_counts_from_when_it_was_due() {
    // Due every millisecond, each takes three: the n-th waits 2n ms.
    let spec = BlockSpec {
        arrival: Arrival::Constant { per_second: 1000 },
        ..blocks(Order::Random, 100, 5)
    };
    let (driven, _) = run(WorkloadSpec::Blocks(spec), 1, Span::from_millis(3));
    let latency = driven.tallies[0].latencies(OpClass::Read).unwrap();
    assert_eq!(latency.max(), Some(Span::from_millis(3 + 4 * 2)));
    assert_eq!(latency.mean(), Some(Span::from_millis(3 + 2 * 2)));
}

#[test]
fn poisson_gaps_are_exponential() {
    let spec = BlockSpec {
        arrival: Arrival::Poisson { per_second: 1000 },
        ..blocks(Order::Random, 100, 20_000)
    };
    let mut workload = WorkloadSpec::Blocks(spec).build(Stream::new(4));
    let (mut last, mut gaps, mut now) = (Instant::ZERO, Vec::new(), Instant::ZERO);
    loop {
        match workload.next(now) {
            Next::Issue { intended, .. } => {
                let due = intended.unwrap();
                gaps.push(due.since(last).as_secs_f64());
                last = due;
            }
            Next::Idle { until } => now = until.unwrap(),
            Next::Done => break,
        }
    }
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
    // Mean and standard deviation are both 1 ms, each to within 0.7 % at one sigma.
    assert!((mean - 1e-3).abs() < 3e-5, "{mean}");
    assert!((variance.sqrt() - 1e-3).abs() < 4e-5, "{variance}");
    let above = gaps.iter().filter(|g| **g > 1e-3).count() as f64 / n;
    assert!((above - (-1.0_f64).exp()).abs() < 0.015, "{above}");
}

/// Counted operations a second, and how far what was in flight is from what Little's law says of it.
fn rate_and_little(spec: BlockSpec, seed: u64, service: Span) -> (f64, f64) {
    let (driven, _) = run_seeded(WorkloadSpec::Blocks(spec), 64, service, seed);
    let tally = &driven.tallies[0];
    let rate = tally.ops as f64 / tally.elapsed().as_secs_f64();
    let latency = tally.latencies(OpClass::Read).unwrap();
    let little = latency.sum() as f64 / tally.elapsed().0 as f64;
    (rate, (little - tally.mean_in_flight()).abs())
}

#[test]
fn a_rate_that_is_kept_is_told_as_it_was_kept_over_few_operations_too() {
    let us = Span::from_micros;
    for (ops, time) in [
        (Some(1), None),
        (Some(2), None),
        (Some(10), None),
        (None, Some(us(10_000))),
        // Ten are due before.
        (None, Some(us(9_400))),
    ] {
        let spec = BlockSpec {
            arrival: Arrival::Constant { per_second: 1000 },
            limit: Limit { ops, time },
            ..blocks(Order::Random, 100, 0)
        };
        let (rate, off) = rate_and_little(spec, 1, us(50));
        assert!((rate - 1000.0).abs() < 1e-6, "{ops:?}: {rate}");
        assert!(off < 1e-3, "{off}");
        // Answers that come later than the next operation is due are waited for.
        let (rate, off) = rate_and_little(spec, 1, us(4000));
        let n = ops.unwrap_or(10) as f64;
        assert!(
            (rate - n / ((n - 1.0) * 1e-3 + 4e-3)).abs() < 1.0,
            "{ops:?}: {rate}"
        );
        assert!(off < 1e-3, "{off}");
    }
}

#[test]
fn arrivals_by_chance_have_their_rate_on_average() {
    let limits = [(Some(5), None), (None, Some(Span::from_millis(5)))];
    for (ops, time) in limits {
        let spec = BlockSpec {
            arrival: Arrival::Poisson { per_second: 1000 },
            limit: Limit { ops, time },
            ..blocks(Order::Random, 100, 0)
        };
        let trials = 4000;
        let rates = (0..trials).filter_map(|seed| {
            let any = time.is_none() || first_due(spec, seed) < Instant(5_000_000);
            any.then(|| rate_and_little(spec, seed, Span(1)).0)
        });
        // None in the time is no phase at all, and a rate of 0.
        let mean = rates.sum::<f64>() / trials as f64;
        // Of five the standard deviation is about half: one sigma of the mean is 0.8 %.
        assert!((mean - 1000.0).abs() < 30.0, "{ops:?}: {mean}");
    }
}

fn first_due(spec: BlockSpec, seed: u64) -> Instant {
    match WorkloadSpec::Blocks(spec)
        .build(Stream::new(seed))
        .next(Instant::ZERO)
    {
        Next::Idle { until } => until.unwrap_or(Instant::ZERO),
        _ => Instant(u64::MAX),
    }
}

#[test]
fn a_run_ends_with_its_time() {
    let limit = Limit {
        ops: None,
        time: Some(Span::from_millis(10)),
    };
    let closed = BlockSpec {
        limit,
        ..blocks(Order::Random, 100, 0)
    };
    let (driven, _) = run(WorkloadSpec::Blocks(closed), 2, Span::from_millis(1));
    assert_eq!(driven.tallies[0].ops, 20);
    let paced = BlockSpec {
        arrival: Arrival::Constant { per_second: 400 },
        ..closed
    };
    let (driven, _) = run(WorkloadSpec::Blocks(paced), 2, Span::from_millis(1));
    assert_eq!(driven.tallies[0].ops, 4);
    assert_eq!(WorkloadSpec::Blocks(paced).expected().time, limit.time);
}

#[test]
fn without_a_limit_or_a_whole_block_nothing_is_done() {
    let unlimited = BlockSpec {
        limit: Limit::default(),
        ..blocks(Order::Random, 100, 0)
    };
    assert!(block_ops(unlimited).is_empty());
    let small = BlockSpec {
        region: Extent::new(0, 4095),
        ..blocks(Order::Sequential, 100, 5)
    };
    assert!(block_ops(small).is_empty());
}

/// One of each kind.
fn samples() -> Vec<WorkloadSpec> {
    let pass = PassSpec {
        handle: handle(),
        action: PassAction::Rewrite,
        start: Bytes(0),
        size: Bytes::mib(1),
        call: 8192,
        durable: Durable::AtEnd,
    };
    let calls = CallsSpec {
        handle: handle(),
        action: CallAction::Seek { rewrite_one_in: 10 },
        size: Bytes::gib(1),
        call: 8192,
        count: 1638,
        at_least: Span::ZERO,
        at_most: 0,
        durable: Durable::AtEnd,
    };
    let files = FilesSpec {
        action: FilesAction::Stat,
        ordered: false,
        count: 1024,
        directories: 3,
        size_min: 0,
        size_max: 9000,
        size_seed: 1,
        sync_each: false,
        sync_end: true,
    };
    let poisson = BlockSpec {
        arrival: Arrival::Poisson { per_second: 500 },
        ..blocks(Order::Random, 70, 1_000_000)
    };
    vec![
        WorkloadSpec::Pass(pass),
        WorkloadSpec::Calls(calls),
        WorkloadSpec::Files(files),
        WorkloadSpec::Blocks(blocks(Order::Sequential, 100, 1000)),
        WorkloadSpec::Blocks(poisson),
    ]
}

#[test]
fn digests_are_fixed_for_ever() {
    // A change here makes every stored trial of that kind incomparable with new ones.
    let digests: Vec<String> = samples()
        .iter()
        .map(|spec| format!("{:016x}", spec.digest(Stream::new(42))))
        .collect();
    assert_eq!(
        digests,
        [
            "f01a05cfb01dd556",
            "84d4e699695afdd0",
            "2901797b66e2efb4",
            "4536cd200bdb6357",
            "9c845ccddf97ee7b"
        ]
    );
}

#[test]
fn digests_tell_seeds_apart_where_something_is_random() {
    for spec in samples() {
        let random = match spec {
            WorkloadSpec::Pass(_) => false,
            WorkloadSpec::Blocks(spec) => spec.order == Order::Random,
            _ => true,
        };
        let (a, b) = (spec.digest(Stream::new(1)), spec.digest(Stream::new(2)));
        assert_eq!(a != b, random, "{spec:?}");
    }
}

#[test]
fn specs_are_stored_and_read_again() {
    for spec in samples() {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            serde_json::from_str::<WorkloadSpec>(&text).unwrap(),
            spec,
            "{text}"
        );
    }
    let text = serde_json::to_string(&samples()[3]).unwrap();
    let misspelt = text.replace("\"block\"", "\"blok\"");
    let why = serde_json::from_str::<WorkloadSpec>(&misspelt)
        .unwrap_err()
        .to_string();
    assert!(why.contains("blok"), "{why}");
}

/// All operations of a workload, asked for one by one or as many at once as are ready.
fn all_of(spec: BlockSpec, at_once: u32) -> Vec<(BlockOp, bool)> {
    use crate::rng::Stream;
    use crate::workload::spec::Blocks;
    let mut workload = Blocks::new(spec, Stream::new(4));
    let mut seen: Vec<(BlockOp, bool)> = Vec::new();
    let now = Instant(9);
    loop {
        let before = seen.len();
        if let Some(ready) = workload.ready(now, at_once).filter(|_| at_once > 0) {
            assert!((1..=at_once).contains(&ready.count));
            let mut offsets = vec![0; ready.count as usize];
            workload.issue(&mut offsets);
            let (kind, len) = (ready.kind, ready.len);
            seen.extend(
                offsets
                    .into_iter()
                    .map(|offset| (BlockOp { kind, len, offset }, true)),
            );
        } else {
            match workload.next(now) {
                Next::Issue {
                    op: Op::Block(block),
                    counted,
                    ..
                } => seen.push((block, counted)),
                Next::Issue { op, .. } => panic!("{op:?}"),
                Next::Idle { .. } | Next::Done => return seen,
            }
        }
        for &(block, counted) in &seen[before..] {
            let op = Op::Block(block);
            workload.completed(&OpRecord {
                index: 0,
                op,
                intended: now,
                submitted: now,
                completed: now,
                result: Ok(op.bytes()),
                counted,
            });
        }
    }
}

#[test]
fn many_at_once_are_the_same_operations() {
    for (order, read_percent, flush_every) in [
        (Order::Random, 70, 7),
        (Order::Random, 0, 9),
        (Order::Sequential, 100, 0),
        (Order::Sequential, 50, 4),
    ] {
        let spec = BlockSpec {
            order,
            read_percent,
            block: 4096,
            region: Extent::new(8192, 1 << 20),
            first: 3,
            limit: Limit {
                ops: Some(500),
                time: None,
            },
            arrival: Arrival::Closed,
            flush_every,
            flush_data: read_percent == 50,
            flush_end: true,
        };
        let plain = all_of(spec, 0);
        assert_eq!(plain.iter().filter(|(_, counted)| *counted).count(), 500);
        assert!(flush_every == 0 || plain.len() > 510, "with flushes");
        for at_once in [1, 3, 32] {
            assert_eq!(all_of(spec, at_once), plain);
        }
    }
}
