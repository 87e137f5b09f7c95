//! Making a ring with what this kernel has.
use super::error::EngineError;
use io_uring::IoUring;
use std::io;

/// A ring for `depth` operations by the best set of options this kernel has, and whether its
/// completions are deferred to the waiting thread.
pub(super) fn build(depth: u32) -> Result<(IoUring, bool), EngineError> {
    type Setup = fn(&mut io_uring::Builder);
    let levels: [(Setup, bool); 4] = [
        // Linux 6.6
        (
            |b| {
                b.setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_submit_all()
                    .setup_no_sqarray();
            },
            true,
        ),
        // Linux 6.1
        (
            |b| {
                b.setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_submit_all();
            },
            true,
        ),
        // Linux 5.19
        (
            |b| {
                b.setup_coop_taskrun().setup_submit_all();
            },
            false,
        ),
        (|_| {}, false),
    ];
    let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
    for (setup, deferred) in levels {
        let mut builder = IoUring::builder();
        setup(&mut builder);
        match builder.build(depth.max(1)) {
            Ok(ring) => return Ok((ring, deferred)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
            Err(source) => return Err(EngineError::NoUring { source }),
        }
    }
    Err(EngineError::NoUring { source: last })
}
