//! What a system call on the modelled host costs: a large file by calls of 8 KiB, as bonnie does, on a
//! bare disk, driven by the drive loop with all its statistics on.
//!
//! `cargo bench -p raidlab-sim --bench host`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::drive::{DriveOptions, Lane, drive};
use raidlab_core::op::OpenMode;
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, GIB, MIB};
use raidlab_core::workload::spec::{
    CallAction, CallsSpec, Durable, Handle, PassAction, PassSpec, WorkloadSpec,
};
use raidlab_experiment::dirty::WriteBack;
use raidlab_experiment::kernel::{FilesystemKind, Kernel};
use raidlab_sim::catalogue;
use raidlab_sim::disk::Disk;
use raidlab_sim::host::fs::{FileSystem, FsSpec};
use raidlab_sim::host::{BareDisk, CpuModel, Device, Host, HostSpec};
use shared::on_processor;
use std::time::Instant;

fn host(kind: FilesystemKind, kernel: Kernel, memory: u64) -> Host<BareDisk> {
    let model = catalogue::find("ST340015A").expect("a model").disk;
    let device = BareDisk::new(Disk::new(&model, 1));
    let fs = FsSpec::new(kind, kernel, device.sectors());
    let spec = HostSpec {
        cpu: CpuModel {
            name: "Athlon 64".to_owned(),
            mhz: 2000,
            per_clock: 1000,
            copy: 2_400_000_000,
            copy_cached: 5_000_000_000,
            cache: 512 << 10,
            peak: 0,
        },
        cores: 1,
        mhz: None,
        memory: Bytes(memory),
        kernel,
        read_ahead: None,
        write_back: WriteBack::default(),
    };
    Host::new(&spec, device, FileSystem::new(&fs).expect("a file system"))
}

fn pass(action: PassAction, mode: OpenMode, size: u64) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: Handle::new(0, mode),
        action,
        start: Bytes(0),
        size: Bytes(size),
        call: 8192,
        durable: Durable::AtEnd,
    })
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let chosen = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let seeks = WorkloadSpec::Calls(CallsSpec {
        handle: Handle::new(0, OpenMode::Update),
        action: CallAction::Seek { rewrite_one_in: 10 },
        size: Bytes(GIB),
        call: 8192,
        count: 8192,
        at_least: Span::ZERO,
        at_most: 0,
        durable: Durable::AtEnd,
    });
    for (system, kind, kernel) in [
        ("raw-2.6.16", FilesystemKind::None, Kernel::Linux(2, 6, 16)),
        ("ext3-2.6.16", FilesystemKind::Ext3, Kernel::Linux(2, 6, 16)),
        ("ext4-6.1", FilesystemKind::Ext4, Kernel::DEFAULT),
    ] {
        let mut host = host(kind, kernel, 512 * MIB);
        let phases = [
            ("write", pass(PassAction::Write, OpenMode::Create, GIB)),
            ("rewrite", pass(PassAction::Rewrite, OpenMode::Update, GIB)),
            ("read", pass(PassAction::Read, OpenMode::Update, GIB)),
            ("seeks", seeks),
            (
                "cached-read",
                pass(PassAction::Read, OpenMode::Read, 64 * MIB),
            ),
            (
                "cached-again",
                pass(PassAction::Read, OpenMode::Read, 64 * MIB),
            ),
        ];
        for (name, job) in phases {
            let name = format!("{system}-{name}");
            if !chosen(&name) {
                continue;
            }
            let mut lanes = [Lane {
                workload: job.build(Stream::new(1)),
                depth: 1,
            }];
            let cpu = host.cpu();
            let begin = Instant::now();
            let before = on_processor(begin);
            let driven = drive(&mut lanes, &mut host, &DriveOptions::default(), &mut ())
                .expect("the host answers");
            let seconds = on_processor(begin) - before;
            let tally = &driven.tallies[0];
            let elapsed = tally.elapsed().as_secs_f64();
            let used = host.cpu();
            let share = (used.user + used.system).0 - (cpu.user + cpu.system).0;
            println!(
                "{name:24} {:7.1} ns a call   simulated {:8.0} KiB/s, {:7.1} calls/s, CPU {:.1} %",
                seconds * 1e9 / tally.all_ops as f64,
                tally.bytes as f64 / 1024.0 / elapsed,
                tally.ops as f64 / elapsed,
                share as f64 / elapsed / 1e7,
            );
        }
    }
}
