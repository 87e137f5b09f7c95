//! Parts of experiments: cells by patterns of their names, and how much of each disk is used.
use crate::exit::Failure;
use raidlab_core::units::Bytes;
use raidlab_experiment::experiment::Baseline;
use raidlab_experiment::{Cell, Experiment};

/// Whether a name fits a pattern with `*` and `?`; without either, whether it contains it. Case does not
/// matter.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    if !pattern.contains(['*', '?']) {
        return name.contains(&pattern);
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Places of the name that the pattern so far can have led to.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for c in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match c {
                '*' => reached[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && reached[at - 1],
                c => at > 0 && reached[at - 1] && name[at - 1] == c,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

/// Leaves out the cells that are not wanted, and what the experiment says of them: a baseline that is not
/// there is none.
pub(crate) fn keep(experiment: &mut Experiment, wanted: impl Fn(&Cell) -> bool) {
    experiment.cells.retain(wanted);
    let cells = &experiment.cells;
    let there = |baseline: &Baseline| match baseline {
        Baseline::Cell(label) => cells.iter().any(|cell| cell.label == *label),
        Baseline::Levels(levels) => {
            let has = |cell: &Cell| {
                levels
                    .iter()
                    .all(|(name, is)| cell.levels.get(name) == Some(is))
            };
            cells.iter().any(has)
        }
    };
    experiment.design.baseline = experiment.design.baseline.take().filter(there);
    if let Some(expected) = &mut experiment.expected {
        let there = |label: &String| cells.iter().any(|cell| cell.label == *label);
        expected.rows.retain(|_, label| there(label));
    }
}

/// Leaves the cells whose label fits.
pub(crate) fn only(experiment: &mut Experiment, pattern: Option<&str>) -> Result<(), Failure> {
    let Some(pattern) = pattern else {
        return Ok(());
    };
    keep(experiment, |cell| matches(pattern, &cell.label));
    if experiment.cells.is_empty() {
        return Err(Failure::bad_request(format!("no cell matches '{pattern}'"))
            .remedy("'raidlab plan FILE --all' lists them; * and ? stand for anything"));
    }
    Ok(())
}

/// Has every cell use only so much of each disk, and hold accordingly less.
pub(crate) fn members(experiment: &mut Experiment, size: Option<Bytes>) -> Result<(), Failure> {
    let Some(size) = size else {
        return Ok(());
    };
    if let Some(cell) = experiment
        .cells
        .iter()
        .find(|cell| cell.levels.contains_key("member-size"))
    {
        let message = format!("the experiment varies the size of members ({})", cell.label);
        return Err(Failure::bad_request(message)
            .remedy("leave --member-size out, or choose cells with --only"));
    }
    for cell in &experiment.cells {
        let array = &cell.setup.array;
        let members = array
            .members
            .iter()
            .filter_map(|name| experiment.disk(name));
        let begins = array.member_start.unwrap_or_default();
        let beyond = |has: Bytes| has.0.saturating_sub(begins.0) < size.0;
        let mut small =
            members.filter_map(|disk| Some((disk, disk.capacity.filter(|has| beyond(*has))?)));
        if let Some((disk, has)) = small.next() {
            let message = match array.member_start {
                None => format!(
                    "--member-size {size} is more than the {has} of {}",
                    disk.name
                ),
                Some(start) => format!(
                    "--member-size {size} from {start} on ({}) goes beyond the {has} of {}",
                    cell.label, disk.name
                ),
            };
            return Err(Failure::bad_request(message).remedy("use less of each disk"));
        }
    }
    for cell in &mut experiment.cells {
        let resized = cell.setup.array.use_of_members(size);
        resized.map_err(|error| {
            Failure::bad_request(format!("--member-size {size}: {}: {error}", cell.label))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::catalogue;

    #[test]
    fn names_are_chosen_by_patterns() {
        for (pattern, fits) in [
            ("md raid0", true),
            ("MD", true),
            ("bios", false),
            ("md*disk", true),
            ("*disk", true),
            ("md*channel", false),
            ("md raid? 1 disk", true),
            ("*", true),
            ("", true),
        ] {
            assert_eq!(matches(pattern, "md raid0 1 disk"), fits, "{pattern}");
        }
    }

    #[test]
    fn what_is_said_of_cells_goes_with_them() {
        let study = || {
            catalogue::of_study("pata-raid0")
                .expect("it is read")
                .expect("it is there")
        };
        let mut without = study();
        only(&mut without, Some("*2 disks, ? channel*")).expect("some are left");
        let labels: Vec<&str> = without
            .cells
            .iter()
            .map(|cell| cell.label.as_str())
            .collect();
        assert_eq!(labels.len(), 4, "{labels:?}");
        assert_eq!(without.design.baseline, None, "one disk is not among them");
        let rows = without.expected.expect("a study").rows;
        assert!(rows.values().all(|label| labels.contains(&label.as_str())));
        let mut with = study();
        only(&mut with, Some("md*")).expect("some are left");
        assert_eq!(
            (with.cells.len(), with.design.baseline.is_some()),
            (6, true)
        );
        assert_eq!(
            only(&mut with, Some("bios")).expect_err("none").code(),
            crate::exit::BAD_REQUEST
        );
    }

    #[test]
    fn members_are_as_large_as_is_asked_for() {
        let mut experiment = catalogue::of_study("sata-md-levels")
            .expect("read")
            .expect("there");
        members(&mut experiment, Some(Bytes::gib(1))).expect("they are not varied");
        let sizes = experiment
            .cells
            .iter()
            .map(|cell| cell.setup.array.member_size);
        assert!(sizes.into_iter().all(|size| size == Some(Bytes::gib(1))));
        // What an array holds is what it holds of that.
        let held = experiment.cells.iter().map(|cell| {
            let array = &cell.setup.array;
            (array.capacity, array.members.len() as u64)
        });
        for (capacity, members) in held {
            let capacity = capacity.expect("it is known");
            assert!(capacity <= Bytes::gib(members), "{capacity} of {members}");
        }
        let error = members(&mut experiment, Some(Bytes::gib(4096))).expect_err("too large");
        assert!(
            error
                .message
                .contains("--member-size 4 TiB is more than the"),
            "{}",
            error.message
        );
    }
}
