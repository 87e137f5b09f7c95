//! One `/dev/nbdN`.
use super::GuestError;
use crate::session::Export;
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
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

/// A device that knows its size and its socket.
#[derive(Debug)]
pub(super) struct Device {
    path: PathBuf,
    file: Arc<File>,
    /// The kernel has it too; kept open until it is in use.
    _socket: OwnedFd,
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

impl Device {
    /// Takes the first free device from this number on for an export, and counts the number on; the
    /// other end of its socket. A device that has a socket and is not connected yet looks free, and
    /// would take another one as a second way to the same disk.
    pub(super) fn open(export: &Export, from: &mut u32) -> Result<(Self, OwnedFd), GuestError> {
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
            let kernel = |what| {
                let path = path.clone();
                move |source| GuestError::Kernel { path, what, source }
            };
            let open = File::options().read(true).write(true).open(&path);
            let file = open.map_err(kernel("cannot be opened"))?;
            let (ours, theirs) = pair().map_err(kernel("no socket for it"))?;
            // Somebody else is about to connect it.
            match ask(&file, request::SET_SOCK, theirs.as_raw_fd() as u64) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
                result => result.map_err(kernel("it takes no socket"))?,
            }
            let sector = u64::from(export.blocks.minimum);
            ask(&file, request::SET_BLKSIZE, sector).map_err(kernel("it takes no sector size"))?;
            let sectors = export.size / sector;
            ask(&file, request::SET_SIZE_BLOCKS, sectors).map_err(kernel("it takes no size"))?;
            let flags = u64::from(export.flags);
            ask(&file, request::SET_FLAGS, flags).map_err(kernel("it takes no flags"))?;
            let device = Self {
                path,
                file: Arc::new(file),
                _socket: theirs,
            };
            return Ok((device, ours));
        }
        Err(GuestError::NoDevice)
    }

    /// Lets the kernel send requests, and waits until the device has its size.
    pub(super) fn connect(self, bytes: u64) -> Result<Attached, GuestError> {
        let kernel = |what| {
            let path = self.path.clone();
            move |source| GuestError::Kernel { path, what, source }
        };
        let file = Arc::clone(&self.file);
        let thread = std::thread::Builder::new().name("nbd".to_owned());
        // Returns when the device is disconnected.
        let work = move || drop(ask(&file, request::DO_IT, 0));
        let thread = thread.spawn(work).map_err(kernel("no thread for it"))?;
        let attached = Attached {
            path: self.path.clone(),
            file: Arc::clone(&self.file),
            thread: Some(thread),
        };
        let begun = Instant::now();
        while !attached.has(bytes) {
            if begun.elapsed() > PATIENCE {
                let source = std::io::Error::from_raw_os_error(libc::ETIMEDOUT);
                return Err(kernel("it did not appear")(source));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(attached)
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

/// A device at work; dropping it disconnects it.
#[derive(Debug)]
pub(super) struct Attached {
    path: PathBuf,
    file: Arc<File>,
    thread: Option<JoinHandle<()>>,
}

impl Attached {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn has(&self, bytes: u64) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let directory = Path::new("/sys/block").join(name);
        let size = std::fs::read_to_string(directory.join("size")).unwrap_or_default();
        directory.join("pid").exists() && size.trim().parse() == Ok(bytes / 512)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = ask(&self.file, request::DISCONNECT, 0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = ask(&self.file, request::CLEAR_SOCK, 0);
    }
}
