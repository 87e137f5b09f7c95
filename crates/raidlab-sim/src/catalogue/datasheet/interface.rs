//! What disks are connected by, and how much that carries.

/// An interface by the name that users give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interface {
    /// `sata-6`.
    pub name: &'static str,
    /// As in model files: `SATA`.
    pub kind: &'static str,
    /// In words: `SATA 6 Gb/s`.
    pub what: &'static str,
    /// Millions of bytes a second after line coding, by the standard.
    pub mb_s: f64,
    /// Commands that it takes at a time; 1 when it has no queue.
    pub(super) depth: u32,
}

const fn of(
    name: &'static str,
    kind: &'static str,
    what: &'static str,
    mb_s: f64,
    depth: u32,
) -> Interface {
    Interface {
        name,
        kind,
        what,
        mb_s,
        depth,
    }
}

/// Those of hard disks. Queues: NCQ has 32 tags and came with SATA 3 Gb/s; of SCSI and SAS 64 are usual.
pub const HDD_INTERFACES: &[Interface] = &[
    of("pata-33", "PATA", "Ultra DMA/33", 33.0, 1),
    of("pata-66", "PATA", "Ultra DMA/66", 66.0, 1),
    of("pata-100", "PATA", "Ultra DMA/100", 100.0, 1),
    of("pata-133", "PATA", "Ultra DMA/133", 133.0, 1),
    of("scsi-40", "SCSI", "Ultra Wide SCSI", 40.0, 64),
    of("scsi-80", "SCSI", "Ultra2 SCSI", 80.0, 64),
    of("scsi-160", "SCSI", "Ultra160 SCSI", 160.0, 64),
    of("scsi-320", "SCSI", "Ultra320 SCSI", 320.0, 64),
    of("sata-1.5", "SATA", "SATA 1.5 Gb/s", 150.0, 1),
    of("sata-3", "SATA", "SATA 3 Gb/s", 300.0, 32),
    of("sata-6", "SATA", "SATA 6 Gb/s", 600.0, 32),
    of("sas-3", "SAS", "SAS 3 Gb/s", 300.0, 64),
    of("sas-6", "SAS", "SAS 6 Gb/s", 600.0, 64),
    of("sas-12", "SAS", "SAS 12 Gb/s", 1200.0, 64),
];

/// Those of solid-state disks; PCI Express after 128b/130b coding.
pub const SSD_INTERFACES: &[Interface] = &[
    of("sata-3", "SATA", "SATA 3 Gb/s", 300.0, 32),
    of("sata-6", "SATA", "SATA 6 Gb/s", 600.0, 32),
    of("sas-12", "SAS", "SAS 12 Gb/s", 1200.0, 128),
    of("sas-24", "SAS", "SAS 24 Gb/s", 2400.0, 128),
    of("pcie-3x2", "NVMe", "PCIe 3.0 x2", 1969.0, 1024),
    of("pcie-3x4", "NVMe", "PCIe 3.0 x4", 3938.0, 1024),
    of("pcie-4x4", "NVMe", "PCIe 4.0 x4", 7877.0, 1024),
    of("pcie-5x4", "NVMe", "PCIe 5.0 x4", 15754.0, 1024),
];
