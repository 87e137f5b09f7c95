//! A place to work in, and the program under test.
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing that is waited for takes this long, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The profile that most tests use: four short phases.
pub(crate) const DD: &str = "--profile dd --block-size 4KiB --count 16";

/// The program under test.
pub(crate) fn program() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("raidlab")
}

/// Copies the program to where another user finds it. Another program does: what is open for writing here may be so still in one
/// that another test is just starting, and is not run then.
pub(crate) fn copy_program(to: &Path) {
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).arg(program()).arg(to).status();
    assert!(installed.expect("install").success());
}

/// The samples of other tools' output.
pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../raidlab-results/tests/raw")
}

/// A directory with a place to measure, and a store that is not there yet.
pub(crate) struct Lab {
    root: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(root.path().join("place")).expect("a place");
        Self { root }
    }

    /// A path in this lab.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The directory that is measured.
    pub(crate) fn place(&self) -> PathBuf {
        self.path("place")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store.sqlite")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a writable lab");
        path
    }

    /// The program with these arguments, in the lab's directory. Words are divided by spaces;
    /// `'…'` keeps some together.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(program());
        self.settle(&mut command);
        command.args(words(line));
        command
    }

    /// Directory, store and terminal settings that do not depend on who runs the tests.
    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .current_dir(self.root.path())
            .env("RAIDLAB_STORE", self.store())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        ended(self.command(line))
    }

    /// Measures the place with options, and expects that it works.
    pub(crate) fn bench(&self, options: &str) -> Ran {
        self.run(&format!("bench place {options}")).done()
    }

    /// Starts the program; what it says goes to files.
    pub(crate) fn start(&self, line: &str) -> Running {
        self.start_command(self.command(line))
    }

    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let said = tempfile::NamedTempFile::new_in(self.root.path()).expect("a file");
        let (err, path) = said.keep().expect("a file that stays");
        let child = command
            .stdout(Stdio::null())
            .stderr(err)
            .spawn()
            .expect("raidlab starts");
        Running { child, said: path }
    }

    /// Sessions as `list --json` tells them.
    pub(crate) fn sessions(&self) -> Vec<Value> {
        let Value::Array(all) = self.run("list --json").done().json() else {
            panic!("list --json is a list");
        };
        all
    }

    /// Trials of the last session.
    pub(crate) fn trials(&self) -> Vec<Value> {
        let mut shown = self.run("show --json").done().json();
        let Value::Array(all) = shown["trials"].take() else {
            panic!("show --json has trials");
        };
        all
    }

    /// Trials of all sessions that came to their end: on a fast machine a run may end before it is killed, and the next
    /// begins a session of its own.
    pub(crate) fn complete(&self) -> usize {
        if !self.store().exists() {
            return 0;
        }
        let of_session = |listed: &Value| {
            let id = listed["id"].as_str().expect("an id");
            let shown = self.run(&format!("show {id} --json"));
            if shown.err.contains("no session") {
                // A run that came to no trial has forgotten its session meanwhile.
                return 0;
            }
            let mut shown = shown.done().json();
            let Value::Array(trials) = shown["trials"].take() else {
                panic!("show --json has trials");
            };
            let done = |trial: &&Value| trial["status"] == "complete";
            trials.iter().filter(done).count()
        };
        self.sessions().iter().map(of_session).sum()
    }

    /// Nothing was left in the place.
    pub(crate) fn assert_clean(&self) {
        assert_empty(&self.place());
    }

    /// Nothing was left anywhere: no store, no half of one, nothing in the place.
    pub(crate) fn assert_untouched(&self) {
        self.assert_nothing_but(&[]);
    }

    /// Nothing but these files of the test's own is there.
    pub(crate) fn assert_nothing_but(&self, files: &[&str]) {
        self.assert_clean();
        let mut expected = vec!["place"];
        expected.extend(files);
        expected.sort_unstable();
        assert_eq!(names(self.root.path()), expected, "nothing may be left");
    }
}

/// Names in a directory, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("a readable directory")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

pub(crate) fn assert_empty(directory: &Path) {
    assert_eq!(names(directory), [""; 0], "left in {}", directory.display());
}

/// Divides a line into words as a shell would, with `'…'` as the only quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            // A quoted part goes on with the word before it when there is no space between.
            match words.last_mut() {
                Some(word) if !line_before(line, i).ends_with(' ') => {
                    let word: &mut String = word;
                    word.push_str(part);
                }
                _ => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn line_before(line: &str, quotes: usize) -> &str {
    let at = line
        .match_indices('\'')
        .nth(quotes - 1)
        .map_or(0, |(at, _)| at);
    &line[..at]
}

/// Runs a command to its end, but not for ever.
pub(crate) fn ended(command: Command) -> Ran {
    ended_within(command, PATIENCE)
}

/// Runs a command to its end, which may take so long.
pub(crate) fn ended_within(command: Command, patience: Duration) -> Ran {
    let line = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let output = assert_cmd::Command::from_std(command)
        .timeout(patience)
        .output()
        .expect("raidlab runs");
    Ran {
        line,
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text on standard output"),
        err: String::from_utf8(output.stderr).expect("text on standard error"),
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    line: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Text on one line with single blanks.
pub(crate) fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Ran {
    /// It ended with this code, and did not panic.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        let Self { line, out, err, .. } = &self;
        assert_eq!(
            self.code,
            Some(code),
            "{line}\n--- out\n{out}\n--- err\n{err}"
        );
        assert!(!err.contains("panicked"), "{line}\n{err}");
        self
    }

    #[track_caller]
    pub(crate) fn done(self) -> Self {
        self.code(0)
    }

    /// It refused with this code, and printed no data.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> Self {
        let ran = self.code(code);
        assert_eq!(ran.out, "", "{}: no data with an error", ran.line);
        ran
    }

    /// Standard error has all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.err.contains(part),
                "{}: no '{part}' in\n{}",
                self.line,
                self.err
            );
        }
        self
    }

    /// Standard output has all of these, wherever its lines are folded.
    #[track_caller]
    pub(crate) fn prints(self, parts: &[&str]) -> Self {
        let unfolded = unfolded(&self.out);
        for part in parts {
            assert!(
                self.out.contains(part) || unfolded.contains(part),
                "{}: no '{part}' in\n{}",
                self.line,
                self.out
            );
        }
        self
    }

    /// Standard output is one JSON value and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{}: {error} in\n{}", self.line, self.out))
    }
}

/// A run under way. It is ended when the test ends.
pub(crate) struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.said).expect("its words")
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) {
        until(&format!("'{part}' to be said"), || {
            // A short run may have said it and ended since.
            let runs = self.is_running();
            let said = self.said().contains(part);
            assert!(runs || said, "it ended: {}", self.said());
            said
        });
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(id, signal).expect("a living process");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        until("raidlab to end", || !self.is_running());
        self.child.wait().expect("a child")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn words_are_divided_as_by_a_shell() {
    assert_eq!(words("a  b 'c d' e:'f g' "), ["a", "b", "c d", "e:f g"]);
}
