//! Names in sentences.

/// Names that are told; of more only how many there are.
const TOLD: usize = 3;

/// `'a', 'b', 'c' and 4 more`; `None` of no names.
#[must_use]
pub fn some_of(names: &[String]) -> Option<String> {
    let told: Vec<String> = names
        .iter()
        .take(TOLD)
        .map(|name| format!("'{name}'"))
        .collect();
    let more = names.len().saturating_sub(TOLD);
    match (told.as_slice(), more) {
        ([], _) => None,
        (told, 0) => Some(told.join(", ")),
        (told, more) => Some(format!("{} and {more} more", told.join(", "))),
    }
}
