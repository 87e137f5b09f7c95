//! Rows of btrfs that need not be read.
use std::collections::BTreeMap;

/// Rows that are known (`RBIO_CACHE_SIZE`).
const KNOWN: usize = 1024;

/// The rows that were written in part last, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    by_row: BTreeMap<u64, u64>,
    by_age: BTreeMap<u64, u64>,
    newest: u64,
}

impl Known {
    /// Forgets a row, and tells whether it was known.
    pub(super) fn take(&mut self, row: u64) -> bool {
        let age = self.by_row.remove(&row);
        age.is_some_and(|age| self.by_age.remove(&age).is_some())
    }

    /// A row is the newest.
    pub(super) fn add(&mut self, row: u64) {
        self.take(row);
        self.newest += 1;
        self.by_row.insert(row, self.newest);
        self.by_age.insert(self.newest, row);
        if self.by_row.len() > KNOWN
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_row.remove(&oldest);
        }
    }
}
