//! What a profile comes to in one place: its phases, and what is said before they run.
use super::ProfileError;
use crate::flag::{Flag, FlagKind};
use crate::op::FileId;
use crate::phase::{Access, Counted, Evidence, Job, Needed, Phase};
use crate::time::Span;
use crate::units::Bytes;
use crate::workload::spec::WorkloadSpec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where a profile is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a directory, in files of its own.
    Directory {
        /// Free space of the file system.
        free: Bytes,
    },
    /// On a file that exists and is kept.
    File {
        /// Its size.
        size: Bytes,
    },
    /// On a block device.
    Device {
        /// Its size.
        size: Bytes,
    },
}

impl Place {
    /// The size of the file or device; `None` in a directory.
    #[must_use]
    pub const fn size(self) -> Option<Bytes> {
        match self {
            Self::Directory { .. } => None,
            Self::File { size } | Self::Device { size } => Some(size),
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Directory { .. } => "directory",
            Self::File { .. } => "file",
            Self::Device { .. } => "device",
        }
    }
}

/// What a profile must know of the machine and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileContext {
    /// Memory that can cache files: of the machine, or of the control group when that is less.
    pub memory: Bytes,
    /// Where it is to run.
    pub place: Place,
    /// Whether it may write there: false for a device that is not claimed, a read-only file system,
    /// and a file whose content must be kept.
    pub writable: bool,
    /// Offsets and lengths of direct I/O must be multiples of this many bytes.
    pub alignment: u32,
}

/// A phase that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its stable name.
    pub phase: String,
    /// Why, in words.
    pub why: String,
}

/// A profile resolved for one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// Phases that cannot run here.
    pub skipped: Vec<Skipped>,
    /// All settings as resolved; sizes in bytes.
    pub settings: BTreeMap<String, String>,
    /// What is said before it starts.
    pub notes: Vec<String>,
    /// Doubts that are known before it starts; they belong to the trial.
    pub flags: Vec<Flag>,
    /// Free space that the directory must have; 0 on a file or device.
    pub space_needed: Bytes,
    /// Files and directories that will be there at a time, where they are many.
    pub files_needed: u64,
    /// Bytes of the data set that the memory is held against, where the profile has one.
    pub data_set: Option<Bytes>,
}

/// The data file that fills an array up to what is to lie in it; no profile has one of this number.
pub const FILLER: FileId = FileId::MAX;

/// Bytes of all data files that some of these phases find, each at its largest.
fn found<'p>(phases: impl IntoIterator<Item = &'p Phase>) -> u64 {
    let mut sizes: BTreeMap<FileId, u64> = BTreeMap::new();
    for need in phases.into_iter().flat_map(|phase| &phase.needs) {
        let size = sizes.entry(need.file).or_default();
        *size = need.size.0.max(*size);
    }
    sizes.values().fold(0, |all, one| all.saturating_add(*one))
}

impl Plan {
    pub(super) fn new(settings: BTreeMap<String, String>) -> Self {
        Self {
            phases: Vec::new(),
            skipped: Vec::new(),
            settings,
            notes: Vec::new(),
            flags: Vec::new(),
            space_needed: Bytes(0),
            files_needed: 0,
            data_set: None,
        }
    }

    /// Counted bytes of all phases whose bytes are known beforehand, and the files that are prepared
    /// for them because no phase before makes them.
    #[must_use]
    pub fn bytes_planned(&self) -> Bytes {
        let mut made: BTreeSet<FileId> = BTreeSet::new();
        let mut bytes = 0_u64;
        for phase in &self.phases {
            for needed in &phase.needs {
                // Only a directory has files prepared in it.
                if made.insert(needed.file) && self.space_needed.0 > 0 {
                    bytes = bytes.saturating_add(needed.size.0);
                }
            }
            made.extend(&phase.fresh);
            bytes = bytes.saturating_add(phase.expected().bytes.unwrap_or(0));
        }
        Bytes(bytes)
    }

    /// Bytes of files that lie in an array whose new members get no more than is in use (btrfs, ZFS) when these come: as many as are
    /// `wanted`, else as many as the data files have that phases find; what the first phase finds in any case.
    #[must_use]
    pub fn allocated(&self, wanted: Option<Bytes>) -> Bytes {
        let wanted = wanted.map_or_else(|| found(&self.phases), |wanted| wanted.0);
        Bytes(wanted.max(found(self.phases.first())))
    }

    /// How much of that is no file that the first phase finds.
    #[must_use]
    pub fn filler(&self, wanted: Option<Bytes>) -> Bytes {
        Bytes(self.allocated(wanted).0 - found(self.phases.first()))
    }

    /// The same as data files, in the order in which they are written: [`FILLER`], where the first phase does not find as much, and what
    /// that phase finds.
    #[must_use]
    pub fn laid_out(&self, wanted: Option<Bytes>) -> Vec<Needed> {
        let size = self.filler(wanted);
        let filler = (size.0 > 0).then_some(Needed { file: FILLER, size });
        let first = self.phases.first().into_iter();
        let first = first.flat_map(|first| &first.needs).copied();
        filler.into_iter().chain(first).collect()
    }

    /// Time of all phases that end by the clock.
    #[must_use]
    pub fn time_planned(&self) -> Span {
        self.phases
            .iter()
            .filter_map(|phase| phase.expected().time)
            .fold(Span::ZERO, |all, one| all + one)
    }

    pub(super) fn skip(&mut self, phase: &str, why: impl Into<String>) {
        self.skipped.push(Skipped {
            phase: phase.to_owned(),
            why: why.into(),
        });
    }

    /// Notes and flags what a data set of `size` means on a machine with so much memory. Direct I/O does not go
    /// through the page cache: what fits in the memory is not read from there.
    pub(super) fn judge_size(&mut self, size: Bytes, memory: Bytes, chosen: bool, direct: bool) {
        self.data_set = self.data_set.max(Some(size));
        if !chosen {
            self.notes.push(format!(
                "the data set is {size}: twice the memory of {memory}, so that no cache can hold it; set 'size' for another"
            ));
        }
        if size < memory && !direct {
            self.flags.push(Flag::new(
                FlagKind::FitsInMemory,
                format!(
                    "the data set of {size} fits in the memory of {memory}: the cache can hold it"
                ),
            ));
        }
    }

    /// Flags writes that are counted when the page cache has taken them.
    pub(super) fn unsynced(&mut self, setting: &str) {
        let why = format!("{setting}: what the page cache has taken counts as written");
        self.flags.push(Flag::new(FlagKind::Unflushed, why));
    }

    /// Refuses a directory without the space, and a plan without a phase.
    pub(super) fn checked(
        self,
        profile: &'static str,
        setting: &'static str,
        context: &ProfileContext,
    ) -> Result<Self, ProfileError> {
        match context.place {
            Place::Directory { free } if self.space_needed > free => Err(ProfileError::Space {
                profile,
                needed: self.space_needed,
                free,
                setting,
            }),
            _ if self.phases.is_empty() => Err(ProfileError::Place {
                profile,
                why: self
                    .skipped
                    .first()
                    .map_or_else(|| "no phase is left".to_owned(), |s| s.why.clone()),
            }),
            _ => Ok(self),
        }
    }
}

/// What must be seen of writes: nothing when no sync makes them reach the device.
pub(super) const fn written(durable: bool) -> Evidence {
    if durable {
        Evidence::WritesReachDevice
    } else {
        Evidence::None
    }
}

/// A phase of ordinary calls with one process for each workload.
pub(super) fn calls(id: &str, title: &str, counted: Counted, jobs: Vec<WorkloadSpec>) -> Phase {
    Phase {
        id: id.to_owned(),
        title: title.to_owned(),
        jobs: jobs
            .into_iter()
            .map(|workload| Job { workload, depth: 1 })
            .collect(),
        access: Access::Calls,
        counted,
        cold: false,
        evidence: Evidence::None,
        needs: Vec::new(),
        fresh: Vec::new(),
        ramp: Span::ZERO,
    }
}

impl Phase {
    pub(super) fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    pub(super) fn cold(mut self, cold: bool) -> Self {
        self.cold = cold;
        self
    }

    pub(super) fn needs(mut self, files: impl IntoIterator<Item = FileId>, size: Bytes) -> Self {
        self.needs = files
            .into_iter()
            .map(|file| Needed { file, size })
            .collect();
        self
    }

    pub(super) fn fresh(mut self, files: impl IntoIterator<Item = FileId>) -> Self {
        self.fresh = files.into_iter().collect();
        self
    }
}

/// A call or block size as the ops carry it: at least 1 byte, at most 1 GiB, a multiple of the
/// alignment when `direct`.
pub(super) fn call_size(
    profile: &'static str,
    setting: &'static str,
    size: Bytes,
    direct: bool,
    context: &ProfileContext,
) -> Result<u32, ProfileError> {
    let wrong = |why: String| Err(ProfileError::value(profile, setting, why));
    let alignment = u64::from(context.alignment.max(1));
    match size.0 {
        0 => wrong("0 bytes move nothing: give at least 1".to_owned()),
        n if n > 1 << 30 => wrong(format!("{size} is too large: at most 1 GiB a call")),
        n if direct && !n.is_multiple_of(alignment) => wrong(format!(
            "{size} cannot be used for direct I/O here: give a multiple of {alignment} bytes, or set direct=no"
        )),
        n => Ok(n as u32),
    }
}

/// A number that must not be 0 nor above `most`.
pub(super) fn count(
    profile: &'static str,
    setting: &'static str,
    value: u32,
    most: u32,
) -> Result<u32, ProfileError> {
    if value == 0 || value > most {
        let why = format!("'{value}' is not a whole number from 1 to {most}");
        return Err(ProfileError::value(profile, setting, why));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(files: &[(FileId, u64)]) -> Phase {
        let needs = files.iter().map(|&(file, size)| Needed {
            file,
            size: Bytes(size),
        });
        Phase {
            needs: needs.collect(),
            ..calls("read", "read", Counted::Bytes, Vec::new())
        }
    }

    #[test]
    fn what_lies_there_is_what_is_wanted_and_what_the_first_phase_finds() {
        let mut plan = Plan::new(BTreeMap::new());
        assert_eq!(plan.allocated(None), Bytes(0));
        assert!(plan.laid_out(None).is_empty());
        plan.phases = vec![finding(&[(0, 30), (1, 10)]), finding(&[(0, 20), (7, 100)])];
        let files = |wanted: Option<u64>| -> Vec<(FileId, u64)> {
            let files = plan.laid_out(wanted.map(Bytes));
            files.iter().map(|file| (file.file, file.size.0)).collect()
        };
        // Nothing said: as much as all phases find, each file at its largest.
        assert_eq!(plan.allocated(None), Bytes(140));
        assert_eq!(files(None), [(FILLER, 100), (0, 30), (1, 10)]);
        assert_eq!(files(Some(41)), [(FILLER, 1), (0, 30), (1, 10)]);
        // The first phase has what it finds in any case.
        assert_eq!(plan.allocated(Some(Bytes(5))), Bytes(40));
        assert_eq!(files(Some(5)), [(0, 30), (1, 10)]);
    }
}
