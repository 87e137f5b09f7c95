//! What the initial sync of an array leaves behind: stripe caches that have grown.
//!
//! A resync that finds the stripe cache full makes it a stripe larger (`raid5.c:raid5_get_active_stripe`,
//! `grow_one_stripe`), and nothing but memory that runs short makes it smaller again, or a stop of the array. How far it
//! comes depends on how many members of what size and speed there are; so the sync is run, on disks of its own, until it
//! is over or the caches are as large as they become.
use crate::array::{ArrayKind, SYNC_SPEED_MAX, SYNC_SPEED_MIN, fills_last};
use crate::storage::{Storage, StorageError, StorageSpec};
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::Layout;

/// Rows of the stripe cache of each parity array when the array has been synced; empty where caches do not grow.
pub(super) fn grown_caches(spec: &StorageSpec, seed: u64) -> Result<Vec<u32>, StorageError> {
    let ArrayKind::Md(layout) = &spec.array.kind else {
        return Ok(Vec::new());
    };
    let mut spec = spec.clone();
    (spec.array.state, spec.array.failed) = first_sync(layout);
    // All its bits are set until then, and nothing is written beside.
    spec.array.bitmap = None;
    // Limits that the experiment sets are set afterwards.
    (spec.array.sync_speed_min, spec.array.sync_speed_max) = (SYNC_SPEED_MIN, SYNC_SPEED_MAX);
    let mut storage = Storage::new(&spec, seed)?;
    let mut ended = Vec::new();
    while let Some(array) = storage.array()
        && array.resync().is_some()
        && array.stripe_caches().any(|(_, grows)| grows)
        && let Some(next) = storage.next_event()
    {
        storage.advance(next, &mut ended);
    }
    let caches = storage
        .array()
        .into_iter()
        .flat_map(|array| array.stripe_caches());
    Ok(caches.map(|(rows, _)| rows).collect())
}

/// How mdadm has members agree for the first time: the last one of a raid4 or raid5 is filled from the others, which is faster
/// than to compare (`Create.c`); parity of raid6 is compared.
fn first_sync(layout: &Layout) -> (ArrayState, Vec<u16>) {
    let mut last = Vec::new();
    let mut end = 0;
    match layout {
        Layout::Nested(nested) => {
            let outer = fills_last(nested.outer());
            for (role, inner) in nested.inner().iter().enumerate() {
                let first = end;
                end += inner.members() as u16;
                if outer && role + 1 == nested.inner().len() {
                    last.extend(first..end);
                } else if fills_last(inner) {
                    last.push(end - 1);
                }
            }
        }
        plain if fills_last(plain) => last.push(plain.members() as u16 - 1),
        _ => {}
    }
    match last.len() as u16 {
        0 => (ArrayState::Resyncing, last),
        members => (ArrayState::Rebuilding(members), last),
    }
}
