//! Data files that must exist before a phase.
use super::error::RunError;
use super::place::Place;
use super::writer::Writer;
use super::{RunMonitor, RunOptions, RunProgress, RunStage};
use crate::engine::{BLOCK, Content};
use crate::observe::Roots;
use crate::observe::environment::space_at;
use crate::observe::quota;
use raidlab_core::data::DataPolicy;
use raidlab_core::phase::{Evidence, Job, Needed, Phase};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_core::workload::Expected;
use raidlab_core::workload::spec::WorkloadSpec;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

/// Blocks that are read to see whether a file is one of this run.
const SAMPLES: u64 = 64;

/// Removes the data files that must not be there, makes those that are missing, and checks the size
/// of a given file or device (which is never removed).
pub(super) fn prepare(
    place: &Place,
    phase: &Phase,
    content: &Content,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<(), RunError> {
    let needs = &phase.needs;
    if let Some(size) = place.size() {
        let needed = needs.iter().map(|need| need.size).max();
        return match needed {
            Some(needed) if needed.0 > size => Err(RunError::TooSmall {
                path: place.resolved().path.clone(),
                size: Bytes(size),
                needed,
            }),
            _ => Ok(()),
        };
    }
    for &file in &phase.fresh {
        let path = place.way(file);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunError::path("remove", &path)(error));
            }
            _ => {}
        }
    }
    // To look into them again would take its time while what they were laid out for goes on.
    let laid = place.take_laid_out();
    let needs: Vec<Needed> = needs
        .iter()
        .filter(|need| !laid.contains(need))
        .copied()
        .collect();
    provide(place, &needs, content, options, monitor)
}

/// Makes those data files in a directory that are not there as they are needed.
pub(super) fn provide(
    place: &Place,
    needs: &[Needed],
    content: &Content,
    options: &RunOptions,
    monitor: RunMonitor<'_>,
) -> Result<(), RunError> {
    let missing: Vec<&Needed> = needs
        .iter()
        .filter(|need| need.size.0 > 0)
        .filter(|need| !is_valid(&place.way(need.file), need, content))
        .collect();
    check_space(place, &missing)?;
    let total = missing.iter().map(|need| need.size.0).sum();
    let mut progress = Written {
        before: 0,
        total,
        begun: Instant::now(),
        options,
        monitor,
    };
    for need in missing {
        let writer = Writer {
            path: place.way(need.file),
            file: need.file,
            size: need.size.0,
            content: content.clone(),
        };
        writer.write(options.stall, |written| progress.report(need, written))?;
        progress.before += need.size.0;
    }
    Ok(())
}

/// Writes what is still in memory of the file system before a phase that ends by making it durable, or that begins cold: what others wrote
/// before, and an earlier phase, would be written back within it. Phases in which whatever the caches do is part of the figure begin
/// as the one before has left them.
pub(super) fn settle(place: &Place, phase: &Phase) -> Result<(), RunError> {
    let small = |job: &Job| matches!(job.workload, WorkloadSpec::Files(_));
    let wanted = phase.cold || phase.evidence != Evidence::None || phase.jobs.iter().any(small);
    match wanted {
        true => write_back(place),
        false => Ok(()),
    }
}

/// Writes what is still in memory of the file system of a directory.
pub(super) fn write_back(place: &Place) -> Result<(), RunError> {
    let Some(directory) = place.inside() else {
        return Ok(());
    };
    let opened = File::open(directory).map_err(RunError::path("open", directory))?;
    // An error of something that another program wrote before is told once, to whoever asks first.
    rustix::fs::syncfs(&opened)
        .or_else(|_| rustix::fs::syncfs(&opened))
        .map_err(RunError::path(
            "make durable what is on the file system of",
            directory,
        ))
}

struct Written<'a> {
    /// Bytes of the files that are whole.
    before: u64,
    total: u64,
    begun: Instant,
    options: &'a RunOptions,
    monitor: RunMonitor<'a>,
}

impl Written<'_> {
    fn report(&mut self, need: &Needed, written: u64) -> Result<(), RunError> {
        let progress = RunProgress {
            stage: RunStage::Preparing { file: need.file },
            elapsed: Span::from(self.begun.elapsed()),
            ops: 0,
            bytes: self.before + written,
            expected: Expected {
                bytes: Some(self.total),
                ..Expected::default()
            },
        };
        if (self.monitor)(progress).is_break() || self.options.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        Ok(())
    }
}

fn check_space(place: &Place, missing: &[&Needed]) -> Result<(), RunError> {
    let Some(directory) = place.directory() else {
        return Ok(());
    };
    // A file that is made anew gives its present space back first.
    let blocks = |need: &&Needed| {
        std::fs::metadata(place.way(need.file)).map_or(0, |found| found.blocks() * 512)
    };
    let needed: u64 = missing.iter().map(|need| need.size.0).sum();
    let available = space_at(directory)?.available + missing.iter().map(blocks).sum::<u64>();
    if needed > available {
        return Err(RunError::NoSpace {
            path: place.resolved().path.clone(),
            needed: Bytes(needed),
            available: Bytes(available),
            limit: quota::limiting(&Roots::system(), directory, available)
                .map(|quota| quota.to_string()),
        });
    }
    Ok(())
}

/// Whether a data file has the content of this run, judged by its size and by samples.
fn is_valid(path: &Path, need: &Needed, content: &Content) -> bool {
    let check = || -> io::Result<bool> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        if found.len() < need.size.0 {
            return Ok(false);
        }
        // A hole reads as zeros, which is the content when zeros are written.
        if content.policy() == DataPolicy::Zeros && found.blocks() * 512 < need.size.0 / 10 * 9 {
            return Ok(false);
        }
        let _ = fadvise(&file, 0, None, Advice::Random);
        let mut block = [0; BLOCK];
        let last = (need.size.0 - 1) / BLOCK as u64;
        for sample in 0..SAMPLES.min(last + 1) {
            let number = u128::from(last) * u128::from(sample) / u128::from((SAMPLES - 1).max(1));
            let offset = number as u64 * BLOCK as u64;
            let len = (need.size.0 - offset).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut block[..len], offset)?;
            if content.check(need.file, offset, &block[..len]).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    check().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::phase::{Access, Counted};
    use std::ops::ControlFlow;

    #[test]
    fn files_that_were_laid_out_are_not_looked_into_before_the_first_phase() {
        let parent = tempfile::tempdir().unwrap();
        let place = Place::open(parent.path()).unwrap();
        let options = RunOptions::new(7);
        let content = Content::new(options.data, options.seed);
        let file = Needed {
            file: 0,
            size: Bytes::kib(64),
        };
        super::super::lay_out(
            &[file],
            &place,
            &options,
            &mut |_| ControlFlow::Continue(()),
        )
        .unwrap();
        let whole = std::fs::read(place.data(0)).unwrap();
        assert_eq!(whole.len(), 64 << 10);
        std::fs::write(place.data(0), "other").unwrap();
        let phase = Phase {
            needs: vec![file],
            id: "read".to_owned(),
            title: "read".to_owned(),
            jobs: Vec::new(),
            access: Access::Buffered,
            counted: Counted::Bytes,
            cold: false,
            evidence: Evidence::None,
            fresh: Vec::new(),
            ramp: Span::ZERO,
        };
        let prepared = || {
            prepare(&place, &phase, &content, &options, &mut |_| {
                ControlFlow::Continue(())
            })
            .unwrap();
            std::fs::read(place.data(0)).unwrap()
        };
        assert_eq!(prepared(), b"other");
        // What a phase has changed is made anew for the next.
        assert_eq!(prepared(), whole);
    }
}
