//! Writers that are held back.
use super::raw::{close, one, rate};
use super::*;

fn write(call: u32, size: u64) -> WorkloadSpec {
    WorkloadSpec::Pass(PassSpec {
        handle: Handle::new(0, OpenMode::Create),
        action: PassAction::Write,
        start: Bytes(0),
        size: Bytes(size),
        call,
        durable: Durable::AtEnd,
    })
}

/// Where a writer is held back in the middle of a page, the page is written twice when it is on its way by then; that is
/// to be once in a while, not every eighth page. Most of what may be dirty fits into the device's queue here.
#[test]
fn calls_of_half_a_page_write_few_pages_twice() {
    let size = 96 * MIB;
    for (kernel, memory, more) in [
        (OLD, 32, 64),
        (Kernel::Linux(2, 6, 24), 128, 64),
        (Kernel::Linux(2, 6, 32), 64, 256),
        (Kernel::DEFAULT, 64, 256),
    ] {
        let mut rates = [0.0; 2];
        for (call, rate_of) in [4096, 2048].into_iter().zip(&mut rates) {
            let mut host = host(kernel, memory, FilesystemKind::Xfs, Toy::new());
            let wrote = one(&mut host, write(call, size));
            let written = host.counters().written;
            assert!(
                written < size + size / more,
                "{kernel}: {} pages twice in calls of {call}",
                (written - size) / 4096
            );
            *rate_of = rate(&wrote);
        }
        close(rates[1], rates[0], 0.03);
    }
}
