//! What of a guest's console tells why it ended.

/// What is looked at of a console for the reason of an end, in bytes.
pub(super) const LOOKED_AT: u64 = 64 << 10;
/// What is kept of it as evidence, in lines.
const EVIDENCE: usize = 14;

/// Words of a console that tell why a guest ended, the last that matter first.
const REASONS: [&str; 4] = [
    "Kernel panic - not syncing",
    "Out of memory",
    "raidlab: ",
    "panicked at",
];

/// The line that tells why a guest ended.
pub(super) fn reason(console: &str) -> Option<String> {
    let mut lines = console.lines();
    let line = lines.nth(place(console)?)?.trim();
    // `[    1.864186] Kernel panic …`: the time is told with the console.
    let said = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    Some(said.map_or(line, |(_, said)| said).to_owned())
}

/// Where that line is.
fn place(console: &str) -> Option<usize> {
    let lines: Vec<&str> = console.lines().collect();
    let find = |word: &&str| lines.iter().rposition(|line| line.contains(*word));
    REASONS.iter().find_map(find)
}

/// The lines of a console that are evidence: from a little before the reason on, or the last.
pub(super) fn excerpt(console: &str) -> String {
    let lines: Vec<&str> = console
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let console = lines.join("\n");
    let last = lines.len().saturating_sub(EVIDENCE);
    let first = place(&console).map_or(last, |at| at.saturating_sub(3).min(last));
    let kept: Vec<&str> = lines.into_iter().skip(first).take(EVIDENCE).collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_tells_why_a_guest_ended() {
        let panic = "[ 1.0] raidlab: hello\n[ 2.0] Kernel panic - not syncing: Attempted to kill init!\n[ 2.1] ---\n";
        assert!(reason(panic).unwrap().contains("Attempted to kill init"));
        let memory = "[ 9.1] Out of memory: Killed process 31 (init) total-vm:1\n";
        assert!(reason(memory).unwrap().starts_with("Out of memory"));
        assert_eq!(reason("quiet\n"), None);
    }

    #[test]
    fn evidence_is_what_is_around_the_reason() {
        let many = |n: usize| (0..n).map(|i| format!("line {i}\n\n")).collect::<String>();
        assert_eq!(excerpt(&many(3)), "line 0\nline 1\nline 2");
        let last = excerpt(&many(50));
        assert!(
            last.starts_with("line 36") && last.ends_with("line 49"),
            "{last}"
        );
        let trace = format!(
            "{}[ 1.0] Kernel panic - not syncing: x\n{}",
            many(9),
            many(99)
        );
        let kept = excerpt(&trace);
        assert_eq!(
            kept.lines().nth(3),
            Some("[ 1.0] Kernel panic - not syncing: x")
        );
        assert_eq!(kept.lines().count(), EVIDENCE);
    }
}
