//! Where on the device another zone of some disk begins: between two edges a sequential reader sees
//! the same geometry all along.
use crate::disk::DiskModel;
use raidlab_core::units::Lba;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::nested::Nested;
use raidlab_layout::{Content, Layout, Member};

/// Places of a member that are asked for data, from an edge on: past parity and copies of others.
const PROBES: u64 = 64;

/// Sectors at which the zones of a disk begin, the first apart.
fn zones(model: &DiskModel) -> Vec<u64> {
    match model {
        DiskModel::Hdd(model) => model.geometry.zones().skip(1).map(|z| z.0).collect(),
        DiskModel::Ssd(_) => Vec::new(),
    }
}

/// A disk and where on it the data of the member begin.
pub(super) struct Below<'m> {
    pub(super) model: &'m DiskModel,
    pub(super) offset: u64,
}

/// Edges of one disk as it is, ascending, its end among them.
pub(super) fn of_disk(below: &Below<'_>, sectors: u64) -> Vec<u64> {
    let edges = zones(below.model).into_iter();
    let edges = edges.filter_map(|zone| zone.checked_sub(below.offset));
    let mut edges: Vec<u64> = edges.filter(|at| *at < sectors).collect();
    edges.push(sectors);
    edges
}

/// Edges of an array in its sectors, ascending, its end among them: where a zone of a member begins,
/// and where members join in or come to their end.
pub(super) fn of_layout(layout: &Layout, below: &[Below<'_>]) -> Vec<u64> {
    let mut edges = vec![layout.capacity().0];
    let step = layout.chunk().map_or(1, |chunk| chunk.0);
    for (role, below) in below.iter().enumerate() {
        let member = Member::new(role);
        let used = layout.used(member).0;
        let zones = zones(below.model).into_iter();
        let zones = zones.filter_map(|zone| zone.checked_sub(below.offset));
        let ends = [0, used.saturating_sub(step)];
        for at in zones.chain(ends).filter(|at| *at < used) {
            let content = |probe| layout.content(member, Lba(at + probe * step));
            let data = (0..PROBES).find_map(|probe| match content(probe) {
                Content::Data(lba) => Some(lba.0),
                _ => None,
            });
            edges.extend(data);
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Edges in sectors as the resync of an array counts them: of each member, or of the array when a
/// raid10 is resynced. Of arrays of arrays as those count that have a resync.
pub(super) fn of_resync(layout: &Layout, below: &[Below<'_>], state: ArrayState) -> Vec<u64> {
    let whole = state.is_unsynced();
    let sections: Vec<u64> = match layout {
        Layout::Nested(nested) => return of_nested(nested, below, state),
        Layout::Linear(_) | Layout::Raid0(_) => return Vec::new(),
        Layout::Raid10(_) if whole => return of_layout(layout, below),
        // A member is filled from copies in other sections of others.
        Layout::Raid10(l) => l.section_starts().map(|start| start.0).collect(),
        _ => vec![0],
    };
    let used = layout.used(Member::new(0)).0;
    let mut edges = sections.clone();
    for below in below {
        for zone in zones(below.model) {
            let Some(at) = zone.checked_sub(below.offset).filter(|at| *at < used) else {
                continue;
            };
            // Where the position is when any copy of its content lies there.
            edges.extend(sections.iter().map(|s| (at + s) % used));
            edges.extend(sections.iter().map(|s| (at + used - s) % used));
        }
    }
    edges.push(used);
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The same of a controller's volume, which is gone through in the order of the array's sectors. What is filled is counted in
/// those of the member all the same.
pub(super) fn of_refill(layout: &Layout, below: &[Below<'_>], state: ArrayState) -> Vec<u64> {
    let Layout::Raid10(_) = layout else {
        return of_resync(layout, below, state);
    };
    let edges = of_layout(layout, below);
    if state.is_unsynced() {
        return edges;
    }
    let (all, used) = (layout.capacity().0.max(1), layout.used(Member::new(0)).0);
    let scaled = |at: u64| (u128::from(at) * u128::from(used) / u128::from(all)) as u64;
    edges.into_iter().map(scaled).collect()
}

/// Edges of an array of arrays; none where arrays of both kinds, or unlike ones, would have a resync, which have no pace
/// in common.
fn of_nested(nested: &Nested, below: &[Below<'_>], state: ArrayState) -> Vec<u64> {
    let (inner, outer) = (nested.inner(), nested.outer());
    let plain = |layout: &Layout| matches!(layout, Layout::Raid0(_) | Layout::Linear(_));
    let mut rest = below;
    let each: Vec<(&Layout, &[Below<'_>])> = inner
        .iter()
        .map(|layout| {
            let own;
            (own, rest) = rest.split_at(layout.members());
            (layout, own)
        })
        .collect();
    let mut edges: Vec<u64> = match outer {
        _ if plain(outer) => {
            let alike = below.iter().all(|disk| {
                let first = &below[0];
                first.offset == disk.offset && first.model.is_shared_with(disk.model)
            });
            let (member, first) = (Member::new(0), &inner[0]);
            let mut others = inner.iter();
            let as_large = others.all(|layout| {
                layout.used(member) == first.used(member) && layout.members() == first.members()
            });
            match alike && as_large {
                true => of_resync(first, each[0].1, state),
                false => Vec::new(),
            }
        }
        // The members of a mirror are arrays: a zone of any of their disks is an edge.
        Layout::Raid1(_) if inner.iter().all(plain) => {
            let used = outer.used(Member::new(0)).0;
            let edges = each.iter().flat_map(|(layout, own)| of_layout(layout, own));
            let edges = edges.filter(|at| *at < used);
            edges.chain([0, used]).collect()
        }
        _ => Vec::new(),
    };
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Sectors from `at` on to before the next edge; none when an edge is less than the first margin
/// behind. The second is left before the next edge.
pub(super) fn room(edges: &[u64], at: u64, (behind, before): (u64, u64)) -> u64 {
    let next = edges.partition_point(|edge| *edge <= at);
    let last = next.checked_sub(1).map_or(0, |i| edges[i]);
    let close = last > 0 && at < last + behind;
    let end = edges
        .get(next)
        .map_or(0, |edge| edge.saturating_sub(before));
    if close { 0 } else { end.saturating_sub(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use raidlab_core::units::Sectors;
    use raidlab_layout::{Geometry, Spec};

    fn edges(text: &str, members: usize) -> Vec<u64> {
        let model = catalogue::find("ST340015A").expect("known").disk;
        let spec: Spec = text.parse().expect("a layout");
        let layout = spec.build(&Geometry {
            sizes: vec![Sectors(78_165_000 / 128 * 128); members],
            chunk: Sectors(128),
            outer_chunk: None,
        });
        let below = |_| Below {
            model: &model,
            offset: 63,
        };
        let below: Vec<Below<'_>> = (0..members).map(below).collect();
        of_layout(&layout.expect("an array"), &below)
    }

    #[test]
    fn each_zone_of_a_member_has_an_edge() {
        let model = catalogue::find("ST340015A").expect("known").disk;
        let zones = zones(&model);
        assert_eq!(zones.len(), 15);
        let near =
            |edges: &[u64], at: u64, within: u64| edges.iter().any(|e| e.abs_diff(at) <= within);
        for (text, members, data) in [
            ("raid0", 3, 3),
            ("raid5", 4, 3),
            ("raid6", 5, 3),
            ("raid1", 2, 1),
            ("raid10", 4, 2),
        ] {
            let edges = edges(text, members);
            for zone in &zones {
                assert!(near(&edges, (zone - 63) * data, 128 * 64), "{text} {zone}");
            }
        }
        let linear = edges("linear", 2);
        assert!(
            near(&linear, 78_165_000 / 128 * 128, 0),
            "where the second member begins"
        );
    }

    #[test]
    fn there_is_no_room_across_an_edge() {
        let edges = [0, 1000, 2000];
        assert_eq!(room(&edges, 5, (10, 10)), 985);
        assert_eq!(room(&edges, 995, (10, 10)), 0);
        assert_eq!(room(&edges, 1005, (10, 10)), 0);
        assert_eq!(room(&edges, 1010, (10, 20)), 970);
        assert_eq!(room(&edges, 2500, (10, 10)), 0);
    }
}
