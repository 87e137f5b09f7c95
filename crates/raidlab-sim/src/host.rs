//! Processes, CPU, page cache, read-ahead, write-back and file systems.
pub mod fs;
