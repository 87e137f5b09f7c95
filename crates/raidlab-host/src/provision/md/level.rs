//! What mdadm calls a level, with the options that only it has.
use super::super::check::Compared;
use super::super::plan::{Draft, PlanError};
use super::is_container;
use raidlab_core::units::Sectors;
use raidlab_experiment::setup::ArrayState;
use raidlab_layout::mirror::Raid10;
use raidlab_layout::parity::{Parity, ParityLevel};
use raidlab_layout::stripe::Raid0;
use raidlab_layout::{Layout, Raid0Order};

/// What a level is called by mdadm, with the options that only it has.
pub(super) struct Level {
    pub(super) options: Vec<String>,
    /// It can lose members and be made whole again.
    pub(super) redundant: bool,
    /// Its first sync compares, and writes what does not agree; others copy or fill, whatever is there.
    pub(super) reads_first: bool,
    /// Members can be limited to a size.
    pub(super) sized: bool,
    /// What a check of it compares.
    pub(super) compared: Option<Compared>,
}

pub(super) fn level(draft: &Draft<'_>, layout: &Layout) -> Result<Level, PlanError> {
    let (options, sized) = match layout {
        Layout::Linear(_) => (vec!["--level=linear".to_owned()], false),
        Layout::Raid0(raid0) => (raid0_options(draft, raid0)?, false),
        Layout::Raid1(_) => (vec!["--level=1".to_owned()], true),
        Layout::Parity(parity) => (parity_options(draft, parity)?, true),
        Layout::Raid10(raid10) => (raid10_options(raid10)?, true),
        _ => return Err(PlanError("mdadm cannot make this layout".to_owned())),
    };
    let compared = Compared::of(layout);
    Ok(Level {
        options,
        redundant: compared.is_some(),
        reads_first: match layout {
            Layout::Parity(parity) => parity.level() == ParityLevel::Raid6,
            layout => matches!(layout, Layout::Raid10(_)),
        },
        sized,
        compared,
    })
}

fn chunk_option(chunk: Sectors) -> Result<String, PlanError> {
    if !chunk.0.is_multiple_of(2) {
        let message = "mdadm takes chunks in KiB, and this one is no whole number of them";
        return Err(PlanError(message.to_owned()));
    }
    Ok(format!("--chunk={}", chunk.0 / 2))
}

fn raid0_options(draft: &Draft<'_>, raid0: &Raid0) -> Result<Vec<String>, PlanError> {
    let mut options = vec!["--level=0".to_owned(), chunk_option(raid0.chunk())?];
    let order = match raid0.order() {
        // There the volume has as much of each member, one zone, and mdadm refuses to be told an order.
        _ if is_container(draft) => None,
        Raid0Order::Original => Some("original"),
        // mdadm's own choice is the original one, whatever the kernel; with one zone they are the same.
        Raid0Order::Alternate if raid0.zone_starts().len() > 1 => Some("alternate"),
        Raid0Order::Alternate => None,
    };
    options.extend(order.map(|order| format!("--layout={order}")));
    Ok(options)
}

fn parity_options(draft: &Draft<'_>, parity: &Parity) -> Result<Vec<String>, PlanError> {
    let digit = match parity.level() {
        ParityLevel::Raid4 => 4,
        ParityLevel::Raid5 => 5,
        ParityLevel::Raid6 => 6,
    };
    let mut options = vec![format!("--level={digit}"), chunk_option(parity.chunk())?];
    if digit != 4 {
        options.push(format!("--layout={}", parity.algorithm().name()));
    }
    if digit < 6 && draft.setup.array.state == ArrayState::Resyncing {
        // Without it mdadm makes the last member a spare that is filled, which is a rebuild (`Create.c`, of both levels).
        options.push("--force".to_owned());
    }
    Ok(options)
}

fn raid10_options(raid10: &Raid10) -> Result<Vec<String>, PlanError> {
    let copies = raid10.copies();
    let variant = match (copies.near, copies.far, copies.offset) {
        (near, 1, _) => format!("n{near}"),
        (1, far, false) => format!("f{far}"),
        (1, far, true) => format!("o{far}"),
        _ => {
            let message = "mdadm makes near, far or offset copies, not two kinds at once";
            return Err(PlanError(message.to_owned()));
        }
    };
    let layout = format!("--layout={variant}");
    Ok(vec![
        "--level=10".to_owned(),
        layout,
        chunk_option(raid10.chunk())?,
    ])
}
