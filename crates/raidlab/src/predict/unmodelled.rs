//! What is said beforehand of a prediction: what the simulator has no model of, but goes on without (processors and mount options),
//! and partitions that make it slow.
use raidlab_core::phase::Evidence;
use raidlab_experiment::setup::Engine;
use raidlab_experiment::{Cell, Experiment};
use raidlab_sim::catalogue::cpu::{MODELS, stand_in};
use raidlab_sim::host::fs::FsSpec;
use raidlab_sim::machine;

/// A sentence for each of them.
pub(super) fn told(experiment: &Experiment) -> Vec<String> {
    let mut told = processors(experiment);
    told.extend(mount_options(experiment));
    told.extend(partitions(experiment));
    told
}

/// Of partitions that begin within sectors of their disks, where something is written: figures of old systems are low by that.
fn partitions(experiment: &Experiment) -> Vec<String> {
    let mut told = Vec::new();
    for cell in experiment.cells.iter().filter(|cell| writes(cell)) {
        let Some(split) = machine::split(experiment, cell) else {
            continue;
        };
        let setup = &cell.setup;
        let (why, remedy) = match setup.array.member_start {
            Some(_) => ("", "A member-start of \"1MiB\" is at the beginning of one."),
            None if setup.array.engine == Engine::Controller => (
                ", as the first one does in the system's time",
                "Later systems begin at the beginning of one.",
            ),
            None => (
                ", as the first one does in the system's time",
                "member-start = \"1MiB\" in [array] has it begin where later systems do.",
            ),
        };
        let sentence = format!(
            "The partition on '{}' begins at {}{why}, which is within one of the disk's sectors of {}: what it writes in part it reads \
             first. {remedy}",
            split.disk, split.start, split.sector
        );
        if !told.contains(&sentence) {
            told.push(sentence);
        }
    }
    told
}

fn writes(cell: &Cell) -> bool {
    let setup = &cell.setup;
    let plan = setup.profile.plan(&setup.context(512));
    plan.is_ok_and(|plan| {
        let mut phases = plan.phases.iter();
        phases.any(|phase| matches!(phase.evidence, Evidence::WritesReachDevice | Evidence::Both))
    })
}

/// Of mount options that change nothing here, whatever they do on a real kernel: cells that differ in them alone come out alike.
fn mount_options(experiment: &Experiment) -> Vec<String> {
    let mut told = Vec::new();
    for filesystem in experiment
        .cells
        .iter()
        .filter_map(|c| c.setup.filesystem.as_ref())
    {
        let options = filesystem.mount_options.iter().flat_map(|o| o.split(','));
        for option in options
            .map(str::trim)
            .filter(|option| !FsSpec::knows(filesystem.kind, option))
        {
            let sentence = format!(
                "There is no model of the mount option '{option}' of {}: nothing predicted depends on it. With --on vm and --on host it \
                 is given to mount.",
                filesystem.kind
            );
            if !told.contains(&sentence) {
                told.push(sentence);
            }
        }
    }
    told
}

/// A figure that a processor without a model limits is another's.
fn processors(experiment: &Experiment) -> Vec<String> {
    let mut told = Vec::new();
    for cell in &experiment.cells {
        let host = &cell.setup.host;
        let name = host.cpu.as_deref();
        let (Some(name), Some(like)) = (name, stand_in(name, host.kernel)) else {
            continue;
        };
        let known: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
        let sentence = format!(
            "There is no model of the processor '{name}': '{like}' stands in for it, at the clock that its name or \
             cpu-mhz tells. Known: {}.",
            known.join(", ")
        );
        if !told.contains(&sentence) {
            told.push(sentence);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use crate::predict::catalogue::read;

    fn of(host: &str, kernels: &str) -> Vec<String> {
        let text = format!(
            "title = 't'\ndisks = {{ model = 'ST3250624AS', count = 2 }}\nprofile = 'random'\n[host]\n{host}\n\
             [array]\nlayout = 'raid0'\n[factors]\nkernel = {kernels}\n"
        );
        let experiment = read(&text, "x.toml", std::path::Path::new("")).unwrap();
        super::told(&experiment)
    }

    #[test]
    fn a_processor_without_a_model_is_told_once() {
        let told = of("cpu = 'Pentium 9'", "['6.1', '5.10']");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("'Pentium 9': 'modern' stands in"),
            "{told:?}"
        );
        assert!(
            told[0].contains("Athlon 64 X2 3800+, Pentium D 2.8 GHz"),
            "{told:?}"
        );
        // Another time, another stand-in.
        assert_eq!(of("cpu = 'Pentium 9'", "['6.1', '2.6.16']").len(), 2);
        assert!(of("cpu = 'modern'", "['6.1', '5.10']").is_empty());
        assert!(of("cores = 2", "['6.1', '5.10']").is_empty());
    }

    #[test]
    fn mount_options_that_change_nothing_here_are_told_once() {
        let of = |kind: &str, options: &str| {
            let text = format!(
                "title = 't'\ndisks = {{ model = 'sata-ssd', count = 2 }}\nprofile = 'random'\n[filesystem]\nkind = '{kind}'\n\
                 mount-options = '{options}'\n[factors]\nlayout = ['raid0', 'raid1']\n"
            );
            super::told(&read(&text, "x.toml", std::path::Path::new("")).unwrap())
        };
        let told = of("ext4", "noatme, commit=60,data=journal,barrier=0");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("'noatme' of ext4"), "{told:?}");
        assert!(told[1].contains("'commit=60'"), "{told:?}");
        assert!(of("xfs", "defaults,noatime").is_empty());
        assert_eq!(of("xfs", "data=journal").len(), 1);
    }

    #[test]
    fn partitions_within_sectors_are_told_where_something_is_written() {
        let of = |model: &str, array: &str, kernels: &str, profile: &str| {
            let text = format!(
                "title = 't'\ndisks = {{ model = '{model}', count = 2 }}\n[profile]\n{profile}\n[array]\nlayout = 'raid0'\n{array}\n\
                 [factors]\nkernel = {kernels}\n"
            );
            super::told(&read(&text, "x.toml", std::path::Path::new("")).unwrap())
        };
        let both = "name = 'random'";
        let told = of("ST3000DM001", "", "['2.6.18', '2.6.32', '6.1']", both);
        assert_eq!(
            told,
            [
                "The partition on 'disk0' begins at 31.5 KiB, as the first one does in the system's time, which is within one of the \
                 disk's sectors of 4 KiB: what it writes in part it reads first. member-start = \"1MiB\" in [array] has it begin where \
                 later systems do."
            ]
        );
        let given = of("ST3000DM001", "member-start = '31.5KiB'", "['6.1']", both);
        assert!(given[0].contains("31.5 KiB, which is within"), "{given:?}");
        let none: [Vec<String>; 3] = [
            of("ST3000DM001", "", "['2.6.33', '6.1']", both),
            of("ST3250624AS", "", "['2.6.18']", both),
            of(
                "ST3000DM001",
                "",
                "['2.6.18']",
                "name = 'random'\nread-percent = 100",
            ),
        ];
        assert!(none.iter().all(Vec::is_empty), "{none:?}");
    }
}
