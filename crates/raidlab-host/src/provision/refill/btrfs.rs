//! Members of a btrfs that are filled anew, as `btrfs replace` does, one after the other.
use super::super::build::{Context, Stage};
use super::super::sync::SyncState;
use super::{Filled, Refilled};
use crate::error::{HostError, Result};
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

/// The command line that replaces a member. What is on the device is not discarded, which would change what it holds.
pub(in super::super) fn words(member: &Refilled, point: &Path) -> Vec<String> {
    let (id, path) = (id(member).to_string(), member.path.display().to_string());
    let point = point.display().to_string();
    let words = ["btrfs", "replace", "start", "-B", "-f", "-K"].into_iter();
    words
        .chain([id.as_str(), &path, &point])
        .map(str::to_owned)
        .collect()
}

/// Number of the device within its file system: mkfs counts from 1, as members are given.
const fn id(member: &Refilled) -> u64 {
    member.member as u64 + 1
}

/// Members that are being replaced.
#[derive(Debug)]
pub(in super::super) struct Replacement {
    point: PathBuf,
    members: Vec<Refilled>,
    /// About so many bytes are to be copied.
    expected: u64,
    /// Of so many pieces on a member (the second) so many have data; parity is made and not counted.
    data_of: (u64, u64),
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

impl Replacement {
    /// Begins: a thread has the tool run for each, for one of them at a time is filled. What holds a member is let go of when it is its
    /// turn: until then it is empty, and nobody else is to take it.
    pub(super) fn begin(
        point: &Path,
        members: &[Refilled],
        held: Vec<Option<File>>,
        (expected, data_of): (u64, (u64, u64)),
    ) -> Self {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let each: Vec<Vec<String>> = members.iter().map(|member| words(member, point)).collect();
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
            data_of,
            shared,
            thread,
        }
    }

    /// Bytes of a member that were gone through; `None` when it is not being replaced.
    fn done(&self, member: &Refilled) -> Option<u64> {
        done(&self.point, id(member)).map(|counted| with_parity(counted, self.data_of))
    }

    fn whole(&self) -> usize {
        self.shared.whole.load(Ordering::Acquire)
    }

    pub(super) fn check(&self) -> Result<()> {
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
    pub(super) fn begun(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < BEGINS && self.whole() == 0 {
            self.check()?;
            if self.done(&self.members[0]).is_some() {
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
            if let Some(done) = self.done(&self.members[whole]) {
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
    pub(super) fn state(&self, alone: Option<&Filled>) -> SyncState {
        let whole = self.whole();
        let all = alone.map_or(&[][..], |alone| &alone.bytes);
        let now = self.members.get(whole);
        let now = now.and_then(|member| self.done(member));
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

/// Bytes with those of parity, which is among data evenly: of so many pieces (the second) so many have data. Metadata has none.
const fn with_parity((data, metadata): (u64, u64), (of, all): (u64, u64)) -> u64 {
    (data as u128 * all as u128 / of as u128) as u64 + metadata
}

/// Bytes of data and of metadata of a member that is replaced which were gone through; `None` when it is not being replaced.
fn done(point: &Path, id: u64) -> Option<(u64, u64)> {
    let directory = File::open(point).ok()?;
    let mut asked: Asked = [0; 128];
    asked[0] = id;
    // SAFETY: the number is that of a call which reads and writes one struct btrfs_ioctl_scrub_args, of 1024 bytes.
    let said = unsafe { ioctl(&directory, Updater::<PROGRESS, Asked>::new(&mut asked)) };
    said.ok()?;
    Some((asked[DATA], asked[METADATA]))
}

#[cfg(test)]
mod tests {
    use super::with_parity;

    #[test]
    fn parity_is_counted_beside_data() {
        assert_eq!(with_parity((300, 20), (1, 1)), 320);
        assert_eq!(with_parity((300, 20), (2, 3)), 470);
        assert_eq!(with_parity((1 << 60, 1), (2, 4)), (1 << 61) + 1);
    }
}
