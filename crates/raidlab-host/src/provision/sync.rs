//! How far a resync or rebuild is, by md's own word.
use super::build::{Context, Stage};
use crate::error::{HostError, Result};
use crate::sysfs;
use raidlab_core::units::SECTOR;
use raidlab_io::observe::Roots;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// How long an array may be idle with members missing before it counts as one that does not become whole: between the
/// creation of a RAID5 and the start of its recovery there is such a moment.
const IDLE: Duration = Duration::from_secs(20);
/// The same when md knows of a member that has failed: if another is there to take its place, it begins at once.
const IDLE_WITH_FAULTY: Duration = Duration::from_secs(1);

/// What an md array is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncState {
    /// `idle`, `resync`, `recover`, `frozen` ...; `None` for levels without redundancy.
    pub action: Option<String>,
    /// Missing members.
    pub degraded: u64,
    /// Bytes done of each member; `None` when nothing is under way.
    pub done: Option<u64>,
    /// Bytes to be done of each member.
    pub total: Option<u64>,
}

impl SyncState {
    /// Of an array by its number.
    #[must_use]
    pub fn of(roots: &Roots, number: u32) -> Self {
        let md = roots.block(&format!("md{number}")).join("md");
        let completed = sysfs::text(&md.join("sync_completed"));
        let (mut done, total) = completed.as_deref().map_or((None, None), parse_completed);
        let mdstat = std::fs::read_to_string(roots.proc.join("mdstat")).unwrap_or_default();
        if let Some(exact) = parse_mdstat(&mdstat, number) {
            done = Some(exact);
        }
        Self {
            action: sysfs::text(&md.join("sync_action")),
            degraded: sysfs::number(&md.join("degraded")).unwrap_or(0),
            done,
            total,
        }
    }

    /// Whether nothing is left to do. Neither word alone says so: a RAID4 that was just made is idle and degraded, one
    /// being filled is busy.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self.action.as_deref() {
            None => true,
            Some(action) => action == "idle" && self.degraded == 0,
        }
    }
}

/// Bytes of each member that an array uses, which is what a rebuild goes through.
pub(super) fn component(roots: &Roots, number: u32) -> Option<u64> {
    let md = roots.block(&format!("md{number}")).join("md");
    sysfs::number(&md.join("component_size"))?.checked_mul(1024)
}

/// `123 / 456` in sectors, `none`, or `delayed`.
fn parse_completed(text: &str) -> (Option<u64>, Option<u64>) {
    let bytes = |text: &str| text.trim().parse::<u64>().ok()?.checked_mul(SECTOR);
    match text.split_once('/') {
        Some((done, total)) => (bytes(done), bytes(total)),
        None => (None, None),
    }
}

/// Bytes done of each member, by `/proc/mdstat`: `sync_completed` is renewed at sixteenths of the whole only, mdstat at
/// each look (`md.c:status_resync`). `None` when nothing is under way in the array.
fn parse_mdstat(text: &str, number: u32) -> Option<u64> {
    let head = format!("md{number} :");
    let lines = text.lines().skip_while(|line| !line.starts_with(&head));
    // The lines of an array go on until an empty one.
    let mut lines = lines.take_while(|line| !line.trim().is_empty());
    let line = lines.find(|line| line.contains("] ") && line.contains("% ("))?;
    let (done, _) = line.split_once("% (")?.1.split_once('/')?;
    done.parse::<u64>().ok()?.checked_mul(1024)
}

/// Waits until an array is whole; returns how long that took.
pub(super) fn wait(context: &mut Context<'_>, number: u32) -> Result<Duration> {
    let begun = Instant::now();
    let mut last_busy = Instant::now();
    loop {
        let state = SyncState::of(context.roots, number);
        if state.is_whole() {
            return Ok(begun.elapsed());
        }
        if state.action.as_deref() != Some("idle") {
            last_busy = Instant::now();
        }
        let idle = last_busy.elapsed();
        let faulty = match idle > IDLE_WITH_FAULTY {
            true => faulty(context.roots, number),
            false => Vec::new(),
        };
        if idle > IDLE || !faulty.is_empty() {
            let known = match faulty.is_empty() {
                true => String::new(),
                false => format!(" ({}: faulty)", faulty.join(", ")),
            };
            return Err(HostError::Unexpected(format!(
                "md{number} does not become whole: {} of its members are missing{known} and nothing is under way; see the \
                 kernel's log (dmesg)",
                state.degraded
            )));
        }
        context.tell(&Stage {
            what: format!("sync of md{number}"),
            done: state.done.unwrap_or(0),
            of: state.total.unwrap_or(0),
        })?;
        std::thread::sleep(POLL);
    }
}

/// How long the bits of a write-intent bitmap are waited for. md clears what was left alone for two of its looks, of five seconds
/// each; what goes on being written to is never clear, and is measured so.
const BITS_CLEAR: Duration = Duration::from_secs(30);

/// Waits until the write-intent bitmap of an array is clear: a new one has all bits set, and so have the places where a file system
/// was just made, so that a phase that began now would pay nothing for the bitmap. The bits of an array that is not whole stay set.
pub(super) fn wait_for_bitmap(context: &mut Context<'_>, number: u32) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < BITS_CLEAR && SyncState::of(context.roots, number).is_whole() {
        let mdstat = std::fs::read_to_string(context.roots.proc.join("mdstat"));
        if bitmap_pages(&mdstat.unwrap_or_default(), number).unwrap_or(0) == 0 {
            return Ok(());
        }
        context.tell(&Stage {
            what: format!("clearing the bitmap of md{number}"),
            done: 0,
            of: 0,
        })?;
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Pages of an array's bitmap with a bit that is set, by `/proc/mdstat`: md keeps none of the others (`md-bitmap.c:md_bitmap_checkfree`).
/// `None` without a bitmap.
fn bitmap_pages(text: &str, number: u32) -> Option<u64> {
    let head = format!("md{number} :");
    let lines = text.lines().skip_while(|line| !line.starts_with(&head));
    let mut lines = lines.take_while(|line| !line.trim().is_empty());
    let told = lines.find_map(|line| line.trim_start().strip_prefix("bitmap: "))?;
    told.split_once('/')?.0.parse().ok()
}

/// The members of an array that md knows as failed, by kernel name.
fn faulty(roots: &Roots, number: u32) -> Vec<String> {
    let md = roots.block(&format!("md{number}")).join("md");
    let members = sysfs::names(&md);
    let members = members.iter().filter_map(|name| name.strip_prefix("dev-"));
    let failed = |member: &&str| {
        let state = sysfs::text(&md.join(format!("dev-{member}/state")));
        state.is_some_and(|state| state.split(',').any(|word| word == "faulty"))
    };
    members.filter(failed).map(str::to_owned).collect()
}

/// Lets an array sync as fast as it can.
pub(super) fn full_speed(roots: &Roots, number: u32) {
    let md = roots.block(&format!("md{number}")).join("md");
    // Levels without redundancy have no such files. 2 GiB/s is more than disks do.
    for limit in ["sync_speed_max", "sync_speed_min"] {
        let _ = sysfs::set(&md.join(limit), "2000000");
    }
}

/// Back to what the system has.
pub(super) fn usual_speed(roots: &Roots, number: u32) {
    let md = roots.block(&format!("md{number}")).join("md");
    for limit in ["sync_speed_min", "sync_speed_max"] {
        let _ = sysfs::set(&md.join(limit), "system");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;
    use std::sync::atomic::AtomicBool;

    /// The kernel's tables with an idle array that lacks a member, and what they say of that.
    fn waited(state: &str) -> (String, Duration) {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(tree.path());
        let md = roots.block("md7").join("md");
        std::fs::create_dir_all(md.join("dev-sdb")).expect("made");
        for (file, text) in [
            ("sync_action", "idle\n"),
            ("degraded", "1\n"),
            ("dev-sdb/state", state),
        ] {
            std::fs::write(md.join(file), text).expect("written");
        }
        let begun = Instant::now();
        let mut context = Context {
            roots: &roots,
            cancel: &AtomicBool::new(false),
            // No test waits for as long as an array may be idle.
            monitor: &mut |_| match begun.elapsed() < Duration::from_secs(4) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            },
        };
        let error = wait(&mut context, 7).expect_err("it is not whole");
        (error.to_string(), begun.elapsed())
    }

    #[test]
    fn an_array_whose_member_has_failed_is_not_waited_for() {
        let (error, took) = waited("faulty,write_error\n");
        assert!(error.contains("sdb") && error.contains("faulty"), "{error}");
        assert!(took < Duration::from_secs(4), "{took:?}");
        // One that is to be filled may begin with it in a moment.
        let (error, _) = waited("spare\n");
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn progress_is_in_sectors() {
        assert_eq!(parse_completed("8 / 100"), (Some(4096), Some(51200)));
        assert_eq!(parse_completed("none"), (None, None));
        assert_eq!(parse_completed("delayed"), (None, None));
    }

    #[test]
    fn mdstat_tells_how_far_an_array_is() {
        let text = "Personalities : [raid6]\nmd126 : active raid5 nbd3[4] nbd1[1]\n      2093056 blocks super 1.2\n\n\
                    md127 : active raid6 nbd3[4] nbd2[2] nbd1[1]\n      2093056 blocks super 1.2 level 6 [4/3] [_UUU]\n      \
                    [==>..................]  recovery = 12.6% (37043/292945) finish=0.1min speed=440K/sec\n      \n\
                    unused devices: <none>\n";
        assert_eq!(parse_mdstat(text, 127), Some(37043 * 1024));
        assert_eq!(parse_mdstat(text, 126), None);
        assert_eq!(parse_mdstat(text, 12), None);
        let late = "md1 : active raid1 a[0]\n      \tresync=DELAYED\n\n";
        assert_eq!(parse_mdstat(late, 1), None);
    }

    const WITH_BITMAP: &str = "Personalities : [raid1]\nmd126 : active raid1 nbd3[1] nbd2[0]\n      2093056 blocks super 1.2\n\n\
        md127 : active raid1 nbd1[1] nbd0[0]\n      1047552 blocks super 1.2 [2/2] [UU]\n      \
        bitmap: 1/1 pages [4KB], 65536KB chunk\n\nunused devices: <none>\n";

    #[test]
    fn mdstat_tells_whether_bits_are_set() {
        assert_eq!(bitmap_pages(WITH_BITMAP, 127), Some(1));
        assert_eq!(bitmap_pages(WITH_BITMAP, 126), None);
        assert_eq!(bitmap_pages(WITH_BITMAP, 1), None);
    }

    /// Clear at the second look; of an array that lacks a member nothing is waited for.
    #[test]
    fn a_bitmap_is_waited_for_until_it_is_clear() {
        let looks = |degraded: &str| {
            let tree = tempfile::tempdir().expect("a directory");
            let roots = Roots::under(tree.path());
            let md = roots.block("md127").join("md");
            std::fs::create_dir_all(&md).expect("made");
            std::fs::create_dir_all(&roots.proc).expect("made");
            std::fs::write(md.join("sync_action"), "idle\n").expect("written");
            std::fs::write(md.join("degraded"), degraded).expect("written");
            let mdstat = roots.proc.join("mdstat");
            std::fs::write(&mdstat, WITH_BITMAP).expect("written");
            let mut looks = 0;
            let mut context = Context {
                roots: &roots,
                cancel: &AtomicBool::new(false),
                monitor: &mut |_| {
                    looks += 1;
                    let clear = WITH_BITMAP.replace("1/1 pages", "0/1 pages");
                    std::fs::write(&mdstat, clear).expect("written");
                    ControlFlow::Continue(())
                },
            };
            wait_for_bitmap(&mut context, 127).expect("it is clear");
            looks
        };
        assert_eq!(looks("0\n"), 1);
        assert_eq!(looks("1\n"), 0);
    }

    #[test]
    fn whole_is_idle_and_not_degraded() {
        let state = |action: Option<&str>, degraded| SyncState {
            action: action.map(str::to_owned),
            degraded,
            ..SyncState::default()
        };
        assert!(state(None, 0).is_whole(), "raid0 has nothing to sync");
        assert!(state(Some("idle"), 0).is_whole());
        assert!(!state(Some("idle"), 1).is_whole(), "a RAID4 just made");
        assert!(!state(Some("recover"), 1).is_whole());
        assert!(!state(Some("resync"), 0).is_whole());
    }
}
