//! Array over queues over fabric, as one block device.
