//! Predicting: experiments on modelled disks in virtual time, and what belongs to them.
pub(crate) mod arrays;
pub(crate) mod catalogue;
pub(crate) mod caution;
pub(crate) mod choose;
mod datasheet;
pub(crate) mod disk;
mod estimate;
mod figures;
mod machine;
pub(crate) mod plan;
pub(crate) mod reference;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod topology;
mod unheard;
mod unmodelled;

pub(crate) use estimate::told;
pub(crate) use figures::disk_rate;
pub(crate) use run::StoredRun;
