//! Models from datasheets beside the full models of the same disks.
use super::*;
use raidlab_sim::catalogue::datasheet::{HDD_INTERFACES, Interface, SSD_INTERFACES};
use raidlab_sim::catalogue::find;

fn interface(of: &[Interface], name: &str) -> Interface {
    *of.iter().find(|interface| interface.name == name).unwrap()
}

fn near(what: &str, found: f64, wanted: f64, within: f64) {
    let off = (found / wanted - 1.0).abs();
    assert!(
        off <= within,
        "{what}: {found:.1}, the full model {wanted:.1}"
    );
}

/// The figures of a datasheet of the disks of the catalogue that are known by one. Whose rate, overhead or curve was fitted to
/// published rows (ST340015A, ST3000DM001, the 10 000 rpm disks) says other things than its sheet.
#[test]
fn hard_disks_from_few_figures_are_near_their_full_models() {
    // Name, capacity, rpm, outer MB/s, average seek, interface, cache in MiB.
    let sheets = [
        (
            "ST3250624AS",
            250_000_000_000,
            7200.0,
            67.5,
            Some(11.0),
            "sata-3",
            16,
        ),
        (
            "ST3160812AS",
            160_000_000_000,
            7200.0,
            76.5,
            Some(11.0),
            "sata-3",
            8,
        ),
        (
            "nearline-24tb",
            24_000_000_000_000,
            7200.0,
            285.0,
            None,
            "sata-6",
            512,
        ),
    ];
    for (name, capacity, rpm, outer, seek, link, cache) in sheets {
        let sheet = HddSheet {
            name: name.to_owned(),
            capacity: Bytes(capacity),
            rpm,
            outer_rate: outer * 1e6,
            inner_rate: None,
            seek_average: seek,
            seek_average_write: None,
            seek_track: None,
            seek_full: None,
            cache: Some(Bytes(cache << 20)),
            interface: interface(HDD_INTERFACES, link),
            heads: None,
            sector_physical: None,
            queue: None,
            read_iops: None,
            read_iops_depth: None,
        };
        let made = catalogue::parse(name, &sheet.file().unwrap()).unwrap();
        let (made, full) = (
            Derived::of(&made.disk),
            Derived::of(&find(name).unwrap().disk),
        );
        let (one, many) = (
            |d: &Derived| d.random_read_iops.unwrap(),
            |d: &Derived| d.queued_read_iops.unwrap(),
        );
        near(
            name,
            made.capacity_bytes as f64,
            full.capacity_bytes as f64,
            0.001,
        );
        near(
            name,
            made.outer_bytes_per_second,
            full.outer_bytes_per_second,
            0.02,
        );
        near(
            name,
            made.inner_bytes_per_second,
            full.inner_bytes_per_second,
            0.07,
        );
        near(name, one(&made), one(&full), 0.03);
        near(name, many(&made), many(&full), 0.06);
    }
}

/// What the full models of the two solid-state disks read and write, told as a datasheet would, makes disks that do it again.
#[test]
fn solid_state_disks_read_as_they_are_told() {
    let sheets = [
        ("sata-ssd", 1, "sata-6", 555.0, 98_000.0),
        ("nvme-ssd", 2, "pcie-4x4", 6900.0, 600_000.0),
    ];
    for (name, tb, link, read, iops) in sheets {
        let sheet = SsdSheet {
            name: name.to_owned(),
            capacity: Bytes(tb * 1_000_000_000_000),
            read_rate: read * 1e6,
            write_rate: read * 0.95e6,
            sustained_write: None,
            read_iops: iops,
            write_iops: None,
            sustained_write_iops: None,
            cache: None,
            interface: interface(SSD_INTERFACES, link),
            protected: false,
            sector_physical: None,
            queue: None,
        };
        let made = catalogue::parse(name, &sheet.file().unwrap()).unwrap();
        let (made, full) = (
            Derived::of(&made.disk),
            Derived::of(&find(name).unwrap().disk),
        );
        assert_eq!(made.capacity_bytes, full.capacity_bytes);
        near(name, made.outer_bytes_per_second, read * 1e6, 0.02);
        near(
            name,
            made.outer_bytes_per_second,
            full.outer_bytes_per_second,
            0.03,
        );
        near(
            name,
            made.random_read_iops.unwrap(),
            full.random_read_iops.unwrap(),
            0.1,
        );
        near(
            name,
            made.queued_read_iops.unwrap(),
            full.queued_read_iops.unwrap(),
            0.15,
        );
    }
}

/// Random writes come to what was told, of a drive with room and of a full one, with the latter's garbage collection.
#[test]
fn solid_state_disks_write_at_random_as_they_are_told() {
    // Capacity in GB, interface, MB/s of reading and writing and of sustained writing, random reads, writes, sustained writes.
    let sheets = [
        (1000, "sata-6", 560.0, 510.0, None, 95e3, Some(60e3), None),
        (
            2000,
            "pcie-4x4",
            7000.0,
            6500.0,
            None,
            800e3,
            Some(1.2e6),
            None,
        ),
        (
            3840,
            "pcie-4x4",
            6500.0,
            3500.0,
            None,
            1e6,
            None,
            Some(180e3),
        ),
        (960, "sata-6", 550.0, 520.0, None, 98e3, None, Some(30e3)),
        (
            1600,
            "pcie-4x4",
            6900.0,
            2600.0,
            None,
            900e3,
            Some(500e3),
            Some(400e3),
        ),
    ];
    for (gb, link, read, write, sustained, iops, burst, steady) in sheets {
        let sheet = SsdSheet {
            name: "told".to_owned(),
            capacity: Bytes(gb * 1_000_000_000),
            read_rate: read * 1e6,
            write_rate: write * 1e6,
            sustained_write: sustained,
            read_iops: iops,
            write_iops: burst,
            sustained_write_iops: steady,
            cache: None,
            interface: interface(SSD_INTERFACES, link),
            protected: true,
            sector_physical: None,
            queue: None,
        };
        let made = catalogue::parse("told", &sheet.file().unwrap()).unwrap();
        let of = Derived::of(&made.disk);
        let wanted: f64 = steady.or(burst).unwrap();
        near("writes", of.queued_write_iops.unwrap(), wanted, 0.04);
        assert_eq!(of.full, steady.is_some());
    }
}

fn parsed(line: &str) -> NewDisk {
    use crate::args::{Cli, Command, DiskAction};
    use clap::Parser;
    match Cli::try_parse_from(line.split_whitespace())
        .unwrap()
        .command
    {
        Command::Disk(disk) => match disk.action {
            DiskAction::New(new) => new.kind,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn counts_are_read_as_datasheets_write_them() {
    let line = "raidlab disk new ssd --capacity 1TB --interface sata-6 --read-rate 560MB/s --write-rate 510MB/s \
                --read-iops 95k --write-iops 90,000";
    let NewDisk::Ssd(args) = parsed(line) else {
        panic!()
    };
    assert_eq!(
        (args.read_iops, args.write_iops),
        (95_000.0, Some(90_000.0))
    );
}
