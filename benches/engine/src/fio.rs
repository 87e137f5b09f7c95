//! fio, by its own account of its job's CPU time.
//!
//! The process's CPU time over the run time would count fio's start and end, which take longer than
//! a short job.
use crate::Result;
use crate::configs::{Config, Figures, Generator};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// `fio-3.33`, or `None` when it does not run.
pub(crate) fn version(fio: &Path) -> Option<String> {
    let output = Command::new(fio).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

const TUNED: [&str; 7] = [
    "--fixedbufs=1",
    "--registerfiles=1",
    "--nonvectored=1",
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_max=32",
    "--gtod_reduce=1",
    "--norandommap=1",
];

pub(crate) fn run(fio: &Path, path: &Path, config: &Config, millis: u64) -> Result<Figures> {
    let mut command = Command::new(fio);
    let engine = match config.generator {
        Generator::FioPsync => "psync",
        _ => "io_uring",
    };
    command.args([
        "--name=read",
        "--rw=randread",
        "--bs=4k",
        "--readonly",
        "--allow_file_create=0",
        // By default fio evicts the file: the cached one would not be cached.
        "--invalidate=0",
        "--time_based",
        "--output-format=json",
    ]);
    command.arg(format!("--filename={}", path.display()));
    command.arg(format!("--size={}", config.target.size()));
    command.arg(format!("--runtime={millis}ms"));
    command.arg(format!("--ioengine={engine}"));
    command.arg(format!("--iodepth={}", config.depth));
    command.arg(format!("--direct={}", u8::from(config.target.is_direct())));
    if config.generator == Generator::FioTuned {
        command.args(TUNED);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    figures(&String::from_utf8_lossy(&output.stdout))
}

/// fio puts notes before its JSON.
fn figures(text: &str) -> Result<Figures> {
    let json = text.find('{').map_or("", |start| &text[start..]);
    let report: Value = serde_json::from_str(json)?;
    let job = &report["jobs"][0];
    let number = |value: &Value| value.as_f64().ok_or("fio's report lacks a number");
    let ios = number(&job["read"]["total_ios"])?;
    let run_ns = number(&job["job_runtime"])? * 1e6;
    let user = number(&job["usr_cpu"])? / 100.0 * run_ns;
    let system = number(&job["sys_cpu"])? / 100.0 * run_ns;
    Ok(Figures {
        iops: number(&job["read"]["iops"])?,
        cpu_ns: (user + system) / ios,
        user_ns: Some(user / ios),
        in_flight: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_before_the_report_are_passed_over() {
        let text = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"jobs": [{"job_runtime": 1000, "usr_cpu": 25.0, "sys_cpu": 50.0,
  "read": {"total_ios": 1000000, "iops": 999000.5}}]}"#;
        let figures = figures(text).unwrap();
        assert!((figures.iops - 999_000.5).abs() < 1e-9);
        assert!((figures.cpu_ns - 750.0).abs() < 1e-9);
        assert!((figures.user_ns.unwrap() - 250.0).abs() < 1e-9);
        assert!(super::figures("fio: no such file").is_err());
    }
}
