//! What helps a user whom the kernel forbids something.

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What helps when the kernel forbade something (EPERM, EACCES): `otherwise` for a user, and for root, to
/// whom "run as root" says nothing, who else may forbid it.
#[must_use]
pub const fn remedy(root: bool, otherwise: &'static str) -> &'static str {
    if root {
        "this is root already: a container's rules, a security module, the mount option nodev or an immutable file \
         (lsattr) forbid it"
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_be_root() {
        assert_eq!(remedy(false, "run as root"), "run as root");
        let told = remedy(true, "run as root");
        assert!(
            !told.contains("run as root") && told.contains("container"),
            "{told}"
        );
    }
}
