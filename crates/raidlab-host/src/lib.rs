//! Block devices: what is here, whose it is, and arrays built on what may be used.
//!
//! The only crate that writes to devices that raidlab did not create, and only with a claim.
