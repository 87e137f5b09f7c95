//! One `/dev/nbdN`.
//!
//! Whoever has a block device open keeps others from being the last to close it, and only then does the kernel write back
//! what it holds of it and forget it. So devices are connected over netlink ([`Family`]), where nobody has them open; by
//! requests to the open device (`NBD_DO_IT`, whose thread stays in the kernel with it) only where the kernel is too old.
use super::GuestError;
use super::netlink::{Family, Wanted};
use crate::session::Export;
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests of the kernel's client, from linux/nbd.h.
mod request {
    use libc::Ioctl;

    pub(super) const SET_SOCK: Ioctl = 0xab00;
    pub(super) const SET_BLKSIZE: Ioctl = 0xab01;
    pub(super) const DO_IT: Ioctl = 0xab03;
    pub(super) const CLEAR_SOCK: Ioctl = 0xab04;
    pub(super) const SET_SIZE_BLOCKS: Ioctl = 0xab07;
    pub(super) const DISCONNECT: Ioctl = 0xab08;
    pub(super) const SET_FLAGS: Ioctl = 0xab0a;
}

/// Bytes that a socket holds: the kernel puts whole requests there without waiting for the server.
const BUFFER: usize = 8 << 20;
/// Devices that are looked at; the module makes 16 unless told otherwise.
const DEVICES: u32 = 256;
/// A device appears within milliseconds of its connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the kernel was given a device's socket. Dropping it disconnects the device.
#[derive(Debug)]
enum Link {
    /// Over netlink: the kernel sends and receives by itself, and nobody has the device open.
    Netlink { family: Arc<Family>, index: u32 },
    /// By the device itself, which is open as long as it is connected.
    Open {
        file: Arc<File>,
        /// The kernel has it too; kept until the device is in use.
        socket: Option<OwnedFd>,
        /// It is in `NBD_DO_IT`, from the connection to its end.
        thread: Option<JoinHandle<()>>,
    },
}

/// A device that knows its size and its socket; dropping it disconnects it.
#[derive(Debug)]
pub(super) struct Device {
    path: PathBuf,
    link: Link,
}

fn ask(file: &File, request: libc::Ioctl, argument: u64) -> std::io::Result<()> {
    // SAFETY: all of these take a number, or nothing, and write to no memory of this process.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, argument as libc::c_ulong) };
    if done < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Whether a device has a client that serves it.
fn in_use(name: &str) -> bool {
    Path::new("/sys/block").join(name).join("pid").exists()
}

fn is_busy(error: &GuestError) -> bool {
    matches!(error, GuestError::Kernel { source, .. } if source.raw_os_error() == Some(libc::EBUSY))
}

impl Device {
    /// Takes the first free device from this number on for an export, and counts the number on; the
    /// other end of its socket. `family`: where this kernel has it. A device that has a socket and is not connected yet
    /// looks free, and would take another one as a second way to the same disk.
    pub(super) fn open(
        export: &Export,
        from: &mut u32,
        family: Option<&Arc<Family>>,
    ) -> Result<(Self, OwnedFd), GuestError> {
        while *from < DEVICES {
            let number = *from;
            *from += 1;
            let name = format!("nbd{number}");
            let path = Path::new("/dev").join(&name);
            if !path.exists() {
                break;
            }
            if in_use(&name) {
                continue;
            }
            let (ours, theirs) = pair().map_err(kernel(&path, "no socket for it"))?;
            let link = match family {
                Some(family) => Link::over_netlink(family, number, &path, export, &theirs),
                None => Link::by_requests(&path, export, theirs),
            };
            match link {
                Ok(link) => return Ok((Self { path, link }, ours)),
                // Somebody else is about to connect it, or has it open.
                Err(error) if is_busy(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(GuestError::NoDevice)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the kernel send requests, and waits until the device has its size.
    pub(super) fn connect(&mut self, bytes: u64) -> Result<(), GuestError> {
        self.link
            .begin()
            .map_err(kernel(&self.path, "no thread for it"))?;
        let begun = Instant::now();
        while !self.has(bytes) {
            if begun.elapsed() > PATIENCE {
                let source = std::io::Error::from_raw_os_error(libc::ETIMEDOUT);
                return Err(kernel(&self.path, "it did not appear")(source));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.link.in_use();
        Ok(())
    }

    fn has(&self, bytes: u64) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let directory = Path::new("/sys/block").join(name);
        let size = std::fs::read_to_string(directory.join("size")).unwrap_or_default();
        directory.join("pid").exists() && size.trim().parse() == Ok(bytes / 512)
    }
}

fn kernel(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> GuestError {
    let path = path.to_owned();
    move |source| GuestError::Kernel { path, what, source }
}

impl Link {
    fn over_netlink(
        family: &Arc<Family>,
        index: u32,
        path: &Path,
        export: &Export,
        socket: &OwnedFd,
    ) -> Result<Self, GuestError> {
        let wanted = Wanted {
            index,
            bytes: export.size,
            sector: export.blocks.minimum,
            flags: export.flags,
        };
        family
            .connect(wanted, socket.as_fd())
            .map_err(kernel(path, "it is not connected"))?;
        Ok(Self::Netlink {
            family: Arc::clone(family),
            index,
        })
    }

    fn by_requests(path: &Path, export: &Export, socket: OwnedFd) -> Result<Self, GuestError> {
        let open = File::options().read(true).write(true).open(path);
        let file = open.map_err(kernel(path, "cannot be opened"))?;
        ask(&file, request::SET_SOCK, socket.as_raw_fd() as u64)
            .map_err(kernel(path, "it takes no socket"))?;
        let sector = u64::from(export.blocks.minimum);
        ask(&file, request::SET_BLKSIZE, sector)
            .map_err(kernel(path, "it takes no sector size"))?;
        ask(&file, request::SET_SIZE_BLOCKS, export.size / sector)
            .map_err(kernel(path, "it takes no size"))?;
        ask(&file, request::SET_FLAGS, u64::from(export.flags))
            .map_err(kernel(path, "it takes no flags"))?;
        Ok(Self::Open {
            file: Arc::new(file),
            socket: Some(socket),
            thread: None,
        })
    }

    /// Begins what is not begun with the connection.
    fn begin(&mut self) -> std::io::Result<()> {
        if let Self::Open { file, thread, .. } = self {
            let file = Arc::clone(file);
            // Returns when the device is disconnected.
            let work = move || drop(ask(&file, request::DO_IT, 0));
            let named = std::thread::Builder::new().name("nbd".to_owned());
            *thread = Some(named.spawn(work)?);
        }
        Ok(())
    }

    /// The kernel's socket is its own now.
    fn in_use(&mut self) {
        if let Self::Open { socket, .. } = self {
            *socket = None;
        }
    }
}

/// Two connected sockets: the server's, which does not block, and the kernel's.
fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    for socket in [&ours, &theirs] {
        set_socket_send_buffer_size_force(socket, BUFFER)?;
        set_socket_recv_buffer_size_force(socket, BUFFER)?;
    }
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

impl Drop for Link {
    fn drop(&mut self) {
        match self {
            Self::Netlink { family, index } => {
                let _ = family.disconnect(*index);
            }
            Self::Open { file, thread, .. } => {
                if let Some(thread) = thread.take() {
                    let _ = ask(file, request::DISCONNECT, 0);
                    let _ = thread.join();
                    let _ = ask(file, request::CLEAR_SOCK, 0);
                }
            }
        }
    }
}
