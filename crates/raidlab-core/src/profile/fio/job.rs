//! One section of a job file, and the operations it stands for.
use super::NAME;
use crate::profile::{ProfileContext, ProfileError};
use crate::time::Span;
use crate::units::{Bytes, Extent};
use crate::workload::spec::{Arrival, BlockSpec, Limit, Order};
use serde::{Deserialize, Serialize};

/// `rw=`: direction and order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// Sequential reads.
    #[default]
    Read,
    /// Sequential writes.
    Write,
    /// A sequential mixture.
    ReadWrite,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// A random mixture.
    RandRw,
}

impl Rw {
    const fn order(self) -> Order {
        match self {
            Self::Read | Self::Write | Self::ReadWrite => Order::Sequential,
            Self::RandRead | Self::RandWrite | Self::RandRw => Order::Random,
        }
    }

    const fn read_percent(self, mix: u8) -> u8 {
        match self {
            Self::Read | Self::RandRead => 100,
            Self::Write | Self::RandWrite => 0,
            Self::ReadWrite | Self::RandRw => mix,
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "rw",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::RandRw => "randrw",
        }
    }
}

/// One section of a job file with fio's own defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct FioJob {
    /// Name of the section.
    pub name: String,
    /// Direction and order.
    pub rw: Rw,
    /// Bytes of one operation; 4 KiB.
    pub bs: Bytes,
    /// Bytes of the file that are used.
    pub size: Option<Bytes>,
    /// Bytes moved, when other than `size`.
    pub io_size: Option<Bytes>,
    /// First byte used.
    pub offset: Bytes,
    /// Operations at most.
    pub number_ios: Option<u64>,
    /// Operations in flight; 1.
    pub iodepth: u32,
    /// Copies of the job at the same time; 1.
    pub numjobs: u32,
    /// Past the page cache.
    pub direct: bool,
    /// The engine keeps several operations in flight; a synchronous one has a depth of 1.
    pub queued: bool,
    /// Time at most, or exactly when `time_based`.
    pub runtime: Option<Span>,
    /// Not counted at the start.
    pub ramp_time: Span,
    /// Goes on to the end of `runtime`, from the start of the file again.
    pub time_based: bool,
    /// Reads of a mixture in per cent; 50.
    pub rwmixread: u8,
    /// A flush after so many writes; 0: never.
    pub fsync: u32,
    /// With `fdatasync` instead.
    pub data_only: bool,
    /// A flush at the end.
    pub end_fsync: bool,
    /// Operations a second of each copy; 0: as fast as they end.
    pub rate_iops: u32,
    /// They arrive as a Poisson process.
    pub poisson: bool,
    /// The file or device.
    pub filename: Option<String>,
    /// The directory that files are made in.
    pub directory: Option<String>,
    /// Seed.
    pub randseed: Option<u64>,
    /// The cache of the file is dropped before.
    pub invalidate: bool,
    /// Begins after all jobs before it have ended.
    pub stonewall: bool,
}

impl Default for FioJob {
    fn default() -> Self {
        Self {
            name: String::new(),
            rw: Rw::Read,
            bs: Bytes::kib(4),
            size: None,
            io_size: None,
            offset: Bytes(0),
            number_ios: None,
            iodepth: 1,
            numjobs: 1,
            direct: false,
            queued: false,
            runtime: None,
            ramp_time: Span::ZERO,
            time_based: false,
            rwmixread: 50,
            fsync: 0,
            data_only: false,
            end_fsync: false,
            rate_iops: 0,
            poisson: false,
            filename: None,
            directory: None,
            randseed: None,
            invalidate: true,
            stonewall: false,
        }
    }
}

impl FioJob {
    pub(super) const fn depth(&self) -> u32 {
        if self.queued { self.iodepth } else { 1 }
    }

    pub(super) const fn read_percent(&self) -> u8 {
        self.rw.read_percent(self.rwmixread)
    }

    pub(super) fn wrong(&self, option: &str, why: impl Into<String>) -> ProfileError {
        ProfileError::value(NAME, format!("{option} of job {}", self.name), why)
    }

    /// The file, device or directory that it names. fio sets the directory before any name, one that begins with a slash too.
    pub(super) fn named(&self) -> Option<String> {
        match (&self.directory, &self.filename) {
            (Some(directory), Some(file)) => Some(format!("{directory}/{file}")),
            (directory, file) => file.clone().or_else(|| directory.clone()),
        }
    }

    /// Bytes of one copy's part.
    pub(super) fn span(&self, context: &ProfileContext) -> Result<u64, ProfileError> {
        let left = context
            .place
            .size()
            .map(|all| all.0.saturating_sub(self.offset.0));
        let bytes = match (self.size, left) {
            (Some(size), Some(left)) if size.0 > left => {
                let why = format!(
                    "{size} from offset {} is beyond the end of the {}",
                    self.offset,
                    context.place.word()
                );
                return Err(self.wrong("size", why));
            }
            (Some(size), _) => size.0,
            (None, Some(left)) => left,
            (None, None) => return Err(self.wrong("size", "it must be given in a directory")),
        };
        let whole = bytes / self.bs.0.max(1) * self.bs.0;
        if whole == 0 {
            let why = format!("{} is less than one block of {}", Bytes(bytes), self.bs);
            return Err(self.wrong("size", why));
        }
        Ok(whole)
    }

    pub(super) fn blocks(&self, block: u32, region: Extent) -> BlockSpec {
        let moved = self.io_size.map_or(region.len.0, |size| size.0);
        let by_size = (!self.time_based).then(|| (moved / u64::from(block)).max(1));
        BlockSpec {
            order: self.rw.order(),
            read_percent: self.read_percent(),
            block,
            region,
            first: 0,
            limit: Limit {
                ops: by_size.into_iter().chain(self.number_ios).min(),
                // Of what is counted: fio's runtime begins when the ramp has ended.
                time: self.runtime.map(|time| time + self.ramp_time),
            },
            arrival: match (self.rate_iops, self.poisson) {
                (0, _) => Arrival::Closed,
                (per_second, false) => Arrival::Constant { per_second },
                (per_second, true) => Arrival::Poisson { per_second },
            },
            flush_every: self.fsync,
            flush_data: self.data_only,
            flush_end: self.end_fsync && self.read_percent() < 100,
        }
    }
}
