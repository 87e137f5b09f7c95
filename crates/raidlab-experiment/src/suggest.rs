//! What was most likely meant.

/// The known name most like what was typed, when one is like it.
pub(crate) fn nearest<'k>(
    typed: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    // A text as long as this is no slip of the pen, and comparing it takes long.
    if typed.len() > 64 {
        return None;
    }
    let typed = typed.trim().to_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|name| (far(&typed, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count() / 4)
        .min()
        .map(|(_, name)| name)
}

/// Edit distance with swaps of neighbours; a word that the other begins with is near.
fn far(typed: &str, name: &str) -> usize {
    let begins = typed.len() >= 3 && (name.starts_with(typed) || typed.starts_with(name));
    if begins && !name.is_empty() {
        return 1;
    }
    strsim::osa_distance(typed, name)
}

/// Names for a sentence: at most twenty of them.
pub(crate) fn list<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
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
        assert_eq!(list(["a", "b"]), "a, b");
    }
}
