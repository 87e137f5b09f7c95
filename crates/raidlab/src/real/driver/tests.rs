use super::*;
use raidlab_core::profile::{Place as Where, ProfileContext};
use raidlab_core::units::Bytes;
use raidlab_host::provision::Stage;
use raidlab_io::run::RunProgress;
use std::io::Write as _;

/// What the tool of a profile said in a directory, and what was heard of its phases; `None` where it is not installed.
fn ran(profile: &Profile) -> Option<(Said, Vec<(String, u32)>)> {
    if check(profile).is_err() {
        let name = profile.name();
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED the tool of {name}: not installed"
        );
        assert!(std::env::var_os("CI").is_none());
        return None;
    }
    // A home directory may have a space in its name.
    let directory = tempfile::Builder::new().prefix("of a tool").tempdir();
    let directory = directory.expect("a directory");
    let place = Place::open(directory.path()).expect("a place");
    let context = ProfileContext {
        memory: Bytes::gib(1),
        place: Where::Directory {
            free: Bytes::gib(100),
        },
        writable: true,
        alignment: 512,
    };
    let plan = profile.plan(&context).expect("a plan");
    let ground = Ground {
        plan: &plan,
        place: &place,
        options: &RunOptions::new(u64::MAX - 1),
        busy: false,
        guest: false,
    };
    let mut heard = Heard::default();
    let said = run(profile, &ground, &mut heard).expect("it runs");
    Some((said, heard.0))
}

/// Of each phase that began, the title and how often its tool was said to begin or end.
#[derive(Default)]
struct Heard(Vec<(String, u32)>);

impl Watch for Heard {
    fn stage(&mut self, _: &Stage) {}
    fn phase(&mut self, _: usize, _: usize, title: &str) {
        self.0.push((title.to_owned(), 0));
    }
    fn tick(&mut self, _: &RunProgress) {}
    fn at_work(&mut self) {
        self.0.last_mut().expect("a phase has begun").1 += 1;
    }
}

/// The phases that a tool told of, in order.
fn names(said: &Said) -> Vec<&str> {
    let phases = said.phases.iter();
    phases.map(|phase| phase.phase.as_str()).collect()
}

#[test]
fn dd_writes_and_reads_twice() {
    let mut profile = Profile::named("dd").expect("dd");
    profile.set("count", "4").expect("set");
    let (said, heard) = ran(&profile).expect("dd is everywhere");
    // Who listens can tell how busy the processor was in each.
    let wanted = [
        "Write, first pass",
        "Read, first pass",
        "Write, second pass",
        "Read, second pass",
    ];
    assert_eq!(heard, wanted.map(|title| (title.to_owned(), 2)));
    let names = names(&said);
    assert_eq!(
        names,
        ["write-first", "read-first", "write", "read"],
        "{}",
        said.text
    );
    assert!(said.phases.iter().all(|phase| phase.bytes == Some(4 << 20)));
    assert!(matches!(said.provenance, Provenance::Imported { ref tool, .. } if tool == "dd"));
}

#[test]
fn bonnie_itself_gives_the_phases_of_its_profile() {
    let mut profile = Profile::named("bonnie").expect("bonnie");
    for (name, value) in [("size", "16MiB"), ("files", "0"), ("fast", "yes")] {
        profile.set(name, value).expect("set");
    }
    let Some((said, _)) = ran(&profile) else {
        return;
    };
    let names = names(&said);
    for wanted in ["block-write", "rewrite", "block-read", "seeks"] {
        assert!(names.contains(&wanted), "{names:?}");
    }
}

#[test]
fn fio_itself_gives_the_phases_of_random_and_sequential() {
    let cases = [
        ("random", "depth=1", "read write"),
        (
            "random",
            "read-percent=70 jobs=2 depth=4 direct=no",
            "mixed mixed: read mixed: write",
        ),
        ("sequential", "block=64KiB", "read write"),
    ];
    for (name, settings, wanted) in cases {
        let mut profile = Profile::named(name).expect(name);
        for setting in settings.split(' ').chain(["size=8MiB", "total=4MiB"]) {
            let (setting, value) = setting.split_once('=').expect("a setting");
            profile.set(setting, value).expect("set");
        }
        let Some((said, _)) = ran(&profile) else {
            return;
        };
        let names = names(&said);
        assert_eq!(names.join(" "), wanted, "{}", said.text);
        for phase in &said.phases {
            if phase.whole().is_none() {
                assert_eq!(phase.bytes, Some(4 << 20), "{phase:#?}");
            }
            assert!(phase.rate.is_some_and(|rate| rate > 0.0));
            let latency = phase.latency.as_ref().expect("response times");
            assert_eq!(Some(latency.count()), phase.ops);
        }
        assert!(matches!(said.provenance, Provenance::Imported { ref tool, .. } if tool == "fio"));
        assert!(said.text.contains("+ fio --output-format=json+"));
    }
}

#[test]
fn a_profile_without_a_tool_is_told() {
    let failure = check(&Profile::named("hdbench").expect("hdbench")).expect_err("none");
    assert_eq!(failure.code(), BAD_REQUEST);
}
