//! Numbered places that are used again.

/// Things by number; a number is free again once its thing is taken out.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    list: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy> Slab<T> {
    /// Puts a thing in; its number.
    #[inline]
    pub(super) fn put(&mut self, thing: T) -> u64 {
        if let Some(index) = self.free.pop() {
            self.list[index as usize] = thing;
            return u64::from(index);
        }
        self.list.push(thing);
        (self.list.len() - 1) as u64
    }

    /// Takes a thing out.
    #[inline]
    pub(super) fn take(&mut self, number: u64) -> T {
        self.free.push(number as u32);
        self.list[number as usize]
    }
}
