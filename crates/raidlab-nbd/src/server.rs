//! Modelled disks served in the time that passes outside.
//!
//! One thread owns the [`Fabric`], the content and all connections. A request is given to the models
//! when its header has come, as a controller would be; its data may cross the socket while the model
//! works on it. Data of a write are in the store before its reply leaves, data of a read are taken from
//! the store when the model has ended, and a reply leaves at the model's time, counted from the start
//! of the server: what is late once does not make later what comes after it. How late each reply was is
//! kept ([`Report::lateness`]).
//!
//! A flush, and a write with FUA where the disk takes such, is the modelled disk's: it writes out its cache, in its time. The store
//! keeps everything at once, so that nothing is lost when a client is killed; a write whose data had
//! not all come then is there up to its last whole sector. On a disk that has failed for good nothing changes
//! any more.
mod conn;
mod listen;
mod pending;
mod report;
mod run;
mod thread;

pub use listen::{ListenError, Listener};
pub use report::{DiskReport, Lateness, Report};

use crate::engine::Engine;
use crate::session::Export;
use crate::store::Store;
use crate::wire::{BlockSizes, MAX_BLOCK, flag};
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_sim::disk::Fault;
use raidlab_sim::fabric::{Fabric, PortInfo};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A port of the fabric with its content.
#[derive(Debug)]
pub struct Disk {
    /// How clients are told of it.
    pub export: Export,
    /// The port.
    pub port: u32,
    /// What is on it.
    pub store: Store,
    /// Where on the port's disk the first byte shown is.
    pub start: u64,
}

impl Disk {
    /// An export of a port: its name, or the first `size` bytes of it.
    #[must_use]
    pub fn new(number: u32, port: &PortInfo, description: &str, size: u64, store: Store) -> Self {
        let rotational = if port.rotational { flag::ROTATIONAL } else { 0 };
        // Without it a kernel follows such a write with a flush.
        let fua = if port.fua { flag::SEND_FUA } else { 0 };
        Self {
            export: Export {
                name: port.name.clone(),
                description: description.to_owned(),
                size: size.min(port.sectors * SECTOR),
                flags: flag::HAS_FLAGS
                    | flag::SEND_FLUSH
                    | fua
                    | flag::SEND_TRIM
                    | flag::SEND_WRITE_ZEROES
                    // All connections meet the same model and the same content.
                    | flag::CAN_MULTI_CONN
                    | rotational,
                blocks: BlockSizes {
                    minimum: SECTOR as u32,
                    preferred: (port.physical * SECTOR as u32).next_power_of_two(),
                    maximum: MAX_BLOCK,
                },
            },
            port: number,
            store,
            start: 0,
        }
    }
}

impl Disk {
    /// The same with logical sectors of so many bytes, which requests then are whole numbers of; what is beyond the last
    /// whole one is not shown.
    #[must_use]
    pub fn with_sector(mut self, bytes: u32) -> Self {
        let export = &mut self.export;
        export.size -= export.size % u64::from(bytes);
        export.blocks.minimum = bytes;
        export.blocks.preferred = export.blocks.preferred.max(bytes);
        self
    }

    /// The same from byte `start` of the port's disk on, which is a whole number of its sectors. The store begins there.
    #[must_use]
    pub const fn from(mut self, start: u64) -> Self {
        self.start = start;
        self
    }
}

/// How the server's thread asks to be scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all ordinary work (`SCHED_FIFO`), where that is permitted.
    #[default]
    First,
    /// As everybody else.
    Ordinary,
    /// As everybody else, without interrupting who wakes it (`SCHED_BATCH`).
    Batch,
}

/// How to serve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A reply that is later than this is counted as late.
    pub tolerance: Span,
    /// Replies leave so much before the model's time, to make up for what the way to the client and
    /// back costs. The model's own times stay as they are: what comes before a reply's modelled time
    /// is taken as having come then.
    pub early: Span,
    /// How to be scheduled.
    pub scheduling: Scheduling,
    /// While data of a write are due, sleep so many nanoseconds a KiB before looking again, instead
    /// of being woken for each piece; 0: be woken. For the kernel's client on the same processor.
    pub nap_per_kib: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: Span::from_millis(1),
            early: Span::ZERO,
            scheduling: Scheduling::First,
            nap_per_kib: 0,
        }
    }
}

/// Disks to be served, and where.
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    disks: Vec<Disk>,
    listeners: Vec<Listener>,
    /// Sockets of clients that have been told of their export elsewhere.
    attached: Vec<(OwnedFd, usize)>,
    options: Options,
}

/// What the thread is asked for.
enum Control {
    Report(Sender<Report>),
    Inject(u32, Fault),
    Stop,
}

/// A server at work; dropping it ends it.
#[derive(Debug)]
pub struct Running {
    control: Sender<Control>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<Report>>,
    /// The last report, of a thread that has ended.
    last: OnceLock<Report>,
}

/// The end of [`Control`] that the thread has.
#[derive(Debug)]
struct Controls {
    requests: Receiver<Control>,
    wake: Arc<OwnedFd>,
}

impl Server {
    /// A server of these disks, with nobody to serve yet.
    #[must_use]
    pub fn new(fabric: Fabric, disks: Vec<Disk>, options: Options) -> Self {
        Self {
            engine: Engine::new(fabric),
            disks,
            listeners: Vec::new(),
            attached: Vec::new(),
            options,
        }
    }

    /// The exports, by number.
    #[must_use]
    pub fn exports(&self) -> Vec<Export> {
        self.disks.iter().map(|disk| disk.export.clone()).collect()
    }

    /// Takes connections here.
    pub fn listen(&mut self, listener: Listener) {
        self.listeners.push(listener);
    }

    /// Serves a client that sends requests for this export at once, without a handshake.
    pub fn attach(&mut self, socket: OwnedFd, export: usize) {
        self.attached.push((socket, export));
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub fn start(self) -> std::io::Result<Running> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake = Arc::new(rustix::event::eventfd(0, flags)?);
        let (control, requests) = channel();
        let controls = Controls {
            requests,
            wake: Arc::clone(&wake),
        };
        let thread = std::thread::Builder::new().name("disks".to_owned());
        let thread = thread.spawn(move || run::run(self, &controls))?;
        Ok(Running {
            control,
            wake,
            thread: Some(thread),
            last: OnceLock::new(),
        })
    }
}

impl Running {
    fn ask(&self, control: Control) -> bool {
        let sent = self.control.send(control).is_ok();
        // Full means that it is being woken already.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        sent
    }

    /// Whether its thread is still there; it ends by itself only when it panics.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// What has been served so far; `None` when the server has ended.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        let (answer, report) = channel();
        self.ask(Control::Report(answer))
            .then(|| report.recv().ok())?
    }

    /// Something breaks in a disk of the fabric, now.
    pub fn inject(&self, disk: u32, fault: Fault) {
        self.ask(Control::Inject(disk, fault));
    }

    /// Ends it: connections are closed, sockets that it made are removed.
    #[must_use]
    pub fn stop(mut self) -> Option<Report> {
        self.end();
        self.last.take()
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.ask(Control::Stop);
            if let Ok(report) = thread.join() {
                let _ = self.last.set(report);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
