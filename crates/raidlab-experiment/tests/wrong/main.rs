//! Wrong files, and what a user reads about them. All that is wrong is told in one pass.
#[path = "../common/mod.rs"]
mod common;

use common::known;
use raidlab_experiment::{Diagnostics, parse};

fn wrong(text: &str) -> Diagnostics {
    match parse(text, "lab.toml", &known()) {
        Ok(_) => panic!("this must be refused:\n{text}"),
        Err(diagnostics) => diagnostics,
    }
}

/// Four disks and a profile; the rest is the test's.
fn beside(rest: &str) -> String {
    format!(
        "title = \"t\"\ndisks = {{ model = \"nearline-24tb\", count = 4 }}\nprofile = \"bonnie\"\n{rest}"
    )
}

macro_rules! told {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            let diagnostics = wrong(&$text);
            insta::assert_snapshot!(stringify!($name), diagnostics.render(false));
        }
    };
}

mod arrays;
mod btrfs;
mod cells;
mod values;

told!(
    misspelt_keys_and_values,
    r#"title = "t"
disks = { modle = "nearline-24tb", count = 4 }
profile = "bonie"

[host]
scheduler = "deadlin"
memmory = "4GiB"

[facters]
layout = ["raid5"]

[factors]
layuot = ["raid5"]
chunk = ["64KiB"]
"#
);

told!(
    a_profile_by_name_and_as_a_section,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"

[profile]
time = "10s"

[factors]
layout = ["raid5"]
"#
);

told!(
    words_of_other_tools,
    r#"title = "t"
disks = { model = "nearline-24tb", count = 4 }
profile = "random"

[factors]
level = ["raid5", "raid10"]
disks = [3, 4]
iodepth = [1, 32]
elevator = ["none"]

[array]
chunk_size = "64KiB"
fs = "ext4"

[design]
runs = 3
"#
);

told!(
    not_toml,
    "title = \"t\"\ndisks = { model = \"nearline-24tb\" count = 4 }\nprofile = bonnie\n[factors\nlayout = [\"raid5\"]\n[host]\nscheduler = \"deadlin\"\n"
);

told!(an_empty_file, "");

told!(
    another_kind_of_file,
    "# Notes\n\nOne has\na line\nafter\nanother\nof which\nnone is\nwhat an\nexperiment\nsays.\n"
);

#[test]
fn colour_adds_nothing_but_colour_and_lines() {
    let diagnostics = wrong(&beside("[array]\nlayout = \"raid55\"\n"));
    let (plain, coloured) = (diagnostics.render(false), diagnostics.render(true));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains('\u{1b}'));
    assert!(coloured.contains("raid55"));
}

#[test]
fn one_line_a_problem_for_other_programs() {
    let diagnostics = wrong(&beside("[array]\nlayout = \"raid0\"\nchunk = \"64K\"\n"));
    insta::assert_snapshot!(diagnostics, @r#"lab.toml:6:9: the size '64K' is ambiguous (write "64KiB" (65536 bytes) or "64kB" (64000 bytes))"#);
    assert_eq!(diagnostics.items().len(), 1);
}

#[test]
fn a_flood_of_problems_is_cut() {
    let levels: Vec<String> = (0..300).map(|i| format!("\"nonsense{i}\"")).collect();
    let text = beside(&format!("[factors]\nscheduler = [{}]\n", levels.join(",")));
    let rendered = wrong(&text).render(false);
    assert!(
        rendered.ends_with("errors in lab.toml, the first 100 are shown\n"),
        "{rendered}"
    );
}

told!(
    keys_in_another_section,
    beside(
        "layout = \"raid5\"\n\n[host]\nfile-system = \"ext4\"\nstripe_cache = 256\nrepeat = 3\n[array]\nrepeats = 3\n"
    )
);

/// The keys that a table knows, as it tells them when there is one that it does not know.
fn known_in(section: &str) -> Vec<String> {
    let told = wrong(&beside(&format!("[{section}]\nzzz = 1\n"))).render(false);
    let at = told.find("unknown key 'zzz'").expect("it is unknown");
    let list = told[at..].split("known: ").nth(1).expect("a list");
    let list = list.lines().next().expect("a line");
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn where_a_key_is_said_to_belong_it_is_known() {
    let sections = ["array", "host", "design", "report", "filesystem"];
    let known: Vec<_> = sections.map(|section| (section, known_in(section))).into();
    let mut told = 0;
    for key in known.iter().flat_map(|(_, keys)| keys) {
        let all = wrong(&beside(&format!("{key} = 1\n"))).render(false);
        let Some(home) = all.split("belongs in [").nth(1) else {
            continue;
        };
        let home = home.split(']').next().expect("a section");
        let (_, keys) = known
            .iter()
            .find(|(name, _)| *name == home)
            .expect("a section");
        assert!(keys.contains(key), "{key} in {home}");
        told += 1;
    }
    assert!(told >= 30, "{told}");
}
