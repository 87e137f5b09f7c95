//! tiobench: threads that each write and read a file of their own, in order and at random.
use super::plan::{call_size, calls, count};
use super::setting::{Settings, settings};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::op::OpenMode;
use crate::phase::{Counted, Evidence};
use crate::time::Span;
use crate::units::Bytes;
use crate::workload::spec::{
    CallAction, CallsSpec, Durable, Handle, PassAction, PassSpec, WorkloadSpec,
};
use serde::{Deserialize, Serialize};

const NAME: &str = "tiobench";
/// Random reads are extended at most to this many times their number.
const EXTENSION: u64 = 16;

/// Settings of the tiobench profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Tiobench {
    /// Size of all files together; twice the memory when not given.
    pub size: Option<Bytes>,
    /// Threads, each with a file of its own; 4, as tiotest.
    pub threads: u32,
    /// Bytes of one call; 4 KiB.
    pub block: Bytes,
    /// Random operations of all threads together; 4000, as tiobench.pl.
    pub random: u64,
    /// Random reads go on for this long at least; 0.5 s.
    pub random_time: Span,
    /// Every write durable before it returns (`O_SYNC`).
    pub sync: bool,
    /// Past the page cache.
    pub direct: bool,
    /// The files are put out of the cache before they are read.
    pub cold: bool,
}

impl Default for Tiobench {
    fn default() -> Self {
        Self {
            size: None,
            threads: 4,
            block: Bytes::kib(4),
            random: 4000,
            random_time: Span::from_millis(500),
            sync: false,
            direct: false,
            cold: true,
        }
    }
}

settings!(Tiobench {
    "size" => size, "SIZE", "size of all files together (default: twice the memory)";
    "threads" => threads, "1..1024", "threads, each with a file of its own (default: 4)";
    "block" => block, "SIZE", "bytes of one call (default: 4 KiB)";
    "random" => random, "COUNT", "random operations of all threads together (default: 4000)";
    "random-time" => random_time, "TIME", "go on reading at random at least so long, to at most 16 times the operations (default: 500ms; 0 as tiotest)";
    "sync" => sync, "yes|no", "every write durable before it returns, as -S (default: no)";
    "direct" => direct, "yes|no", "past the page cache, as -X (default: no)";
    "cold" => cold, "yes|no", "put the files out of the cache before they are read, as -F (default: yes; no as tiotest)";
});

impl Tiobench {
    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        if !matches!(context.place, Place::Directory { .. }) || !context.writable {
            let why = "it makes a file for each thread, so it needs a directory that can be written; a file or device can be measured with hdparm, dd, random or sequential".to_owned();
            return Err(ProfileError::Place { profile: NAME, why });
        }
        let call = call_size(NAME, "block", self.block, self.direct, context)?;
        let threads = count(NAME, "threads", self.threads, 1024)?;
        if self.random < u64::from(threads) {
            let why = format!(
                "{} is fewer than one for each of {threads} threads",
                self.random
            );
            return Err(ProfileError::value(NAME, "random", why));
        }
        let twice = Bytes(context.memory.0.saturating_mul(2));
        let size = self.size.unwrap_or(twice);
        let blocks = size.0 / u64::from(threads) / u64::from(call);
        if blocks == 0 {
            let why = format!(
                "{size} is less than one block of {} for each thread",
                self.block
            );
            return Err(ProfileError::value(NAME, "size", why));
        }
        let each = Bytes(blocks * u64::from(call));
        let all = Bytes(each.0 * u64::from(threads));
        let mut told = self.clone();
        told.size = Some(all);
        let mut plan = Plan::new(told.shown());
        plan.judge_size(all, context.memory, self.size.is_some(), self.direct);
        plan.space_needed = all;
        let files = 0..threads;
        let phase = |id: &str, title: &str, jobs: &dyn Fn(u32) -> WorkloadSpec| {
            let jobs = files.clone().map(jobs).collect();
            calls(id, title, Counted::Bytes, jobs)
        };
        let pass = |action| move |file| self.pass(file, action, each, call);
        let random = |action| move |file| self.random(file, action, each, call);
        let write = phase("write", "Write", &pass(PassAction::Write));
        plan.phases.push(
            write
                .fresh(files.clone())
                .evidence(Evidence::WritesReachDevice),
        );
        let random_write = phase("random-write", "Random Write", &random(CallAction::Write));
        plan.phases.push(
            random_write
                .needs(files.clone(), each)
                .evidence(Evidence::WritesReachDevice),
        );
        for (id, title, jobs) in [
            (
                "read",
                "Read",
                &pass(PassAction::Read) as &dyn Fn(u32) -> WorkloadSpec,
            ),
            ("random-read", "Random Read", &random(CallAction::Read)),
        ] {
            plan.phases.push(
                phase(id, title, jobs)
                    .needs(files.clone(), each)
                    .cold(self.cold)
                    .evidence(Evidence::ReadsReachDevice),
            );
        }
        plan.checked(NAME, "size", context)
    }

    fn handle(&self, file: u32, mode: OpenMode) -> Handle {
        Handle {
            sync: self.sync,
            ..Handle::new(file, mode).direct(self.direct)
        }
    }

    fn pass(&self, file: u32, action: PassAction, size: Bytes, call: u32) -> WorkloadSpec {
        let mode = match action {
            PassAction::Write => OpenMode::Create,
            _ => OpenMode::Update,
        };
        WorkloadSpec::Pass(PassSpec {
            handle: self.handle(file, mode),
            action,
            start: Bytes(0),
            size,
            call,
            durable: Durable::AtEnd,
        })
    }

    /// Each thread does its share; writes are not extended, for they would only fill the cache.
    fn random(&self, file: u32, action: CallAction, size: Bytes, call: u32) -> WorkloadSpec {
        let n = u64::from(self.threads);
        let share = self.random / n + u64::from(u64::from(file) < self.random % n);
        let extended = action == CallAction::Read;
        WorkloadSpec::Calls(CallsSpec {
            handle: self.handle(file, OpenMode::Update),
            action,
            size,
            call,
            count: share,
            at_least: if extended {
                self.random_time
            } else {
                Span::ZERO
            },
            at_most: share.saturating_mul(EXTENSION),
            durable: Durable::AtEnd,
        })
    }
}
