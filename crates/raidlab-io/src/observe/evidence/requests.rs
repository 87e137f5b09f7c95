//! What the devices of a phase were asked for by others. Bytes do not always tell of them: a few random reads of 4 KiB a second take
//! half of a hard disk's time, and are nothing beside the bytes of a phase in sequence.
use super::{Evidence, SLACK, size};
use crate::observe::diskstats::{DeviceDifference, Difference};
use crate::observe::neighbours::Neighbour;
use crate::observe::stack::{DeviceKind, DeviceStack, StackDevice};
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::units::SECTOR;

/// Others' requests, or bytes, over the phase's own above which something else used the disk.
const FOREIGN: f64 = 0.1;
/// Requests that an idle system makes in a short phase: journals, logs.
const FEW: u64 = 16;
/// What a file system writes of its own for each flush of a loop device: a transaction of its journal.
const JOURNAL: u64 = 64 << 10;

/// Requests in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Reads of the topmost devices.
    pub read: u64,
    /// Writes of the topmost devices.
    pub written: u64,
    /// Of devices of the stack, known to be others'.
    pub beside: u64,
    /// Bytes of these.
    pub beside_bytes: u64,
    /// Whose they were, most first.
    pub whose: Vec<String>,
}

impl Requests {
    /// Of a stack's devices; `None` when one of them was not counted over the whole time.
    pub(super) fn of(
        difference: &Difference,
        stack: &DeviceStack,
        neighbours: &[Neighbour],
    ) -> Option<Self> {
        let mut requests = Self::default();
        let mut others = Vec::new();
        let parts = beside_partitions(difference, stack);
        for neighbour in neighbours {
            // On a disk below a partition all is counted that is not asked of this one.
            if parts.iter().any(|part| part.on == neighbour.on) {
                continue;
            }
            others.extend(of_neighbour(difference, stack, neighbour));
        }
        for name in stack.counting_names() {
            let device = difference.devices.get(name)?;
            requests.read += device.read.completed;
            requests.written += device.write.completed;
            // What was asked of a part of it is in its count.
            for other in others.iter().filter(|other| other.on == name) {
                requests.read = requests.read.saturating_sub(other.reads);
                requests.written = requests.written.saturating_sub(other.writes);
            }
        }
        others.extend(parts);
        others.retain(|other| other.requests() > 0);
        others.sort_by_key(|other| std::cmp::Reverse(other.requests()));
        requests.beside = others.iter().map(Other::requests).sum();
        requests.beside_bytes = others.iter().map(|other| other.bytes).sum();
        requests.whose = others.into_iter().map(|other| other.whose).collect();
        requests.whose.dedup();
        Some(requests)
    }
}

/// What somebody else asked of a device of the stack.
struct Other {
    on: String,
    whose: String,
    reads: u64,
    writes: u64,
    bytes: u64,
}

impl Other {
    fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// What a neighbour was asked for. Of one that lies on other disks as well no more is taken than the stack's device did beyond
/// what was asked of it from within.
fn of_neighbour(
    difference: &Difference,
    stack: &DeviceStack,
    neighbour: &Neighbour,
) -> Option<Other> {
    let its = difference.devices.get(&neighbour.name);
    let its = its.or_else(|| difference.come.get(&neighbour.name))?;
    let share = if neighbour.wholly {
        1.0
    } else {
        let own: u64 = users(stack, &neighbour.on)
            .filter_map(|user| difference.devices.get(&user.name))
            .map(DeviceDifference::bytes)
            .sum();
        let all = difference.devices.get(&neighbour.on)?.bytes();
        (all.saturating_sub(own) as f64 / its.bytes().max(1) as f64).min(1.0)
    };
    let of = |number: u64| (number as f64 * share) as u64;
    Some(Other {
        on: neighbour.on.clone(),
        whose: neighbour.called.clone(),
        reads: of(its.read.completed),
        writes: of(its.write.completed),
        bytes: of(its.bytes()),
    })
}

/// Devices of the stack directly above one.
fn users<'s>(stack: &'s DeviceStack, name: &str) -> impl Iterator<Item = &'s StackDevice> {
    let above = move |device: &&StackDevice| device.below.iter().any(|below| below == name);
    stack.devices.iter().filter(above)
}

/// What a partition is asked for is counted for its disk as well: the rest is others'.
fn beside_partitions(difference: &Difference, stack: &DeviceStack) -> Vec<Other> {
    let parts = || {
        let all = stack.devices.iter();
        all.filter(|device| device.kind == DeviceKind::Partition)
    };
    let mut disks: Vec<&str> = parts()
        .flat_map(|part| part.below.iter().map(String::as_str))
        .collect();
    disks.sort_unstable();
    disks.dedup();
    let rest = |disk: &str| {
        let all = difference.devices.get(disk)?;
        let mut rest = Other {
            on: disk.to_owned(),
            whose: format!("the rest of {disk}"),
            reads: all.read.completed,
            writes: all.write.completed,
            bytes: all.bytes(),
        };
        for part in parts().filter(|part| part.below.iter().any(|below| below == disk)) {
            let own = difference.devices.get(&part.name)?;
            rest.reads = rest.reads.saturating_sub(own.read.completed);
            rest.writes = rest.writes.saturating_sub(own.write.completed);
            rest.bytes = rest.bytes.saturating_sub(own.bytes());
        }
        Some(rest)
    };
    disks.into_iter().filter_map(rest).collect()
}

/// Whether others' requests are more than a tenth of the phase's own.
pub(super) fn of_others(e: &Evidence) -> Option<Flag> {
    let requests = e.requests.as_ref()?;
    let (own, others) = match (e.claimed_read > 0, e.claimed_written > 0) {
        (true, false) => (requests.read, requests.written),
        // What is read for a write (a part of a block, the file system's own) is read by this process.
        (false, true) if caused_here(e) => (requests.written, 0),
        (false, true) => (requests.written, requests.read),
        // Of both, or of files' names alone, none can be told from the phase's own.
        _ => (requests.read + requests.written, 0),
    };
    if own == 0 && e.claimed_read == 0 && e.claimed_written == 0 {
        return None;
    }
    let others = others + requests.beside;
    let claimed = e.claimed_read.saturating_add(e.claimed_written);
    let many = others > FEW && others as f64 > FOREIGN * own as f64;
    let much = requests.beside_bytes > SLACK
        && requests.beside_bytes as f64 > FOREIGN * claimed as f64
        && claimed > 0;
    (many || much).then(|| {
        let whose = match requests.whose.as_slice() {
            [] => "something else used it, or earlier data were written back".to_owned(),
            whose => format!("{} used it", whose.join(", ")),
        };
        let bytes = match much {
            true => format!(" of {}", size(requests.beside_bytes)),
            false => String::new(),
        };
        let reason = format!(
            "the disk did {others} requests{bytes} that were not asked for, beside {own} that were: {whose}"
        );
        Flag::new(FlagKind::ForeignIo, reason)
    })
}

/// What the devices beneath carriers did beyond what they were asked for from above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excess {
    /// Of this device,
    pub on: String,
    /// so many requests of reading were made and so many asked for, each that was merged with another counted for itself; `None`
    /// where the page cache makes requests of its own in between;
    pub reads: Option<(u64, u64)>,
    /// so many bytes were read, where
    pub read: u64,
    /// so many were asked for;
    pub asked_read: u64,
    /// so many were written, where
    pub written: u64,
    /// so many were asked for, with what a file system adds.
    pub asked_written: u64,
}

impl Excess {
    /// Of every device all of whose users in the stack are volumes that carry, or loop devices.
    pub(super) fn of(difference: &Difference, stack: &DeviceStack) -> Vec<Self> {
        let carrier = |user: &StackDevice| user.carries || is_loop(user);
        let below = stack.devices.iter().filter(|device| {
            let mut above = users(stack, &device.name).peekable();
            above.peek().is_some() && above.all(carrier) && device.counted != Some(false)
        });
        below
            .filter_map(|device| Self::on(difference, stack, device))
            .collect()
    }

    fn on(difference: &Difference, stack: &DeviceStack, device: &StackDevice) -> Option<Self> {
        let (read, written) = carried(difference, stack, &device.name)?;
        let requests = |device: &DeviceDifference| device.read.completed + device.read.merged;
        let mut excess = Self {
            on: device.name.clone(),
            reads: users(stack, &device.name)
                .all(|user| user.carries || user.past_cache)
                .then_some((requests(difference.devices.get(&device.name)?), 0)),
            read,
            written,
            ..Self::default()
        };
        for user in users(stack, &device.name) {
            let its = difference.devices.get(&user.name)?;
            if let Some((_, asked)) = &mut excess.reads {
                *asked += requests(its);
            }
            excess.asked_read += its.read.bytes();
            excess.asked_written += its.write.bytes();
            if is_loop(user) {
                let flushes = its.flush.map_or(0, |(flushes, _)| flushes);
                excess.asked_written += flushes.saturating_mul(JOURNAL);
                // A file system on several devices may keep copies.
                if user.below.len() > 1 {
                    excess.asked_written = u64::MAX;
                }
            }
        }
        Some(excess)
    }

    fn flag(&self) -> Option<Flag> {
        let more = |did: u64, asked: u64| {
            let over = did.saturating_sub(asked);
            over > SLACK && over as f64 > FOREIGN * asked as f64
        };
        let (did, done, asked, or) = match self {
            e if more(e.read, e.asked_read) => {
                let or = "read-ahead fetched more than was used";
                ("read", e.read, e.asked_read, or)
            }
            e if more(e.written, e.asked_written) => {
                let or = "earlier data were written back";
                ("wrote", e.written, e.asked_written, or)
            }
            _ => return self.small_reads(),
        };
        let reason = format!(
            "{} beneath {did} {} where {} was asked for: something else used it, or {or}",
            self.on,
            size(done),
            size(asked)
        );
        Some(Flag::new(FlagKind::ForeignIo, reason))
    }
}

impl Excess {
    /// Requests of others that are no bytes to speak of. A request that is split on its way, at the end of a piece of a file or for a
    /// disk that takes no larger ones, is several, but no byte more: of others there are no more than sectors that nobody here
    /// asked for.
    fn small_reads(&self) -> Option<Flag> {
        let (did, asked) = self.reads?;
        let sectors = self.read.saturating_sub(self.asked_read) / SECTOR;
        let others = did.saturating_sub(asked).min(sectors);
        (others > FEW && others as f64 > FOREIGN * asked as f64).then(|| {
            let reason = format!(
                "{} beneath did {did} requests of reading where {asked} were asked for: something else used it",
                self.on
            );
            Flag::new(FlagKind::ForeignIo, reason)
        })
    }
}

/// Whether a device beneath did much more than it was asked for from above.
pub(super) fn beneath(e: &Evidence) -> Option<Flag> {
    e.beneath.iter().find_map(Excess::flag)
}

fn is_loop(device: &StackDevice) -> bool {
    matches!(device.kind, DeviceKind::Loop { .. })
}

/// Bytes that the devices which prove the I/O of a stack read and wrote; `None` when they were not counted.
pub fn moved(difference: &Difference, stack: &DeviceStack) -> Option<(u64, u64)> {
    if !stack.top_counted() {
        return None;
    }
    let names = stack.counting_names().into_iter();
    let mut each =
        names.map(|name| carried(difference, stack, name).or_else(|| difference.sum([name])));
    each.try_fold((0_u64, 0_u64), |(read, written), device| {
        let device = device?;
        Some((
            read.saturating_add(device.0),
            written.saturating_add(device.1),
        ))
    })
}

/// Bytes read and written of a device. Linux 6.1 counts a request twice that device mapper splits in two; what is below a volume that
/// carries was not asked for more than it was.
fn carried(difference: &Difference, stack: &DeviceStack, name: &str) -> Option<(u64, u64)> {
    let own = difference.sum([name])?;
    let Some(device) = stack.device(name).filter(|device| device.carries) else {
        return Some(own);
    };
    let mut below = (0_u64, 0_u64);
    for lower in &device.below {
        let counted = stack
            .device(lower)
            .is_some_and(|lower| lower.counted != Some(false));
        let (read, written) = carried(difference, stack, lower).filter(|_| counted)?;
        below = (below.0 + read, below.1 + written);
    }
    if device.below.is_empty() {
        return Some(own);
    }
    Some((own.0.min(below.0), own.1.min(below.1)))
}

/// Whether most of what the device read was read by this process, which asked for none of it.
fn caused_here(e: &Evidence) -> bool {
    let read = e.process_read.zip(e.device_read);
    read.is_none_or(|(process, device)| process.saturating_mul(2) >= device)
}
