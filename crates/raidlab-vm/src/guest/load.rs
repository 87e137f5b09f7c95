//! Loading kernel modules by the table that the image carries.
use crate::modules::{Module, TABLE, Table};
use rustix::io::Errno;
use rustix::system::finit_module;
use std::fs::{self, File};
use std::path::Path;

/// Loads modules, by name or alias, with what they need. What could not be loaded, in words; names that
/// the image does not know are none: the kernel has them built in, or nobody has.
pub fn load(wanted: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(Path::new("/").join(TABLE)).unwrap_or_default();
    let table = Table::parse(&text);
    let order = table.order(wanted).into_iter();
    order.filter_map(|module| one(module).err()).collect()
}

fn one(module: &Module) -> Result<(), String> {
    let failed = |why: String| format!("cannot load the module {}: {why}", module.name);
    let file = File::open(Path::new("/").join(&module.path)).map_err(|e| failed(e.to_string()))?;
    match finit_module(&file, c"", 0) {
        // There already; or for another processor, such as the faster of two implementations.
        Ok(()) | Err(Errno::EXIST | Errno::NODEV) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// What the kernel starts when it wants a module.
#[must_use]
pub fn modprobe(names: &[String]) -> std::process::ExitCode {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if load(&names).is_empty() {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}
