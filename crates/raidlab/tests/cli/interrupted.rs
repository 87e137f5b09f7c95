//! Ctrl-C, SIGTERM and `kill -9` in the middle of a trial: clean, and no finished trial is lost.
use crate::lab::{DD, Lab, Running, names, until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

/// Four trials of about a second each: longer than a busy machine keeps a test waiting.
const LINE: &str = "bench place -n 4 --profile random --size 4MiB --read 100 --runtime 900ms";

/// A session in the middle of its second trial.
fn in_the_middle(lab: &Lab, line: &str) -> Running {
    let mut running = lab.start(line);
    running.wait_for("[1/4]");
    until("the second trial", || !names(&lab.place()).is_empty());
    std::thread::sleep(Duration::from_millis(200));
    running
}

/// The session is there with one trial; brought to its end it has exactly those that were planned.
#[track_caller]
fn can_be_resumed(lab: &Lab) {
    let sessions = lab.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["state"], "unfinished");
    let before = lab.trials();
    assert!((1..4).contains(&before.len()), "{}", before.len());
    let id = sessions[0]["id"].as_str().expect("an id");
    lab.run(&format!("bench --resume {}", &id[..6]))
        .done()
        .says(&["going on with session", "[4/4]"]);
    let after = lab.trials();
    let rounds: Vec<_> = after.iter().map(|t| t["round"].as_u64()).collect();
    assert_eq!(
        rounds,
        [Some(0), Some(1), Some(2), Some(3)],
        "each planned trial once"
    );
    let ids: BTreeSet<_> = after.iter().map(|t| t["id"].as_str()).collect();
    assert_eq!(ids.len(), 4);
    let orders: BTreeSet<_> = after.iter().map(|t| t["order"].as_u64()).collect();
    assert_eq!(orders.len(), 4);
    assert_eq!(
        after[..before.len()],
        before[..],
        "finished trials stay as they were"
    );
    assert_eq!(lab.sessions()[0]["state"], "finished");
    lab.run("bench --resume")
        .refused(2)
        .says(&["no unfinished session"]);
    lab.assert_clean();
}

#[track_caller]
fn ends_cleanly(signal: Signal) {
    let lab = Lab::new();
    let mut running = in_the_middle(&lab, LINE);
    let asked = Instant::now();
    running.signal(signal);
    let status = running.end();
    let took = asked.elapsed();
    let said = running.said();
    assert_eq!(status.code(), Some(130), "{said}");
    // At once, but other tests run beside this one.
    assert!(took < Duration::from_secs(15), "it took {took:?}");
    assert!(
        said.contains("interrupted; finished trials are kept") && said.contains("--resume"),
        "{said}"
    );
    lab.assert_clean();
    assert_eq!(
        names(&lab.path(""))
            .iter()
            .filter(|n| n.contains("journal"))
            .count(),
        0
    );
    can_be_resumed(&lab);
}

#[test]
fn control_c() {
    ends_cleanly(Signal::INT);
}

#[test]
fn terminated() {
    ends_cleanly(Signal::TERM);
}

/// `timeout` signals what it has started, and then all that it has started, itself too.
#[test]
fn a_signal_that_comes_twice_at_a_time_is_one() {
    for signal in [Signal::INT, Signal::TERM] {
        let lab = Lab::new();
        let mut running = in_the_middle(&lab, LINE);
        for _ in 0..3 {
            if running.is_running() {
                running.signal(signal);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(running.end().code(), Some(130), "{}", running.said());
        let said = running.said();
        assert!(
            said.contains("interrupted; finished trials are kept"),
            "{said}"
        );
        lab.assert_clean();
    }
}

#[test]
fn control_c_while_the_data_is_prepared() {
    let lab = Lab::new();
    let mut running = lab.start("bench place -n 1 --profile random --size 2GiB --runtime 100ms");
    let data = || {
        names(&lab.place())
            .iter()
            .any(|d| lab.place().join(d).join("data-0").exists())
    };
    until("the data file", || data() || !running.is_running());
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    lab.assert_clean();
    // Of nothing there is nothing to go on with.
    let said = running.said();
    assert!(
        said.contains("interrupted before the first trial ended; nothing was kept"),
        "{said}"
    );
    assert_eq!(lab.sessions().len(), 0);
}

#[test]
fn control_c_before_the_first_trial() {
    let lab = Lab::new();
    let mut running = lab.start(&format!("bench place -n 4 {DD}"));
    running.wait_for("arm to measure");
    // Signals are listened to since before that; the machine is watched for a second.
    std::thread::sleep(Duration::from_millis(100));
    running.signal(Signal::INT);
    let status = running.end();
    assert_eq!(status.code(), Some(130), "{}", running.said());
    lab.assert_clean();
}

/// What a thread blocks, all that it starts would block, too: a tool that hangs could not be asked to end, and would not hear that
/// raidlab has been killed. The first thread has the signals, and does nothing that the kernel could hold it in.
#[test]
fn no_thread_blocks_signals_and_the_first_only_waits() {
    let lab = Lab::new();
    let mut running = in_the_middle(&lab, LINE);
    let of = |file: &str| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", running.id())).into_iter();
        let texts = tasks.flatten().flatten();
        let read = texts.filter_map(|task| std::fs::read_to_string(task.path().join(file)).ok());
        read.collect::<Vec<_>>()
    };
    let blocked = of("status");
    let blocked: Vec<u64> = blocked
        .iter()
        .filter_map(|text| text.lines().find_map(|line| line.strip_prefix("SigBlk:")))
        .filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .collect();
    assert!(blocked.len() > 1, "{blocked:?}");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let bit = 1 << (signal.as_raw() - 1);
        assert!(blocked.iter().all(|mask| mask & bit == 0), "{blocked:x?}");
    }
    let waits = std::fs::read_to_string(format!("/proc/{0}/task/{0}/wchan", running.id()));
    let waits = waits.unwrap_or_default();
    assert!(
        ["", "0"].contains(&waits.as_str()) || waits.contains("futex"),
        "{waits}"
    );
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
}

/// `nohup`: whoever started it wants it to outlive the terminal.
#[test]
fn a_hangup_that_is_to_be_ignored_is() {
    let lab = Lab::new();
    let line = "bench place -n 1 --profile random --size 4MiB --runtime 1s";
    let plain = lab.command(line);
    let mut command = Command::new("sh");
    lab.settle(&mut command);
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    command.arg(plain.get_program()).args(plain.get_args());
    let mut running = lab.start_command(command);
    running.wait_for("arm to measure");
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::HUP);
    assert!(running.end().success(), "{}", running.said());
    assert_eq!(lab.trials().len(), 1);
    // Without that it is asked to end. What these tests run under may ignore it for all of them.
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.expect("a mask") & 1 == 1 {
        return;
    }
    let mut running = lab.start(line);
    running.wait_for("arm to measure");
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::HUP);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    lab.assert_clean();
}

/// Ctrl-Z in the middle of a phase: the time that nothing ran is in its figure, which says so and counts for nothing.
#[test]
fn stopped_and_continued() {
    let lab = Lab::new();
    let mut running = lab.start("bench place -n 1 --profile random --size 4MiB --runtime 3s");
    let data = || {
        names(&lab.place())
            .iter()
            .any(|d| lab.place().join(d).join("data-0").exists())
    };
    until("the data file", data);
    std::thread::sleep(Duration::from_millis(700));
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1500));
    running.signal(Signal::CONT);
    assert!(running.end().success(), "{}", running.said());
    let trials = lab.trials();
    let phases = trials[0]["phases"].as_array().expect("phases");
    let flags = phases.iter().flat_map(|phase| phase["flags"].as_array());
    let still = |flag: &&serde_json::Value| {
        flag["voids"] == true
            && flag["reason"]
                .as_str()
                .is_some_and(|r| r.contains("stood still"))
    };
    assert_eq!(flags.flatten().filter(still).count(), 1, "{phases:#?}");
    lab.assert_clean();
}

#[test]
fn killed() {
    let lab = Lab::new();
    // Longer than a busy machine takes to notice.
    let line = LINE.replace("900ms", "1500ms");
    let mut running = in_the_middle(&lab, &line);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code(), None);
    let left = names(&lab.place());
    assert_eq!(left.len(), 1, "a working directory stays: {left:?}");
    lab.run(&format!("{line} --plan")).done();
    assert_eq!(names(&lab.place()), left, "a plan does nothing");

    // The same command again: the session is offered, and what was left is removed.
    let first = &lab.sessions()[0];
    let id = first["id"].as_str().expect("an id")[..8].to_owned();
    let done = first["trials"].as_u64().expect("a number");
    let mut again = lab.start(&line);
    again.wait_for("this begins anew");
    let said = again.said();
    for part in [
        format!("the same was interrupted after {done} of 4 trials"),
        format!("'raidlab bench --resume {id}' goes on with it"),
        format!("{}, left by a raidlab that was killed", left[0]),
    ] {
        assert!(said.contains(&part), "no '{part}' in {said}");
    }
    again.signal(Signal::INT);
    assert_eq!(again.end().code(), Some(130));
    lab.assert_clean();
    for session in &lab.sessions()[1..] {
        let second = session["id"].as_str().expect("an id");
        lab.run(&format!("remove {second} --yes")).done();
    }
    can_be_resumed(&lab);
}

/// What a session of several arms lacks is run, and nothing twice.
#[test]
fn several_arms_are_resumed_where_they_stopped() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("other")).expect("a directory");
    let mut running = lab.start(
        "bench place other -n 2 --profile dd,random --set dd.count=16 --block-size 4KiB --set random.size=4MiB --set random.time=1s",
    );
    running.wait_for("[3/8]");
    running.signal(Signal::KILL);
    running.end();
    let before = lab.trials().len();
    lab.run("bench --resume").done();
    let after = lab.trials();
    assert!((3..8).contains(&before), "{before}");
    assert_eq!(after.len(), 8);
    let arms: BTreeSet<_> = after
        .iter()
        .map(|t| {
            (
                t["round"].as_u64(),
                t["cell"]["label"].as_str(),
                t["profile"].as_str(),
            )
        })
        .collect();
    assert_eq!(arms.len(), 8, "each arm once a round");
    lab.assert_clean();
    crate::lab::assert_empty(&lab.path("other"));
}

/// A session that is under way is not offered, and cannot be taken over.
#[test]
fn a_running_session_is_left_alone() {
    let lab = Lab::new();
    // However long what is asked meanwhile takes.
    let line = LINE.replace("-n 4", "-n 100");
    let mut running = lab.start(&line);
    running.wait_for("[1/100]");
    let sessions = lab.sessions();
    assert_eq!(
        sessions[0]["process"].as_u64(),
        Some(u64::from(running.id()))
    );
    lab.run("bench --resume")
        .refused(2)
        .says(&["no unfinished session"]);
    let id = sessions[0]["id"].as_str().expect("an id");
    lab.run(&format!("bench --resume {id}"))
        .refused(4)
        .says(&["is being run by process"]);
    lab.run("list")
        .done()
        .prints(&["running (", "of 100 trials"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    assert_eq!(lab.sessions()[0]["process"], serde_json::Value::Null);
}

/// Whoever locks the store for long keeps no run from ending when it is asked to.
#[test]
fn a_store_that_another_has_locked_is_not_waited_for_after_ctrl_c() {
    let lab = Lab::new();
    let mut running = in_the_middle(&lab, LINE);
    let other = rusqlite::Connection::open(lab.store()).expect("the store");
    other.busy_timeout(Duration::from_secs(20)).expect("set");
    other.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    running.wait_for("another process has the store locked");
    running.signal(Signal::INT);
    let asked = Instant::now();
    let status = running.end();
    assert!(
        asked.elapsed() < Duration::from_secs(15),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(status.code(), Some(130));
    other.execute_batch("ROLLBACK").expect("let go of");
    lab.assert_clean();
    can_be_resumed(&lab);
}
