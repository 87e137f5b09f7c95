//! The state that a cell asks for: who fails and is replaced, what is held back, and what is checked afterwards.
use super::super::plan::{Draft, PlanError};
use super::super::step::{Node, Step};
use super::super::{check, tune};
use super::{Made, synced};
use raidlab_experiment::setup::{Array, ArrayState, Metadata};

/// Brings the arrays into the state that the cell asks for.
pub(super) fn state(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    if array.state.is_unsynced() {
        return unsynced(draft, array, made);
    }
    if synced(draft) {
        for made in made.iter().filter(|made| made.redundant) {
            draft.steps.push(Step::Sync {
                number: made.number,
            });
        }
    }
    let rebuilding = matches!(array.state, ArrayState::Rebuilding(_));
    if array.metadata == Some(Metadata::Ddf) && rebuilding && !draft.options.adds_to_ddf {
        let message = "no replacement can be put into a DDF container here: mdadm 4.2 reads through a null pointer and \
                       dies when a disk is added to one (mended in 4.3); its degraded arrays can be measured";
        return Err(PlanError(message.to_owned()));
    }
    for (number, node) in fallen_out(array, made)? {
        let container = made.iter().find(|made| made.number == number);
        let container = container.and_then(|made| made.container);
        fail(draft, number, container, &node);
        if rebuilding {
            tune::sync_speeds(draft, number);
            replace(draft, number, container, node);
        }
    }
    Ok(())
}

/// The first sync is held back until the phases begin.
fn unsynced(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    if !made.iter().any(|made| made.redundant) {
        return Err(PlanError(format!("{} has nothing to resync", array.layout)));
    }
    for made in made.iter().filter(|made| made.redundant) {
        draft.steps.push(Step::Hold {
            number: made.number,
        });
        tune::sync_speeds(draft, made.number);
        draft.start.push(Step::Release {
            number: made.number,
        });
    }
    let unknown = array.state == ArrayState::InitialSync && !draft.options.modelled;
    if unknown && made.iter().any(|made| made.reads_first) {
        draft.notes.push(format!(
            "{} writes in its initial sync what does not agree of what its members hold: where they hold zeroes, or what an array \
             of that layout left, it reads alone",
            array.layout
        ));
    }
    Ok(())
}

/// What is asked of the arrays after the phases: whether their copies and parity agree.
pub(super) fn checks(draft: &mut Draft<'_>, array: &Array, made: &[Made]) -> Result<(), PlanError> {
    let unsynced = array.state.is_unsynced().then_some(array.state);
    // A rebuild has been waited for by then.
    let out = match array.state {
        ArrayState::Degraded(_) => fallen_out(array, made)?,
        _ => Vec::new(),
    };
    for made in made {
        let lost = out.iter().filter(|(number, _)| *number == made.number);
        let (number, lost) = (made.number, lost.count());
        check::array(draft, number, made.compared, lost, unsynced);
    }
    if !made.iter().any(|made| made.redundant) {
        check::nothing_to_compare(draft);
    }
    Ok(())
}

/// What falls out of which array when the members fail that the cell names, each once.
fn fallen_out(array: &Array, made: &[Made]) -> Result<Vec<(u32, Node)>, PlanError> {
    let mut failed: Vec<(u32, Node)> = Vec::new();
    for role in &array.failed {
        let out = fails(made, &Node::Member(usize::from(*role))).ok_or_else(|| {
            PlanError(format!(
                "{} does not survive the loss of member {role}",
                array.layout
            ))
        })?;
        if !failed.contains(&out) {
            failed.push(out);
        }
    }
    Ok(failed)
}

fn fail(draft: &mut Draft<'_>, number: u32, container: Option<u32>, node: &Node) {
    let device = draft.path(node);
    let of = format!("/dev/md{number}");
    let mut words = vec!["mdadm", &of, "--fail", &device];
    if container.is_none() {
        words.extend(["--remove", &device]);
    }
    draft.steps.push(Step::Fail {
        words: words.into_iter().map(str::to_owned).collect(),
        number,
        container,
        node: node.clone(),
    });
}

/// What failed comes back as a blank device when the phases begin.
fn replace(draft: &mut Draft<'_>, number: u32, container: Option<u32>, node: Node) {
    let device = draft.path(&node);
    let clear = ["mdadm", "--zero-superblock", &device];
    let into = format!("/dev/md{}", container.unwrap_or(number));
    let words = ["mdadm", &into, "--add", &device];
    draft.start.push(Step::Replace {
        clear: clear.map(str::to_owned).to_vec(),
        words: words.map(str::to_owned).to_vec(),
        number,
        container,
        node,
    });
}

/// What falls out of which array when a device fails: an inner array without redundancy falls out of the outer one as
/// a whole.
fn fails(made: &[Made], node: &Node) -> Option<(u32, Node)> {
    let owner = made.iter().find(|made| made.on.contains(node))?;
    if owner.redundant {
        return Some((owner.number, node.clone()));
    }
    fails(made, &Node::Array(owner.number))
}
