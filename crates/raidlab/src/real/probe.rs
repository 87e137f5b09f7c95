//! `raidlab vm probe`.
use crate::commands::{print, print_json};
use crate::exit::{Failure, Outcome};
use raidlab_vm::kvm;

pub(super) fn run(json: bool) -> Result<Outcome, Failure> {
    let found = kvm::probe();
    if json {
        print_json(&found)?;
    } else {
        let use_of_it = if found.runs() {
            "Guests in real time, which are for functional work, use it; guests in virtual time never do."
        } else {
            "Guests run under translation, which gives the same figures: virtual time needs nothing else."
        };
        print(&format!("{}\n{use_of_it}\n", found.describe()))?;
    }
    Ok(Outcome::Done)
}
