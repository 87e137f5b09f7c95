//! The measuring engine beside fio and t/io_uring: one interleaved run, ratios with intervals.
//!
//! Every round runs every configuration once, in random order, pinned to one CPU; a ratio is the
//! geometric mean over the rounds with its 95 % interval, so that what is common to a round (drift,
//! other load) cancels. On a shared machine only ratios of CPU time per I/O are worth a verdict:
//! when the rounds were contended the others are printed and not judged.
//!
//! ```text
//! cargo run --release -p engine-bench                     # fio from the PATH, if there is one
//! cargo run --release -p engine-bench -- --tio path/to/t/io_uring --dir /mnt/ext4
//! ```
mod beside;
mod configs;
mod fio;
mod floor;
mod goals;
mod ours;
mod place;
mod report;
mod tio;

use clap::Parser;
use configs::{Config, Measured};
use raidlab_core::rng::{Stream, shuffle};
use raidlab_io::observe::Roots;
use raidlab_io::observe::cpu::CpuSnapshot;
use raidlab_io::observe::evidence::{CPU_PRESSURE, FOREIGN_CPUS, STEAL};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Any error, with its text.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(about = "The measuring engine beside fio and t/io_uring, in one interleaved run")]
struct Args {
    /// Rounds; each runs every configuration once.
    #[arg(long, default_value_t = 14)]
    rounds: u32,
    /// Length of one measurement in milliseconds.
    #[arg(long, default_value_t = 1000)]
    time: u64,
    /// Length of a measurement of two generators at the same time, in seconds.
    #[arg(long, default_value_t = 3)]
    beside: u64,
    /// Where the test files go; ext4 for the goals as stated.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The CPU everything is pinned to.
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Path of t/io_uring, which comes with fio's source and is not packaged.
    #[arg(long, env = "TIO")]
    tio: Option<PathBuf>,
    /// Path of fio.
    #[arg(long, env = "FIO", default_value = "fio")]
    fio: PathBuf,
    /// Only configurations whose name contains one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// All measurements as JSON lines, to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("engine-bench: {error}");
            ExitCode::from(5)
        }
    }
}

/// True when no judged goal was missed.
fn run(args: &Args) -> Result<bool> {
    let places = place::Places::make(&args.dir)?;
    let chosen = |config: &Config| {
        args.only.is_empty() || args.only.iter().any(|part| config.name().contains(part))
    };
    let mut configs: Vec<Config> = configs::all(&places, args)
        .into_iter()
        .filter(chosen)
        .collect();
    pin(args.cpu)?;
    let stop = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let roots = Roots::system();
    let mut measured: Vec<Measured> = Vec::new();
    for round in 0..args.rounds {
        shuffle(&mut configs, Stream::new(args.seed).child(u64::from(round)));
        for config in &configs {
            let before = CpuSnapshot::take(&roots)?;
            let all = config.run(&places, args);
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".into());
            }
            let all = all?;
            let cpu = CpuSnapshot::take(&roots)?.since(&before);
            let pressure = cpu.cpu_pressure.map_or(0.0, |pressure| pressure.some);
            let foreign = cpu.foreign_cpus().unwrap_or(0.0);
            let steal = cpu.steal_share().unwrap_or(0.0);
            // Two on one processor wait for it, and both alike: that is no disturbance.
            let waited = all.len() == 1 && pressure > CPU_PRESSURE;
            measured.extend(all.into_iter().map(|(name, figures)| Measured {
                round,
                name,
                figures,
                foreign,
                contended: foreign > FOREIGN_CPUS || steal > STEAL || waited,
            }));
        }
        eprintln!("round {} of {}", round + 1, args.rounds);
    }
    if let Some(path) = &args.json {
        std::fs::write(path, report::json_lines(&measured))?;
    }
    print!("{}", report::table(&measured));
    let verdicts = goals::judge(&measured);
    print!("{}", report::goals(&verdicts));
    print!("{}", floor::context()?);
    Ok(verdicts.iter().all(|verdict| verdict.met != Some(false)))
}

fn pin(cpu: usize) -> Result<()> {
    // SAFETY: an all-zero set is empty; the calls write within it and read it.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if answer != 0 {
        return Err(format!(
            "cannot pin to CPU {cpu}: {}",
            std::io::Error::last_os_error()
        )
        .into());
    }
    Ok(())
}
