//! What queueing theory says.
use super::*;

/// Poisson arrivals over the disks of a bus, each holding it for the same time: the mean wait in
/// multiples of that time.
fn mean_wait(spec: &FabricSpec, sectors: u32, service: f64, load: f64) -> f64 {
    let mut fabric = Fabric::new(spec, 1).unwrap();
    let (numbers, total) = (Stream::new(77), 40_000_u64);
    let ports = fabric.ports().len() as u64;
    let (mut done, mut arrivals, mut at) = (Vec::new(), Vec::new(), 0.0);
    for i in 0..total {
        let uniform = (numbers.at(2 * i) >> 11) as f64 / (1_u64 << 53) as f64;
        at -= libm::log(1.0 - uniform) * service / load;
        let now = Instant(at as u64);
        fabric.advance(now, &mut done);
        arrivals.push(now.0);
        let port = numbers.below(2 * i + 1, ports) as u32;
        fabric.submit(now, port, bio(i, BlockKind::Read, 0, sectors));
    }
    fabric.advance(Instant(1 << 60), &mut done);
    assert_eq!(done.len() as u64, total);
    let waited: f64 = done
        .iter()
        .map(|end| (end.end.at.0 - arrivals[end.end.id as usize]) as f64 - service)
        .sum();
    waited / total as f64 / service
}

#[test]
fn the_wait_for_a_shared_bus_is_that_of_an_m_d_1_queue() {
    // 64 sectors at 100 MB/s.
    let service = 327_680.0;
    for load in [0.3, 0.6, 0.8] {
        let card = controller("nvme", 4, Some(0));
        let mut spec = with_disks(card, &instant_disk(4096, 0), &[1, 1, 1, 1]);
        spec.buses.push(BusSpec {
            name: "pci".to_owned(),
            rate: 100_000_000,
            duplex: false,
        });
        let expected = load / (2.0 * (1.0 - load));
        close(mean_wait(&spec, 64, service, load), expected, 0.05);
    }
}

#[test]
fn the_wait_for_a_scsi_bus_is_that_of_an_m_d_1_queue() {
    // Commands take no time, so that each request holds the bus once.
    let service = 10_000.0 + 64.0 * 3_200.0;
    for load in [0.3, 0.6, 0.8] {
        let mut card = controller("u160", 1, None);
        let model = Arc::make_mut(&mut card.model);
        (model.command, model.channel.command) = (Span(0), Span(0));
        let spec = with_disks(card, &instant_disk(256, 0), &[4]);
        let expected = load / (2.0 * (1.0 - load));
        close(mean_wait(&spec, 64, service, load), expected, 0.05);
    }
}
