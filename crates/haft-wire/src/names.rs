//! Tool names on a wire: each dialect has its rule, and every name is mapped there and back.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::dialect::Dialect;

/// Names of tools as a host knows them, and as they stand on one wire.
///
/// A name that the dialect allows stands as it is. In others a dot becomes `__` and whatever else is not allowed `_`; a name that
/// would be too long, or that another one has already, ends with eight digits of its hash.
///
/// ```
/// use haft_wire::{Dialect, names::Names};
///
/// let names = Names::new(Dialect::OpenAiChat, ["read_file", "docs.search"]);
/// assert_eq!(names.wire("docs.search"), Some("docs__search"));
/// assert_eq!(names.canonical("docs__search"), Some("docs.search"));
/// assert_eq!(names.canonical("nosuch"), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Names {
    wire: HashMap<String, String>,
    canonical: HashMap<String, String>,
}

impl Names {
    /// Maps these names, in this order; of two that are the same the second is left out.
    pub fn new<'n>(dialect: Dialect, names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut mapped = Self::default();
        let (fit, other): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| fits(dialect, name));
        for name in fit {
            mapped.insert(name, name.to_owned());
        }
        for name in other {
            let plain = plain(dialect, name);
            let free = plain.len() <= longest(dialect) && !mapped.canonical.contains_key(&plain);
            let wire = if free { plain } else { tailed(dialect, name) };
            mapped.insert(name, wire);
        }
        mapped
    }

    fn insert(&mut self, name: &str, wire: String) {
        if self.wire.contains_key(name) || self.canonical.contains_key(&wire) {
            return;
        }
        self.canonical.insert(wire.clone(), name.to_owned());
        self.wire.insert(name.to_owned(), wire);
    }

    /// The name on the wire of a tool that was declared.
    pub fn wire(&self, name: &str) -> Option<&str> {
        self.wire.get(name).map(String::as_str)
    }

    /// The tool that a name on the wire stands for; `None` for one that was not declared.
    pub fn canonical(&self, wire: &str) -> Option<&str> {
        self.canonical.get(wire).map(String::as_str)
    }
}

/// The longest name: OpenAI's and Anthropic's rule is `[A-Za-z0-9_-]{1,64}`, Gemini's at most 128 of `[A-Za-z0-9_.:-]` that begin
/// with a letter or `_`.
fn longest(dialect: Dialect) -> usize {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Anthropic => 64,
        Dialect::Gemini => 128,
    }
}

fn allowed(dialect: Dialect, c: char) -> bool {
    let more = dialect == Dialect::Gemini && matches!(c, '.' | ':');
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || more
}

fn fits(dialect: Dialect, name: &str) -> bool {
    let first = name.chars().next();
    let begins = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let begins = first.is_some() && (begins || dialect != Dialect::Gemini);
    begins && name.len() <= longest(dialect) && name.chars().all(|c| allowed(dialect, c))
}

/// The name with what is not allowed replaced.
fn plain(dialect: Dialect, name: &str) -> String {
    let mut plain = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        match c {
            c if allowed(dialect, c) => plain.push(c),
            '.' => plain.push_str("__"),
            _ => plain.push('_'),
        }
    }
    if plain.is_empty() || !fits(dialect, &plain[..1]) {
        plain.insert(0, '_');
    }
    plain
}

/// The name cut, with the beginning of its hash.
fn tailed(dialect: Dialect, name: &str) -> String {
    const TAIL: usize = 9;
    let mut cut = plain(dialect, name);
    cut.truncate(longest(dialect) - TAIL);
    let digest = Sha256::digest(name);
    let digits: String = haft_json::hex::hex(&digest[..4]);
    format!("{cut}_{digits}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_a_table_are_mapped_as_their_dialect_wants() {
        let long = "x".repeat(100);
        let rows = [
            (Dialect::OpenAiChat, "read_file", "read_file"),
            (Dialect::OpenAiChat, "docs.search", "docs__search"),
            (Dialect::Gemini, "docs.search", "docs.search"),
            (Dialect::Gemini, "7zip", "_7zip"),
            (Dialect::Anthropic, "7zip", "7zip"),
            (Dialect::Anthropic, "é", "_"),
        ];
        for (dialect, name, wire) in rows {
            let names = Names::new(dialect, [name]);
            assert_eq!(names.wire(name), Some(wire), "{dialect} {name}");
        }
        let names = Names::new(Dialect::Anthropic, [long.as_str()]);
        assert_eq!(names.wire(&long).map(str::len), Some(64));
    }

    #[test]
    fn a_name_that_another_tool_has_is_told_apart() {
        let names = Names::new(Dialect::OpenAiChat, ["a.b", "a__b"]);
        assert_eq!(names.wire("a__b"), Some("a__b"));
        let tailed = names.wire("a.b").unwrap_or_default();
        assert!(tailed.starts_with("a__b_"), "{tailed}");
        assert_eq!(names.canonical(tailed), Some("a.b"));
    }

    proptest! {
        #[test]
        fn every_name_comes_back(all in proptest::collection::hash_set("[a-c._-]{1,130}", 1..30)) {
            for dialect in Dialect::ALL {
                let names = Names::new(dialect, all.iter().map(String::as_str));
                for name in &all {
                    let wire = names.wire(name).unwrap_or_default();
                    prop_assert!(fits(dialect, wire), "{wire}");
                    prop_assert_eq!(names.canonical(wire), Some(name.as_str()));
                }
            }
        }
    }
}
