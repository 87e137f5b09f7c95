//! The allow-list as its user writes it.
use super::*;

const GOOD: &str = "\
# old disks of the lab
[[device]]
id = \"ata-ST3250624AS_5ND0ABCD\"
serial = \"5ND0ABCD\"
size = 250_059_350_016

[[device]]
id = \"wwn-0x5000c500a0b1c2d3\"
serial = \"Z1F0XYZ\"
size = 3000592982016
note = \"bay 3\"
";

#[test]
fn a_list_names_each_device_by_id_serial_and_size() {
    let list = AllowList::parse(GOOD).expect("a good list");
    assert_eq!(list.devices.len(), 2);
    assert_eq!(list.devices[0].size, 250_059_350_016);
    assert_eq!(list.devices[1].line, 7);
    assert_eq!(list.devices[1].note.as_deref(), Some("bay 3"));
}

#[test]
fn all_that_is_wrong_is_told_by_line() {
    let text = "\
device = 3
[[devices]]
id = \"x\"
";
    let told = AllowList::parse(text).expect_err("wrong");
    assert_eq!(told[0].line, 1);
    assert_eq!(told[1].line, 2);
    let text = "\
[[device]]
id = \"x\"
size = \"40GB\"
[[device]]
id = \"y\"
serial = \"1\"
size = 5
colour = \"red\"
[[device]]
id = \"z\"
size = 5
";
    let told = AllowList::parse(text).expect_err("wrong");
    let lines: Vec<usize> = told.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [3, 8, 9], "{told:?}");
    assert!(told[2].message.contains("serial is missing"));
    assert!(AllowList::parse("[[device]]\nid = \n").is_err());
}

#[test]
fn the_same_device_twice_is_refused() {
    let text = format!("{GOOD}\n{GOOD}");
    let told = AllowList::parse(&text).expect_err("twice");
    assert!(told[0].message.contains("line 2 already"), "{told:?}");
}

#[test]
fn a_list_that_others_may_write_to_is_not_believed() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), GOOD).expect("written");
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(file.path(), mode(0o600)).expect("set");
    assert!(AllowList::read(file.path()).is_ok());
    std::fs::set_permissions(file.path(), mode(0o666)).expect("set");
    assert!(matches!(
        AllowList::read(file.path()),
        Err(AllowError::Loose(_))
    ));
    let missing = AllowList::read(Path::new("/nonexistent/list")).expect("empty");
    assert!(missing.devices.is_empty());
}

/// Nor one of another user's, who may write to it whatever its mode is; root's is everybody's.
#[test]
fn a_list_of_another_user_is_not_believed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), GOOD).expect("written");
    assert!(AllowList::read(file.path()).is_ok());
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::chown(file.path(), Some(12_345), None).expect("given away");
    let read = AllowList::read(file.path());
    assert!(matches!(read, Err(AllowError::Foreign(_))), "{read:?}");
}

#[test]
fn a_controllers_array_says_what_it_is_made_of() {
    let with = |array: &str| format!("{GOOD}array = {array}\n");
    let list = AllowList::parse(&with(
        "{ layout = \"raid5\", disks = 4, chunk = \"64KiB\" }",
    ))
    .expect("a good list");
    let array = list.devices[1].array.as_ref().expect("an array");
    assert_eq!(array.to_string(), "raid5 of 4 disks, chunk 64 KiB");
    assert_eq!(list.devices[0].array, None);
    let mirror = with("{ layout = \"raid1\", disks = 2 }");
    let list = AllowList::parse(&mirror).expect("a good list");
    let array = list.devices[1].array.as_ref().expect("an array");
    assert_eq!(array.to_string(), "raid1 of 2 disks");
    for (array, says) in [
        ("\"raid5\"", "is told as"),
        ("{ layout = \"raid5\" }", "is told as"),
        (
            "{ layout = \"raid5\", disks = 4 }",
            "the chunk of this raid5",
        ),
        (
            "{ layout = \"raid5\", disks = 0, chunk = \"64KiB\" }",
            "how many disks",
        ),
        (
            "{ layout = \"raid5\", disks = 4, chunk = \"64K\" }",
            "chunk:",
        ),
        (
            "{ layout = \"riad5\", disks = 4, chunk = \"64KiB\" }",
            "layout:",
        ),
        (
            "{ layout = \"raid1\", disks = 2, colour = 1 }",
            "no 'colour'",
        ),
    ] {
        let told = AllowList::parse(&with(array)).expect_err("wrong");
        assert_eq!(told.len(), 1, "{array}: {told:?}");
        assert!(told[0].message.contains(says), "{array}: {told:?}");
    }
}

/// Who may write is asked of the very file that is read: another one may have its name by then.
#[test]
fn a_list_that_is_exchanged_while_it_is_read_is_judged_by_what_was_read() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("expendable.toml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    // Anybody's, whatever the mask of this process is.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).expect("set");
    let other = place.path().join("other");
    std::fs::write(&other, "").expect("written");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).expect("set");
    let exchanged = path.clone();
    let writer = std::thread::spawn(move || {
        let pipe = std::fs::OpenOptions::new().write(true).open(&exchanged);
        let mut pipe = pipe.expect("its reader is there");
        std::fs::rename(&other, &exchanged).expect("exchanged");
        // The reader may have gone already: it has seen enough.
        let _ = pipe.write_all(GOOD.as_bytes());
    });
    let read = AllowList::read(&path);
    writer.join().expect("written");
    assert!(matches!(read, Err(AllowError::Loose(_))), "{read:?}");
}
