//! The text forms: `/proc/stat`, `/proc/PID/stat`, `/proc/pressure/*`, `/proc/self/io` (`proc(5)`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::observe::error::{ObserveError, Result};

/// System-wide CPU time in ticks, all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemTicks {
    /// User space, virtual machines included.
    pub user: u64,
    /// User space, niced.
    pub nice: u64,
    /// Kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub io_wait: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub soft_irq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl SystemTicks {
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user: f(self.user, other.user),
            nice: f(self.nice, other.nice),
            system: f(self.system, other.system),
            idle: f(self.idle, other.idle),
            io_wait: f(self.io_wait, other.io_wait),
            irq: f(self.irq, other.irq),
            soft_irq: f(self.soft_irq, other.soft_irq),
            steal: f(self.steal, other.steal),
        }
    }

    /// Since `before`; idle and I/O wait are known to step back a little, which counts as 0.
    pub fn since(&self, before: &Self) -> Self {
        self.zip(*before, u64::saturating_sub)
    }

    /// User, nice, system and interrupts.
    pub fn busy(&self) -> u64 {
        [self.user, self.nice, self.system, self.irq, self.soft_irq]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Hard and soft interrupts.
    pub fn interrupts(&self) -> u64 {
        self.irq.saturating_add(self.soft_irq)
    }

    /// Everything.
    pub fn total(&self) -> u64 {
        [self.busy(), self.idle, self.io_wait, self.steal]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Reads the line `cpu` of `/proc/stat`. Guest time is already within user time.
///
/// # Errors
/// When there is no such line or a number in it is none.
pub fn parse_proc_stat(text: &str) -> Result<SystemTicks> {
    const FILE: &str = "/proc/stat";
    let (index, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.split_ascii_whitespace().next() == Some("cpu"))
        .ok_or_else(|| ObserveError::malformed(FILE, 1, "there is no line `cpu`"))?;
    let values = line
        .split_ascii_whitespace()
        .skip(1)
        .map(|value| {
            value.parse::<u64>().map_err(|_| {
                ObserveError::malformed(
                    FILE,
                    index + 1,
                    format!("`{value}` is not a number of ticks"),
                )
            })
        })
        .collect::<Result<Vec<u64>>>()?;
    if values.len() < 4 {
        return Err(ObserveError::malformed(
            FILE,
            index + 1,
            "fewer than 4 numbers",
        ));
    }
    let at = |index: usize| values.get(index).copied().unwrap_or(0);
    Ok(SystemTicks {
        user: at(0),
        nice: at(1),
        system: at(2),
        idle: at(3),
        io_wait: at(4),
        irq: at(5),
        soft_irq: at(6),
        steal: at(7),
    })
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Command name.
    pub name: String,
    /// `PF_*` flags.
    pub flags: u64,
    /// User ticks.
    pub user: u64,
    /// Kernel ticks.
    pub system: u64,
    /// Start, in ticks since boot.
    pub start: u64,
}

impl TaskStat {
    /// User and kernel ticks.
    pub fn ticks(&self) -> u64 {
        self.user.saturating_add(self.system)
    }
}

/// Parses `/proc/PID/stat`. The name is in parentheses and may contain blanks and parentheses itself, so it ends at
/// the last one. `None` when the text has not this form.
pub fn parse_task_stat(text: &str) -> Option<TaskStat> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    // The fields after the name start with number 3, the state.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(TaskStat {
        name: name.to_owned(),
        flags: field(9)?,
        user: field(14)?,
        system: field(15)?,
        start: field(22)?,
    })
}

/// The group of a kernel thread: its name without CPU, device or instance numbers. `md127_raid5` is `md_raid5`,
/// `kworker/u8:2-events` is `kworker`, `jbd2/sda1-8` is `jbd2`, `z_wr_iss_3` is `z_wr_iss`, `loop0` is `loop`.
pub fn group_name(name: &str) -> String {
    let array = name
        .strip_prefix("md")
        .and_then(|rest| rest.split_once('_'));
    if let Some((number, rest)) = array
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return format!("md_{rest}");
    }
    let base = name
        .split('/')
        .find(|part| !part.is_empty())
        .unwrap_or(name);
    // `jbd2` and `raid5wq` are words, not instances: only digits after a separator or a device name go.
    if base == "jbd2" {
        return base.to_owned();
    }
    let trimmed = base
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches(['_', '-', ':', '.']);
    if trimmed.is_empty() {
        base.to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureLine {
    /// Time waited since boot.
    pub total: Duration,
}

/// A pressure file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// At least one task waited.
    pub some: PressureLine,
    /// All tasks waited; not in `cpu` before Linux 5.13.
    pub full: Option<PressureLine>,
}

/// Parses a pressure file, whose totals are in µs; `None` when there is no line `some`.
pub fn parse_pressure(text: &str) -> Option<Pressure> {
    let line = |wanted: &str| {
        let line = text
            .lines()
            .find(|line| line.split_ascii_whitespace().next() == Some(wanted))?;
        let total = line
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix("total="))?;
        Some(PressureLine {
            total: Duration::from_micros(total.parse().ok()?),
        })
    };
    Some(Pressure {
        some: line("some")?,
        full: line("full"),
    })
}

/// `/proc/self/io`, in bytes and numbers of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcIo {
    /// Bytes asked for by read calls, from cache or not. Calls through io_uring are not counted by all kernels.
    pub read_chars: u64,
    /// Bytes handed to write calls.
    pub written_chars: u64,
    /// Read calls.
    pub read_calls: u64,
    /// Write calls.
    pub write_calls: u64,
    /// Bytes this process caused to be read from devices.
    pub read_bytes: u64,
    /// Bytes this process caused to be written, counted when pages get dirty.
    pub written_bytes: u64,
    /// Bytes counted as written and then not, by truncation of dirty pages.
    pub cancelled_bytes: u64,
}

impl ProcIo {
    /// Since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            read_chars: self.read_chars.saturating_sub(before.read_chars),
            written_chars: self.written_chars.saturating_sub(before.written_chars),
            read_calls: self.read_calls.saturating_sub(before.read_calls),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            cancelled_bytes: self.cancelled_bytes.saturating_sub(before.cancelled_bytes),
        }
    }
}

/// Parses `/proc/self/io`; `None` when a line is missing.
pub fn parse_proc_io(text: &str) -> Option<ProcIo> {
    let value = |wanted: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| *key == wanted)
            .and_then(|(_, value)| value.trim().parse().ok())
    };
    Some(ProcIo {
        read_chars: value("rchar")?,
        written_chars: value("wchar")?,
        read_calls: value("syscr")?,
        write_calls: value("syscw")?,
        read_bytes: value("read_bytes")?,
        written_bytes: value("write_bytes")?,
        cancelled_bytes: value("cancelled_write_bytes")?,
    })
}
