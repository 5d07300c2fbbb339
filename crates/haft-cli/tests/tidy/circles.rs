//! Files of a crate use each other in one direction, without exception.
//!
//! A parent's use of the modules below it is not counted, because assembling them is its purpose. A child's use of its parent is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::sources;
use crate::uses::Uses;

mod modules;
mod typescript;

/// The files that each file uses.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns whether the file `below` is in the folder of the module `above`.
fn is_below(above: &str, below: &str) -> bool {
    let folder = above.trim_end_matches(".rs");
    folder == "lib"
        || below
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the files that this one reaches, directly or indirectly.
fn reached<'a>(edges: &'a Edges, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for target in edges.get(file).into_iter().flatten() {
            if seen.insert(target.as_str()) {
                next.push(target);
            }
        }
    }
    seen
}

/// Returns the circles among the files of a crate.
fn circles(mut edges: Edges) -> BTreeSet<BTreeSet<String>> {
    for (file, targets) in &mut edges {
        targets.retain(|target| !is_below(file, target));
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|file| (file.as_str(), reached(&edges, file)))
        .collect();
    let mut found = BTreeSet::new();
    for (file, targets) in &reach {
        let circle: BTreeSet<String> = targets
            .iter()
            .filter(|target| reach.get(*target).is_some_and(|back| back.contains(file)))
            .map(ToString::to_string)
            .collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    found
}

/// Returns the files below `src` without those of tests, and without a program next to a library.
fn files_of<'a>(all: &'a [(String, String)], home: &str) -> BTreeMap<&'a str, &'a str> {
    let src = format!("crates/{home}/src/");
    let is_test = |file: &str| {
        file.split('/')
            .any(|part| matches!(part, "tests" | "tests.rs"))
    };
    let mut files: BTreeMap<&str, &str> = all
        .iter()
        .filter_map(|(name, text)| Some((name.strip_prefix(&src)?, text.as_str())))
        .filter(|(file, _)| !is_test(file))
        .collect();
    if files.contains_key("lib.rs") {
        files.remove("main.rs");
    }
    files
}

/// The uses between the files of each crate.
static CRATES: LazyLock<BTreeMap<String, Edges>> = LazyLock::new(|| {
    let all = sources();
    let homes: BTreeSet<&str> = all
        .iter()
        .filter_map(|(name, _)| Some(name.strip_prefix("crates/")?.split_once("/src/")?.0))
        .collect();
    assert!(homes.len() >= 9, "{homes:?}");
    let edges = |home: &str| Uses::new(files_of(&all, home)).edges();
    homes
        .into_iter()
        .map(|home| (home.to_owned(), edges(home)))
        .collect()
});

#[test]
fn files_use_each_other_in_one_direction() {
    let crates = CRATES.iter();
    let found = crates.flat_map(|(home, edges)| {
        let found = circles(edges.clone()).into_iter();
        found.map(move |circle| drawing(home, edges, &circle))
    });
    let found: Vec<String> = found.collect();
    assert!(
        found.is_empty(),
        "circles among files:\n{}",
        found.join("\n")
    );
}

/// Returns a circle for a message: its files, and which of them uses which.
fn drawing(home: &str, edges: &Edges, circle: &BTreeSet<String>) -> String {
    let mut lines = vec![format!("{home} {:?}", circle.iter().collect::<Vec<_>>())];
    for file in circle {
        let targets: Vec<&String> = edges
            .get(file)
            .into_iter()
            .flatten()
            .filter(|target| circle.contains(*target) && !is_below(file, target))
            .collect();
        lines.push(format!("    {file} uses {targets:?}"));
    }
    lines.join("\n")
}

/// Asserts that the files, with their texts, have exactly these circles.
fn check(files: &[(&str, &str)], expect: &[&[&str]]) {
    let edges = Uses::new(files.iter().copied()).edges();
    let found = circles(edges.clone());
    let expect: BTreeSet<BTreeSet<String>> = expect
        .iter()
        .map(|files| files.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(found, expect, "{files:?}: {edges:?}");
}

#[test]
fn a_circle_is_found_by_statements_paths_and_reexports() {
    let pair: &[&[&str]] = &[&["a.rs", "b.rs"]];
    let none: &[&[&str]] = &[];
    let rows = [
        ("use crate::b::B;", "use super::a::A;", pair),
        (
            "use crate::{b::{self, B as C}};",
            "fn f(a: &crate::a::A) {}",
            pair,
        ),
        (
            "use crate::b::B;",
            "mod in_one_file { use super::super::a::A; }",
            pair,
        ),
        ("use crate::B;", "use crate::a::A;", pair),
        (
            "pub use crate::b::B;\nfn f(b: B) {}",
            "use crate::a::A;",
            pair,
        ),
        (
            "macro_rules! m { () => { crate::b::f() } }",
            "use crate::a::*;",
            pair,
        ),
        // Not a use: a re-export, a comment, a string, a test, another crate, a field, a visibility.
        ("pub use crate::b::B;", "use crate::a::A;", none),
        (
            "/// [`crate::b::B`]\n// use crate::b::B;\nconst A: &str = \"crate::b\";",
            "use crate::a::A;",
            none,
        ),
        (
            "#[cfg(test)]\nuse crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            "use crate::a::A;",
            none,
        ),
        (
            "use other::b::B;\nfn f() { self.b.b(); ::b::c(); }",
            "use crate::a::A;",
            none,
        ),
        ("pub(in crate::b) struct A;", "use crate::a::A;", none),
    ];
    for (a, b, expect) in rows {
        check(
            &[
                ("lib.rs", "mod a; mod b; pub use b::B;"),
                ("a.rs", a),
                ("b.rs", b),
            ],
            expect,
        );
    }
}

#[test]
fn a_parent_may_use_its_children_but_not_what_uses_them() {
    let lib = ("lib.rs", "mod a; mod other;");
    let child = ("a/child.rs", "use super::A;\nuse crate::other::Other;");
    let parent = "mod child;\nuse self::child::Child;\nfn f() { child::f() }";
    check(&[lib, ("a.rs", parent), child, ("other.rs", "")], &[]);
    let back = ("other.rs", "use crate::a::child::Child;");
    check(
        &[lib, ("a.rs", parent), child, back],
        &[&["a/child.rs", "other.rs"]],
    );
    let through = "mod child;\nuse crate::other::Other;";
    let back = ("other.rs", "use crate::a::child::Child;");
    let child = ("a/child.rs", "use super::A;");
    check(
        &[lib, ("a.rs", through), child, back],
        &[&["a.rs", "a/child.rs", "other.rs"]],
    );
}
