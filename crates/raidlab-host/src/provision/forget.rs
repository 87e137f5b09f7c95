//! The kernel forgets a device of a btrfs that is not mounted.
use crate::error::{HostError, Result};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const CONTROL: &str = "/dev/btrfs-control";
/// Bytes of a path, with the zero at its end (`BTRFS_PATH_NAME_MAX`).
const NAME: usize = 4088;
/// `BTRFS_IOC_FORGET_DEV` (linux/btrfs.h), since Linux 5.1.
const FORGET: rustix::ioctl::Opcode = opcode::write::<Request>(0x94, 5);

/// `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct Request {
    descriptor: i64,
    name: [u8; NAME],
}

/// Has the kernel forget the device, as `btrfs device scan --forget` does. Who has not heard of it has nothing to forget: a kernel
/// without the driver, or one that mkfs has not told. One before 5.1 cannot, and then finds the device held when it mounts the others.
pub(super) fn forget(path: &Path) -> Result<()> {
    let bytes = path.as_os_str().as_bytes();
    let mut name = [0; NAME];
    let Some(place) = name.get_mut(..bytes.len()).filter(|p| p.len() < NAME) else {
        let message = format!("the path {} is too long for btrfs", path.display());
        return Err(HostError::BadRequest(message));
    };
    place.copy_from_slice(bytes);
    let control = match File::open(CONTROL) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other.map_err(HostError::call("open", Path::new(CONTROL)))?,
    };
    let request = Request {
        descriptor: 0,
        name,
    };
    // SAFETY: the number is that of a call which reads one struct btrfs_ioctl_vol_args, laid out as in linux/btrfs.h.
    let said = unsafe { ioctl(&control, Setter::<FORGET, Request>::new(request)) };
    match said {
        Ok(()) | Err(Errno::NOENT | Errno::NOTTY) => Ok(()),
        Err(error) => Err(HostError::call("have btrfs forget", path)(error)),
    }
}
