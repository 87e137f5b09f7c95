//! Whether the processor, or who else used it, had a part in a phase's figure.
use super::{CPU_BOUND, CPU_PRESSURE, Evidence, FOREIGN_CPUS, STEAL};
use raidlab_core::flag::{Flag, FlagKind};

pub(super) fn generator_bound(e: &Evidence) -> Option<Flag> {
    let wall = e.wall.as_secs_f64();
    if e.generator_is_subject || wall <= 0.0 {
        return None;
    }
    let saturated = e
        .generator
        .iter()
        .filter(|cpu| cpu.as_secs_f64() >= CPU_BOUND * wall)
        .count();
    let jobs = e.generator.len();
    (saturated > 0).then(|| {
        Flag::new(
            FlagKind::GeneratorBound,
            format!(
                "{saturated} of {jobs} job{} used {:.0} % of a CPU or more: the processor was the limit, not the storage",
                if jobs == 1 { "" } else { "s" },
                CPU_BOUND * 100.0
            ),
        )
    })
}

/// A thread that is stopped uses no whole CPU, and is the limit all the same.
pub(super) fn throttled(e: &Evidence) -> Option<Flag> {
    let times = e.throttled.filter(|times| *times > 0)?;
    let times = if times == 1 {
        "once".to_owned()
    } else {
        format!("{times} times")
    };
    let reason = format!("the processor limit of the control group stopped its threads {times}");
    Some(Flag::new(FlagKind::GeneratorBound, reason))
}

pub(super) fn other_load(e: &Evidence) -> Option<Flag> {
    let mut reasons = Vec::new();
    if let Some(cpus) = e.foreign_cpus.filter(|cpus| *cpus > FOREIGN_CPUS) {
        reasons.push(format!("other programs used {cpus:.2} CPUs"));
    }
    if let Some(steal) = e.steal.filter(|steal| *steal > STEAL) {
        reasons.push(format!(
            "the hypervisor took {:.1} % of the CPU time",
            steal * 100.0
        ));
    }
    let crowded = e.cpus.is_some_and(|cpus| e.generator.len() > cpus as usize);
    if let Some(pressure) = e
        .cpu_pressure
        .filter(|pressure| *pressure > CPU_PRESSURE && !crowded)
    {
        reasons.push(format!(
            "tasks waited for a CPU in {:.1} % of the time",
            pressure * 100.0
        ));
    }
    (!reasons.is_empty()).then(|| Flag::new(FlagKind::OtherLoad, reasons.join("; ")))
}
