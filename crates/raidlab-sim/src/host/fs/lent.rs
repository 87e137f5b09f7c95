//! A file that is worked on beside the rest of its file system.
use raidlab_core::op::FileId;
use std::collections::BTreeMap;

/// Takes a file out; an empty one has its place until it is put [back]. To take it out of the map and put it in again would cost
/// more than all that most calls have to do.
pub(super) fn lend<F: Default>(files: &mut BTreeMap<FileId, F>, id: FileId) -> Option<F> {
    files.get_mut(&id).map(std::mem::take)
}

/// Puts a file that was [lent](lend) back into its place.
pub(super) fn back<F>(files: &mut BTreeMap<FileId, F>, id: FileId, file: F) {
    if let Some(place) = files.get_mut(&id) {
        *place = file;
    }
}
