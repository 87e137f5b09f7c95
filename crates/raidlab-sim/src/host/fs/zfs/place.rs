//! Records and indirect blocks get their places, new ones at every write.
use super::super::FsError;
use super::super::lent::{back, lend};
use super::super::plan::{Charge, Piece};
use super::super::raw::push_sectors;
use super::super::runs::Mapped;
use super::pool::{Pool, owner};
use super::{CHECKSUM_KIB, File, Zfs, size};
use raidlab_core::op::FileId;
use raidlab_core::time::Span;
use raidlab_core::units::{KIB, SECTOR};

impl Zfs {
    pub(in crate::host::fs) fn place(
        &mut self,
        file: FileId,
        offset: u64,
        len: u64,
        out: &mut Vec<Piece>,
    ) -> Result<Charge, FsError> {
        let (first, end) = (offset / self.record, (offset + len).div_ceil(self.record));
        let mut charge = Charge::default();
        let Some(mut f) = lend(&mut self.files, file) else {
            return Err(FsError::NoFile);
        };
        let before = self.group.writes.len();
        let done = self.place_in(file, &mut f, first..end, out, &mut charge);
        back(&mut self.files, file, f);
        // Above records that have their places, an indirect block is written as soon as it has its own
        // (`ZIO_WAIT_READY` of its children, not `DONE`): among the data, not after it.
        charge.along = self.group.writes.split_off(before);
        done.map(|()| charge)
    }

    fn place_in(
        &mut self,
        id: FileId,
        f: &mut File,
        records: std::ops::Range<u64>,
        out: &mut Vec<Piece>,
        charge: &mut Charge,
    ) -> Result<(), FsError> {
        let unit = self.record / SECTOR;
        let bytes = self.bytes_of(f.size);
        let mut freed = Vec::new();
        for record in records {
            f.pending.carve(record, record + 1, &mut freed);
            if freed.pop().is_some() {
                self.pending -= self.pool.takes(bytes).min(self.pending);
            }
            // The indirect block of the records before is ready as soon as its last one has a place.
            if let Some(last) = f.last
                && last / self.fan != record / self.fan
            {
                self.indirect(id, f, 1, last / self.fan)?;
            }
            f.runs.carve(record * unit, (record + 1) * unit, &mut freed);
            freed.drain(..).for_each(|run| self.pool.free(run));
            let before = out.len();
            self.scatter(f, record, bytes, out)?;
            f.last = Some(record);
            self.group.dirty.insert((id, 1, record / self.fan));
            let (each, mapped) = self.pipeline;
            charge.cpu += Span(each * (out.len() - before) as u64 + mapped * bytes / (128 * KIB));
            charge.cpu += Span((CHECKSUM_KIB + self.parity) * (bytes / KIB));
        }
        self.group.dnode(f.object);
        Ok(())
    }

    /// Gives a record its place: one run, or smaller and smaller ones when no run is long enough (a
    /// gang block; its header is left out).
    fn scatter(
        &mut self,
        f: &mut File,
        record: u64,
        bytes: u64,
        out: &mut Vec<Piece>,
    ) -> Result<(), FsError> {
        let (mut done, mut part) = (0, bytes);
        while done < bytes {
            let Some(run) = self
                .pool
                .allocate(owner(f.object, 0), part.min(bytes - done), 0)
            else {
                if self.pool.sectors(part) == self.pool.sectors(1) {
                    return Err(FsError::NoSpace);
                }
                part = (part / 2).next_multiple_of(SECTOR);
                continue;
            };
            f.runs.insert(Mapped {
                at: (record * self.record + done) / SECTOR,
                dev: run.start,
                len: run.len,
            });
            let lba = Pool::place(run).lba.0;
            push_sectors(out, record * self.record + done, lba, run.len);
            done += run.len * SECTOR;
        }
        Ok(())
    }

    /// Levels of indirect blocks of a file.
    pub(super) fn levels(&self, f: &File) -> usize {
        let records = f.size.div_ceil(self.record);
        if records <= 1 {
            return 0;
        }
        let (mut levels, mut reach) = (1, size::IN_DNODE * self.fan);
        while reach < records {
            (levels, reach) = (levels + 1, reach * self.fan);
        }
        levels
    }

    /// Gives an indirect block new places, twice.
    pub(super) fn indirect(
        &mut self,
        id: FileId,
        f: &mut File,
        level: u8,
        index: u64,
    ) -> Result<(), FsError> {
        self.group.dirty.remove(&(id, level, index));
        let levels = self.levels(f);
        if usize::from(level) > levels {
            return Ok(());
        }
        if f.indirect.len() < levels {
            f.indirect.resize_with(levels, Default::default);
        }
        let below = self.fan.saturating_pow(u32::from(level) - 1);
        let children = f.size.div_ceil(self.record).div_ceil(below);
        let used = children.saturating_sub(index * self.fan).min(self.fan);
        let unit = self.unit();
        let mut freed = Vec::new();
        for copy in 0..2 {
            let runs = &mut f.indirect[usize::from(level) - 1][copy];
            runs.carve(index * unit, (index + 1) * unit, &mut freed);
            let run = self
                .pool
                .allocate(owner(f.object, level.into()), size::indirect(used), copy);
            let run = run.ok_or(FsError::NoSpace)?;
            runs.insert(Mapped {
                at: index * unit,
                dev: run.start,
                len: run.len,
            });
            self.group.writes.push(Pool::place(run));
        }
        freed.drain(..).for_each(|run| self.pool.free(run));
        self.group.dirty.insert((id, level + 1, index / self.fan));
        Ok(())
    }
}
