//! t/io_uring: it prints the I/Os of each second, and its CPU time is looked up at the same moments.
use crate::Result;
use crate::configs::Figures;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn run(tio: Option<&Path>, path: &Path, depth: u32) -> Result<Figures> {
    let tio = tio.ok_or("t/io_uring is not given")?;
    // Its output goes through a pipe; without stdbuf all lines would come at the end.
    let mut child = Command::new("stdbuf")
        .arg("-oL")
        .arg(tio)
        .args(["-p0", "-B1", "-F1", "-R1", "-O0", "-r3"])
        .args([
            format!("-d{depth}"),
            format!("-s{depth}"),
            format!("-c{depth}"),
        ])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output of t/io_uring")?;
    let mut before = None;
    let mut figures = None;
    for line in BufReader::new(output).lines() {
        let Some(iops) = iops_of(&line?) else {
            continue;
        };
        let now = cpu_of(child.id());
        // From the first line to the second: the second second, without start and end.
        if let (Some(before), Some(now), None) = (before, now, &figures) {
            let spent = now - before;
            figures = Some(Figures {
                iops,
                cpu_ns: spent / iops,
                user_ns: None,
                in_flight: None,
            });
        }
        before = now;
    }
    child.wait()?;
    figures.ok_or_else(|| "t/io_uring printed no rates: does it run?".into())
}

/// `IOPS=1.53M, BW=…`: three digits.
fn iops_of(line: &str) -> Option<f64> {
    let text = line.strip_prefix("IOPS=")?.split(',').next()?;
    let (digits, scale) = match text.strip_suffix('M') {
        Some(digits) => (digits, 1e6),
        None => match text.strip_suffix('K') {
            Some(digits) => (digits, 1e3),
            None => (text, 1.0),
        },
    };
    Some(digits.parse::<f64>().ok()? * scale)
}

/// CPU time of all threads of a process in ns, as the scheduler counts it.
fn cpu_of(process: u32) -> Option<f64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let times = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    Some(times.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_scale() {
        assert_eq!(
            iops_of("IOPS=1.53M, BW=5.96GiB/s, IOS/call=32/32"),
            Some(1_530_000.0)
        );
        assert_eq!(iops_of("IOPS=87K, BW=1MiB/s"), Some(87_000.0));
        assert_eq!(iops_of("IOPS=812, BW=1MiB/s"), Some(812.0));
        assert_eq!(iops_of("Maximum IOPS=1.53M"), None);
    }
}
