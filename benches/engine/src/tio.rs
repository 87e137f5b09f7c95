//! t/io_uring: it prints the I/Os of each second, and its CPU time is looked up at the same moments.
use crate::Result;
use crate::configs::Figures;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub(crate) fn run(tio: Option<&Path>, path: &Path, depth: u32) -> Result<Figures> {
    // The second second, without start and end.
    Running::start(tio, path, depth, 3)?.end()
}

/// t/io_uring at work.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// I/Os of each second, and the processor time when that was told.
    seen: Vec<(f64, f64)>,
}

impl Running {
    /// Starts it for so many seconds; it is past its first one when this returns.
    pub(crate) fn start(tio: Option<&Path>, path: &Path, depth: u32, seconds: u64) -> Result<Self> {
        let tio = tio.ok_or("t/io_uring is not given")?;
        // Its output goes through a pipe; without stdbuf all lines would come at the end.
        let mut child = Command::new("stdbuf")
            .arg("-oL")
            .arg(tio)
            .args(["-p0", "-B1", "-F1", "-R1", "-O0"])
            .args([
                format!("-r{seconds}"),
                format!("-d{depth}"),
                format!("-s{depth}"),
                format!("-c{depth}"),
            ])
            .arg(path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output of t/io_uring")?;
        let mut running = Self {
            child,
            lines: BufReader::new(output).lines(),
            seen: Vec::new(),
        };
        while running.seen.is_empty() && running.hear()? {}
        Ok(running)
    }

    /// Takes in one line; false at the end.
    fn hear(&mut self) -> Result<bool> {
        let Some(line) = self.lines.next() else {
            return Ok(false);
        };
        if let (Some(iops), Some(cpu)) = (iops_of(&line?), cpu_of(self.child.id())) {
            self.seen.push((iops, cpu));
        }
        Ok(true)
    }

    /// From the first second to the last that it told of, once it has ended.
    pub(crate) fn end(mut self) -> Result<Figures> {
        while self.hear()? {}
        figures(&self.seen).ok_or_else(|| "t/io_uring printed no rates: does it run?".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first second is not counted, but its end is the beginning of what is.
fn figures(seen: &[(f64, f64)]) -> Option<Figures> {
    let [(_, before), rest @ ..] = seen else {
        return None;
    };
    let (_, after) = rest.last()?;
    let ios: f64 = rest.iter().map(|(iops, _)| iops).sum();
    Some(Figures {
        iops: ios / rest.len() as f64,
        cpu_ns: (after - before) / ios,
        user_ns: None,
        in_flight: None,
    })
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

    #[test]
    fn the_first_second_is_left_out() {
        let seen = [(9e5, 1e9), (1e6, 2e9), (1.2e6, 3.2e9)];
        let figures = figures(&seen).unwrap();
        assert!((figures.iops - 1.1e6).abs() < 1e-6);
        assert!((figures.cpu_ns - 1000.0).abs() < 1e-9);
        assert!(super::figures(&seen[..1]).is_none() && super::figures(&[]).is_none());
    }
}
