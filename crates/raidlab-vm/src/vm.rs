//! A machine under way: messages to it and from it, or why there are none any more.
mod console;
mod crash;
mod trouble;

pub use trouble::Trouble;

use crate::channel::{Decoder, Hello, Message, VERSION};
use crate::error::VmError;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::qemu::{self, Machine, Process, arguments};
use crate::rundir::{RunDir, Runs};
use console::{LOOKED_AT, excerpt, reason};
use raidlab_core::words::steers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

/// QEMU opens the channel before it starts the guest.
const OPENING: Duration = Duration::from_secs(20);
/// A guest that does not take what is sent is stuck.
const SENDING: Duration = Duration::from_secs(60);

/// What is booted.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The image.
    pub image: &'a Image,
    /// The machine.
    pub machine: &'a Machine,
    /// A person has the guest's console on this terminal.
    pub person: bool,
}

/// How QEMU is started.
#[derive(Debug)]
struct Start {
    words: Vec<String>,
    /// Where it opens its channel.
    listener: UnixListener,
    person: bool,
}

impl Start {
    /// Starts it and waits for its channel; anew when it crashes before that, as long as there have not been too many.
    fn launch(
        &self,
        directory: &RunDir,
        crashes: &mut Vec<String>,
    ) -> Result<(Process, UnixStream), VmError> {
        loop {
            let mut process = qemu::spawn(&self.words, directory, self.person)?;
            let opened = open(&self.listener, &mut process, directory);
            match (opened, process.ended().and_then(crash::of)) {
                (Ok(stream), _) => return Ok((process, stream)),
                (Err(_), Some(crash)) if crashes.len() < crash::MOST => crashes.push(crash),
                (Err(error), _) => return Err(error),
            }
        }
    }
}

/// A machine under way. Dropping it ends QEMU and removes its directory.
#[derive(Debug)]
pub struct Vm {
    // In this order: QEMU is gone before its directory is.
    process: Process,
    stream: UnixStream,
    decoder: Decoder,
    heard: Instant,
    start: Start,
    crashes: Vec<String>,
    directory: RunDir,
}

impl Vm {
    /// Starts QEMU. Call it from a thread that lasts as long as the guest (see [`qemu`]).
    ///
    /// # Errors
    /// When QEMU is missing, or refuses; with what it said.
    pub fn start(boot: &Boot<'_>, runs: &Runs) -> Result<Self, VmError> {
        let directory = runs.create()?;
        Self::start_in(boot, directory)
    }

    /// Starts QEMU with a directory that has been made for it already, and may have sockets of disks.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in(boot: &Boot<'_>, directory: RunDir) -> Result<Self, VmError> {
        let socket = directory.path().join(qemu::SOCKET);
        let listener = UnixListener::bind(&socket).map_err(VmError::path("listen at", &socket))?;
        let words = arguments(
            boot.machine,
            &boot.kernel.vmlinuz,
            &boot.image.path,
            directory.path(),
            boot.person,
        );
        let start = Start {
            words,
            listener,
            person: boot.person,
        };
        let mut crashes = Vec::new();
        let (process, stream) = start.launch(&directory, &mut crashes)?;
        Ok(Self {
            process,
            stream,
            decoder: Decoder::default(),
            heard: Instant::now(),
            start,
            crashes,
            directory,
        })
    }

    /// Starts QEMU anew, in the same directory.
    fn again(&mut self) -> Result<(), VmError> {
        let started = self.start.launch(&self.directory, &mut self.crashes)?;
        (self.process, self.stream) = started;
        self.decoder = Decoder::default();
        self.heard = Instant::now();
        Ok(())
    }

    /// How QEMU itself crashed before the guest's first word; each time it was started once more.
    #[must_use]
    pub fn crashes(&self) -> &[String] {
        &self.crashes
    }

    /// Where the keys of a person at the console go; `None` when there is no such person, or it was taken before.
    #[must_use]
    pub fn keys(&mut self) -> Option<ChildStdin> {
        self.process.keys()
    }

    /// QEMU's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The run's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The end of the guest's console.
    #[must_use]
    pub fn console(&self) -> String {
        excerpt(&self.looked_at())
    }

    fn looked_at(&self) -> String {
        let text = self.directory.tail(qemu::CONSOLE, LOOKED_AT);
        // What would command a terminal has no place in a message.
        let plain = |c: &char| *c == '\n' || *c == '\t' || !steers(*c);
        text.chars().filter(plain).collect()
    }

    /// How long nothing has been heard.
    #[must_use]
    pub fn silent(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Trouble::Ended`], [`Trouble::Channel`].
    pub fn send(&mut self, message: &Message) -> Result<(), Trouble> {
        match self.stream.write_all(&message.encode()) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.gone().unwrap_or(Trouble::Channel(error))),
        }
    }

    /// Waits for a message, but no longer than `wait`; `None` when none came. Beats are not told.
    ///
    /// # Errors
    /// [`Trouble`]: nothing more will come.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Message>, Trouble> {
        let until = Instant::now() + wait;
        let mut buffer = vec![0; 64 << 10];
        loop {
            while let Some(message) = self.decoder.take()? {
                if message != Message::Beat {
                    return Ok(Some(message));
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if !readable(&self.stream, left).map_err(Trouble::Channel)? {
                return self.gone().map_or(Ok(None), Err);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(self.end()),
                Ok(n) => {
                    self.heard = Instant::now();
                    self.decoder.feed(&buffer[..n]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.end()),
            }
        }
    }

    /// Waits for the guest's first word. QEMU that crashes before it is started anew, twice at most: nothing of the
    /// guest's work is lost yet ([`Self::crashes`]).
    ///
    /// # Errors
    /// [`Trouble`]; [`Trouble::Late`] after `limit`.
    pub fn hello(
        &mut self,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Hello>, Trouble> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if stop() {
                return Ok(None);
            }
            let message = match self.receive(Duration::from_millis(50)) {
                Ok(message) => message,
                Err(trouble) => {
                    let crash = self.process.ended().and_then(crash::of);
                    let again = crash.filter(|_| self.crashes.len() < crash::MOST);
                    self.crashes.push(again.ok_or(trouble)?);
                    let started = self.again();
                    started.map_err(|error| Trouble::Channel(io::Error::other(error)))?;
                    continue;
                }
            };
            if let Some(Message::Hello(text)) = message {
                let hello: Hello = serde_json::from_str(&text)
                    .map_err(|error| Trouble::Channel(io::Error::other(error)))?;
                if hello.version != VERSION {
                    return Err(Trouble::Version(hello.version));
                }
                return Ok(Some(hello));
            }
        }
        Err(Trouble::Late {
            after: limit,
            console: self.console(),
        })
    }

    /// The trouble of a guest that has given no sign of life for so long.
    #[must_use]
    pub fn too_silent(&self) -> Trouble {
        Trouble::Silent {
            silent: self.silent(),
            console: self.console(),
        }
    }

    /// The trouble of a guest that has taken longer than it may.
    #[must_use]
    pub fn too_late(&self, after: Duration) -> Trouble {
        Trouble::Late {
            after,
            console: self.console(),
        }
    }

    /// Waits for QEMU's end after the guest's last word.
    ///
    /// # Errors
    /// [`Trouble::Late`]; QEMU is killed when the machine is dropped.
    pub fn finish(mut self, limit: Duration) -> Result<(), Trouble> {
        let begun = Instant::now();
        while self.process.ended().is_none() {
            if begun.elapsed() > limit {
                let console = self.console();
                return Err(Trouble::Late {
                    after: limit,
                    console,
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Waits for QEMU's end, for as long as a person likes.
    ///
    /// # Errors
    /// [`Trouble::Channel`].
    pub fn wait(mut self) -> Result<(), Trouble> {
        self.process.wait().map(|_| ()).map_err(Trouble::Channel)
    }

    fn gone(&mut self) -> Option<Trouble> {
        self.process.ended()?;
        // What it said last may still be on its way.
        if readable(&self.stream, Duration::ZERO).unwrap_or(false) {
            return None;
        }
        Some(self.end())
    }

    /// The channel is closed: QEMU has ended, or will in a moment.
    fn end(&mut self) -> Trouble {
        let begun = Instant::now();
        let mut status = self.process.ended();
        while status.is_none() && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(5));
            status = self.process.ended();
        }
        let console = self.looked_at();
        let complaint = self.directory.complaint();
        let how = match (reason(&console), status) {
            (Some(reason), _) => reason,
            (None, _) if !complaint.is_empty() => complaint,
            // QEMU says success of a guest that panicked or powered off.
            (None, Some(status)) if status.success() => "it powered off".to_owned(),
            (None, Some(status)) => format!("QEMU ended with {status}"),
            (None, None) => "QEMU closed the channel".to_owned(),
        };
        Trouble::Ended {
            how,
            console: excerpt(&console),
        }
    }
}

fn readable(stream: &UnixStream, wait: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&wait)) {
        Ok(n) => Ok(n > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits for QEMU to open its channel.
fn open(
    listener: &UnixListener,
    process: &mut Process,
    directory: &RunDir,
) -> Result<UnixStream, VmError> {
    let failed = |said: String| VmError::Command {
        command: qemu::PROGRAM.to_owned(),
        said,
    };
    listener
        .set_nonblocking(true)
        .map_err(VmError::system("set up a socket"))?;
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let set = stream.set_nonblocking(false);
                set.and_then(|()| stream.set_write_timeout(Some(SENDING)))
                    .map_err(VmError::system("set up a socket"))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(VmError::system("wait for QEMU")(error)),
        }
        if let Some(status) = process.ended() {
            let complaint = directory.complaint();
            return Err(failed(if complaint.is_empty() {
                status.to_string()
            } else {
                complaint
            }));
        }
        if begun.elapsed() > OPENING {
            return Err(failed(format!(
                "it did not open its channel within {} s",
                OPENING.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
