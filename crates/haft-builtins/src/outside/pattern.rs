//! Patterns of files, as a shell would fill them in: what they match is judged path by path.

use std::path::PathBuf;

use super::Outside;
use super::spot::{Spot, spot};
use crate::command::lexical::cleaned;

/// Most entries of folders that are looked at for one pattern.
const MOST_ENTRIES: usize = 2_000;
/// Most paths that one pattern stands for.
const MOST_MATCHES: usize = 128;

/// What a pattern stands for.
pub(super) enum Matches {
    /// These paths in the workspace; the pattern itself where nothing fits, as a shell has it.
    These(Vec<String>),
    /// Something out of the workspace.
    Away(PathBuf),
    /// More than is looked at.
    TooMany,
}

/// What a pattern stands for, from the workspace's root.
pub(super) fn matches(outside: &Outside, pattern: &str) -> Matches {
    let root = outside.workspace.root();
    let mut found: Vec<String> = vec![String::new()];
    let mut left = MOST_ENTRIES;
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
            // Links lead patterns out, too.
            if let Spot::Away(_) = spot(outside, ".", at, false) {
                return Matches::Away(cleaned(&root.join(pattern)));
            }
            let Ok(entries) = std::fs::read_dir(root.join(at)) else {
                continue;
            };
            for entry in entries.flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    return Matches::TooMany;
                };
                left = rest;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if fits(segment, &name) {
                    next.push(path(&name));
                }
            }
        }
        if next.len() > MOST_MATCHES {
            return Matches::TooMany;
        }
        found = next;
    }
    if found.is_empty() {
        found.push(pattern.to_owned());
    }
    Matches::These(found)
}

/// Could the name fit? A set of letters counts as any text. Names with a dot are fitted by patterns with one.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    if pattern.contains('[') {
        return true;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and what of the name it covers so far.
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
        ] {
            assert_eq!(fits(pattern, name), expect, "{pattern} {name}");
        }
    }
}
