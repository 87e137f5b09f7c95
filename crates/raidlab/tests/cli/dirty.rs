//! Limits of what may be dirty are the whole system's: set for a trial, and put back whatever ends it.
use crate::lab::{Lab, until};
use crate::real::{ON_FILES, RAW, assert_taken_apart, slowly};
use crate::root::may;
use rustix::process::Signal;

fn now(name: &str) -> String {
    let file = format!("/proc/sys/vm/{name}");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    text.trim().to_owned()
}

/// All in one test: no two runs of a machine may do this at a time.
#[test]
fn limits_of_what_may_be_dirty_are_put_back_after_a_trial_and_after_a_kill() {
    if !may("limits_of_what_may_be_dirty_are_put_back_after_a_trial_and_after_a_kill") {
        return;
    }
    let names = ["dirty_expire_centisecs", "dirty_background_ratio"];
    let before = names.map(now);
    let lab = Lab::new();
    let limits = format!(
        "{RAW}\n[host]\ndirty-expire = \"29s\"\ndirty-background = \"{}%\"\n",
        if before[1] == "9" { "8" } else { "9" }
    );
    // Calls past the page cache would leave them nothing to limit.
    let limits = limits.replace("time = ", "direct = false\ntime = ");
    lab.write("lab.toml", &limits);
    lab.run(&format!("plan lab.toml {ON_FILES}"))
        .done()
        .prints(&[
            "echo 2900 > /proc/sys/vm/dirty_expire_centisecs",
            "afterwards: setting vm.dirty_expire_centisecs back as it was",
        ]);
    slowly(&lab, &format!("run lab.toml {ON_FILES}")).done();
    assert_eq!(names.map(now), before);
    let shown = lab.run("show --json").done().json();
    let digest = shown["trials"][0]["environment"].as_str().expect("one");
    let set = &shown["environments"][digest]["memory"]["write_back"];
    assert_eq!(set["dirty_expire_centisecs"], 2900);

    lab.write("lab.toml", limits.replace("repeats = 1", "repeats = 10000"));
    let mut running = lab.start(&format!("run lab.toml {ON_FILES}"));
    until("the limit", || now(names[0]) == "2900");
    // Others that set them are told whose they are.
    let other = Lab::new();
    other.write("lab.toml", &limits);
    other
        .run(&format!("run lab.toml {ON_FILES}"))
        .refused(4)
        .says(&["settings of the system"]);
    running.signal(Signal::KILL);
    running.end();
    lab.run("clean").done();
    assert_eq!(names.map(now), before);
    assert_taken_apart(&lab);
    assert_taken_apart(&other);
}
