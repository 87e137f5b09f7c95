//! Members of a pool of ZFS that are filled anew: put in by `zpool replace`, and resilvered by the kernel.
use super::super::build::{Context, Stage};
use super::super::check::{HEARS, Progress, STALLED, Status, WHOLE};
use super::super::partition;
use super::super::sync::SyncState;
use super::{Filled, Refilled};
use crate::error::{HostError, Result};
use crate::sysfs;
use crate::tool::Tool;
use raidlab_core::units::SECTOR;
use raidlab_io::observe::Roots;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the pool is asked until its resilver has begun: what that has done by then is not in its time.
const SOON: Duration = Duration::from_millis(50);
/// How often its devices are asked how much they were written, which costs little, and ZFS, which costs a slow processor what the
/// resilver would do with it: 43 MiB/s instead of 59, asked ten times a second in a guest.
const POLL: Duration = Duration::from_millis(100);
const RARELY: Duration = Duration::from_secs(10);
/// A resilver has begun within this time, and one that has ended has given its members back: each waits for a transaction group, which
/// ZFS ends after five seconds at the latest (`zfs_txg_timeout`), and a slow disk later.
const TURNS: Duration = Duration::from_secs(30);
/// Sectors written, of the words in a device's `stat` (Documentation/block/stat.rst).
const WRITTEN: usize = 6;

/// The command line that puts a new member in the place of the old one. Its smallest block is told, as when the pool was made.
pub(in super::super) fn words(member: &Refilled, name: &str, ashift: Option<u32>) -> Vec<String> {
    let mut words: Vec<String> = ["zpool", "replace", "-f"].map(str::to_owned).to_vec();
    if let Some(ashift) = ashift {
        words.extend(["-o".to_owned(), format!("ashift={ashift}")]);
    }
    let node = partition::node(&member.path.display().to_string());
    words.extend([name.to_owned(), node]);
    words
}

/// A member that is resilvered.
#[derive(Debug)]
struct Resilvered {
    path: PathBuf,
    /// Number of its vdev.
    vdev: usize,
    /// What the kernel tells of the device, and sectors that had been written to it before.
    stat: PathBuf,
    before: u64,
}

/// A resilver that goes on.
#[derive(Debug)]
pub(in super::super) struct Resilver {
    pool: String,
    members: Vec<Resilvered>,
}

impl Resilver {
    /// Of these members, by their kernel names, which are put in now; so many make a vdev.
    pub(super) fn new(
        roots: &Roots,
        pool: &str,
        members: &[(&Refilled, &str)],
        each: usize,
    ) -> Self {
        let member = |(refilled, name): &(&Refilled, &str)| Resilvered {
            path: refilled.path.clone(),
            vdev: refilled.member / each,
            stat: roots.block(name).join("stat"),
            before: 0,
        };
        let mut resilver = Self {
            pool: pool.to_owned(),
            members: members.iter().map(member).collect(),
        };
        resilver.count_from_now();
        resilver
    }

    fn count_from_now(&mut self) {
        for member in &mut self.members {
            member.before = written(&member.stat);
        }
    }

    /// Puts one in.
    pub(super) fn replace(&self, member: &Refilled, ashift: Option<u32>) -> Result<()> {
        Tool::new(words(member, &self.pool, ashift)).run().map(drop)
    }

    /// Waits until it has begun, for all members. Those that came while the first was being filled would wait until that is whole
    /// (feature `resilver_defer`, since 0.8): the resilver begins anew with all of them, and what the first got by then is not counted.
    pub(super) fn begun(&mut self, context: &mut Context<'_>) -> Result<()> {
        let mut status = self.look(context)?;
        if self.members.len() > 1 && status.deferred {
            Tool::new(["zpool", "resilver", &self.pool]).run()?;
            let asked = Instant::now();
            while status.deferred && asked.elapsed() < TURNS {
                std::thread::sleep(SOON);
                self.count_from_now();
                status = self.look(context)?;
            }
        }
        if status.deferred {
            return Err(HostError::Unexpected(format!(
                "of the new members of {} one waits until another is whole",
                self.pool
            )));
        }
        Ok(())
    }

    /// Waits until all are whole; bytes that the new members of each vdev were written: they get as much at the same time, and are counted
    /// once.
    pub(super) fn wait(&self, context: &mut Context<'_>) -> Result<Vec<u64>> {
        let mut progress = Progress::new(STALLED);
        while !self.look(context)?.is_whole() {
            self.wait_for_its_end(&mut progress, context)?;
        }
        Ok(self.filled())
    }

    /// Waits for the kernel's word that it has ended. Where zpool cannot (before ZFS 2.0) it is asked a little later.
    fn wait_for_its_end(
        &self,
        progress: &mut Progress<(u64, Vec<String>)>,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let words = ["zpool", "wait", "-t", "resilver", &self.pool];
            let tool = Tool::new(words).cancelled_by(&stop);
            let waits = scope.spawn(move || tool.run());
            let mut watch = Watch::default();
            let told = loop {
                if waits.is_finished() {
                    break Ok(());
                }
                let told = self.tell(&mut watch, progress, context);
                if told.is_err() {
                    break told;
                }
                std::thread::sleep(POLL);
            };
            stop.store(true, Ordering::Relaxed);
            let waited = waits.join();
            if told.is_ok() && !matches!(waited, Ok(Ok(_))) {
                std::thread::sleep(10 * POLL);
            }
            told
        })
    }

    fn tell(
        &self,
        watch: &mut Watch,
        progress: &mut Progress<(u64, Vec<String>)>,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let bytes = self.filled().iter().sum();
        if watch.asked.elapsed() > RARELY {
            watch.asked = Instant::now();
            let status = self.ask()?;
            let done = status.done.filter(|done| *done > 0);
            watch.expected = done.map_or(0, |done| bytes / done * WHOLE);
            watch.amounts = status.amounts;
        }
        let what = format!("resilver of {}", self.told());
        // Nothing is written as long as ZFS only gathers what it is to read.
        progress.is_at(&what, Some((bytes, watch.amounts.clone())))?;
        context.tell(&Stage {
            what,
            done: bytes,
            of: watch.expected,
        })
    }

    fn filled(&self) -> Vec<u64> {
        let mut of_vdevs: BTreeMap<usize, u64> = BTreeMap::new();
        for member in &self.members {
            let bytes = written(&member.stat).saturating_sub(member.before) * SECTOR;
            let most = of_vdevs.entry(member.vdev).or_default();
            *most = bytes.max(*most);
        }
        of_vdevs.into_values().collect()
    }

    fn told(&self) -> String {
        let members = self.members.iter();
        let paths: Vec<String> = members
            .map(|member| member.path.display().to_string())
            .collect();
        paths.join(", ")
    }

    /// How far it is.
    pub(super) fn state(&self, alone: Option<&Filled>) -> Result<SyncState> {
        let status = self.settled(&mut || Ok(()))?;
        let vdevs: BTreeSet<usize> = self.members.iter().map(|member| member.vdev).collect();
        let counted = |bytes: u64| bytes * vdevs.len() as u64 / self.members.len().max(1) as u64;
        let left = if status.is_whole() {
            0
        } else {
            self.members.len()
        };
        Ok(SyncState {
            action: Some(if left == 0 { "idle" } else { "resilver" }.to_owned()),
            degraded: left as u64,
            done: status.resilvered.map(counted),
            total: alone.map(|alone| alone.bytes.iter().sum()),
        })
    }

    fn look(&self, context: &mut Context<'_>) -> Result<Status> {
        let what = format!("resilver of {}", self.told());
        self.settled(&mut || {
            context.tell(&Stage {
                what: what.clone(),
                done: 0,
                of: 0,
            })
        })
    }

    fn ask(&self) -> Result<Status> {
        let asked = Tool::new(["zpool", "status", "-p", &self.pool]).within(HEARS);
        Ok(Status::parse(&asked.run()?.out))
    }

    /// What ZFS says of the pool, when it resilvers, or is whole.
    fn settled(&self, meanwhile: &mut dyn FnMut() -> Result<()>) -> Result<Status> {
        let begun = Instant::now();
        loop {
            let status = self.ask()?;
            if status.resilvers() || status.is_whole() {
                return Ok(status);
            }
            if begun.elapsed() > TURNS {
                return Err(HostError::Unexpected(format!(
                    "the resilver of {} has not made {} whole: it is {}, and ZFS says '{}'",
                    self.told(),
                    self.pool,
                    status.state,
                    status.scan
                )));
            }
            meanwhile()?;
            std::thread::sleep(SOON);
        }
    }
}

/// When ZFS was asked last how far it is, and what followed: how many bytes it will be (0 is not known), and how much it had scanned.
struct Watch {
    asked: Instant,
    expected: u64,
    amounts: Vec<String>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            asked: Instant::now(),
            expected: 0,
            amounts: Vec::new(),
        }
    }
}

/// Sectors that were written to a device since it came.
fn written(stat: &Path) -> u64 {
    let text = sysfs::text(stat).unwrap_or_default();
    let word = text.split_whitespace().nth(WRITTEN);
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}
