//! What is done in the guest.
use super::{Order, Phase, Seen};
use crate::real::agent::with_serials;
use crate::real::job::Disks;
use raidlab_core::units::SECTOR;
use raidlab_nbd::guest::{self, Shown};
use raidlab_nbd::server::Report;
use raidlab_nbd::store::Memory;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What buffers of direct I/O begin at a multiple of.
const ALIGNED: usize = 4096;
/// Measures the disks, phase by phase: those that are outside, or those that are served in here. `begins` is told of
/// each phase before it begins.
pub(in crate::real) fn measure(order: &Order, begins: &dyn Fn(&str)) -> Result<Vec<Seen>, String> {
    let bytes = match &order.disks {
        Disks::Modelled { bytes } => *bytes,
        Disks::Given { modules, serials } => {
            let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
            load(&modules)?;
            let devices = with_serials(serials).map_err(|failure| failure.message)?;
            let phases = order.phases.iter().map(|phase| {
                begins(&phase.name());
                Ok(Seen::of(all(order, phase, &devices)?))
            });
            return phases.collect();
        }
    };
    load(&["nbd"])?;
    let spec = order.fabric().map_err(|failure| failure.message)?;
    let shown = Shown {
        start: 0,
        bytes: order.size,
        sector: SECTOR as u32,
        unlike: false,
        pages: false,
    };
    let shown = vec![shown; order.models.len()];
    let mut memory = Memory::of_guest(bytes).map_err(|error| error.to_string())?;
    let served = guest::serve(&spec, order.seed, &shown, &mut memory, guest::options())
        .map_err(|error| error.to_string())?;
    let report = || {
        let gone = || "the server of the disks has died".to_owned();
        served.report().ok_or_else(gone)
    };
    let mut seen = Vec::new();
    for phase in &order.phases {
        begins(&phase.name());
        let before = report()?;
        let rate = all(order, phase, served.devices())?;
        seen.push(summary(rate, &before, &report()?));
    }
    Ok(seen)
}

fn load(modules: &[&str]) -> Result<(), String> {
    match raidlab_vm::guest::load(modules).into_iter().next() {
        Some(said) => Err(said),
        None => Ok(()),
    }
}

/// Requests a second on all disks at the same time.
fn all(order: &Order, phase: &Phase, devices: &[PathBuf]) -> Result<f64, String> {
    let rates = std::thread::scope(|scope| {
        let disks = (0..).zip(devices);
        let threads = disks.map(|(disk, path)| scope.spawn(move || one(order, phase, disk, path)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|rate| rate.unwrap_or_else(|_| Err("a thread has died".to_owned())))
            .collect::<Result<Vec<f64>, String>>()
    })?;
    Ok(rates.iter().sum())
}

fn summary(rate: f64, before: &Report, after: &Report) -> Seen {
    let mut late = raidlab_core::histogram::Latencies::new();
    late.add_between(Some(&before.lateness.all), &after.lateness.all, 1);
    let nanos = |percent| late.percentile(percent).map_or(0, |span| span.0);
    let elapsed = after.elapsed.0.saturating_sub(before.elapsed.0);
    Seen {
        rate,
        server: after.cpu.0.saturating_sub(before.cpu.0) as f64 / elapsed.max(1) as f64,
        load: guest::load(before, after),
        late: [nanos(50.0), nanos(99.0), nanos(100.0)],
    }
}

/// Requests a second on one disk.
fn one(order: &Order, phase: &Phase, disk: u64, path: &Path) -> Result<f64, String> {
    let failed = |what: &str, error: std::io::Error| format!("{what} {}: {error}", path.display());
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(phase.write).custom_flags(direct);
    let file: File = options.open(path).map_err(|error| failed("open", error))?;
    let len = phase.block as usize;
    let mut memory = vec![0xa5_u8; len + ALIGNED];
    let start = memory.as_ptr().align_offset(ALIGNED);
    let buffer = &mut memory[start..start + len];
    let begun = Instant::now();
    for index in 0..phase.count {
        let offset = phase.offset(order, disk, index);
        if phase.write {
            let done = file.write_all_at(buffer, offset);
            done.map_err(|error| failed("write to", error))?;
        } else {
            let done = file.read_exact_at(buffer, offset);
            done.map_err(|error| failed("read", error))?;
        }
    }
    Ok(phase.count as f64 / begun.elapsed().as_secs_f64())
}
