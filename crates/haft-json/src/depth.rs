//! Measures how deeply JSON is nested, for recursive readers: one pass over the bytes, before anything else reads them.

use memchr::memchr2;

/// Whether objects and arrays are nested deeper than `limit`. Ignores brackets inside strings. The bytes need not be JSON.
///
/// ```
/// use haft_json::depth::exceeds;
///
/// assert!(exceeds(br#"{"a": [1]}"#, 1));
/// assert!(!exceeds(br#"{"a": "[[["}"#, 1));
/// ```
pub fn exceeds(json: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(json, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the position after the string that starts before `at`.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        let position = at + found;
        if json[position] == b'"' {
            return position + 1;
        }
        at = position + 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_outside_strings_count() {
        for (json, limit, expect) in [
            ("[[]]", 2, false),
            ("[[]]", 1, true),
            (r#"{"a":"[[[["}"#, 1, false),
            (r#"{"a":"\"[[[["}"#, 1, false),
            (r#"{"a\\":[1]}"#, 1, true),
            ("[][][][]", 1, false),
            ("]]]][", 1, false),
            (r#""[[["#, 1, false),
            (r#""\"#, 1, false),
            ("", 0, false),
        ] {
            assert_eq!(exceeds(json.as_bytes(), limit), expect, "{json}");
        }
    }
}
