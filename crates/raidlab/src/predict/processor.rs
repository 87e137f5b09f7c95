//! Processors that experiments name and nobody has described.
use raidlab_experiment::Experiment;
use raidlab_sim::catalogue::cpu::{MODELS, stand_in};

/// A sentence for each processor of the experiment of which there is no model: a figure that a processor limits is
/// another's.
pub(super) fn unmodelled(experiment: &Experiment) -> Vec<String> {
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
    use super::*;
    use crate::predict::catalogue::read;

    fn of(host: &str, kernels: &str) -> Vec<String> {
        let text = format!(
            "title = 't'\ndisks = {{ model = 'nvme-ssd', count = 2 }}\nprofile = 'random'\n[host]\n{host}\n\
             [array]\nlayout = 'raid0'\n[factors]\nkernel = {kernels}\n"
        );
        let experiment = read(&text, "x.toml", std::path::Path::new("")).unwrap();
        unmodelled(&experiment)
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
}
