//! Read-ahead: which pages are asked for beside those that a process reads.
//!
//! Both algorithms are those of mm/readahead.c: current and ahead window to 2.6.22, on demand with a
//! marked page since. They see pages alone; whether a window is in memory already is asked of the
//! cache, and what is issued is left to the caller.
use super::era::Ahead;

/// Runs of pages to be read, in order; pages of them that are in memory are left out by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Windows {
    runs: [(u64, u64); 3],
    count: usize,
}

impl Windows {
    fn push(&mut self, page: u64, pages: u64) {
        if pages > 0 {
            self.runs[self.count] = (page, pages);
            self.count += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[(u64, u64)] {
        &self.runs[..self.count]
    }

    /// The first pages of a run have been asked for.
    pub(super) fn shorten(&mut self, run: usize, pages: u64) {
        let (page, count) = &mut self.runs[run];
        (*page, *count) = (*page + pages, count.saturating_sub(pages));
    }
}

/// What one open file knows of how it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    /// The page read last; `NEVER` before the first.
    previous: u64,
    start: u64,
    size: u64,
    /// Of the ahead window; of the marker's distance from the end when on demand.
    ahead_start: u64,
    ahead_size: u64,
    /// Pages asked for in a row that were all in memory (`cache_hit`), and whether there were so many
    /// that read-ahead is off until one is missing (`RA_FLAG_INCACHE`).
    hits: u64,
    in_memory: bool,
    /// When it was used last, to find the one to give up.
    pub(super) used: u64,
    /// The process that has it open for itself; `None` where calls do not tell.
    pub(super) owner: Option<u16>,
}

/// Pages in a row that are in memory after which read-ahead is off (`VM_MAX_CACHE_HIT`).
const MOST_HITS: u64 = 256;
/// One before page 0, as the kernel's -1.
const NEVER: u64 = u64::MAX;

/// What a look is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// First page that the call wants.
    pub(super) page: u64,
    /// Pages that the call wants from there.
    pub(super) pages: u64,
    /// Largest window.
    pub(super) most: u64,
    /// Pages of the largest request, which a call that wants more than the window may have at once; 0 where
    /// the kernel does not ask for it.
    pub(super) request: u64,
    /// Two windows are joined only as far as they fit in the largest one.
    pub(super) joined_fit: bool,
    /// A window is no smaller than the one before it, though the call wants less of it.
    pub(super) keeps: bool,
    /// Pages of the file.
    pub(super) end: u64,
}

impl Look {
    /// The largest window for a call that wants so many pages.
    fn most_for(&self, pages: u64) -> u64 {
        if self.most > 0 && pages > self.most && self.request > self.most {
            pages.min(self.request)
        } else {
            self.most
        }
    }
}

impl ReadAhead {
    pub(super) const fn new() -> Self {
        Self {
            previous: NEVER,
            start: 0,
            size: 0,
            ahead_start: 0,
            ahead_size: 0,
            hits: 0,
            in_memory: false,
            used: 0,
            owner: None,
        }
    }

    /// The next page to be read is `page`, as page 0 is of a file that was just opened.
    pub(super) const fn begin_at(&mut self, page: u64) {
        let (used, owner) = (self.used, self.owner);
        *self = Self::new();
        (self.previous, self.used, self.owner) = (page.wrapping_sub(1), used, owner);
    }

    /// Whether a call that begins at `page` goes on where the last one ended.
    pub(super) const fn follows(&self, page: u64) -> bool {
        page == self.previous || page == self.previous.wrapping_add(1)
    }

    /// The page whose use starts the next window.
    #[inline]
    const fn marker(&self) -> u64 {
        self.start + self.size - self.ahead_size
    }

    /// On demand: whether using these pages, which are in memory, wants nothing. Notes their use.
    #[inline]
    pub(super) fn quiet(&mut self, page: u64, pages: u64) -> bool {
        let quiet = self.size == 0 || !(page..page + pages).contains(&self.marker());
        if quiet {
            self.previous = page + pages - 1;
        }
        quiet
    }

    /// Looks at a call and says what to read. `missing` counts the pages of a run that are not in
    /// memory. Returns the windows and the page at which the call is to look again.
    pub(super) fn look(
        &mut self,
        kind: Ahead,
        look: Look,
        missing: impl FnMut(u64, u64) -> u64,
    ) -> (Windows, u64) {
        match kind {
            Ahead::Windows => self.windows(look, missing),
            Ahead::Marked => self.on_demand(look),
        }
    }

    /// `page_cache_readahead` of 2.6.16.
    fn windows(&mut self, look: Look, mut missing: impl FnMut(u64, u64) -> u64) -> (Windows, u64) {
        let Look {
            mut page,
            mut pages,
            most,
            end,
            ..
        } = look;
        let mut out = Windows::default();
        if page == self.previous {
            // The rest of a page that was read in part.
            (page, pages) = (page + 1, pages - 1);
        }
        let sequential = page == self.previous.wrapping_add(1);
        let size = pages.min(most);
        if self.in_memory && size > 0 {
            self.previous = page + pages - 1;
            return (out, page + pages);
        }
        self.previous = page.wrapping_sub(1).wrapping_add(size);
        if size == 0 {
            return (out, page);
        }
        let next = page + size;
        let mut issue = |way: &mut Self, page: u64, wanted: u64| {
            let pages = wanted.min(end.saturating_sub(page));
            let absent = if pages == 0 { 0 } else { missing(page, pages) };
            if absent > 0 {
                out.push(page, pages);
            }
            way.succeeded(absent, wanted)
        };
        if sequential && self.size == 0 {
            self.size = first_window(size, most);
            self.start = page;
            if issue(self, page, self.size) && pages >= most {
                self.make_ahead(most);
                issue(self, self.ahead_start, self.ahead_size);
            }
            return (out, next);
        }
        if !sequential {
            self.off();
            issue(self, page, size);
            return (out, next);
        }
        if self.ahead_start == 0 {
            self.make_ahead(most);
            if !issue(self, self.ahead_start, self.ahead_size) {
                return (out, next);
            }
        }
        if self.previous >= self.ahead_start {
            (self.start, self.size) = (self.ahead_start, self.ahead_size);
            self.make_ahead(most);
            issue(self, self.ahead_start, self.ahead_size);
        }
        (out, next)
    }

    /// What was asked for has been issued, `absent` pages of it; false when so much was in memory
    /// already that read-ahead is off from now on (`check_ra_success`).
    fn succeeded(&mut self, absent: u64, wanted: u64) -> bool {
        self.hits = if absent > 0 { 0 } else { self.hits + wanted };
        if self.hits < MOST_HITS {
            return true;
        }
        self.off();
        self.in_memory = true;
        false
    }

    /// There are no windows (`ra_off`).
    fn off(&mut self) {
        (self.start, self.size, self.ahead_start, self.ahead_size) = (0, 0, 0, 0);
    }

    /// A page was not in memory (`handle_ra_miss`): read-ahead is on again. Whether it was off, so that
    /// the page after this one is to be looked at.
    pub(super) fn missed(&mut self, page: u64) -> bool {
        self.hits = 0;
        let off = std::mem::take(&mut self.in_memory);
        if off {
            self.previous = page;
        }
        off
    }

    fn make_ahead(&mut self, most: u64) {
        self.ahead_size = next_window(self.size, most);
        self.ahead_start = self.start + self.size;
    }

    /// `ondemand_readahead` of 2.6.23 and later: called on a page that is missing, or the marked one.
    fn on_demand(&mut self, look: Look) -> (Windows, u64) {
        let Look {
            page, pages, end, ..
        } = look;
        let mut out = Windows::default();
        let close = page.wrapping_sub(self.previous) <= 1;
        let marked =
            (self.size > 0 && (page..page + pages).contains(&self.marker())).then(|| self.marker());
        let expected = self.size > 0 && page == self.start + self.size;
        let mut most = look.most_for(pages);
        if let Some(at) = marked.or(expected.then_some(page)) {
            // The call may have begun before the marker; it wants what is left from there on.
            most = look.most_for(page + pages - at);
            self.start += self.size;
            let next = next_on_demand(self.size, most);
            self.size = if look.keeps {
                next.max(self.size)
            } else {
                next
            };
            self.ahead_size = self.size;
        } else if page == 0 || close || pages > most {
            self.start = page;
            self.size = first_on_demand(pages, most);
            self.ahead_size = if self.size > pages {
                self.size - pages
            } else {
                self.size
            };
        } else {
            // Alone: read as it is, and what is known of the file stays.
            out.push(page, pages.min(end.saturating_sub(page)));
            self.previous = page + pages - 1;
            return (out, page + pages);
        }
        if page == self.start && self.size == self.ahead_size {
            // The call itself will use the window up: the next one goes along.
            let next = next_on_demand(self.size, most);
            if look.joined_fit && self.size + next > most {
                (self.size, self.ahead_size) = (most, most / 2);
            } else {
                (self.size, self.ahead_size) = (self.size + next, next);
            }
        }
        out.push(self.start, self.size.min(end.saturating_sub(self.start)));
        self.previous = page;
        (out, page + pages)
    }
}

/// `get_init_ra_size` to 2.6.22.
fn first_window(pages: u64, most: u64) -> u64 {
    let size = pages.next_power_of_two();
    if size <= most / 64 {
        size * size
    } else if size <= most / 4 {
        most / 4
    } else {
        most
    }
}

/// `get_next_ra_size` to 2.6.22, without the shrinking after a page was lost before its use.
fn next_window(size: u64, most: u64) -> u64 {
    let times = if size < most / 16 { 4 } else { 2 };
    (size * times).min(most)
}

/// `get_init_ra_size` since 2.6.23.
fn first_on_demand(pages: u64, most: u64) -> u64 {
    let size = pages.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// `get_next_ra_size` since 2.6.23.
fn next_on_demand(size: u64, most: u64) -> u64 {
    let times = if size < most / 16 { 4 } else { 2 };
    (size * times).min(most)
}

#[cfg(test)]
mod tests;
