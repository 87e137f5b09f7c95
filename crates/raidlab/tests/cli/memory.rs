//! Memory beyond I/O buffers stays small however long a run is.
use crate::lab::Lab;

/// Peak resident memory of a process in KiB; `None` when it has ended.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn of_a_random_run_at_depth_32() {
    let lab = Lab::new();
    let mut running = lab
        .start("bench place -n 1 --profile random --size 16MiB --runtime 5s --read 100 --depth 32");
    let mut most = 0;
    while running.is_running() {
        most = most.max(peak(running.id()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
    let ops = lab.trials()[0]["phases"][0]["ops"]
        .as_u64()
        .expect("operations");
    assert!(most > 1024, "it was seen: {most} KiB");
    assert!(most < 100 * 1024, "{most} KiB after {ops} operations");
}
