//! The agent's end of the channel: the job in, records out, each acknowledged.
use crate::channel::{Decoder, Hello, Message, VERSION};
use crate::qemu::PORT;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the host is told that the guest lives, by the guest's clock.
const BEAT: Duration = Duration::from_secs(2);
/// The port appears when its driver has found it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The host's end of the channel is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host has closed the channel")]
pub struct Closed;

/// The channel. A port can be opened once, so that there is one of these.
#[derive(Debug)]
pub struct Session {
    port: Arc<Mutex<File>>,
    heard: Receiver<Message>,
    stop: Arc<AtomicBool>,
    last: u32,
}

impl Session {
    /// Opens the port, says hello, and starts the beats.
    ///
    /// # Errors
    /// When there is no port.
    pub fn open(raidlab: &str) -> io::Result<Self> {
        let path = find()?;
        let port = File::options().read(true).write(true).open(path)?;
        let reader = port.try_clone()?;
        let port = Arc::new(Mutex::new(port));
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, heard) = channel();
        let stopped = Arc::clone(&stop);
        thread::Builder::new()
            .name("channel".into())
            .spawn(move || listen(reader, &tell, &stopped))?;
        let session = Self {
            port,
            heard,
            stop,
            last: 0,
        };
        let hello = Hello {
            version: VERSION,
            raidlab: raidlab.to_owned(),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            uptime_ns: uptime(),
            memory: memory(),
        };
        session.say(&Message::Hello(serde_json::to_string(&hello)?))?;
        let port = Arc::clone(&session.port);
        thread::Builder::new().name("beat".into()).spawn(move || {
            // However busy the guest is, it lives.
            super::init::first();
            while send(&port, &Message::Beat).is_ok() {
                thread::sleep(BEAT);
            }
        })?;
        Ok(session)
    }

    /// Waits for the job.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn job(&self) -> Result<String, Closed> {
        loop {
            if let Message::Job(text) = self.heard.recv().map_err(|_| Closed)? {
                return Ok(text);
            }
        }
    }

    /// Set when the host wants the work to end.
    #[must_use]
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Tells how far the work is.
    pub fn progress(&self, text: &str) {
        // A channel that is gone is noticed at the next record.
        let _ = self.say(&Message::Progress(text.to_owned()));
    }

    /// A function that tells how far the work is, for other threads.
    pub fn teller(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let port = Arc::clone(&self.port);
        move |text| {
            let _ = send(&port, &Message::Progress(text.to_owned()));
        }
    }

    /// Sends a record and waits until the host has it in safety.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn record(&mut self, json: String) -> Result<(), Closed> {
        self.kept(|number| Message::Record(number, json))
    }

    /// Says that all is done, and waits until that is heard.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn done(mut self, json: String) -> Result<(), Closed> {
        self.kept(|number| Message::Done(number, json))
    }

    /// Says why it cannot go on, and waits until that is heard.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn failed(mut self, why: String) -> Result<(), Closed> {
        self.kept(|number| Message::Failed(number, why))
    }

    fn kept(&mut self, message: impl FnOnce(u32) -> Message) -> Result<(), Closed> {
        self.last += 1;
        self.say(&message(self.last)).map_err(|_| Closed)?;
        loop {
            match self.heard.recv().map_err(|_| Closed)? {
                Message::Ack(number) if number == self.last => return Ok(()),
                _ => {}
            }
        }
    }

    fn say(&self, message: &Message) -> io::Result<()> {
        send(&self.port, message)
    }
}

fn send(port: &Mutex<File>, message: &Message) -> io::Result<()> {
    // A message is written whole or the channel is of no use.
    let mut port = port.lock().unwrap_or_else(PoisonError::into_inner);
    port.write_all(&message.encode())
}

/// Hears what the host says until the channel ends.
fn listen(mut port: File, tell: &Sender<Message>, stop: &AtomicBool) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match port.read(&mut buffer) {
            // Nobody has the other end.
            Ok(0) => return,
            Ok(n) => decoder.feed(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
        loop {
            match decoder.take() {
                Ok(Some(Message::Stop)) => stop.store(true, Ordering::Relaxed),
                Ok(Some(message)) => {
                    if tell.send(message).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// The port of that name.
fn find() -> io::Result<PathBuf> {
    let begun = Instant::now();
    loop {
        let ports = fs::read_dir("/sys/class/virtio-ports")
            .into_iter()
            .flatten()
            .flatten();
        for port in ports {
            let name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
            let device = PathBuf::from("/dev").join(port.file_name());
            if name.trim() == PORT && device.exists() {
                return Ok(device);
            }
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no port {PORT}"),
            ));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Time since the kernel began.
fn uptime() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Memory that the kernel has.
fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let number = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}
