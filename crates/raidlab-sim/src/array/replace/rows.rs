//! Replacing members whose chunks have parity.
use super::ask;
use super::part::OfRow;
use super::used::{Parts, sum};
use crate::array::btrfs::turn::What;
use crate::array::core::Core;
use crate::array::node::{Node, Shape};
use crate::array::spec::Copying;
use raidlab_core::op::BlockKind;
use raidlab_core::units::Lba;
use raidlab_layout::btrfs::STRIPE;

impl Node {
    /// Does something to a row, for a job.
    fn ask_row(&mut self, core: &mut Core, job: u32, at: u64, what: What) {
        let (Shape::Btrfs(chunks), Some(replace)) = (&mut self.shape, &mut self.replace) else {
            return;
        };
        let row = chunks.map.row(Lba(at));
        if let (Some(rows), Some(row)) = (&mut chunks.rows, row) {
            replace.rows += 1;
            rows.refill((&self.common, core), row, (job, what));
        }
    }

    /// Has data computed that waits for it.
    pub(super) fn recover(&mut self, core: &mut Core) {
        let waits = self.replace.as_mut().map(|r| std::mem::take(&mut r.waits));
        for (job, at) in waits.unwrap_or_default() {
            self.ask_row(core, job, at, What::Recover);
        }
    }

    /// Reads the data of a row for its parity.
    pub(super) fn read_row(
        &mut self,
        core: &mut Core,
        job: u32,
        (at, piece): (u64, usize),
        height: Parts,
    ) {
        let (Shape::Btrfs(chunks), Some(replace)) = (&self.shape, &mut self.replace) else {
            return;
        };
        let Some(row) = chunks.map.row(Lba(at)) else {
            return replace.end_parity(job);
        };
        let mut reads = Vec::new();
        for (data, place) in row.pieces.iter().enumerate().take(row.data()) {
            let begin = row.begin.0 + data as u64 * STRIPE;
            let mut parts = replace.used.within(begin, begin + STRIPE);
            let on = |(from, end)| (place.member.0, place.sector.0 + from, (end - from) as u32);
            match replace.copying {
                Copying::Stream { .. } => reads.extend(parts.map(on)),
                // Whole pieces, if there is something in them.
                Copying::Turns { .. } => reads.extend(parts.next().map(|_| on((0, STRIPE)))),
            }
        }
        let entry = &mut replace.jobs[job as usize];
        entry.flight = reads.len();
        entry.parity = Some(OfRow {
            row: at,
            piece,
            height,
            failed: false,
        });
        replace.reads += reads.len();
        for on in reads {
            ask(&self.common, core, job, BlockKind::Read, on);
        }
    }

    /// Data of a row has come, for its parity.
    pub(super) fn row_read(&mut self, core: &mut Core, job: u32, good: bool) {
        let Some(replace) = &mut self.replace else {
            return;
        };
        let known = matches!(replace.copying, Copying::Turns { .. });
        let entry = &mut replace.jobs[job as usize];
        let Some(parity) = &mut entry.parity else {
            return;
        };
        parity.failed |= !good;
        entry.flight -= 1;
        if entry.flight > 0 {
            return;
        }
        if parity.failed {
            return replace.end_parity(job);
        }
        let what = What::Parity {
            piece: parity.piece,
            height: parity.height.clone(),
            known,
        };
        let at = parity.row;
        self.ask_row(core, job, at, what);
    }

    /// What has been computed by now.
    pub(super) fn take_computed(&mut self, core: &mut Core) {
        loop {
            let Shape::Btrfs(chunks) = &mut self.shape else {
                return;
            };
            let Some((job, good)) = chunks
                .rows
                .as_mut()
                .and_then(|rows| rows.replaced.pop_front())
            else {
                return;
            };
            let Some(replace) = &mut self.replace else {
                return;
            };
            replace.rows -= 1;
            match &replace.jobs[job as usize].parity {
                None => replace.has_read(job, good),
                Some(parity) => {
                    if good {
                        replace.tally.note(core.now, sum(&parity.height));
                    }
                    replace.end_parity(job);
                }
            }
        }
    }
}
