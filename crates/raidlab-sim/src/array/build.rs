//! From a specification to a tree of arrays.
use super::Array;
use super::bitmap::{self, Bitmap};
use super::btrfs::Chunks;
use super::clean::Clean;
use super::core::{Child, Core, Heard};
use super::mirror::{Map, Mirror};
use super::node::{Common, Node, Shape};
use super::order::Sizes;
use super::parity::ParityArray;
use super::raidz::RaidzVdev;
use super::resync::{DEPTH, DEPTH_RAID10, Resync, UNIT};
use super::spec::{ArrayError, ArrayKind, ArraySpec, LEAST_CACHE};
use super::superblock::Superblock;
use crate::block::Refill;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::parity::ParityLevel;
use raidlab_layout::zfs::{END, START};
use raidlab_layout::{Layout, Member, MemberSet, Pool, Survival, Vdev};

/// A tree under construction.
struct Builder<'a> {
    spec: &'a ArraySpec,
    nodes: Vec<Node>,
    homes: Vec<(u16, u16)>,
    failed: MemberSet,
}

pub(super) fn array(spec: &ArraySpec) -> Result<Array, ArrayError> {
    if spec.stripe_cache < LEAST_CACHE {
        return Err(ArrayError::StripeCache(spec.stripe_cache));
    }
    let members = match &spec.kind {
        ArrayKind::Single(_) => 1,
        ArrayKind::Md(layout) => layout.members(),
        ArrayKind::Zfs(mirror) => mirror.children(),
        ArrayKind::Pool(pool) => pool.members(),
        ArrayKind::Btrfs(btrfs) => btrfs.members(),
    };
    let zfs = matches!(spec.kind, ArrayKind::Zfs(_) | ArrayKind::Pool(_));
    let btrfs = matches!(spec.kind, ArrayKind::Btrfs(_));
    match spec.state {
        state if btrfs && state.is_unsynced() => return Err(ArrayError::NotOfBtrfs(state)),
        ArrayState::Resyncing if zfs => return Err(ArrayError::NoResync),
        ArrayState::InitialSync if zfs => return Err(ArrayError::NoInitialSync),
        _ => {}
    }
    if let Some(role) = spec.failed.iter().find(|r| usize::from(**r) >= members) {
        return Err(ArrayError::NoMember(*role));
    }
    let mut builder = Builder {
        spec,
        nodes: Vec::new(),
        homes: Vec::new(),
        failed: spec.failed.iter().map(|role| Member(*role)).collect(),
    };
    let sectors = match &spec.kind {
        ArrayKind::Single(sectors) => {
            builder.homes.push((0, 0));
            sectors.0
        }
        ArrayKind::Md(layout) => {
            builder.node(layout, 0, None);
            layout.capacity().0
        }
        ArrayKind::Zfs(mirror) => {
            let offset = mirror.data_start().0 / SECTOR;
            let children = (0..members as u16).map(Child::Disk).collect();
            let map = Map::Same { offset };
            let shape = Shape::Mirror(Mirror::new(
                map,
                true,
                &builder.solid(0, members),
                &spec.era,
            ));
            let capacity = mirror.allocatable().0 / SECTOR;
            builder.push(None, children, capacity, shape, None);
            builder.homes = (0..members as u16).map(|role| (0, role)).collect();
            capacity
        }
        ArrayKind::Pool(pool) => builder.pool(pool),
        ArrayKind::Btrfs(btrfs) => {
            let children = (0..members as u16).map(Child::Disk).collect();
            let capacity = btrfs.capacity().0;
            let shape = Shape::Btrfs(Box::new(Chunks::new(btrfs, spec)));
            builder.push(None, children, capacity, shape, None);
            builder.homes = (0..members as u16).map(|role| (0, role)).collect();
            capacity
        }
    };
    builder.states()?;
    let clean = builder.superblocks();
    let bitmaps = builder.bitmaps()?;
    let mut core = Core::new();
    core.base = spec.base();
    core.clean = clean;
    let resyncs = builder.nodes.iter().any(|node| node.resync.is_some());
    if resyncs {
        let silence = |node: &Node| vec![Heard::default(); node.common.children.len()];
        core.heard = builder.nodes.iter().map(silence).collect();
    }
    Ok(Array {
        nodes: builder.nodes,
        core,
        resyncs,
        bitmaps,
        refill: match spec.state {
            ArrayState::Rebuilding(_) if zfs => Refill::Resilver,
            ArrayState::Rebuilding(_) => Refill::Rebuild,
            _ => Refill::Resync,
        },
        scan: spec.era.scan,
        copying: spec.era.copying,
        member_requests: spec.member_requests,
        sectors,
        homes: builder.homes,
        #[cfg(test)]
        asks_always: false,
    })
}

/// Sectors of a vdev's labels and of the space between them.
fn region(vdev: &Vdev) -> u64 {
    (START + vdev.allocatable().0 + END) / SECTOR
}

/// Whether the first sync fills the last member from the others, which reads and writes in order, instead of comparing:
/// mdadm makes raid4 and raid5 with a spare in its place (`Create.c`; never with metadata of a BIOS RAID).
pub(crate) fn fills_last(layout: &Layout) -> bool {
    matches!(layout, Layout::Parity(parity) if parity.level() != ParityLevel::Raid6)
}

/// Whether an array survives the loss of a member.
fn redundant(node: &Node) -> bool {
    node.layout
        .as_ref()
        .is_none_or(|layout| layout.survives(MemberSet::one(Member(0))) != Survival::Lost)
}

/// ZFS begins when it is told what lies where.
fn begin_resync(node: &mut Node, spec: &ArraySpec) {
    let Some(layout) = &node.layout else {
        return;
    };
    let era = spec.era;
    let (end, depth, each) = match &mut node.shape {
        Shape::Parity(parity) => {
            // As many as the stripe cache has room for, of one stripe.
            (parity.resync_sectors(), usize::MAX, 8)
        }
        Shape::Mirror(mirror) => {
            let submit = Span(spec.cost.submit);
            mirror.guard(era.local_barrier, spec.resync_build, submit);
            // A rebuild goes by the sectors of the members.
            let end = if node.common.resyncing {
                layout.capacity().0
            } else {
                layout.used(Member(0)).0
            };
            let depth = match layout {
                Layout::Raid10(_) => DEPTH_RAID10,
                _ => DEPTH,
            };
            (end, depth, UNIT)
        }
        Shape::Linear(_)
        | Shape::Raid0(_)
        | Shape::Raidz(_)
        | Shape::Vdevs(_)
        | Shape::Btrfs(_) => return,
    };
    node.resync = Some(Resync::new(end, depth, each, spec, &era));
}

impl Builder<'_> {
    fn solid(&self, base: usize, members: usize) -> Vec<bool> {
        let turns = &self.spec.rotational;
        (base..base + members)
            .map(|m| !turns.get(m).copied().unwrap_or(true))
            .collect()
    }

    fn push(
        &mut self,
        up: Option<(u16, u16)>,
        children: Vec<Child>,
        capacity: u64,
        shape: Shape,
        layout: Option<Layout>,
    ) -> u16 {
        let index = self.nodes.len() as u16;
        self.nodes.push(Node {
            common: Common {
                index,
                up,
                children,
                capacity,
                sizes: Sizes::ANY,
                gone: MemberSet::EMPTY,
                filling: MemberSet::EMPTY,
                lost: false,
                resyncing: false,
                disagrees: self.spec.state == ArrayState::InitialSync,
                front: 0,
                // Of ZFS what is lacking is told by place.
                known: if layout.is_none() { u64::MAX } else { 0 },
                superblock: Superblock::default(),
                lacks: Vec::new(),
            },
            shape,
            layout,
            resync: None,
            bitmap: None,
            resilver: None,
            replace: None,
        });
        index
    }

    /// Adds an array and those below it; its first disk is member `base` of the whole.
    fn node(&mut self, layout: &Layout, base: u16, up: Option<(u16, u16)>) -> u16 {
        let (outer, inner) = match layout {
            Layout::Nested(nested) => (nested.outer(), nested.inner()),
            plain => (plain, &[][..]),
        };
        let solid = self.solid(usize::from(base), outer.members());
        let era = &self.spec.era;
        let shape = match outer {
            Layout::Linear(l) => Shape::Linear(l.clone()),
            Layout::Raid0(l) => Shape::Raid0(l.clone()),
            Layout::Parity(l) => {
                let parities = self.nodes.iter().filter(|node| node.parity().is_some());
                let grown = self.spec.grown_caches.get(parities.count()).copied();
                let rows = grown.unwrap_or(self.spec.stripe_cache);
                let threads = (self.spec.cost, self.spec.group_threads);
                Shape::Parity(Box::new(ParityArray::new(l.clone(), rows, *era, threads)))
            }
            Layout::Raid10(l) => {
                Shape::Mirror(Mirror::new(Map::Raid10(l.clone()), false, &solid, era))
            }
            _ => Shape::Mirror(Mirror::new(Map::Same { offset: 0 }, false, &solid, era)),
        };
        let capacity = outer.capacity().0;
        let index = self.push(up, Vec::new(), capacity, shape, Some(outer.clone()));
        let mut children = Vec::new();
        if inner.is_empty() {
            for role in 0..outer.members() as u16 {
                children.push(Child::Disk(base + role));
                self.homes.push((index, role));
            }
        }
        let mut base = base;
        for (role, layout) in inner.iter().enumerate() {
            let child = self.node(layout, base, Some((index, role as u16)));
            children.push(Child::Node(child));
            base += layout.members() as u16;
        }
        self.nodes[usize::from(index)].common.children = children;
        index
    }

    /// Adds the vdevs of a pool, below one that has them all when there are several; sectors of the whole.
    fn pool(&mut self, pool: &Pool) -> u64 {
        let ends = pool.vdevs().scan(0, |end, vdev| {
            *end += region(vdev);
            Some(*end)
        });
        let ends: Vec<u64> = ends.collect();
        let all = ends.last().copied().unwrap_or(0);
        let several = ends.len() > 1;
        if several {
            let children = (1..=ends.len() as u16).map(Child::Node).collect();
            self.push(None, children, all, Shape::Vdevs(ends), None);
        }
        for (number, vdev) in pool.vdevs().enumerate() {
            let base = self.homes.len();
            let children = base..base + vdev.children();
            let shape = match vdev {
                Vdev::Mirror(_) => {
                    // Its labels are in front of the space that is handed out.
                    let (map, solid) = (Map::Same { offset: 0 }, self.solid(base, vdev.children()));
                    Shape::Mirror(Mirror::new(map, true, &solid, &self.spec.era))
                }
                Vdev::Raidz(raidz) => Shape::Raidz(RaidzVdev::new(raidz.clone(), vdev.of_child())),
            };
            let up = several.then_some((0, number as u16));
            let disks = children.clone().map(|disk| Child::Disk(disk as u16));
            let index = self.push(up, disks.collect(), region(vdev), shape, None);
            self.homes
                .extend((0..children.len() as u16).map(|role| (index, role)));
        }
        all
    }

    /// Each array of md with redundancy writes superblocks, and says in them whether it is clean.
    fn superblocks(&mut self) -> Vec<Option<Clean>> {
        let spec = self.spec;
        if spec.superblock.is_none() {
            return Vec::new();
        }
        let mut clean = vec![None; self.nodes.len()];
        for node in &mut self.nodes {
            if node.layout.is_none() || !redundant(node) {
                continue;
            }
            node.common.superblock = Superblock::new(spec.superblock);
            if let Some(mode) = spec.era.safe_mode {
                clean[usize::from(node.common.index)] = Some(Clean::new(mode));
            }
        }
        if clean.iter().all(Option::is_none) {
            return Vec::new();
        }
        clean
    }

    /// Each array of md with redundancy has a bitmap, if there are any; whether some have.
    fn bitmaps(&mut self) -> Result<bool, ArrayError> {
        let Some(spec) = &self.spec.bitmap else {
            return Ok(false);
        };
        match self.spec.state {
            ArrayState::Resyncing => return Err(ArrayError::NotedResync),
            ArrayState::InitialSync => return Err(ArrayError::NotedInitialSync),
            _ => {}
        }
        let mut some = false;
        for node in self.nodes.iter_mut().filter(|node| redundant(node)) {
            let sectors = match (&node.shape, &node.layout) {
                (Shape::Parity(parity), _) => parity.resync_sectors(),
                (Shape::Mirror(_), Some(_)) => node.common.capacity,
                _ => continue,
            };
            let (bits, most) = bitmap::bits(spec, sectors);
            if bits > most {
                return Err(ArrayError::BitmapRoom(bits, most));
            }
            node.bitmap = Some(Box::new(Bitmap::new(spec, sectors)));
            some = true;
        }
        Ok(some)
    }

    /// Puts the failed members into the arrays they are in. An array that does not survive them is
    /// one failed member of the array above: as a whole it is gone, or new and being filled.
    fn states(&mut self) -> Result<(), ArrayError> {
        let state = self.spec.state;
        if let (ArrayKind::Btrfs(btrfs), [root, ..]) = (&self.spec.kind, &mut self.nodes[..]) {
            // It was mounted so.
            let missing = btrfs.missing();
            root.common.gone = missing;
            if missing.len() > btrfs.profile().survives() {
                return Err(ArrayError::Lost(missing.iter().map(|m| m.0).collect()));
            }
            if matches!(state, ArrayState::Rebuilding(_)) {
                root.replaces_next();
            }
            return Ok(());
        }
        if state.failures() > 0 {
            for member in self.failed.iter() {
                let (node, role) = self.homes[member.index()];
                self.set(node, role)?;
            }
        }
        if state != ArrayState::Clean && !self.nodes.iter().any(redundant) {
            return Err(ArrayError::NoRedundancy(state));
        }
        for node in &mut self.nodes {
            let fills = node.layout.as_ref().is_some_and(fills_last);
            if state == ArrayState::InitialSync && fills {
                let last = Member::new(node.common.children.len() - 1);
                node.common.filling.insert(last);
            } else {
                node.common.resyncing = state.is_unsynced() && redundant(node);
            }
            if node.common.resyncing || !node.common.filling.is_empty() {
                begin_resync(node, self.spec);
            }
        }
        Ok(())
    }

    fn set(&mut self, node: u16, role: u16) -> Result<(), ArrayError> {
        let Some(node) = self.nodes.get_mut(usize::from(node)) else {
            return Err(ArrayError::Lost(self.spec.failed.clone()));
        };
        let rebuilds = matches!(self.spec.state, ArrayState::Rebuilding(_));
        if !node.fail(role) {
            if rebuilds {
                node.common.gone.remove(Member(role));
                node.common.filling.insert(Member(role));
            }
            return Ok(());
        }
        let Some((above, role)) = node.common.up else {
            return Err(ArrayError::Lost(self.spec.failed.clone()));
        };
        if rebuilds {
            // Its members are there again, and the array is new.
            node.common.lost = false;
            (node.common.gone, node.common.filling) = (MemberSet::EMPTY, MemberSet::EMPTY);
        }
        self.set(above, role)
    }
}
