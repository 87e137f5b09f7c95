//! What is told before anything runs: cells that cannot be predicted, files that a cache can hold, pools without room.
use crate::lab::Lab;
use crate::root::{Loop, Mounted, system};

/// What `plan` promises about the simulator, `run` keeps.
#[test]
fn cells_without_a_model_are_told_by_the_plan() {
    let lab = Lab::new();
    let text = "title = 't'\ndisks = { model = 'nearline-24tb', count = 4 }\nprofile = 'random'\nfilesystem = 'ext4'\n\
                [array]\nlayout = 'raid0'\nmember-size = '1GiB'\n[factors]\nmetadata = ['imsm', '1.2']\n";
    lab.write("lab.toml", text);
    let told = [
        "1 of 2 cells cannot be predicted",
        "imsm: metadata 'imsm' is not modelled",
    ];
    let plan = lab.run("plan lab.toml").done();
    plan.prints(&["Not with --on sim"]).prints(&told);
    lab.run("plan lab.toml --on sim").refused(2).says(&told);
    lab.run("run lab.toml --on sim").refused(2).says(&told);
    assert!(
        !lab.run("plan lab.toml --on vm")
            .done()
            .out
            .contains("predicted")
    );
}

#[test]
fn a_file_that_a_cache_can_hold_is_told_before_the_run() {
    let lab = Lab::new();
    let text = "title = 't'\ndisks = { model = 'nearline-24tb', count = 2 }\n[array]\nlayout = 'zfs-mirror'\n\
                [profile]\nname = 'random'\nsize = '256MiB'\ntime = '0.1s'\n[design]\nrepeats = 1\n";
    lab.write("lab.toml", text);
    let told = [
        "256 MiB are little beside ZFS's cache, 2 GiB",
        "size = \"8GiB\" in [profile]",
    ];
    lab.run("plan lab.toml").done().prints(&told);
    let json = lab.run("plan lab.toml --json").done().json();
    assert_eq!(json["warnings"][0]["cells"][0], "the cell");
    lab.run("run lab.toml --on sim").done().says(&told);
    // A job has 32 calls under way when nothing is said, of which ZFS has one; the file is no matter any more.
    let large = text.replace("256MiB", "8GiB");
    lab.write("large.toml", &large);
    let json = lab.run("plan large.toml --json").done().json();
    let warnings = json["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{json:#}");
    let deep = warnings[0]["message"].as_str().expect("a sentence");
    assert!(deep.contains("of the 32 that a job has"), "{deep}");
    lab.write(
        "jobs.toml",
        large.replace("time =", "depth = 1\njobs = 8\ntime ="),
    );
    let json = lab.run("plan jobs.toml --json").done().json();
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(0));
}

/// A pool that is filled to the brim failed when it ran.
#[test]
fn a_pool_without_room_is_refused_with_its_line() {
    let lab = Lab::new();
    let text = "title = 't'\ndisks = { model = 'nearline-24tb', count = 4, override = { capacity = '1GiB' } }\n\
                [array]\nlayout = 'zfs-mirror 2x2'\nstate = 'rebuilding 1'\nallocated = '1900MiB'\n\
                [profile]\nname = 'random'\nsize = '64MiB'\ntime = '0.1s'\n[design]\nrepeats = 1\n";
    lab.write("lab.toml", text);
    for command in ["plan lab.toml", "run lab.toml --on sim"] {
        let refused = lab.run(command).refused(2);
        refused.says(&[
            "'allocated' of 1.9 GiB is more than the pool has room for",
            "lab.toml:6:13",
        ]);
    }
    // Beside it there is to be room for what the profile writes.
    lab.write("lab.toml", text.replace("1900MiB", "1800MiB"));
    let refused = lab.run("plan lab.toml").refused(2);
    refused.says(&[
        "lab.toml:6:13",
        "the profile's 64 MiB and 64 MiB of it anew",
    ]);
    lab.write("lab.toml", text.replace("1900MiB", "1700MiB"));
    lab.run("run lab.toml --on sim").done();
}

/// What mkfs.ext4 leaves to the kernel is written beside the first trials.
#[test]
fn a_new_ext4_is_told_and_one_that_was_written_whole_is_not() {
    let name = "a_new_ext4_is_told_and_one_that_was_written_whole_is_not";
    if !crate::root::may(name) {
        return;
    }
    let line = "bench new --profile random --size 8MiB --set time=0.6s -n 1";
    let told = |options: &str| {
        let lab = Lab::new();
        // Many groups of few inodes: half a minute of little to write.
        let image = lab.path("image");
        let file = std::fs::File::create(&image).expect("a file");
        file.set_len(64 << 30).expect("room for holes");
        let device = Loop::on(&image);
        let node = device.path.to_str().expect("plain text");
        let options = format!("nodiscard,{options}");
        system(
            "mkfs.ext4",
            &["-q", "-F", "-i", "1048576", "-E", &options, node],
        );
        let mounted = Mounted::on(&lab.path("new"), &device);
        let said = lab.run(line).done().err;
        let flags = lab.trials()[0]["phases"][0]["flags"].to_string();
        drop(mounted);
        (said, flags)
    };
    let (said, flags) = told("lazy_itable_init=1");
    let what = "the kernel still writes the inode tables of this new ext4 (";
    assert!(said.contains(what), "{said}");
    assert!(said.contains("ext4lazyinit"), "{said}");
    assert!(
        flags.contains("foreign-io") && flags.contains(what),
        "{flags}"
    );
    let (said, flags) = told("lazy_itable_init=0,lazy_journal_init=0");
    assert!(
        !said.contains(what) && !flags.contains(what),
        "{said} {flags}"
    );
}
