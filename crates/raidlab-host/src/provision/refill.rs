//! Members of a btrfs that are filled anew, as `btrfs replace` does, one after the other.
use super::build::{Built, Context, Stage};
use super::step::Step;
use super::sync::SyncState;
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::journal::{Journal, Undo};
use crate::tool::Tool;
use rustix::ioctl::{Updater, ioctl, opcode};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is asked how much is done: what was done since the last time is not counted.
const POLL: Duration = Duration::from_millis(20);
/// A replacement has begun, or has failed, within this time.
const BEGINS: Duration = Duration::from_secs(10);
/// One that is cancelled has ended within this time.
const ENDS: Duration = Duration::from_secs(20);
/// `BTRFS_IOC_SCRUB_PROGRESS` (linux/btrfs.h).
const PROGRESS: rustix::ioctl::Opcode = opcode::read_write::<Asked>(0x94, 29);

/// `struct btrfs_ioctl_scrub_args`: the device's number, three words that are not read, the figures, and room for more.
type Asked = [u64; 128];
/// Where the bytes of data and of metadata are that were gone through (`data_bytes_scrubbed`, `tree_bytes_scrubbed`).
const DATA: usize = 6;
const METADATA: usize = 7;

/// What is replaced, as a step has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refilled {
    /// The member.
    pub member: usize,
    /// Its path.
    pub path: PathBuf,
}

impl Refilled {
    /// Number of the device within its file system: mkfs counts from 1, as members are given.
    const fn id(&self) -> u64 {
        self.member as u64 + 1
    }

    /// The command line. What is on the device is not discarded, which would change what it holds.
    pub(super) fn words(&self, point: &Path) -> Vec<String> {
        let (id, path) = (self.id().to_string(), self.path.display().to_string());
        let point = point.display().to_string();
        let words = ["btrfs", "replace", "start", "-B", "-f", "-K"].into_iter();
        words
            .chain([id.as_str(), &path, &point])
            .map(str::to_owned)
            .collect()
    }
}

/// Members that are being filled.
#[derive(Debug)]
pub(super) struct Refill {
    point: PathBuf,
    members: Vec<Refilled>,
    /// About so many bytes are to be copied.
    expected: u64,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// No further member is begun with.
    stop: AtomicBool,
    /// How many are whole.
    whole: AtomicUsize,
    /// Why the rest are not.
    failed: Mutex<Option<String>>,
}

/// Members that were filled with nothing else going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// How long that took.
    pub(super) took: Duration,
    /// Bytes of each.
    pub(super) bytes: Vec<u64>,
}

impl Refill {
    /// Begins: a thread has the tool run for each, for one of them at a time is filled. What holds a member is let go of when it is its
    /// turn: until then it is empty, and nobody else is to take it.
    fn begin(point: &Path, members: &[Refilled], held: Vec<Option<File>>, expected: u64) -> Self {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let each: Vec<Vec<String>> = members.iter().map(|member| member.words(point)).collect();
        let thread = std::thread::spawn(move || {
            for (words, held) in each.into_iter().zip(held) {
                if theirs.stop.load(Ordering::Acquire) {
                    return;
                }
                drop(held);
                if let Err(error) = Tool::new(words).run() {
                    let mut failed = theirs.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    *failed = Some(error.to_string());
                    return;
                }
                theirs.whole.fetch_add(1, Ordering::Release);
            }
        });
        Self {
            point: point.to_owned(),
            members: members.to_vec(),
            expected,
            shared,
            thread,
        }
    }

    fn whole(&self) -> usize {
        self.shared.whole.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<()> {
        let failed = self.shared.failed.lock();
        match failed.unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(error) => Err(HostError::Unexpected(error.clone())),
            None => Ok(()),
        }
    }

    /// Ends it. A tool that has just been started may not have begun yet, and is not to begin later.
    pub(super) fn end(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < ENDS {
            // It fails where nothing is under way.
            let cancel = [
                "btrfs",
                "replace",
                "cancel",
                &self.point.display().to_string(),
            ];
            let _ = Tool::new(cancel).within(ENDS).run();
            std::thread::sleep(POLL);
        }
    }

    /// Waits until it has begun.
    fn begun(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < BEGINS && self.whole() == 0 {
            self.check()?;
            if done(&self.point, self.members[0].id()).is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.check()
    }

    /// Waits until all are whole; bytes that each was filled with.
    pub(super) fn wait(&self, context: &mut Context<'_>) -> Result<Vec<u64>> {
        let mut bytes = vec![0; self.members.len()];
        loop {
            let whole = self.whole();
            if whole == self.members.len() {
                return Ok(bytes);
            }
            self.check()?;
            if let Some(done) = done(&self.point, self.members[whole].id()) {
                bytes[whole] = done;
            }
            context.tell(&Stage {
                what: format!("filling {}", self.members[whole].path.display()),
                done: bytes.iter().sum(),
                of: self.expected,
            })?;
            std::thread::sleep(POLL);
        }
    }

    /// How far it is; what whole members were filled with by themselves is known.
    fn state(&self, alone: Option<&Filled>) -> SyncState {
        let whole = self.whole();
        let all = alone.map_or(&[][..], |alone| &alone.bytes);
        let now = self.members.get(whole);
        let now = now.and_then(|member| done(&self.point, member.id()));
        let before: u64 = all.iter().take(whole).sum();
        let left = self.members.len() - whole;
        SyncState {
            action: Some(if left == 0 { "idle" } else { "replace" }.to_owned()),
            degraded: left as u64,
            done: Some(before + now.unwrap_or(0)),
            total: alone.map(|alone| alone.bytes.iter().sum()),
        }
    }
}

/// Bytes of a member that is replaced which were gone through; `None` when it is not being replaced.
fn done(point: &Path, id: u64) -> Option<u64> {
    let directory = File::open(point).ok()?;
    let mut asked: Asked = [0; 128];
    asked[0] = id;
    // SAFETY: the number is that of a call which reads and writes one struct btrfs_ioctl_scrub_args, of 1024 bytes.
    let said = unsafe { ioctl(&directory, Updater::<PROGRESS, Asked>::new(&mut asked)) };
    said.ok()?;
    Some(asked[DATA] + asked[METADATA])
}

impl Built {
    /// Whether new members get what is in use when the phases begin, so that the files of the first phase have to be there before.
    #[must_use]
    pub fn awaits_files(&self) -> bool {
        !self.plan.fill.is_empty()
    }

    /// How far all is that goes on beside the phases.
    ///
    /// # Errors
    /// What it has failed of.
    pub fn syncs(&self, roots: &raidlab_io::observe::Roots) -> Result<Vec<SyncState>> {
        let numbers = self.busy_arrays().into_iter();
        let mut states: Vec<SyncState> = numbers.map(|n| SyncState::of(roots, n)).collect();
        if let Some(refill) = &self.refill {
            refill.check()?;
            states.push(refill.state(self.filled.as_ref()));
        }
        Ok(states)
    }

    /// Has the members fail that are to be replaced, and fills them with nothing else going on: before the phases, for these change
    /// what is in use. Does nothing to other arrays.
    ///
    /// # Errors
    /// When a step fails.
    pub fn fill_alone(
        &mut self,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        for step in self.plan.fill.clone() {
            self.take(&step, claims, journal, context)?;
            if let (Step::Refill { .. }, Some(refill)) = (&step, &self.refill) {
                let begun = Instant::now();
                let bytes = refill.wait(context)?;
                let took = begun.elapsed();
                self.filled = Some(Filled { took, bytes });
            }
        }
        Ok(())
    }

    /// Begins to fill members of a file system.
    pub(super) fn refill(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
    ) -> Result<()> {
        let Step::Refill {
            point,
            uuid,
            members,
            profile,
            of,
        } = step
        else {
            return Ok(());
        };
        let mut held = Vec::new();
        for refilled in members {
            let claim = claims.get_mut(refilled.member);
            held.push(claim.map_or(Ok(None), Claim::hand_over)?);
        }
        let used = rustix::fs::statvfs(point).map_or(0, |found| {
            (found.f_blocks - found.f_bfree).saturating_mul(found.f_frsize)
        });
        let of_each = used * profile.copies() as u64 / (*of).max(1) as u64;
        let expected = of_each * members.len() as u64;
        let undo = Undo::Replacement {
            point: point.clone(),
            uuid: self.filled_word(uuid),
        };
        let step = journal.intend("replacement of members of btrfs", &[undo])?;
        let refill = self
            .refill
            .insert(Refill::begin(point, members, held, expected));
        refill.begun()?;
        for refilled in members.iter().take(1) {
            if let Some(claim) = claims.get(refilled.member) {
                claim.held_by(&[])?;
            }
        }
        journal.done(step)
    }
}
