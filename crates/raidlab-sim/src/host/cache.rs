//! The page cache: which pages of which files are in memory, and in which state.
//!
//! Pages are kept 64 to a node, a bit each for every state, as the kernel's own tree of pages has 64
//! to a leaf: a call of some pages is one look at a word. A sequential run costs a node for 256 KiB,
//! so the memory used depends on the simulated machine's memory, not on the bytes that pass.
//! Recency is kept by node, in the two lists of the kernel: what was used once, what was used again.
mod lru;
mod map;
mod search;

#[cfg(test)]
mod tests;

pub(super) use lru::Balance;
use lru::Lists;
use map::Map;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// Pages of a node.
const NODE: u64 = 64;
/// No node.
const NONE: u32 = u32::MAX;

/// State of 64 pages in a row of one file.
#[derive(Clone, Debug)]
struct Node {
    chunk: u64,
    /// Content is in memory.
    present: u64,
    /// Content is newer than the device's.
    dirty: u64,
    /// Being read from the device.
    reading: u64,
    /// There without content: their read has failed, and they are read again when they are wanted. Never with
    /// `present` or `reading`.
    blank: u64,
    /// Being written to the device.
    writing: u64,
    /// Used once since they came.
    used: u64,
    file: u32,
    previous: u32,
    next: u32,
    active: bool,
}

impl Node {
    const fn held(&self) -> u64 {
        self.present | self.reading | self.blank
    }
}

/// What the end of a read leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Pages with their content.
    Content,
    /// Pages without (a page that is not up to date): it failed.
    Blank,
    /// It failed, and there are none.
    Nothing,
}

/// What the cache holds of one file.
#[derive(Clone, Debug, Default)]
struct Cached {
    map: Map,
    /// The node found last.
    hint: u32,
    pages: u64,
    dirty: u64,
}

/// Pages of all files.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    nodes: Vec<Node>,
    free: Vec<u32>,
    files: Vec<Cached>,
    lists: Lists,
    /// Writing pages counts as using them.
    writes_use: bool,
    capacity: u64,
    dirty: u64,
    writing: u64,
}

/// Bits `first..first + count` of a word.
#[inline]
const fn bits(first: u64, count: u64) -> u64 {
    (u64::MAX >> (NODE - count)) << first
}

/// The parts of a run of pages that lie in one node each: chunk, first page in it, pages.
#[inline]
fn parts(page: u64, pages: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = page + pages;
    let mut at = page;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let first = at % NODE;
            let count = (NODE - first).min(end - at);
            let part = (at / NODE, first, count);
            at += count;
            part
        })
    })
}

impl Cache {
    /// An empty cache of at most so many pages, where writing counts as use or does not.
    pub(super) fn new(capacity: u64, balance: Balance, writes_use: bool) -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            files: Vec::new(),
            lists: Lists::new(balance),
            writes_use,
            capacity,
            dirty: 0,
            writing: 0,
        }
    }

    /// Pages held.
    #[cfg(test)]
    pub(super) fn pages(&self) -> u64 {
        self.lists.pages()
    }

    /// Dirty pages of all files.
    #[inline]
    pub(super) const fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Pages on their way to the device.
    #[inline]
    pub(super) const fn writing(&self) -> u64 {
        self.writing
    }

    /// Dirty pages of one file.
    #[inline]
    pub(super) fn dirty_of(&self, file: u32) -> u64 {
        self.files.get(file as usize).map_or(0, |f| f.dirty)
    }

    /// Pages held of one file.
    #[inline]
    pub(super) fn pages_of(&self, file: u32) -> u64 {
        self.files.get(file as usize).map_or(0, |f| f.pages)
    }

    #[inline]
    fn find(&mut self, file: u32, chunk: u64) -> Option<u32> {
        let cached = self.files.get_mut(file as usize)?;
        if let Some(node) = self.nodes.get(cached.hint as usize)
            && node.chunk == chunk
            && node.file == file
        {
            return Some(cached.hint);
        }
        let found = cached.map.get(chunk)?;
        cached.hint = found;
        Some(found)
    }

    fn find_or_add(&mut self, file: u32, chunk: u64) -> u32 {
        if let Some(found) = self.find(file, chunk) {
            return found;
        }
        if self.files.len() <= file as usize {
            self.files.resize_with(file as usize + 1, Cached::default);
        }
        let node = Node {
            chunk,
            present: 0,
            dirty: 0,
            reading: 0,
            blank: 0,
            writing: 0,
            used: 0,
            file,
            previous: NONE,
            next: NONE,
            active: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.lists.push(&mut self.nodes, index);
        let cached = &mut self.files[file as usize];
        cached.map.set(chunk, index);
        cached.hint = index;
        index
    }

    /// Changes the bits of one node and keeps all counts; a node that holds nothing more is freed.
    #[inline]
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Node)) {
        let node = &mut self.nodes[index as usize];
        let (held, dirty, writing) = (node.held(), node.dirty, node.writing);
        change(node);
        node.blank &= !(node.present | node.reading);
        let file = &mut self.files[node.file as usize];
        let less = u64::from((dirty & !node.dirty).count_ones());
        let more = u64::from((node.dirty & !dirty).count_ones());
        file.dirty = file.dirty + more - less;
        self.dirty = self.dirty + more - less;
        if (dirty == 0) != (node.dirty == 0) {
            file.map.mark(node.chunk, node.dirty != 0);
        }
        self.writing += u64::from(node.writing.count_ones());
        self.writing -= u64::from(writing.count_ones());
        let (was, is) = (held.count_ones(), node.held().count_ones());
        if was != is {
            file.pages = file.pages + u64::from(is) - u64::from(was);
            self.lists.resize(node.active, was, is);
            if is > was {
                self.lists.bring_forward(&mut self.nodes, index);
            }
        }
        let node = &self.nodes[index as usize];
        if node.held() == 0 && node.writing == 0 {
            let (file, chunk) = (node.file, node.chunk);
            self.files[file as usize].map.clear(chunk);
            self.lists.unlink(&mut self.nodes, index);
            // No chunk has this number, so that a hint does not find it.
            self.nodes[index as usize].chunk = u64::MAX;
            self.free.push(index);
        }
    }

    /// The pages are on their way from the device.
    pub(super) fn begin_read(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            let index = self.find_or_add(file, chunk);
            self.change(index, |node| {
                node.reading |= bits(first, count) & !node.present;
            });
        }
    }

    /// The read of the pages has ended, or has failed; what that leaves.
    pub(super) fn end_read(&mut self, file: u32, page: u64, pages: u64, left: Left) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                self.change(index, |node| {
                    let came = node.reading & bits(first, count);
                    node.reading &= !came;
                    match left {
                        Left::Content => node.present |= came,
                        Left::Blank => node.blank |= came,
                        Left::Nothing => {}
                    }
                });
            }
        }
    }

    /// Pages that are there without content are there no longer, so that they can be read again.
    pub(super) fn drop_blank(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                let mask = bits(first, count);
                if self.nodes[index as usize].blank & mask != 0 {
                    self.change(index, |node| node.blank &= !mask);
                }
            }
        }
    }

    /// The pages are in memory without having been read.
    pub(super) fn fill(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            let index = self.find_or_add(file, chunk);
            self.change(index, |node| node.present |= bits(first, count));
        }
    }

    /// The pages have new content; returns how many were not dirty before.
    #[inline]
    pub(super) fn make_dirty(&mut self, file: u32, page: u64, pages: u64) -> u64 {
        let before = self.dirty;
        for (chunk, first, count) in parts(page, pages) {
            let index = self.find_or_add(file, chunk);
            let mask = bits(first, count);
            self.change(index, |node| {
                node.present |= mask;
                node.dirty |= mask;
            });
            if self.writes_use {
                self.touch(index, mask);
            }
        }
        self.dirty - before
    }

    /// The pages' content is on its way to the device.
    pub(super) fn begin_write(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                let mask = bits(first, count);
                self.change(index, |node| {
                    node.writing |= mask & node.present;
                    node.dirty &= !mask;
                });
            }
        }
    }

    /// The write of the pages has ended; one that failed is not tried again, as in the kernel.
    pub(super) fn end_write(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                self.change(index, |node| node.writing &= !bits(first, count));
            }
        }
    }

    /// The pages' content is not wanted on the device any more, or could not be given a place there.
    pub(super) fn make_clean(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                self.change(index, |node| node.dirty &= !bits(first, count));
            }
        }
    }

    /// A call has used the pages: a second use makes their node an active one.
    #[inline]
    pub(super) fn touch_run(&mut self, file: u32, page: u64, pages: u64) {
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                self.touch(index, bits(first, count));
            }
        }
    }

    #[inline]
    fn touch(&mut self, index: u32, mask: u64) {
        let node = &mut self.nodes[index as usize];
        let again = node.used & mask != 0;
        node.used |= mask;
        if again && !node.active {
            self.lists.activate(&mut self.nodes, index);
        }
    }

    /// Forgets pages of the file: clean ones alone, or all but those on their way.
    pub(super) fn forget(&mut self, file: u32, page: u64, pages: u64, dirty_too: bool) {
        let Some(cached) = self.files.get(file as usize).filter(|_| pages > 0) else {
            return;
        };
        let last = page.saturating_add(pages);
        for index in cached.map.within(page / NODE, last.div_ceil(NODE)) {
            let from = self.nodes[index as usize].chunk * NODE;
            let (first, end) = (page.max(from) - from, last.min(from + NODE) - from);
            let mask = bits(first, end - first);
            self.change(index, |node| {
                if dirty_too {
                    node.dirty &= !mask;
                }
                node.present &= !(mask & !node.dirty & !node.writing);
                node.blank &= !mask;
                node.used &= node.present;
            });
        }
    }

    /// Forgets the clean pages of all files.
    pub(super) fn forget_all(&mut self) {
        for file in 0..self.files.len() as u32 {
            self.forget(file, 0, u64::MAX, false);
        }
    }

    /// Makes room when more pages are held than fit: the longest unused clean ones go.
    #[inline]
    pub(super) fn shrink(&mut self) {
        if self.lists.pages() > self.capacity {
            self.reclaim();
        }
    }

    fn reclaim(&mut self) {
        // Each node is looked at once: what is dirty or on its way stays, and the cache may then be
        // over its size for a while, as the writers are held back by the dirty limits.
        let mut looks = self.nodes.len() - self.free.len();
        while self.lists.pages() > self.capacity && looks > 0 {
            looks -= 1;
            let Some(index) = self.lists.candidate(&mut self.nodes) else {
                return;
            };
            let node = &self.nodes[index as usize];
            let keep = node.dirty | node.writing | node.reading;
            if node.held() & !keep == 0 {
                self.lists.bring_forward(&mut self.nodes, index);
                continue;
            }
            self.change(index, |node| {
                node.present &= keep;
                node.blank = 0;
                node.used &= keep;
            });
        }
    }
}
