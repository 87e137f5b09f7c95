//! Solid-state disks: rates of their class, a full buffer, garbage collection.
use super::*;
use raidlab_core::time::Span;

fn rate(
    model: &DiskModel,
    read_percent: u8,
    order: Order,
    block: u32,
    depth: u32,
    ops: u64,
) -> f64 {
    let spec = BlockSpec {
        read_percent,
        ..blocks(model, order, block, ops)
    };
    let (tally, _) = run(model, spec, depth);
    bytes_per_second(&tally)
}

#[test]
fn rates_are_those_of_the_class() {
    let sata = model("sata-ssd");
    close(
        rate(&sata, 100, Order::Sequential, 1 << 20, 8, 2000),
        560e6,
        0.03,
    );
    close(
        rate(&sata, 0, Order::Sequential, 1 << 20, 8, 2000),
        560e6,
        0.05,
    );
    let single = rate(&sata, 100, Order::Random, 4096, 1, 20_000) / 4096.0;
    assert!((8_000.0..14_000.0).contains(&single), "{single}");
    let deep = rate(&sata, 100, Order::Random, 4096, 32, 50_000) / 4096.0;
    assert!((80_000.0..101_000.0).contains(&deep), "{deep}");
    let nvme = model("nvme-ssd");
    close(
        rate(&nvme, 100, Order::Sequential, 1 << 20, 32, 5000),
        7e9,
        0.05,
    );
    let deep = rate(&nvme, 100, Order::Random, 4096, 256, 200_000) / 4096.0;
    assert!((500_000.0..1_000_001.0).contains(&deep), "{deep}");
}

#[test]
fn a_full_disk_pays_for_random_writes_and_not_for_sequential_ones() {
    let small = |filled, fast| {
        let DiskModel::Ssd(model) = model("sata-ssd") else {
            unreachable!()
        };
        let mut spec = model.spec.clone();
        (spec.filled, spec.fast, spec.link) = (filled, fast, 6_000_000_000);
        (spec.turn, spec.overhead) = (Span(0), Span(0));
        DiskModel::Ssd(Arc::new(spec.build().unwrap()))
    };
    let random = |filled| rate(&small(filled, 0), 0, Order::Random, 4096, 32, 400_000);
    let amplification = 1070.0 / 140.0;
    // Each further copy is read as well: 50 µs beside a program of 700.
    let expected = 1.0 / (1.0 + (amplification - 1.0) * 750.0 / 700.0);
    close(random(100) / random(0), expected, 0.05);
    let sequential = |filled| rate(&small(filled, 0), 0, Order::Sequential, 65_536, 32, 50_000);
    close(sequential(100), sequential(0), 0.02);
    // In the fast area the channels set the rate, beyond it the dense flash.
    let burst = rate(&small(0, 8 << 20), 0, Order::Sequential, 65_536, 32, 50_000);
    assert!(
        burst > sequential(0) * 1.3,
        "{burst} against {}",
        sequential(0)
    );
}

#[test]
fn a_flush_waits_for_the_flash_unless_the_buffer_is_protected() {
    let DiskModel::Ssd(model) = model("sata-ssd") else {
        unreachable!()
    };
    for protected in [false, true] {
        let mut spec = model.spec.clone();
        spec.protected = protected;
        let mut disk = Disk::new(&DiskModel::Ssd(Arc::new(spec.build().unwrap())), 1);
        let written = one(&mut disk, Instant::ZERO, request(0, BlockKind::Write, 0, 8));
        assert!(written.hit && written.at < Instant(100_000));
        let flushed = one(&mut disk, written.at, request(1, BlockKind::Flush, 0, 0));
        let waited = flushed.at.since(written.at);
        assert_eq!(waited > Span::from_micros(150), !protected, "{waited}");
    }
}
