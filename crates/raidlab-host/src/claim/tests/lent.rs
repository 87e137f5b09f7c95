//! Who has a device while it is lent, by the kernel's tables alone.
use super::*;

/// Tables of the kernel's that know this one device, as `sdx`.
fn tables(directory: &Path, theirs: &Theirs) -> Roots {
    let roots = Roots::under(directory);
    let block = roots.block("sdx");
    for made in [&roots.proc.join("self"), &roots.dev, &block] {
        std::fs::create_dir_all(made).expect("made");
    }
    for file in ["self/mountinfo", "swaps", "mdstat"] {
        std::fs::write(roots.proc.join(file), "").expect("written");
    }
    let number = theirs.device().identity.number.to_string();
    for (file, text) in [("dev", number), ("size", (SIZE / 512).to_string())] {
        std::fs::write(block.join(file), text).expect("written");
    }
    std::os::unix::fs::symlink(&theirs.path, roots.dev.join("sdx")).expect("a node");
    roots
}

#[test]
fn nobody_may_take_a_lent_device_but_what_it_was_lent_for() {
    if !may("nobody_may_take_a_lent_device_but_what_it_was_lent_for") {
        return;
    }
    let theirs = Theirs::new();
    let directory = tempfile::tempdir().expect("a directory");
    let roots = tables(directory.path(), &theirs);
    let device = look_at(&roots, "sdx").expect("a device");
    let own = Own(OwnKind::Guest);
    let mut claim = Claim::take(&roots, &device, Right::Own(&own)).expect("a claim");
    claim.lend().expect("lent");
    let wanted = ["md7".to_owned()];
    claim.held_by(&[]).expect("nobody has it");
    claim.held_by(&wanted).expect("nobody has it yet");
    let holders = roots.block("sdx").join("holders");
    std::fs::create_dir_all(holders.join("md7")).expect("made");
    claim.held_by(&wanted).expect("it is what was to be made");
    let told = |wanted: &[String]| claim.held_by(wanted).expect_err("refused").to_string();
    assert!(told(&[]).contains("md7 took it"), "{}", told(&[]));
    std::fs::create_dir_all(holders.join("dm-0")).expect("made");
    assert!(told(&wanted).contains("dm-0 took it"), "{}", told(&wanted));
}
