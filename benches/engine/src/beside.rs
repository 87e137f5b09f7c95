//! Generators at the same time on the same processor.
//!
//! The scheduler gives it to them by turns of a few milliseconds, so that whatever else the machine does,
//! and whatever speed its clock has, falls on all alike: far less of that is left in a ratio than when one
//! runs after the other. What can be compared is processor time an I/O. Where nothing is waited for, as on
//! a cached file and on `/dev/zero`, that is the whole truth: a processor for oneself does as many I/Os a
//! second as fit.
use crate::configs::{Config, Figures, Generator};
use crate::place::Target;
use crate::tio::Running;
use crate::{Args, Result, fio, floor, ours};
use std::path::Path;

/// Each with its name: ours and t/io_uring on a file; on `/dev/zero` ours, tuned fio and what the kernel
/// alone takes.
pub(crate) fn run(args: &Args, path: &Path, config: &Config) -> Result<Vec<(String, Figures)>> {
    let all = match config.target {
        Target::Null => with_fio(args, path, config)?,
        _ => with_tio(args, path, config)?,
    };
    let name = |who| format!("{}/{who}-beside/q{}", config.target.name(), config.depth);
    Ok(all
        .into_iter()
        .map(|(who, figures)| (name(who), figures))
        .collect())
}

fn with_tio(args: &Args, path: &Path, config: &Config) -> Result<Vec<(&'static str, Figures)>> {
    let seconds = args.beside.max(1);
    // Both warm up for a second, which is not counted: the one that is told of ends a little later.
    let theirs = Running::start(args.tio.as_deref(), path, config.depth, seconds + 3)?;
    std::thread::scope(|scope| {
        // Its processor time is looked up when it tells of a second.
        let theirs = scope.spawn(|| theirs.end().map_err(|error| error.to_string()));
        let ours = ours::run(path, config, 1000 * seconds);
        let theirs = theirs.join().map_err(|_| "its reader ended early")?;
        Ok(vec![("raidlab", ours?), ("tio", theirs?)])
    })
}

fn with_fio(args: &Args, path: &Path, config: &Config) -> Result<Vec<(&'static str, Figures)>> {
    let millis = 1000 * args.beside.max(1);
    let tuned = Config {
        generator: Generator::FioTuned,
        ..*config
    };
    let text = |error: Box<dyn std::error::Error>| error.to_string();
    std::thread::scope(|scope| {
        let fio = scope.spawn(|| fio::run(&args.fio, path, &tuned, millis).map_err(text));
        let bare = scope.spawn(|| floor::bare(path, config, millis).map_err(text));
        let ours = ours::run(path, config, millis);
        let fio = fio.join().map_err(|_| "fio's reader ended early")?;
        let bare = bare.join().map_err(|_| "the bare loop ended early")?;
        Ok(vec![
            ("raidlab", ours?),
            ("fio-tuned", fio?),
            ("bare", bare?),
        ])
    })
}
