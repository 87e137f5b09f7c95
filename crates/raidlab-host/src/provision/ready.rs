//! What a plan needs of this machine.
use super::plan::{MemberDevice, ProvisionPlan};
use super::step::Step;
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::inventory::Device;
use crate::sysfs;
use crate::system;
use crate::tool::{self, Tool};
use raidlab_io::observe::Roots;
use std::path::Path;

/// What of a device decides how it is set as a member.
#[must_use]
pub fn member(roots: &Roots, device: &Device) -> MemberDevice {
    member_of(roots, &device.path, &device.identity)
}

/// As [`member`], of a device that is claimed already.
#[must_use]
pub fn claimed_member(roots: &Roots, claim: &Claim) -> MemberDevice {
    member_of(roots, claim.path(), claim.identity())
}

fn member_of(roots: &Roots, path: &Path, identity: &Identity) -> MemberDevice {
    let block = roots.block(&identity.name);
    let schedulers = sysfs::text(&block.join("queue/scheduler")).unwrap_or_default();
    let word = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let cache = sysfs::text(&block.join("queue/write_cache"));
    MemberDevice {
        path: path.to_owned(),
        identity: identity.clone(),
        schedulers: schedulers.split_whitespace().map(word).collect(),
        write_cache: cache.map(|cache| cache == "write back"),
        // What libata shows; the address of a drive of another kind says another vendor.
        ata: sysfs::text(&block.join("device/vendor")).is_some_and(|vendor| vendor == "ATA"),
        has_queue_depth: block.join("device/queue_depth").exists(),
        throttles: block.join("queue/wbt_lat_usec").exists(),
    }
}

/// Numbers that no md array has, the first ones that are not mdadm's own choice: it counts from 127 downwards.
#[must_use]
pub fn free_arrays(roots: &Roots) -> Vec<u32> {
    let used = |number: &u32| roots.block(&format!("md{number}")).exists();
    (60..120).rev().filter(|number| !used(number)).collect()
}

/// Whether mdadm can put a disk into a DDF container. That of 4.2 looks at the chunk size which `--add` does not give it
/// (`Manage_add`, `validate_geometry_ddf`), and ends by a segmentation fault; 4.3 does not. An mdadm that is missing is
/// told of where it is needed.
#[must_use]
pub fn adds_to_ddf() -> bool {
    let said = Tool::new(["mdadm", "--version"]).run();
    said.is_ok_and(|said| version(&format!("{}{}", said.out, said.error)) != Some((4, 2)))
}

/// `mdadm - v4.2 - 2021-12-30 - Debian 4.2-5`.
fn version(said: &str) -> Option<(u32, u32)> {
    let word = said
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'))?;
    let mut numbers = word.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Makes sure that user, tools and kernel have what a plan takes. Modules are loaded where that is possible.
///
/// # Errors
/// [`HostError::Missing`] with the remedy.
pub fn requirements(roots: &Roots, plan: &ProvisionPlan) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(HostError::missing(
            "building arrays and file systems takes root: this user may neither open the devices nor mount",
            "run it as root (sudo raidlab ...); 'raidlab run FILE --on sim' and 'raidlab bench DIRECTORY' need no root",
        ));
    }
    for check in &plan.checks {
        check
            .tool()
            .map_or(Ok(()), |name| tool::need(name).map(drop))?;
    }
    for step in plan.all_steps() {
        for name in step.tools() {
            tool::need(name)?;
        }
        match step {
            Step::Array { .. } => has_md(roots)?,
            Step::Mount { fs_type, .. } => has_filesystem(roots, fs_type)?,
            Step::Pool { .. } => has_filesystem(roots, "zfs")?,
            Step::System { name, .. } => system::can_be_set(roots, name)?,
            _ => {}
        }
    }
    Ok(())
}

fn has_md(roots: &Roots) -> Result<()> {
    let there = || roots.proc.join("mdstat").exists();
    if there() || (load("md_mod") && there()) {
        return Ok(());
    }
    Err(HostError::missing(
        "this kernel has no md (there is no /proc/mdstat, and the module md_mod cannot be loaded)",
        "run the experiment with --on vm or --on sim, or with engine = \"btrfs\"",
    ))
}

/// Makes sure that the kernel has a file system, and loads its module if need be.
///
/// # Errors
/// [`HostError::Missing`] with the remedy.
pub(super) fn has_filesystem(roots: &Roots, name: &str) -> Result<()> {
    let listed = |name: &str| {
        let text = std::fs::read_to_string(roots.proc.join("filesystems")).unwrap_or_default();
        text.lines()
            .any(|line| line.split_whitespace().next_back() == Some(name))
    };
    // One driver has all three; it shows itself as those that it was built for.
    let family = ["ext2", "ext3", "ext4"];
    let there = || listed(name) || (name == "ext2" && listed("ext4"));
    let module = if family.contains(&name) { "ext4" } else { name };
    if there() || (load(module) && there()) {
        return Ok(());
    }
    Err(HostError::missing(
        format!("this kernel has no {name}, and its module cannot be loaded"),
        "choose another file system, or run the experiment with --on vm or --on sim",
    ))
}

fn load(module: &str) -> bool {
    Tool::new(["modprobe", "-q", module]).run().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_mdadm_are_read() {
        let of_debian = "mdadm - v4.2 - 2021-12-30 - Debian 4.2-5\n";
        assert_eq!(version(of_debian), Some((4, 2)));
        assert_eq!(version("mdadm - v4.3-rc1 - 2024\n"), Some((4, 3)));
        assert_eq!(version("no such thing\n"), None);
    }
}
