//! Devices that the kernel builds others on: arrays, volume groups, encryption.
use super::*;

/// Whether this kernel has such devices. No package gives them to a kernel without, so that this fails nowhere but in a
/// guest; `make test` counts the test as skipped unless it has passed in a guest.
pub(super) fn kernel_has(tool: &str, name: &str) -> bool {
    let sign = match tool {
        "mdadm" => "/proc/mdstat",
        _ => "/dev/mapper/control",
    };
    // Opened: dmsetup makes the node, also where nothing is behind it.
    let there = File::open(sign).is_ok() && crate::tool::find(tool).is_some();
    if !there {
        let message = format!("UNTESTED {name}: needs {sign} of the kernel, and {tool}");
        assert!(!in_guest(), "{message}");
        let _ = writeln!(std::io::stderr(), "{message}");
    }
    there
}

#[test]
fn a_member_of_an_array_is_refused() {
    let name = "a_member_of_an_array_is_refused";
    if !may(name) || !kernel_has("mdadm", name) {
        return;
    }
    let (first, second) = (Theirs::new(), Theirs::new());
    let create = [
        "mdadm",
        "--create",
        "/dev/md59",
        "--run",
        "--assume-clean",
        "--level=1",
        "--raid-devices=2",
    ];
    let mut create = create.to_vec();
    create.extend(["--bitmap=none", first.path(), second.path()]);
    system(&create);
    for theirs in [&first, &second] {
        theirs.refused_by(
            &[Gate::Kernel, Gate::Bytes, Gate::Exclusive],
            &["is part of md59", "md array member (metadata 1.2)"],
        );
    }
    system(&["mdadm", "--stop", "/dev/md59"]);
    first.refused_by(
        &[Gate::Bytes],
        &["md array member (metadata 1.2)", "no one uses it now"],
    );
    system(&["mdadm", "--zero-superblock", first.path(), second.path()]);
    first.given();
}

#[test]
fn a_device_below_device_mapper_is_refused() {
    let name = "a_device_below_device_mapper_is_refused";
    if !may(name) || !kernel_has("dmsetup", name) {
        return;
    }
    let theirs = Theirs::new();
    let table = format!("0 {} linear {} 0", SIZE / 512, theirs.path());
    system(&[
        "dmsetup",
        "create",
        "raidlab-test",
        "--noudevsync",
        "--table",
        &table,
    ]);
    theirs.refused_by(&[Gate::Kernel, Gate::Exclusive], &["is part of dm-"]);
    system(&["dmsetup", "remove", "--noudevsync", "raidlab-test"]);
    theirs.given();
}

/// LVM without a daemon, and without a look at anything else of this machine.
fn lvm(theirs: &Theirs, words: &[&str]) {
    let config = format!(
        "devices {{ filter=[\"a|^{}$|\", \"r|.*|\"] use_devicesfile=0 obtain_device_list_from_udev=0 }} \
         activation {{ udev_sync=0 udev_rules=0 monitoring=0 }} backup {{ backup=0 archive=0 }}",
        theirs.path()
    );
    let mut all = vec!["lvm", words[0], "--config", &config, "--yes"];
    all.extend(&words[1..]);
    system(&all);
}

#[test]
fn a_physical_volume_of_lvm_is_refused() {
    let name = "a_physical_volume_of_lvm_is_refused";
    if !may(name) || !kernel_has("lvm", name) {
        return;
    }
    let theirs = Theirs::new();
    lvm(&theirs, &["pvcreate", theirs.path()]);
    let says = ["LVM2 physical volume", "no one uses it now"];
    theirs.refused_by(&[Gate::Bytes], &says);
    lvm(&theirs, &["vgcreate", "raidlab-test-vg", theirs.path()]);
    lvm(
        &theirs,
        &[
            "lvcreate",
            "-Zn",
            "-Wn",
            "-l",
            "4",
            "-n",
            "data",
            "raidlab-test-vg",
        ],
    );
    theirs.refused_by(
        &[Gate::Kernel, Gate::Bytes, Gate::Exclusive],
        &["is part of dm-", "LVM2 physical volume"],
    );
    lvm(&theirs, &["vgchange", "-an", "raidlab-test-vg"]);
    theirs.refused_by(&[Gate::Bytes], &says);
    lvm(&theirs, &["vgremove", "-f", "raidlab-test-vg"]);
    lvm(&theirs, &["pvremove", theirs.path()]);
    theirs.given();
}

#[test]
fn an_encrypted_device_is_refused_open_and_closed() {
    let name = "an_encrypted_device_is_refused_open_and_closed";
    if !may(name) || !kernel_has("cryptsetup", name) {
        return;
    }
    let theirs = Theirs::new();
    let key = theirs.directory.path().join("key");
    std::fs::write(&key, [7; 32]).expect("a key");
    let key = format!("--key-file={}", key.display());
    system(&[
        "cryptsetup",
        "luksFormat",
        "--batch-mode",
        "--type=luks1",
        "--cipher=aes-cbc-plain64",
        "--key-size=256",
        "--hash=sha256",
        "--pbkdf-force-iterations=1000",
        &key,
        theirs.path(),
    ]);
    let says = ["LUKS encrypted volume", "no one uses it now"];
    theirs.refused_by(&[Gate::Bytes], &says);
    system(&[
        "cryptsetup",
        "open",
        "--type=luks1",
        &key,
        theirs.path(),
        "raidlab-test-luks",
    ]);
    theirs.refused_by(
        &[Gate::Kernel, Gate::Bytes, Gate::Exclusive],
        &["is part of dm-", "LUKS encrypted volume"],
    );
    system(&["cryptsetup", "close", "raidlab-test-luks"]);
    theirs.refused_by(&[Gate::Bytes], &says);
}
