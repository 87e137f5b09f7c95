//! The same disks inside the guest, in virtual time.
//!
//! In a machine that counts instructions (`-icount shift=0,sleep=off`) time leaps over whatever nobody
//! works in. A server outside would never keep up with it, so that the disks are served by raidlab in
//! the guest, to the guest's own kernel: each is a `/dev/nbdN` whose socket ends in this process. The
//! clock of the server is then the guest's, and so is every latency.
//!
//! What nbd.ko cannot tell is set through sysfs: that the disk turns, the largest request, and how many
//! requests it takes at once (never less than 4, the kernel's least; those beyond the disk's own depth
//! wait in front of it, in order). A physical sector larger than the logical one cannot be told at all.
//! A scheduler has 256 requests before each of them, twice nbd.ko's tags, where a real drive's has twice the drive's own.
mod device;
mod netlink;
mod sysfs;

use crate::server::{Disk, DiskReport, Options, Report, Running, Scheduling, Server};
use crate::store::{Memory, MemoryError, Store};
use crate::wire::flag;
use device::Device;
use netlink::Family;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_sim::disk::Fault;
use raidlab_sim::fabric::{Fabric, FabricError, FabricSpec, PortInfo};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes a second that a guest of one processor of 1000 million instructions a second reads from disks
/// that take no time to speak of, from one of them. Measured: `raidlab vm disks nvme-ssd`, 1 MiB past the
/// page cache, one request at a time, 945 MB/s; 1375 MB/s from four at the same time.
pub const READ_CAP: f64 = 945e6;
/// The same of writes: 644 MB/s to one, 716 MB/s to four. Woken for each piece of data instead of taking
/// naps ([`Options::nap_per_kib`]) it is 206 MB/s to four.
pub const WRITE_CAP: f64 = 644e6;
/// Requests a second of 4 KiB: 23 400 reads of four disks, one at a time on each, of which the disks
/// themselves could do 68 500.
pub const REQUEST_CAP: f64 = 23_400.0;
/// What a request of 4 KiB takes on its way from the kernel's queue through its client and the socket to the server and
/// back, when nothing else wants the guest's processor: replies leave so much before the model's time, for no controller
/// that the disk stands for has that way. Measured as what the kernel counts of a read (`/sys/block/nbd0/stat`) above
/// what the model took: 31.9 us of `nvme-ssd` (90.0 and 58.1, 4000 reads), 34 and 37 us of one and of four hard disks.
/// A write takes 60, of which the rest stays.
pub const WAY: Span = Span::from_micros(32);
/// [`load`] from which on a figure tells of the guest's processor more than of its disks.
pub const BUSY: f64 = 0.5;

/// How much of the guest's processor the way to the disks and back took between two reports: estimated
/// from bytes and requests by the caps above, since most of it is the kernel's and nobody counts it. The
/// server's own part is in [`Report::cpu`].
#[must_use]
pub fn load(before: &Report, after: &Report) -> f64 {
    let seconds = Span(after.elapsed.0.saturating_sub(before.elapsed.0)).as_secs_f64();
    let of = |count: fn(&DiskReport) -> u64| {
        let sum = |report: &Report| report.disks.iter().map(count).sum::<u64>();
        sum(after).saturating_sub(sum(before)) as f64
    };
    let requests = of(|disk| disk.reads + disk.writes + disk.flushes) / REQUEST_CAP;
    let read = of(|disk| disk.bytes_read) / READ_CAP;
    let written = of(|disk| disk.bytes_written) / WRITE_CAP;
    (requests + read + written) / seconds.max(1e-9)
}

/// Why disks cannot be served to the kernel.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// No such fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// No room for the content.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// What is shown of another number of disks.
    #[error("{given} disks are to be shown of {ports}")]
    Ports {
        /// As given.
        given: usize,
        /// Ports of the fabric.
        ports: usize,
    },
    /// No device is free.
    #[error("there is no free /dev/nbd device left (is the module nbd loaded?)")]
    NoDevice,
    /// The kernel cannot be asked.
    #[error("the kernel's client of NBD cannot be asked over netlink: {0}")]
    Netlink(std::io::Error),
    /// The kernel refused.
    #[error("{path}: {what}: {source}", path = path.display())]
    Kernel {
        /// The device.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The server's thread.
    #[error("cannot start the server of the disks: {0}")]
    Start(std::io::Error),
}

/// How the guest's disks are served.
#[must_use]
pub fn options() -> Options {
    Options {
        tolerance: Span::from_micros(100),
        early: WAY,
        scheduling: Scheduling::First,
        // The kernel's client copies a KiB into the socket in about this time.
        nap_per_kib: 400,
    }
}

/// Disks at work as block devices of this kernel. Dropping it disconnects them; what was on them is
/// gone. File systems and arrays on them must have been stopped before.
#[derive(Debug)]
pub struct Served {
    devices: Vec<PathBuf>,
    attached: Vec<Device>,
    running: Option<Running>,
}

/// What of a port is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The byte that is shown first; the geometry stays that of the whole disk.
    pub start: u64,
    /// Bytes from there on.
    pub bytes: u64,
    /// Bytes of a logical sector.
    pub sector: u32,
    /// It holds what no other disk does, instead of zeroes: see [`Mapped::make_unlike`](crate::store::Mapped::make_unlike).
    pub unlike: bool,
    /// An array asks it for single pages, each of which is a stretch of memory. Network block devices take any number of those in
    /// a request; the port's driver would not.
    pub pages: bool,
}

/// Serves the ports of a fabric to this kernel, as each is to be shown. The content is all zeroes, unless they are to
/// be unlike.
///
/// # Errors
/// A fabric or ports that do not fit, no free device, no permission.
pub fn serve(
    spec: &FabricSpec,
    seed: u64,
    shown: &[Shown],
    memory: &mut Memory,
    options: Options,
) -> Result<Served, GuestError> {
    let fabric = Fabric::new(spec, seed)?;
    let ports: Vec<PortInfo> = fabric.ports().to_vec();
    if shown.len() != ports.len() {
        let (given, ports) = (shown.len(), ports.len());
        return Err(GuestError::Ports { given, ports });
    }
    let whole = |(shown, port): (&Shown, &PortInfo)| {
        let sector = u64::from(shown.sector);
        let left = (port.sectors * SECTOR).saturating_sub(shown.start);
        shown.bytes.min(left) / sector * sector
    };
    let sizes: Vec<u64> = shown.iter().zip(&ports).map(whole).collect();
    let contents = memory.divide(&sizes)?;
    let disks = contents.into_iter().zip(&ports).zip(&sizes).zip(shown);
    let disks = disks
        .enumerate()
        .map(|(number, (((mut content, port), size), shown))| {
            if shown.unlike {
                content.make_unlike(number as u64);
            }
            let disk = Disk::new(number as u32, port, "", *size, Store::Mapped(content));
            let mut disk = disk.with_sector(shown.sector).from(shown.start);
            if port.rotational {
                // A hard disk knows no trimming, and a kernel that thinks so would discard before mkfs.
                disk.export.flags &= !flag::SEND_TRIM;
            }
            disk
        });
    let mut server = Server::new(fabric, disks.collect(), options);
    let exports = server.exports();
    let family = Family::find().map_err(GuestError::Netlink)?.map(Arc::new);
    let (mut opened, mut from) = (Vec::new(), 0);
    for (number, export) in exports.iter().enumerate() {
        let (device, socket) = Device::open(export, &mut from, family.as_ref())?;
        server.attach(socket, number);
        opened.push(device);
    }
    let running = server.start().map_err(GuestError::Start)?;
    // From here on whatever fails takes down what was built, in the order of the fields.
    let mut served = Served {
        devices: Vec::new(),
        attached: Vec::new(),
        running: Some(running),
    };
    let ports = ports.iter().zip(shown);
    for (device, (export, (port, shown))) in opened.into_iter().zip(exports.iter().zip(ports)) {
        served.devices.push(device.path().to_owned());
        served.attached.push(device);
        let device = served.attached.last_mut().expect("it was just pushed");
        device.connect(export.size)?;
        sysfs::tune(device.path(), port, shown.pages)?;
    }
    Ok(served)
}

impl Served {
    /// The block devices, in the order of the fabric's ports.
    #[must_use]
    pub fn devices(&self) -> &[PathBuf] {
        &self.devices
    }

    /// The block device of a port.
    ///
    /// # Panics
    /// When there is no such port.
    #[must_use]
    pub fn device(&self, port: usize) -> &Path {
        &self.devices[port]
    }

    /// What was served so far; `None` when the server has died. The difference of two tells of a
    /// trial how late replies were and how much of the processor they cost (see [`load`]).
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        self.running.as_ref()?.report()
    }

    /// Something breaks in a disk of the fabric, now.
    pub fn inject(&self, disk: u32, fault: Fault) {
        if let Some(running) = &self.running {
            running.inject(disk, fault);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The kernel lets go first, while somebody still answers what it has under way.
        self.attached.clear();
        self.running = None;
    }
}
