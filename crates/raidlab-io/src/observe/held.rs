//! What of this program the kernel does not let go of.

use std::path::Path;

/// Calls whose first argument is a file that is open.
const CALLS: [(i64, &str); 9] = [
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_write, "write"),
    (libc::SYS_pwrite64, "write"),
    (libc::SYS_read, "read"),
    (libc::SYS_pread64, "read"),
    (libc::SYS_close, "close"),
    (libc::SYS_unlinkat, "unlink in"),
];

/// What threads of this program are held by in the kernel, without a signal ending it (state D): the call, and the file where
/// the call names one.
#[must_use]
pub fn held() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut all: Vec<String> = tasks
        .flatten()
        .filter_map(|task| wait_of(&task.path()))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn wait_of(task: &Path) -> Option<String> {
    let stat = std::fs::read_to_string(task.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    (rest.trim_start().starts_with('D')).then_some(())?;
    // A call's number, and its arguments in hexadecimal (proc(5)).
    let call = std::fs::read_to_string(task.join("syscall")).unwrap_or_default();
    let mut words = call.split_ascii_whitespace();
    let number: Option<i64> = words.next().and_then(|word| word.parse().ok());
    let first = words.next().and_then(|word| word.strip_prefix("0x"));
    let file = first
        .and_then(|word| u64::from_str_radix(word, 16).ok())
        .and_then(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok());
    let name = CALLS.iter().find(|(call, _)| Some(*call) == number);
    Some(match (name, file) {
        (Some((_, name)), Some(file)) => format!("{name} of {}", file.display()),
        _ => "a call of the kernel".to_owned(),
    })
}
