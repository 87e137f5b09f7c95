//! Two raidlabs at once.
use crate::lab::{DD, Lab};

#[track_caller]
fn both_finish(places: [&str; 2]) {
    let lab = Lab::new();
    for place in places {
        std::fs::create_dir_all(lab.path(place)).expect("a directory");
    }
    let mut both = places.map(|place| lab.start(&format!("bench {place} -n 4 {DD}")));
    for one in &mut both {
        let status = one.end();
        assert_eq!(status.code(), Some(0), "{}", one.said());
        assert!(
            !one.said().contains("removed "),
            "a live directory was removed: {}",
            one.said()
        );
    }
    let sessions = lab.sessions();
    assert_eq!(sessions.len(), 2);
    for session in sessions {
        assert_eq!(
            (session["trials"].as_u64(), &session["state"]),
            (Some(4), &"finished".into())
        );
    }
    for place in places {
        crate::lab::assert_empty(&lab.path(place));
    }
}

#[test]
fn in_one_store() {
    both_finish(["place", "other"]);
}

#[test]
fn in_one_place() {
    both_finish(["place", "place"]);
}

/// A report is read while another process measures.
#[test]
fn readers_are_not_in_the_way() {
    let lab = Lab::new();
    let mut running = lab.start(&format!("bench place -n 12 {DD}"));
    running.wait_for("[2/12]");
    for _ in 0..5 {
        lab.run("report").done();
        lab.run("list").done();
    }
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
    assert_eq!(lab.trials().len(), 12);
}
