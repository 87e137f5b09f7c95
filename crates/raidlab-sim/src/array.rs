//! md arrays: splitting, read balancing, stripe cache, resync and rebuild.
