//! Finding what a reader would silently drop or change.
use serde_json::Value;

/// How a text differs from the record that was read from it. The path is such as
/// `phases[0].colour`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The record has no such field.
    Unknown(String),
    /// The record has another value there.
    Changed(String),
}

/// The first thing in `given` that `read`, the record written again, does not have. What `given`
/// leaves out does not matter.
pub(super) fn difference(given: &Value, read: &Value) -> Option<Difference> {
    let (path, unknown) = search(given, read)?;
    let path = path.trim_start_matches('.').to_owned();
    Some(if unknown {
        Difference::Unknown(path)
    } else {
        Difference::Changed(path)
    })
}

/// The path, and whether it is an unknown field (not a changed value).
fn search(given: &Value, read: &Value) -> Option<(String, bool)> {
    let within = |part: String, found: (String, bool)| (format!("{part}{}", found.0), found.1);
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            given.iter().find_map(|(name, value)| match read.get(name) {
                None => Some((format!(".{name}"), true)),
                Some(other) => search(value, other).map(|f| within(format!(".{name}"), f)),
            })
        }
        (Value::Array(given), Value::Array(read)) if given.len() == read.len() => {
            let mut pairs = given.iter().zip(read).enumerate();
            pairs.find_map(|(i, (a, b))| search(a, b).map(|f| within(format!("[{i}]"), f)))
        }
        // `5` may be written for `5.0`.
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => {
            (a.as_f64() != b.as_f64()).then(|| (String::new(), false))
        }
        (a, b) => (a != b).then(|| (String::new(), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_path_of_a_difference_is_told() {
        let read = json!({"a": [{"b": 1.0}, {"b": 2.5, "c": null}], "d": null, "n": 7});
        let found = |given| difference(&given, &read);
        assert_eq!(found(read.clone()), None);
        assert_eq!(found(json!({"a": [{"b": 1}, {"c": null}]})), None);
        let unknown = |path: &str| Some(Difference::Unknown(path.to_owned()));
        assert_eq!(found(json!({"e": 1})), unknown("e"));
        assert_eq!(found(json!({"a": [{"b": 1}, {"x": 2}]})), unknown("a[1].x"));
        let changed = |path: &str| Some(Difference::Changed(path.to_owned()));
        assert_eq!(found(json!({"a": []})), changed("a"));
        assert_eq!(found(json!({"n": 8})), changed("n"));
        assert_eq!(found(json!({"a": [{"b": 1}, {"b": 2}]})), changed("a[1].b"));
    }
}
