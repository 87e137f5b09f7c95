use super::*;

#[test]
fn names_in_the_guest_are_those_of_a_merged_tree() {
    assert_eq!(
        inside(Path::new("lib/modules/x.ko")),
        "usr/lib/modules/x.ko"
    );
    assert_eq!(inside(Path::new("/no/such/dir/tool")), "no/such/dir/tool");
    assert_eq!(
        inside(Path::new("/lib64/ld-linux-x86-64.so.2")),
        "usr/lib64/ld-linux-x86-64.so.2"
    );
}

/// A tree of modules as a package has it, with a library of this machine in the place of a module.
fn kernel(directory: &Path) -> Kernel {
    let modules = directory.join("modules");
    fs::create_dir_all(modules.join("kernel/drivers")).unwrap();
    fs::copy("/bin/true", modules.join("kernel/drivers/nbd.ko")).unwrap();
    fs::write(
        modules.join("modules.builtin"),
        "kernel/drivers/md/md-mod.ko\n",
    )
    .unwrap();
    Kernel {
        release: "6.1.0-1".to_owned(),
        package: None,
        sha256: String::new(),
        vmlinuz: directory.join("vmlinuz"),
        modules,
    }
}

/// An image of a small program, and of others.
fn recipe(kernel: &Kernel, also: Vec<String>) -> Recipe<'_> {
    Recipe {
        kernel,
        init: PathBuf::from("/bin/true"),
        also,
        load: Vec::new(),
        zfs: None,
    }
}

#[test]
fn the_same_content_is_the_same_image() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = kernel(directory.path());
    let recipe = recipe(&kernel, Vec::new());
    let cache = Cache::new(directory.path().join("cache"));
    let first = recipe.build(&cache).unwrap();
    let second = recipe.build(&cache).unwrap();
    assert_eq!(first, second);
    assert_eq!(crate::cache::digest_of(&first.path).unwrap(), first.sha256);
    assert_eq!(fs::metadata(&first.path).unwrap().len(), first.bytes);
    assert_eq!(
        fs::read_dir(directory.path().join("cache/images"))
            .unwrap()
            .count(),
        1
    );
    assert_eq!(first.content.modules, 1);
    assert!(first.content.no_modules.contains(&"raid456".to_owned()));
    assert!(
        !first.content.no_modules.contains(&"md_mod".to_owned()),
        "it is built in"
    );
}

#[test]
fn programs_are_added_by_name_and_by_file() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = kernel(directory.path());
    let own = directory.path().join("own-program");
    fs::copy("/bin/true", &own).unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let also = vec![
        "sleep".to_owned(),
        name(&own),
        name(&script),
        "cryptsetup".to_owned(),
        "no-such-program".to_owned(),
    ];
    let recipe = recipe(&kernel, also);
    let (tree, content) = recipe.tree().unwrap();
    assert!(tree.contains("usr/bin/sleep") && tree.contains("usr/bin/own-program"));
    assert!(content.programs.contains(&name(&own)));
    let missing = |name: &str| content.missing.iter().find(|missing| missing.name == name);
    let found = missing(&name(&script)).expect("a script is no program");
    assert!(found.script && found.package.is_none());
    let found = missing("no-such-program").expect("it is nowhere");
    assert!(!found.script && found.package.is_none());
    // What encryption asks of the kernel is looked for as soon as the program is wanted.
    assert!(content.no_modules.contains(&"dm_crypt".to_owned()));
}

#[test]
fn what_the_guest_cannot_do_without_is_in_the_image() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = kernel(directory.path());
    let recipe = recipe(&kernel, Vec::new());
    let (tree, _) = recipe.tree().unwrap();
    for name in [
        "init",
        "dev/console",
        "proc",
        guest::MARK,
        "usr/lib64/ld-linux-x86-64.so.2",
        "usr/lib/modules/raidlab.modules",
        "usr/sbin/modprobe",
    ] {
        assert!(tree.contains(name), "{name}");
    }
    assert!(has_modules(&kernel.modules, &["nbd", "md_mod"]));
    assert!(!has_modules(&kernel.modules, &["raid456"]));
}
