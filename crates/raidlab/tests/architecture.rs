//! The rules of ARCHITECTURE.md that the compiler does not enforce: which crate may use which, what
//! pure crates may not touch, and who may print.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate and the workspace crates that it may depend on.
const GRAPH: &[(&str, &[&str])] = &[
    ("raidlab-core", &[]),
    ("raidlab-layout", &["raidlab-core"]),
    ("raidlab-stats", &[]),
    (
        "raidlab-sim",
        &["raidlab-core", "raidlab-experiment", "raidlab-layout"],
    ),
    ("raidlab-io", &["raidlab-core"]),
    ("raidlab-results", &["raidlab-core", "raidlab-stats"]),
    ("raidlab-nbd", &["raidlab-core", "raidlab-sim"]),
    (
        "raidlab-host",
        &[
            "raidlab-core",
            "raidlab-experiment",
            "raidlab-io",
            "raidlab-layout",
        ],
    ),
    ("raidlab-vm", &["raidlab-core"]),
    ("raidlab-experiment", &["raidlab-core", "raidlab-layout"]),
    (
        "raidlab",
        &[
            "raidlab-core",
            "raidlab-layout",
            "raidlab-stats",
            "raidlab-io",
            "raidlab-results",
            "raidlab-sim",
            "raidlab-experiment",
            "raidlab-nbd",
            "raidlab-host",
            "raidlab-vm",
        ],
    ),
    (
        "engine-bench",
        &["raidlab-core", "raidlab-stats", "raidlab-io"],
    ),
];

/// Crates without clock, file, socket, thread, environment or randomly ordered map.
const PURE: &[&str] = &[
    "raidlab-core",
    "raidlab-experiment",
    "raidlab-layout",
    "raidlab-sim",
    "raidlab-stats",
];

/// What a pure crate may not name outside its tests.
const IMPURE: &[&str] = &[
    "std::time::Instant",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
    "std::process",
    "std::io",
    "HashMap",
    "HashSet",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is there")
}

/// Workspace crates with the workspace crates they depend on (tests' own needs apart).
fn workspace() -> BTreeMap<String, (PathBuf, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
    packages
        .iter()
        .map(|package| {
            let used = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|d| d["kind"].is_null() && text(&d["name"]).starts_with("raidlab"))
                .map(|d| text(&d["name"]))
                .collect();
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            (
                text(&package["name"]),
                (manifest.parent().expect("a directory").to_owned(), used),
            )
        })
        .collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Lines of a crate's sources with file and number, test modules and comments left out.
fn product_lines(crate_directory: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    sources(&crate_directory.join("src"), &mut files);
    let mut lines = Vec::new();
    for file in files {
        let name = file.file_name().and_then(|n| n.to_str()).expect("a name");
        if name == "tests.rs" || file.components().any(|c| c.as_os_str() == "tests") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a readable source");
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("#[cfg(test)]") {
                break;
            }
            if !line.trim_start().starts_with("//") {
                lines.push((
                    format!("{}:{}", file.display(), number + 1),
                    line.to_owned(),
                ));
            }
        }
    }
    lines
}

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let workspace = workspace();
    let allowed: BTreeMap<_, BTreeSet<_>> = GRAPH
        .iter()
        .map(|(name, uses)| (*name, uses.iter().copied().collect()))
        .collect();
    for (name, (_, used)) in &workspace {
        let allowed = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} is not in the architecture"));
        for other in used {
            assert!(
                allowed.contains(other.as_str()),
                "{name} must not depend on {other}"
            );
        }
    }
}

#[test]
fn pure_crates_touch_nothing_impure() {
    let workspace = workspace();
    for name in PURE {
        let (directory, _) = &workspace[*name];
        let library = std::fs::read_to_string(directory.join("src/lib.rs")).expect("a library");
        assert!(
            library.contains("#![forbid(unsafe_code)]"),
            "{name} must forbid unsafe code"
        );
        for (place, line) in product_lines(directory) {
            for word in IMPURE {
                assert!(!line.contains(word), "{place}: a pure crate uses {word}");
            }
        }
    }
}

#[test]
fn only_the_program_prints() {
    for (name, (directory, _)) in workspace() {
        if name == "raidlab" || name == "engine-bench" {
            continue;
        }
        for (place, line) in product_lines(&directory) {
            for word in ["println!", "eprintln!", "print!(", "eprint!(", "dbg!("] {
                assert!(!line.contains(word), "{place}: a library prints ({word})");
            }
        }
    }
}
