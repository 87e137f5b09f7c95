use std::fs;
use std::process::Command;

use proptest::prelude::*;

use super::*;

/// Makes a file system in a file and returns its first bytes; the tools are part of every Debian installation.
fn made_by(program: &str, arguments: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let output = Command::new(program)
        .args(arguments)
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(HEAD_BYTES);
    bytes
}

#[test]
fn reads_what_mke2fs_was_told() {
    let head = made_by(
        "/usr/sbin/mke2fs",
        &[
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-E",
            "stride=16,stripe_width=48",
            "-L",
            "lab",
            "-I",
            "512",
        ],
    );
    let ext = parse_ext(&head).unwrap();
    assert_eq!(
        (ext.block_size, ext.blocks, ext.inode_size),
        (4096, 4096, 512)
    );
    assert_eq!((ext.stride, ext.stripe_width), (Some(16), Some(48)));
    assert_eq!(ext.flex_group, Some(16));
    assert_eq!(ext.journal, Journal::Inode(8));
    assert_eq!(ext.label.as_deref(), Some("lab"));
    for feature in [
        "has_journal",
        "extent",
        "flex_bg",
        "64bit",
        "metadata_csum",
        "dir_index",
    ] {
        assert!(
            ext.features.iter().any(|f| f == feature),
            "{feature} in {:?}",
            ext.features
        );
    }
}

#[test]
fn features_are_those_that_dumpe2fs_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let status = Command::new("/usr/sbin/mke2fs")
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-O",
            "bigalloc,quota,project,encrypt,inline_data",
        ])
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new("/usr/sbin/dumpe2fs")
        .arg("-h")
        .arg(&path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Filesystem features:"))
        .unwrap();
    let mut expected: Vec<&str> = line.split_whitespace().collect();
    expected.sort_unstable();
    let ext = parse_ext(&fs::read(&path).unwrap()).unwrap();
    let mut found: Vec<&str> = ext.features.iter().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(ext.cluster_size, Some(16 * ext.block_size));
}

#[test]
fn ext2_has_no_journal_and_no_stripe() {
    let ext = parse_ext(&made_by(
        "/usr/sbin/mke2fs",
        &["-q", "-F", "-t", "ext2", "-b", "1024"],
    ))
    .unwrap();
    assert_eq!((ext.block_size, ext.journal), (1024, Journal::None));
    assert_eq!(
        (ext.stride, ext.stripe_width, ext.label),
        (None, None, None)
    );
}

#[test]
fn what_is_no_superblock_is_none() {
    assert_eq!(parse_ext(&[0; HEAD_BYTES]), None);
    assert_eq!(parse_ext(&[]), None);
    let mut absurd = vec![0; HEAD_BYTES];
    absurd[0x438..0x43a].copy_from_slice(&EXT_MAGIC.to_le_bytes());
    absurd[0x418] = 60;
    assert_eq!(parse_ext(&absurd), None);
    assert_eq!(parse_xfs(b"XFSB"), None);
    assert_eq!(parse_xfs(&[0; 512]), None);
}

#[test]
fn reads_an_xfs_superblock() {
    let mut head = vec![0u8; HEAD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"XFSB");
    put(4, &4096u32.to_be_bytes());
    put(8, &76800u64.to_be_bytes());
    put(48, &(1u64 << 17).to_be_bytes());
    put(84, &19200u32.to_be_bytes());
    put(88, &4u32.to_be_bytes());
    put(96, &16384u32.to_be_bytes());
    put(100, &0xb4a5u16.to_be_bytes());
    put(102, &512u16.to_be_bytes());
    put(104, &512u16.to_be_bytes());
    put(184, &16u32.to_be_bytes());
    put(188, &48u32.to_be_bytes());
    put(212, &0b101u32.to_be_bytes());
    put(216, &0b1011u32.to_be_bytes());
    let xfs = parse_xfs(&head).unwrap();
    assert_eq!(
        (xfs.block_size, xfs.blocks, xfs.groups, xfs.version),
        (4096, 76800, 4, 5)
    );
    assert_eq!((xfs.stripe_unit, xfs.stripe_width), (Some(16), Some(48)));
    assert!(!xfs.external_log);
    assert_eq!(
        xfs.features,
        ["finobt", "reflink", "ftype", "sparse", "bigtime"]
    );
}

proptest! {
    #[test]
    fn never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..HEAD_BYTES + 1)) {
        let _ = (parse_ext(&bytes), parse_xfs(&bytes));
        if bytes.len() > 0x440 {
            bytes[0x438..0x43a].copy_from_slice(&EXT_MAGIC.to_le_bytes());
            bytes[0x418..0x41c].fill(0);
        }
        let _ = parse_ext(&bytes);
        if bytes.len() > 4 {
            bytes[..4].copy_from_slice(b"XFSB");
        }
        let _ = parse_xfs(&bytes);
    }
}
