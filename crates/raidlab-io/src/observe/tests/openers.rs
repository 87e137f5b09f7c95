use crate::observe::tree::Tree;

use super::*;

/// A file, as processes are asked about it.
fn file(path: &Path) -> Target {
    of(&fs::metadata(path).unwrap()).unwrap()
}

#[test]
fn a_file_is_known_by_what_it_is_and_not_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    for path in [&one, &other] {
        fs::write(path, "").unwrap();
    }
    let [link, second] = ["link", "second"].map(|name| directory.path().join(name));
    std::os::unix::fs::symlink(&one, &link).unwrap();
    fs::hard_link(&one, &second).unwrap();
    let told = leads_to(&link, &[file(&other), file(&second)]);
    assert_eq!(told.as_deref(), one.to_str());
    assert_eq!(leads_to(&link, &[file(&other)]), None);
    assert_eq!(target(&link).unwrap(), Some(file(&second)));
    // What has no place is not looked at, and what is no file or device is none of these.
    let socket = directory.path().join("socket");
    std::os::unix::fs::symlink("socket:[1]", &socket).unwrap();
    assert_eq!(leads_to(&socket, &[file(&one)]), None);
    assert_eq!(target(directory.path()).unwrap(), None);
}

#[test]
fn what_a_process_has_mapped_or_a_thread_has_open_is_found() {
    let tree = Tree::new();
    let place = tree.path("place");
    fs::write(&place, "").unwrap();
    let link = |relative: &str| {
        let link = tree.path(relative);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&place, link).unwrap();
    };
    tree.file("proc/4000001/comm", "mapper\n")
        .directory("proc/4000001/fd")
        .file(
            "proc/4000001/maps",
            "00400000-00452000 r-xp 00000000 08:01 7 /bin/mapper\n\
             7f10a000-7f10b000 rw-s 00000000 08:01 9 /a file\n\
             7f20a000-7f20b000 rw-p 00000000 00:00 0\n",
        );
    link("proc/4000001/map_files/7f10a000-7f10b000");
    // Its first thread has ended.
    tree.file("proc/4000002/comm", "threads\n")
        .directory("proc/4000002/fd")
        .directory("proc/4000002/task/4000002/fd");
    link("proc/4000002/task/4000003/fd/3");
    let told = openers(&tree.roots, &[file(&place)]);
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    let place = place.display();
    assert_eq!(
        told,
        [
            format!("mapper (4000001) has {place} mapped"),
            format!("threads (4000002) has {place} open")
        ]
    );
}

#[test]
fn who_may_look_at_other_processes_is_told_by_the_capabilities() {
    let tree = Tree::new();
    // What of a process cannot be read is told by no tree of files that root reads: of this, only the right.
    assert_eq!(unreadable(&tree.roots), None);
    assert!(!may_look(&tree.roots), "not known");
    for (mask, may) in [("000001ffffffffff", true), ("00000000a80425fb", false)] {
        let status = format!("Name:\traidlab\nCapPrm:\t0000000000000000\nCapEff:\t{mask}\n");
        tree.file("proc/self/status", &status);
        assert_eq!(may_look(&tree.roots), may, "{mask}");
    }
}

#[test]
fn a_container_has_process_numbers_of_its_own() {
    let tree = Tree::new();
    assert!(!in_container(&tree.roots), "a kernel that does not tell");
    tree.directory("proc/self/ns");
    for (space, within) in [("pid:[4026531836]", false), ("pid:[4026532198]", true)] {
        let link = tree.path("proc/self/ns/pid");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(space, &link).unwrap();
        assert_eq!(in_container(&tree.roots), within, "{space}");
    }
}
