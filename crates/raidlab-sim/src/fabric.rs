//! Channels, links, buses, host adapters and hardware RAID controllers.
