//! Members of btrfs on loop files that are replaced, as root: filled by themselves, and beside the phases.
use crate::lab::Lab;
use crate::real::{assert_taken_apart, slowly};
use crate::root::may;

/// The second member fails when 96 MiB are there, 64 of them the file of the phases, and is filled by itself, then beside these.
#[test]
fn a_member_of_btrfs_on_loop_files_is_replaced() {
    if !may("a_member_of_btrfs_on_loop_files_is_replaced") {
        return;
    }
    let lab = Lab::new();
    let text = r#"
title = "Replaced"
disks = { model = "nearline-24tb", count = 3 }
[array]
engine = "btrfs"
allocated = "96MiB"
[profile]
name = "random"
size = "64MiB"
total = "256KiB"
[factors]
array = [
  { name = "one", layout = "raid1", members = 2, state = "rebuilding 1", failed = [1] },
  { name = "two", layout = "raid1c3", state = "rebuilding 2", failed = [0, 2] },
]
[design]
repeats = 1
verify = true
"#;
    lab.write("lab.toml", text);
    let run = "run lab.toml --on host --loop-dir place --loop-size 400MiB";
    slowly(&lab, run).done().prints(&["rebuilding 1", "to do"]);
    for trial in &lab.trials() {
        assert_eq!(trial["status"], "complete", "{trial}");
        let phases = trial["phases"].as_array().expect("phases");
        let rebuild = phases.last().expect("the last");
        assert_eq!(rebuild["phase"], "rebuild", "{trial}");
        let new = if trial["cell"]["label"] == "one" {
            1
        } else {
            2
        };
        let bytes = rebuild["bytes"].as_u64().expect("bytes");
        // What was done since it was asked last is not counted, and metadata are.
        let all = new * (96 << 20);
        assert!((all / 2..all + (8 << 20)).contains(&bytes), "{bytes}");
        // It was whole when it was scrubbed.
        assert_eq!(trial["checks"][0]["consistent"], true, "{trial}");
        assert!(trial["checks"][0]["bytes"].as_u64() > Some(2 * (96 << 20)));
        let doubts = phases.iter().flat_map(|phase| phase["flags"].as_array());
        for flag in doubts.flatten().filter(|flag| flag["kind"] == "foreign-io") {
            let reason = flag["reason"].as_str().expect("a reason");
            assert!(reason.contains("as the cell asks for"), "{reason}");
        }
    }
    assert_taken_apart(&lab);
    lab.run("clean").done().says(&["nothing was left behind"]);

    lab.write("much.toml", text.replace("96MiB", "900MiB"));
    let run = run.replace("lab.toml", "much.toml");
    lab.run(&run)
        .refused(2)
        .says(&["836 MiB of other files", "smaller 'allocated'"]);
    let none = text.replace("96MiB", "0").replace(
        "\"random\"\nsize = \"64MiB\"\ntotal = \"256KiB\"",
        "\"bonnie\"\nsize = \"64MiB\"",
    );
    lab.write("none.toml", none);
    let run = run.replace("much.toml", "none.toml");
    lab.run(&run)
        .refused(2)
        .says(&["say how much lies in the array"]);
    assert_taken_apart(&lab);
}
