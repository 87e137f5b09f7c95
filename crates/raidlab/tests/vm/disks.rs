//! Modelled disks as a guest's kernel sees them.
use crate::guest;
use crate::lab::Lab;
use serde_json::Value;

/// The phases of `vm disks`.
fn phases(lab: &Lab, line: &str) -> Vec<Value> {
    let shown = guest::run(lab, &format!("vm disks {line} --json"))
        .done()
        .json();
    assert!(guest::left(lab).is_empty());
    shown["phases"].as_array().expect("phases").clone()
}

fn number(phase: &Value, key: &str) -> f64 {
    phase[key].as_f64().expect("a number")
}

/// The program is not optimised in a test, and the guest counts its instructions: 1 % is for the release.
#[test]
fn the_guest_sees_disks_as_fast_as_the_models_are() {
    if !guest::may("the_guest_sees_disks_as_fast_as_the_models_are") {
        return;
    }
    let lab = Lab::new();
    let line = "ST3250624AS -n 2 --sequential 24 --random 400 --size 256MiB";
    for phase in phases(&lab, line) {
        let cached = phase["write"] == true && phase["random"] == true;
        let (apart, most) = (
            number(&phase, "apart_percent"),
            if cached { 25.0 } else { 6.0 },
        );
        assert!(apart.abs() < most, "{phase:#}");
        assert!(number(&phase, "server_cpu_share") < 0.9, "{phase:#}");
    }
}

#[test]
fn drives_of_one_channel_take_turns_in_the_guest() {
    if !guest::may("drives_of_one_channel_take_turns_in_the_guest") {
        return;
    }
    let lab = Lab::new();
    let random = |topology: &str| {
        let line = format!("ST340015A -n 2 --topology {topology} --sequential 4 --random 200");
        let phases = phases(&lab, &line);
        number(&phases[2], "guest_per_second")
    };
    let (shared, apart) = (random("pata:2"), random("pata:1+1"));
    assert!(apart > 1.6 * shared, "{apart} against {shared}");
}

#[test]
fn what_does_not_fit_into_a_guest_is_refused() {
    let lab = Lab::new();
    guest::run(&lab, "vm disks ST3250624AS -n 16 --size 1GiB")
        .refused(2)
        .says(&["do not fit into a guest", "--size"]);
    guest::run(&lab, "vm disks usb-stick")
        .refused(2)
        .says(&["no disk of the catalogue"]);
}
