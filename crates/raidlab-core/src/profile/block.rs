//! random and sequential: block operations at a queue depth, as fio issues them.
use super::plan::{call_size, count, written};
use super::setting::{Settings, settings, words};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::phase::{Access, Counted, Evidence, Job, Needed, Phase};
use crate::time::Span;
use crate::units::{Bytes, Extent};
use crate::workload::spec::{Arrival, BlockSpec, Limit, Order, WorkloadSpec};
use serde::{Deserialize, Serialize};

/// How operations arrive at a fixed rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Constant,
    /// At exponentially distributed distances.
    Poisson,
}
words!(Arrivals { "constant" => Self::Constant, "poisson" => Self::Poisson });

/// Settings of the random and sequential profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct BlockIo {
    /// Bytes of one operation; 4 KiB for random, 1 MiB for sequential when not given.
    pub block: Option<Bytes>,
    /// Operations in flight of each job; 32 for random, 8 for sequential when not given.
    pub depth: Option<u32>,
    /// Jobs at the same time; 1.
    pub jobs: u32,
    /// Reads in per cent; all reads and then all writes in a phase each when not given.
    pub read_percent: Option<u8>,
    /// Past the page cache.
    pub direct: bool,
    /// Length of each phase; 10 s unless `total` is given.
    pub time: Option<Span>,
    /// Bytes of each phase, all jobs together.
    pub total: Option<Bytes>,
    /// Operations a second of all jobs together, due whether or not the ones before have ended; 0:
    /// closed loop.
    pub rate: u32,
    /// How operations arrive at a fixed rate.
    pub arrival: Arrivals,
    /// A flush after so many writes of a job; 0: none.
    pub fsync: u32,
    /// A flush at the end of a phase that writes; through the page cache only, when not given.
    pub end_fsync: Option<bool>,
    /// Size of the file that is prepared in a directory (1 GiB), or of the part of the file or device
    /// that is used (all of it), when not given.
    pub size: Option<Bytes>,
    /// First byte that is used.
    pub offset: Bytes,
    /// Not counted at the start of each phase.
    pub ramp: Span,
}

impl Default for BlockIo {
    fn default() -> Self {
        Self {
            block: None,
            depth: None,
            jobs: 1,
            read_percent: None,
            direct: true,
            time: None,
            total: None,
            rate: 0,
            arrival: Arrivals::Constant,
            fsync: 0,
            end_fsync: None,
            size: None,
            offset: Bytes(0),
            ramp: Span::ZERO,
        }
    }
}

settings!(BlockIo {
    "block" => block, "SIZE", "bytes of one operation (default: 4 KiB random, 1 MiB sequential)";
    "depth" => depth, "1..4096", "operations in flight of each job (default: 32 random, 8 sequential)";
    "jobs" => jobs, "1..1024", "jobs at the same time (default: 1)";
    "read-percent" => read_percent, "0..100", "reads among all operations (default: a phase of reads, then one of writes)";
    "direct" => direct, "yes|no", "past the page cache (default: yes)";
    "time" => time, "TIME", "length of each phase (default: 10s unless total is given)";
    "total" => total, "SIZE", "bytes of each phase, all jobs together (default: no limit)";
    "rate" => rate, "COUNT", "operations a second of all jobs together; 0: as fast as they end (default: 0)";
    "arrival" => arrival, "constant|poisson", "how they arrive at a fixed rate (default: constant)";
    "fsync" => fsync, "COUNT", "flush after so many writes of a job; 0: never (default: 0)";
    "end-fsync" => end_fsync, "yes|no", "flush at the end of a phase that writes (default: yes unless direct)";
    "size" => size, "SIZE", "file prepared in a directory, or part of the file or device used (default: 1 GiB, or all)";
    "offset" => offset, "SIZE", "first byte that is used (default: 0)";
    "ramp" => ramp, "TIME", "not counted at the start of each phase (default: 0)";
});

/// What must be seen of a mixture whose writes do or do not reach the device by its end.
pub(super) const fn evidence(read_percent: u8, durable: bool) -> Evidence {
    match read_percent {
        100 => Evidence::ReadsReachDevice,
        0 => written(durable),
        _ if durable => Evidence::Both,
        _ => Evidence::ReadsReachDevice,
    }
}

/// What the settings come to once the place is known.
struct Resolved {
    order: Order,
    block: u32,
    depth: u32,
    region: Extent,
    time: Option<Span>,
    ops: Option<u64>,
    end_fsync: bool,
}

impl BlockIo {
    fn resolve(
        &self,
        name: &'static str,
        order: Order,
        context: &ProfileContext,
    ) -> Result<Resolved, ProfileError> {
        let wrong = |setting: &str, why: String| Err(ProfileError::value(name, setting, why));
        let random = order == Order::Random;
        let chosen = self
            .block
            .unwrap_or(if random { Bytes::kib(4) } else { Bytes::mib(1) });
        let block = call_size(name, "block", chosen, self.direct, context)?;
        let default_depth = if random { 32 } else { 8 };
        let depth = count(name, "depth", self.depth.unwrap_or(default_depth), 4096)?;
        count(name, "jobs", self.jobs, 1024)?;
        if self.read_percent.is_some_and(|percent| percent > 100) {
            return wrong("read-percent", "more than 100".to_owned());
        }
        if self.rate > 0 && self.rate < self.jobs {
            let why = format!(
                "{} is less than one operation a second for each of {} jobs",
                self.rate, self.jobs
            );
            return wrong("rate", why);
        }
        let region = self.region(name, block, context)?;
        let time = self.time.or(match self.total {
            Some(_) => None,
            None => Some(Span::from_secs(10)),
        });
        if let Some(time) = time.filter(|time| *time <= self.ramp) {
            let why = format!(
                "{time} leaves nothing to count after the ramp of {}",
                self.ramp
            );
            return wrong("time", why);
        }
        let ops = self.total.map(|total| total.0 / u64::from(block));
        if ops.is_some_and(|ops| ops < u64::from(self.jobs)) {
            let why = format!(
                "less than one block of {chosen} for each of {} jobs",
                self.jobs
            );
            return wrong("total", why);
        }
        Ok(Resolved {
            order,
            block,
            depth,
            region,
            time,
            ops,
            end_fsync: self.end_fsync.unwrap_or(!self.direct),
        })
    }

    fn region(
        &self,
        name: &'static str,
        block: u32,
        context: &ProfileContext,
    ) -> Result<Extent, ProfileError> {
        let wrong = |setting: &str, why: String| Err(ProfileError::value(name, setting, why));
        let alignment = u64::from(context.alignment.max(1));
        if self.direct && !self.offset.0.is_multiple_of(alignment) {
            let why = format!(
                "{} cannot be used for direct I/O here: give a multiple of {alignment} bytes",
                self.offset
            );
            return wrong("offset", why);
        }
        let len = match context.place.size() {
            None => self.size.unwrap_or(Bytes::gib(1)),
            Some(all) => {
                let left = all.0.saturating_sub(self.offset.0);
                let len = self.size.unwrap_or(Bytes(left));
                if len.0 > left {
                    let why = format!(
                        "{len} from offset {} is beyond the end of the {} of {all}",
                        self.offset,
                        context.place.word()
                    );
                    return wrong("size", why);
                }
                len
            }
        };
        let whole = len.0 / u64::from(block) * u64::from(block);
        if whole == 0 {
            let why = format!(
                "{len} from offset {} is less than one block of {}: give a smaller block, or measure something larger",
                self.offset,
                Bytes(u64::from(block))
            );
            return wrong("size", why);
        }
        if self
            .offset
            .0
            .checked_add(whole)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            return wrong("offset", "beyond 2^63 bytes".to_owned());
        }
        Ok(Extent::new(self.offset.0, whole))
    }

    pub(super) fn plan(
        &self,
        name: &'static str,
        order: Order,
        context: &ProfileContext,
    ) -> Result<Plan, ProfileError> {
        let resolved = self.resolve(name, order, context)?;
        let mut told = self.clone();
        told.block = Some(Bytes(u64::from(resolved.block)));
        told.depth = Some(resolved.depth);
        told.size = Some(resolved.region.len);
        told.end_fsync = Some(resolved.end_fsync);
        told.time = resolved.time;
        let mut plan = Plan::new(told.shown());
        if matches!(context.place, Place::Directory { .. }) {
            if !context.writable {
                let why = "a directory is measured with a file that is prepared in it, and it cannot be written; give a file or a device".to_owned();
                return Err(ProfileError::Place { profile: name, why });
            }
            plan.space_needed = resolved.region.end();
        }
        plan.judge_size(resolved.region.len, context.memory, true, self.direct);
        if !self.direct && !resolved.end_fsync && self.read_percent != Some(100) && context.writable
        {
            plan.unsynced("end-fsync=no");
        }
        let wanted = match self.read_percent {
            None => vec![("read", 100), ("write", 0)],
            Some(100) => vec![("read", 100)],
            Some(0) => vec![("write", 0)],
            Some(percent) => vec![("mixed", percent)],
        };
        for (id, percent) in wanted {
            if percent < 100 && !context.writable {
                plan.skip(id, format!("the {} is only read", context.place.word()));
            } else {
                plan.phases.push(self.phase(name, id, percent, &resolved));
            }
        }
        plan.checked(name, "size", context)
    }

    fn phase(&self, name: &str, id: &str, percent: u8, resolved: &Resolved) -> Phase {
        let jobs = (0..self.jobs).map(|number| Job {
            workload: WorkloadSpec::Blocks(self.job(number, percent, resolved)),
            depth: resolved.depth,
        });
        Phase {
            id: id.to_owned(),
            title: format!(
                "{name} {id}, {} at depth {}",
                Bytes(u64::from(resolved.block)),
                resolved.depth
            ),
            jobs: jobs.collect(),
            access: if self.direct {
                Access::Direct
            } else {
                Access::Buffered
            },
            counted: Counted::Bytes,
            cold: !self.direct && percent > 0,
            evidence: evidence(percent, self.direct || resolved.end_fsync),
            needs: vec![Needed {
                file: 0,
                size: resolved.region.end(),
            }],
            fresh: Vec::new(),
            ramp: self.ramp,
        }
    }

    fn job(&self, number: u32, percent: u8, resolved: &Resolved) -> BlockSpec {
        let (jobs, this) = (u64::from(self.jobs), u64::from(number));
        let share = |all: u64| all / jobs + u64::from(this < all % jobs);
        let per_second = share(u64::from(self.rate)) as u32;
        let blocks = resolved.region.len.0 / u64::from(resolved.block);
        BlockSpec {
            order: resolved.order,
            read_percent: percent,
            block: resolved.block,
            region: resolved.region,
            // Sequential jobs begin at equal distances and do not read each other's blocks at once.
            first: (u128::from(blocks) * u128::from(this) / u128::from(jobs)) as u64,
            limit: Limit {
                ops: resolved.ops.map(share),
                time: resolved.time,
            },
            arrival: match self.arrival {
                _ if self.rate == 0 => Arrival::Closed,
                Arrivals::Constant => Arrival::Constant { per_second },
                Arrivals::Poisson => Arrival::Poisson { per_second },
            },
            flush_every: self.fsync,
            flush_data: false,
            flush_end: resolved.end_fsync && percent < 100,
        }
    }
}
