//! What a block device is built of.
use super::{Asked, Member, NEVER, Storage};
use crate::array::{Array, ArrayError, ArrayKind, ArraySpec};
use crate::fabric::{Fabric, FabricError, FabricSpec};
use crate::queue::{Queue, QueueSpec};
use raidlab_core::units::SECTOR;
use raidlab_layout::{BtrfsProfile, Layout, MAX_MEMBERS, Member as Role};

/// A member of the array: a port of the fabric, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSpec {
    /// The port.
    pub port: u32,
    /// First sector that is the member's: the beginning of the partition and md's data offset.
    pub offset: u64,
    /// Its request queue.
    pub queue: QueueSpec,
}

/// A block device to be made.
#[derive(Clone, Debug)]
pub struct StorageSpec {
    /// Disks, channels, controllers, buses.
    pub fabric: FabricSpec,
    /// What keeps the members together.
    pub array: ArraySpec,
    /// The members, in the order of their roles.
    pub members: Vec<MemberSpec>,
}

/// Why a block device cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Of the fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// Of the array.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A member at a port that the fabric does not have.
    #[error("member {member} is at port {port}, but the fabric has {ports}")]
    NoPort {
        /// The member.
        member: usize,
        /// As given.
        port: u32,
        /// How many there are.
        ports: usize,
    },
    /// Two members at one port.
    #[error("port {0} has two members")]
    Twice(u32),
    /// Another number of members than the array has.
    #[error("the array has {wanted} members, but {given} are given")]
    Members {
        /// What the array has.
        wanted: usize,
        /// As given.
        given: usize,
    },
    /// A member that reaches beyond the end of its port.
    #[error("member {member} needs {needed} sectors of {name}, which has {has}")]
    TooSmall {
        /// The member.
        member: usize,
        /// What is behind the port.
        name: String,
        /// Sectors up to the end of what the array uses.
        needed: u64,
        /// What there is.
        has: u64,
    },
}

/// Sectors of `member` that an array of that kind uses.
fn used(kind: &ArrayKind, member: usize) -> u64 {
    match kind {
        ArrayKind::Single(sectors) => sectors.0,
        ArrayKind::Md(layout) => layout.used(Role::new(member)).0,
        ArrayKind::Zfs(mirror) => (mirror.data_start().0 + mirror.allocatable().0) / SECTOR,
        ArrayKind::Btrfs(btrfs) => btrfs.size(Role::new(member)).0,
        ArrayKind::Pool(pool) => {
            let mut of = pool
                .vdevs()
                .flat_map(|vdev| (0..vdev.children()).map(|_| vdev.of_child()));
            of.nth(member).map_or(0, |bytes| bytes.0 / SECTOR)
        }
    }
}

/// Bytes of data in a stripe, as md reckons it for the read-ahead of the array's device
/// (`raid0.c:raid0_run`, `raid5.c:raid5_run`, `raid10.c:raid10_run`); 0 for levels without stripes.
fn stripe(layout: &Layout) -> u64 {
    let (layout, members) = match layout {
        Layout::Nested(nested) => (nested.outer(), nested.inner().len()),
        plain => (plain, plain.members()),
    };
    let members = members as u64;
    let sectors = match layout {
        Layout::Raid0(l) => members * l.chunk().0,
        Layout::Parity(l) => (members - l.level().parities() as u64) * l.chunk().0,
        Layout::Raid10(l) => members * l.chunk().0 / l.copies().near as u64,
        _ => 0,
    };
    sectors * SECTOR
}

/// Whether some level of the array has parity.
fn has_parity(layout: &Layout) -> bool {
    match layout {
        Layout::Nested(nested) => {
            has_parity(nested.outer()) || nested.inner().iter().any(has_parity)
        }
        plain => matches!(plain, Layout::Parity(_)),
    }
}

/// Sectors of the largest request that goes down whole: of the array and of each member's queue.
fn max_sectors(spec: &StorageSpec) -> u32 {
    let own = match &spec.array.kind {
        ArrayKind::Md(layout) if spec.array.era.rows_at_once && has_parity(layout) => {
            crate::array::PARITY_REQUEST
        }
        _ => u32::MAX,
    };
    wide(spec).unwrap_or_else(|| of_rows(spec, own.min(member_request(spec))))
}

/// So many sectors, in whole rows where btrfs writes such: its requests end with a row (`calc_bio_boundaries`; since 6.3 they are divided there,
/// from memory), and what it writes in order begins with one.
fn of_rows(spec: &StorageSpec, most: u32) -> u32 {
    let ArrayKind::Btrfs(btrfs) = &spec.array.kind else {
        return most;
    };
    match btrfs.rows().next() {
        Some(row) if row > 0 && row <= u64::from(most) => most - most % row as u32,
        _ => most,
    }
}

/// The same of an array that takes requests of a stripe, in sectors; `None`: it takes what its members do.
fn wide(spec: &StorageSpec) -> Option<u32> {
    let ArrayKind::Md(layout @ Layout::Raid10(_)) = &spec.array.kind else {
        return None;
    };
    let stripe = stripe(layout) / SECTOR;
    let most = spec.array.era.stripe_requests?;
    let devices = spec.members.iter().map(|it| it.queue.device_sectors);
    (stripe > u64::from(most)).then(|| devices.fold(stripe as u32, u32::min))
}

/// Sectors up to which a call that asks for more than the read-ahead is read at once, where kernels do.
fn large_call(spec: &StorageSpec) -> u32 {
    let ArrayKind::Md(layout) = &spec.array.kind else {
        return max_sectors(spec);
    };
    let outermost = match layout {
        Layout::Nested(nested) => nested.outer(),
        plain => plain,
    };
    match outermost {
        Layout::Raid0(raid0) => max_sectors(spec).min(raid0.chunk().0 as u32),
        _ if spec.array.era.large_calls => max_sectors(spec),
        _ => 0,
    }
}

/// Sectors of writes that the members' queues hold before a submitter must wait: what is written in one stretch to members
/// behind each other fills one of them.
fn queue(spec: &StorageSpec) -> u64 {
    let each = spec.members.iter().map(|member| {
        let queue = &member.queue;
        u64::from(queue.requests.each[1]) * u64::from(queue.max_sectors)
    });
    match &spec.array.kind {
        ArrayKind::Md(Layout::Linear(_)) => each.max().unwrap_or(0),
        ArrayKind::Btrfs(btrfs) if btrfs.profile() == BtrfsProfile::Single => {
            each.max().unwrap_or(0)
        }
        _ => each.sum(),
    }
}

/// Sectors of the largest request that all members' queues take.
fn member_request(spec: &StorageSpec) -> u32 {
    let limits = spec.members.iter().map(|member| member.queue.max_sectors);
    limits.fold(u32::MAX, u32::min)
}

/// Pages that a request of any member's queue may be made of, each of them a stretch of memory.
fn pages(spec: &StorageSpec) -> u32 {
    let limits = spec.members.iter().map(|member| member.queue.segments);
    limits.fold(u32::MAX, u32::min)
}

/// Sectors of pages side by side that come to the storage as one request: largest request or, where md takes them apart, all.
fn window(spec: &StorageSpec) -> u32 {
    let whole = spec.array.era.whole_windows && matches!(spec.array.kind, ArrayKind::Md(_));
    if whole { WINDOW } else { max_sectors(spec) }
}

/// More than any window, and less than a request can tell.
const WINDOW: u32 = 1 << 20;

/// Sectors of a page.
const PAGE: u32 = 8;

pub(super) fn build(spec: &StorageSpec, seed: u64) -> Result<Storage, StorageError> {
    let fabric = Fabric::new(&spec.fabric, seed)?;
    let (wanted, stripe, array) = match &spec.array.kind {
        ArrayKind::Single(_) => (1, 0, None),
        ArrayKind::Md(layout) => {
            let array = Array::new(&spec.array)?;
            let array = array.of_requests(&spec.array.era, member_request(spec), wide(spec));
            let array = array.of_pages(pages(spec));
            (layout.members(), stripe(layout), Some(array))
        }
        ArrayKind::Zfs(mirror) => (mirror.children(), 0, Some(Array::new(&spec.array)?)),
        ArrayKind::Btrfs(btrfs) => (btrfs.members(), 0, Some(Array::new(&spec.array)?)),
        ArrayKind::Pool(pool) => (pool.members(), 0, Some(Array::new(&spec.array)?)),
    };
    let given = spec.members.len();
    if given != wanted || given > MAX_MEMBERS {
        return Err(StorageError::Members { wanted, given });
    }
    let ports = fabric.ports();
    let mut at_port = vec![u16::MAX; ports.len()];
    for (member, place) in spec.members.iter().enumerate() {
        let Some(port) = ports.get(place.port as usize) else {
            return Err(StorageError::NoPort {
                member,
                port: place.port,
                ports: ports.len(),
            });
        };
        let needed = place.offset.saturating_add(used(&spec.array.kind, member));
        if needed > port.sectors {
            return Err(StorageError::TooSmall {
                member,
                name: port.name.clone(),
                needed,
                has: port.sectors,
            });
        }
        let taken = std::mem::replace(&mut at_port[place.port as usize], member as u16);
        if taken != u16::MAX {
            return Err(StorageError::Twice(place.port));
        }
    }
    let members = spec.members.iter().map(|place| Member {
        queue: Queue::new(place.queue),
        port: place.port,
        offset: place.offset.saturating_sub(spec.array.base()),
        timer: NEVER,
        touched: false,
        held: false,
        timed: false,
    });
    // What ZFS's own threads do for a child is in the costs of its blocks, which were fitted on a mirror.
    let many = matches!(spec.array.kind, ArrayKind::Md(_) | ArrayKind::Btrfs(_));
    let counts = many && spec.array.cost.submit > 0;
    let mut storage = Storage {
        threads: array.as_ref().is_some_and(Array::computes),
        by_thread: array.as_ref().is_some_and(Array::writes_by_thread),
        counts,
        asked: Asked::default(),
        sectors: match (&array, &spec.array.kind) {
            (Some(array), _) => array.sectors(),
            (None, kind) => used(kind, 0),
        },
        array,
        members: members.collect(),
        at_port,
        disks: spec.fabric.disks.len() as u32,
        fabric,
        stripe,
        rotational: spec.members.iter().any(|member| member.queue.rotational),
        max_sectors: max_sectors(spec),
        paged: of_rows(
            spec,
            max_sectors(spec).min(pages(spec).saturating_mul(PAGE)),
        ),
        queue: queue(spec),
        window: window(spec),
        large_call: large_call(spec),
        large_go: matches!(spec.array.kind, ArrayKind::Md(_))
            && spec.members.iter().any(|member| member.queue.large_go),
        large: None,
        touched: Vec::new(),
        held: Vec::new(),
        timed: Vec::new(),
        next: NEVER,
        wanted: Vec::new(),
        ended: Vec::new(),
        #[cfg(test)]
        stuck: false,
        #[cfg(test)]
        lists_only: false,
    };
    // A resync begins by itself.
    storage.look();
    Ok(storage)
}
