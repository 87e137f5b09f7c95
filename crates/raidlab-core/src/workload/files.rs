//! Many small files: made, looked at and removed, in the order of their names or in random order.
use super::Expected;
use super::serial::{Script, Step};
use crate::op::{Entry, FileOp, Op};
use crate::rng::{Permutation, Stream};
use crate::time::Instant;
use serde::{Deserialize, Serialize};

/// What is done with each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesAction {
    /// Made, filled and closed; the directories are made first.
    Create,
    /// `stat`, and read when it is not empty.
    Stat,
    /// Removed; the directories are removed at the end.
    Delete,
}

/// A pass over the small files of a metadata phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FilesSpec {
    /// What is done.
    pub action: FilesAction,
    /// Names that sort in the order of creation, looked at and removed in that order; otherwise
    /// shuffled names, looked at and removed in a random order.
    pub ordered: bool,
    /// Number of files.
    pub count: u32,
    /// Directories they are spread over, in runs of equal length; at least 1.
    pub directories: u32,
    /// Smallest file in bytes.
    pub size_min: u32,
    /// Largest file in bytes.
    pub size_max: u32,
    /// Seed of the sizes: the same for creating as for looking at the files.
    pub size_seed: u64,
    /// Each file, and the directory it is in, made durable before the next one is made.
    pub sync_each: bool,
    /// The file system made durable at the end of creating and of deleting.
    pub sync_end: bool,
}

impl FilesSpec {
    /// Bytes of file number `index`.
    #[must_use]
    pub fn size_of(&self, index: u32) -> u32 {
        let spread = u64::from(self.size_max.saturating_sub(self.size_min)) + 1;
        let drawn = Stream::new(self.size_seed).below(u64::from(index), spread);
        self.size_min + drawn as u32
    }

    /// Number of the directory that file number `index` is in.
    #[must_use]
    pub fn directory_of(&self, index: u32) -> u32 {
        index / self.count.div_ceil(self.directories.max(1)).max(1)
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if self.size_max == 0 {
            return 0;
        }
        (0..self.count).map(|i| u64::from(self.size_of(i))).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    MakeDirectories(u32),
    Files(u32),
    SyncDirectory { next: u32, directory: u32 },
    RemoveDirectories(u32),
    SyncAll,
    Over,
}

/// A running pass over small files.
#[derive(Clone, Debug)]
pub struct Files {
    spec: FilesSpec,
    order: Option<Permutation>,
    stage: Stage,
}

impl Files {
    pub(super) fn new(spec: FilesSpec, stream: Stream) -> Self {
        // Shuffled names are created as they come: it is the names that are out of order.
        let shuffled = !spec.ordered && spec.action != FilesAction::Create;
        Self {
            spec,
            order: shuffled.then(|| Permutation::new(u64::from(spec.count), stream)),
            stage: match spec.action {
                FilesAction::Create => Stage::MakeDirectories(0),
                FilesAction::Stat | FilesAction::Delete => Stage::Files(0),
            },
        }
    }

    fn file(&self, i: u32) -> (FileOp, u32) {
        let index = self
            .order
            .as_ref()
            .map_or(i, |order| order.at(u64::from(i)) as u32);
        let entry = Entry {
            index,
            directory: self.spec.directory_of(index),
            ordered: self.spec.ordered,
        };
        let size = self.spec.size_of(index);
        let op = match self.spec.action {
            FilesAction::Create => FileOp::Create {
                entry,
                size,
                sync: self.spec.sync_each,
            },
            FilesAction::Stat => FileOp::Stat { entry, size },
            FilesAction::Delete => FileOp::Unlink { entry },
        };
        (op, entry.directory)
    }

    fn after_files(&self) -> Stage {
        match self.spec.action {
            FilesAction::Create => Stage::SyncAll,
            FilesAction::Stat => Stage::Over,
            FilesAction::Delete => Stage::RemoveDirectories(0),
        }
    }
}

impl Script for Files {
    fn step(&mut self, _: Instant) -> Step {
        let directories = self.spec.directories.max(1);
        let uncounted = |op| Some((Op::File(op), false));
        match self.stage {
            Stage::MakeDirectories(directory) if directory < directories => {
                self.stage = Stage::MakeDirectories(directory + 1);
                uncounted(FileOp::MakeDirectory { directory })
            }
            Stage::MakeDirectories(_) => {
                self.stage = Stage::Files(0);
                self.step(Instant::ZERO)
            }
            Stage::Files(i) if i < self.spec.count => {
                let (op, directory) = self.file(i);
                self.stage = if self.spec.sync_each && self.spec.action != FilesAction::Stat {
                    Stage::SyncDirectory {
                        next: i + 1,
                        directory,
                    }
                } else {
                    Stage::Files(i + 1)
                };
                Some((Op::File(op), true))
            }
            Stage::Files(_) => {
                self.stage = self.after_files();
                self.step(Instant::ZERO)
            }
            Stage::SyncDirectory { next, directory } => {
                self.stage = Stage::Files(next);
                uncounted(FileOp::SyncDirectory { directory })
            }
            Stage::RemoveDirectories(directory) if directory < directories => {
                self.stage = Stage::RemoveDirectories(directory + 1);
                uncounted(FileOp::RemoveDirectory { directory })
            }
            Stage::RemoveDirectories(_) => {
                self.stage = Stage::SyncAll;
                self.step(Instant::ZERO)
            }
            Stage::SyncAll => {
                self.stage = Stage::Over;
                if self.spec.sync_end {
                    uncounted(FileOp::SyncAll)
                } else {
                    None
                }
            }
            Stage::Over => None,
        }
    }

    fn expected(&self) -> Expected {
        let bytes = match self.spec.action {
            FilesAction::Delete => 0,
            FilesAction::Create | FilesAction::Stat => self.spec.bytes(),
        };
        Expected {
            ops: Some(u64::from(self.spec.count)),
            bytes: Some(bytes),
            time: None,
        }
    }
}
