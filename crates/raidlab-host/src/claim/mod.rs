//! The right to write to a device: only by holding it, only after everything was asked again of what is held.
//!
//! # How exclusivity is kept when a tool needs the device
//! mdadm, mkfs and the kernel's own mount want the device to themselves, so that the claim must let go of it for that
//! step (`Claim::lend`) and take it back (`Claim::retake`) or see who has it then (`Claim::held_by`). Over the
//! gap a second descriptor, which excludes no one, stays open: as long as it is, the device number cannot come to mean
//! another device. Directly before the gap the device is asked for its identity, through the descriptor that held it;
//! after the gap through the one that stayed. Who took the device meanwhile is in the kernel's list of holders or in
//! the mount table, and must be the array or the mount that the step was to make: anything else ends the run, and
//! nothing more is written.
mod clear;
mod open;
mod others;
mod own;

pub(crate) use clear::clear;
pub(crate) use open::open_exclusively;
pub(crate) use others::opener_of;
pub use own::Own;

use crate::allow::Allowed;
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::inventory::Device;
use crate::label;
use crate::ownership::{Ownership, Witnesses};
use crate::patience::patiently;
use crate::sysfs;
use open::open_with;
use own::OwnKind;
use raidlab_io::observe::Roots;
use raidlab_io::observe::safety::unreadable;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// By what right a device is claimed.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a> {
    /// An entry of the allow-list.
    Allowed(&'a Allowed),
    /// raidlab made it.
    Own(&'a Own),
}

/// What stands between a device and a claim on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// The kernel uses it for nothing, and it is not write-protected.
    Kernel,
    /// It carries no known signature, and can be read.
    Bytes,
    /// Nobody else holds it.
    Exclusive,
    /// No other process has it open, and no other device shows its bytes, which holding it does not tell.
    Open,
    /// What was opened is what was looked at.
    Identity,
    /// It is raidlab's own, or fits its entry of the allow-list.
    Right,
}

impl Gate {
    const ALL: &'static [Self] = &[
        Self::Kernel,
        Self::Bytes,
        Self::Exclusive,
        Self::Open,
        Self::Identity,
        Self::Right,
    ];
}

#[derive(Debug)]
enum Hold {
    /// Nobody else can take it.
    Exclusive(File),
    /// Lent to a step; the descriptor only makes sure that it stays the same device.
    Lent(File),
    /// Nobody holds it: it is no longer what was claimed, or this is a guest, whose disks are all raidlab's own.
    Gone,
}

/// A device that may be overwritten, and is held so that nobody else takes it. There is no other way to come by one
/// than [`Claim::take`].
#[derive(Debug)]
pub struct Claim {
    roots: Roots,
    path: PathBuf,
    identity: Identity,
    own: bool,
    hold: Hold,
}

impl Claim {
    /// Claims a device. It is opened exclusively, and identity and emptiness are asked again through that descriptor:
    /// what the inventory said may have changed since.
    ///
    /// # Errors
    /// [`HostError::Refused`] when it is someone's, busy, or not the device that was meant.
    pub fn take(roots: &Roots, device: &Device, right: Right<'_>) -> Result<Self> {
        Self::through(roots, device, right, Gate::ALL)
    }

    /// Claims a device through these gates. The product goes through all of them; tests leave one out, to show that it
    /// was that one that refused.
    fn through(roots: &Roots, device: &Device, right: Right<'_>, gates: &[Gate]) -> Result<Self> {
        let path = &device.path;
        let asked = |gate| gates.contains(&gate);
        let refused = |why: String| Err(HostError::refused(path, why));
        let heard = |said: &Witnesses| Witnesses {
            kernel: if asked(Gate::Kernel) {
                said.kernel.clone()
            } else {
                Vec::new()
            },
            bytes: if asked(Gate::Bytes) {
                said.bytes.clone()
            } else {
                Vec::new()
            },
        };
        let said = heard(&device.witnesses);
        if said.ownership() == Ownership::Theirs {
            return refused(said.told());
        }
        let file = open_with(path, asked(Gate::Exclusive))?;
        let found = Identity::of_open(roots, &file, path)?;
        if asked(Gate::Identity) && found != device.identity {
            return refused("it is no longer the device that was looked at".to_owned());
        }
        let allowed = match right {
            Right::Own(own) => own.check(&found),
            Right::Allowed(entry) => entry.check(&found),
        };
        if let (true, Err(why)) = (asked(Gate::Right), allowed) {
            return refused(why);
        }
        if asked(Gate::Open)
            && let Right::Allowed(_) = right
            && let Some(hidden) = unreadable(roots)
            && !hidden.privileged
        {
            let pid = hidden.pid;
            return refused(format!(
                "the open files of process {pid} cannot be looked into, so that it is not known whether it has the device \
                 open: run raidlab as root with CAP_SYS_PTRACE"
            ));
        }
        if asked(Gate::Open)
            && let Some(other) = others::others(roots, &file, &found)
        {
            return refused(other);
        }
        let said = heard(&Witnesses::ask(roots, &found.name)?);
        if said.ownership() == Ownership::Theirs {
            return refused(said.told());
        }
        if asked(Gate::Bytes)
            && let Some(signature) = label::signatures(&file, found.size, path)?.first()
        {
            return refused(format!("it carries {signature}"));
        }
        Ok(Self {
            roots: roots.clone(),
            path: path.clone(),
            identity: found,
            own: matches!(right, Right::Own(_)),
            hold: Hold::Exclusive(file),
        })
    }

    /// Claims an array that was just built, by the claims on its members: it lies on these alone. What shines through of earlier
    /// uses of the members is nobody's, and is emptied: it would be taken for what someone has made on the array since.
    ///
    /// # Errors
    /// [`HostError::Refused`] when it lies on anything else, or is in use.
    pub(crate) fn of_built(roots: &Roots, path: &Path, members: &[Identity]) -> Result<Self> {
        let file = open_exclusively(path)?;
        let identity = Identity::of_open(roots, &file, path)?;
        let below = sysfs::names(&roots.block(&identity.name).join("slaves"));
        if below.is_empty() {
            let why = "it lies on none of the members: it is no array that was built on them";
            return Err(HostError::refused(path, why));
        }
        for below in below {
            if !members.iter().any(|member| member.name == below) {
                return Err(HostError::refused(path, format!("it lies on {below}, too")));
            }
        }
        if !label::signatures(&file, identity.size, path)?.is_empty() {
            clear(&file, identity.size, path)?;
        }
        Ok(Self {
            roots: roots.clone(),
            path: path.to_owned(),
            identity,
            own: true,
            hold: Hold::Exclusive(file),
        })
    }

    /// The node.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By what it is known.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether raidlab made the device itself.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// The descriptor that holds it; `None` while it is lent.
    #[must_use]
    pub fn held(&self) -> Option<&File> {
        match &self.hold {
            Hold::Exclusive(file) => Some(file),
            Hold::Lent(_) | Hold::Gone => None,
        }
    }

    /// Lets go of the device for a step that needs it. Nothing happens when it is lent already.
    ///
    /// # Errors
    /// When it is no longer the device that was claimed; it is let go of for good then.
    pub(crate) fn lend(&mut self) -> Result<()> {
        self.hand_over().map(drop)
    }

    /// Lends the device and gives away what holds it: as long as that is open, nobody else can take it. `None` when it is lent already.
    ///
    /// # Errors
    /// As [`Self::lend`].
    pub(crate) fn hand_over(&mut self) -> Result<Option<File>> {
        let Hold::Exclusive(file) = &self.hold else {
            return Ok(None);
        };
        let stays = self.verify(file).and_then(|()| {
            let stays = raidlab_io::observe::safety::open_for_reading(&self.path)?;
            self.verify(&stays)?;
            Ok(stays)
        });
        let (hold, came) = match stays {
            Ok(stays) => (Hold::Lent(stays), Ok(())),
            Err(error) => (Hold::Gone, Err(error)),
        };
        let held = std::mem::replace(&mut self.hold, hold);
        came.map(|()| match held {
            Hold::Exclusive(file) => Some(file),
            Hold::Lent(_) | Hold::Gone => None,
        })
    }

    /// Closes the device altogether, for a tool that must be the last to close it: the kernel then writes back what it
    /// holds of it before `close` returns. Only where no other device can take its place: in a guest.
    ///
    /// # Errors
    /// When it is no longer the device that was claimed, or this is no guest.
    pub(crate) fn let_go(&mut self, own: &Own) -> Result<()> {
        if !matches!(own.0, OwnKind::Guest) {
            let why = "it may be let go of in a guest alone";
            return Err(HostError::refused(&self.path, why));
        }
        if let Hold::Exclusive(file) | Hold::Lent(file) = &self.hold {
            self.verify(file)?;
        }
        self.hold = Hold::Gone;
        Ok(())
    }

    /// Takes back what was [let go of](Self::let_go).
    ///
    /// # Errors
    /// As [`Self::retake`].
    pub(crate) fn take_again(&mut self) -> Result<()> {
        if matches!(self.hold, Hold::Gone) {
            let file = open_exclusively(&self.path)?;
            self.verify(&file)?;
            self.hold = Hold::Exclusive(file);
        }
        Ok(())
    }

    /// Takes the device back after a step, for itself alone.
    ///
    /// # Errors
    /// When someone else has it, or it has become another device.
    pub(crate) fn retake(&mut self) -> Result<()> {
        let Hold::Lent(stayed) = &self.hold else {
            return Ok(());
        };
        self.verify(stayed)?;
        // Tools that look at every new device (udev) hold it for a moment.
        let file = patiently(Duration::from_secs(5), || open_exclusively(&self.path))?;
        self.verify(&file)?;
        self.hold = Hold::Exclusive(file);
        Ok(())
    }

    /// Takes the device back and makes sure that nothing of raidlab's, or of anyone's, is left on it.
    ///
    /// # Errors
    /// As [`Self::retake`], and when something is on it.
    pub(crate) fn retake_empty(&mut self) -> Result<()> {
        self.retake()?;
        let Hold::Exclusive(file) = &self.hold else {
            return Ok(());
        };
        is_empty(&self.roots, file, &self.identity, &self.path)
    }

    /// Takes the device back and clears what a step has made on it, which is all that is there: it carries one of these uuids.
    ///
    /// # Errors
    /// As [`Self::retake`]; when something else is on it, and when it cannot be written.
    pub(crate) fn empty(&mut self, uuids: &[String]) -> Result<()> {
        self.retake()?;
        let Hold::Exclusive(file) = &self.hold else {
            return Ok(());
        };
        let labels = label::read(file, self.identity.size, &self.path)?;
        if let Some(other) = labels.iter().find(|label| !label.is_one_of(uuids)) {
            let why = format!("{} is on it, which raidlab has not made", other.what);
            return Err(HostError::refused(&self.path, why));
        }
        clear(file, self.identity.size, &self.path)
    }

    /// Makes sure that a lent device is part of what the step was to make, and of nothing else.
    ///
    /// # Errors
    /// [`HostError::Refused`] when something else has it.
    pub(crate) fn held_by(&self, wanted: &[String]) -> Result<()> {
        let Hold::Lent(stayed) = &self.hold else {
            return Ok(());
        };
        self.verify(stayed)?;
        let holders = sysfs::names(&self.roots.block(&self.identity.name).join("holders"));
        match holders.iter().find(|holder| !wanted.contains(holder)) {
            None => Ok(()),
            Some(other) => Err(HostError::refused(
                &self.path,
                format!("{other} took it while raidlab worked on it; nothing more is written"),
            )),
        }
    }

    fn verify(&self, file: &File) -> Result<()> {
        let found = Identity::of_open(&self.roots, file, &self.path)?;
        if found == self.identity {
            return Ok(());
        }
        let why = "it has become another device since it was claimed";
        Err(HostError::refused(&self.path, why))
    }
}

/// Asks both witnesses again, the bytes through the very descriptor.
fn is_empty(roots: &Roots, file: &File, found: &Identity, path: &Path) -> Result<()> {
    let said = Witnesses::ask(roots, &found.name)?;
    if said.ownership() == Ownership::Theirs {
        return Err(HostError::refused(path, said.told()));
    }
    match label::signatures(file, found.size, path)?.first() {
        None => Ok(()),
        Some(signature) => Err(HostError::refused(path, format!("it carries {signature}"))),
    }
}

#[cfg(test)]
mod tests;
