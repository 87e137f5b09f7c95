//! `raidlab replay`: what is no trace.
use crate::lab::Lab;
use crate::models::DISK;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("small.toml", DISK);
    lab
}

/// A file without lines is neither read to its end nor quoted.
#[test]
fn lines_are_bounded() {
    let lab = lab();
    lab.run("replay /dev/zero --disk small.toml")
        .refused(2)
        .says(&["/dev/zero:1: this line has more than 64 KiB", "blkparse -i"]);
    lab.write("long", format!("0.0 0 1000 8 1\n{}\n", "9".repeat(1 << 17)));
    lab.run("replay long --disk small.toml")
        .code(2)
        .says(&["long:2: this line has more than 64 KiB"]);
    lab.write(
        "word",
        format!("0.0 0 1000 8 1\n{} 0 0 8 1\n", "x".repeat(60_000)),
    );
    let ran = lab
        .run("replay word --disk small.toml")
        .code(2)
        .says(&["word:2:1: 'xxx"]);
    assert!(ran.err.len() < 400, "{}", ran.err.len());
}
