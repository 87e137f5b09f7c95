//! Who used the processor: this process, the kernel's own threads on its behalf, and everybody else.

mod parse;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::environment::throttled;
use super::error::Result;
use super::roots::{self, Roots};

pub use parse::{
    Pressure, PressureLine, ProcIo, SystemTicks, TaskStat, group_name, parse_pressure,
    parse_proc_io, parse_proc_stat, parse_task_stat,
};

/// `PF_KTHREAD`, linux/sched.h: the flag of a kernel thread in `/proc/PID/stat`.
const PF_KTHREAD: u64 = 0x0020_0000;

/// The state of all clocks at one time.
#[derive(Debug, Clone)]
pub struct CpuSnapshot {
    taken: Instant,
    own: OwnCpu,
    /// By thread id.
    threads: BTreeMap<u32, (String, Duration)>,
    /// By pid and start time, because pids come back.
    kernel: BTreeMap<(u32, u64), (String, Duration)>,
    system: SystemTicks,
    cpu_pressure: Option<Pressure>,
    io_pressure: Option<Pressure>,
    io: Option<ProcIo>,
    throttled: Option<u64>,
}

/// CPU time of this process as `getrusage` tells it, ended children included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCpu {
    /// In user space.
    pub user: Duration,
    /// In the kernel, io_uring's worker threads included.
    pub system: Duration,
}

impl OwnCpu {
    /// Both.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }

    /// Of this process and its ended children, now.
    pub fn now() -> Self {
        let (own, children) = (rusage(libc::RUSAGE_SELF), rusage(libc::RUSAGE_CHILDREN));
        Self {
            user: own.user + children.user,
            system: own.system + children.system,
        }
    }

    /// Of the calling thread, now.
    pub fn of_this_thread() -> Self {
        rusage(libc::RUSAGE_THREAD)
    }

    /// Spent since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

fn rusage(who: libc::c_int) -> OwnCpu {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the structure, whose all-zero state is valid as well; `who` is one of its constants.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let duration = |time: libc::timeval| {
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_usec).unwrap_or(0).min(999_999) * 1000,
        )
    };
    OwnCpu {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    }
}

impl CpuSnapshot {
    /// Reads all clocks now. It walks `/proc` once: for phase boundaries, not for loops.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or understood.
    pub fn take(roots: &Roots) -> Result<Self> {
        let tick = tick();
        let system = parse_proc_stat(&roots.proc_text("stat")?)?;
        let pressure = |name: &str| {
            roots::text(&roots.proc.join("pressure").join(name))
                .and_then(|text| parse_pressure(&text))
        };
        Ok(Self {
            taken: Instant::now(),
            own: OwnCpu::now(),
            threads: threads(roots, tick),
            kernel: kernel_threads(roots, tick),
            system,
            cpu_pressure: pressure("cpu"),
            io_pressure: pressure("io"),
            io: roots::text(&roots.proc.join("self/io")).and_then(|text| parse_proc_io(&text)),
            throttled: throttled(roots),
        })
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Self) -> CpuUse {
        let tick = tick();
        let wall = self.taken.saturating_duration_since(before.taken);
        let own = self.own.since(&before.own);
        let kernel = self.kernel_since(before);
        let kernel_total: Duration = kernel.values().sum();
        let system = self.system.since(&before.system);
        let ticks = |count: u64| tick.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let busy = ticks(system.busy());
        let interrupts = ticks(system.interrupts());
        let foreign = busy
            .saturating_sub(interrupts)
            .saturating_sub(own.total())
            .saturating_sub(kernel_total);
        CpuUse {
            wall,
            own,
            threads: self.threads_since(before),
            kernel,
            busy,
            interrupts,
            steal: ticks(system.steal),
            io_wait: ticks(system.io_wait),
            all: ticks(system.total()),
            foreign,
            cpu_pressure: PressureShare::between(before.cpu_pressure, self.cpu_pressure, wall),
            io_pressure: PressureShare::between(before.io_pressure, self.io_pressure, wall),
            io: self.io.zip(before.io).map(|(now, then)| now.since(&then)),
            throttled: (self.throttled.zip(before.throttled))
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }

    /// Whether a thread of the kernel of this name was there.
    pub fn has_kernel_thread(&self, name: &str) -> bool {
        self.kernel.values().any(|(its, _)| its == name)
    }

    fn kernel_since(&self, before: &Self) -> BTreeMap<String, Duration> {
        let mut groups = BTreeMap::new();
        for (id, (name, now)) in &self.kernel {
            // A thread that was not there before has spent all its time since.
            let then = before
                .kernel
                .get(id)
                .map_or(Duration::ZERO, |(_, time)| *time);
            let spent = now.saturating_sub(then);
            if spent > Duration::ZERO {
                *groups.entry(group_name(name)).or_insert(Duration::ZERO) += spent;
            }
        }
        groups
    }

    fn threads_since(&self, before: &Self) -> Vec<ThreadUse> {
        let mut used: Vec<ThreadUse> = self
            .threads
            .iter()
            .map(|(&id, (name, now))| {
                let then = before
                    .threads
                    .get(&id)
                    .map_or(Duration::ZERO, |(_, time)| *time);
                ThreadUse {
                    id,
                    name: name.clone(),
                    cpu: now.saturating_sub(then),
                }
            })
            .collect();
        used.sort_by(|a, b| b.cpu.cmp(&a.cpu).then(a.id.cmp(&b.id)));
        used
    }
}

/// CPU time of one thread of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Thread id.
    pub id: u32,
    /// Name; io_uring's workers are `iou-wrk-PID`.
    pub name: String,
    /// CPU time.
    pub cpu: Duration,
}

/// Share of the wall time in which tasks waited for a resource (PSI, Linux `Documentation/accounting/psi.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PressureShare {
    /// At least one task waited, 0 to 1.
    pub some: f64,
    /// All tasks waited, 0 to 1.
    pub full: Option<f64>,
}

impl PressureShare {
    fn between(before: Option<Pressure>, after: Option<Pressure>, wall: Duration) -> Option<Self> {
        let (before, after) = (before?, after?);
        let wall = wall.as_secs_f64();
        if wall <= 0.0 {
            return None;
        }
        let share = |then: PressureLine, now: PressureLine| {
            (now.total.saturating_sub(then.total).as_secs_f64() / wall).min(1.0)
        };
        Some(Self {
            some: share(before.some, after.some),
            full: before
                .full
                .zip(after.full)
                .map(|(then, now)| share(then, now)),
        })
    }
}

/// CPU use between two snapshots, all as time. The system-wide figures have a resolution of one tick (10 ms as a rule)
/// for each CPU: over less than a second they mean little.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Wall time.
    pub wall: Duration,
    /// This process and its ended children.
    pub own: OwnCpu,
    /// Its threads that live at the end, busiest first.
    pub threads: Vec<ThreadUse>,
    /// Kernel threads by group: `md_raid5`, `kworker`, `z_wr_iss`, `jbd2`. Those that ended in between are not in it.
    pub kernel: BTreeMap<String, Duration>,
    /// All CPUs, interrupts included, idle, I/O wait and stolen time not.
    pub busy: Duration,
    /// Interrupts, hard and soft: nobody's in particular.
    pub interrupts: Duration,
    /// Taken by the hypervisor.
    pub steal: Duration,
    /// Idle with I/O outstanding.
    pub io_wait: Duration,
    /// All CPUs, all states: CPUs × wall as the kernel counted it.
    pub all: Duration,
    /// Busy less interrupts, own and kernel threads: other programs. Child processes count as others until they have
    /// ended and been waited for.
    pub foreign: Duration,
    /// Waiting for a CPU.
    pub cpu_pressure: Option<PressureShare>,
    /// Waiting for I/O.
    pub io_pressure: Option<PressureShare>,
    /// `/proc/self/io`.
    pub io: Option<ProcIo>,
    /// How often a limit of the control group stopped its threads.
    #[serde(default)]
    pub throttled: Option<u64>,
}

impl CpuUse {
    /// Other programs, in CPUs: 0.1 is a tenth of one CPU.
    pub fn foreign_cpus(&self) -> Option<f64> {
        self.per_wall(self.foreign)
    }

    /// Stolen share of all CPU time, 0 to 1.
    pub fn steal_share(&self) -> Option<f64> {
        let all = self.all.as_secs_f64();
        (all > 0.0).then(|| self.steal.as_secs_f64() / all)
    }

    /// This process, in CPUs.
    pub fn own_cpus(&self) -> Option<f64> {
        self.per_wall(self.own.total())
    }

    /// All kernel threads together.
    pub fn kernel_total(&self) -> Duration {
        self.kernel.values().sum()
    }

    /// The busiest thread of this process.
    pub fn busiest_thread(&self) -> Option<&ThreadUse> {
        self.threads.first()
    }

    fn per_wall(&self, time: Duration) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| time.as_secs_f64() / wall)
    }
}

/// Length of a clock tick as `/proc` counts (`USER_HZ`).
fn tick() -> Duration {
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(1_000_000_000 / hertz)
}

fn ids_in(directory: &std::path::Path) -> Vec<u32> {
    roots::names_in(directory)
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect()
}

/// CPU time of a task: from the scheduler in ns where it tells (`schedstat`), else in ticks.
fn task_time(directory: &std::path::Path, stat: &TaskStat, tick: Duration) -> Duration {
    roots::text(&directory.join("schedstat"))
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map_or_else(
            || tick.saturating_mul(u32::try_from(stat.ticks()).unwrap_or(u32::MAX)),
            Duration::from_nanos,
        )
}

fn threads(roots: &Roots, tick: Duration) -> BTreeMap<u32, (String, Duration)> {
    let tasks = roots.proc.join("self/task");
    ids_in(&tasks)
        .into_iter()
        .filter_map(|id| {
            let directory = tasks.join(id.to_string());
            let stat = parse_task_stat(&roots::text(&directory.join("stat"))?)?;
            let time = task_time(&directory, &stat, tick);
            Some((id, (stat.name, time)))
        })
        .collect()
}

fn kernel_threads(roots: &Roots, tick: Duration) -> BTreeMap<(u32, u64), (String, Duration)> {
    ids_in(&roots.proc)
        .into_iter()
        .filter_map(|pid| {
            let directory = roots.proc.join(pid.to_string());
            // A process may end between the listing and the look.
            let stat = parse_task_stat(&roots::text(&directory.join("stat"))?)?;
            if stat.flags & PF_KTHREAD == 0 {
                return None;
            }
            let time = task_time(&directory, &stat, tick);
            Some(((pid, stat.start), (stat.name, time)))
        })
        .collect()
}

#[cfg(test)]
#[path = "../tests/cpu.rs"]
mod tests;
