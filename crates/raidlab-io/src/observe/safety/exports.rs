//! Devices that the kernel itself serves to other machines or guests. Its NVMe target opens them without holding them, no
//! process has them open, and no mount here names them: only the target's own settings tell.

use std::path::Path;

use super::{InUse, Use, node_name};
use crate::observe::roots::{self, Roots};

/// A device that a target of this machine serves.
pub(super) struct Export {
    /// Kernel name of the device.
    pub(super) device: String,
    /// By which target, as which part of it.
    pub(super) by: String,
}

/// All that is set up to be served, enabled or not: one that is enabled next would serve what has become of it.
pub(super) fn exports(roots: &Roots) -> Vec<Export> {
    let config = roots.sys.join("kernel/config");
    let mut found = Vec::new();
    nvme(roots, &config.join("nvmet/subsystems"), &mut found);
    scsi(roots, &config.join("target/core"), &mut found);
    scst(
        roots,
        &roots.sys.join("kernel/scst_tgt/devices"),
        &mut found,
    );
    found
}

/// Those of one device, as uses of it.
pub(super) fn of(exports: &[Export], device: &str) -> impl Iterator<Item = InUse> {
    let own = exports.iter().filter(move |export| export.device == device);
    own.map(|export| InUse {
        device: export.device.clone(),
        how: Use::ExportedBy(export.by.clone()),
    })
}

/// drivers/nvme/target/configfs.c: `subsystems/NQN/namespaces/N/device_path`.
fn nvme(roots: &Roots, subsystems: &Path, found: &mut Vec<Export>) {
    for name in roots::names_in(subsystems) {
        let namespaces = subsystems.join(&name).join("namespaces");
        for number in roots::names_in(&namespaces) {
            let path = namespaces.join(&number).join("device_path");
            let by = || format!("the NVMe target as namespace {number} of {name}");
            found.extend(export(roots, &path, by));
        }
    }
}

/// drivers/target/target_core_configfs.c: `core/HBA/NAME/udev_path`, which those who set a backstore up write.
fn scsi(roots: &Roots, core: &Path, found: &mut Vec<Export>) {
    for adapter in roots::names_in(core) {
        let adapter_path = core.join(&adapter);
        for name in roots::names_in(&adapter_path) {
            let path = adapter_path.join(&name).join("udev_path");
            let by = || format!("the SCSI target as {name} ({adapter})");
            found.extend(export(roots, &path, by));
        }
    }
}

/// SCST, which is not part of the kernel: `devices/NAME/filename`.
fn scst(roots: &Roots, devices: &Path, found: &mut Vec<Export>) {
    for name in roots::names_in(devices) {
        let path = devices.join(&name).join("filename");
        found.extend(export(roots, &path, || format!("SCST as {name}")));
    }
}

fn export(roots: &Roots, attribute: &Path, by: impl FnOnce() -> String) -> Option<Export> {
    let text = roots::text(attribute)?;
    let path = Path::new(text.lines().next()?.trim());
    let by_name = || {
        let name = path.file_name()?.to_str()?;
        roots.block(name).exists().then(|| name.to_owned())
    };
    Some(Export {
        device: node_name(roots, path).or_else(by_name)?,
        by: by(),
    })
}
