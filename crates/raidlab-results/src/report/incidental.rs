//! Settings that tell one run from another and make no other cell of it: what differs in them are repeats.
use crate::record::{Provenance, TrialRecord};
use std::collections::BTreeMap;

/// Options of fio that say how its offsets are drawn or what it logs and where, and not what it does: by their whole names.
const OF_FIO: [&str; 13] = [
    "randseed",
    "description",
    "per_job_logs",
    "status-interval",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_hist_msec",
    "log_hist_coarseness",
    "log_max_value",
    "log_offset",
    "log_store_compressed",
    "log_unix_epoch",
];

/// The settings of a trial that make its cell, by name.
pub(crate) fn deciding(trial: &TrialRecord) -> BTreeMap<String, String> {
    let Provenance::Imported { tool, .. } = &trial.provenance else {
        return trial.settings.clone();
    };
    let settings = trial.settings.iter();
    let deciding = settings.filter(|(name, _)| !is_incidental(tool, name));
    let own = |(name, value): (&String, &String)| (name.clone(), value.clone());
    deciding.map(own).collect()
}

fn is_incidental(tool: &str, name: &str) -> bool {
    match tool {
        "fio" => {
            // Options of several jobs have the job's name before them.
            let option = name.rsplit('/').next().unwrap_or(name);
            OF_FIO.contains(&option) || (option.starts_with("write_") && option.ends_with("_log"))
        }
        "elbencho" => name == "date",
        _ => false,
    }
}
