//! What ZFS takes: partitions, and the pool itself.
use super::build::{Built, Context};
use super::partition;
use super::ready::has_filesystem;
use super::step::Step;
use super::take::{APPEARS, taken};
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::journal::{Journal, Undo};
use crate::label;
use crate::patience::patiently;
use crate::tool::Tool;
use raidlab_core::units::Bytes;
use std::path::{Path, PathBuf};

impl Built {
    /// Written by the claim itself: nobody else needs the device for it.
    pub(super) fn partition(
        &mut self,
        member: usize,
        id: &str,
        claims: &mut [Claim],
    ) -> Result<()> {
        let id = label::plain(&self.filled(&[id.to_owned()]).concat());
        let mut bytes = [0_u8; 16];
        for (byte, digits) in bytes.iter_mut().zip(id.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        }
        let claim = &claims[member];
        let lent = || HostError::Unexpected(format!("{} is lent", claim.path().display()));
        let file = claim.held().ok_or_else(lent)?;
        partition::write(file, claim.path(), claim.identity().size, bytes)?;
        let node = PathBuf::from(partition::node(&claim.path().display().to_string()));
        // devtmpfs has it at once, udev in a moment.
        appears(&node)
    }

    pub(super) fn make_pool(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let Step::Pool {
            words,
            name,
            on,
            point,
            ashift,
            record_size,
        } = step
        else {
            return Ok(());
        };
        // zpool loads it for a person at a terminal alone.
        has_filesystem(context.roots, "zfs")?;
        appears(&context.roots.dev.join("zfs"))?;
        // zpool makes it; one that is there is another run's.
        if point.exists() {
            return Err(taken(point));
        }
        self.lend(on, claims)?;
        // Its name has a uuid drawn for this run in it, so that it means no other pool.
        let name = self.filled(std::slice::from_ref(name)).concat();
        let undo = [
            Undo::Pool { name: name.clone() },
            Undo::NewDirectory(point.clone()),
        ];
        let taken = journal.intend(&step.what(), &undo)?;
        Tool::new(self.filled(words))
            .cancelled_by(context.cancel)
            .run()?;
        self.remember(journal)?;
        self.verify_pool(&name, *ashift, *record_size)?;
        journal.done(taken)
    }

    /// ZFS lets go of a member; it is cleared, so that nothing takes it for one again, and stays held.
    pub(super) fn take_offline(
        &mut self,
        member: usize,
        name: &str,
        claims: &mut [Claim],
    ) -> Result<()> {
        let Some(claim) = claims.get_mut(member) else {
            return Ok(());
        };
        let path = claim.path().to_owned();
        let node = partition::node(&path.display().to_string());
        Tool::new(["zpool", "offline", &self.filled_word(name), &node]).run()?;
        let uuids = self.plain_uuids();
        claim.empty(&uuids)?;
        // Who looks at what somebody has just closed (udev) has it for a moment.
        let forget = || claim.held().map_or(Ok(()), partition::forget);
        let what = "have the kernel forget the partition of";
        patiently(APPEARS, forget).map_err(HostError::call(what, &path))
    }

    /// What was set is what the pool has: its property, the label on each member, and the file system's record size.
    fn verify_pool(
        &self,
        name: &str,
        ashift: Option<u32>,
        record_size: Option<Bytes>,
    ) -> Result<()> {
        let value = |words: [&str; 7]| -> Result<String> {
            Ok(Tool::new(words).run()?.out.trim().to_owned())
        };
        if let Some(ashift) = ashift {
            let has = value(["zpool", "get", "-Hp", "-o", "value", "ashift", name])?;
            told("the pool's ashift", &has, &ashift.to_string())?;
            for member in &self.plan.members {
                let node = partition::node(&member.path.display().to_string());
                let label = Tool::new(["zdb", "-l", &node]).run()?.out;
                for has in ashifts(&label) {
                    told(
                        &format!("ashift in the label of {node}"),
                        has,
                        &ashift.to_string(),
                    )?;
                }
                if ashifts(&label).next().is_none() {
                    return Err(HostError::Unexpected(format!(
                        "the label of {node} has no ashift"
                    )));
                }
            }
        }
        if let Some(size) = record_size {
            let has = value(["zfs", "get", "-Hp", "-o", "value", "recordsize", name])?;
            told("the file system's recordsize", &has, &size.0.to_string())?;
        }
        Ok(())
    }
}

fn appears(node: &Path) -> Result<()> {
    let found = patiently(APPEARS, || std::fs::metadata(node));
    found.map(drop).map_err(HostError::call("find", node))
}

fn told(what: &str, has: &str, wanted: &str) -> Result<()> {
    if has == wanted {
        return Ok(());
    }
    Err(HostError::Unexpected(format!(
        "{what} is {has}, and {wanted} was asked for"
    )))
}

/// What a label says of ashift, as `zdb -l` prints it.
fn ashifts(label: &str) -> impl Iterator<Item = &str> {
    let lines = label.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix("ashift: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_its_ashift() {
        let label = "    name: 'p'\n    vdev_tree:\n        type: 'mirror'\n        ashift: 12\n        asize: 1\n";
        assert_eq!(ashifts(label).collect::<Vec<_>>(), ["12"]);
        assert!(told("it", "12", "12").is_ok());
        let error = told("the pool's ashift", "12", "9").unwrap_err();
        assert!(error.to_string().contains("is 12, and 9 was asked for"));
    }
}
