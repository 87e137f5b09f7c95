//! What is typed for a guest's shell: kept until the shell listens, then passed on key by key.
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
    tcgetattr, tcsetattr,
};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::ChildStdin;

/// Ends the shell where a script has no more lines.
const END: &[u8] = b"exit\n";

/// Keys on their way; dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(super) struct Typing {
    before: Option<Termios>,
}

impl Typing {
    /// From now on keys go to the guest, those of Ctrl-C and Ctrl-Z among them. What was typed before is there, too: nobody
    /// has read it yet.
    pub(super) fn begin(mut to: ChildStdin) -> Self {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &raw(before));
        }
        let script = before.is_none();
        // It waits for a key when the guest has ended, and ends with the process.
        std::thread::spawn(move || pass_on(&mut std::io::stdin().lock(), &mut to, script));
        Self { before }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// A terminal that shows no keys while nobody listens: the guest's shell shows what it is given, early keys among them, and they
/// would stand there twice. Ctrl-C is heard as ever. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(super) struct Hushed<T: AsFd>(Option<(T, Termios)>);

impl<T: AsFd> Hushed<T> {
    pub(super) fn begin(terminal: T) -> Self {
        let Ok(before) = tcgetattr(&terminal) else {
            return Self(None);
        };
        let mut hushed = before.clone();
        hushed.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        let _ = tcsetattr(&terminal, OptionalActions::Now, &hushed);
        Self(Some((terminal, before)))
    }
}

impl<T: AsFd> Drop for Hushed<T> {
    fn drop(&mut self) {
        if let Some((terminal, before)) = &self.0 {
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}

/// Key by key, neither shown nor understood by this side; lines that are printed end as ever.
fn raw(before: &Termios) -> Termios {
    let mut raw = before.clone();
    raw.input_modes -= InputModes::IGNBRK
        | InputModes::BRKINT
        | InputModes::PARMRK
        | InputModes::ISTRIP
        | InputModes::INLCR
        | InputModes::IGNCR
        | InputModes::ICRNL
        | InputModes::IXON;
    raw.output_modes |= OutputModes::OPOST;
    raw.local_modes -= LocalModes::ECHO
        | LocalModes::ECHONL
        | LocalModes::ICANON
        | LocalModes::IEXTEN
        | LocalModes::ISIG;
    raw.control_modes -= ControlModes::CSIZE | ControlModes::PARENB;
    raw.control_modes |= ControlModes::CS8;
    raw.special_codes[SpecialCodeIndex::VMIN] = 1;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    raw
}

/// Passes on all that comes. After the last line of a script the shell is ended: a terminal, which it has in the guest, knows
/// no end.
fn pass_on(from: &mut impl Read, to: &mut impl Write, script: bool) {
    let mut keys = [0_u8; 4096];
    let mut last = b'\n';
    loop {
        match from.read(&mut keys) {
            Ok(0) => break,
            Ok(n) => {
                last = keys[n - 1];
                if to.write_all(&keys[..n]).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // QEMU switches waiting off for the terminal that it writes to, and that is the one with the keys.
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_a_key(),
            Err(_) => break,
        }
    }
    if script {
        let line = if last == b'\n' { "" } else { "\n" };
        let _ = to.write_all(&[line.as_bytes(), END].concat());
    }
}

fn wait_for_a_key() {
    let stdin = std::io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let _ = poll(&mut keys, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(script: &str, is_script: bool) -> String {
        let mut to = Vec::new();
        pass_on(&mut script.as_bytes(), &mut to, is_script);
        String::from_utf8(to).expect("text")
    }

    #[test]
    fn keys_that_come_early_are_not_shown_and_ctrl_c_is_heard() {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master)
            .and_then(|()| unlockpt(&master))
            .expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = std::path::Path::new(name.to_str().expect("text"));
        let terminal = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .expect("its other end");
        let modes = || tcgetattr(&terminal).expect("a terminal").local_modes;
        let before = modes();
        assert!(before.contains(LocalModes::ECHO | LocalModes::ISIG));
        let hushed = Hushed::begin(&terminal);
        assert!(!modes().intersects(LocalModes::ECHO) && modes().contains(LocalModes::ISIG));
        drop(hushed);
        assert_eq!(modes(), before);
        // What is no terminal is left alone.
        drop(Hushed::begin(
            std::fs::File::open("/dev/null").expect("it is there"),
        ));
    }

    #[test]
    fn a_script_ends_the_shell_after_its_last_line() {
        assert_eq!(passed("ls\n", true), "ls\nexit\n");
        assert_eq!(passed("ls", true), "ls\nexit\n");
        assert_eq!(passed("", true), "exit\n");
        assert_eq!(passed("ls\n", false), "ls\n", "a terminal that has gone");
    }

    /// A terminal that QEMU has switched waiting off for.
    struct Hesitant<'k>(Vec<&'k [u8]>);

    impl Read for Hesitant<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match self.0.pop() {
                None => Ok(0),
                Some(b"") => Err(ErrorKind::WouldBlock.into()),
                Some(keys) => {
                    into[..keys.len()].copy_from_slice(keys);
                    Ok(keys.len())
                }
            }
        }
    }

    #[test]
    fn keys_that_are_not_there_yet_are_waited_for() {
        let mut to = Vec::new();
        let mut from = Hesitant(vec![b"b", b"", b"a"]);
        pass_on(&mut from, &mut to, false);
        assert_eq!(to, b"ab");
    }
}
