//! The tree of blocks, as scrub and resilver walk it (`dsl_scan_visit`): what the pool owns, blocks of dnodes, directories,
//! and of each file an indirect block and then the records below it, in the order of the file.
//!
//! So a file whose records were written in any order, as after rewriting at random, is met with its places in any order.
//! Where ZFS goes through small files and large ones by their numbers, all small ones come first here.
use super::super::runs::{Mapped, Runs};
use super::super::space::Run;
use super::pool::Pool;
use super::{File, Zfs, size};
use crate::block::{Extent, Watch};
use raidlab_core::units::SECTOR;
use std::ops::ControlFlow;

impl Zfs {
    /// See [`FileSystem::blocks`](super::super::FileSystem::blocks).
    pub(in super::super) fn blocks(&self, watch: Watch<'_>) -> Option<Vec<Extent>> {
        let mut out = Vec::new();
        let (fixed, dnodes) = self.group.all();
        fixed.for_each(|run| out.push(of_run(*run, true)));
        self.copies(
            dnodes,
            self.pool.sectors(size::dnodes(size::DNODES)),
            &mut out,
        );
        let (leaves, contents) = self.small.all();
        for leaf in leaves {
            // Of a directory of one block or of many: as far as the runs tell them apart.
            self.copies(
                leaf,
                self.pool.sectors(size::entries(size::MICRO)),
                &mut out,
            );
        }
        contents.for_each(|run| out.push(of_run(*run, false)));
        let mut files: Vec<&File> = self.files.values().collect();
        files.sort_unstable_by_key(|file| file.object);
        for file in files {
            if self.file(file, &mut out, watch).is_break() {
                return None;
            }
        }
        Some(out)
    }

    /// Both copies of metadata; the walk reads the first.
    fn copies(&self, copies: &[Runs; 2], unit: u64, out: &mut Vec<Extent>) {
        for (copy, runs) in copies.iter().enumerate() {
            let walked = copy == 0;
            runs.iter().for_each(|run| split(run, unit, walked, out));
        }
    }

    fn file(&self, file: &File, out: &mut Vec<Extent>, watch: Watch<'_>) -> ControlFlow<()> {
        let unit = self.record / SECTOR;
        let Some((first, above)) = file.indirect.split_first() else {
            file.runs
                .iter()
                .for_each(|run| split(run, unit, false, out));
            return ControlFlow::Continue(());
        };
        for level in above.iter().rev() {
            self.copies(level, self.unit(), out);
        }
        // By indirect block of level 1: its copies, and the records below it.
        let step = self.unit();
        let mut pointers = first.each_ref().map(|copy| copy.iter().peekable());
        let mut records = file.runs.iter();
        let mut rest = records.next();
        let last = rest.map_or(0, |_| file.size.div_ceil(self.record).div_ceil(self.fan));
        for index in 0..last {
            watch()?;
            for (copy, runs) in pointers.iter_mut().enumerate() {
                let end = (index + 1) * step;
                while let Some(run) = runs.next_if(|run| run.at < end) {
                    split(run, step, copy == 0, out);
                }
            }
            let end = (index + 1) * self.fan * unit;
            while let Some(run) = rest.filter(|run| run.at < end) {
                let len = run.len.min(end - run.at);
                split(Mapped { len, ..run }, unit, false, out);
                rest = if len < run.len {
                    Some(Mapped {
                        at: run.at + len,
                        dev: run.dev + len,
                        len: run.len - len,
                    })
                } else {
                    records.next()
                };
            }
        }
        ControlFlow::Continue(())
    }
}

fn of_run(run: Run, walked: bool) -> Extent {
    Extent {
        start: Pool::place(run).lba.0,
        len: run.len,
        unit: run.len.max(1) as u32,
        walked,
    }
}

/// A run of blocks of so many sectors each, as an extent; what is before the first whole block by itself.
fn split(run: Mapped, unit: u64, walked: bool, out: &mut Vec<Extent>) {
    let head = (run.at.next_multiple_of(unit) - run.at).min(run.len);
    for (at, len) in [(0, head), (head, run.len - head)] {
        if len == 0 {
            continue;
        }
        let start = Pool::place(Run {
            start: run.dev + at,
            len,
        })
        .lba
        .0;
        // Extents that continue each other are one.
        match out.last_mut() {
            Some(last)
                if last.start + last.len == start
                    && last.unit == unit as u32
                    && last.walked == walked
                    && last.len.is_multiple_of(unit) =>
            {
                last.len += len;
            }
            _ => out.push(Extent {
                start,
                len,
                unit: unit as u32,
                walked,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FileSystem, FsSpec};
    use super::*;
    use raidlab_core::rng::mix;
    use raidlab_core::units::{GIB, MIB};
    use raidlab_experiment::kernel::{FilesystemKind, Kernel};
    use raidlab_layout::PoolSpec;

    fn made(pool: &str, members: usize) -> FileSystem {
        let pool: PoolSpec = pool.parse().unwrap();
        let sizes = vec![raidlab_core::units::Bytes(8 * GIB); members];
        let pool = pool.build(&sizes, 12).unwrap();
        let sectors = pool.capacity().0 / SECTOR;
        let mut spec = FsSpec::new(FilesystemKind::Zfs, Kernel::Linux(2, 6, 32), sectors);
        spec.vdevs = pool.vdevs().cloned().collect();
        FileSystem::new(&spec).unwrap()
    }

    /// First sectors of the records, in the order of the walk.
    fn records(fs: &FileSystem) -> Vec<u64> {
        let data = fs.blocks().into_iter().filter(|extent| extent.unit == 256);
        let blocks = data.flat_map(|e| (0..e.len / 256).map(move |i| e.start + i * 256));
        blocks.collect()
    }

    #[test]
    fn all_records_are_met_once_and_metadata_twice() {
        for (pool, members) in [("zfs-mirror", 2), ("zfs-mirror 2x2", 4), ("raidz1", 4)] {
            let mut fs = made(pool, members);
            fs.provide(0, 100 * MIB).unwrap();
            fs.provide(1, 60 * MIB).unwrap();
            let mut all = records(&fs);
            assert_eq!(all.len(), 160 * 8, "{pool}");
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 160 * 8, "{pool}");
            let metadata: Vec<Extent> = fs.blocks().into_iter().filter(|e| e.unit != 256).collect();
            let sectors = |walked| {
                let of = metadata.iter().filter(|e| e.walked == walked);
                of.map(|e| e.len).sum::<u64>()
            };
            // Indirect blocks of 128 records: 13 at the least, and the dnodes above them; the pool's own are there three times.
            assert!(
                sectors(false) >= 13 * 11 && sectors(true) >= sectors(false),
                "{pool}"
            );
            let _ = fs.remove(1);
            let _ = fs.commit();
            assert_eq!(records(&fs).len(), 100 * 8, "{pool}");
        }
    }

    #[test]
    fn records_written_in_order_lie_in_order_and_rewritten_ones_in_any() {
        let mut fs = made("zfs-mirror", 2);
        let runs = |fs: &FileSystem| {
            let all = records(fs);
            assert_eq!(all.len(), 64 * 8);
            all.windows(2).filter(|two| two[1] < two[0]).count()
        };
        fs.provide(0, 64 * MIB).unwrap();
        assert_eq!(runs(&fs), 0);
        let mut out = Vec::new();
        for i in 0..2048 {
            let at = mix(i) % 512 * (MIB / 8);
            let _ = fs.reserve(0, at, MIB / 8).unwrap();
            let _ = fs.place(0, at, MIB / 8, &mut out).unwrap();
            let _ = fs.commit();
        }
        let backwards = runs(&fs);
        // Every other neighbour of a random order.
        assert!((200..310).contains(&backwards), "{backwards}");
    }
}
