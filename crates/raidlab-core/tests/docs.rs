//! The pages of `docs/profiles` name every setting and phase that the code has.
use raidlab_core::profile::{Place, Profile, ProfileContext};
use raidlab_core::units::Bytes;

fn page(name: &str) -> String {
    let path = format!(
        "{}/../../docs/profiles/{name}.md",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn every_setting_and_phase_is_on_its_profiles_page() {
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Place::Directory {
            free: Bytes::gib(100),
        },
        writable: true,
        alignment: 4096,
    };
    for name in Profile::NAMES {
        let page = page(name);
        let profile = Profile::named(name).unwrap();
        for setting in profile.about() {
            let named = format!("`{}`", setting.key);
            assert!(
                page.contains(&named),
                "{name}.md does not name the setting {named}"
            );
        }
        let plan = profile.plan(&context).unwrap();
        for phase in &plan.phases {
            // `write-0.1gb` is described as `write-SIZE`.
            let id = match name {
                "hdbench" => format!("`{}-SIZE`", phase.id.split('-').next().unwrap()),
                _ => format!("`{}`", phase.id),
            };
            assert!(page.contains(&id), "{name}.md does not name the phase {id}");
        }
        for figure in profile.figures(&plan.phases[0], &sample()) {
            let column = figure.column.trim_start_matches("lat ");
            assert!(
                page.contains(column),
                "{name}.md does not name the column {column}"
            );
        }
    }
}

fn sample() -> raidlab_core::outcome::PhaseOutcome {
    use raidlab_core::histogram::Latencies;
    use raidlab_core::op::OpClass;
    let mut latency = Latencies::new();
    latency.record(raidlab_core::time::Span::from_millis(1));
    let mut outcome = raidlab_core::outcome::PhaseOutcome::from_tallies("x", &[]);
    outcome.elapsed = raidlab_core::time::Span::from_secs(1);
    (outcome.ops, outcome.bytes) = (1, 4096);
    outcome.latencies.push((OpClass::Read, latency));
    outcome
}
