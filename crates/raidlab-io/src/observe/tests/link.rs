use proptest::prelude::*;

use crate::observe::resolve::device_stack;
use crate::observe::tree::{Tree, lvm_on_mirror};

use super::*;

fn megabytes(limit: Option<RateLimit>) -> Option<i64> {
    limit.map(|limit| (limit.bytes_per_second / 1e6).round() as i64)
}

#[test]
fn rates_are_those_of_the_standards_after_line_coding() {
    assert_eq!(megabytes(sata_limit("1.5 Gbps")), Some(150));
    assert_eq!(megabytes(sata_limit("3.0 Gbps")), Some(300));
    assert_eq!(megabytes(sata_limit("6.0 Gbps")), Some(600));
    assert_eq!(megabytes(sata_limit("<unknown>")), None);
    assert_eq!(megabytes(pata_limit("XFER_UDMA_5")), Some(100));
    assert_eq!(megabytes(pata_limit("XFER_UDMA_9")), None);
    assert_eq!(megabytes(pata_limit("XFER_PIO_4")), None);
    assert_eq!(megabytes(pcie_limit("2.5 GT/s PCIe", "1")), Some(250));
    assert_eq!(megabytes(pcie_limit("8.0 GT/s PCIe", "4")), Some(3938));
    assert_eq!(megabytes(pcie_limit("64.0 GT/s PCIe", "4")), Some(30250));
    assert_eq!(megabytes(pcie_limit("Unknown", "4")), None);
    assert_eq!(megabytes(pcie_limit("8.0 GT/s PCIe", "0")), None);
    assert_eq!(megabytes(sas_limit("12.0 Gbit")), Some(1200));
    assert_eq!(megabytes(sas_limit("22.5 Gbit")), Some(2400));
    assert_eq!(megabytes(sas_limit("Phy disabled")), None);
    assert_eq!(megabytes(usb_limit("480")), Some(60));
    assert_eq!(megabytes(usb_limit("5000")), Some(500));
    assert_eq!(megabytes(usb_limit("10000")), Some(1212));
}

#[test]
fn an_array_is_limited_by_the_sum_of_its_links() {
    let tree = lvm_on_mirror();
    let stack = device_stack(&tree.roots, vec!["dm-0".to_owned()]).unwrap();
    let limit = stack_limit(&tree.roots, &stack).unwrap();
    assert_eq!(limit.source, "sda SATA 3.0 Gbit/s + sdb SATA 3.0 Gbit/s");
    assert_eq!(megabytes(Some(limit)), Some(600));
    std::fs::remove_file(tree.path("sys/class/ata_link/link2/sata_spd")).unwrap();
    assert_eq!(stack_limit(&tree.roots, &stack), None);
}

#[test]
fn parallel_ata_tells_its_transfer_mode() {
    let tree = Tree::new();
    tree.device("pci0000:00/0000:00:1f.1/ata2/host2/block/sda", "8:0")
        .file("sys/class/ata_link/link2/sata_spd", "<unknown>\n")
        .file("sys/class/ata_device/dev2.0/dma_mode", "XFER_UDMA_5\n")
        .file("sys/class/ata_device/dev2.1/dma_mode", "XFER_UDMA_2\n");
    let limit = device_limit(&tree.roots, "sda").unwrap();
    assert_eq!(limit.source, "Ultra DMA mode 5");
}

#[test]
fn nvme_is_limited_by_its_slot_also_behind_multipathing() {
    let tree = Tree::new();
    let pci = "pci0000:00/0000:01:00.0";
    tree.file(
        &format!("sys/devices/{pci}/current_link_speed"),
        "8.0 GT/s PCIe\n",
    )
    .file(&format!("sys/devices/{pci}/current_link_width"), "4\n")
    .device(&format!("{pci}/nvme/nvme0/nvme0n1"), "259:0");
    assert_eq!(
        device_limit(&tree.roots, "nvme0n1").unwrap().source,
        "PCIe 8.0 GT/s x4"
    );
    tree.device("virtual/nvme-subsystem/nvme-subsys1/nvme1n1", "259:1")
        .directory(&format!("sys/devices/{pci}/nvme/nvme1"));
    std::os::unix::fs::symlink(
        tree.path("sys/devices").join(pci).join("nvme/nvme1"),
        tree.path("sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1"),
    )
    .unwrap();
    assert_eq!(megabytes(device_limit(&tree.roots, "nvme1n1")), Some(3938));
}

#[test]
fn sas_and_usb_are_found_above_the_disk() {
    let tree = Tree::new();
    let port = "pci0000:00/0000:03:00.0/host0/port-0:0";
    tree.device(
        &format!("{port}/end_device-0:0/target0:0:0/0:0:0:0/block/sda"),
        "8:0",
    )
    .file(
        &format!("sys/devices/{port}/phy-0:0/sas_phy/phy-0:0/negotiated_linkrate"),
        "6.0 Gbit\n",
    );
    assert_eq!(megabytes(device_limit(&tree.roots, "sda")), Some(600));
    let usb = "pci0000:00/0000:00:14.0/usb2/2-1";
    tree.file(&format!("sys/devices/{usb}/speed"), "5000\n")
        .file(&format!("sys/devices/{usb}/bMaxPower"), "0mA\n")
        .device(
            &format!("{usb}/2-1:1.0/host8/target8:0:0/8:0:0:0/block/sdb"),
            "8:16",
        );
    assert_eq!(megabytes(device_limit(&tree.roots, "sdb")), Some(500));
}

#[test]
fn a_virtual_disk_has_no_known_limit() {
    let tree = Tree::new();
    tree.device("pci0000:00/0000:00:04.0/virtio1/block/vda", "254:0");
    assert_eq!(device_limit(&tree.roots, "vda"), None);
    assert_eq!(device_limit(&tree.roots, "absent"), None);
}

proptest! {
    #[test]
    fn never_panics_and_never_gives_a_senseless_rate(text in ".{0,20}", width in "[0-9]{0,6}") {
        let limits =
            [sata_limit(&text), pata_limit(&text), sas_limit(&text), usb_limit(&text), pcie_limit(&text, &width)];
        for limit in limits.into_iter().flatten() {
            prop_assert!(limit.bytes_per_second > 0.0 && limit.bytes_per_second.is_finite());
        }
    }
}
