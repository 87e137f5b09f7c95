//! What ZFS takes: partitions, and the pool itself.
use super::build::{Built, Context};
use super::partition;
use super::step::Step;
use super::take::patiently;
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::journal::{Journal, Undo};
use crate::label;
use crate::tool::Tool;
use std::path::PathBuf;

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
        patiently(|| {
            std::fs::metadata(&node)
                .map(drop)
                .map_err(HostError::call("find", &node))
        })
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
        } = step
        else {
            return Ok(());
        };
        self.lend(on, claims)?;
        // Its name has a uuid drawn for this run in it, so that it means no other pool.
        let name = self.filled(std::slice::from_ref(name)).concat();
        let undo = [Undo::Pool { name }, Undo::NewDirectory(point.clone())];
        let taken = journal.intend(&step.what(), &undo)?;
        Tool::new(self.filled(words))
            .cancelled_by(context.cancel)
            .run()?;
        self.remember(journal)?;
        journal.done(taken)
    }
}
