//! Layouts of disk arrays: which member sector holds which array sector, what a read and a write
//! touch, and what survives which failures.
//!
//! A [`Layout`] is a pure mapping; nothing here moves data or knows time. Its laws (the content of
//! a located sector is that sector, every member sector has exactly one content, plans never touch
//! a failed member ...) are property tests of this crate. The placements are those of Linux md, by
//! kernel source where they are not written down elsewhere (`drivers/md/{linear,raid0,raid1,
//! raid10,raid5}.c`); member sizes are the data areas, without superblock and data offset.
//!
//! | module | answers |
//! |---|---|
//! | [`layout`] | the one type to use: [`Layout`], its constructors and questions |
//! | [`types`], [`error`] | members, sets of members, places, runs of sectors; what is refused and why |
//! | [`stripe`], [`mirror`], [`parity`], [`nested`] | the mappings |
//! | [`io`], [`plan`], `parity_plan` | the member I/Os of a read or write, in steps |
//! | [`survival`] | guaranteed and best-case tolerance, exact counts, fatal patterns |
//! | [`rebuild`] | what filling a failed member reads, and how likely it meets a sector that cannot be read |
//! | [`covered`] | the parity that covers an array sector, level by level |
//! | [`spec`], [`draw`], [`describe`] | from `raid10-f2` to a layout, its drawing, its description |
//! | [`btrfs`] | the chunks of btrfs: on which members, and where |
//! | [`zfs`], [`raidz`], [`pool`] | what a block occupies on the children of a ZFS mirror and of RAID-Z, and where its columns go; pools of them |
#![forbid(unsafe_code)]

pub mod btrfs;
pub mod covered;
pub mod describe;
pub mod draw;
pub mod error;
pub mod io;
pub mod layout;
pub mod mirror;
pub mod nested;
pub mod parity;
mod parity_plan;
pub mod plan;
pub mod pool;
pub mod raidz;
pub mod rebuild;
pub mod spec;
pub mod stripe;
pub mod survival;
pub mod types;
pub mod zfs;

pub use btrfs::{Btrfs, BtrfsProfile, Dealt};
pub use error::{LayoutError, PlanError, SpecError};
pub use layout::Layout;
pub use mirror::Copies;
pub use parity::ParityAlgorithm;
pub use parity_plan::Cover;
pub use plan::{IoKind, MemberIo, Plan, Rmw, RowDecision, WriteMethod, WritePolicy};
pub use pool::{POOLS, Pool, PoolSpec, Vdev, VdevKind};
pub use raidz::Raidz;
pub use spec::{Geometry, Spec};
pub use stripe::Raid0Order;
pub use survival::{Survival, Tolerance};
pub use types::{Content, MAX_MEMBERS, Member, MemberSet, ParityKind, Place, Places, Run};
pub use zfs::ZfsMirror;
