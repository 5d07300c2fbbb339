//! Types that share their name. In a crate, a name that stands for one thing is understood without its path.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

/// Names that several types of a crate may bear, each with the reason.
const IDIOMS: [(&str, &str); 4] = [
    ("Builder", "builds the type that its module is named for"),
    (
        "Error",
        "the error of its module, used with the module's name",
    ),
    (
        "Inner",
        "the shared state behind a handle, private to its file",
    ),
    ("Result", "the standard result with the module's error"),
];

/// The highest share of all types, in percent, whose name another type of the workspace bears, too.
const MAX_SHARED_PERCENT: usize = 4;

/// Returns the name of the type that a line declares. An associated type is indented.
fn declared(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => code,
    };
    let (kind, rest) = code.split_once(' ')?;
    let declares = matches!(kind, "struct" | "enum" | "trait" | "union")
        || kind == "type" && !line.starts_with(' ');
    let end = rest
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(rest.len());
    let name = &rest[..end];
    (declares && name.starts_with(char::is_uppercase)).then_some(name)
}

/// Returns the names of the types that each crate declares outside of its tests, one for each declaration.
fn types() -> BTreeMap<String, Vec<String>> {
    let mut crates = BTreeMap::<String, Vec<String>>::new();
    for (path, text) in sources() {
        let mut parts = path.split('/');
        let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if path.contains("/tests/") || path.ends_with("tests.rs") {
            continue;
        }
        let mut before = "";
        let code = text.lines().take_while(|line| {
            let opens_tests =
                before == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{');
            before = line;
            !opens_tests
        });
        let names = code.filter_map(declared).map(str::to_owned);
        crates.entry(name.to_owned()).or_default().extend(names);
    }
    crates
}

/// Returns how often each name occurs, without the idioms.
fn counted<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let idioms: BTreeSet<&str> = IDIOMS.iter().map(|(name, _)| *name).collect();
    let mut counts = BTreeMap::new();
    for name in names.filter(|name| !idioms.contains(name.as_str())) {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let mut faults = Vec::new();
    for (name, types) in types() {
        let counts = counted(types.iter());
        let shared = counts.iter().filter(|(_, count)| **count > 1);
        faults.extend(shared.map(|(shared, count)| format!("{name}: {count} types {shared}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn few_types_of_the_workspace_share_a_name() {
    let crates = types();
    let counts = counted(crates.values().flatten());
    let all: usize = counts.values().sum();
    let shared: usize = counts.values().filter(|count| **count > 1).sum();
    assert!(
        shared * 100 <= MAX_SHARED_PERCENT * all,
        "{shared} of {all} types share their names"
    );
}
