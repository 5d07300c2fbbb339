//! Modules next to each other, each with all that is below it, use each other in one direction, too: no file need be in a circle
//! for its folder to be in one.

use std::collections::{BTreeMap, BTreeSet};

use super::{CRATES, Edges, circles};
use crate::uses::Uses;

/// Lifts the uses between files to those between the modules next to each other in each folder.
fn levels(edges: &Edges) -> BTreeMap<String, Edges> {
    let mut levels = BTreeMap::<String, Edges>::new();
    for (file, targets) in edges {
        let own: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        for target in targets {
            let other: Vec<&str> = target.trim_end_matches(".rs").split('/').collect();
            let same = own.iter().zip(&other).take_while(|(a, b)| a == b).count();
            // One that is below the other is not next to it.
            let (Some(user), Some(used)) = (own.get(same), other.get(same)) else {
                continue;
            };
            let level = levels.entry(own[..same].join("/")).or_default();
            let targets = level.entry((*user).to_owned()).or_default();
            targets.insert((*used).to_owned());
        }
    }
    levels
}

/// Returns the circles of modules in a crate, each module with the folders above it.
fn circles_of_modules(edges: &Edges) -> Vec<BTreeSet<String>> {
    let levels = levels(edges).into_iter();
    let found = levels.flat_map(|(folder, edges)| {
        let name = move |module: &String| match folder.as_str() {
            "" => module.clone(),
            folder => format!("{folder}/{module}"),
        };
        circles(edges)
            .into_iter()
            .map(move |circle| circle.iter().map(&name).collect())
    });
    found.collect()
}

/// Returns the uses between the modules of a circle for a message, one for each two files.
fn uses_within(edges: &Edges, circle: &BTreeSet<String>) -> String {
    let module = |file: &str| {
        let path = file.trim_end_matches(".rs");
        let inside = |module: &&String| {
            let rest = path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        circle.iter().find(inside).cloned()
    };
    let mut lines = Vec::new();
    for (file, targets) in edges {
        for target in targets {
            let (from, to) = (module(file), module(target));
            if from != to && from.is_some() && to.is_some() {
                lines.push(format!("    {file} uses {target}"));
            }
        }
    }
    lines.join("\n")
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let mut found = Vec::new();
    for (home, edges) in &*CRATES {
        for circle in circles_of_modules(edges) {
            let uses = uses_within(edges, &circle);
            found.push(format!("{home} {circle:?}\n{uses}"));
        }
    }
    assert!(found.is_empty(), "circles:\n{}", found.join("\n"));
}

#[test]
fn a_circle_of_folders_is_found_where_no_file_is_in_one() {
    let lib = ("lib.rs", "mod a; mod b;");
    let check = |files: &[(&str, &str)], expect: &[&[&str]]| {
        let edges = Uses::new(files.iter().copied()).edges();
        let expect: Vec<BTreeSet<String>> = expect
            .iter()
            .map(|circle| circle.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(circles_of_modules(&edges), expect, "{files:?}");
    };
    let a = ("a.rs", "mod one; mod two;");
    let one = ("a/one.rs", "use crate::b::B;");
    let two = ("a/two.rs", "");
    let b = ("b.rs", "use crate::a::two::Two;");
    check(&[lib, a, one, two, b], &[&["a", "b"]]);
    check(&[lib, a, one, two, ("b.rs", "")], &[]);
    // Below a folder, too; a child's use of its parent is left to the rule of files.
    let deep = [
        ("a/one.rs", "mod x;"),
        ("a/one/x.rs", "use crate::a::two::y::Y;"),
        ("a/two.rs", "mod y; use crate::a::one::One;"),
        ("a/two/y.rs", "use super::Two;"),
    ];
    let all = [&[lib, a, ("b.rs", "")][..], &deep[..]].concat();
    check(&all, &[&["a/one", "a/two"]]);
}
