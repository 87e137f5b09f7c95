//! One step of building, as data: what it does can be printed as a command line before it is done.
use super::refill::{Refilled, replaces, resilvers};
use super::stripe::Stripe;
use raidlab_core::units::Bytes;
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_layout::BtrfsProfile;
use std::fmt;
use std::path::PathBuf;

/// In command lines, the place of a uuid that is drawn when the step is taken; its number from 1 follows.
pub(crate) const UUID: &str = "UUID-";

/// A device of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A member, by its place among the members.
    Member(usize),
    /// The md array of that number.
    Array(u32),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes an md array, a container or a volume in one.
    Array {
        /// The command line.
        words: Vec<String>,
        /// Its number.
        number: u32,
        /// What it is made of.
        on: Vec<Node>,
        /// It only holds volumes, or is one.
        contained: bool,
    },
    /// Waits until the array's copies or parity agree.
    Sync {
        /// Number of the array.
        number: u32,
    },
    /// Puts off the initial resync.
    Hold {
        /// Number of the array.
        number: u32,
    },
    /// Lets it go on.
    Release {
        /// Number of the array.
        number: u32,
    },
    /// Takes a member out as failed.
    Fail {
        /// The command line.
        words: Vec<String>,
        /// Number of the array.
        number: u32,
        /// Number of the container that it is a volume of: that lets go of the member.
        container: Option<u32>,
        /// What fails.
        node: Node,
    },
    /// Puts an emptied member in, which is filled from then on.
    Replace {
        /// The command line that empties it.
        clear: Vec<String>,
        /// The command line that adds it.
        words: Vec<String>,
        /// Number of the array.
        number: u32,
        /// Number of the container that it is a volume of: the member is put into that.
        container: Option<u32>,
        /// What is put in.
        node: Node,
    },
    /// Sets and verifies a setting.
    Set {
        /// Of which device.
        node: Node,
        /// Kernel name of the device, for printing.
        name: String,
        /// In the device's sysfs directory.
        attribute: &'static str,
        /// The value.
        value: String,
    },
    /// Sets and verifies a setting of the whole system.
    System {
        /// A file under `/proc/sys/vm`.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// Switches a drive's write cache.
    WriteCache {
        /// Of which member.
        member: usize,
        /// The command line.
        words: Vec<String>,
        /// On or off.
        on: bool,
    },
    /// Makes a file system.
    Filesystem {
        /// The command line.
        words: Vec<String>,
        /// On what.
        on: Vec<Node>,
        /// Which one.
        kind: FilesystemKind,
        /// The stripes that it is told of: verified.
        stripe: Option<Stripe>,
    },
    /// Takes a member out of a file system of btrfs that is not mounted yet, which is then mounted without it: what is on the member
    /// is cleared, and the kernel forgets that it was a part.
    Miss {
        /// The member.
        member: usize,
        /// Its path.
        path: PathBuf,
    },
    /// Mounts it.
    Mount {
        /// Of the kernel.
        fs_type: &'static str,
        /// Its options, joined by commas.
        options: String,
        /// From what.
        source: PathBuf,
        /// All that it is on.
        on: Vec<Node>,
        /// Where.
        point: PathBuf,
    },
    /// Unmounts what was mounted before.
    Unmount {
        /// Where.
        point: PathBuf,
    },
    /// Fills members of a btrfs anew that it is mounted without, one after the other.
    Refill {
        /// Where it is mounted.
        point: PathBuf,
        /// The place of its uuid.
        uuid: String,
        /// Which.
        members: Vec<Refilled>,
        /// What it was made as.
        profile: BtrfsProfile,
        /// Its members, with those that are missing.
        of: usize,
    },
    /// Gives chunks of a btrfs that have fewer copies what the others have.
    Convert {
        /// The command line.
        words: Vec<String>,
    },
    /// Writes a partition table with one partition over all of a member.
    Partition {
        /// The member.
        member: usize,
        /// Its path, for printing.
        path: PathBuf,
        /// The place of the disk's id.
        id: String,
    },
    /// Takes a member out of a pool: offline for ZFS, cleared, its partition forgotten by the kernel.
    Offline {
        /// The member.
        member: usize,
        /// Its path.
        path: PathBuf,
        /// The pool.
        name: String,
    },
    /// Puts new members in the place of such, which ZFS fills from then on, all of them at once.
    Resilver {
        /// The pool.
        name: String,
        /// Which.
        members: Vec<Refilled>,
        /// As the pool was made.
        ashift: Option<u32>,
        /// Members of each of its vdevs.
        each: usize,
    },
    /// Makes a ZFS pool, which mounts itself.
    Pool {
        /// The command line.
        words: Vec<String>,
        /// Its name.
        name: String,
        /// On what.
        on: Vec<Node>,
        /// Where it is mounted.
        point: PathBuf,
        /// Its smallest block as a power of two: verified in the labels.
        ashift: Option<u32>,
        /// Its largest record: verified.
        record_size: Option<Bytes>,
    },
}

impl Step {
    /// What it does, in a few words.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Array { number, .. } => format!("making /dev/md{number}"),
            Self::Sync { number } => format!("initial sync of /dev/md{number}"),
            Self::Hold { number } => format!("putting off the resync of /dev/md{number}"),
            Self::Release { number } => format!("resync of /dev/md{number}"),
            Self::Fail { number, .. } => format!("failing a member of /dev/md{number}"),
            Self::Replace { number, .. } => format!("replacing a member of /dev/md{number}"),
            Self::Set {
                name, attribute, ..
            } => format!("setting {attribute} of {name}"),
            Self::System { name, .. } => format!("setting vm.{name}"),
            Self::WriteCache { words, .. } => {
                format!(
                    "setting the write cache of {}",
                    words.last().map_or("", String::as_str)
                )
            }
            Self::Filesystem { kind, .. } => format!("making {kind}"),
            Self::Miss { path, .. } => format!("taking {} out of btrfs", path.display()),
            Self::Offline { path, .. } => format!("taking {} out of the pool", path.display()),
            Self::Mount { fs_type, .. } => format!("mounting {fs_type}"),
            Self::Unmount { point } => format!("unmounting {}", point.display()),
            Self::Refill { members, .. } | Self::Resilver { members, .. } => {
                let paths = members
                    .iter()
                    .map(|member| member.path.display().to_string());
                format!("replacing {}", paths.collect::<Vec<_>>().join(", "))
            }
            Self::Convert { .. } => "converting what btrfs keeps in fewer copies".to_owned(),
            Self::Partition { path, .. } => format!("partitioning {}", path.display()),
            Self::Pool { .. } => "making the pool".to_owned(),
        }
    }

    /// The command lines of a step by which new members are filled before the phases: with what is waited for.
    pub(super) fn alone(&self) -> String {
        match self {
            Self::Offline { .. } => {
                format!("{self}   # the files of the first phase are there by now")
            }
            Self::Resilver { name, .. } => format!("{self} && zpool wait -t resilver {name}"),
            _ => self.to_string(),
        }
    }

    /// The tools that it needs.
    pub(crate) fn tools(&self) -> Vec<&str> {
        let words = match self {
            Self::Array { words, .. }
            | Self::Fail { words, .. }
            | Self::Replace { words, .. }
            | Self::WriteCache { words, .. }
            | Self::Filesystem { words, .. }
            | Self::Convert { words }
            | Self::Pool { words, .. } => words,
            Self::Refill { .. } => return vec!["btrfs"],
            Self::Offline { .. } | Self::Resilver { .. } => return vec!["zpool"],
            _ => return Vec::new(),
        };
        let mut tools: Vec<&str> = words.first().map(String::as_str).into_iter().collect();
        if let Self::Pool { .. } = self {
            // What was made is verified with these.
            tools.extend(["zfs", "zdb"]);
        }
        tools
    }
}

/// The command lines, as a shell would take them.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array {
                words, contained, ..
            } => {
                if *contained {
                    for (name, value) in super::CONTAINER_ENVIRONMENT {
                        write!(f, "{name}={value} ")?;
                    }
                }
                f.write_str(&shell(words))
            }
            Self::Fail {
                words,
                container: Some(container),
                ..
            } => {
                let device = words.last().map_or("", String::as_str);
                write!(
                    f,
                    "{} && mdadm /dev/md{container} --remove {device}",
                    shell(words)
                )
            }
            Self::Fail { words, .. }
            | Self::WriteCache { words, .. }
            | Self::Filesystem { words, .. }
            | Self::Convert { words }
            | Self::Pool { words, .. } => f.write_str(&shell(words)),
            // raidlab does it itself; this makes the same.
            Self::Miss { path, .. } => {
                let path = path.display();
                write!(f, "wipefs -a {path} && btrfs device scan --forget {path}")
            }
            Self::Unmount { point } => write!(
                f,
                "umount {0} && rmdir {0}   # the files of the first phase are there by now",
                point.display()
            ),
            Self::Refill { members, point, .. } => {
                let lines = members.iter().map(|member| shell(&replaces(member, point)));
                f.write_str(&lines.collect::<Vec<_>>().join(" && "))
            }
            Self::Offline { path, name, .. } => {
                let path = path.display().to_string();
                let node = super::partition::node(&path);
                write!(
                    f,
                    "zpool offline {name} {node} && wipefs -a {node} && sgdisk --zap-all {path}"
                )
            }
            Self::Resilver {
                name,
                members,
                ashift,
                ..
            } => {
                let line = |member: &Refilled| shell(&resilvers(member, name, *ashift));
                let mut lines: Vec<String> = members.iter().map(line).collect();
                if members.len() > 1 {
                    lines.push(format!("zpool resilver {name}"));
                }
                f.write_str(&lines.join(" && "))
            }
            // raidlab writes it itself; this makes the same.
            Self::Partition { path, id, .. } => write!(
                f,
                "sgdisk --disk-guid={id} --new=1:2048:-1M --typecode=1:BF01 {}",
                path.display()
            ),
            Self::Replace { clear, words, .. } => {
                write!(f, "{} && {}", shell(clear), shell(words))
            }
            Self::Sync { number } => write!(
                f,
                "until [ $(cat /sys/block/md{number}/md/sync_action) = idle ] && [ $(cat \
                 /sys/block/md{number}/md/degraded) = 0 ]; do sleep 1; done"
            ),
            Self::Hold { number } => {
                write!(f, "echo frozen > /sys/block/md{number}/md/sync_action")
            }
            Self::Release { number } => {
                write!(f, "echo idle > /sys/block/md{number}/md/sync_action")
            }
            Self::Set {
                name,
                attribute,
                value,
                ..
            } => write!(f, "echo {value} > /sys/block/{name}/{attribute}"),
            Self::System { name, value } => write!(f, "echo {value} > /proc/sys/vm/{name}"),
            Self::Mount {
                fs_type,
                options,
                source,
                point,
                ..
            } => {
                write!(f, "mkdir {} && mount -t {fs_type} ", point.display())?;
                if !options.is_empty() {
                    write!(f, "-o {options} ")?;
                }
                write!(f, "{} {}", source.display(), point.display())
            }
        }
    }
}

fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@^".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
