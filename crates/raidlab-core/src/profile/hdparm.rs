//! hdparm -T and -t: reads of 2 MiB in a fixed window of time.
use super::plan::{calls, count};
use super::setting::{Settings, settings};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::op::OpenMode;
use crate::phase::{Counted, Evidence};
use crate::time::Span;
use crate::units::{Bytes, Extent};
use crate::workload::spec::{Handle, ScanSpec, WorkloadSpec};
use serde::{Deserialize, Serialize};

const NAME: &str = "hdparm";
/// Bytes of one call, as hdparm reads.
const CALL: u64 = 2 << 20;
/// Not counted at the start of a cached phase: the first read brings the data into the cache.
const PRIMING: Span = Span::from_millis(100);

/// Settings of the hdparm profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Hdparm {
    /// Window of the buffered (and direct) device reads; 3 s.
    pub read_time: Span,
    /// Window of the cached reads; 2 s.
    pub cached_time: Span,
    /// The phases past the page cache as well (`--direct`).
    pub direct: bool,
    /// Calls at least, however long they take; 2.
    pub at_least: u32,
    /// Size of the file that is prepared when a directory is measured; 1 GiB.
    pub size: Bytes,
}

impl Default for Hdparm {
    fn default() -> Self {
        Self {
            read_time: Span::from_secs(3),
            cached_time: Span::from_secs(2),
            direct: true,
            at_least: 2,
            size: Bytes::gib(1),
        }
    }
}

settings!(Hdparm {
    "read-time" => read_time, "TIME", "window of the buffered reads (default: 3s)";
    "cached-time" => cached_time, "TIME", "window of the cached reads (default: 2s)";
    "direct" => direct, "yes|no", "measure past the page cache as well, as --direct (default: yes)";
    "at-least" => at_least, "1..1048576", "calls of 2 MiB at least (default: 2)";
    "size" => size, "SIZE", "file that is prepared when a directory is measured (default: 1 GiB)";
});

impl Hdparm {
    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        let at_least = count(NAME, "at-least", self.at_least, 1 << 20)?;
        self.check_times()?;
        let region = self.region(context)?;
        let phases = [
            ("cached-read", "Timing cached reads", false, true),
            ("buffered-read", "Timing buffered disk reads", false, false),
            (
                "direct-cached-read",
                "Timing O_DIRECT cached reads",
                true,
                true,
            ),
            ("direct-read", "Timing O_DIRECT disk reads", true, false),
        ];
        let mut plan = Plan::new(self.shown());
        for (id, title, direct, cached) in phases {
            if direct && !self.direct {
                plan.skip(id, "direct=no");
                continue;
            }
            let scan = self.scan(region, at_least, direct, cached);
            let mut phase = calls(id, title, Counted::Bytes, vec![scan])
                .needs([0], Bytes(region))
                .cold(!cached);
            phase.ramp = if cached { PRIMING } else { Span::ZERO };
            phase.evidence = if cached && !direct {
                Evidence::None
            } else {
                Evidence::ReadsReachDevice
            };
            plan.phases.push(phase);
        }
        if matches!(context.place, Place::Directory { .. }) {
            plan.space_needed = self.size;
        }
        plan.checked(NAME, "size", context)
    }

    fn check_times(&self) -> Result<(), ProfileError> {
        let times = [
            ("read-time", self.read_time),
            ("cached-time", self.cached_time),
        ];
        match times.iter().find(|(_, time)| *time == Span::ZERO) {
            None => Ok(()),
            Some((setting, _)) => Err(ProfileError::value(
                NAME,
                *setting,
                "nothing can be timed in 0 s",
            )),
        }
    }

    /// Bytes that are read at the most: whole calls of what is there.
    fn region(&self, context: &ProfileContext) -> Result<u64, ProfileError> {
        let wrong = |why: String| Err(ProfileError::Place { profile: NAME, why });
        let size = context.place.size().unwrap_or(self.size);
        let region = size.0 / CALL * CALL;
        if region == 0 {
            let word = context.place.word();
            return wrong(format!(
                "the {word} of {size} is smaller than one read of 2 MiB"
            ));
        }
        if !context.writable && matches!(context.place, Place::Directory { .. }) {
            return wrong(
                "a directory is measured with a file that is prepared in it, and it cannot be written; give a file or a device"
                    .to_owned(),
            );
        }
        Ok(region)
    }

    /// Cached: the same 2 MiB again and again; else one call after the other.
    fn scan(&self, region: u64, at_least: u32, direct: bool, cached: bool) -> WorkloadSpec {
        let (len, window) = if cached {
            (CALL, self.cached_time + PRIMING)
        } else {
            (region, self.read_time)
        };
        WorkloadSpec::Scan(ScanSpec {
            handle: Handle::new(0, OpenMode::Read).direct(direct),
            region: Extent::new(0, len),
            call: CALL as u32,
            window,
            at_least: u64::from(at_least),
            wrap: cached,
        })
    }
}
