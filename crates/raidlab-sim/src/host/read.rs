//! Reading through the page cache.
use super::cache::Left;
use super::call::{Call, Work};
use super::device::{Device, Owner, Wish};
use super::era::Ahead;
use super::fs::Place;
use super::readahead::{Look, ReadAhead};
use super::{EIO, Host, META, PAGE, SECTOR, What, pages_of, sectors};
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;

/// Ways of reading that are kept of one file at most: open files beyond share them.
const MOST_WAYS: usize = 64;

impl<D: Device> Host<D> {
    /// Chooses the open file that the call comes through: the process's own for operations on a block target, which each job
    /// opens for itself; else the one that was read up to here, or the one that was not used for longest. (A call names the file
    /// alone, not the descriptor.)
    #[inline]
    pub(super) fn choose_ahead(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        let file = &mut self.files[call.file as usize];
        let page = call.at / PAGE;
        self.order += 1;
        let owner = call.block.then_some(call.process);
        let mine = |way: &ReadAhead| way.owner == owner && (owner.is_some() || way.follows(page));
        let found = file.ahead.iter().position(mine);
        let most = match owner {
            Some(_) => MOST_WAYS,
            None => (file.opens.max(1) as usize).min(MOST_WAYS),
        };
        let index = found.unwrap_or_else(|| {
            if file.ahead.len() < most {
                file.ahead.push(ReadAhead::new());
                return file.ahead.len() - 1;
            }
            let oldest = file.ahead.iter().enumerate().min_by_key(|(_, w)| w.used);
            oldest.map_or(0, |(index, _)| index)
        });
        let way = &mut file.ahead[index];
        if way.owner != owner {
            (*way, way.owner) = (ReadAhead::new(), owner);
        }
        way.used = self.order;
        call.ahead = index as u32;
    }

    /// Goes on with a read: copies what is in memory, asks for what is not.
    #[inline]
    pub(super) fn read_on(&mut self, tag: u32, begun: Span) {
        let mut system = begun;
        loop {
            if !self.windows_issued(tag, &mut system) {
                self.work(tag, system, Span::ZERO);
                return;
            }
            let Call {
                file,
                at,
                end,
                look,
                ahead,
                user,
                error,
                ..
            } = self.calls[tag as usize];
            if at >= end || error.is_some() {
                return self.finish(tag, system, Span::ZERO);
            }
            let page = at / PAGE;
            let wanted = end.div_ceil(PAGE) - page;
            if self.era.ahead == Ahead::Windows && page >= look {
                self.look_ahead(tag, page, wanted);
                continue;
            }
            let run = self.cache.present_run(file, page, wanted);
            if self.era.ahead == Ahead::Marked && !self.on_demand_quiet(tag, page, run, wanted) {
                continue;
            }
            if run == 0 {
                self.absent(tag, page);
                self.work(tag, system + self.costs.switch, Span::ZERO);
                return;
            }
            let run = match self.era.ahead {
                Ahead::Windows => run.min(look - page),
                Ahead::Marked => run,
            };
            let bytes = end.min((page + run) * PAGE) - at;
            // One use of a page, however many calls read parts of it one after the other.
            if at.is_multiple_of(PAGE) || self.files[file as usize].ahead.len() > 1 {
                self.cache.touch_run(file, page, run);
            }
            let held = self.cache.pages_of(file) * PAGE;
            let copy = self.costs.copy(bytes, held + bytes <= self.costs.cache);
            system += Span(run * self.costs.page + copy);
            let user = self.user_time(user, bytes);
            let call = &mut self.calls[tag as usize];
            (call.at, call.ahead) = (at + bytes, ahead);
            if call.at >= end {
                return self.finish(tag, system, user);
            }
            return self.work_then_step(tag, system, user);
        }
    }

    /// Looks at read-ahead for the pages from `page` on; what it wants is issued next.
    fn look_ahead(&mut self, tag: u32, page: u64, wanted: u64) {
        let request = self.request_pages();
        let call = &mut self.calls[tag as usize];
        let file = call.file;
        let known = &mut self.files[file as usize];
        let look = Look {
            page,
            pages: wanted,
            most: self.ahead_most,
            request,
            joined_fit: self.era.ahead_fits,
            keeps: self.era.ahead_keeps,
            end: known.size.div_ceil(PAGE),
        };
        let cache = &mut self.cache;
        let way = &mut known.ahead[call.ahead as usize];
        let missing = |page, pages| cache.missing(file, page, pages);
        let (windows, again) = way.look(self.era.ahead, look, missing);
        (call.windows, call.window) = (windows, 0);
        call.look = again.max(page + 1);
    }

    /// Pages up to which a call that asks for more than the read-ahead is read at once; 0: no more for it.
    fn request_pages(&self) -> u64 {
        if self.era.ahead_by_request {
            u64::from(self.below.hints.large_call) * SECTOR / PAGE
        } else {
            0
        }
    }

    /// Read-ahead on demand: false when it had something to ask for.
    #[inline]
    fn on_demand_quiet(&mut self, tag: u32, page: u64, run: u64, wanted: u64) -> bool {
        let call = &self.calls[tag as usize];
        let (file, ahead, look) = (call.file, call.ahead, call.look);
        let way = &mut self.files[file as usize].ahead[ahead as usize];
        if run > 0 {
            if way.quiet(page, run) {
                return true;
            }
        } else if page < look {
            return true;
        } else if self.cache.is_blank(file, page) {
            if way.quiet(page, 1) {
                return true;
            }
        } else if self.cache.is_reading(file, page)
            && (!self.era.ahead_before_wait || way.quiet(page, 1))
        {
            // It was asked for: there is nothing but to wait.
            return true;
        }
        self.look_ahead(tag, page, wanted);
        // A call looks once at a missing page.
        self.calls[tag as usize].look = page + 1;
        false
    }

    /// The page is not there: waits for it, and asks for it alone when nothing else did.
    fn absent(&mut self, tag: u32, page: u64) {
        let file = self.calls[tag as usize].file;
        if !self.cache.is_reading(file, page) {
            let blank = self.cache.is_blank(file, page);
            let call = &mut self.calls[tag as usize];
            let ways = &mut self.files[file as usize].ahead;
            let way = ways.get_mut(call.ahead as usize);
            if !blank && way.is_some_and(|way| way.missed(page)) {
                call.look = page + 1;
            }
            let mut unused = Span::ZERO;
            self.fill(tag, page, 1, false, &mut unused);
            if self.cache.present_run(file, page, 1) == 1 {
                // A hole.
                return self.at(self.now, What::Step(tag));
            }
        }
        self.wait_for_page(tag, file, page);
    }

    /// Issues the windows that read-ahead wants; false when metadata has to be waited for first.
    #[inline]
    fn windows_issued(&mut self, tag: u32, system: &mut Span) -> bool {
        let call = &self.calls[tag as usize];
        if call.window >= call.windows.as_slice().len() {
            return true;
        }
        self.issue_windows(tag, system)
    }

    fn issue_windows(&mut self, tag: u32, system: &mut Span) -> bool {
        while let Some(&(page, pages)) = {
            let call = &self.calls[tag as usize];
            call.windows.as_slice().get(call.window)
        } {
            if !self.metadata_there(tag) {
                return false;
            }
            let call = &mut self.calls[tag as usize];
            if call.error.is_some() {
                call.window = usize::MAX;
                return true;
            }
            let file = call.file;
            if self.calls[tag as usize].met == 0 && self.needs_metadata(tag, file, page, pages) {
                // What lies before the next piece of metadata goes off before it (`BH_Boundary`).
                let known = self.known_run(file, page, pages);
                if known > 0 {
                    self.fill(tag, page, known, true, system);
                    let call = &mut self.calls[tag as usize];
                    call.windows.shorten(call.window, known);
                }
                continue;
            }
            self.fill(tag, page, pages, true, system);
            let call = &mut self.calls[tag as usize];
            call.window += 1;
            call.meta.clear();
            call.met = 0;
        }
        if self.era.unplug_batch || self.era.unplug_ahead {
            // Since 2.6.33 at the end of a window that was asked for ahead of its use.
            self.below.unplug(self.now);
        }
        true
    }

    /// Whether metadata that says where the pages lie has to be read; if so, it is noted.
    fn needs_metadata(&mut self, tag: u32, file: u32, page: u64, pages: u64) -> bool {
        let places = self.places_of_metadata(file, page, pages);
        let there = self.all_there(&places);
        if !there {
            let call = &mut self.calls[tag as usize];
            (call.meta, call.met) = (places, 0);
        }
        !there
    }

    /// Where the metadata lies that says where the pages lie.
    fn places_of_metadata(&mut self, file: u32, page: u64, pages: u64) -> Vec<Place> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let charge = self
            .fs
            .find(file - 1, page * PAGE, pages * PAGE, &mut pieces);
        pieces.clear();
        self.pieces = pieces;
        charge.reads
    }

    fn all_there(&mut self, places: &[Place]) -> bool {
        places.iter().all(|place| {
            let (page, pages) = pages_of(place.lba.0 * SECTOR, u64::from(place.sectors) * SECTOR);
            self.cache.present_run(META, page, pages) == pages
        })
    }

    /// Of pages for which metadata has to be read, those at the beginning for which none has.
    fn known_run(&mut self, file: u32, page: u64, pages: u64) -> u64 {
        let (mut known, mut not) = (0, pages);
        while not - known > 1 {
            let middle = u64::midpoint(known, not);
            let places = self.places_of_metadata(file, page, middle);
            if self.all_there(&places) {
                known = middle;
            } else {
                not = middle;
            }
        }
        known
    }

    /// Asks the device for the pages of a run that are not in memory. With a unit above a page, for
    /// whole units. Read-ahead leaves pages alone that are there without content.
    pub(super) fn fill(&mut self, tag: u32, page: u64, pages: u64, ahead: bool, system: &mut Span) {
        let file = self.calls[tag as usize].file;
        let unit = u64::from(self.traits.unit).div_ceil(PAGE).max(1);
        let size = self.size_of(file).div_ceil(PAGE);
        let end = (page + pages)
            .next_multiple_of(unit)
            .min(size.max(page + pages));
        let mut at = page / unit * unit;
        if !ahead {
            self.cache.drop_blank(file, at, end - at);
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        while let Some((start, run)) = self.cache.next_missing(file, at, end) {
            let (run, ahead) = match ahead {
                true => self.awaited(tag, start, run),
                false => (run, false),
            };
            at = start + run;
            pieces.clear();
            let charge = self
                .fs
                .find(file - 1, start * PAGE, run * PAGE, &mut pieces);
            *system += self.charged(charge) + Span(run * self.costs.fill);
            for piece in &pieces {
                let (first, count) = pages_of(piece.offset, piece.bytes());
                self.cache.begin_read(file, first, count);
                let mut origin = self.origin(tag, true);
                origin.ahead = ahead;
                let wish = Wish {
                    kind: BlockKind::Read,
                    lba: piece.lba.0,
                    sectors: u64::from(piece.sectors),
                    fua: false,
                    origin,
                };
                let count = self.submit_pages(file, piece.offset, wish, None);
                let requests = u64::from(count) + self.below.beside();
                *system += Span(self.costs.submit.0 * requests);
            }
            // What has no place is zeros.
            while let Some((start, run)) = self.cache.next_missing(file, start, start + run) {
                self.cache.fill(file, start, run);
            }
        }
        self.pieces = pieces;
        self.cache.shrink();
    }

    /// How much of a window's run goes off as one, and whether as read ahead. To the page cache all of a window is that. A file
    /// system with a prefetch of its own asks for what the call wants by itself, as something that is waited for (`dbuf_read`).
    fn awaited(&self, tag: u32, start: u64, run: u64) -> (u64, bool) {
        if self.traits.prefetch.is_none() {
            return (run, true);
        }
        let call = &self.calls[tag as usize];
        let unit = u64::from(self.traits.unit).div_ceil(PAGE).max(1);
        let from = call.at / PAGE / unit * unit;
        let to = call.end.div_ceil(PAGE).next_multiple_of(unit);
        if start < from {
            (run.min(from - start), true)
        } else if start < to {
            (run.min(to - start), false)
        } else {
            (run, true)
        }
    }

    /// Asks the device for metadata.
    pub(super) fn fill_metadata(&mut self, tag: u32, page: u64, pages: u64) {
        let mut at = page;
        while let Some((start, run)) = self.cache.next_missing(META, at, page + pages) {
            at = start + run;
            self.cache.begin_read(META, start, run);
            let wish = Wish {
                kind: BlockKind::Read,
                lba: sectors(start),
                sectors: sectors(run).min(self.below.device.sectors() - sectors(start)),
                fua: false,
                origin: self.origin(tag, true),
            };
            self.submit_pages(META, start * PAGE, wish, None);
        }
        self.cache.shrink();
    }

    /// Submits a piece of a file, which begins at `offset`, in parts that the device takes; reads
    /// without and writes with a number. Returns how many.
    pub(super) fn submit_pages(
        &mut self,
        file: u32,
        offset: u64,
        wish: Wish,
        number: Option<u64>,
    ) -> u32 {
        let most = match number {
            None => self.below.hints.window,
            Some(_) if wish.origin.paged => self.below.hints.paged,
            Some(_) => self.below.hints.max_sectors,
        };
        let most = u64::from(most / 8 * 8).max(8);
        let (mut done, mut count) = (0, 0);
        while done < wish.sectors {
            let from = offset + done * SECTOR;
            // Parts end at the end of a page of the file.
            let whole = most - (from / SECTOR) % 8;
            let part = (wish.sectors - done).min(whole);
            let (page, pages) = pages_of(from, part * SECTOR);
            if number.is_some() {
                self.back.submitted(pages);
            }
            let pages = pages as u32;
            let owner = match number {
                None => Owner::Fill {
                    file,
                    page,
                    pages,
                    ahead: wish.origin.ahead,
                },
                Some(number) => Owner::Flush {
                    file,
                    page,
                    pages,
                    number: number + u64::from(count),
                },
            };
            let piece = Wish {
                lba: wish.lba + done,
                sectors: part,
                ..wish
            };
            self.below.submit(self.now, piece, owner);
            (done, count) = (done + part, count + 1);
        }
        count
    }

    /// Pages have come from the device, or could not be read: whoever waits for one of them goes on. Of a run that was
    /// read ahead the pages are there without content then, and are read one by one as they are wanted
    /// (`mpage_end_io`, `filemap_read_folio`).
    pub(super) fn pages_came(&mut self, file: u32, page: u64, pages: u32, left: Left) {
        self.cache.end_read(file, page, u64::from(pages), left);
        let range = page..page + u64::from(pages);
        let calls = &self.calls;
        let waits = |tag: &u32| {
            let (of, at) = calls[*tag as usize].page;
            of == file && range.contains(&at)
        };
        if !self.sleepers.iter().any(waits) {
            return;
        }
        // Those who wait now: one that goes on may come to wait for such a page again.
        let (awake, asleep) = self.sleepers.iter().partition(|tag| waits(tag));
        self.sleepers = asleep;
        let awake: Vec<u32> = awake;
        for tag in awake {
            if left == Left::Nothing {
                let call = &mut self.calls[tag as usize];
                call.error = Some(EIO);
                if call.work == Work::Names {
                    call.meta.clear();
                }
            }
            self.step(tag);
        }
    }
}
