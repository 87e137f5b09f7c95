//! Packages of the distribution's *contrib* component, which most machines do not have among their sources: through an
//! apt of its own, with lists and sources in a directory of raidlab's. Nothing of the machine's apt is changed, no
//! root is needed, and nothing is installed.
use super::build::strays::MARK;
use crate::error::VmError;
use crate::tools;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// An apt with its own lists.
#[derive(Debug)]
pub(super) struct Apt {
    configuration: PathBuf,
    /// Where the build works that it belongs to.
    work: PathBuf,
}

/// What apt shows of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Its version.
    pub(super) version: String,
    /// Names of what it depends on, the first of alternatives, with the version that is fixed, if one is.
    pub(super) depends: Vec<(String, Option<String>)>,
}

impl Apt {
    /// Makes one in a directory, for a build that works in `work`, and fetches the lists.
    ///
    /// # Errors
    /// When the machine has no sources of Debian's, or lists cannot be fetched.
    pub(super) fn new(directory: &Path, work: &Path, stop: &AtomicBool) -> Result<Self, VmError> {
        let sources = directory.join("sources");
        for name in ["sources", "state/lists/partial", "cache/archives/partial"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).map_err(VmError::path("make the directory", &path))?;
        }
        let codename = codename(&fs::read_to_string("/etc/os-release").unwrap_or_default());
        let found = of_machine(Path::new("/etc/apt"), &codename);
        if found.is_empty() {
            return Err(VmError::NoZfs(format!(
                "apt's sources on this machine have none of Debian {codename}, whose contrib component has zfs-dkms"
            )));
        }
        for (name, text) in found {
            let path = sources.join(name);
            fs::write(&path, text).map_err(VmError::path("write", &path))?;
        }
        // Proxies and certificates of the machine; hooks are left out: they would act on the machine's own lists.
        let given = tools::run("apt-config", &["dump"], None)?;
        let configuration = directory.join("apt.conf");
        let text = configured(directory, &String::from_utf8_lossy(&given));
        fs::write(&configuration, text).map_err(VmError::path("write", &configuration))?;
        let apt = Self {
            configuration,
            work: work.to_owned(),
        };
        apt.run("apt-get", &["-q", "update"], None, stop)?;
        Ok(apt)
    }

    fn run(
        &self,
        program: &str,
        arguments: &[&str],
        directory: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<String, VmError> {
        let configuration = self.configuration.to_string_lossy();
        let work = self.work.to_string_lossy();
        let environment = [("APT_CONFIG", &*configuration), (MARK, &*work)];
        let said = tools::run_with(program, arguments, directory, &environment, Some(stop))?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// What is known of a package; the version that apt would install.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(super) fn show(&self, package: &str, stop: &AtomicBool) -> Result<Shown, VmError> {
        let said = self.run(
            "apt-cache",
            &["show", "--no-all-versions", package],
            None,
            stop,
        )?;
        let shown = shown(&said);
        if shown.version.is_empty() {
            return Err(VmError::NoZfs(format!("apt knows no package {package}")));
        }
        Ok(shown)
    }

    /// Names of a package and of the libraries that it needs and this machine does not have.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) fn with_libraries(
        &self,
        package: &str,
        stop: &AtomicBool,
    ) -> Result<Vec<String>, VmError> {
        let words = [
            "-qq",
            "-y",
            "--no-install-recommends",
            "--print-uris",
            "install",
            package,
        ];
        let said = self.run("apt-get", &words, None, stop)?;
        Ok(libraries(&said, package))
    }

    /// Downloads packages, `name` or `name=version`, into a directory.
    ///
    /// # Errors
    /// When one cannot be had.
    pub(super) fn download(
        &self,
        packages: &[String],
        into: &Path,
        stop: &AtomicBool,
    ) -> Result<(), VmError> {
        let mut words = vec!["-q", "download"];
        words.extend(packages.iter().map(String::as_str));
        self.run("apt-get", &words, Some(into), stop).map(drop)
    }
}

/// The settings of an apt in a directory, with what the machine's own says of fetching.
fn configured(directory: &Path, dumped: &str) -> String {
    let at = |name: &str| directory.join(name).display().to_string();
    let mut text = String::new();
    for line in dumped.lines().filter(|line| line.starts_with("Acquire::")) {
        let _ = writeln!(text, "{line}");
    }
    for (key, value) in [
        ("Dir::Etc::main", at("none")),
        ("Dir::Etc::parts", at("none.d")),
        ("Dir::Etc::sourcelist", at("none")),
        ("Dir::Etc::sourceparts", at("sources")),
        ("Dir::State", at("state")),
        ("Dir::State::status", "/var/lib/dpkg/status".to_owned()),
        ("Dir::Cache", at("cache")),
        // The user of its own that apt drops to cannot write here.
        ("APT::Sandbox::User", "root".to_owned()),
        ("Debug::NoLocking", "true".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        (
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled",
            "false".to_owned(),
        ),
    ] {
        let _ = writeln!(text, "{key} \"{value}\";");
    }
    text
}

/// `VERSION_CODENAME` of `os-release(5)`.
fn codename(text: &str) -> String {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.unwrap_or_default().trim_matches('"').to_owned()
}

/// Sources of the machine that are Debian's own, with contrib added: names and contents of files.
fn of_machine(etc: &Path, codename: &str) -> Vec<(String, String)> {
    let mut files = vec![etc.join("sources.list")];
    let entries = fs::read_dir(etc.join("sources.list.d"))
        .into_iter()
        .flatten();
    files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    files.sort();
    let mut found = Vec::new();
    for (number, path) in files.iter().enumerate() {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let kind = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        let with = match kind {
            "list" => lines_with_contrib(&text, codename),
            "sources" => stanzas_with_contrib(&text, codename),
            _ => continue,
        };
        if !with.is_empty() {
            found.push((format!("{number}.{kind}"), with));
        }
    }
    found
}

/// Whether a suite is one of this release: `bookworm`, `bookworm-security`, or by what it is called meanwhile.
fn of_release(suite: &str, codename: &str) -> bool {
    let suite = suite.trim_end_matches('/');
    let name = suite.split(['-', '/']).next().unwrap_or(suite);
    (!codename.is_empty() && name == codename)
        || ["stable", "oldstable", "testing", "unstable", "sid"].contains(&name)
}

fn adds(words: &mut Vec<String>) -> bool {
    let main = words.iter().any(|word| word == "main");
    if main && !words.iter().any(|word| word == "contrib") {
        words.push("contrib".to_owned());
    }
    main
}

/// One-line sources: `deb [options] uri suite component...`.
fn lines_with_contrib(text: &str, codename: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(rest) = line.strip_prefix("deb ").map(str::trim) else {
            continue;
        };
        let (options, rest) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((options, rest)) => (format!("[{options}] "), rest),
            None => (String::new(), rest),
        };
        let mut words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
        let right = words
            .get(1)
            .is_some_and(|suite| of_release(suite, codename));
        if right && adds(&mut words) {
            let _ = writeln!(lines, "deb {options}{}", words.join(" "));
        }
    }
    lines
}

/// Sources in stanzas of fields, as of `deb822(5)`.
fn stanzas_with_contrib(text: &str, codename: &str) -> String {
    let mut all = String::new();
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then_some(value)
            });
            let words = line
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned);
            words.collect::<Vec<String>>()
        };
        let mut components = field("Components");
        let off = field("Enabled").iter().any(|word| word == "no");
        let right = !off
            && field("Types").iter().any(|word| word == "deb")
            && field("Suites")
                .iter()
                .any(|suite| of_release(suite, codename));
        if !right || !adds(&mut components) {
            continue;
        }
        for line in stanza.lines().filter(|line| !line.trim().is_empty()) {
            let key = line
                .split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            let _ = match key.as_str() {
                "components" => writeln!(all, "Components: {}", components.join(" ")),
                // Sources of source packages are of no use here.
                "types" => writeln!(all, "Types: deb"),
                _ => writeln!(all, "{line}"),
            };
        }
        all.push('\n');
    }
    all
}

/// The first package of what `apt-cache show` prints.
fn shown(text: &str) -> Shown {
    let first = text.split("\n\n").next().unwrap_or_default();
    let field = |name: &str| {
        let line = first.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    let one = |entry: &str| {
        let entry = entry.split('|').next().unwrap_or_default().trim();
        let name = entry.split([' ', ':', '(']).next().unwrap_or_default();
        let fixed = entry
            .split_once("(= ")
            .map(|(_, v)| v.trim_end_matches(')').to_owned());
        (name.to_owned(), fixed)
    };
    let depends = field("Depends: ");
    let depends = depends.split(',').filter(|entry| !entry.trim().is_empty());
    Shown {
        version: field("Version: "),
        depends: depends.map(one).collect(),
    }
}

/// Names of the package and of libraries, from lines `'uri' name_version_architecture.deb size digest`.
fn libraries(text: &str, package: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| {
        let file = line.split_whitespace().nth(1)?;
        let name = file.split('_').next()?;
        (name == package || name.starts_with("lib")).then(|| name.to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrib_is_added_to_sources_of_the_release_alone() {
        let text = "# a comment\ndeb http://mirror.example/debian bookworm main\n\
            deb [arch=amd64 signed-by=/a.gpg] https://b/c bookworm-backports main contrib non-free # d\n\
            deb-src http://mirror.example/debian bookworm main\n\
            deb https://other.example/apt other-bookworm main\n\
            deb https://x/y bookworm stable\n";
        assert_eq!(
            lines_with_contrib(text, "bookworm"),
            "deb http://mirror.example/debian bookworm main contrib\n\
             deb [arch=amd64 signed-by=/a.gpg] https://b/c bookworm-backports main contrib non-free\n"
        );
        let text = "Types: deb deb-src\n# snapshot\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
            Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
            Types: deb\nURIs: https://third.example/x\nSuites: nodistro\nComponents: main\n\n\
            Enabled: no\nTypes: deb\nURIs: http://e\nSuites: bookworm\nComponents: main\n";
        assert_eq!(
            stanzas_with_contrib(text, "bookworm"),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n\
             Components: main contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        );
        assert_eq!(codename("NAME=x\nVERSION_CODENAME=bookworm\n"), "bookworm");
    }

    #[test]
    fn only_what_says_how_to_fetch_is_taken_over() {
        let dumped = "APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/*.deb\";\nAcquire::http::Proxy \"http://p:3128\";\n";
        let text = configured(Path::new("/d"), dumped);
        assert!(text.contains("Acquire::http::Proxy \"http://p:3128\";\n"));
        assert!(!text.contains("Post-Invoke"));
        assert!(text.contains("Dir::State \"/d/state\";\n"));
    }

    #[test]
    fn dependencies_are_read_with_fixed_versions() {
        let text = "Package: linux-headers-6.1.0-56-cloud-amd64\nVersion: 6.1.192-2\n\
            Depends: linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (>= 6.1), libc6:amd64 | libc\n\nPackage: other\nVersion: 1\n";
        let shown = shown(text);
        assert_eq!(shown.version, "6.1.192-2");
        let fixed = Some("6.1.192-2".to_owned());
        assert_eq!(
            shown.depends,
            [
                ("linux-headers-6.1.0-56-common".to_owned(), fixed),
                ("linux-kbuild-6.1".to_owned(), None),
                ("libc6".to_owned(), None)
            ]
        );
        let uris = "'http://a/z.deb' zfsutils-linux_2.1.11-1+deb12u1_amd64.deb 1 SHA256:1\n\
            'http://a/l.deb' libzfs4linux_2.1_amd64.deb 1 SHA256:1\n'http://a/p.deb' python3_3_amd64.deb 1 S\n";
        assert_eq!(
            libraries(uris, "zfsutils-linux"),
            ["zfsutils-linux", "libzfs4linux"]
        );
    }
}
