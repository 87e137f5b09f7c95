//! Why a machine cannot be built, or a phase not be run on it.
use super::overrides::OverrideError;
use crate::catalogue::UnknownModel;
use crate::catalogue::controller::ControllerError;
use crate::host::fs::FsError;
use crate::storage::StorageError;
use raidlab_core::drive::DriveError;
use raidlab_core::op::FileId;
use raidlab_core::profile::ProfileError;
use raidlab_core::target::Errno;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_layout::{LayoutError, SpecError};

/// Why a cell makes no machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A disk's model that is not in the catalogue.
    #[error("disk '{disk}': {source}")]
    UnknownModel {
        /// The disk.
        disk: String,
        /// What there is.
        source: UnknownModel,
    },
    /// A model that is none with what the experiment says of it.
    #[error("disk '{disk}', model '{model}': {source}")]
    Override {
        /// The disk.
        disk: String,
        /// Its model.
        model: String,
        /// What is wrong.
        source: OverrideError,
    },
    /// A member that is no disk of the experiment.
    #[error("member '{0}' is no disk of the experiment")]
    UnknownDisk(String),
    /// A disk on a controller that the experiment does not have.
    #[error("disk '{disk}' is on controller '{controller}', which the experiment does not have")]
    UnknownController {
        /// The disk.
        disk: String,
        /// As it says.
        controller: String,
    },
    /// A controller on a bus that the experiment does not have.
    #[error("controller '{controller}' is on bus '{bus}', which the experiment does not have")]
    UnknownBus {
        /// The controller.
        controller: String,
        /// As it says.
        bus: String,
    },
    /// A controller's model that is not in the catalogue, or a file that is none.
    #[error("controller '{controller}': {source}")]
    ControllerModel {
        /// The controller.
        controller: String,
        /// What there is, or what is wrong.
        source: ControllerError,
    },
    /// A layout that cannot be built of these members.
    #[error("layout '{layout}' of {members} members: {source}")]
    Layout {
        /// The layout as written.
        layout: String,
        /// How many there are.
        members: usize,
        /// What is wrong.
        source: SpecError,
    },
    /// A ZFS mirror that cannot be built of these members.
    #[error("a ZFS mirror of {members} members: {source}")]
    Zfs {
        /// How many there are.
        members: usize,
        /// What is wrong.
        source: LayoutError,
    },
    /// A disk that is used up by what is before and behind its data.
    #[error("disk '{disk}' of {size} is too small: nothing is left of it for data")]
    TooSmall {
        /// The disk.
        disk: String,
        /// Its size.
        size: Bytes,
    },
    /// A disk that the host does not see, because its controller shows it volumes alone.
    #[error("the host does not see disk '{0}' behind its controller: use engine = \"controller\"")]
    NoPort(String),
    /// Something of the array that is only built on real devices.
    #[error("{0} is not modelled: leave it out, or run the experiment with --on vm or --on host")]
    NotModelled(String),
    /// Disks, channels, queues or the array.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The file system.
    #[error("file system: {0}")]
    FileSystem(#[from] FsError),
}

/// Why a phase was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The profile does not fit the machine.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A phase needs more than the device has.
    #[error("phase '{phase}' needs {needed} and the device has {size}")]
    TooSmall {
        /// The phase.
        phase: String,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        size: Bytes,
    },
    /// A data file that a phase needs could not be made.
    #[error("phase '{phase}' needs data file {file}: {source}")]
    Prepare {
        /// The phase.
        phase: String,
        /// The data file.
        file: FileId,
        /// What the file system said.
        source: FsError,
    },
    /// What lies in a pool, or an array of btrfs, before its new members come has no room there.
    #[error("{wanted} do not fit into the array before its new members come: {source}")]
    Allocated {
        /// Bytes of files.
        wanted: Bytes,
        /// What the file system said.
        source: FsError,
    },
    /// A pool of ZFS, or an array of btrfs, that rebuilds with nothing in it.
    #[error(
        "ZFS and btrfs fill a new member with what is allocated, and here nothing is: say how much lies in the array, as in allocated = \"100GiB\""
    )]
    NothingAllocated,
    /// Of what is allocated nothing lies on the new members.
    #[error(
        "nothing of what is allocated lies on the members that are new, so that there is nothing to fill them with: drop 'failed', for then members are taken that the first files are on, or say that more is allocated"
    )]
    NothingThere,
    /// A call before the phase failed.
    #[error("phase '{phase}': preparing it failed with error {errno}")]
    Call {
        /// The phase.
        phase: String,
        /// The error number.
        errno: Errno,
    },
    /// It was told to stop while the files were laid out.
    #[error("interrupted before the first operation")]
    Interrupted,
    /// All of a phase had ended before anything was counted.
    #[error(
        "phase '{phase}' ended within its ramp of {ramp}: nothing was counted; give a longer time, a larger size, or a shorter ramp"
    )]
    EndedInRamp {
        /// The phase.
        phase: String,
        /// Not counted at its start.
        ramp: Span,
    },
    /// The phase itself.
    #[error("phase '{phase}': {source}")]
    Drive {
        /// The phase.
        phase: String,
        /// What happened.
        source: DriveError,
    },
}
