//! Dirty pages on their way to the device, with the metadata that goes with them.
use super::Writer;
use crate::block::{Marked, Origin};
use crate::host::device::{Device, Owner, Wish};
use crate::host::fs::{Piece, Place};
use crate::host::{Host, META, PAGE, What, pages_of, sectors};
use raidlab_core::op::BlockKind;
use raidlab_core::time::{Instant, Span};

impl<D: Device> Host<D> {
    /// Submits at most so many dirty pages of a file from where its write-back stands; returns how
    /// many.
    pub(super) fn write_batch(&mut self, file: u32, most: u64, writer: Writer) -> u64 {
        let cursor = self.files[file as usize].cursor;
        let found = self.cache.next_dirty(file, cursor, most);
        let found = found.or_else(|| self.cache.next_dirty(file, 0, most));
        let Some((page, pages)) = found else {
            return 0;
        };
        let (page, pages) = self.whole_units(file, page, pages);
        let mut origin = self.origin_of(writer);
        if file == META {
            origin.marked = Marked::Metadata;
        }
        let (requests, cost) = self.submit_dirty(file, page, pages, origin);
        let requests = requests + self.below.beside();
        let cost = cost + Span(pages * self.costs.flush + self.costs.submit.0 * requests);
        match writer {
            _ if self.back.by_commit => {
                // Records go through the pipeline one after the other in each thread, and to the device as they come out, whoever
                // wants them there.
                let end = self.cores.kernel(self.now, cost);
                let paced = end.0 - cost.0 + cost.0 / self.back.issuers;
                self.back.paced = Instant(paced);
                self.at(self.back.paced, What::Pump);
            }
            Writer::Durable(tag) => self.works_on(tag, cost),
            Writer::Held(_) => {
                self.cores.process(self.now, cost, Span::ZERO);
            }
            Writer::Journal | Writer::Flusher => {
                self.cores.kernel(self.now, cost);
            }
        }
        let known = &mut self.files[file as usize];
        known.cursor = page + pages;
        if self.cache.dirty_of(file) == 0 {
            known.dirtied = None;
        }
        pages
    }

    /// Who submits for a writer.
    pub(super) fn origin_of(&self, writer: Writer) -> Origin {
        Origin {
            paged: self.fs.is_raw(),
            ..match writer {
                Writer::Durable(tag) => self.durable(tag),
                Writer::Held(tag) => self.origin(tag, false),
                Writer::Journal => Origin::default(),
                Writer::Flusher => Origin {
                    marked: match self.traits.says_flusher {
                        true => Marked::Background,
                        false => Marked::Plain,
                    },
                    ..Origin::default()
                },
            }
        }
    }

    /// The run with the rest of the units at its ends: a unit is written as a whole.
    pub(in crate::host) fn whole_units(&self, file: u32, page: u64, pages: u64) -> (u64, u64) {
        let unit = u64::from(self.traits.unit) / PAGE;
        if file == META || unit <= 1 {
            return (page, pages);
        }
        let first = page / unit * unit;
        let size = self.size_of(file).div_ceil(PAGE).max(page + pages);
        (
            first,
            (page + pages).next_multiple_of(unit).min(size) - first,
        )
    }

    /// Gives dirty pages their places and submits them; returns the requests and the file system's
    /// processor time.
    fn submit_dirty(&mut self, file: u32, page: u64, pages: u64, origin: Origin) -> (u64, Span) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let mut cost = Span::ZERO;
        let mut along = Vec::new();
        if file == META {
            let most = self.below.device.sectors() - sectors(page);
            pieces.push(Piece {
                offset: page * PAGE,
                lba: raidlab_core::units::Lba(sectors(page)),
                sectors: sectors(pages).min(most) as u32,
            });
        } else {
            let end = ((page + pages) * PAGE).min(self.size_of(file).max(page * PAGE + 1));
            match self
                .fs
                .place(file - 1, page * PAGE, end - page * PAGE, &mut pieces)
            {
                Ok(mut charge) => {
                    along = std::mem::take(&mut charge.along);
                    cost = self.charged(charge);
                }
                Err(_) => self.files[file as usize].failed = true,
            }
        }
        let mut requests = 0;
        for piece in &pieces {
            let (first, count) = pages_of(piece.offset, piece.bytes());
            self.cache.begin_write(file, first, count);
            let wish = Wish {
                kind: BlockKind::Write,
                lba: piece.lba.0,
                sectors: u64::from(piece.sectors),
                fua: false,
                origin,
            };
            let count = self.submit_pages(file, piece.offset, wish, Some(self.back.number));
            self.back.number += u64::from(count);
            self.files[file as usize].writes += count;
            self.back.data += if file == META { 0 } else { count };
            requests += u64::from(count);
        }
        requests += self.submit_along(&along, origin);
        // What has found no place will find none later either.
        self.cache.make_clean(file, page, pages);
        self.pieces = pieces;
        (requests, cost)
    }

    /// Submits metadata that goes with data; returns the requests.
    fn submit_along(&mut self, along: &[Place], origin: Origin) -> u64 {
        let origin = Origin {
            marked: Marked::Metadata,
            ..origin
        };
        let mut requests = 0;
        for place in along {
            let number = self.back.number;
            self.back.number += 1;
            let count = self.submit_place(place, false, Owner::Along { number }, origin);
            self.back.data += count;
            requests += u64::from(count);
        }
        requests
    }

    /// Metadata that went with data is on the device.
    pub(in crate::host) fn along_went(&mut self, number: u64) {
        self.back.data -= 1;
        self.journal_data_ended(number);
        self.release_held();
        self.pump();
    }

    /// Pages are on the device.
    pub(in crate::host) fn pages_went(
        &mut self,
        file: u32,
        page: u64,
        pages: u32,
        number: u64,
        good: bool,
    ) {
        self.cache.end_write(file, page, u64::from(pages));
        self.back.sectors -= sectors(u64::from(pages));
        self.back.rate.wrote(u64::from(pages));
        let known = &mut self.files[file as usize];
        known.writes -= 1;
        known.failed |= !good;
        if file != META {
            self.back.data -= 1;
            self.journal_data_ended(number);
        }
        self.marked_ended(file, number);
        self.release_held();
        self.pump();
    }
}
