//! What was done to the machine and how to undo it, on disk before it is done.
//!
//! One file a run, in raidlab's state directory, a line a record, each synced before the step that it announces. The
//! file is locked as long as its run lives; a file that can be locked belongs to a run that is gone, and whoever finds
//! it undoes what it says, last step first. What is undone is found by recorded identity (serial number, size, inode,
//! uuid), never by a name that something else may bear by now. Undoing is the same code whether a run ends well, is
//! interrupted or was killed, and may itself be cut short and done again.
mod left;
mod perform;
mod process;
mod undo;

pub use left::{forget_point, leftovers};
#[cfg(test)]
pub(crate) use perform::foreign;
pub use process::Process;
pub use undo::{Setting, Undo, Undone};

use crate::error::{HostError, Result};
use crate::identity::Identity;
use raidlab_io::observe::Roots;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::ops::{Range, RangeBounds};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const ENDING: &str = "journal";

/// Number of a step within its journal.
pub type StepNumber = u64;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
enum Entry {
    /// The first: whose journal it is.
    Begin {
        version: u32,
        process: Process,
        command: String,
    },
    /// A step is about to be taken.
    Intend {
        step: StepNumber,
        what: String,
        undo: Vec<Undo>,
    },
    /// It was taken; with what undoes it, where that is known better now.
    Done {
        step: StepNumber,
        undo: Option<Vec<Undo>>,
    },
    /// What is on its several members is about to be cleared, one after the other.
    Clears { step: StepNumber },
    /// It is undone.
    Undone { step: StepNumber },
}

const VERSION: u32 = 1;

/// A step that is not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    what: String,
    undo: Vec<Undo>,
    /// It was taken to its end.
    taken: bool,
    /// A part of it is undone.
    partly: bool,
    /// Its members were about to be cleared, and some of them may be.
    clears: bool,
}

/// The journal of a run. Dropping it does not undo anything: its file stays for the next run or `raidlab clean`.
#[derive(Debug)]
pub struct Journal {
    id: String,
    path: PathBuf,
    file: File,
    /// Bytes of its whole lines.
    end: u64,
    process: Process,
    /// Its run has gone, and what it left is undone by another one.
    taken_over: bool,
    /// Someone has put something into what it made, which is looked into as if its run were gone.
    doubted: bool,
    /// What is on the members by now was mounted, so that it was made to its end.
    mounted: bool,
    next: StepNumber,
    open: BTreeMap<StepNumber, Step>,
}

/// Its lock ends with it, not when the last one has closed its file: a program that another thread is just starting has it, too.
impl Drop for Journal {
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// What came of undoing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was undone, in words.
    pub undone: Vec<String>,
    /// What could not be, and why.
    pub left: Vec<String>,
}

impl Journal {
    /// A new journal in a directory, which is made when it is not there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(directory: &Path, command: &str) -> Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(HostError::call("make", directory))?;
        let (id, path, file) = loop {
            let made = new_file(directory)?;
            if is_own(&made.2).map_err(HostError::call("lock", &made.1))? {
                break made;
            }
        };
        let process = Process::own();
        let mut journal = Self {
            id,
            path,
            file,
            end: 0,
            process: process.clone(),
            taken_over: false,
            doubted: false,
            mounted: false,
            next: 0,
            open: BTreeMap::new(),
        };
        journal.append(&Entry::Begin {
            version: VERSION,
            process,
            command: command.to_owned(),
        })?;
        sync_directory(directory)?;
        Ok(journal)
    }

    /// Its name: random, so that what is named after it is met by no other.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number that the next step will have: what is done from here on can be undone by itself.
    #[must_use]
    pub fn mark(&self) -> StepNumber {
        self.next
    }

    /// Someone has put something into what this run made while it lives: from here on it is looked into before it is undone, as what a run
    /// left that was killed.
    pub fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Announces a step with what undoes it. It is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written; the step must not be taken then.
    pub fn intend(&mut self, what: &str, undo: &[Undo]) -> Result<StepNumber> {
        let step = self.next;
        self.append(&Entry::Intend {
            step,
            what: what.to_owned(),
            undo: undo.to_vec(),
        })?;
        Ok(step)
    }

    /// A step was taken as announced.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn done(&mut self, step: StepNumber) -> Result<()> {
        self.append(&Entry::Done { step, undo: None })
    }

    /// A step was taken, and what undoes it is known better now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn done_with(&mut self, step: StepNumber, undo: &[Undo]) -> Result<()> {
        let undo = Some(undo.to_vec());
        self.append(&Entry::Done { step, undo })
    }

    /// Undoes all steps from a mark on, the last first. What cannot be undone is told and stays in the journal.
    ///
    /// # Errors
    /// When the journal cannot be written; all is undone nevertheless.
    pub fn undo_since(&mut self, roots: &Roots, mark: StepNumber) -> Result<Report> {
        let (report, written) = self.undo_among(roots, mark..);
        written.map(|()| report)
    }

    /// Undoes these steps alone, the last first.
    ///
    /// # Errors
    /// When the journal cannot be written; all is undone nevertheless.
    pub fn undo_steps(&mut self, roots: &Roots, steps: Range<StepNumber>) -> Result<Report> {
        let (report, written) = self.undo_among(roots, steps);
        written.map(|()| report)
    }

    /// What was undone of these steps, and whether it could be written down.
    fn undo_among(
        &mut self,
        roots: &Roots,
        among: impl RangeBounds<StepNumber>,
    ) -> (Report, Result<()>) {
        let mut report = Report::default();
        let mut written = Ok(());
        let mut run = self.as_run();
        let steps: Vec<StepNumber> = self
            .open
            .range(among)
            .map(|(step, _)| *step)
            .rev()
            .collect();
        for number in steps {
            let Some(step) = self.open.get(&number).cloned() else {
                continue;
            };
            let left = report.left.len();
            let mut rest = step.undo.clone();
            for undo in &step.undo {
                let before = &mut || self.announce_clearing(number, &mut written);
                match perform::perform(undo, roots, &mut run, step.taken, before) {
                    Ok(Undone::Nothing) => {}
                    Ok(Undone::Done(what)) => {
                        report.undone.push(what);
                        rest.retain(|other| other != undo);
                    }
                    Ok(Undone::Left(why)) => report.left.push(why),
                    Err(error) => report.left.push(format!("{}: {error}", step.what)),
                }
            }
            let entry = if report.left.len() == left {
                Some(Entry::Undone { step: number })
            } else {
                // A member that comes back later is known to be the rest of what raidlab has cleared.
                let shorter = members_of(&rest).count() < members_of(&step.undo).count();
                shorter.then_some(Entry::Done {
                    step: number,
                    undo: Some(rest),
                })
            };
            if let Some(entry) = entry {
                self.write_down(&entry, &mut written);
            }
        }
        (report, written)
    }

    /// That several members of a step are going to be cleared: whoever comes after a `kill -9` knows what others lack.
    fn announce_clearing(&mut self, number: StepNumber, written: &mut Result<()>) {
        let step = self.open.get(&number);
        if step.is_some_and(|step| !step.clears && members_of(&step.undo).nth(1).is_some()) {
            self.write_down(&Entry::Clears { step: number }, written);
        }
    }

    /// On a full disk: what fills it is mostly what is still to be undone, and undoing a thing twice does no harm.
    fn write_down(&mut self, entry: &Entry, written: &mut Result<()>) {
        if let Err(error) = self.append(entry) {
            self.apply(entry);
            if written.is_ok() {
                *written = Err(error);
            }
        }
    }

    fn as_run(&self) -> perform::Run {
        let all = self.open.values().flat_map(|step| &step.undo);
        perform::Run {
            process: self.process.clone(),
            // Those of the members, too, which are the last to be undone.
            uuids: self.uuids(),
            gone: self.taken_over || self.doubted,
            stopped: Vec::new(),
            kept: Vec::new(),
            members: members_of(all).cloned().collect(),
            mounted: self.mounted,
            partly: self.open.values().any(|step| step.partly),
            clears: self.open.values().any(|step| step.clears),
            stay: Vec::new(),
        }
    }

    /// All uuids by which what is on the members is known as this run's.
    fn uuids(&self) -> Vec<String> {
        let all = self.open.values().flat_map(|step| &step.undo);
        let given = all.filter_map(|undo| match undo {
            Undo::Contents { uuids, .. } => Some(uuids.clone()),
            _ => None,
        });
        given.flatten().collect()
    }

    /// Undoes all that is left and removes the journal when nothing is; that it cannot be written is told among what stays.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn finish(mut self, roots: &Roots) -> Result<Report> {
        let (mut report, mut written) = self.undo_among(roots, 0..);
        if !self.open.is_empty() && !report.undone.is_empty() {
            // What stood in the way may have been undone behind it, such as a file that could not be cleared and is no longer there.
            let (again, again_written) = self.undo_among(roots, 0..);
            written = written.and(again_written);
            report.undone.extend(again.undone);
            report.left = again.left;
        }
        if self.open.is_empty() {
            std::fs::remove_file(&self.path).map_err(HostError::call("remove", &self.path))?;
        } else if let Err(error) = written {
            // In place of the report it would hide what stays.
            report.left.push(format!(
                "{error}: what has been undone is written down nowhere, and 'raidlab clean' looks for it again"
            ));
        }
        Ok(report)
    }

    fn append(&mut self, entry: &Entry) -> Result<()> {
        let mut line = serde_json::to_vec(entry).map_err(|error| {
            HostError::missing(
                format!("this cannot be written into the journal, which is text: {error}"),
                "give directories (--loop-dir, HOME, XDG_STATE_HOME) whose names are UTF-8",
            )
        })?;
        line.push(b'\n');
        let write = || {
            // What a full disk has cut off would make the lines behind it unreadable.
            if self.file.metadata()?.len() != self.end {
                self.file.set_len(self.end)?;
            }
            (&self.file).write_all(&line)?;
            self.file.sync_data()
        };
        write().map_err(HostError::call("write", &self.path))?;
        self.end += line.len() as u64;
        self.apply(entry);
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Begin { process, .. } => self.process = process.clone(),
            Entry::Intend { step, what, undo } => {
                self.next = step + 1;
                // Members that are written on anew carry what has not been mounted yet.
                let before = self.open.values().flat_map(|step| &step.undo);
                if members_of(undo).next().is_some() && members_of(before).next().is_none() {
                    self.mounted = false;
                }
                let mounts = |undo: &Undo| matches!(undo, Undo::Mount { .. } | Undo::Pool { .. });
                self.mounted |= undo.iter().any(mounts);
                let announced = Step {
                    what: what.clone(),
                    undo: undo.clone(),
                    taken: false,
                    partly: false,
                    clears: false,
                };
                self.open.insert(*step, announced);
            }
            Entry::Done { step, undo } => {
                if let Some(open) = self.open.get_mut(step) {
                    open.taken = true;
                    if let Some(undo) = undo {
                        let shorter = members_of(undo).count() < members_of(&open.undo).count();
                        open.partly |= shorter;
                        open.undo.clone_from(undo);
                    }
                }
            }
            Entry::Clears { step } => {
                if let Some(open) = self.open.get_mut(step) {
                    open.clears = true;
                }
            }
            Entry::Undone { step } => {
                self.open.remove(step);
            }
        }
    }
}

/// The members that something of this was written on.
fn members_of<'u>(undo: impl IntoIterator<Item = &'u Undo>) -> impl Iterator<Item = &'u Identity> {
    undo.into_iter().filter_map(|undo| match undo {
        Undo::Contents { member, .. } => Some(member),
        _ => None,
    })
}

/// Locks a new journal. Who looks for those of runs that are gone may have found it before it was locked, and removed it:
/// what is written to it then would be found by nobody.
fn is_own(file: &File) -> std::io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
    }
}

fn new_file(directory: &Path) -> Result<(String, PathBuf, File)> {
    loop {
        let id = random_name();
        let path = directory.join(format!("{id}.{ENDING}"));
        let opened = OpenOptions::new()
            .create_new(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => return Ok((id, path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(HostError::call("make", &path)(error)),
        }
    }
}

/// Eight hexadecimal digits from the standard library's random keys.
fn random_name() -> String {
    format!("{:08x}", RandomState::new().build_hasher().finish() >> 32)
}

fn sync_directory(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(HostError::call("sync", path))
}

#[cfg(test)]
mod tests;
