//! Who makes the array of a cell: nobody, md, ZFS, btrfs or the controller; and where its zones end.
use super::{Parts, Plans};
use crate::array::ArrayKind;
use crate::disk::DiskModel;
use crate::fabric::{FabricSpec, VolumeSpec};
use crate::host::fs::metadata_chunk;
use crate::machine::edges::{self, Below};
use crate::machine::error::MachineError;
use crate::machine::place::{Area, area};
use crate::machine::resilver::written;
use raidlab_core::units::{Bytes, Lba, SECTOR, Sectors};
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::setup::{Array, ArrayLayout, ArrayState, Setup};
use raidlab_layout::{
    Btrfs, BtrfsProfile, Geometry, Layout, LayoutError, Member, PoolSpec, VdevKind, ZfsMirror,
};

/// The pool that needs no vdevs: its places are those of its children.
const ONE_MIRROR: PoolSpec = PoolSpec {
    kind: VdevKind::Mirror,
    shape: None,
};
impl Parts<'_> {
    /// One disk as it is.
    pub(super) fn single(&self, setup: &Setup, fabric: FabricSpec) -> Result<Plans, MachineError> {
        let area = self.area(setup, 0)?;
        let kind = ArrayKind::Single(Sectors(area.sectors));
        let below = Below {
            model: &self.models[0],
            offset: area.offset,
        };
        let edges = edges::of_disk(&below, area.sectors);
        self.plans(setup, fabric, kind, &[area], edges)
    }

    pub(super) fn md(&self, setup: &Setup, fabric: FabricSpec) -> Result<Plans, MachineError> {
        let areas = self.areas(setup)?;
        let layout = self.layout(&setup.array, &areas)?;
        let below = self.below(&areas);
        let edges = edges::of_layout(&layout, &below);
        let sync_edges = edges::of_resync(&layout, &below, setup.array.state);
        let plans = self.plans(setup, fabric, ArrayKind::Md(layout), &areas, edges)?;
        Ok(Plans {
            sync_edges,
            ..plans
        })
    }

    /// ZFS puts blocks where it likes, so that a place in a file says nothing about one on a disk.
    pub(super) fn zfs(&self, setup: &Setup, fabric: FabricSpec) -> Result<Plans, MachineError> {
        let areas = self.areas(setup)?;
        if self.disks.len() == 1 {
            let kind = ArrayKind::Single(Sectors(areas[0].sectors));
            return self.plans(setup, fabric, kind, &areas, Vec::new());
        }
        let sizes: Vec<Bytes> = areas.iter().map(|a| Bytes(a.sectors * SECTOR)).collect();
        let ashift = setup.array.ashift.unwrap_or(12);
        if let ArrayLayout::Zfs(pool) = &setup.array.layout
            && *pool != ONE_MIRROR
        {
            let built = pool.build(&sizes, ashift);
            let built = built.map_err(|source| MachineError::Layout {
                layout: pool.to_string(),
                members: sizes.len(),
                source,
            })?;
            return self.plans(setup, fabric, ArrayKind::Pool(built), &areas, Vec::new());
        }
        let mirror = ZfsMirror::new(&sizes, ashift).map_err(|source| MachineError::Zfs {
            members: sizes.len(),
            source,
        })?;
        self.plans(setup, fabric, ArrayKind::Zfs(mirror), &areas, Vec::new())
    }

    /// btrfs puts chunks where there is room, so that a place in a file says little about one on a disk.
    pub(super) fn btrfs(&self, setup: &Setup, fabric: FabricSpec) -> Result<Plans, MachineError> {
        let areas = self.areas(setup)?;
        let array = &setup.array;
        if areas.len() == 1 {
            // Metadata twice on the one disk, as of a file system on any device.
            let kind = ArrayKind::Single(Sectors(areas[0].sectors));
            return self.plans(setup, fabric, kind, &areas, Vec::new());
        }
        let layout = array.layout.to_string();
        let degenerate = setup.host.kernel >= Kernel::DEGENERATE_STRIPES;
        let unknown =
            |what: String| MachineError::NotModelled(format!("engine 'btrfs' with {what}"));
        let profile = BtrfsProfile::of(&layout);
        let profile = profile.ok_or_else(|| unknown(format!("layout {layout}")))?;
        let sizes: Vec<Sectors> = areas.iter().map(|area| Sectors(area.sectors)).collect();
        let all = areas.iter().map(|area| area.sectors * SECTOR).sum();
        let metadata = Bytes(metadata_chunk(all));
        let missing = array.failed.iter().map(|role| Member(*role)).collect();
        let told = |source: LayoutError| MachineError::Layout {
            layout: array.layout.to_string(),
            members: sizes.len(),
            source: source.into(),
        };
        let written = match array.state {
            ArrayState::Rebuilding(_) => {
                let whole = Btrfs::new(profile, &sizes, metadata, degenerate).map_err(told)?;
                written(setup, &whole)?
            }
            _ => Lba(0),
        };
        let later = (missing, written);
        let built = Btrfs::degraded_later(profile, &sizes, metadata, degenerate, later);
        let built = built.map_err(told)?;
        self.plans(setup, fabric, ArrayKind::Btrfs(built), &areas, Vec::new())
    }

    /// A volume of the controller, with a partition on it. The controller's own metadata are left out.
    pub(super) fn volume(
        &self,
        setup: &Setup,
        mut fabric: FabricSpec,
    ) -> Result<Plans, MachineError> {
        let array = &setup.array;
        let all = |model: &DiskModel| {
            let most = array.member_size.map_or(u64::MAX, |size| size.0 / SECTOR);
            Area {
                offset: 0,
                sectors: model.sectors().min(most),
            }
        };
        let areas: Vec<Area> = self.models.iter().map(all).collect();
        let layout = self.layout(array, &areas)?;
        let volume = layout.capacity().0;
        let area = area(setup.host.kernel, array.engine, volume, None);
        let below = self.below(&areas);
        let mut edges = edges::of_layout(&layout, &below);
        let sync_edges = edges::of_refill(&layout, &below, array.state);
        edges.retain(|edge| *edge > area.offset);
        edges.iter_mut().for_each(|edge| *edge -= area.offset);
        let disks = fabric.disks.len() as u32;
        fabric.volumes.push(VolumeSpec {
            name: "volume".to_owned(),
            disks: (0..disks).collect(),
            layout,
            failed: array.failed.clone(),
            state: array.state,
            rebuild_rate: array.rebuild_rate,
        });
        let kind = ArrayKind::Single(Sectors(area.sectors));
        let mut plans = self.plans(setup, fabric, kind, &[area], edges)?;
        let array = &mut plans.storage.array;
        (array.state, array.failed) = (ArrayState::Clean, Vec::new());
        Ok(Plans {
            sync_edges,
            ..plans
        })
    }

    fn layout(&self, array: &Array, areas: &[Area]) -> Result<Layout, MachineError> {
        let told = |source| MachineError::Layout {
            layout: array.layout.to_string(),
            members: areas.len(),
            source,
        };
        let sizes: Vec<Sectors> = areas.iter().map(|a| Sectors(a.sectors)).collect();
        let ArrayLayout::Fixed(spec, _) = &array.layout else {
            return Layout::linear(&sizes, None).map_err(|error| told(error.into()));
        };
        let geometry = Geometry {
            sizes,
            chunk: array.chunk.unwrap_or(Bytes::kib(64)).to_sectors(),
            outer_chunk: array.outer_chunk.map(Bytes::to_sectors),
        };
        spec.build(&geometry).map_err(told)
    }
}
