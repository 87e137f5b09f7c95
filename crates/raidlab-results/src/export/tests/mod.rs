mod csv;
mod jsonl;
mod schema;

use crate::record::Status;
use crate::store::tests::samples::{environment, full_trial, planned, session, trial};
use crate::store::{Bundle, environment_digest};

/// A bundle with everything that an export can have.
fn bundle() -> Bundle {
    let digest = environment_digest(&environment());
    let mut first = full_trial("a", 0);
    first.environment = Some(digest.clone());
    let mut failed = trial("b", 0);
    failed.status = Status::Failed {
        reason: "no, \"it\" broke\nat once".to_owned(),
    };
    failed.phases.clear();
    failed.started = None;
    Bundle {
        sessions: vec![planned("a"), session("b")],
        environments: [(digest, environment())].into(),
        trials: vec![first, trial("a", 1), failed],
    }
}
