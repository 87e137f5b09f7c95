//! A small virtual machine: a kernel, a guest image written from this machine's programs, QEMU, and a
//! channel on which jobs go in and records come out.
