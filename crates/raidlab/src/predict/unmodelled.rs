//! What experiments name and the simulator has no model of, but goes on without: processors and mount options.
use raidlab_experiment::Experiment;
use raidlab_sim::catalogue::cpu::{MODELS, stand_in};
use raidlab_sim::host::fs::FsSpec;

/// A sentence for each of them.
pub(super) fn told(experiment: &Experiment) -> Vec<String> {
    let mut told = processors(experiment);
    told.extend(mount_options(experiment));
    told
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
            "title = 't'\ndisks = {{ model = 'nvme-ssd', count = 2 }}\nprofile = 'random'\n[host]\n{host}\n\
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
}
