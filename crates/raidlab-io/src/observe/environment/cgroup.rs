//! What the control group of this process may use: memory, page cache included, processor time, and I/O of devices. Groups above the part
//! of the hierarchy that is mounted here cannot be seen.
use super::super::roots::{self, DeviceNumber, Roots};
use raidlab_core::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What version 1 shows when there is no limit: the largest multiple of the page size in an `i64`.
const UNLIMITED_V1: u64 = 1 << 62;

/// Limits of processor and I/O, the smallest of the group and of those above it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// CPUs' worth of time; `None` without a limit.
    pub cpus: Option<f64>,
    /// Of devices, by their numbers.
    pub io: Vec<IoLimit>,
}

/// What may be asked of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimit {
    /// Its number.
    pub device: DeviceNumber,
    /// Bytes or operations, read or written a second.
    pub of: IoKind,
    /// So many.
    pub most: u64,
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoKind {
    /// Bytes read a second.
    ReadBytes,
    /// Bytes written a second.
    WrittenBytes,
    /// Reads a second.
    Reads,
    /// Writes a second.
    Writes,
}

impl IoKind {
    const ALL: [Self; 4] = [
        Self::ReadBytes,
        Self::WrittenBytes,
        Self::Reads,
        Self::Writes,
    ];

    /// Its key in `io.max`, and its file in version 1.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadBytes => ("rbps", "blkio.throttle.read_bps_device"),
            Self::WrittenBytes => ("wbps", "blkio.throttle.write_bps_device"),
            Self::Reads => ("riops", "blkio.throttle.read_iops_device"),
            Self::Writes => ("wiops", "blkio.throttle.write_iops_device"),
        }
    }
}

impl std::fmt::Display for IoLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.of {
            IoKind::ReadBytes => write!(f, "read {} a second", Bytes(self.most)),
            IoKind::WrittenBytes => write!(f, "write {} a second", Bytes(self.most)),
            IoKind::Reads => write!(f, "do {} reads a second", self.most),
            IoKind::Writes => write!(f, "do {} writes a second", self.most),
        }
    }
}

/// The smallest limit of this process's group and the groups above it, in bytes; `None` when there
/// is none.
pub(super) fn memory_limit(roots: &Roots) -> Option<u64> {
    let limit = |group: &Group| {
        let file = group.file("memory.max", "memory.limit_in_bytes");
        roots::text(&file)?.trim().parse().ok()
    };
    let groups = groups(roots, "memory");
    let limits = groups.iter().filter_map(limit);
    limits.filter(|limit| *limit < UNLIMITED_V1).min()
}

/// The limits of processor and I/O.
pub(crate) fn limits(roots: &Roots) -> Limits {
    let cpus = groups(roots, "cpu");
    let cpus = cpus.iter().filter_map(cpu_limit).min_by(f64::total_cmp);
    let mut io: BTreeMap<(DeviceNumber, IoKind), u64> = BTreeMap::new();
    for group in groups(roots, "io").iter().chain(&groups(roots, "blkio")) {
        for (device, of, most) in io_limits(group) {
            let least = io.entry((device, of)).or_insert(most);
            *least = most.min(*least);
        }
    }
    let one = |((device, of), most)| IoLimit { device, of, most };
    Limits {
        cpus,
        io: io.into_iter().map(one).collect(),
    }
}

/// How often the processor limit has stopped the group, or one above it, until now; `None` where nothing counts that.
pub(crate) fn throttled(roots: &Roots) -> Option<u64> {
    let times = |group: &Group| {
        let text = roots::text(&group.path.join("cpu.stat"))?;
        let times = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "));
        times?.trim().parse::<u64>().ok()
    };
    let groups = groups(roots, "cpu");
    groups.iter().filter_map(times).reduce(u64::saturating_add)
}

/// A control group that this process is in.
struct Group {
    unified: bool,
    path: PathBuf,
}

impl Group {
    /// A file that versions 2 and 1 name differently.
    fn file(&self, unified: &str, old: &str) -> PathBuf {
        self.path.join(if self.unified { unified } else { old })
    }
}

/// This process's groups of a controller, each followed by those above it.
fn groups(roots: &Roots, controller: &str) -> Vec<Group> {
    let mounted = roots.sys.join("fs/cgroup");
    let mut found = Vec::new();
    for line in roots::text(&roots.proc.join("self/cgroup"))
        .unwrap_or_default()
        .lines()
    {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (root, unified) = match controllers {
            "" => (mounted.clone(), true),
            list if list.split(',').any(|name| name == controller) => {
                (mounted.join(controller), false)
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        found.extend(group.ancestors().map(|above| Group {
            unified,
            path: root.join(above),
        }));
    }
    found
}

/// `cpu.max` is a quota, or `max`, and a period; version 1 has a file for each, and -1 for none.
fn cpu_limit(group: &Group) -> Option<f64> {
    let (quota, period) = if group.unified {
        let text = roots::text(&group.path.join("cpu.max"))?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.to_owned(), period.to_owned())
    } else {
        let text = |file: &str| roots::text(&group.path.join(file));
        (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?)
    };
    let quota = quota.trim().parse::<u64>().ok()?;
    let period = period
        .trim()
        .parse::<u64>()
        .ok()
        .filter(|period| *period > 0)?;
    Some(quota as f64 / period as f64)
}

fn io_limits(group: &Group) -> Vec<(DeviceNumber, IoKind, u64)> {
    let mut limits = Vec::new();
    if group.unified {
        // `8:16 rbps=2097152 wbps=max riops=max wiops=120`
        let text = roots::text(&group.path.join("io.max")).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(device) = words.next().and_then(|number| number.parse().ok()) else {
                continue;
            };
            for (key, most) in words.filter_map(|word| word.split_once('=')) {
                let of = IoKind::ALL.into_iter().find(|of| of.names().0 == key);
                limits.extend(
                    of.zip(most.parse().ok())
                        .map(|(of, most)| (device, of, most)),
                );
            }
        }
        return limits;
    }
    for of in IoKind::ALL {
        let text = roots::text(&group.path.join(of.names().1)).unwrap_or_default();
        let one = |line: &str| {
            let (device, most) = line.split_once(' ')?;
            Some((device.parse().ok()?, of, most.trim().parse().ok()?))
        };
        limits.extend(text.lines().filter_map(one));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        let root = tree(files);
        memory_limit(&Roots::under(root.path()))
    }

    #[test]
    fn the_smallest_limit_above_counts_in_version_2() {
        let files = [
            ("proc/self/cgroup", "0::/system.slice/a.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "134217728\n"),
            ("sys/fs/cgroup/system.slice/a.service/memory.max", "max\n"),
        ];
        assert_eq!(limit(&files), Some(134_217_728));
        assert_eq!(limit(&[files[0], files[2]]), None);
    }

    #[test]
    fn version_1_says_unlimited_by_a_huge_number() {
        let groups = (
            "proc/self/cgroup",
            "4:cpu:/x\n3:memory,hugetlb:/a/b\n0::/\n",
        );
        let own = "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes";
        assert_eq!(limit(&[groups, (own, "9223372036854771712\n")]), None);
        assert_eq!(limit(&[groups, (own, "67108864\n")]), Some(67_108_864));
    }

    #[test]
    fn nothing_known_is_no_limit() {
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[("proc/self/cgroup", "garbage\n::\n")]), None);
    }

    #[test]
    fn limits_of_processor_and_io_in_version_2() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/a.slice/b\n"),
            ("sys/fs/cgroup/a.slice/cpu.max", "25000 100000\n"),
            ("sys/fs/cgroup/a.slice/b/cpu.max", "max 100000\n"),
            (
                "sys/fs/cgroup/a.slice/cpu.stat",
                "usage_usec 5\nnr_throttled 7\nthrottled_usec 9\n",
            ),
            ("sys/fs/cgroup/a.slice/b/cpu.stat", "nr_throttled 3\n"),
            (
                "sys/fs/cgroup/a.slice/io.max",
                "8:0 rbps=1048576 wbps=max riops=max wiops=120\n",
            ),
            (
                "sys/fs/cgroup/a.slice/b/io.max",
                "8:0 rbps=2097152 wbps=max riops=50 wiops=max\n",
            ),
        ]);
        let roots = Roots::under(root.path());
        let limits = limits(&roots);
        assert_eq!(limits.cpus, Some(0.25));
        let told: Vec<String> = limits.io.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "read 1 MiB a second",
                "do 50 reads a second",
                "do 120 writes a second"
            ]
        );
        assert!(
            limits
                .io
                .iter()
                .all(|limit| limit.device.to_string() == "8:0")
        );
        assert_eq!(throttled(&roots), Some(10));
    }

    #[test]
    fn limits_of_processor_and_io_in_version_1() {
        let root = tree(&[
            (
                "proc/self/cgroup",
                "5:blkio:/x\n4:cpu,cpuacct:/x\n3:memory:/\n0::/\n",
            ),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/cpu/x/cpu.stat",
                "nr_periods 9\nnr_throttled 4\nthrottled_time 8\n",
            ),
            (
                "sys/fs/cgroup/blkio/x/blkio.throttle.write_bps_device",
                "7:3 4194304\n",
            ),
        ]);
        let roots = Roots::under(root.path());
        let limits = limits(&roots);
        assert_eq!(limits.cpus, Some(1.5));
        assert_eq!(limits.io.len(), 1);
        assert_eq!(limits.io[0].to_string(), "write 4 MiB a second");
        assert_eq!(throttled(&roots), Some(4));
        let none = tree(&[("proc/self/cgroup", "0::/\n")]);
        let roots = Roots::under(none.path());
        assert_eq!(super::limits(&roots), Limits::default());
        assert_eq!(throttled(&roots), None);
    }
}
