//! Where connections come in.
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longest path of a UNIX socket in bytes (`sun_path` less its end).
const LONGEST: usize = 107;

/// Why it cannot be listened there.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A server is there and answers.
    #[error("a server is already listening on {0}")]
    InUse(String),
    /// There is something that is no socket.
    #[error("{0} is there and is no socket; nothing that raidlab did not make is removed")]
    NotASocket(PathBuf),
    /// TCP beyond this machine.
    #[error("{0} can be reached from other machines, and NBD knows no passwords")]
    NotLoopback(SocketAddr),
    /// A path that does not fit into a socket's address.
    #[error("{0} is too long for a socket: at most {LONGEST} bytes")]
    TooLong(PathBuf),
    /// The system.
    #[error("cannot listen on {place}: {source}")]
    Io {
        /// Where.
        place: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// A socket that is listened to.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Exports that can be asked for here: the first and how many.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Its file, with device and inode, to be removed in the end.
    file: Option<(PathBuf, (u64, u64))>,
    address: Option<SocketAddr>,
}

impl Listener {
    /// A UNIX socket for one export. The socket of a server that has died is replaced; that of a
    /// living one is not.
    ///
    /// # Errors
    /// A living server, something else at that path, or the system.
    pub fn unix(path: &Path, export: usize) -> Result<Self, ListenError> {
        if path.as_os_str().len() > LONGEST {
            return Err(ListenError::TooLong(path.to_owned()));
        }
        let io = |source| ListenError::Io {
            place: path.display().to_string(),
            source,
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Two that begin at the same time would both find the old socket dead, and the second would
        // remove the first one's new socket.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::open(directory, flags, Mode::empty()).map_err(|e| io(e.into()))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|e| io(e.into()))?;
        remove_dead(path)?;
        let (socket, found) = bound(path).map_err(io)?;
        Ok(Self {
            socket,
            first: export,
            count: 1,
            file: Some((path.to_owned(), (found.dev(), found.ino()))),
            address: None,
        })
    }

    /// A TCP port of this machine alone, for all of so many exports by their names.
    ///
    /// # Errors
    /// An address that others can reach, one in use, or the system.
    pub fn tcp(address: SocketAddr, exports: usize) -> Result<Self, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        let io = |source: std::io::Error| match source.kind() {
            ErrorKind::AddrInUse => ListenError::InUse(address.to_string()),
            _ => ListenError::Io {
                place: address.to_string(),
                source,
            },
        };
        let socket = TcpListener::bind(address).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        let address = socket.local_addr().map_err(io)?;
        Ok(Self {
            socket: socket.into(),
            first: 0,
            count: exports,
            file: None,
            address: Some(address),
        })
    }

    /// The TCP address, with the port that was given out where none was asked for.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The next client that waits, if any.
    pub(super) fn accept(&self) -> Option<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::accept_with(&self.socket, flags).ok()?;
        if self.address.is_some() {
            // Replies leave when they are due, not when more has gathered.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        }
        Some(socket)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some((path, identity)) = &self.file else {
            return;
        };
        // Not that of somebody who came after this one's had been removed.
        if std::fs::symlink_metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == *identity)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket at a path, and what is there then. It is its owner's alone from its first moment on: Linux gives the node the mode that
/// the socket has when it is bound (`unix_bind_bsd`), less the umask.
fn bound(path: &Path) -> std::io::Result<(OwnedFd, std::fs::Metadata)> {
    /// Connections that wait to be accepted, as the standard library has it.
    const WAITING: i32 = 128;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let settle = || {
        let found = std::fs::symlink_metadata(path)?;
        if found.mode() & 0o077 != 0 {
            // A kernel that does not.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        }
        rustix::net::listen(&socket, WAITING)?;
        Ok(found)
    };
    match settle() {
        Ok(found) => Ok((socket, found)),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Removes a socket that nobody listens to.
fn remove_dead(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    let io = |source| ListenError::Io {
        place: path.display().to_string(),
        source,
    };
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(io)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(io(error)),
        // It answers, or has more callers than it can take.
        _ => Err(ListenError::InUse(path.display().to_string())),
    }
}
