//! Data files that are made, emptied and removed.
use super::lease::Kept;
use super::{Extents, File};
use crate::host::fs::FsError;
use crate::host::fs::plan::Charge;
use crate::host::fs::stamp::Stamp;
use raidlab_core::op::{FileId, OpenMode};
use raidlab_core::time::Span;

impl Extents {
    pub(in super::super) fn open(
        &mut self,
        file: FileId,
        mode: OpenMode,
    ) -> Result<Charge, FsError> {
        match (mode, self.files.contains_key(&file)) {
            (OpenMode::Create, true) => return Ok(self.truncate(file, 0)),
            (OpenMode::Create, false) => {}
            (_, true) => return Ok(Charge::default()),
            (_, false) => return Err(FsError::NoFile),
        }
        let mut charge = Charge {
            cpu: Span(self.kind.cpu[2]),
            ..Charge::default()
        };
        let record = self.new_record(0, &mut charge)?;
        let new = File {
            record,
            kept: Kept::new(&self.kind),
            stamp: Stamp::made(self.transaction),
            ..File::default()
        };
        self.files.insert(file, new);
        Ok(charge)
    }

    pub(in super::super) fn provide(&mut self, file: FileId, bytes: u64) -> Result<(), FsError> {
        let _ = self.open(file, OpenMode::Create)?;
        let _ = self.reserve(file, 0, bytes)?;
        let mut pieces = Vec::new();
        let placed = self.place(file, 0, bytes, &mut pieces);
        self.end();
        placed.map(|_| ())
    }

    pub(in super::super) fn truncate(&mut self, file: FileId, bytes: u64) -> Charge {
        let mut charge = Charge {
            cpu: Span(self.kind.cpu[2]),
            ..Charge::default()
        };
        let Some(mut f) = self.files.remove(&file) else {
            return charge;
        };
        let keep = bytes.div_ceil(self.kind.block);
        let (mut freed, runs) = (Vec::new(), f.pending.len());
        f.pending.carve(keep, u64::MAX, &mut freed);
        self.reserve.change(runs, f.pending.len());
        self.pending -= freed.drain(..).map(|run| run.len).sum::<u64>();
        f.runs.carve(keep, u64::MAX, &mut freed);
        for run in freed {
            self.release(run, &mut charge);
        }
        if let Some(lease) = f.kept.lease.take() {
            self.space.give(lease);
        }
        f.kept = Kept::new(&self.kind);
        f.stamp.placed(self.transaction);
        f.stamp.bytes = f.stamp.bytes.min(bytes);
        let block = self.small.record(&self.kind, f.record);
        self.join(block, &mut charge);
        self.files.insert(file, f);
        charge
    }

    pub(in super::super) fn remove(&mut self, file: FileId) -> Charge {
        let charge = self.truncate(file, 0);
        if let Some(f) = self.files.remove(&file) {
            self.small.free_record(f.record);
            self.logged.record(true);
        }
        charge
    }
}
