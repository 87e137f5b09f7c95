//! HDBench: a file written, read and copied, at several sizes.
use super::plan::{call_size, calls, written};
use super::setting::{Settings, settings};
use super::{Place, Plan, ProfileContext, ProfileError};
use crate::op::OpenMode;
use crate::phase::{Counted, Evidence};
use crate::units::Bytes;
use crate::workload::spec::{CopySpec, Durable, Handle, PassAction, PassSpec, WorkloadSpec};
use serde::{Deserialize, Serialize};

const NAME: &str = "hdbench";
const SOURCE: u32 = 0;
const SINK: u32 = 1;

/// Settings of the HDBench profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Hdbench {
    /// File sizes; 0.1, 0.5, 1 and 2 GB (10^9 bytes).
    pub sizes: Vec<Bytes>,
    /// Bytes of one call; 64 KiB.
    pub call: Bytes,
    /// What is written is durable before the clock stops.
    pub sync: bool,
    /// The file is put out of the cache before it is read or copied.
    pub cold: bool,
    /// Past the page cache.
    pub direct: bool,
}

impl Default for Hdbench {
    fn default() -> Self {
        Self {
            sizes: [1, 5, 10, 20]
                .map(|tenths| Bytes(tenths * 100_000_000))
                .to_vec(),
            call: Bytes::kib(64),
            sync: true,
            cold: true,
            direct: false,
        }
    }
}

settings!(Hdbench {
    "sizes" => sizes, "SIZE,…", "file sizes (default: 0.1GB,0.5GB,1GB,2GB)";
    "call" => call, "SIZE", "bytes of one call (default: 64 KiB)";
    "sync" => sync, "yes|no", "make what is written durable before the clock stops (default: yes)";
    "cold" => cold, "yes|no", "put the file out of the cache before it is read or copied (default: yes)";
    "direct" => direct, "yes|no", "past the page cache (default: no)";
});

/// The size as it stands in the names of the phases, exactly: `0.1gb`, `3mb`, `256mib`, `1420kb`.
fn label(size: Bytes) -> String {
    const MB: u64 = 1_000_000;
    if size.0.is_multiple_of(100 * MB) {
        let tenths = size.0 / (100 * MB);
        match tenths % 10 {
            0 => format!("{}gb", tenths / 10),
            rest => format!("{}.{rest}gb", tenths / 10),
        }
    } else if size.0.is_multiple_of(MB) {
        format!("{}mb", size.0 / MB)
    } else {
        let told = size.to_string();
        let is_exact = told.replace(' ', "").parse() == Ok(size);
        match size.0 {
            _ if is_exact => told.replace(' ', "").to_lowercase(),
            bytes if bytes.is_multiple_of(1000) => format!("{}kb", bytes / 1000),
            bytes if bytes.is_multiple_of(1024) => format!("{}kib", bytes / 1024),
            bytes => format!("{bytes}b"),
        }
    }
}

impl Hdbench {
    pub(super) fn plan(&self, context: &ProfileContext) -> Result<Plan, ProfileError> {
        if !matches!(context.place, Place::Directory { .. }) || !context.writable {
            let why = "it makes two files of its own, so it needs a directory that can be written; a file or device can be measured with hdparm, dd, random or sequential".to_owned();
            return Err(ProfileError::Place { profile: NAME, why });
        }
        let call = call_size(NAME, "call", self.call, self.direct, context)?;
        let mut plan = Plan::new(self.shown());
        let mut seen = Vec::new();
        for &size in &self.sizes {
            let wrong = |why: String| Err(ProfileError::value(NAME, "sizes", why));
            if size.0 == 0 {
                return wrong("a file of 0 bytes cannot be timed".to_owned());
            }
            let label = label(size);
            if seen.contains(&label) {
                return wrong(format!("{size} is given twice"));
            }
            // Whole calls, so that each one is like the others and direct I/O is possible.
            let whole = Bytes(size.0.next_multiple_of(u64::from(call)));
            self.one_size(&label, whole, call, &mut plan);
            seen.push(label);
            plan.space_needed = plan.space_needed.max(Bytes(whole.0.saturating_mul(2)));
        }
        if let Some(&largest) = self.sizes.iter().max() {
            plan.judge_size(largest, context.memory, true, self.direct);
        }
        if !self.sync && !self.direct {
            plan.unsynced("sync=no");
        }
        plan.checked(NAME, "sizes", context)
    }

    fn one_size(&self, label: &str, size: Bytes, call: u32, plan: &mut Plan) {
        let durable = if self.sync {
            Durable::AtEnd
        } else {
            Durable::Never
        };
        let handle = |file, mode| Handle::new(file, mode).direct(self.direct);
        let pass = |action, mode, durable| {
            vec![WorkloadSpec::Pass(PassSpec {
                handle: handle(SOURCE, mode),
                action,
                start: Bytes(0),
                size,
                call,
                durable,
            })]
        };
        let phase = |what: &str, title: &str, jobs| {
            calls(
                &format!("{what}-{label}"),
                &format!("{title} {label}"),
                Counted::Bytes,
                jobs,
            )
        };
        let write = pass(PassAction::Write, OpenMode::Create, durable);
        plan.phases.push(
            phase("write", "Write", write)
                .fresh([SOURCE, SINK])
                .evidence(written(self.sync || self.direct)),
        );
        let read = pass(PassAction::Read, OpenMode::Read, Durable::Never);
        plan.phases.push(
            phase("read", "Read", read)
                .needs([SOURCE], size)
                .cold(self.cold)
                .evidence(Evidence::ReadsReachDevice),
        );
        let copy = WorkloadSpec::Copy(CopySpec {
            from: handle(SOURCE, OpenMode::Read),
            to: handle(SINK, OpenMode::Create),
            size,
            call,
            durable,
        });
        plan.phases.push(
            phase("copy", "Copy", vec![copy])
                .needs([SOURCE], size)
                .fresh([SINK])
                .cold(self.cold)
                .evidence(if self.sync || self.direct {
                    Evidence::Both
                } else {
                    Evidence::ReadsReachDevice
                }),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_published_tables() {
        let labels = Hdbench::default().sizes.into_iter().map(label);
        assert!(labels.eq(["0.1gb", "0.5gb", "1gb", "2gb"]));
        assert_eq!(label(Bytes::mib(256)), "256mib");
        assert_eq!(label(Bytes(64_000_000)), "64mb");
        assert_eq!(label(Bytes(1_500_000)), "1500kb");
        assert_eq!(label(Bytes(1_420_000)), "1420kb");
        assert_eq!(label(Bytes(1_500_001)), "1500001b");
        assert_eq!(label(Bytes::kib(1500)), "1536kb");
        assert_eq!(label(Bytes::kib(1501)), "1501kib");
        assert_eq!(label(Bytes::kib(1536)), "1.5mib");
    }

    proptest::proptest! {
        #[test]
        fn sizes_that_differ_have_names_that_differ(size in 1_u64..1 << 45) {
            let read: Bytes = label(Bytes(size))
                .replace("ib", "iB").replace("gb", "GB").replace("mb", "MB").replace("kb", "kB")
                .replace('b', "B").replace("ki", "Ki").replace("mi", "Mi").replace("gi", "Gi").replace("ti", "Ti")
                .parse().unwrap();
            proptest::prop_assert_eq!(read, Bytes(size));
        }
    }
}
