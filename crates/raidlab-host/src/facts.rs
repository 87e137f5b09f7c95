//! What was built, in the words of the tools that know: kept with a trial.
use crate::provision::{Built, Node, Step};
use crate::tool::Tool;
use raidlab_experiment::kernel::FilesystemKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// What the tools say, by their command line. What cannot be asked is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// `mdadm --detail`, `dumpe2fs -h` ...
    pub said: BTreeMap<String, String>,
    /// The command lines that built it, as they were planned.
    pub built_by: Vec<String>,
}

/// Asks about all that was built.
#[must_use]
pub fn facts(built: &Built) -> Facts {
    let plan = built.plan();
    let mut facts = Facts {
        built_by: plan.lines(),
        ..Facts::default()
    };
    for step in &plan.steps {
        match step {
            Step::Array { number, .. } => {
                facts.ask(&["mdadm", "--detail", &format!("/dev/md{number}")]);
            }
            Step::Filesystem { kind, on, .. } => {
                let path = match &on[0] {
                    Node::Member(member) => plan.members[*member].path.display().to_string(),
                    Node::Array(number) => format!("/dev/md{number}"),
                };
                match kind {
                    FilesystemKind::Ext2 | FilesystemKind::Ext3 | FilesystemKind::Ext4 => {
                        facts.ask(&["dumpe2fs", "-h", &path]);
                    }
                    FilesystemKind::Btrfs => facts.ask(&["btrfs", "filesystem", "show", &path]),
                    _ => {}
                }
            }
            Step::Pool { name, .. } => {
                let name = &built.filled_word(name);
                facts.ask(&["zpool", "status", name]);
                facts.ask(&["zpool", "get", "all", name]);
                facts.ask(&["zfs", "get", "all", name]);
                for member in &plan.members {
                    let path = member.path.display().to_string();
                    facts.ask(&["zdb", "-l", &crate::provision::partition::node(&path)]);
                }
            }
            Step::Mount {
                fs_type: "btrfs",
                point,
                ..
            } => facts.ask(&["btrfs", "filesystem", "df", &point.display().to_string()]),
            Step::Mount {
                fs_type: "xfs",
                point,
                ..
                // What xfs_info, a script, calls.
            } => facts.ask(&["xfs_spaceman", "-c", "info", &point.display().to_string()]),
            _ => {}
        }
    }
    facts
}

impl Facts {
    fn ask(&mut self, words: &[&str]) {
        if let Ok(output) = Tool::new(words.iter().copied()).run() {
            self.said.insert(words.join(" "), output.out);
        }
    }
}
