//! Pages in memory.
use super::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page.
pub const PAGE: usize = 64 << 10;

/// Memory that several stores share.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Arc<AtomicU64>,
}

impl Budget {
    /// So many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            left: Arc::new(AtomicU64::new(bytes)),
        }
    }

    /// Bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    fn take(&self) -> Result<(), StoreError> {
        let less = |left: u64| left.checked_sub(PAGE as u64);
        let order = Ordering::Relaxed;
        let taken = self.left.fetch_update(order, order, less);
        taken.map(drop).map_err(|_| StoreError::Full)
    }

    fn give_back(&self, pages: usize) {
        let bytes = (pages * PAGE) as u64;
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Content in pages; those that were never written, or with nothing but zeroes, take no memory.
#[derive(Debug)]
pub struct Sparse {
    pages: BTreeMap<u64, Box<[u8]>>,
    budget: Budget,
}

/// The parts of an extent by page: number of the page, first byte in it, bytes.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let (page, end) = (PAGE as u64, offset + len);
    let mut at = offset;
    std::iter::from_fn(move || {
        let within = at % page;
        let n = (page - within).min(end - at);
        let part = (at / page, within as usize, n as usize);
        at += n;
        (n > 0).then_some(part)
    })
}

impl Sparse {
    /// An empty one, with the memory of `budget`.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        Self {
            pages: BTreeMap::new(),
            budget: budget.clone(),
        }
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut rest = buffer;
        for (number, from, n) in parts(offset, rest.len() as u64) {
            let (part, more) = std::mem::take(&mut rest).split_at_mut(n);
            match self.pages.get(&number) {
                Some(page) => part.copy_from_slice(&page[from..from + n]),
                None => part.fill(0),
            }
            rest = more;
        }
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        let mut rest = data;
        for (number, from, n) in parts(offset, data.len() as u64) {
            let (part, more) = rest.split_at(n);
            rest = more;
            if let Some(page) = self.pages.get_mut(&number) {
                page[from..from + n].copy_from_slice(part);
            } else if part.iter().any(|byte| *byte != 0) {
                self.budget.take()?;
                let mut page = vec![0; PAGE].into_boxed_slice();
                page[from..from + n].copy_from_slice(part);
                self.pages.insert(number, page);
            }
        }
        Ok(())
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        let (page, end) = (PAGE as u64, offset + len);
        // Whole pages by what is there: an extent may be larger than all memory.
        let whole = offset.div_ceil(page)..end / page;
        if whole.start < whole.end {
            let mut tail = self.pages.split_off(&whole.start);
            let mut after = tail.split_off(&whole.end);
            self.budget.give_back(tail.len());
            self.pages.append(&mut after);
        }
        for number in [offset / page, end / page] {
            let (from, to) = (offset.max(number * page), end.min((number + 1) * page));
            if let Some(kept) = self.pages.get_mut(&number).filter(|_| from < to) {
                kept[(from % page) as usize..][..(to - from) as usize].fill(0);
            }
        }
    }

    pub(super) fn used(&self) -> u64 {
        (self.pages.len() * PAGE) as u64
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        self.budget.give_back(self.pages.len());
    }
}
