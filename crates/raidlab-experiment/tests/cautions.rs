//! What is doubtful about an experiment before it has run.
mod common;

use common::known;
use raidlab_core::units::Bytes;
use raidlab_experiment::kernel::Kernel;
use raidlab_experiment::{Own, cautions, parse};

fn told(rest: &str, memory: Option<Bytes>) -> String {
    let own = memory.map(|memory| Own {
        memory: Some(memory),
        kernel: None,
    });
    told_on(rest, own)
}

fn told_on(rest: &str, own: Option<Own>) -> String {
    let text = format!("title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 2 }}\n{rest}");
    let experiment = parse(&text, "lab.toml", &known()).expect("a good file");
    let cautions = cautions(&experiment, own);
    let lines = cautions.iter().map(|c| format!("{c}\n  {}", c.help));
    lines.collect::<Vec<_>>().join("\n")
}

/// The default file of 1 GiB in the default memory of 4 GiB.
#[test]
fn files_that_a_cache_can_hold_are_told_with_the_remedy() {
    insta::assert_snapshot!(told("profile = \"random\"\n[factors]\nlayout = [\"zfs-mirror\", \"raid1\"]\n", None), @r#"
    zfs-mirror: the profile's 1 GiB are little beside ZFS's cache, 2 GiB of the memory of 4 GiB, through which direct calls go, too: figures that are served from there are flagged or kept out of the averages
      use larger files, size = "8GiB" in [profile], or less memory, memory = "512MiB" in [host]
    zfs-mirror: until Linux 6.4 a process waits within each call to ZFS: of the 32 that a job has under way one is at the disks
      use several jobs with a depth of 1
    "#);
    let buffered = "[profile]\nname = \"random\"\ndirect = false\n[array]\nlayout = \"raid1\"\n[factors]\nfilesystem = [\"ext4\", \"xfs\"]\n";
    insta::assert_snapshot!(told(buffered, None), @r#"
    ext4 and 1 more: the data set of 1 GiB fits in the memory of 4 GiB: the cache can hold it, and the figures are flagged
      use larger files, size = "8GiB" in [profile], or less memory, memory = "512MiB" in [host]
    "#);
    // That of the machine where the experiment runs, which nobody changes for an experiment.
    insta::assert_snapshot!(told(buffered, Some(Bytes(64 << 30))), @r#"
    ext4 and 1 more: the data set of 1 GiB fits in the memory of 64 GiB: the cache can hold it, and the figures are flagged
      use larger files, size = "128GiB" in [profile]
    "#);
    assert_eq!(told(buffered, Some(Bytes(1 << 30))), "");
}

/// bonnie's small files, and the copy that hdbench makes, need room and are no part of the file that the memory is held against.
#[test]
fn less_memory_is_half_of_the_file() {
    let host = "[host]\nmemory = \"2GiB\"\n[array]\nlayout = \"raid1\"\n";
    let of = |profile: &str| told(&format!("{host}[profile]\n{profile}"), None);
    let bonnie =
        of("name = \"bonnie\"\nsize = \"512MiB\"\nfiles = 256\nfile-size-max = \"16KiB\"\n");
    assert!(bonnie.contains("memory = \"256MiB\""), "{bonnie}");
    let hdbench = of("name = \"hdbench\"\nsizes = [\"1GiB\"]\n");
    assert!(hdbench.contains("memory = \"512MiB\""), "{hdbench}");
}

#[test]
fn what_no_cache_can_hold_is_no_matter() {
    let large = "[profile]\nname = \"random\"\nsize = \"8GiB\"\ndepth = 1\n[array]\nlayout = \"zfs-mirror\"\n";
    assert_eq!(told(large, None), "");
    // bonnie takes twice the memory by itself; direct calls pass the page cache, and a raw device has none of them.
    assert_eq!(
        told(
            "profile = \"bonnie\"\n[array]\nlayout = \"zfs-mirror\"\n",
            None
        ),
        ""
    );
    assert_eq!(
        told(
            "profile = \"random\"\n[array]\nlayout = \"raid1\"\n[filesystem]\nkind = \"ext4\"\n",
            None
        ),
        ""
    );
    assert_eq!(
        told("profile = \"random\"\n[array]\nlayout = \"raid1\"\n", None),
        ""
    );
}

#[test]
fn what_its_makers_advise_against_is_told() {
    let of = |layouts: &str| {
        let text = format!(
            "[profile]\nname = \"random\"\nsize = \"64GiB\"\n[array]\nengine = \"btrfs\"\n[factors]\nlayout = [{layouts}]\n"
        );
        told(&text, None)
    };
    insta::assert_snapshot!(of(r#""raid0", "raid5", "raid1""#), @r#"
    raid5: btrfs(5) says of its raid5 and raid6 that they "should not be used in production, only for evaluation or testing"
      use engine = "md" below the file system, or raid1, raid1c3 or raid10 of btrfs, for data that matter
    "#);
    assert_eq!(of(r#""raid0", "raid1""#), "");
    let md = "[profile]\nname = \"random\"\nsize = \"64GiB\"\n[array]\nlayout = \"raid5\"\n";
    assert_eq!(told(md, None), "");
}

#[test]
fn calls_that_are_not_under_way_on_zfs_are_told() {
    let deep = |kernel: &str, layout: &str| {
        let text = format!(
            "[profile]\nname = \"random\"\nsize = \"64GiB\"\ndepth = 8\n[host]\nkernel = \"{kernel}\"\n[array]\nlayout = \"{layout}\"\n"
        );
        told(&text, None)
    };
    insta::assert_snapshot!(deep("6.1", "zfs-mirror"), @r"
    the cell: until Linux 6.4 a process waits within each call to ZFS: of the 8 that a job has under way one is at the disks
      use several jobs with a depth of 1
    ");
    assert_eq!(deep("6.5", "zfs-mirror"), "");
    assert_eq!(deep("6.1", "raid1"), "");
    let jobs = "[profile]\nname = \"random\"\nsize = \"64GiB\"\ndepth = 1\njobs = 8\n[array]\nlayout = \"zfs-mirror\"\n";
    assert_eq!(told(jobs, None), "");
    // Where the experiment runs the kernel is what is there.
    let text = "[profile]\nname = \"random\"\nsize = \"64GiB\"\ndepth = 8\n[host]\nkernel = \"6.1\"\n[array]\nlayout = \"zfs-mirror\"\n";
    let on = |kernel: Option<Kernel>| {
        let own = Own {
            memory: Some(Bytes(4 << 30)),
            kernel,
        };
        told_on(text, Some(own))
    };
    assert_eq!(on(Some(Kernel::Linux(6, 4, 12))), deep("6.1", "zfs-mirror"));
    assert_eq!(on(Some(Kernel::Linux(6, 5, 0))), "");
    assert_eq!(on(None), "");
}
