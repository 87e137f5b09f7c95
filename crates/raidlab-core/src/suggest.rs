//! What was most likely meant by a name that nothing has.

/// The known name most like what was typed, when one is like it.
#[must_use]
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A text as long as this is no slip of the pen, and comparing it takes long.
    if typed.len() > 64 {
        return None;
    }
    let typed = typed.trim().to_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|name| {
            let (near, edits) = far(&typed, &name.to_lowercase());
            (near, edits, name)
        })
        .filter(|(near, _, name)| *near <= 1 + name.chars().count() / 4)
        .min()
        .map(|(.., name)| name)
}

/// Edit distance with swaps of neighbours, where a word that the other begins with is near; and that distance
/// as it is, to choose among several such.
fn far(typed: &str, name: &str) -> (usize, usize) {
    let edits = strsim::osa_distance(typed, name);
    let begins = typed.len() >= 3 && (name.starts_with(typed) || typed.starts_with(name));
    let near = if begins && !name.is_empty() { 1 } else { edits };
    (near, edits)
}

/// The nearest name as a remark within a sentence, ` (did you mean 'noop'?)`; nothing when none is near.
#[must_use]
pub fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
}

/// Names for a sentence: at most twenty of them.
#[must_use]
pub fn list<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(20);
    names.truncate(20);
    let text = names.join(", ");
    match more {
        0 => text,
        _ => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_seen_and_other_words_are_not() {
        let known = ["deadline", "noop", "cfq", "read-ahead"];
        assert_eq!(nearest("deadlin", known), Some("deadline"));
        assert_eq!(nearest("nopo", known), Some("noop"));
        assert_eq!(nearest("read_ahead", known), Some("read-ahead"));
        assert_eq!(nearest("bicycle", known), None);
        assert_eq!(nearest("", known), None);
        let known = ["size", "chunk", "seekers", "seeks"];
        assert_eq!(nearest("seek", known), Some("seeks"));
        assert_eq!(nearest("chunks", known), Some("chunk"));
        assert_eq!(list(["a", "b"]), "a, b");
    }
}
