//! The kernel's request queue of one device: merging, plugging, I/O schedulers.
