//! What no generator can do without: submission alone, a tight loop of calls, copying memory.
use crate::Result;
use crate::configs::{Config, Figures};
use crate::ours::BLOCK;
use io_uring::{IoUring, opcode, types};
use raidlab_core::rng::Stream;
use raidlab_io::observe::cpu::OwnCpu;
use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Repeats `turn`, which tells how many operations it did, for `millis`.
fn timed(millis: u64, mut turn: impl FnMut() -> Result<u64>) -> Result<Figures> {
    let (begun, before) = (Instant::now(), OwnCpu::of_this_thread());
    let mut ops = 0;
    while begun.elapsed() < Duration::from_millis(millis) {
        for _ in 0..64 {
            ops += turn()?;
        }
    }
    let (wall, cpu) = (begun.elapsed(), OwnCpu::of_this_thread().since(&before));
    let ops = ops as f64;
    Ok(Figures {
        iops: ops / wall.as_secs_f64(),
        cpu_ns: cpu.total().as_nanos() as f64 / ops,
        user_ns: Some(cpu.user.as_nanos() as f64 / ops),
        in_flight: None,
    })
}

/// `IORING_OP_NOP`, `depth` a system call.
pub(crate) fn nop(depth: u32, millis: u64) -> Result<Figures> {
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth)?;
    let entry = opcode::Nop::new().build();
    timed(millis, || {
        for _ in 0..depth {
            // SAFETY: a NOP refers to nothing.
            unsafe { ring.submission().push(&entry) }?;
        }
        ring.submit_and_wait(depth as usize)?;
        Ok(ring.completion().count() as u64)
    })
}

/// A block's buffer, in one page as those of the other generators.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; BLOCK as usize]);

/// Random reads of one block into registered buffers of a registered file, `depth` a system call, each end
/// only counted: what the kernel's part costs whoever generates.
pub(crate) fn bare(path: &Path, config: &Config, millis: u64) -> Result<Figures> {
    let depth = config.depth;
    let file = File::open(path)?;
    let blocks = config.target.size() / u64::from(BLOCK);
    let mut buffers = vec![Page([0; BLOCK as usize]); depth as usize];
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth)?;
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    let region = libc::iovec {
        iov_base: buffers.as_mut_ptr().cast(),
        iov_len: buffers.len() * BLOCK as usize,
    };
    // SAFETY: `buffers` is dropped after `ring`, and used by the kernel alone.
    unsafe { ring.submitter().register_buffers(&[region]) }?;
    let offsets = Stream::new(1);
    let mut i = 0;
    timed(millis, || {
        for slot in 0..depth {
            // SAFETY: `slot` is below `depth`, for which there are buffers.
            let buffer = unsafe { region.iov_base.cast::<u8>().add((slot * BLOCK) as usize) };
            let entry = opcode::ReadFixed::new(types::Fixed(0), buffer, BLOCK, 0)
                .offset(offsets.below(i, blocks) * u64::from(BLOCK))
                .build();
            i += 1;
            // SAFETY: the buffer is mapped until the ring is closed.
            unsafe { ring.submission().push(&entry) }?;
        }
        ring.submit_and_wait(depth as usize)?;
        let mut ends = 0;
        for end in ring.completion() {
            if end.result() != BLOCK.cast_signed() {
                return Err(format!("a read gave {}", end.result()).into());
            }
            ends += 1;
        }
        Ok(ends)
    })
}

/// `pread` of random blocks in a tight loop: no statistics, no clock.
pub(crate) fn pread(path: &Path, millis: u64) -> Result<Figures> {
    let file = File::open(path)?;
    let blocks = (file.metadata()?.len() / u64::from(BLOCK)).max(1);
    let offsets = Stream::new(1);
    let mut buffer = vec![0; BLOCK as usize];
    let mut i = 0;
    timed(millis, || {
        file.read_exact_at(&mut buffer, offsets.below(i, blocks) * u64::from(BLOCK))?;
        i += 1;
        Ok(1)
    })
}

/// The figures that belong beside large blocks.
pub(crate) fn context() -> Result<String> {
    const LEN: usize = 1 << 20;
    let source = vec![1_u8; LEN];
    let mut copy = vec![0_u8; LEN];
    let figures = timed(200, || {
        copy.copy_from_slice(black_box(&source));
        black_box(&copy);
        Ok(1)
    })?;
    let mut text = String::new();
    writeln!(
        text,
        "\nmemory copied by blocks of 1 MiB: {:.1} GiB/s",
        figures.iops * LEN as f64 / (1_u64 << 30) as f64
    )?;
    Ok(text)
}
