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
    /// Pages of the file.
    pub(super) end: u64,
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
        }
    }

    /// The next page to be read is `page`, as page 0 is of a file that was just opened.
    pub(super) const fn begin_at(&mut self, page: u64) {
        let used = self.used;
        *self = Self::new();
        (self.previous, self.used) = (page.wrapping_sub(1), used);
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
            page,
            pages,
            most,
            end,
        } = look;
        let mut out = Windows::default();
        let close = page.wrapping_sub(self.previous) <= 1;
        let expected = self.size > 0 && (page == self.marker() || page == self.start + self.size);
        if expected {
            self.start += self.size;
            self.size = next_on_demand(self.size, most);
            self.ahead_size = self.size;
        } else if self.size > 0 && (page..page + pages).contains(&self.marker()) {
            // The marker lies within a call that began before it.
            self.start += self.size;
            self.size = next_on_demand(self.size, most);
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
            self.ahead_size = next_on_demand(self.size, most);
            self.size += self.ahead_size;
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
mod tests {
    use super::*;

    /// Reads `calls` calls of `pages` pages one after another with nothing in memory that was not
    /// read ahead; the windows issued, in order.
    fn sequence(kind: Ahead, calls: u64, pages: u64) -> Vec<(u64, u64)> {
        let (mut ahead, mut held, mut issued) = (ReadAhead::new(), 0_u64, Vec::new());
        for call in 0..calls {
            let page = call * pages;
            let mut at = page;
            while at < page + pages {
                let look = Look {
                    page: at,
                    pages: page + pages - at,
                    most: 32,
                    end: 1 << 20,
                };
                let present = held.saturating_sub(at).min(look.pages);
                if kind == Ahead::Marked && present > 0 && ahead.quiet(at, present) {
                    at += present;
                    continue;
                }
                let known = held;
                let (windows, again) = ahead.look(kind, look, |from, n| {
                    (from + n).saturating_sub(known.max(from))
                });
                for &(from, n) in windows.as_slice() {
                    issued.push((from, n));
                    held = held.max(from + n);
                }
                at = if kind == Ahead::Marked {
                    held.min(page + pages)
                } else {
                    again
                };
            }
        }
        issued
    }

    #[test]
    fn two_windows_grow_to_the_largest_and_follow_each_other() {
        let issued = sequence(Ahead::Windows, 64, 2);
        // A quarter of the largest, then doubled; always one window ahead of the one in use.
        assert_eq!(&issued[..4], &[(0, 8), (8, 16), (24, 32), (56, 32)]);
        assert!(issued[3..].windows(2).all(|w| w[1] == (w[0].0 + 32, 32)));
    }

    #[test]
    fn on_demand_grows_to_the_largest_window() {
        let issued = sequence(Ahead::Marked, 64, 2);
        assert_eq!(&issued[..4], &[(0, 4), (4, 8), (12, 16), (28, 32)]);
        assert!(issued[3..].windows(2).all(|w| w[1] == (w[0].0 + 32, 32)));
    }

    #[test]
    fn windows_go_on_over_what_is_in_memory_and_behind_it() {
        // Pages 100 to 300 are in memory, and 1000 to 2000.
        let held = |page: u64| (100..300).contains(&page) || (1000..2000).contains(&page);
        let (mut ahead, mut read, mut alone) = (ReadAhead::new(), 0_u64, Vec::new());
        for page in 0..3000_u64 {
            let look = Look {
                page,
                pages: 1,
                most: 32,
                end: 1 << 20,
            };
            let missing = |from: u64, n: u64| (from..from + n).filter(|p| !held(*p)).count() as u64;
            let (windows, _) = ahead.look(Ahead::Windows, look, missing);
            for (from, n) in windows.as_slice() {
                read = read.max(from + n);
            }
            if page >= read && !held(page) {
                // Nobody has asked for it.
                ahead.missed(page);
                alone.push(page);
                read = page + 1;
            }
        }
        // After 256 pages in a row that are in memory it is off, until the first one that is not.
        assert_eq!(alone, [2000]);
    }

    #[test]
    fn random_calls_read_what_they_want_alone() {
        for kind in [Ahead::Windows, Ahead::Marked] {
            let mut ahead = ReadAhead::new();
            for page in [1000, 500, 9000, 40] {
                let look = Look {
                    page,
                    pages: 2,
                    most: 32,
                    end: 1 << 20,
                };
                let (windows, again) = ahead.look(kind, look, |_, n| n);
                assert_eq!(windows.as_slice(), &[(page, 2)], "{kind:?}");
                assert_eq!(again, page + 2);
            }
        }
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        for kind in [Ahead::Windows, Ahead::Marked] {
            let mut ahead = ReadAhead::new();
            let look = Look {
                page: 0,
                pages: 2,
                most: 32,
                end: 3,
            };
            let (windows, _) = ahead.look(kind, look, |_, n| n);
            assert_eq!(windows.as_slice(), &[(0, 3)], "{kind:?}");
        }
    }
}
