//! Real kernels in virtual machines, driven through the program. What is missing on a machine is said
//! and left out there; in CI it must run.
#[path = "../cli/lab.rs"]
#[expect(dead_code, reason = "the other tests' helpers")]
mod lab;

mod built;
mod crashes;
mod disks;
mod dying;
mod faults;
mod gates;
mod guest;
mod maps;
mod run;
mod sectors;
mod setup;
mod shell;
mod studies;
mod tools;
mod verified;
