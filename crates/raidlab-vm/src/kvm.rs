//! Whether hardware virtualisation really runs: a device that opens is not enough, for it may be
//! emulated at a hundredth of the speed of QEMU's own translator.
//!
//! A few instructions in a machine of one page, with a time limit. Only a machine that ends them by itself
//! and fast enough is worth trying.
use serde::Serialize;
use std::path::Path;

/// Instructions a second that make it worth while: QEMU's translator has several hundred million.
pub const ENOUGH: f64 = 100e6;

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kvm")]
pub enum Kvm {
    /// There is no device, or this user may not open it.
    Absent {
        /// Why.
        why: String,
    },
    /// It is there and does not run.
    Unusable {
        /// What was seen.
        why: String,
    },
    /// It runs.
    Runs {
        /// Instructions a second of a loop.
        instructions_per_second: f64,
    },
}

impl Kvm {
    /// Whether it can be used.
    #[must_use]
    pub const fn runs(&self) -> bool {
        matches!(self, Self::Runs { .. })
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Absent { why } => format!("no hardware virtualisation: {why}"),
            Self::Unusable { why } => {
                format!("hardware virtualisation is there but of no use: {why}")
            }
            Self::Runs {
                instructions_per_second,
            } => format!(
                "hardware virtualisation runs: {:.0} million instructions a second",
                instructions_per_second / 1e6
            ),
        }
    }
}

/// Looks: at the device, and at how fast a few instructions run. Takes up to three seconds.
#[must_use]
pub fn probe() -> Kvm {
    if Path::new("/sys/module/kvm_pvm").exists() {
        // It runs a kernel's instructions one by one.
        return Kvm::Unusable {
            why: "it is emulated by software (the module kvm_pvm)".to_owned(),
        };
    }
    micro::probe()
}

/// What a loop of so many rounds says, ended in so much time.
fn judged(rounds: u32, seconds: f64) -> Kvm {
    // Two instructions a round.
    let rate = 2.0 * f64::from(rounds) / seconds.max(1e-9);
    if rate < ENOUGH {
        return Kvm::Unusable {
            why: format!("{:.1} million instructions a second", rate / 1e6),
        };
    }
    Kvm::Runs {
        instructions_per_second: rate,
    }
}

#[cfg(target_arch = "x86_64")]
mod micro {
    use super::{Kvm, judged};
    use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    // `linux/kvm.h`: the numbers of the calls, and the layout of what they take.
    const GET_API_VERSION: u64 = 0xae00;
    const CREATE_VM: u64 = 0xae01;
    const GET_VCPU_MMAP_SIZE: u64 = 0xae04;
    const CREATE_VCPU: u64 = 0xae41;
    const SET_USER_MEMORY_REGION: u64 = 0x4020_ae46;
    const RUN: u64 = 0xae80;
    const SET_REGS: u64 = 0x4090_ae82;
    const GET_SREGS: u64 = 0x8138_ae83;
    const SET_SREGS: u64 = 0x4138_ae84;
    const EXIT_HLT: u32 = 5;
    /// Length of `struct kvm_sregs`; the code segment comes first: base (u64), limit, selector.
    const SREGS: usize = 312;
    /// Length of `struct kvm_regs`; `rip` and `rflags` are the last two.
    const REGS: usize = 18;
    const PAGE: usize = 4096;
    const ROUNDS: u32 = 1_000_000;
    /// The loop is given so long: a hundredth of the speed of a translator ends within it.
    const LIMIT: Duration = Duration::from_secs(2);
    const AGAIN: Duration = Duration::from_millis(100);

    #[repr(C)]
    struct Region {
        slot: u32,
        flags: u32,
        guest: u64,
        size: u64,
        host: u64,
    }

    pub(super) fn probe() -> Kvm {
        let device = match File::options().read(true).write(true).open("/dev/kvm") {
            Ok(device) => device,
            Err(error) => {
                return Kvm::Absent {
                    why: format!("/dev/kvm: {error}"),
                };
            }
        };
        match run(&device) {
            Ok(seconds) => judged(ROUNDS, seconds),
            Err(why) => Kvm::Unusable { why },
        }
    }

    /// A call with a number or a pointer as its argument.
    fn call(file: &File, request: u64, argument: usize) -> io::Result<i32> {
        // SAFETY: each caller passes what `linux/kvm.h` says for the request: a number, or the address of
        // a live object of the right length.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(result)
        }
    }

    fn made(file: &File, request: u64) -> io::Result<File> {
        let fd = call(file, request, 0)?;
        // SAFETY: both requests that this is used for return a descriptor that nobody else has.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// A page of memory, given back when dropped.
    struct Mapped(*mut u8, usize);

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: mapped by this type with that length, and nobody has a reference to it.
            let _ = unsafe { munmap(self.0.cast(), self.1) };
        }
    }

    /// Real mode at 0: `mov ecx, ROUNDS; again: dec ecx; jnz again; hlt`.
    fn code() -> Vec<u8> {
        let mut code = vec![0x66, 0xb9];
        code.extend(ROUNDS.to_le_bytes());
        code.extend([0x66, 0x49, 0x75, 0xfc, 0xf4]);
        code
    }

    /// Seconds that the loop took.
    fn run(device: &File) -> Result<f64, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let version = call(device, GET_API_VERSION, 0).map_err(failed("no version"))?;
        if version != 12 {
            return Err(format!("version {version} of the interface"));
        }
        let vm = made(device, CREATE_VM).map_err(failed("no machine"))?;
        // SAFETY: a new private mapping has no other user.
        let page = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let page = Mapped(page.map_err(|e| e.to_string())?.cast(), PAGE);
        let code = code();
        // SAFETY: the page is longer than the code, and fresh.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), page.0, code.len()) };
        let region = Region {
            slot: 0,
            flags: 0,
            guest: 0,
            size: PAGE as u64,
            host: page.0 as u64,
        };
        call(&vm, SET_USER_MEMORY_REGION, &raw const region as usize)
            .map_err(failed("no memory"))?;
        let cpu = made(&vm, CREATE_VCPU).map_err(failed("no processor"))?;
        let size = call(device, GET_VCPU_MMAP_SIZE, 0).map_err(failed("no state"))?;
        let size = usize::try_from(size).unwrap_or(0).max(PAGE);
        // SAFETY: a new mapping of the processor's state, as long as the kernel says.
        let state = unsafe {
            mmap(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &cpu,
                0,
            )
        };
        let state = Mapped(state.map_err(|e| e.to_string())?.cast(), size);
        set_up(&cpu).map_err(failed("no registers"))?;
        let _alarm = Alarm::set(LIMIT);
        let begun = Instant::now();
        call(&cpu, RUN, 0).map_err(failed("it does not run"))?;
        let seconds = begun.elapsed().as_secs_f64();
        // SAFETY: `exit_reason` is the u32 at offset 8 of `struct kvm_run`, which the mapping holds.
        let reason = unsafe { state.0.add(8).cast::<u32>().read_volatile() };
        if reason == EXIT_HLT {
            Ok(seconds)
        } else {
            Err(format!("it stopped for reason {reason} instead of ending"))
        }
    }

    fn set_up(cpu: &File) -> io::Result<()> {
        let mut segments = [0_u8; SREGS];
        call(cpu, GET_SREGS, segments.as_mut_ptr() as usize)?;
        // The code segment: base (8 bytes), limit (4), selector (2).
        segments[..8].fill(0);
        segments[12..14].fill(0);
        call(cpu, SET_SREGS, segments.as_ptr() as usize)?;
        let mut registers = [0_u64; REGS];
        // Bit 1 of the flags is always set.
        registers[REGS - 1] = 2;
        call(cpu, SET_REGS, registers.as_ptr() as usize).map(|_| ())
    }

    extern "C" fn nothing(_: libc::c_int) {}

    /// Interrupts a system call of the thread that set it after a while, and again until it is dropped. A timer of
    /// the process would interrupt whichever thread is first.
    struct Alarm {
        old: libc::sigaction,
        ended: Option<Sender<()>>,
        thread: Option<JoinHandle<()>>,
    }

    impl Alarm {
        fn set(after: Duration) -> Self {
            // SAFETY: a zeroed `sigaction` is a valid one; the handler does nothing, so that it is safe at
            // any point; without SA_RESTART the call that it interrupts ends.
            let old = unsafe {
                let mut new: libc::sigaction = std::mem::zeroed();
                let mut old: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = nothing as *const () as usize;
                libc::sigaction(libc::SIGALRM, &raw const new, &raw mut old);
                old
            };
            // SAFETY: takes nothing, and cannot fail.
            let caller = unsafe { libc::pthread_self() };
            let (ended, told) = channel();
            let ring = move || {
                let mut wait = after;
                while told.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    // SAFETY: the thread lives until it has dropped the alarm, which waits for this one.
                    unsafe {
                        libc::pthread_kill(caller, libc::SIGALRM);
                    }
                    wait = AGAIN;
                }
            };
            Self {
                old,
                ended: Some(ended),
                thread: std::thread::Builder::new().spawn(ring).ok(),
            }
        }
    }

    impl Drop for Alarm {
        fn drop(&mut self) {
            self.ended = None;
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
            // SAFETY: restores what was there; nobody sends the signal any more.
            unsafe {
                libc::sigaction(libc::SIGALRM, &raw const self.old, std::ptr::null_mut());
            }
        }
    }

    /// Looks even where a hint says that it is not worth it.
    #[cfg(test)]
    #[test]
    fn a_probe_ends_whatever_is_there() {
        let begun = Instant::now();
        let found = probe();
        // Much more than the limit, for a machine that is busy.
        assert!(begun.elapsed() < 15 * LIMIT, "{found:?}");
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod micro {
    pub(super) fn probe() -> super::Kvm {
        super::Kvm::Absent {
            why: "this is no x86-64 machine".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fast_one_is_used() {
        assert!(!judged(1_000_000, 0.67).runs());
        assert!(judged(1_000_000, 0.001).runs());
        assert!(judged(1_000_000, 0.67).describe().contains("3.0 million"));
    }
}
