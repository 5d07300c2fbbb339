//! Counts in texts: `1 tool`, `2 tools`.

/// Returns a count with its noun, which is given in the singular.
///
/// ```
/// use haft_types::plural::counted;
///
/// assert_eq!(counted(1, "tool"), "1 tool");
/// assert_eq!(counted(0, "tool"), "0 tools");
/// assert_eq!(counted(3, "entry"), "3 entries");
/// assert_eq!(counted(2, "key"), "2 keys");
/// ```
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}
