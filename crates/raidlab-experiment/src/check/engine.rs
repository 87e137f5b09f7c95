//! Who makes the array of a cell: what is given, or what its members and layout come to.
use super::members::Chosen;
use super::place::Hardware;
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::ControllerKind;
use crate::kernel::Kernel;
use crate::read::key::Key;
use crate::setup::{ArrayLayout, Engine};
use raidlab_layout::{BtrfsProfile, POOLS};

pub(super) fn engine(
    problems: &Problems,
    hardware: &Hardware,
    view: &View<'_>,
    layout: &ArrayLayout,
    chosen: &Chosen,
) -> Option<Engine> {
    let on: Vec<&str> = chosen
        .disks
        .iter()
        .map(|i| hardware.disks[*i].controller.as_str())
        .collect();
    let first = on
        .first()
        .and_then(|name| hardware.controllers.iter().find(|c| c.name == *name));
    let one = on.iter().all(|name| Some(name) == on.first());
    let own_raid = one && first.is_some_and(|c| c.own_raid);
    let raid_card = one && first.is_some_and(|c| c.kind == ControllerKind::HardwareRaid);
    let given = view.engine(Key::Engine);
    let fallback = match layout {
        ArrayLayout::Zfs(_) => Engine::Zfs,
        layout if layout.is_of_btrfs() => Engine::Btrfs,
        _ if raid_card => Engine::Controller,
        ArrayLayout::Single => Engine::None,
        ArrayLayout::Fixed(..) => Engine::Md,
    };
    let Some(given) = given else {
        return Some(fallback);
    };
    let wrong = |message: String, help: &str| {
        let layout_at = view.place(&[Key::Layout]);
        let problem = Diagnostic::new(given.at.clone(), message).help(help);
        problems.push(problem.also(layout_at, "this layout"));
        None
    };
    match (layout, given.value) {
        (layout, other) if layout.is_of_btrfs() && other != Engine::Btrfs => wrong(
            format!("{layout} is an array of btrfs, not of engine '{other}'"),
            "write engine = \"btrfs\", or drop it; md's raid1 has a copy on each of its members",
        ),
        (ArrayLayout::Single, Engine::Md) => Some(Engine::None),
        (ArrayLayout::Single, Engine::Zfs | Engine::Btrfs | Engine::None)
        | (ArrayLayout::Zfs(_), Engine::Zfs)
        | (ArrayLayout::Fixed(..), Engine::Md) => Some(given.value),
        (ArrayLayout::Single | ArrayLayout::Fixed(..), Engine::Controller) if own_raid => {
            Some(Engine::Controller)
        }
        (ArrayLayout::Fixed(_, text), Engine::Btrfs) if BtrfsProfile::of(text).is_some() => {
            Some(Engine::Btrfs)
        }
        (ArrayLayout::Fixed(_, text), Engine::Btrfs) => wrong(
            format!("btrfs has no profile like '{text}'"),
            "it has linear, raid0, raid1, raid1c3, raid1c4, raid10, raid5 and raid6",
        ),
        (ArrayLayout::Zfs(pool), other) => wrong(
            format!("{pool} is an array of ZFS, not of engine '{other}'"),
            "write engine = \"zfs\", or drop it",
        ),
        (_, Engine::Controller) if !one => wrong(
            "the members sit on several controllers, and one makes the array".to_owned(),
            "choose members of one controller, or engine = \"md\"",
        ),
        (_, Engine::Controller) => wrong(
            format!(
                "controller '{}' has no RAID of its own",
                first.map_or("", |c| c.name.as_str())
            ),
            "write own-raid = true in its section, or engine = \"md\"",
        ),
        (layout, other) => wrong(
            format!("engine '{other}' has no layout '{layout}'"),
            &format!("use engine = \"md\" or \"controller\", or a layout of ZFS: {POOLS}"),
        ),
    }
}

/// Whether the system has the engine with that layout; told when not.
pub(super) fn has_engine(
    problems: &Problems,
    view: &View<'_>,
    kernel: Kernel,
    (engine, layout): (Engine, &ArrayLayout),
) -> Option<()> {
    let linux = kernel != Kernel::Windows2000;
    if let Some((since, help)) = btrfs_since(engine, layout).filter(|_| linux)
        && kernel < since
    {
        let at = view.place(&[Key::Layout]);
        let message = match layout.is_of_btrfs() {
            true => format!("kernel {kernel} has no {layout}"),
            false => format!("kernel {kernel} has no {layout} of btrfs"),
        };
        let problem = Diagnostic::new(at, message);
        let problem = problem.also(view.place(&[Key::Kernel]), "this system");
        problems.push(problem.help(help));
        return None;
    }
    if linux || !matches!(engine, Engine::Md | Engine::Zfs | Engine::Btrfs) {
        return Some(());
    }
    let at = view.place(&[Key::Engine, Key::Layout]);
    let problem = Diagnostic::new(at, format!("{kernel} has no {engine}"));
    let problem = problem.also(view.place(&[Key::Kernel]), "this system");
    problems.push(problem.help("put the disks on a hardware-raid controller"));
    None
}

/// Since when btrfs has a layout that it has not always had, and what to say of it (K: the release notes).
fn btrfs_since(engine: Engine, layout: &ArrayLayout) -> Option<(Kernel, &'static str)> {
    match layout.level().as_str() {
        _ if layout.is_of_btrfs() => Some((
            Kernel::Linux(5, 5, 0),
            "btrfs keeps three and four copies since Linux 5.5",
        )),
        _ if engine != Engine::Btrfs => None,
        "raid5" => Some((
            Kernel::Linux(3, 9, 0),
            "btrfs has parity since Linux 3.9; use engine = \"md\"",
        )),
        "raid6" => Some((
            Kernel::Linux(5, 5, 0),
            "its metadata are kept three times, as btrfs(5) wants them, which it does since Linux 5.5; use engine = \"md\"",
        )),
        _ => None,
    }
}
