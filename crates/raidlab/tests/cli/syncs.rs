//! Resyncs and rebuilds, by themselves and beside a load.
use crate::lab::Lab;
use serde_json::Value;

/// A phase of the one trial of a cell.
fn phase(lab: &Lab, label: &str, name: &str) -> Value {
    let trials = lab.trials();
    let trial = trials.iter().find(|trial| trial["cell"]["label"] == label);
    let phases = trial.expect("it has run")["phases"].as_array();
    let phase = phases
        .expect("phases")
        .iter()
        .find(|phase| phase["phase"] == name);
    phase.expect("a phase").clone()
}

fn rate(phase: &Value) -> f64 {
    phase["rate"].as_f64().expect("a rate")
}

/// A new array writes what one after an unclean stop finds to agree; what it is, is said in the table of resyncs.
#[test]
fn an_initial_sync_is_slower_than_a_resync() {
    let lab = Lab::new();
    lab.write(
        "first.toml",
        "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 4 }\n[array]\nmember-size = \"256MiB\"\n\
         [profile]\nname = \"random\"\nsize = \"64MiB\"\ntime = \"1s\"\n\
         [factors]\nlayout = [\"raid6\"]\nstate = [\"resyncing\", \"initial-sync\"]\n[design]\nrepeats = 1\n",
    );
    lab.run("plan first.toml").done().prints(&["initial-sync"]);
    lab.run("run first.toml --on sim")
        .done()
        .prints(&["Resync and rebuild", "initial-sync"]);
    let rate = |label: &str| rate(&phase(&lab, label, "rebuild"));
    let [resync, first] = ["resyncing", "initial-sync"].map(rate);
    assert!(1.5 * first < resync, "{first} and {resync}");
    lab.run("run first.toml --on vm --time real")
        .refused(2)
        .says(&["the disks of a guest in real time hold zeroes"]);
}

/// What the rate is, that it is that, and where it can be changed; a higher one takes from the load and gives to the rebuild.
#[test]
fn a_controller_rebuilds_at_its_rebuild_rate() {
    let lab = Lab::new();
    lab.write(
        "card.toml",
        "title = \"t\"\ndisks = { model = \"ST3250624AS\", count = 3 }\n\
         [topology.controllers.card]\nkind = \"hardware-raid\"\nchannels = 3\n\
         [array]\nlayout = \"raid5\"\nstate = \"rebuilding 1\"\n\
         [profile]\nname = \"random\"\nread-percent = 100\ndepth = 4\ntime = \"10s\"\n\
         [factors]\nrebuild-rate = [10, 100]\n[design]\nrepeats = 1\n",
    );
    lab.run("plan card.toml")
        .done()
        .prints(&["by controller, rebuilding 1 at a rebuild rate of 10 %"]);
    lab.run("run card.toml --on sim").done().prints(&[
        "Resync and rebuild",
        "no more than its rebuild rate, here 10 % of the time",
        "rebuild-rate in [array]",
        "are the rebuild's",
    ]);
    let figures = |label: &str| {
        let rebuild = phase(&lab, label, "rebuild");
        let figures = rebuild["figures"].as_array().expect("figures");
        let loaded = figures.iter().find(|f| f["name"] == "rebuild-rate-loaded");
        let loaded = loaded.expect("beside the load")["value"].as_f64();
        let read = rate(&phase(&lab, label, "read"));
        (read, loaded.expect("a rate"), rate(&rebuild))
    };
    let [low, high] = ["rebuild-rate 10", "rebuild-rate 100"].map(figures);
    assert!(
        high.1 > 3.0 * low.1 && high.0 < 0.9 * low.0,
        "{low:?} {high:?}"
    );
    // By itself it has all of the disks at any rate.
    assert!(
        (high.2 / low.2 - 1.0).abs() < 1e-9 && high.2 > high.1,
        "{low:?} {high:?}"
    );
    lab.run("run card.toml --on vm")
        .refused(2)
        .says(&["a controller's own RAID has no kernel to run it"]);
}
