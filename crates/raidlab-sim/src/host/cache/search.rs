//! Looking for pages in a state.
use super::{Cache, NODE, Node, bits, parts};

impl Cache {
    /// Pages that it has room for.
    pub(in crate::host) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Pages in memory in a row from `page`, counted up to `most`.
    #[inline]
    pub(in crate::host) fn present_run(&mut self, file: u32, page: u64, most: u64) -> u64 {
        let mut run = 0;
        for (chunk, first, count) in parts(page, most) {
            let Some(index) = self.find(file, chunk) else {
                break;
            };
            let ones = u64::from((self.nodes[index as usize].present >> first).trailing_ones());
            run += ones.min(count);
            if ones < count {
                break;
            }
        }
        run
    }

    /// Whether the page is on its way from the device.
    pub(in crate::host) fn is_reading(&mut self, file: u32, page: u64) -> bool {
        let found = self.find(file, page / NODE);
        found.is_some_and(|i| self.nodes[i as usize].reading >> (page % NODE) & 1 == 1)
    }

    /// Whether the page is there without content.
    pub(in crate::host) fn is_blank(&mut self, file: u32, page: u64) -> bool {
        let found = self.find(file, page / NODE);
        found.is_some_and(|i| self.nodes[i as usize].blank >> (page % NODE) & 1 == 1)
    }

    /// Pages of the run that are neither in memory nor on their way.
    pub(in crate::host) fn missing(&mut self, file: u32, page: u64, pages: u64) -> u64 {
        let mut held = 0;
        for (chunk, first, count) in parts(page, pages) {
            if let Some(index) = self.find(file, chunk) {
                let mask = bits(first, count);
                held += u64::from((self.nodes[index as usize].held() & mask).count_ones());
            }
        }
        pages - held
    }

    /// The first run of pages within `page..end` that are neither in memory nor on their way.
    pub(in crate::host) fn next_missing(
        &mut self,
        file: u32,
        page: u64,
        end: u64,
    ) -> Option<(u64, u64)> {
        let (mut start, mut run) = (page, 0);
        for (chunk, first, count) in parts(page, end.saturating_sub(page)) {
            let held = match self.find(file, chunk) {
                Some(index) => self.nodes[index as usize].held(),
                None => 0,
            };
            let mut at = first;
            while at < first + count {
                let rest = held >> at;
                let left = first + count - at;
                if rest & 1 == 1 {
                    if run > 0 {
                        return Some((start, run));
                    }
                    at += u64::from(rest.trailing_ones()).min(left);
                    start = chunk * NODE + at;
                } else {
                    let zeros = u64::from(rest.trailing_zeros()).min(left);
                    run += zeros;
                    at += zeros;
                }
            }
        }
        (run > 0).then_some((start, run))
    }

    /// The first run of dirty pages from `page` on that are not being written, at most `most` pages.
    pub(in crate::host) fn next_dirty(
        &mut self,
        file: u32,
        page: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let ready = |node: &Node| node.dirty & !node.writing;
        let (mut chunk, mut first) = (page / NODE, page % NODE);
        let start = loop {
            let cached = self.files.get(file as usize)?;
            let index = cached.map.next_marked(&mut chunk, &mut first)?;
            let rest = ready(&self.nodes[index as usize]) >> first;
            if rest != 0 {
                break chunk * NODE + first + u64::from(rest.trailing_zeros());
            }
            (chunk, first) = (chunk + 1, 0);
        };
        let mut run = 0;
        for (chunk, first, count) in parts(start, most) {
            let Some(index) = self.find(file, chunk) else {
                break;
            };
            let ones = u64::from((ready(&self.nodes[index as usize]) >> first).trailing_ones());
            run += ones.min(count);
            if ones < count {
                break;
            }
        }
        Some((start, run))
    }

    /// Whether any page of the run is dirty.
    pub(in crate::host) fn any_dirty(&mut self, file: u32, page: u64, pages: u64) -> bool {
        parts(page, pages).any(|(chunk, first, count)| {
            let found = self.find(file, chunk);
            found.is_some_and(|i| self.nodes[i as usize].dirty & bits(first, count) != 0)
        })
    }
}
