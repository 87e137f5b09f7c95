//! Which packages a build takes, and where the headers of the kernel are.
use super::super::apt::Apt;
use super::{SOURCE, USERLAND, Work, needs};
use crate::cache::{digest_of, names};
use crate::error::VmError;
use crate::kernel::Package;
use std::fs;
use std::path::PathBuf;

/// What is built.
pub(super) struct Plan {
    pub(super) version: String,
    pub(super) packages: Vec<String>,
}

/// Headers of the kernel: the configured part, and what all configurations share.
pub(super) struct Headers {
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
}

impl Work<'_> {
    /// Which packages are needed.
    pub(super) fn plan(&self, apt: &Apt) -> Result<Plan, VmError> {
        let unknown = |what: String| {
            move |error: VmError| match error {
                VmError::Command { said, .. } => {
                    VmError::NoZfs(format!("apt has no {what}: {said}"))
                }
                other => other,
            }
        };
        let shown = apt.show(SOURCE, self.stop);
        let version = shown.map_err(unknown(SOURCE.to_owned()))?.version;
        let mut packages = vec![SOURCE.to_owned()];
        if self.installed().is_none() {
            let headers = format!("linux-headers-{}", self.kernel.release);
            let shown = apt.show(&headers, self.stop);
            let shown = shown.map_err(unknown(format!(
                "{headers} (any more? 'raidlab vm setup --refresh' fetches the kernel of today)"
            )))?;
            let parts = shown.depends.into_iter().map(|(name, _)| name);
            packages.extend(parts.filter(|name| {
                name.starts_with("linux-headers-") || name.starts_with("linux-kbuild-")
            }));
            packages.push(headers);
        }
        let userland = apt.show(USERLAND, self.stop)?;
        if userland.version != version {
            return Err(VmError::NoZfs(format!(
                "{SOURCE} is of version {version}, and {USERLAND} of {}",
                userland.version
            )));
        }
        packages.extend(match apt.with_libraries(USERLAND, self.stop)? {
            // It is installed, and with it all that it needs: its own libraries are fetched all the same.
            none if none.is_empty() => {
                let own = userland
                    .depends
                    .into_iter()
                    .filter(|(_, fixed)| *fixed == Some(version.clone()));
                own.map(|(name, _)| name)
                    .chain([USERLAND.to_owned()])
                    .collect()
            }
            some => some,
        });
        Ok(Plan { version, packages })
    }

    /// Headers that this machine has installed for its own kernel.
    fn installed(&self) -> Option<Headers> {
        if self.kernel.package.is_some() {
            return None;
        }
        let modules = PathBuf::from("/lib/modules").join(&self.kernel.release);
        let own = modules.join("build").canonicalize().ok()?;
        let common = modules.join("source").canonicalize();
        own.join("Makefile").is_file().then(|| Headers {
            common: common.unwrap_or_else(|_| own.clone()),
            own,
        })
    }

    pub(super) fn headers(&self) -> Result<Headers, VmError> {
        if let Some(headers) = self.installed() {
            return Ok(headers);
        }
        let sources = self.path("kernel/usr/src");
        let own = sources.join(format!("linux-headers-{}", self.kernel.release));
        let all = names(&sources);
        let common = all.iter().find(|name| name.ends_with("-common"));
        let common = common.map_or_else(|| own.clone(), |name| sources.join(name));
        let variables = fs::read_to_string(own.join(".kernelvariables")).unwrap_or_default();
        // The kernel wants the compiler that it was built with.
        if let Some(compiler) = compiler(&variables) {
            needs(&[(&compiler, &compiler)])?;
        }
        Ok(Headers { own, common })
    }

    pub(super) fn packages(&self) -> Result<Vec<Package>, VmError> {
        let directory = self.path("packages");
        let one = |name: String| -> Result<Package, VmError> {
            let sha256 = digest_of(&directory.join(&name))?;
            let mut parts = name.trim_end_matches(".deb").split('_');
            let part = |part: Option<&str>| part.unwrap_or_default().replace("%3a", ":");
            Ok(Package {
                name: part(parts.next()),
                version: part(parts.next()),
                sha256,
            })
        };
        names(&directory).into_iter().map(one).collect()
    }
}

/// `gcc-12` of the variables that Debian's headers set.
pub(super) fn compiler(variables: &str) -> Option<String> {
    let line = variables.lines().find(|line| line.starts_with("CC = "))?;
    let at = line.rfind("gcc-")?;
    let word = line[at..].split_whitespace().next()?;
    Some(word.to_owned())
}
