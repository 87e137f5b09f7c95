//! dd: a file or device written and read by blocks, twice, the second pass kept.
use super::plan::{call_size, calls, written};
use super::setting::{Settings, settings, words};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::op::OpenMode;
use crate::phase::{Counted, Evidence, Phase};
use crate::units::Bytes;
use crate::workload::spec::{Durable, Handle, PassAction, PassSpec, WorkloadSpec};
use serde::{Deserialize, Serialize};

const NAME: &str = "dd";

/// What dd does before it stops the clock of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conv {
    /// Nothing, as dd without `conv=`: what the cache still holds counts as written.
    None,
    /// `conv=fdatasync`.
    #[default]
    Fdatasync,
    /// `conv=fsync`.
    Fsync,
}
words!(Conv { "none" => Self::None, "fdatasync" => Self::Fdatasync, "fsync" => Self::Fsync });

/// Settings of the dd profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Dd {
    /// Bytes of one call; 1 MiB.
    pub bs: Bytes,
    /// Number of blocks; 1024.
    pub count: u64,
    /// What is done before the clock of a write stops; `fdatasync`.
    pub conv: Conv,
    /// Past the page cache (`oflag=direct`, `iflag=direct`).
    pub direct: bool,
    /// The file is put out of the cache before it is read.
    pub cold: bool,
}

impl Default for Dd {
    fn default() -> Self {
        Self {
            bs: Bytes::mib(1),
            count: 1024,
            conv: Conv::Fdatasync,
            direct: false,
            cold: true,
        }
    }
}

settings!(Dd {
    "bs" => bs, "SIZE", "bytes of one block (default: 1 MiB)";
    "count" => count, "COUNT", "number of blocks (default: 1024)";
    "conv" => conv, "none|fdatasync|fsync", "what makes a write durable before the clock stops (default: fdatasync; none as plain dd)";
    "direct" => direct, "yes|no", "past the page cache (default: no)";
    "cold" => cold, "yes|no", "put the file out of the cache before it is read (default: yes; no as dd)";
});

impl Dd {
    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        let bs = call_size(NAME, "bs", self.bs, self.direct, context)?;
        let too_much = || ProfileError::value(NAME, "count", "bs times count is beyond 2^63 bytes");
        let size = u64::from(bs)
            .checked_mul(self.count)
            .filter(|n| *n <= i64::MAX as u64)
            .ok_or_else(too_much)?;
        if size == 0 {
            return Err(ProfileError::value(
                NAME,
                "count",
                "0 blocks move nothing: give at least 1",
            ));
        }
        if let Some(room) = context.place.size().filter(|room| room.0 < size) {
            let remedy = match room.0 / u64::from(bs) {
                0 => "give a smaller bs".to_owned(),
                most => format!("give at most count={most}"),
            };
            let why = format!(
                "{} blocks of {} are {} and the {} has {room}: {remedy}",
                self.count,
                self.bs,
                Bytes(size),
                context.place.word(),
            );
            return Err(ProfileError::value(NAME, "count", why));
        }
        let mut plan = Plan::new(self.shown());
        let in_directory = matches!(context.place, Place::Directory { .. });
        if in_directory {
            plan.space_needed = Bytes(size);
            if !context.writable {
                let why =
                    "the directory cannot be written; give a file or a device to read".to_owned();
                return Err(ProfileError::Place { profile: NAME, why });
            }
        }
        plan.judge_size(Bytes(size), context.memory, true, self.direct);
        if self.conv == Conv::None && !self.direct && context.writable {
            plan.unsynced("conv=none");
        }
        for (suffix, pass) in [("-first", "first pass"), ("", "second pass")] {
            if context.writable {
                plan.phases
                    .push(self.write(suffix, pass, Bytes(size), bs, in_directory));
            } else {
                let why = format!("the {} is only read", context.place.word());
                plan.skip(&format!("write{suffix}"), why);
            }
            plan.phases.push(self.read(suffix, pass, Bytes(size), bs));
        }
        plan.checked(NAME, "count", context)
    }

    fn pass(&self, mode: OpenMode, size: Bytes, bs: u32) -> PassSpec {
        PassSpec {
            handle: Handle::new(0, mode).direct(self.direct),
            action: PassAction::Read,
            start: Bytes(0),
            size,
            call: bs,
            durable: Durable::Never,
        }
    }

    fn write(&self, suffix: &str, pass: &str, size: Bytes, bs: u32, own: bool) -> Phase {
        // A file that the user named is written in place.
        let mode = if own {
            OpenMode::Create
        } else {
            OpenMode::Update
        };
        let spec = PassSpec {
            action: PassAction::Write,
            durable: match self.conv {
                Conv::None => Durable::Never,
                Conv::Fdatasync => Durable::DataAtEnd,
                Conv::Fsync => Durable::AtEnd,
            },
            ..self.pass(mode, size, bs)
        };
        let jobs = vec![WorkloadSpec::Pass(spec)];
        calls(
            &format!("write{suffix}"),
            &format!("Write, {pass}"),
            Counted::Bytes,
            jobs,
        )
        .fresh(own.then_some(0))
        .evidence(written(self.conv != Conv::None || self.direct))
    }

    fn read(&self, suffix: &str, pass: &str, size: Bytes, bs: u32) -> Phase {
        let jobs = vec![WorkloadSpec::Pass(self.pass(OpenMode::Read, size, bs))];
        calls(
            &format!("read{suffix}"),
            &format!("Read, {pass}"),
            Counted::Bytes,
            jobs,
        )
        .needs([0], size)
        .cold(self.cold)
        .evidence(Evidence::ReadsReachDevice)
    }
}
