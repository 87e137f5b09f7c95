//! Options that mean nothing where they are given.
use crate::lab::Lab;
use crate::real::RAW;

/// An option that would not be heeded is no wish that was met: it is refused, with where it means something.
#[test]
fn options_that_mean_nothing_there() {
    let lab = Lab::new();
    lab.write(
        "lab.toml",
        "title = \"x\"\ndisks = { model = \"sata-ssd\", count = 2 }\nprofile = \"random\"\n\
         [factors]\nlayout = [\"raid0\"]\n",
    );
    for (line, says) in [
        (
            "run lab.toml --on sim --driver tool",
            ["--driver tool", "--on host or --on vm"],
        ),
        (
            "run lab.toml --on sim --with-sim",
            ["--with-sim", "--on vm"],
        ),
        ("run lab.toml --on sim --sync", ["--sync", "--on vm"]),
        (
            "run lab.toml --on sim --time real",
            ["--time real", "--on vm"],
        ),
        ("run lab.toml --on sim --early 1ms", ["--early", "--on vm"]),
        (
            "run lab.toml --on sim --fail disk1@5s",
            ["--fail", "degraded 1"],
        ),
        (
            "run lab.toml --on sim --assume-clean",
            ["--assume-clean", "--on host"],
        ),
        (
            "run lab.toml --on sim --yes 0123456789ab",
            ["--yes", "--on host"],
        ),
        (
            "run lab.toml --on sim --loop-dir .",
            ["--loop-dir", "--on host"],
        ),
        (
            "run lab.toml --on host --loop-dir . --with-sim",
            ["--with-sim", "--on vm"],
        ),
        (
            "run lab.toml --on host --loop-dir . -j 4",
            ["--jobs", "--on sim or --on vm"],
        ),
        (
            "run lab.toml --on vm --loop-size 2GiB",
            ["--loop-size", "--on host"],
        ),
        ("plan lab.toml --loop-dir .", ["--loop-dir", "--on host"]),
        (
            "reference run pata-raid0 --driver tool",
            ["--driver tool", "--on vm"],
        ),
        ("reference run pata-raid0 --fresh", ["--fresh", "--on vm"]),
    ] {
        lab.run(line)
            .refused(2)
            .says(&says)
            .says(&["means nothing to"]);
    }
    lab.run("plan lab.toml --on host --loop-dir . --loop-size 64MiB --driver tool")
        .done();
}

/// Real members are used from their first byte on; where that is on a disk is theirs.
#[test]
fn members_that_begin_elsewhere_are_told_before_anything_is_built() {
    let lab = Lab::new();
    let from = |start: &str| {
        RAW.replace(
            "\"single\"",
            &format!("\"single\"\nmember-start = \"{start}\""),
        )
    };
    lab.write("lab.toml", from("1MiB"));
    let plan = "plan lab.toml --on host --loop-dir . --loop-size 64MiB";
    lab.run(plan).refused(2).says(&[
        "its members begin at 1 MiB of their disks ('member-start')",
        "begins at 0 B",
        "partitions that begin there",
    ]);
    lab.run("run lab.toml --on sim").done();
    lab.write("lab.toml", from("0B"));
    lab.run(plan).done();
}
