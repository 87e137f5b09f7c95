//! A member that dies while it is worked on, because it was asked for: `disk1@5s`.
use raidlab_core::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which disk dies, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Death {
    /// The disk, by its name.
    pub(crate) disk: String,
    /// How long after the beginning.
    pub(crate) after: Span,
}

impl FromStr for Death {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (disk, after) = text
            .rsplit_once('@')
            .filter(|(disk, _)| !disk.is_empty())
            .ok_or("write DISK@TIME, such as disk1@5s")?;
        let after: Span = after
            .parse()
            .map_err(|error| format!("'{after}': {error}"))?;
        Ok(Self {
            disk: disk.to_owned(),
            after,
        })
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.after.0;
        let (count, unit) = match ns {
            ns if ns % 1_000_000_000 == 0 => (ns / 1_000_000_000, "s"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns => (ns, "ns"),
        };
        write!(f, "{}@{count}{unit}", self.disk)
    }
}

impl Death {
    /// In words.
    pub(crate) fn told(&self) -> String {
        format!("{} fails after {}", self.disk, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_a_disk_and_a_time() {
        let death: Death = "disk1@1500ms".parse().expect("one");
        assert_eq!(
            (death.disk.as_str(), death.after),
            ("disk1", Span::from_millis(1500))
        );
        assert_eq!(death.to_string(), "disk1@1500ms");
        let odd: Death = "a@b@1s".parse().expect("one");
        assert_eq!(
            (odd.disk.as_str(), odd.to_string().as_str()),
            ("a@b", "a@b@1s")
        );
        for text in ["disk1", "@5s", "disk1@", "disk1@5", ""] {
            assert!(text.parse::<Death>().is_err(), "{text}");
        }
    }
}
