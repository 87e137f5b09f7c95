//! What md writes on its members beside the data: its metadata and its bitmap.
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::kernel::Kernel;
use crate::read::key::Key;
use crate::setup::{ArrayLayout, ArrayState, Bitmap, Engine, Metadata};
use raidlab_core::units::Bytes;

/// What md writes on its members beside the data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MdForm {
    pub(super) metadata: Option<Metadata>,
    pub(super) bitmap: Option<Bitmap>,
    pub(super) bitmap_chunk: Option<Bytes>,
}

/// Least bytes of a bit of a bitmap (mdadm: "sub-page chunks don't work yet").
const LEAST_BITMAP_CHUNK: u64 = 4096;

/// `btrfs replace` is there from here on (K: the release notes of 3.8).
const REPLACE: Kernel = Kernel::Linux(3, 8, 0);
/// Since when what a missing member has of chunks with parity is put on a new one ("Btrfs: add RAID 5/6 BTRFS_RBIO_REBUILD_MISSING
/// operation"; that it is of 4.3 is from memory).
const REPLACE_OF_PARITY: Kernel = Kernel::Linux(4, 3, 0);

/// Whether btrfs has arrays in that state; told when not.
fn of_btrfs(
    problems: &Problems,
    view: &View<'_>,
    layout: &ArrayLayout,
    kernel: Kernel,
    state: ArrayState,
) -> bool {
    let copies = layout.btrfs_spare().is_some();
    let parity = layout.btrfs_parities() > 0;
    let help = match state {
        ArrayState::Clean => return true,
        ArrayState::Rebuilding(_) if copies && kernel < REPLACE => {
            "btrfs puts a new member in the place of another since Linux 3.8: use a newer kernel, or state clean or degraded"
        }
        ArrayState::Degraded(_) | ArrayState::Rebuilding(_) if copies => return true,
        ArrayState::Degraded(_) if parity => return true,
        ArrayState::Rebuilding(_) if parity && kernel < REPLACE_OF_PARITY => {
            "btrfs fills a new member from parity since Linux 4.3: use a newer kernel, or state clean or degraded"
        }
        ArrayState::Rebuilding(1) if parity => return true,
        // Looked at on 6.1 and 6.18 (docs/validation/vm-levels.md).
        ArrayState::Rebuilding(_) if parity => {
            "Linux fills two lost members of raid6 of btrfs wrongly where both had data, and tells that it went well: use rebuilding 1, degraded 2, or engine = \"md\""
        }
        ArrayState::Degraded(_) | ArrayState::Rebuilding(_) => {
            "use state clean, engine = \"md\", or a layout with copies, such as raid1"
        }
        _ if copies => {
            "btrfs writes no copy that nobody asked for, so that there is nothing to sync: use state clean, degraded or rebuilding"
        }
        _ => "btrfs has nothing to sync: use state clean",
    };
    let at = view.place(&[Key::State, Key::Failed, Key::Engine]);
    let message = format!("an array of btrfs of layout {layout} that is {state}");
    problems.wrong(&at, message, help);
    false
}

/// Metadata and bitmap of md; what the engine cannot do is told.
pub(super) fn form(
    problems: &Problems,
    view: &View<'_>,
    layout: &ArrayLayout,
    (engine, kernel): (Engine, Kernel),
    state: ArrayState,
) -> Option<MdForm> {
    if engine == Engine::Btrfs && !of_btrfs(problems, view, layout, kernel, state) {
        return None;
    }
    if engine != Engine::Md {
        return Some(MdForm::default());
    }
    let metadata = view.metadata(Key::Metadata);
    let redundant = layout.is_redundant();
    let bitmap = redundant.then(|| view.bitmap(Key::Bitmap)).flatten();
    if let Some(given) = metadata.as_ref().filter(|given| given.value.is_container()) {
        let wrong = |message: String, help: &str| {
            let problem = Diagnostic::new(given.at.clone(), message).help(help);
            problems.push(problem.also(view.place(&[Key::Layout]), "this layout"));
            None
        };
        let text = layout.to_string();
        let has: &[&str] = match given.value {
            Metadata::Imsm => &["raid0", "raid1", "raid10", "raid10-n2", "raid5-la"],
            _ => &[
                "raid0",
                "raid1",
                "raid10",
                "raid10-n2",
                "raid5",
                "raid5-ls",
                "raid5-la",
                "raid5-ra",
                "raid6-ddf-N-continue",
                "raid6-ddf-n-continue",
            ],
        };
        if !has.contains(&text.as_str()) {
            let help = match (given.value, layout.level().as_str()) {
                (Metadata::Imsm, "raid5") => "its raid5 is left-asymmetric: write raid5-la",
                (Metadata::Ddf, "raid6") => "its raid6 is written raid6-ddf-N-continue",
                _ => "use metadata 1.2, or a layout that it has",
            };
            return wrong(format!("{} has no '{text}'", given.value), help);
        }
        if bitmap.as_ref().is_some_and(|b| b.value != Bitmap::None) {
            let message = format!("no bitmap of raidlab's fits into {}", given.value);
            return wrong(message, "leave 'bitmap' out");
        }
    }
    let bitmap = bitmap.map(|b| b.value);
    let bitmap_chunk = match bitmap {
        Some(Bitmap::Internal) => bitmap_chunk(problems, view)?,
        _ => None,
    };
    Some(MdForm {
        metadata: metadata.map(|m| m.value),
        bitmap,
        bitmap_chunk,
    })
}

/// What a bit of a bitmap stands for, if that is said.
fn bitmap_chunk(problems: &Problems, view: &View<'_>) -> Option<Option<Bytes>> {
    let Some(given) = view.size(Key::BitmapChunk) else {
        return Some(None);
    };
    if given.value.0.is_power_of_two() && given.value.0 >= LEAST_BITMAP_CHUNK {
        return Some(Some(given.value));
    }
    let message = format!(
        "md needs a power of two of at least 4 KiB for a bit of its bitmap; {} is none",
        given.value
    );
    problems.wrong(&given.at, message, "write \"64MiB\", mdadm's own choice");
    None
}
