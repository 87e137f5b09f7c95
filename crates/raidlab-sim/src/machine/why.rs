//! What limits a machine: the busy shares of all that it consists of, and one sentence that names the
//! limit.
mod words;

use crate::block::{Busy, Refill, ResourceKind};
use raidlab_core::time::{Instant, Span};
use words::{named, names, part, percent, range};

/// From this share on something is taken to be what the others wait for. Assumed: with a few requests
/// in flight a limit is rarely busy all the time, and what is idle for a third of it is none.
const LIMIT: f64 = 0.70;
/// Shares that differ by less are told together.
const ALIKE: f64 = 0.06;
/// Kinds of things whose shares differ by less are all named.
const TIE: f64 = 0.03;
/// ... and of those whose shares differ by no more, the one that is nearest to the media first.
const FIRST: f64 = 0.01 + 1e-9;
/// What else is so busy is told, too.
const ALSO: f64 = 0.90;
/// Read-ahead that a stripe cache refuses is told from this share of what disks move on. Assumed: less is asked for again while more
/// is on its way.
const REFUSED: f64 = 0.10;
/// A disk with copies of what others read is told when it reads less than this share of what one of them does. Assumed: metadata.
const UNREAD: f64 = 0.05;
/// ... where so much of what disks move is read. Assumed.
const MOSTLY: f64 = 0.50;
/// What a resync moves is told from this share of what disks move on. Assumed: less is not felt.
const BESIDE: f64 = 0.02;

/// All busy times at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// When it was taken.
    pub at: Instant,
    /// Busy time of each resource since the start.
    pub busy: Vec<Busy>,
    /// Bytes that the disks have moved since the start.
    pub moved: u64,
    /// Bytes of requests of read-ahead for which the stripe cache of a parity array had no room since the start.
    pub refused: u64,
    /// Bytes that a resync, rebuild or resilver has asked of the disks since the start, and which of these it is.
    pub refilled: u64,
    /// See [`refilled`](Self::refilled).
    pub refill: Refill,
    /// Bytes that each disk has read since the start, where a process reads the same one of two copies whatever is busy; else none.
    pub apart: Vec<u64>,
    /// Bytes a second that the computer's memory gives or takes at the most; 0: not known. It limits nothing.
    pub memory: u64,
}

/// How busy one resource was between two accounts.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// As in [`Busy::name`].
    pub name: String,
    /// What sort of thing it is.
    pub kind: ResourceKind,
    /// How many of it there are.
    pub units: u32,
    /// Busy share of all of them, 0 to 1.
    pub busy: f64,
    /// What it was in use for, as shares of its busy time, largest first.
    pub parts: Vec<(&'static str, f64)>,
}

/// What limits the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Busy shares, as the accounts have them.
    pub shares: Vec<Share>,
    /// The limit, in a sentence.
    pub sentence: String,
}

/// What is known of the load beside the accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Mean operations in flight; 0 when not known.
    pub in_flight: f64,
    /// The operations come at times of their own, whether or not those before have ended.
    pub open: bool,
}

impl Share {
    /// What a list of shares calls it.
    #[must_use]
    pub fn title(&self) -> String {
        match self.kind {
            ResourceKind::Electronics => format!("commands of {}", self.name),
            _ => self.name.clone(),
        }
    }
}

impl Why {
    /// Between two accounts of one machine, under `load`.
    #[must_use]
    pub fn between(before: &Account, after: &Account, load: Load) -> Self {
        let elapsed = after.at.since(before.at);
        let shares = shares(before, after, elapsed);
        let moved = after.moved.saturating_sub(before.moved);
        let rate = moved as f64 / elapsed.as_secs_f64().max(1e-9);
        let mut sentence = sentence(&shares, load, rate);
        if after.memory > 0 && rate > after.memory as f64 {
            let of = |rate: f64| libm::round(rate / 1e9);
            sentence.push_str(&format!(
                "; the disks move {} GB/s, and memory of this class {}, which is no limit here: no such computer does this",
                of(rate),
                of(after.memory as f64)
            ));
        }
        sentence.push_str(&beside(before, after, load));
        let refused = after.refused.saturating_sub(before.refused);
        if refused as f64 >= moved as f64 * REFUSED && refused > 0 {
            sentence.push_str(
                "; the stripe cache had no room for much of the read-ahead, which was read again when it was wanted \
                 (a larger 'stripe-cache' or a smaller chunk helps)",
            );
        }
        sentence.push_str(&apart(before, after, moved));
        Self { sentence, shares }
    }

    /// The busiest resource.
    #[must_use]
    pub fn busiest(&self) -> Option<&Share> {
        self.shares.iter().max_by(|a, b| a.busy.total_cmp(&b.busy))
    }
}

/// What of the disks' work is not the load's, where a load goes beside it: how busy they are does not tell who keeps them so.
fn beside(before: &Account, after: &Account, load: Load) -> String {
    let megabytes =
        |bytes: u64| bytes as f64 / after.at.since(before.at).as_secs_f64().max(1e-9) / 1e6;
    let moved = megabytes(after.moved.saturating_sub(before.moved));
    // What is in flight at the end is asked for and not moved.
    let refilled = megabytes(after.refilled.saturating_sub(before.refilled)).min(moved);
    let loaded = load.open || load.in_flight > 0.0;
    if !loaded || refilled < moved * BESIDE || refilled <= 0.0 {
        return String::new();
    }
    let digits = usize::from(refilled < 10.0);
    format!(
        "; {refilled:.digits$} of the {moved:.digits$} MB/s that the disks move are the {}'s",
        after.refill.name()
    )
}

/// Disks with copies that nobody reads, because btrfs gives a process one of two by its number, however busy their disks are.
fn apart(before: &Account, after: &Account, moved: u64) -> String {
    let earlier = before.apart.iter().copied().chain(std::iter::repeat(0));
    let now = after.apart.iter().zip(earlier);
    let read: Vec<u64> = now.map(|(now, then)| now.saturating_sub(then)).collect();
    let most = read.iter().copied().max().unwrap_or(0);
    let idle = read
        .iter()
        .filter(|bytes| (**bytes as f64) < most as f64 * UNREAD)
        .count();
    // One of each pair. Where others are idle as well, what is read does not reach them.
    if idle == 0
        || 2 * idle != read.len()
        || (read.iter().sum::<u64>() as f64) < moved as f64 * MOSTLY
    {
        return String::new();
    }
    format!(
        "; btrfs has each process read one of two copies, and the disks of the others, {idle} of {}, read next to nothing",
        read.len()
    )
}

/// The shares of all; of what is full duplex that of the direction that is busier.
fn shares(before: &Account, after: &Account, elapsed: Span) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::with_capacity(after.busy.len());
    for now in &after.busy {
        let new = share(before.busy.iter().find(|b| b.is_of(now)), now, elapsed);
        let other = now.way.and_then(|_| {
            let other = |s: &&mut Share| s.kind == new.kind && s.name == new.name;
            shares.iter_mut().find(other)
        });
        match other {
            Some(other) if other.busy < new.busy => *other = new,
            Some(_) => {}
            None => shares.push(new),
        }
    }
    shares
}

fn share(before: Option<&Busy>, now: &Busy, elapsed: Span) -> Share {
    let earlier = |name: &str| {
        let parts = before.iter().flat_map(|b| &b.parts);
        let mut found = parts.filter(|(n, _)| *n == name);
        found.next().map_or(Span::ZERO, |(_, span)| *span)
    };
    let busy = now.busy - before.map_or(Span::ZERO, |b| b.busy);
    let all = elapsed.0 as f64 * f64::from(now.units.max(1));
    let mut parts: Vec<(&'static str, f64)> = now
        .parts
        .iter()
        .map(|(name, span)| (*name, (*span - earlier(name)).0 as f64))
        .filter(|(_, time)| *time > 0.0)
        .map(|(name, time)| (name, time / (busy.0.max(1)) as f64))
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    Share {
        name: now.name.clone(),
        kind: now.kind,
        units: now.units,
        // What began before the end is booked whole, so that a share may come out above 1.
        busy: if all > 0.0 {
            (busy.0 as f64 / all).min(1.0)
        } else {
            0.0
        },
        parts,
    }
}

/// How far a thing is used up: processors no further than the operations in flight can use them.
fn used(share: &Share, load: Load) -> f64 {
    let cores = f64::from(share.units.max(1));
    if share.kind != ResourceKind::Cpu || load.in_flight <= 0.0 {
        return share.busy;
    }
    let usable = libm::ceil(load.in_flight - 0.05).clamp(1.0, cores);
    (share.busy * cores / usable).min(1.0)
}

/// Nearness to the media, for ties.
fn depth(kind: ResourceKind) -> u8 {
    match kind {
        ResourceKind::Disk => 6,
        ResourceKind::Electronics => 5,
        ResourceKind::Controller => 4,
        ResourceKind::Channel => 3,
        ResourceKind::Bus => 2,
        // It is in service as long as anything below is at work.
        ResourceKind::Thread | ResourceKind::Volume => 1,
        ResourceKind::Cpu => 0,
    }
}

fn sentence(shares: &[Share], load: Load, rate: f64) -> String {
    let most = |kind: ResourceKind| {
        let of = shares.iter().filter(|s| s.kind == kind);
        of.map(|s| used(s, load)).fold(0.0, f64::max)
    };
    let top = shares.iter().map(|s| used(s, load)).fold(0.0, f64::max);
    if top < LIMIT {
        return idle(shares, load, top);
    }
    let Some(limit) = limit(shares, most, top) else {
        return idle(shares, load, top);
    };
    let mut text = told(shares, limit, load, rate);
    let commands = most(ResourceKind::Electronics);
    if limit == ResourceKind::Disk && commands >= (most(limit) - ALIKE).max(ALSO) {
        // What takes a disk's commands and what is below its buffer are busy together: which of them waits for the other
        // cannot be told from that.
        text.push_str(&format!(
            ", and {} busy taking commands: about the same, and either may be the limit",
            percent(commands)
        ));
    }
    for kind in also(most, limit, top) {
        text.push_str("; ");
        text.push_str(&told(shares, kind, load, rate));
    }
    text
}

/// What is named first of all that is within the tie: the busiest, and of those that are alike the one nearest to the media. What the
/// computer does by itself comes first only when nothing else is as busy.
fn limit(shares: &[Share], most: impl Fn(ResourceKind) -> f64, top: f64) -> Option<ResourceKind> {
    let mut near: Vec<ResourceKind> = shares.iter().map(|s| s.kind).collect();
    near.retain(|kind| most(*kind) >= (top - TIE).max(LIMIT));
    let hardware = |kind: &ResourceKind| depth(*kind) >= depth(ResourceKind::Bus);
    if near.iter().any(hardware) {
        near.retain(hardware);
    }
    let first = near.iter().map(|kind| most(*kind)).fold(0.0, f64::max);
    near.retain(|kind| most(*kind) >= first - FIRST);
    near.into_iter().max_by_key(|kind| depth(*kind))
}

/// What is told behind the limit, the busiest first: all that is within the tie, so that what is busy all the time is left out of no
/// sentence; where nothing is, the busiest of what carries or orders the work of others, if it is busy enough.
fn also(most: impl Fn(ResourceKind) -> f64, limit: ResourceKind, top: f64) -> Vec<ResourceKind> {
    use ResourceKind::{Bus, Channel, Controller, Cpu, Disk, Electronics, Thread, Volume};
    let mut others = vec![
        Cpu,
        Thread,
        Bus,
        Controller,
        Volume,
        Channel,
        Electronics,
        Disk,
    ];
    // What takes a disk's commands is told with the disk.
    others.retain(|kind| *kind != limit && (limit, *kind) != (Disk, Electronics));
    others.retain(|kind| match kind {
        // In service as long as anything below is at work.
        Thread | Volume => most(*kind) >= ALSO,
        _ => most(*kind) >= LIMIT,
    });
    others.sort_by(|a, b| most(*b).total_cmp(&most(*a)));
    let tied = others.iter().filter(|kind| most(**kind) >= top - TIE);
    match tied.count() {
        0 => {
            others.retain(|kind| !matches!(kind, Disk | Electronics | Channel));
            others.retain(|kind| most(*kind) >= ALSO);
            others.truncate(1);
        }
        tied => others.truncate(tied),
    }
    others
}

/// Nothing is a limit by itself.
fn idle(shares: &[Share], load: Load, top: f64) -> String {
    let busiest = shares.iter().find(|s| used(s, load) >= top && top > 0.0);
    let busiest = busiest.map_or_else(String::new, |s| {
        // The list beside the sentence has the share of all cores.
        let usable = match s.busy < top {
            true => format!(" as far as this load can use its {} cores", s.units),
            false => String::new(),
        };
        format!(" ({} most, {}{usable})", named(s), percent(top))
    });
    let one = match load.open {
        true => String::new(),
        // Several in flight that are all on one disk keep it at work all the time, and so do both together.
        false if load.in_flight > 1.5 => like_one(shares, TIE),
        false => like_one(shares, ALIKE),
    };
    let requests = libm::round(load.in_flight);
    let why = if load.open {
        "the load asks for no more".to_owned()
    } else if load.in_flight > 1.5 && one.is_empty() {
        format!("the {requests} requests in flight do not keep more of it at work")
    } else if load.in_flight > 1.5 {
        format!("the {requests} requests in flight are on one of them at a time")
    } else {
        "each request waits for the one before".to_owned()
    };
    format!(
        "nothing is busy above {}{busiest}{one}: {why}",
        percent(LIMIT)
    )
}

/// Of disks that together are as busy as one could be: a stream that goes from one to the other, and has none to wait for but
/// the one that it is on. The sum may be so much less than one.
fn like_one(shares: &[Share], short: f64) -> String {
    let at_work = |s: &&Share| s.kind == ResourceKind::Disk && s.busy > 0.0;
    let disks: Vec<&Share> = shares.iter().filter(at_work).collect();
    let sum: f64 = disks.iter().map(|s| s.busy).sum();
    if disks.len() < 2 || !(1.0 - short..=1.0 + TIE).contains(&sum) {
        return String::new();
    }
    format!(
        ", the disks together as much as one that is {} busy{}",
        percent(sum.min(1.0)),
        part(&disks)
    )
}

/// All resources of a kind that are about as busy as the busiest of it.
fn told(shares: &[Share], kind: ResourceKind, load: Load, rate: f64) -> String {
    let of: Vec<&Share> = shares.iter().filter(|s| s.kind == kind).collect();
    let top = of.iter().map(|s| used(s, load)).fold(0.0, f64::max);
    let mut group: Vec<&Share> = of.clone();
    group.retain(|s| used(s, load) >= top - ALIKE);
    let low = group.iter().map(|s| used(s, load)).fold(1.0, f64::min);
    let [first, rest @ ..] = group.as_slice() else {
        return String::new();
    };
    let alone = matches!(kind, ResourceKind::Controller | ResourceKind::Bus) && of.len() == 1;
    if alone && rate >= 1e6 {
        let rate = libm::round(rate / 1e6);
        let busy = percent(top);
        // What is idle for a tenth of the time could move more.
        let limit = if top >= ALSO { ", its limit" } else { "" };
        return format!(
            "{} moves {rate} MB/s{limit}: it is {busy} busy",
            named(first)
        );
    }
    let busy = range(low, top);
    let mut text = match rest {
        [] if kind == ResourceKind::Cpu && first.units > 1 && first.busy < top => {
            format!(
                "the CPU is {busy} busy as far as this load can use its {} cores",
                first.units
            )
        }
        [] if kind == ResourceKind::Volume => format!(
            "{} takes one command at a time, and one is in service {busy} of the time",
            named(first)
        ),
        [] if kind == ResourceKind::Electronics => format!("{} is {busy} busy", first.name),
        [] => format!("{} is {busy} busy", named(first)),
        _ => format!("{} are {busy} busy", names(&group, of.len(), kind)),
    };
    text.push_str(&match kind {
        ResourceKind::Electronics => " taking commands".to_owned(),
        _ => part(&group),
    });
    text
}

#[cfg(test)]
mod tests;
