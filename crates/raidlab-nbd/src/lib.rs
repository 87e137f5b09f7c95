//! Modelled disks as block devices: the NBD protocol, a sparse content store, and servers that keep the
//! models' time.
//!
//! | module | holds |
//! |---|---|
//! | [`wire`] | messages of the protocol, to and from bytes |
//! | [`session`] | one connection of a server as a state machine: bytes in, requests and replies out |
//! | [`client`] | the other end, over anything that reads and writes |
//! | [`store`] | what is on the disks: in memory, in a file, in memory hidden from a kernel |
//! | [`engine`] | requests on the ports of a fabric, in whatever time the caller keeps |
//! | [`server`] | the same in the time that passes outside, over UNIX sockets and loopback TCP |
//! | [`guest`] | the same as block devices of the kernel that raidlab runs on, in its (virtual) time |
//!
//! `wire` and `session` know no sockets, clocks or threads, so that they can be tested and fuzzed with
//! nothing but bytes.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod client;
pub mod engine;
pub mod guest;
pub mod server;
pub mod session;
pub mod store;
pub mod wire;
