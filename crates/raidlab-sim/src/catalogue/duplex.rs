//! What sends both ways at a time.

/// What is full duplex: prefixes of the kinds of buses and interfaces. PCI Express has wires for each direction with the
/// whole rate ("dual simplex", PCI Express Base Specification, 1.2), and NVMe goes over it; SAS sends frames both ways at a
/// time (Serial Attached SCSI, "full duplex"). SATA has wires for each direction, too, but a frame on the one is answered on the
/// other all the while (Serial ATA 1.0, link layer: R_IP and R_OK), so that data go one way at a time. Parallel buses, PATA
/// and SCSI among them, have one set of wires.
const FULL: [&str; 3] = ["pcie", "NVMe", "SAS"];

/// Whether a bus or an interface of this kind carries its rate in each direction at a time; not where the kind is not known.
#[must_use]
pub fn full_duplex(kind: &str) -> bool {
    FULL.iter().any(|full| kind.starts_with(full))
}
