use proptest::prelude::*;

use crate::observe::resolve::resolve;
use crate::observe::tree::{MountedLoop, Tree, is_root, lvm_on_mirror};

use super::*;

fn machine(tree: &Tree) -> Environment {
    tree.file("proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 512 kB\n")
        .file("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
        .attribute("sda", "size", "312581808")
        .attribute("sda", "device/model", "SAMSUNG SP1614N")
        .attribute("sda", "device/queue_depth", "31")
        .attribute("sda", "queue/scheduler", "none [mq-deadline] kyber")
        .attribute("sda", "queue/rotational", "1")
        .attribute("sda", "queue/read_ahead_kb", "128")
        .attribute("sda", "queue/write_cache", "write back")
        .attribute("sda1", "start", "2048")
        .file(
            "run/udev/data/b8:0",
            "S:disk/by-id/x\nE:ID_SERIAL_SHORT=S016J10X\nE:ID_WWN=0x5000\nE:EMPTY=\n",
        );
    let resolved = resolve(&tree.roots, &tree.path("proc")).unwrap();
    Environment::capture(&tree.roots, Some(&resolved)).unwrap()
}

/// Device mapper of Linux 6.1 counts, and says that it does not.
#[test]
fn a_volume_whose_counters_move_is_counted() {
    let tree = lvm_on_mirror();
    tree.attribute("dm-0", "queue/iostats", "0").attribute(
        "dm-0",
        "stat",
        "12 0 96 1 0 0 0 0 0 1 1 0 0 0 0 0 0",
    );
    let target = machine(&tree).target.unwrap();
    assert_eq!(target.devices[0].name, "dm-0");
    assert_eq!(target.devices[0].queue.iostats, Some(true));
}

#[test]
fn records_each_device_of_the_stack() {
    let environment = machine(&lvm_on_mirror());
    assert_eq!(
        environment.kernel.release.as_deref(),
        Some("6.1.0-18-amd64")
    );
    let target = environment.target.unwrap();
    assert_eq!(target.top, ["dm-0"]);
    let device = |name: &str| {
        target
            .devices
            .iter()
            .find(|device| device.name == name)
            .unwrap()
    };
    let sda = device("sda");
    assert_eq!(sda.model.as_deref(), Some("SAMSUNG SP1614N"));
    assert_eq!(sda.serial.as_deref(), Some("S016J10X"));
    assert_eq!(sda.wwid.as_deref(), Some("0x5000"));
    assert_eq!(sda.size, Some(312_581_808 * 512));
    assert_eq!(sda.transport.as_deref(), Some("ata"));
    assert_eq!(sda.queue_depth, Some(31));
    assert_eq!(sda.queue.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(sda.queue.rotational, Some(true));
    assert_eq!(sda.firmware, None);
    assert_eq!(sda.link.as_ref().unwrap().source, "SATA 3.0 Gbit/s");
    let part = device("sda1");
    assert_eq!(
        part.queue.read_ahead_kib,
        Some(128),
        "a partition has the queue of its disk"
    );
    assert_eq!(part.partition_start, Some(1 << 20));
    let md = device("md0").md.as_ref().unwrap();
    assert_eq!(md.level.as_deref(), Some("raid1"));
    assert_eq!((md.raid_disks, md.degraded), (Some(2), Some(1)));
    assert_eq!(md.sync_action.as_deref(), Some("recover"));
    assert_eq!(md.members["sdb1"], "spare");
    let unknown = device("sdb");
    assert_eq!(
        (&unknown.model, unknown.size, &unknown.serial),
        (&None, None, &None)
    );
}

#[test]
fn a_record_survives_its_text_form() {
    let environment = machine(&lvm_on_mirror());
    let text = serde_json::to_string(&environment).unwrap();
    assert_eq!(
        serde_json::from_str::<Environment>(&text).unwrap(),
        environment
    );
}

#[test]
fn the_running_machine_is_recorded() {
    let roots = Roots::system();
    let directory = tempfile::tempdir().unwrap();
    let resolved = resolve(&roots, directory.path()).unwrap();
    let environment = Environment::capture(&roots, Some(&resolved)).unwrap();
    assert!(environment.kernel.release.is_some() && environment.kernel.machine.is_some());
    assert!(environment.memory.total > 0);
    let target = environment.target.unwrap();
    let space = target.filesystem.unwrap().space.unwrap();
    assert!(space.total >= space.free && space.free >= space.available);
    assert_eq!(target.devices.is_empty(), target.no_device.is_some());
}

#[test]
fn a_mounted_file_system_tells_its_superblock() {
    if !is_root("a_mounted_file_system_tells_its_superblock") {
        return;
    }
    let mounted = MountedLoop::ext4(32 << 20, &["-E", "stride=8,stripe_width=24"]);
    let at = mounted.point.path().to_str().unwrap();
    let device = &mounted.device;
    let roots = Roots::system();
    let resolved = resolve(&roots, mounted.point.path()).unwrap();
    let environment = Environment::capture(&roots, Some(&resolved));
    let used = crate::observe::safety::inspect(&roots, &device.node);
    let target = environment.unwrap().target.unwrap();
    assert_eq!(target.top, [device.name()]);
    assert_eq!(target.devices[0].size, Some(32 << 20));
    let ext = target.filesystem.unwrap().ext.unwrap();
    assert_eq!((ext.stride, ext.stripe_width), (Some(8), Some(24)));
    let used: Vec<String> = used.unwrap().iter().map(ToString::to_string).collect();
    let name = device.name();
    assert_eq!(
        used,
        [
            format!("{name} is mounted at {at} (ext4)"),
            format!("{name} carries ext2/3/4 file system (signature at byte 1080)"),
        ]
    );
}

#[test]
fn the_chosen_word_is_the_bracketed_or_the_only_one() {
    assert_eq!(
        device::chosen("none [mq-deadline] kyber").as_deref(),
        Some("mq-deadline")
    );
    assert_eq!(device::chosen("[none]").as_deref(), Some("none"));
    assert_eq!(device::chosen("none").as_deref(), Some("none"));
    assert_eq!(device::chosen("none kyber"), None);
    assert_eq!(device::chosen(""), None);
    assert_eq!(device::chosen("[none"), Some("[none".to_owned()));
}

proptest! {
    #[test]
    fn never_panics(text in ".{0,80}") {
        let _ = device::chosen(&text);
        let _ = device::parse_udev(&text);
    }
}
