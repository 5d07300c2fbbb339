//! Expands file patterns as a shell would, so that each matching path is judged.

use std::path::PathBuf;

use super::Outside;
use super::spot::{PathLocation, spot};
use crate::lexical::normalize;

/// Maximum number of folder entries checked per pattern.
const MAX_ENTRIES: usize = 2_000;
/// Maximum number of matches per pattern.
const MAX_MATCHES: usize = 128;

/// The result of expanding a pattern.
pub(super) enum PatternMatches {
    /// These paths in the workspace, or the pattern itself if nothing matches, as in a shell.
    These(Vec<String>),
    /// A path outside the workspace.
    Away(PathBuf),
    /// More than the limit, or a name that is not UTF-8.
    Unknown,
}

/// Expands a pattern from the root of the workspace.
pub(super) fn matches(outside: &Outside, pattern: &str) -> PatternMatches {
    let root = outside.workspace.root();
    let mut found: Vec<String> = vec![String::new()];
    let mut left = MAX_ENTRIES;
    let absolute = pattern.starts_with('/');
    for segment in pattern.split('/').filter(|segment| !segment.is_empty()) {
        let plain = !segment.contains(['*', '?', '[']);
        let mut next = Vec::new();
        for folder in &found {
            let path = |name: &str| match folder.as_str() {
                "" if absolute => format!("/{name}"),
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            if plain {
                next.push(path(segment));
                continue;
            }
            let at = match folder.as_str() {
                "" if absolute => "/",
                "" => ".",
                folder => folder,
            };
            // To dash and older versions of bash, `.?` and `.*` match the folder above, too.
            if fits(segment, "..") {
                return PatternMatches::Unknown;
            }
            // Links can lead a pattern out of the workspace too.
            if let PathLocation::Away(_) = spot(outside, ".", at, false) {
                return PatternMatches::Away(normalize(&root.join(pattern)));
            }
            let Ok(entries) = std::fs::read_dir(root.join(at)) else {
                continue;
            };
            for entry in entries.flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    return PatternMatches::Unknown;
                };
                left = rest;
                let name = entry.file_name();
                let Some(name) = name.to_str() else {
                    return PatternMatches::Unknown;
                };
                if fits(segment, name) {
                    next.push(path(name));
                }
            }
        }
        if next.len() > MAX_MATCHES {
            return PatternMatches::Unknown;
        }
        found = next;
    }
    if found.is_empty() {
        found.push(pattern.to_owned());
    }
    PatternMatches::These(found)
}

/// Returns true if the name may match. A bracket set counts as any text. A name with a leading dot needs a pattern with one.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    // In some locales `?` matches a byte.
    if pattern.contains('[') || (pattern.contains('?') && !name.is_ascii()) {
        return true;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The position of the last star, and how much of the name it has matched so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, covered)) = star else {
                    return false;
                };
                star = Some((at, covered + 1));
                p = at + 1;
                n = covered + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn names_fit_as_in_a_shell_or_more() {
        for (pattern, name, expect) in [
            ("*", "a", true),
            ("*", ".env", false),
            (".*", ".env", true),
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rst", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaab", true),
            ("[a]*", "b", true),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "abbb", false),
            ("??", "\u{e9}", true),
            (".?", "..", true),
            (".*", "..", true),
            ("*", "..", false),
            (".e*", "..", false),
        ] {
            assert_eq!(fits(pattern, name), expect, "{pattern} {name}");
        }
    }
}
