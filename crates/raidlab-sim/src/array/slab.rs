//! Values with small, reused numbers.

/// A store of values by number; numbers are reused, the last freed first.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(key) = self.free.pop() {
            self.items[key as usize] = item;
            return key;
        }
        self.items.push(item);
        (self.items.len() - 1) as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, key: u32) -> T {
        self.free.push(key);
        self.items[key as usize]
    }

    #[inline]
    pub(super) fn get(&self, key: u32) -> &T {
        &self.items[key as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: u32) -> &mut T {
        &mut self.items[key as usize]
    }

    /// Values in use.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}
