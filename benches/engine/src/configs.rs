//! What is measured in each round.
use crate::place::{Places, Target};
use crate::{Args, Result, beside, fio, floor, ours, tio};

/// What one measurement gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// I/Os a second of wall time.
    pub(crate) iops: f64,
    /// User and system time of the generator, ns an I/O.
    pub(crate) cpu_ns: f64,
    /// User time alone, where it is known.
    pub(crate) user_ns: Option<f64>,
    /// Mean operations in flight, where it is known.
    pub(crate) in_flight: Option<f64>,
}

/// One measurement of one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) round: u32,
    pub(crate) name: String,
    pub(crate) figures: Figures,
    /// CPUs that other programs used meanwhile.
    pub(crate) foreign: f64,
    /// Others used the machine so much that rates mean little.
    pub(crate) contended: bool,
}

/// By what I/O is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    /// This repository's engine, through `run_phase`, all statistics on.
    Raidlab,
    /// fio with `ioengine=psync`.
    FioPsync,
    /// fio with `ioengine=io_uring` and nothing else.
    FioUring,
    /// fio with io_uring and every option that helps: registered file and buffers, batches, no
    /// latency statistics.
    FioTuned,
    /// t/io_uring, the floor of what a C program does.
    Tio,
    /// Raidlab and others at the same time on the same processor (see [`beside`]).
    Beside,
    /// Reads through io_uring with no statistics at all.
    Bare,
    /// `IORING_OP_NOP`: submission alone.
    Nop,
    /// `pread` in a tight loop.
    Pread,
}

/// A generator on a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) generator: Generator,
    pub(crate) target: Target,
    pub(crate) depth: u32,
}

impl Config {
    /// `null/raidlab/q32`.
    pub(crate) fn name(&self) -> String {
        let generator = match self.generator {
            Generator::Raidlab => "raidlab",
            Generator::FioPsync => "fio-psync",
            Generator::FioUring => "fio-uring",
            Generator::FioTuned => "fio-tuned",
            Generator::Tio => "tio",
            Generator::Beside => "beside",
            Generator::Bare => "bare",
            Generator::Nop => "nop",
            Generator::Pread => "pread",
        };
        format!("{}/{generator}/q{}", self.target.name(), self.depth)
    }

    /// What came of it, by names.
    pub(crate) fn run(&self, places: &Places, args: &Args) -> Result<Vec<(String, Figures)>> {
        let path = places.path(self.target);
        let figures = match self.generator {
            Generator::Raidlab => ours::run(path, self, args.time),
            Generator::FioPsync | Generator::FioUring | Generator::FioTuned => {
                fio::run(&args.fio, path, self, args.time)
            }
            Generator::Tio => tio::run(args.tio.as_deref(), path, self.depth),
            Generator::Nop => floor::nop(self.depth, args.time),
            Generator::Pread => floor::pread(path, args.time),
            Generator::Bare => floor::bare(path, self, args.time),
            Generator::Beside => return beside::run(args, path, self),
        };
        Ok(vec![(self.name(), figures?)])
    }
}

/// All configurations that can run here; what cannot is said on standard error.
pub(crate) fn all(places: &Places, args: &Args) -> Vec<Config> {
    use Generator::{Bare, Beside, FioPsync, FioTuned, FioUring, Nop, Pread, Raidlab, Tio};
    let on = |target, depth, generators: &[Generator]| {
        generators
            .iter()
            .map(|&generator| Config {
                generator,
                target,
                depth,
            })
            .collect::<Vec<_>>()
    };
    let mut configs = on(
        Target::Null,
        32,
        &[Raidlab, FioTuned, FioUring, Beside, Bare, Nop],
    );
    configs.extend(on(Target::Null, 1, &[Raidlab, FioPsync, Pread]));
    configs.extend(on(Target::Hot, 32, &[Raidlab, Tio, Beside]));
    configs.extend(on(Target::Hot, 1, &[Raidlab, FioPsync, Pread]));
    configs.extend(on(Target::Direct, 1, &[Raidlab, FioPsync, FioUring]));
    configs.extend(on(Target::Direct, 32, &[Raidlab, FioUring, FioTuned]));
    if places.has_loop() {
        configs.extend(on(Target::Loop, 32, &[Raidlab, FioUring, FioTuned]));
    } else {
        eprintln!("without a loop device (it takes root): the part of P7 on it is left out");
    }
    let fio = fio::version(&args.fio);
    match &fio {
        Some(version) => eprintln!("beside {version}"),
        None => eprintln!(
            "without fio ({} does not run): P1, P2, P4 and P7 are left out",
            args.fio.display()
        ),
    }
    if args.tio.is_none() {
        eprintln!("without t/io_uring (--tio or TIO=): P3 is left out");
    }
    configs.retain(|config| match config.generator {
        FioPsync | FioUring | FioTuned => fio.is_some(),
        Beside if config.target == Target::Null => fio.is_some(),
        Tio | Beside => args.tio.is_some(),
        _ => true,
    });
    configs
}
