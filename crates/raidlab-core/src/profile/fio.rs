//! fio: the jobs of a plain fio job file.
mod job;
mod parse;
#[cfg(test)]
mod tests;

pub use job::{FioJob, Rw};
pub use parse::FioError;

use super::block::evidence;
use super::plan::call_size;
use super::setting::{Setting, Settings};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::phase::{Access, Counted, Job, Needed, Phase};
use crate::units::{Bytes, Extent};
use crate::workload::spec::WorkloadSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME: &str = "fio";

/// The jobs of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fio {
    /// In the order of the file.
    pub jobs: Vec<FioJob>,
}

impl Settings for Fio {
    const SETTINGS: &'static [Setting] = &[];

    fn set(&mut self, _: &str, _: &str) -> Result<bool, String> {
        Ok(false)
    }

    fn shown(&self) -> BTreeMap<String, String> {
        let one = |job: &FioJob| {
            let limit = |name: &str, value: Option<u64>| {
                value.map_or_else(String::new, |n| format!(" {name}={n}"))
            };
            let text = format!(
                "rw={} bs={} iodepth={} numjobs={} direct={} offset={} rwmixread={} {}={} end_fsync={} rate_iops={} rate_process={} ramp_time={}ns time_based={}{}{}{}{}",
                job.rw.word(),
                job.bs.0,
                job.depth(),
                job.numjobs,
                u8::from(job.direct),
                job.offset.0,
                job.rwmixread,
                if job.data_only { "fdatasync" } else { "fsync" },
                job.fsync,
                u8::from(job.end_fsync),
                job.rate_iops,
                if job.poisson { "poisson" } else { "linear" },
                job.ramp_time.0,
                u8::from(job.time_based),
                limit("size", job.size.map(|s| s.0)),
                limit("io_size", job.io_size.map(|s| s.0)),
                limit("number_ios", job.number_ios),
                limit("runtime_ns", job.runtime.map(|t| t.0)),
            );
            (format!("job.{}", job.name), text)
        };
        self.jobs.iter().map(one).collect()
    }
}

/// Jobs that run together.
struct Group<'a> {
    jobs: Vec<&'a FioJob>,
}

impl Fio {
    /// Reads a plain fio job file.
    ///
    /// # Errors
    /// With the line of the first option that is not known or cannot be carried out.
    pub fn parse(text: &str) -> Result<Self, FioError> {
        Self::read(text).map_err(|mut wrong| wrong.swap_remove(0))
    }

    /// The same, with all that is wrong.
    ///
    /// # Errors
    /// With the line of each option that is not known or cannot be carried out; at least one.
    pub fn read(text: &str) -> Result<Self, Vec<FioError>> {
        parse::read(text)
    }

    /// The line of the option that [`target`](Self::target) comes from, in the text of a file that could be read.
    #[must_use]
    pub fn target_line(text: &str) -> Option<usize> {
        let line = |option| parse::line_of(text, option);
        line("filename").or_else(|| line("directory"))
    }

    /// The one file, device or directory that all jobs name, if they name any.
    ///
    /// # Errors
    /// When they name different ones.
    pub fn target(&self) -> Result<Option<String>, ProfileError> {
        let mut all = self.jobs.iter();
        let first = all.next().and_then(FioJob::named);
        for job in all {
            if job.named() != first {
                return Err(job.wrong(
                    "filename",
                    "all jobs must be on the same file or directory; run others apart",
                ));
            }
        }
        Ok(first)
    }

    /// The seed that the file gives, of the first job that has one.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.jobs.iter().find_map(|job| job.randseed)
    }

    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for job in &self.jobs {
            match groups.last_mut() {
                Some(group) if !job.stonewall => group.jobs.push(job),
                _ => groups.push(Group { jobs: vec![job] }),
            }
        }
        groups
    }

    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        if self.jobs.is_empty() {
            let why = "there is no job: give a job file".to_owned();
            return Err(ProfileError::Place { profile: NAME, why });
        }
        if !context.writable && matches!(context.place, Place::Directory { .. }) {
            let why = "a directory is measured with a file that is prepared in it, and it cannot be written; give a file or a device".to_owned();
            return Err(ProfileError::Place { profile: NAME, why });
        }
        self.target()?;
        let mut plan = Plan::new(self.shown());
        let alone = self.jobs.len() == 1;
        for job in self.jobs.iter().filter(|job| job.iodepth > job.depth()) {
            plan.notes.push(format!(
                "job {}: its ioengine is synchronous, so iodepth={} means 1, as in fio; ioengine=io_uring or libaio queues",
                job.name, job.iodepth
            ));
        }
        for group in self.groups() {
            let (phase, end) = group.phase(alone, context)?;
            let writes = group.jobs.iter().any(|job| job.read_percent() < 100);
            if plan.phases.iter().any(|other| other.id == phase.id) {
                return Err(group.jobs[0].wrong(
                    "name",
                    "another job has it too; give each a name of its own",
                ));
            }
            if writes && !context.writable {
                plan.skip(
                    &phase.id,
                    format!("the {} is only read", context.place.word()),
                );
                continue;
            }
            if matches!(context.place, Place::Directory { .. }) {
                plan.space_needed = plan.space_needed.max(end);
            }
            if writes && group.jobs.iter().any(|job| !job.direct && !job.end_fsync) {
                plan.unsynced("end_fsync=0");
            }
            let direct = group.jobs.iter().all(|job| job.direct);
            plan.judge_size(end, context.memory, true, direct);
            plan.phases.push(phase);
        }
        plan.checked(NAME, "size", context)
    }
}

impl Group<'_> {
    /// The phase and the end of the bytes that it uses.
    fn phase(&self, alone: bool, context: &ProfileContext) -> Result<(Phase, Bytes), ProfileError> {
        let first = self.jobs[0];
        let mut jobs = Vec::new();
        let mut end = 0_u64;
        for job in &self.jobs {
            if job.direct != first.direct {
                return Err(job.wrong(
                    "direct",
                    "jobs that run together must all have it or none; put a stonewall between them",
                ));
            }
            if job.ramp_time != first.ramp_time {
                return Err(job.wrong("ramp_time", "jobs that run together must have the same"));
            }
            let block = call_size(NAME, "bs", job.bs, job.direct, context)?;
            let span = job.span(context)?;
            // Without a file name each copy has a file of its own: here, a part of one.
            let own = job.filename.is_none() && matches!(context.place, Place::Directory { .. });
            for _ in 0..job.numjobs {
                let start = if own {
                    end.next_multiple_of(u64::from(context.alignment.max(1)))
                } else {
                    0
                };
                let start = start
                    .checked_add(job.offset.0)
                    .filter(|s| s.checked_add(span).is_some_and(|e| e <= i64::MAX as u64));
                let start = start.ok_or_else(|| job.wrong("size", "beyond 2^63 bytes"))?;
                end = end.max(start + span);
                jobs.push(Job {
                    workload: WorkloadSpec::Blocks(job.blocks(block, Extent::new(start, span))),
                    depth: job.depth(),
                });
            }
        }
        let percents: Vec<u8> = self.jobs.iter().map(|job| job.read_percent()).collect();
        let percent = match (percents.iter().min(), percents.iter().max()) {
            (Some(100), _) => 100,
            (_, Some(0)) => 0,
            _ => 50,
        };
        let durable = first.direct || self.jobs.iter().all(|job| job.end_fsync);
        let direction = match percent {
            100 => "read",
            0 => "write",
            _ => "mixed",
        };
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        let names = names.join("+");
        let phase = Phase {
            id: if alone {
                direction.to_owned()
            } else {
                format!("{names}/{direction}")
            },
            title: format!("fio {names}, {direction}"),
            jobs,
            access: if first.direct {
                Access::Direct
            } else {
                Access::Buffered
            },
            counted: Counted::Bytes,
            cold: !first.direct && first.invalidate && percent > 0,
            evidence: evidence(percent, durable),
            needs: vec![Needed {
                file: 0,
                size: Bytes(end),
            }],
            fresh: Vec::new(),
            ramp: first.ramp_time,
        };
        Ok((phase, Bytes(end)))
    }
}
