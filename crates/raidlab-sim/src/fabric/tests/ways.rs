//! Links and buses that go one way at a time or both: a bus takes away, or changes nothing.
use super::*;
use raidlab_experiment::hardware::Bus;

/// What `kind` is, with room for everything unless a rate is given.
fn bus(kind: &str, rate: u64) -> BusSpec {
    BusSpec::of(&Bus {
        name: "slot".to_owned(),
        kind: Some(kind.to_owned()),
        rate,
    })
}

const ROOMY: (&str, u64) = ("pcie-4-x16", 31_507_692_304);

/// One disk on each channel, behind a bus or none.
fn behind(card: &str, model: &DiskModel, disks: usize, bus: Option<BusSpec>) -> FabricSpec {
    let on = bus.is_some().then_some(0);
    let card = controller(card, disks as u32, on);
    let mut spec = with_disks(card, model, &vec![1; disks]);
    spec.buses.extend(bus);
    spec
}

/// Runs so many random requests of 128 KiB on each disk, `reads` per cent of them reads.
fn mixture(spec: &FabricSpec, reads: u64, depth: u32, each: usize) -> (Fabric, Instant) {
    let mut fabric = Fabric::new(spec, 1).unwrap();
    let numbers = Stream::new(5);
    let ends = closed_loop(&mut fabric, depth, each * spec.disks.len(), |port, i| {
        let numbers = numbers.child(u64::from(port));
        let kind = if numbers.below(2 * i, 100) < reads {
            BlockKind::Read
        } else {
            BlockKind::Write
        };
        bio(i, kind, numbers.below(2 * i + 1, 100_000) * 256, 256)
    });
    let last = ends.last().unwrap().end.at;
    (fabric, last)
}

/// MB/s of the same.
fn rate(spec: &FabricSpec, reads: u64, depth: u32, each: usize) -> f64 {
    let (_, last) = mixture(spec, reads, depth, each);
    (each * spec.disks.len()) as f64 * 131_072.0 / last.0 as f64 * 1e3
}

/// A solid-state disk of the catalogue on another interface.
fn on_interface(name: &str, kind: &str) -> DiskModel {
    let (_, text) = catalogue::MODELS.iter().find(|m| m.0 == name).unwrap();
    let text = text.replace("kind = \"SATA\"", &format!("kind = \"{kind}\""));
    catalogue::parse("disk.toml", &text).unwrap().disk
}

fn kinds() -> Vec<(&'static str, &'static str, DiskModel)> {
    vec![
        ("SATA", "ahci", disk_model("sata-ssd")),
        ("SAS", "ahci", on_interface("sata-ssd", "SAS")),
        ("NVMe", "nvme", disk_model("nvme-ssd")),
        ("a hard disk", "ahci", disk_model("ST3250624AS")),
    ]
}

#[test]
fn a_bus_is_never_faster_than_none_and_a_roomy_one_the_same() {
    for (link, card, model) in kinds() {
        // What an arm meets is chance, and differs with the time at which the next request comes.
        let chance = if model.rotational() { 0.03 } else { 0.002 };
        for (reads, depth) in [
            (0, 1),
            (0, 32),
            (50, 1),
            (50, 32),
            (80, 8),
            (100, 1),
            (100, 32),
        ] {
            let free = rate(&behind(card, &model, 1, None), reads, depth, 1500);
            for (kind, given) in [
                ROOMY,
                ("pcie-3-x4", 3_938_461_540),
                ("pci-32-66", 266_666_667),
            ] {
                let spec = behind(card, &model, 1, Some(bus(kind, given)));
                let got = rate(&spec, reads, depth, 1500);
                let what =
                    format!("{link}, {reads} % reads, depth {depth}, {kind}: {got} for {free}");
                assert!(got <= free * (1.0 + chance), "{what}");
                assert!(
                    (kind, given) != ROOMY || got >= free * (1.0 - chance),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn sata_goes_one_way_at_a_time_and_nvme_and_sas_both() {
    for bus_of in [None, Some(bus(ROOMY.0, ROOMY.1))] {
        for (link, card, model) in kinds() {
            if model.rotational() {
                continue;
            }
            let spec = behind(card, &model, 1, bus_of.clone());
            let [writes, mixed, reads] = [0, 50, 100].map(|r| rate(&spec, r, 64, 4000));
            let one = writes.max(reads);
            let what = format!("{link}: {writes}, {mixed}, {reads}");
            if link == "SATA" {
                assert!(mixed <= one * 1.01, "{what}");
            } else {
                assert!(mixed > one * 1.3 && mixed < one * 2.01, "{what}");
            }
        }
    }
}

#[test]
fn pci_goes_one_way_at_a_time_and_pci_express_both() {
    let model = disk_model("nvme-ssd");
    let rates = |kind, rate_of| {
        let spec = behind("nvme", &model, 4, Some(bus(kind, rate_of)));
        [0, 50, 100].map(|reads| rate(&spec, reads, 32, 1000))
    };
    let [writes, mixed, reads] = rates("pcie-4-x4", 7_876_923_076);
    close(reads, writes, 0.02);
    assert!(
        mixed > 1.8 * reads && mixed < 2.01 * reads,
        "{mixed} of {reads}"
    );
    for (kind, given) in [
        ("pci-64-66", 533_333_333),
        ("pci-x-64-133", 1_066_666_667),
        ("own", 1_000_000_000),
    ] {
        let [writes, mixed, reads] = rates(kind, given);
        close(reads, writes, 0.02);
        close(mixed, reads, 0.02);
    }
}

#[test]
fn a_link_is_as_busy_behind_a_roomy_bus_as_without_one() {
    for (link, card, model) in kinds() {
        for reads in [0, 50, 100] {
            let busy = |bus: Option<BusSpec>| {
                let (fabric, last) = mixture(&behind(card, &model, 1, bus), reads, 32, 300);
                let mut all = Vec::new();
                fabric.busy(last, &mut all);
                let links = all.iter().filter(|b| b.kind == ResourceKind::Channel);
                let links = links.map(|b| (b.name.clone(), b.busy.0));
                links.collect::<Vec<_>>()
            };
            let (free, roomy) = (busy(None), busy(Some(bus(ROOMY.0, ROOMY.1))));
            assert!(free.iter().any(|(_, busy)| *busy > 0), "{link}");
            assert_eq!(free.len(), roomy.len(), "{link}");
            for (one, other) in free.iter().zip(&roomy) {
                assert_eq!(one.0, other.0);
                assert!(
                    one.1.abs_diff(other.1) <= one.1 / 100,
                    "{link}: {free:?} {roomy:?}"
                );
            }
        }
    }
}
