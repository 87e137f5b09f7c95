//! Modelled disks as block devices: the NBD protocol, a sparse content store, and servers that keep the
//! models' time.
