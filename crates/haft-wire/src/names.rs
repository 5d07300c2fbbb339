//! Tool names on the wire: each dialect has its rules, and every name is mapped in both directions.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::dialect::Dialect;

/// Names of tools as a host knows them, and on one wire.
///
/// A name that the dialect allows is unchanged. In others a dot becomes `__` and any other disallowed character `_`; a name that
/// would be too long, or that is already taken, ends with eight digits of its hash.
///
/// ```
/// use haft_wire::{Dialect, names::ToolNames};
///
/// let names = ToolNames::new(Dialect::OpenAiChat, ["read_file", "docs.search"]);
/// assert_eq!(names.wire("docs.search"), Some("docs__search"));
/// assert_eq!(names.canonical("docs__search"), Some("docs.search"));
/// assert_eq!(names.canonical("nosuch"), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolNames {
    wire: HashMap<String, String>,
    canonical: HashMap<String, String>,
}

impl ToolNames {
    /// Maps these names, in this order; ignores duplicates.
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
            let tailed = || {
                (0..=u32::MAX)
                    .map(|nth| tailed(dialect, name, nth))
                    .find(|tailed| !mapped.canonical.contains_key(tailed))
            };
            let wire = if free { Some(plain) } else { tailed() };
            let Some(wire) = wire else { continue };
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

    /// Returns the wire name of a declared tool.
    pub fn wire(&self, name: &str) -> Option<&str> {
        self.wire.get(name).map(String::as_str)
    }

    /// Returns the tool for a wire name; `None` if it was not declared.
    pub fn canonical(&self, wire: &str) -> Option<&str> {
        self.canonical.get(wire).map(String::as_str)
    }

    /// Returns the tool that a call names, with its namespace if the provider gives one. A provider may give one for a tool declared
    /// without a namespace: the tool's own name, if a search found it.
    pub fn called(&self, namespace: Option<&str>, name: &str) -> Option<&str> {
        let within =
            namespace.and_then(|namespace| self.canonical(&format!("{namespace}__{name}")));
        within.or_else(|| self.canonical(name))
    }

    /// Returns the name on this wire for a call of another dialect, or of another set of tools.
    pub(crate) fn carried(&self, dialect: Dialect, namespace: Option<&str>, name: &str) -> String {
        if let Some(wire) = self.called(namespace, name).and_then(|own| self.wire(own)) {
            return wire.to_owned();
        }
        let whole = match namespace {
            Some(namespace) if namespace != name => format!("{namespace}.{name}"),
            _ => name.to_owned(),
        };
        if let Some(wire) = self.wire(&whole) {
            return wire.to_owned();
        }
        let one = Self::new(dialect, [whole.as_str()]);
        one.wire(&whole).unwrap_or_default().to_owned()
    }
}

/// Returns the maximum length of a name: OpenAI's and Anthropic's rule is `[A-Za-z0-9_-]{1,64}`, Gemini's at most 128 of
/// `[A-Za-z0-9_.:-]`, starting with a letter or `_`.
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

/// Returns the name with disallowed characters replaced.
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

/// Returns the truncated name with the beginning of its hash; `nth` changes the digits, because a host may have a tool of that very name.
fn tailed(dialect: Dialect, name: &str, nth: u32) -> String {
    const TAIL: usize = 9;
    let mut cut = plain(dialect, name);
    cut.truncate(longest(dialect) - TAIL);
    let digest = match nth {
        0 => Sha256::digest(name),
        nth => Sha256::digest(format!("{name} {nth}")),
    };
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
            let names = ToolNames::new(dialect, [name]);
            assert_eq!(names.wire(name), Some(wire), "{dialect} {name}");
        }
        let names = ToolNames::new(Dialect::Anthropic, [long.as_str()]);
        assert_eq!(names.wire(&long).map(str::len), Some(64));
    }

    #[test]
    fn a_name_that_another_tool_has_is_told_apart() {
        let names = ToolNames::new(Dialect::OpenAiChat, ["a.b", "a__b"]);
        assert_eq!(names.wire("a__b"), Some("a__b"));
        let tailed = names.wire("a.b").unwrap_or_default();
        assert!(tailed.starts_with("a__b_"), "{tailed}");
        assert_eq!(names.canonical(tailed), Some("a.b"));
    }

    #[test]
    fn a_name_that_is_another_ones_cut_name_takes_nothing_away() {
        let first = ToolNames::new(Dialect::OpenAiChat, ["a.b", "a__b"]);
        let taken = first.wire("a.b").unwrap_or_default().to_owned();
        let names = ToolNames::new(Dialect::OpenAiChat, ["a.b", "a__b", &taken]);
        assert_eq!(names.wire(&taken), Some(taken.as_str()));
        let other = names.wire("a.b").unwrap_or_default();
        assert!(other != taken && other.starts_with("a__b_"), "{other}");
        assert_eq!(names.canonical(other), Some("a.b"));
    }

    #[test]
    fn a_call_within_a_namespace_finds_its_tool() {
        let long = format!("crm.{}", "x".repeat(80));
        let names = ToolNames::new(Dialect::OpenAiResponses, ["crm.find", "find", &long]);
        let cut = names.wire(&long).unwrap_or_default();
        let rows = [
            (Some("crm"), "find", Some("crm.find")),
            (None, "find", Some("find")),
            (Some("find"), "find", Some("find")),
            (Some("crm"), cut, Some(long.as_str())),
            (Some("crm"), "nosuch", None),
        ];
        for (namespace, name, expect) in rows {
            assert_eq!(
                names.called(namespace, name),
                expect,
                "{namespace:?} {name}"
            );
        }
        let rows = [
            (Some("crm"), "find", "crm__find"),
            (None, "crm.find", "crm__find"),
            (Some("erp"), "post", "erp__post"),
            (None, "a.b", "a__b"),
        ];
        for (namespace, name, expect) in rows {
            let carried = names.carried(Dialect::OpenAiChat, namespace, name);
            assert_eq!(carried, expect, "{namespace:?} {name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(all in proptest::collection::hash_set("[a-c._-]{1,130}", 1..30)) {
            for dialect in Dialect::ALL {
                let names = ToolNames::new(dialect, all.iter().map(String::as_str));
                for name in &all {
                    let wire = names.wire(name).unwrap_or_default();
                    prop_assert!(fits(dialect, wire), "{wire}");
                    prop_assert_eq!(names.canonical(wire), Some(name.as_str()));
                }
            }
        }
    }
}
