//! bonnie: a large file by character and by block, random seeks, and many small files.
use super::plan::{call_size, calls, count};
use super::setting::{Settings, settings, words};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::op::OpenMode;
use crate::phase::{Counted, Evidence, Phase};
use crate::time::Span;
use crate::units::{Bytes, KIB};
use crate::workload::spec::{
    CallAction, CallsSpec, Durable, FilesAction, FilesSpec, Handle, PassAction, PassSpec,
    WorkloadSpec,
};
use serde::{Deserialize, Serialize};

const NAME: &str = "bonnie";
/// bonnie++ 2.00a writes this many characters whatever the size of the file.
const CHARACTERS_2: Bytes = Bytes::mib(3);
/// Seeks are extended at most to this many times their number.
const EXTENSION: u64 = 16;
/// Seed of the sizes of the small files.
const SIZES: u64 = 0x626f_6e6e_6965;

/// How characters are written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Characters {
    /// `putc` and `getc` on a buffered stream over the whole file, as bonnie++ 1.x.
    #[default]
    Stream,
    /// One system call a character, over 3 MiB, as bonnie++ 2.00a.
    Calls,
}
words!(Characters { "stream" => Self::Stream, "calls" => Self::Calls });

/// Settings of the bonnie profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Bonnie {
    /// Size of the file; twice the memory when not given.
    pub size: Option<Bytes>,
    /// Bytes of one call; 8 KiB.
    pub chunk: Bytes,
    /// Leaves the phases by character out.
    pub fast: bool,
    /// How characters are written and read.
    pub characters: Characters,
    /// Bytes of the phases by character; the file's size for a stream and 3 MiB for calls when not
    /// given.
    pub characters_size: Option<Bytes>,
    /// Seeks of all seekers together; 8192.
    pub seeks: u64,
    /// Number of seekers; 5.
    pub seekers: u32,
    /// Seeking goes on for this long at least; 0.5 s.
    pub seek_time: Span,
    /// Small files in units of 1024; 16. 0 leaves their phases out.
    pub files: u32,
    /// Largest small file; 0.
    pub file_size_max: Bytes,
    /// Smallest small file; 0.
    pub file_size_min: Bytes,
    /// Directories of the small files; 1.
    pub directories: u32,
    /// Everything made durable after each write and each small file.
    pub fsync_writes: bool,
    /// The file is put out of the cache before it is read.
    pub cold: bool,
    /// Past the page cache; bonnie++ has this for writing only.
    pub direct: bool,
}

impl Default for Bonnie {
    fn default() -> Self {
        Self {
            size: None,
            chunk: Bytes::kib(8),
            fast: false,
            characters: Characters::Stream,
            characters_size: None,
            seeks: 8192,
            seekers: 5,
            seek_time: Span::from_millis(500),
            files: 16,
            file_size_max: Bytes(0),
            file_size_min: Bytes(0),
            directories: 1,
            fsync_writes: false,
            cold: true,
            direct: false,
        }
    }
}

settings!(Bonnie {
    "size" => size, "SIZE", "size of the file (default: twice the memory)";
    "chunk" => chunk, "SIZE", "bytes of one call (default: 8 KiB)";
    "fast" => fast, "yes|no", "leave out the phases by character (default: no)";
    "characters" => characters, "stream|calls", "putc and getc on a buffered stream as bonnie++ 1.x, or a system call each as 2.00a (default: stream)";
    "characters-size" => characters_size, "SIZE", "bytes by character (default: the file's size; 3 MiB for calls)";
    "seeks" => seeks, "COUNT", "seeks of all seekers together (default: 8192)";
    "seekers" => seekers, "1..1024", "seekers (default: 5)";
    "seek-time" => seek_time, "TIME", "go on seeking at least so long, to at most 16 times the seeks (default: 500ms; 0 as bonnie++)";
    "files" => files, "0..1048576", "small files in units of 1024; 0: none (default: 16)";
    "file-size-max" => file_size_max, "SIZE", "largest small file (default: 0)";
    "file-size-min" => file_size_min, "SIZE", "smallest small file (default: 0)";
    "directories" => directories, "1..100000", "directories of the small files (default: 1)";
    "fsync-writes" => fsync_writes, "yes|no", "make every write durable, as -b (default: no)";
    "cold" => cold, "yes|no", "put the file out of the cache before it is read (default: yes; no as bonnie++)";
    "direct" => direct, "yes|no", "past the page cache (default: no)";
});

/// What the settings come to once the machine is known.
struct Resolved {
    size: Bytes,
    characters: Bytes,
    chunk: u32,
    seekers: u32,
    durable: Durable,
}

impl Bonnie {
    fn resolve(&self, context: &ProfileContext) -> Result<Resolved, ProfileError> {
        let wrong = |setting: &str, why: String| Err(ProfileError::value(NAME, setting, why));
        let chunk = call_size(NAME, "chunk", self.chunk, self.direct, context)?;
        let twice = Bytes(context.memory.0.saturating_mul(2));
        let size = self.size.unwrap_or(twice);
        let whole = Bytes(size.0 / u64::from(chunk) * u64::from(chunk));
        if whole.0 == 0 {
            return wrong(
                "size",
                format!(
                    "{size} is less than one chunk of {}: give a larger size",
                    self.chunk
                ),
            );
        }
        let seekers = count(NAME, "seekers", self.seekers, 1024)?;
        if self.seeks < u64::from(seekers) {
            return wrong(
                "seeks",
                format!(
                    "{} is fewer than one for each of {seekers} seekers",
                    self.seeks
                ),
            );
        }
        count(NAME, "directories", self.directories, 100_000)?;
        if self.files > 0 {
            count(NAME, "files", self.files, 1 << 20)?;
        }
        if self.file_size_min > self.file_size_max {
            return wrong(
                "file-size-min",
                format!(
                    "{} is more than file-size-max, {}",
                    self.file_size_min, self.file_size_max
                ),
            );
        }
        if self.file_size_max > Bytes::gib(1) {
            return wrong("file-size-max", "at most 1 GiB".to_owned());
        }
        let characters = self.characters_size.unwrap_or(match self.characters {
            Characters::Stream => whole,
            Characters::Calls => CHARACTERS_2.min(whole),
        });
        if characters.0 == 0 || characters > whole {
            return wrong(
                "characters-size",
                format!(
                    "{characters} is not from 1 byte to the file's size, {whole}; use fast=yes for none"
                ),
            );
        }
        Ok(Resolved {
            size: whole,
            characters,
            chunk,
            seekers,
            durable: if self.fsync_writes {
                Durable::EveryWrite
            } else {
                Durable::AtEnd
            },
        })
    }

    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        if !matches!(context.place, Place::Directory { .. }) || !context.writable {
            let why = "it makes files of its own, so it needs a directory that can be written; a file or device can be measured with hdparm, dd, random or sequential".to_owned();
            return Err(ProfileError::Place { profile: NAME, why });
        }
        let resolved = self.resolve(context)?;
        let mut told = self.clone();
        told.size = Some(resolved.size);
        told.characters_size = Some(resolved.characters);
        let mut plan = Plan::new(told.shown());
        plan.judge_size(
            resolved.size,
            context.memory,
            self.size.is_some(),
            self.direct,
        );
        self.large_file(&resolved, &mut plan);
        if self.files > 0 {
            self.small_files(&mut plan);
        } else {
            for phase in SMALL {
                plan.skip(phase.0, "files=0");
            }
        }
        // A small file takes a block of 4 KiB or more, and an inode.
        let block = |size: Bytes| Bytes(size.0.next_multiple_of(4 * KIB) + KIB);
        let small = u64::from(self.files) * 1024 * block(self.file_size_max).0;
        plan.space_needed = Bytes(resolved.size.0.max(small));
        if self.files > 0 {
            // The large file, the working directory, and what tells whose it is.
            plan.files_needed = u64::from(self.files) * 1024 + u64::from(self.directories) + 3;
        }
        let larger = if small > resolved.size.0 {
            "files"
        } else {
            "size"
        };
        plan.checked(NAME, larger, context)
    }

    fn pass(&self, resolved: &Resolved, action: PassAction) -> WorkloadSpec {
        let characters = matches!(action, PassAction::PutChars | PassAction::GetChars);
        let creates = matches!(action, PassAction::Write | PassAction::PutChars);
        let mode = if creates {
            OpenMode::Create
        } else {
            OpenMode::Update
        };
        let by_call = characters && self.characters == Characters::Calls;
        WorkloadSpec::Pass(PassSpec {
            handle: Handle::new(0, mode).direct(self.direct && !characters),
            action: match action {
                PassAction::PutChars if by_call => PassAction::Write,
                PassAction::GetChars if by_call => PassAction::Read,
                other => other,
            },
            start: Bytes(0),
            size: if characters {
                resolved.characters
            } else {
                resolved.size
            },
            call: if by_call { 1 } else { resolved.chunk },
            durable: if by_call {
                Durable::AtEnd
            } else {
                resolved.durable
            },
        })
    }

    fn large_file(&self, resolved: &Resolved, plan: &mut Plan) {
        let one = |id: &str, title: &str, action| {
            calls(id, title, Counted::Bytes, vec![self.pass(resolved, action)])
        };
        let written = Evidence::WritesReachDevice;
        let read = |phase: Phase| {
            phase
                .cold(self.cold)
                .needs([0], resolved.size)
                .evidence(Evidence::ReadsReachDevice)
        };
        if self.fast {
            plan.skip("putc", "fast=yes");
        } else {
            let phase = one(
                "putc",
                "Sequential output, per character",
                PassAction::PutChars,
            );
            plan.phases.push(phase.fresh([0]).evidence(written));
        }
        let write = one("block-write", "Sequential output, block", PassAction::Write);
        plan.phases.push(write.fresh([0]).evidence(written));
        let rewrite = one("rewrite", "Sequential output, rewrite", PassAction::Rewrite);
        plan.phases.push(read(rewrite).evidence(Evidence::Both));
        if self.fast {
            plan.skip("getc", "fast=yes");
        } else {
            let phase = one(
                "getc",
                "Sequential input, per character",
                PassAction::GetChars,
            );
            plan.phases.push(read(phase));
        }
        let block_read = one("block-read", "Sequential input, block", PassAction::Read);
        plan.phases.push(read(block_read));
        let seekers = (0..resolved.seekers).map(|i| self.seeker(resolved, i));
        let seeks = calls("seeks", "Random seeks", Counted::Ops, seekers.collect());
        plan.phases.push(read(seeks));
    }

    /// The seeks are shared out beforehand, the first seekers taking what is left over.
    fn seeker(&self, resolved: &Resolved, number: u32) -> WorkloadSpec {
        let n = u64::from(resolved.seekers);
        let share = self.seeks / n + u64::from(u64::from(number) < self.seeks % n);
        WorkloadSpec::Calls(CallsSpec {
            handle: Handle::new(0, OpenMode::Update).direct(self.direct),
            action: CallAction::Seek { rewrite_one_in: 10 },
            size: resolved.size,
            call: resolved.chunk,
            count: share,
            at_least: self.seek_time,
            at_most: share.saturating_mul(EXTENSION),
            durable: resolved.durable,
        })
    }

    fn small_files(&self, plan: &mut Plan) {
        for (id, title, action, ordered) in SMALL {
            let spec = FilesSpec {
                action,
                ordered,
                count: self.files * 1024,
                directories: self.directories,
                size_min: self.file_size_min.0 as u32,
                size_max: self.file_size_max.0 as u32,
                size_seed: SIZES,
                sync_each: self.fsync_writes,
                sync_end: true,
            };
            let jobs = vec![WorkloadSpec::Files(spec)];
            plan.phases.push(calls(id, title, Counted::Ops, jobs));
        }
    }
}

/// The phases of the small files.
const SMALL: [(&str, &str, FilesAction, bool); 6] = [
    ("seq-create", "Sequential create", FilesAction::Create, true),
    ("seq-stat", "Sequential stat", FilesAction::Stat, true),
    ("seq-delete", "Sequential delete", FilesAction::Delete, true),
    ("ran-create", "Random create", FilesAction::Create, false),
    ("ran-stat", "Random stat", FilesAction::Stat, false),
    ("ran-delete", "Random delete", FilesAction::Delete, false),
];
