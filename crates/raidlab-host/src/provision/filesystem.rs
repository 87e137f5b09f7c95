//! File systems: the makers' command lines, with stripes as the layout has them.
use super::plan::{Draft, PlanError, Target};
use super::refill::Refilled;
use super::step::{Node, Step};
use super::stripe::Stripe;
use raidlab_core::units::Bytes;
use raidlab_experiment::kernel::{FilesystemKind, JournalMode};
use raidlab_experiment::setup::{ArrayLayout, ArrayState, Filesystem};
use raidlab_layout::{BtrfsProfile, Layout, VdevKind};
use std::path::{Path, PathBuf};

/// The file system of a setup on a device, or the device itself.
pub(super) fn on(
    draft: &mut Draft<'_>,
    node: &Node,
    layout: Option<&Layout>,
) -> Result<Target, PlanError> {
    let Some(filesystem) = &draft.setup.filesystem else {
        return Ok(Target::Device(node.clone()));
    };
    let block = filesystem.block.unwrap_or(Bytes::kib(4)).0;
    let stripe = layout.and_then(Stripe::of);
    // ext has no stripes below a block, and btrfs none at all.
    let stripe = stripe.filter(|stripe| match filesystem.kind {
        FilesystemKind::Xfs => true,
        FilesystemKind::Btrfs => false,
        _ => stripe.chunk.0 >= block,
    });
    let path = draft.path(node);
    let words = match filesystem.kind {
        FilesystemKind::None => return Ok(Target::Device(node.clone())),
        FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => {
            ext(draft, filesystem, stripe, &path)?
        }
        FilesystemKind::Xfs => xfs(draft, filesystem, stripe, &path)?,
        FilesystemKind::Btrfs => {
            no_journal(filesystem)?;
            let mut words = btrfs_words(draft, filesystem);
            words.push(path);
            words
        }
        FilesystemKind::Zfs => {
            let message = "zfs makes its own arrays: write engine = \"zfs\"";
            return Err(PlanError(message.to_owned()));
        }
        FilesystemKind::Ntfs => {
            let message = "ntfs is of Windows, and this is Linux";
            return Err(PlanError(message.to_owned()));
        }
    };
    let kind = filesystem.kind;
    draft.steps.push(Step::Filesystem {
        words,
        on: vec![node.clone()],
        kind,
        stripe,
    });
    let mount = mount(draft, kind, vec![node.clone()], Vec::new());
    draft.steps.push(mount);
    Ok(Target::Directory(draft.options.mount.clone()))
}

fn mount(draft: &Draft<'_>, kind: FilesystemKind, on: Vec<Node>, mut options: Vec<String>) -> Step {
    let filesystem = draft.setup.filesystem.as_ref();
    let journalled = matches!(kind, FilesystemKind::Ext3 | FilesystemKind::Ext4);
    match filesystem.and_then(|filesystem| filesystem.mode) {
        Some(mode) if journalled && mode != JournalMode::None => {
            options.push(format!("data={mode}"));
        }
        _ => {}
    }
    options.extend(filesystem.and_then(|filesystem| filesystem.mount_options.clone()));
    let fs_type = match kind {
        FilesystemKind::Ext2 => "ext2",
        FilesystemKind::Ext3 => "ext3",
        FilesystemKind::Xfs => "xfs",
        FilesystemKind::Btrfs => "btrfs",
        _ => "ext4",
    };
    Step::Mount {
        fs_type,
        options: options.join(","),
        source: PathBuf::from(draft.path(&on[0])),
        on,
        point: draft.options.mount.clone(),
    }
}

fn words(start: &[&str]) -> Vec<String> {
    start.iter().map(|word| (*word).to_owned()).collect()
}

fn ext(
    draft: &mut Draft<'_>,
    filesystem: &Filesystem,
    stripe: Option<Stripe>,
    path: &str,
) -> Result<Vec<String>, PlanError> {
    let block = filesystem.block.unwrap_or(Bytes::kib(4)).0;
    let maker = format!("mkfs.{}", filesystem.kind);
    let mut words = words(&[&maker, "-F", "-q", "-b", &block.to_string(), "-U"]);
    words.push(draft.uuid());
    if let (FilesystemKind::Ext3 | FilesystemKind::Ext4, Some(size)) =
        (filesystem.kind, filesystem.journal)
    {
        words.extend(["-J".to_owned(), format!("size={}", size.0 >> 20)]);
    }
    match (filesystem.kind, filesystem.mode) {
        (FilesystemKind::Ext4, Some(JournalMode::None)) => {
            words.extend(["-O".to_owned(), "^has_journal".to_owned()]);
        }
        (FilesystemKind::Ext3, Some(JournalMode::None)) => {
            let message = "ext3 without a journal is ext2: write kind = \"ext2\"";
            return Err(PlanError(message.to_owned()));
        }
        _ => {}
    }
    // Discarding would change what members hold; initialising later would be written beside the first phases.
    let mut extended = vec!["nodiscard".to_owned()];
    if filesystem.kind == FilesystemKind::Ext4 {
        extended.push("lazy_itable_init=0".to_owned());
        extended.push("lazy_journal_init=0".to_owned());
    }
    if let Some(Stripe { chunk, data }) = stripe {
        let stride = chunk.0 / block;
        extended.push(format!("stride={stride}"));
        extended.push(format!("stripe-width={}", stride * data));
    }
    words.extend(["-E".to_owned(), extended.join(","), path.to_owned()]);
    Ok(words)
}

fn xfs(
    draft: &mut Draft<'_>,
    filesystem: &Filesystem,
    stripe: Option<Stripe>,
    path: &str,
) -> Result<Vec<String>, PlanError> {
    if filesystem.mode.is_some() {
        let message = "xfs has no journal modes";
        return Err(PlanError(message.to_owned()));
    }
    let mut words = words(&["mkfs.xfs", "-f", "-q", "-K", "-m"]);
    words.push(format!("uuid={}", draft.uuid()));
    if let Some(block) = filesystem.block {
        words.extend(["-b".to_owned(), format!("size={}", block.0)]);
    }
    if let Some(Stripe { chunk, data }) = stripe {
        words.extend(["-d".to_owned(), format!("su={},sw={data}", chunk.0)]);
    }
    if let Some(size) = filesystem.journal {
        words.extend(["-l".to_owned(), format!("size={}", size.0)]);
    }
    words.push(path.to_owned());
    Ok(words)
}

fn btrfs_words(draft: &mut Draft<'_>, filesystem: &Filesystem) -> Vec<String> {
    let mut words = words(&["mkfs.btrfs", "-f", "-q", "-K", "-U"]);
    words.push(draft.uuid());
    if let Some(block) = filesystem.block {
        words.extend(["-s".to_owned(), block.0.to_string()]);
    }
    words
}

fn no_journal(filesystem: &Filesystem) -> Result<(), PlanError> {
    if filesystem.journal.is_some() || filesystem.mode.is_some() {
        let message = format!("{} has no journal", filesystem.kind);
        return Err(PlanError(message));
    }
    Ok(())
}

/// btrfs over all members, which keeps copies and parity itself.
pub(super) fn btrfs(draft: &mut Draft<'_>) -> Result<Target, PlanError> {
    let array = &draft.setup.array;
    let missing: Vec<usize> = array.failed.iter().map(|role| usize::from(*role)).collect();
    let layout = array.layout.to_string();
    let profile = BtrfsProfile::of(&layout)
        .ok_or_else(|| PlanError(format!("btrfs has no profile like {layout}")))?;
    let bare = Filesystem {
        kind: FilesystemKind::Btrfs,
        block: None,
        journal: None,
        mode: None,
        mount_options: None,
    };
    let filesystem = draft.setup.filesystem.as_ref().unwrap_or(&bare);
    if filesystem.kind != FilesystemKind::Btrfs {
        let message = format!("{} cannot lie on an array of btrfs", filesystem.kind);
        return Err(PlanError(message));
    }
    no_journal(filesystem)?;
    // Metadata of plain data is kept twice on one disk by default: told, so that the default of a version does not
    // decide.
    let metadata = match (profile, draft.members.len()) {
        (BtrfsProfile::Single, 1) => "dup",
        _ => profile.of_metadata().name(),
    };
    let mut words = btrfs_words(draft, filesystem);
    words.extend(["-d", profile.name(), "-m", metadata].map(str::to_owned));
    let uuid = word_after(&words, "-U");
    // By then members that are replaced are whole.
    let lacks = match array.state {
        ArrayState::Degraded(_) => missing.len(),
        _ => 0,
    };
    super::check::btrfs(draft, &uuid, lacks);
    let on: Vec<Node> = (0..draft.members.len()).map(Node::Member).collect();
    let paths: Vec<String> = on.iter().map(|node| draft.path(node)).collect();
    words.extend(paths.iter().cloned());
    draft.steps.push(Step::Filesystem {
        words,
        on: on.clone(),
        kind: FilesystemKind::Btrfs,
        stripe: None,
    });
    let all = mount(
        draft,
        FilesystemKind::Btrfs,
        on.clone(),
        together(draft, &on),
    );
    let there = |node: &Node| !matches!(node, Node::Member(member) if missing.contains(member));
    let rest: Vec<Node> = on.into_iter().filter(there).collect();
    let mut options = together(draft, &rest);
    options.insert(0, "degraded".to_owned());
    let degraded = mount(draft, FilesystemKind::Btrfs, rest.clone(), options);
    if !missing.is_empty() && profile.takes(true).wide(rest.len()).is_none() {
        draft.notes.push(format!(
            "btrfs keeps what is written once: {} takes more members than are there",
            profile.name()
        ));
    }
    let fail = missing.iter().map(|member| Step::Miss {
        member: *member,
        path: PathBuf::from(&paths[*member]),
    });
    match array.state {
        ArrayState::Degraded(_) => draft.steps.extend(fail.chain([degraded])),
        ArrayState::Rebuilding(_) => {
            let point = draft.options.mount.clone();
            let member = |member: &usize| Refilled {
                member: *member,
                path: PathBuf::from(&paths[*member]),
            };
            let refill = Step::Refill {
                point: point.clone(),
                uuid,
                members: missing.iter().map(member).collect(),
                profile,
                of: paths.len(),
            };
            draft.steps.push(all);
            let convert = converted(profile, &point);
            draft.start.push(Step::Unmount { point });
            draft.start.extend(fail.chain([degraded, refill]));
            draft.fill.clone_from(&draft.start);
            draft.fill.push(convert);
        }
        _ => draft.steps.push(all),
    }
    Ok(Target::Directory(draft.options.mount.clone()))
}

/// The word that follows another.
fn word_after(words: &[String], word: &str) -> String {
    let mut rest = words.iter().skip_while(|other| *other != word).skip(1);
    rest.next().cloned().unwrap_or_default()
}

/// Chunks that were made while members were missing have fewer copies, and may lie on the new members alone, which are to fail again:
/// they become what the file system was made as.
fn converted(profile: BtrfsProfile, point: &Path) -> Step {
    let (data, metadata) = (profile.name(), profile.of_metadata().name());
    let filters = [("-d", data), ("-m", metadata), ("-s", metadata)];
    let filters = filters.map(|(of, to)| format!("{of}convert={to},soft"));
    let words = words(&["btrfs", "balance", "start", "-f"]).into_iter();
    Step::Convert {
        words: words
            .chain(filters)
            .chain([point.display().to_string()])
            .collect(),
    }
}

/// Without udev no one has told the kernel which devices belong together.
fn together(draft: &Draft<'_>, on: &[Node]) -> Vec<String> {
    let further = on.iter().skip(1);
    further
        .map(|node| format!("device={}", draft.path(node)))
        .collect()
}

/// A ZFS pool over all members.
pub(super) fn zfs(draft: &mut Draft<'_>) -> Result<Target, PlanError> {
    let array = &draft.setup.array;
    let members = draft.members.len();
    // The word before the members of each vdev, and how many they are.
    let (kind, each) = match &array.layout {
        ArrayLayout::Zfs(pool) => {
            let (_, each) = pool.vdevs_of(members);
            let kind = match pool.kind {
                VdevKind::Disk => None,
                VdevKind::Mirror => Some("mirror".to_owned()),
                VdevKind::Raidz(parity) => Some(format!("raidz{parity}")),
            };
            (kind, each.max(1))
        }
        ArrayLayout::Single => (None, 1),
        other => return Err(PlanError(format!("raidlab makes no ZFS pool like {other}"))),
    };
    let point = draft.options.mount.clone();
    let name = format!("{}{}", crate::label::POOL, draft.uuid());
    let mut words = words(&["zpool", "create", "-f", "-o", "cachefile=none"]);
    if let Some(ashift) = array.ashift {
        words.extend(["-o".to_owned(), format!("ashift={ashift}")]);
    }
    if let Some(size) = array.record_size {
        words.extend(["-O".to_owned(), format!("recordsize={}", size.0)]);
    }
    // ZFS compresses by itself since 2.2, and not before: told, so that the default of a version does not decide.
    words.extend(["-O".to_owned(), "compression=off".to_owned()]);
    words.extend(["-O".to_owned(), format!("mountpoint={}", point.display())]);
    words.push(name.clone());
    let on: Vec<Node> = (0..members).map(Node::Member).collect();
    let mut partitions = Vec::new();
    for member in 0..members {
        if member % each == 0 {
            words.extend(kind.clone());
        }
        let path = draft.members[member].path.clone();
        let id = draft.uuid();
        words.push(super::partition::node(&path.display().to_string()));
        partitions.push(Step::Partition { member, path, id });
    }
    draft.steps.extend(partitions.iter().cloned());
    super::check::pool(draft, &name);
    draft.steps.push(Step::Pool {
        words,
        name: name.clone(),
        on,
        point: point.clone(),
        ashift: array.ashift,
        record_size: array.record_size,
    });
    fail_in_pool(draft, &name, &partitions, each);
    Ok(Target::Directory(point))
}

/// Members of a pool, with so many in each vdev, that are missing, or come anew when the phases begin.
fn fail_in_pool(draft: &mut Draft<'_>, name: &str, partitions: &[Step], each: usize) {
    let array = &draft.setup.array;
    let missing: Vec<usize> = array.failed.iter().map(|role| usize::from(*role)).collect();
    let path = |member: &usize| draft.members[*member].path.clone();
    let offline: Vec<Step> = missing
        .iter()
        .map(|member| Step::Offline {
            member: *member,
            path: path(member),
            name: name.to_owned(),
        })
        .collect();
    let rebuilds = matches!(array.state, ArrayState::Rebuilding(_));
    if !rebuilds {
        draft.steps.extend(offline);
        return;
    }
    let members = missing.iter().map(|member| Refilled {
        member: *member,
        path: path(member),
    });
    let resilver = Step::Resilver {
        name: name.to_owned(),
        members: members.collect(),
        ashift: array.ashift,
        each,
    };
    draft.start.extend(offline);
    let anew = missing.iter().filter_map(|member| partitions.get(*member));
    draft.start.extend(anew.cloned());
    draft.start.push(resilver);
    draft.fill.clone_from(&draft.start);
}
