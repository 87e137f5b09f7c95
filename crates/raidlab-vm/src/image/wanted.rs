//! What an image should have: programs with the packages that have them, and kernel modules.

/// A program of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// What it is for.
    pub what: &'static str,
}

const fn tool(name: &'static str, package: &'static str, what: &'static str) -> Tool {
    Tool {
        name,
        package,
        what,
    }
}

/// Programs of every image, where this machine has them.
pub const TOOLS: [Tool; 18] = [
    tool("mdadm", "mdadm", "builds md arrays"),
    tool("mdmon", "mdadm", "keeps IMSM and DDF containers"),
    tool("mke2fs", "e2fsprogs", "makes ext2, ext3, ext4"),
    tool("tune2fs", "e2fsprogs", "changes ext file systems"),
    tool("dumpe2fs", "e2fsprogs", "tells what an ext file system is"),
    tool("mkfs.xfs", "xfsprogs", "makes XFS"),
    tool("xfs_spaceman", "xfsprogs", "tells what an XFS is"),
    tool("mkfs.btrfs", "btrfs-progs", "makes btrfs"),
    tool("btrfs", "btrfs-progs", "keeps btrfs"),
    tool("zpool", "zfsutils-linux", "builds ZFS pools"),
    tool("zfs", "zfsutils-linux", "makes ZFS data sets"),
    tool("zdb", "zfsutils-linux", "tells what is on a ZFS member"),
    tool("hdparm", "hdparm", "measures and sets up disks"),
    tool("bonnie++", "bonnie++", "measures a file system"),
    tool("lsblk", "util-linux", "tells how devices are stacked"),
    tool("blockdev", "util-linux", "sets up block devices"),
    tool("wipefs", "util-linux", "removes signatures"),
    tool("dd", "coreutils", "reads and writes in sequence"),
];

/// Programs of images that need them: each is large, or for people.
pub const EXTRA: [Tool; 2] = [
    tool("fio", "fio", "measures with many patterns"),
    tool("busybox", "busybox-static", "a shell and small tools"),
];

/// Modules of images that have a program which is of no use without them.
pub const EXTRA_MODULES: [(&str, &[&str]); 1] = [
    // The ciphers of a header's key are asked for through a socket.
    ("cryptsetup", &["dm_crypt", "af_alg", "algif_skcipher"]),
];

/// Modules of every image, with what they depend on.
pub const MODULES: [&str; 58] = [
    // The channel, and disks that QEMU brings.
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "virtio_scsi",
    "sd_mod",
    "sr_mod",
    "nvme",
    "ata_piix",
    "ata_generic",
    "ahci",
    "sym53c8xx",
    "megaraid_sas",
    "esp_scsi",
    "am53c974",
    // Modelled disks in virtual time.
    "nbd",
    "ublk_drv",
    "null_blk",
    "scsi_debug",
    "loop",
    // md.
    "md_mod",
    "linear",
    "raid0",
    "raid1",
    "raid10",
    "raid456",
    "dm_mod",
    "dm_delay",
    "dm_flakey",
    "dm_raid",
    // Schedulers.
    "mq_deadline",
    "kyber_iosched",
    "bfq",
    // File systems.
    "ext2",
    "ext4",
    "xfs",
    "btrfs",
    "jfs",
    "nls_base",
    "zfs",
    "spl",
    // What file systems ask the kernel's cryptography for by alias.
    "crc32c_generic",
    "crc32c_intel",
    "libcrc32c",
    "crc16",
    "crct10dif_generic",
    "xxhash_generic",
    "sha256_generic",
    "blake2b_generic",
    "zstd",
    "lzo",
    "lzo_rle",
    // RAID6 and RAID5 arithmetic.
    "xor",
    "raid6_pq",
    "async_pq",
    "async_raid6_recov",
    // For people.
    "configs",
    "nvme_core",
    "t10_pi",
];

/// Commands of busybox by whose own names a guest has them, where no other program has that name.
pub(super) const BUSYBOX: [&str; 19] = [
    "sh", "ls", "cat", "less", "vi", "dd", "dmesg", "ps", "grep", "head", "tail", "mount",
    "umount", "free", "top", "hexdump", "df", "sleep", "echo",
];
