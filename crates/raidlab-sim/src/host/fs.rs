//! What file systems do to the device: where files lie, journals, metadata, ZFS transaction groups.
