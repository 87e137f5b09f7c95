//! Whose a device is: theirs, until two witnesses say that it is nobody's.
use crate::error::Result;
use raidlab_io::observe::Roots;
use raidlab_io::observe::safety::{InUse, Use, inspect_name};
use raidlab_io::observe::stack::DeviceKind;
use serde::{Deserialize, Serialize};

/// What the two witnesses said of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witnesses {
    /// The kernel: mounts, swap, what is built on it, on its partitions and on the disk below; write protection.
    pub kernel: Vec<InUse>,
    /// The bytes: known signatures, and devices that cannot be read.
    pub bytes: Vec<InUse>,
}

/// Whose a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ownership {
    /// Nobody's: both witnesses say so.
    Unowned,
    /// Someone's, or in doubt, which is the same.
    Theirs,
}

impl Witnesses {
    /// Asks both about a device by its kernel name. A partition is asked about with its disk and all that is on that.
    ///
    /// # Errors
    /// When a witness cannot be heard at all: then nothing is known.
    pub fn ask(roots: &Roots, name: &str) -> Result<Self> {
        let mut said = Self::default();
        let mut take = |found: Vec<InUse>, of_the_disk: bool| {
            for used in found {
                let bytes = matches!(used.how, Use::Signed(_) | Use::Unreadable(_));
                // That the disk is partitioned is why there is a partition, and its table is the disk's own.
                let expected = of_the_disk && (bytes || matches!(used.how, Use::Partitioned(_)));
                let list = if bytes {
                    &mut said.bytes
                } else {
                    &mut said.kernel
                };
                if !expected && !list.contains(&used) {
                    list.push(used);
                }
            }
        };
        take(inspect_name(roots, name)?, false);
        let record = crate::identity::record_of(roots, name)?;
        if record.kind == DeviceKind::Partition
            && let Some(disk) = record.below.first()
        {
            take(inspect_name(roots, disk)?, true);
        }
        Ok(said)
    }

    /// Whose it is, after what was said.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        if self.kernel.is_empty() && self.bytes.is_empty() {
            Ownership::Unowned
        } else {
            Ownership::Theirs
        }
    }

    /// What was said against using it, in words; empty when it is nobody's.
    #[must_use]
    pub fn told(&self) -> String {
        let all = self.kernel.iter().chain(&self.bytes);
        let mut told: Vec<String> = all.map(ToString::to_string).collect();
        told.dedup();
        // That no one uses a signed device does not make it free: someone may want what is on it.
        if self.kernel.is_empty() && !self.bytes.is_empty() {
            told.push("no one uses it now, but that does not make it free".to_owned());
        }
        told.join("; ")
    }
}
