//! What the kernel says about the machine, the devices and the I/O: the evidence beside a figure.
//!
//! Text is parsed by pure functions; the reading around them is thin and takes [`Roots`], so that a recorded tree can
//! stand in for the machine. Nothing here writes to a device.
//!
//! | module | answers |
//! |---|---|
//! | [`mod@resolve`], [`stack`], [`mountinfo`] | on which mount and which block devices does a path lie |
//! | [`neighbours`] | who else takes from these devices |
//! | [`diskstats`] | what did the devices do between two times |
//! | [`cpu`] | who used the processor: we, the kernel on our behalf, others |
//! | [`cache`] | is the file in the page cache, and how to get it out, proved |
//! | [`environment`] | what did the trial run on, and what differs between two trials |
//! | [`link`] | how fast can the link be |
//! | [`attached_loops`] | which loop devices show what |
//! | [`fitness`] | is this machine fit to measure |
//! | [`Holes`] | which parts of a file is no disk read for |
//! | [`held()`] | what of this program does the kernel not let go of |
//! | [`lazyinit`] | does the kernel still write what mkfs.ext4 left out |
//! | [`evidence`] | may the figure be believed |
//! | [`safety`] | is a device in use |
//! | [`quota`] | what may this user, group, project or subvolume still write |
//! | [`privilege`] | what helps whom the kernel forbids something |

pub mod cache;
pub mod cpu;
pub mod diskstats;
pub mod environment;
mod error;
pub mod evidence;
pub mod fitness;
mod held;
mod holes;
pub mod lazyinit;
pub mod link;
mod loops;
pub mod mountinfo;
pub mod neighbours;
pub mod privilege;
pub mod quota;
pub mod resolve;
mod roots;
pub mod safety;
pub mod stack;

pub use error::{ObserveError, Result};
pub use held::held;
pub use holes::Holes;
pub use loops::{LoopBacking, LoopInfo, LoopShows, attached_loops, loop_path, loop_shows};
pub use resolve::{Backing, PathKind, Resolved, resolve};
pub use roots::{DeviceNumber, Roots};

#[cfg(test)]
#[path = "tests/neighbours.rs"]
mod neighbours_tests;
#[cfg(test)]
#[path = "tests/tree.rs"]
pub(crate) mod tree;
