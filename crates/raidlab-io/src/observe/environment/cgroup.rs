//! The memory that the control group of this process may use, page cache included.
use super::super::roots::{self, Roots};
use std::path::{Path, PathBuf};

/// What version 1 shows when there is no limit: the largest multiple of the page size in an `i64`.
const UNLIMITED_V1: u64 = 1 << 62;

/// The smallest limit of this process's group and the groups above it, in bytes; `None` when there
/// is none. Groups above the part of the hierarchy that is mounted here cannot be seen.
pub(super) fn memory_limit(roots: &Roots) -> Option<u64> {
    let groups = roots::text(&roots.proc.join("self/cgroup"))?;
    limit_files(&groups, &roots.sys.join("fs/cgroup"))
        .iter()
        .filter_map(|file| roots::text(file)?.trim().parse().ok())
        .filter(|limit| *limit < UNLIMITED_V1)
        .min()
}

/// Where the limits are: of the group itself, and of each one above it.
fn limit_files(groups: &str, mounted: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|above| root.join(above).join(file)));
    }
    files
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
}
