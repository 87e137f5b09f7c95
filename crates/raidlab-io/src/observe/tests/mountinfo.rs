use proptest::prelude::*;

use super::*;

const REAL: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict,resuid=65534
36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue,stripe=256
40 27 0:45 /@home /home rw shared:3 - btrfs /dev/sda2 rw,space_cache,subvolid=257,subvol=/@home
41 27 0:50 / /mnt/a\040b rw - tmpfs  rw,size=100k
42 27 0:51 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/up\040per,workdir=/w
43 41 254:0 /data /mnt/a\040b ro - ext4 /dev/vda rw
";

#[test]
fn reads_types_options_binds_and_escapes() {
    let mounts = parse(REAL).unwrap();
    assert_eq!(mounts.len(), 7);
    assert_eq!(mounts[1].fs_type, "ext4");
    assert_eq!(mounts[1].option("resuid"), Some("65534"));
    assert!(!mounts[1].is_partial());
    assert_eq!(mounts[2].option("stripe"), Some("256"));
    assert!(mounts[2].is_partial());
    assert_eq!(mounts[3].root, Path::new("/@home"));
    assert_eq!(mounts[4].point, Path::new("/mnt/a b"));
    assert_eq!(mounts[4].source, "");
    assert_eq!(mounts[4].option("size"), Some("100k"));
    assert_eq!(mounts[5].option("upperdir"), Some("/up per"));
    assert!(mounts[6].read_only() && !mounts[1].read_only());
}

#[test]
fn the_mount_of_a_path_is_the_deepest_and_last() {
    let mounts = parse(REAL).unwrap();
    let of = |path: &str| mount_of(&mounts, Path::new(path), None).map(|mount| mount.id);
    assert_eq!(of("/etc/passwd"), Some(27));
    assert_eq!(of("/home/x"), Some(40));
    assert_eq!(of("/homes/x"), Some(27));
    assert_eq!(of("/mnt/a b/file"), Some(43));
    assert_eq!(
        mount_of(&mounts, Path::new("/mnt/a b/file"), Some(41))
            .unwrap()
            .id,
        41
    );
    assert_eq!(
        mount_of(&mounts, Path::new("/etc"), Some(999)).unwrap().id,
        27
    );
    assert_eq!(mount_of(&[], Path::new("/etc"), None), None);
}

#[test]
fn names_line_and_fault() {
    let problem = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        problem("22 27 0:21 / /proc rw proc proc rw"),
        "/proc/self/mountinfo: line 1: the ` - ` before the file-system type is missing"
    );
    assert_eq!(
        problem("22 27"),
        "/proc/self/mountinfo: line 1: the device number is missing"
    );
    assert_eq!(
        problem("a 27 0:21 / /proc rw - proc proc rw"),
        "/proc/self/mountinfo: line 1: mount id `a` is not a number"
    );
    assert_eq!(
        problem("22 27 0:21 / /proc rw -"),
        "/proc/self/mountinfo: line 1: the file-system type is missing"
    );
}

#[test]
fn the_running_kernel_is_understood() {
    let mounts = parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap()).unwrap();
    assert!(mount_of(&mounts, Path::new("/"), None).is_some());
}

proptest! {
    #[test]
    fn never_panics(text in r"[0-9a-z \n:/\\-]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn unescape_undoes_what_the_kernel_does(name in "[a-z \t\n\\\\é]{0,30}") {
        let mut escaped = String::new();
        for c in name.chars() {
            match c {
                ' ' | '\t' | '\n' | '\\' => escaped.push_str(&format!("\\{:03o}", u32::from(c))),
                c => escaped.push(c),
            }
        }
        prop_assert_eq!(unescape(&escaped), PathBuf::from(name));
    }
}
