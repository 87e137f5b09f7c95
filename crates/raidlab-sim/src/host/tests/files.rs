//! Data files, journals, small files.
