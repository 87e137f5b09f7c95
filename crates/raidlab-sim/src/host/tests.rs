//! Hosts over a modelled disk and over a device of fixed speed.
mod cold;
mod dirty;
mod files;
mod forces;
mod groups;
mod laws;
mod logs;
mod names;
mod raw;
mod space;
mod throttle;
mod toy;
mod turns;

use super::fs::{FileSystem, FsSpec};
use super::*;
use crate::catalogue;
use crate::disk::Disk;
use raidlab_core::drive::{DriveError, DriveOptions, Lane, Tally, drive};
use raidlab_core::op::OpenMode;
use raidlab_core::rng::Stream;
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, Extent, MIB};
use raidlab_core::workload::spec::{
    AnyWorkload, Arrival, BlockSpec, CallAction, CallsSpec, Durable, Handle, Limit, Order,
    PassAction, PassSpec, WorkloadSpec,
};
use raidlab_experiment::dirty::WriteBack;
use raidlab_experiment::kernel::{FilesystemKind, Kernel};
use toy::Toy;

const OLD: Kernel = Kernel::Linux(2, 6, 16);

/// A machine of 2006 with so many MiB of memory.
fn machine(kernel: Kernel, mib: u64) -> HostSpec {
    HostSpec {
        cpu: CpuModel {
            name: "Athlon 64".into(),
            mhz: 2000,
            per_clock: 1000,
            copy: 2_400_000_000,
            copy_cached: 5_000_000_000,
            cache: 512 << 10,
            peak: 0,
        },
        cores: 1,
        mhz: None,
        memory: Bytes(mib * MIB),
        kernel,
        read_ahead: None,
        write_back: WriteBack::default(),
    }
}

fn host<D: Device>(kernel: Kernel, mib: u64, kind: FilesystemKind, device: D) -> Host<D> {
    let spec = FsSpec::new(kind, kernel, device.sectors());
    Host::new(
        &machine(kernel, mib),
        device,
        FileSystem::new(&spec).unwrap(),
    )
}

/// The 40 GB disk of 2003, bare.
fn disk() -> BareDisk {
    let model = catalogue::find("ST340015A").unwrap().disk;
    BareDisk::new(Disk::new(&model, 7))
}

fn run<D: Device>(host: &mut Host<D>, jobs: &[(WorkloadSpec, u32)]) -> Vec<Tally> {
    attempt(host, jobs).unwrap()
}

fn attempt<D: Device>(
    host: &mut Host<D>,
    jobs: &[(WorkloadSpec, u32)],
) -> Result<Vec<Tally>, DriveError> {
    let mut lanes: Vec<Lane<AnyWorkload>> = jobs
        .iter()
        .enumerate()
        .map(|(number, (spec, depth))| Lane {
            workload: spec.build(Stream::new(11 + number as u64)),
            depth: *depth,
        })
        .collect();
    let driven = drive(&mut lanes, host, &DriveOptions::default(), &mut ())?;
    Ok(driven.tallies)
}
