//! `disk serve` as others use it: qemu-img, qemu-io, nbdinfo, clients that behave badly.
mod clients;
mod service;

use crate::lab::Lab;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Whether the programs of others are here. Where they are not, the test says so; in CI that fails.
fn may(name: &str, programs: &[&str]) -> bool {
    let there = |program: &&&str| {
        let places = ["/usr/bin", "/usr/local/bin", "/bin"];
        !places
            .iter()
            .any(|place| Path::new(place).join(program).exists())
    };
    let Some(missing) = programs.iter().find(there) else {
        return true;
    };
    let message = format!("SKIPPED {name}: needs {missing}");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    let _ = writeln!(std::io::stderr(), "{message}");
    false
}

/// A server under way.
pub(crate) struct Serving {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    /// Where its disks are, as it has told.
    disks: Vec<Value>,
}

impl Serving {
    /// Starts it and waits until it has told where the disks are.
    pub(crate) fn start(lab: &Lab, line: &str) -> Self {
        let mut command = lab.command(&format!("disk serve {line} --json"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("raidlab starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let told = value(&mut out);
        let disks = told["disks"].as_array().expect("disks").clone();
        Self { child, out, disks }
    }

    pub(crate) fn uri(&self, disk: usize) -> &str {
        self.disks[disk]["uri"].as_str().expect("a URI")
    }

    pub(crate) fn socket(&self, disk: usize) -> PathBuf {
        PathBuf::from(self.disks[disk]["socket"].as_str().expect("a socket"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(id, signal).expect("a living process");
    }

    /// Ends it as a user does; what it told last.
    pub(crate) fn end(mut self) -> Value {
        self.signal(Signal::INT);
        let last = value(&mut self.out);
        let status = self.child.wait().expect("an end");
        assert_eq!(status.code(), Some(0));
        last
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next JSON value, which ends with a line of a brace alone.
fn value(out: &mut impl BufRead) -> Value {
    let mut text = String::new();
    while !text.ends_with("\n}\n") {
        let n = out.read_line(&mut text).expect("text");
        assert!(n > 0, "its output ended: {text}");
    }
    serde_json::from_str(&text).expect("JSON")
}

fn ran(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("it runs")
}

#[track_caller]
fn works(program: &str, args: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = ran(program, args);
    let (out, err) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{program} {args:?}: {out}{err}");
    assert!(
        !out.contains("Pattern verification failed"),
        "{args:?}: {out}"
    );
    out.into_owned()
}

/// One disk that takes little time, in a directory that is made for it.
const SSD: &str = "nvme-ssd --size 64MiB --unix sockets";
