//! What readers are told about places is true: the files named in CONTRIBUTING.md and ARCHITECTURE.md exist and contain what is claimed,
//! a walk names each file once, and the drawing of crates shows what their manifests say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// Returns the part of a page below this heading, up to the next one of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page.split_once(heading).unwrap();
    below.split("\n## ").next().unwrap()
}

/// Returns the texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_place_that_contributing_names_exists() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut seen = 0;
    for place in quoted(section(&page, "## Where do I")) {
        let (path, holds) = place.split_once(": ").unwrap_or((place, ""));
        if !path.contains('/') {
            continue;
        }
        seen += 1;
        let path = root().join(path);
        assert!(path.exists(), "`{place}` does not exist");
        if !holds.is_empty() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                text.contains(holds),
                "`{place}`: the file does not hold that"
            );
        }
    }
    assert!(seen >= 20, "{seen} places");
}

fn is_rust(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "rs")
}

/// Returns the file that a path of ARCHITECTURE.md means: `haft-json/lexer.rs` is `crates/haft-json/src/lexer.rs`, and a path outside of
/// `src` is written in full. `None` for other texts between backticks.
fn source_named(place: &str) -> Option<PathBuf> {
    let file = place.split(": ").next().unwrap_or(place);
    let (home, below) = file.split_once('/')?;
    let is_source = is_rust(below) && home.starts_with("haft");
    let home = root().join("crates").join(home);
    let inside = home.join("src").join(below);
    is_source.then(|| {
        if inside.is_file() {
            inside
        } else {
            home.join(below)
        }
    })
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut seen = 0;
    for place in quoted(&page) {
        let Some(path) = source_named(place) else {
            assert!(!is_rust(place), "`{place}` does not begin with its crate");
            continue;
        };
        seen += 1;
        assert!(path.is_file(), "`{place}` does not exist");
        if let Some((_, holds)) = place.split_once(": ") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(holds), "`{place}`: the file lacks that");
        }
    }
    assert!(seen >= 60, "{seen} files");
}

#[test]
fn a_walk_names_each_file_once() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let walks: Vec<&str> = page.split("\n### Walk ").skip(1).collect();
    assert_eq!(walks.len(), 5, "walks");
    for walk in walks {
        let walk = walk.split("\n## ").next().unwrap();
        let name = walk.lines().next().unwrap();
        let mut named = BTreeSet::new();
        for file in quoted(walk).filter_map(source_named) {
            assert!(
                named.insert(file.clone()),
                "walk {name} names {file:?} twice"
            );
        }
        assert!(
            (8..=20).contains(&named.len()),
            "walk {name} names {} files",
            named.len()
        );
    }
}

#[test]
fn the_architecture_is_short_enough_to_be_read() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let lines = page.lines().count();
    assert!(lines <= 250, "{lines} lines");
    let long = page.lines().find(|line| line.chars().count() > 160);
    assert_eq!(long, None, "a line over 160 characters");
}

/// A row of the drawing of crates: its crates, and the arrows between them.
type DrawnRow<'a> = (BTreeSet<&'a str>, BTreeSet<(&'a str, &'a str)>);

/// Returns the rows of the drawing of crates, from the bottom up.
fn drawn(page: &str) -> Vec<DrawnRow<'_>> {
    let drawing = section(page, "## Crates").split("```").nth(1).unwrap();
    let rows = drawing.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let crates = words.iter().copied().filter(|word| !is_arrow(word));
        let arrows = words.windows(3).filter_map(|three| match three[1] {
            "──►" => Some((three[0], three[2])),
            "◄──" => Some((three[2], three[0])),
            _ => None,
        });
        (crates.collect(), arrows.collect())
    });
    let mut rows: Vec<_> = rows.collect();
    rows.reverse();
    rows
}

fn is_arrow(word: &str) -> bool {
    matches!(word, "──►" | "◄──")
}

#[test]
fn the_drawing_of_crates_is_what_the_manifests_say() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = drawn(&page);
    // Floors are what the manifests keep to; arrows stand for what a floor allows besides.
    let floors: Vec<BTreeSet<&str>> = crate::FLOORS
        .iter()
        .map(|floor| floor.iter().copied().collect())
        .collect();
    let crates: Vec<_> = rows.iter().map(|(crates, _)| crates.clone()).collect();
    assert_eq!(crates, floors, "the crates of each row");
    let arrows: BTreeSet<_> = rows.into_iter().flat_map(|(_, arrows)| arrows).collect();
    let mut used = BTreeSet::new();
    for floor in crate::FLOORS {
        for name in *floor {
            let manifest = root().join("crates").join(name).join("Cargo.toml");
            let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
            let table = manifest.get("dependencies").and_then(toml::Value::as_table);
            let beside = floor
                .iter()
                .filter(|other| table.is_some_and(|table| table.contains_key(**other)));
            used.extend(beside.map(|other| (*name, *other)));
        }
    }
    assert_eq!(arrows, used, "the arrows within rows");
    let table = section(&page, "## Crates");
    for name in crate::FLOORS.concat() {
        let row = format!("\n| `{name}` | ");
        assert!(table.contains(&row), "{name} has no row");
    }
}

#[test]
fn arrows_of_a_drawing_are_read_in_both_directions() {
    let page = "## Crates\n\n```text\ntop   a ──► b ◄── c    d\nlow   e\n```\n";
    let top = BTreeSet::from(["a", "b", "c", "d"]);
    let arrows = BTreeSet::from([("a", "b"), ("c", "b")]);
    let expect = [(BTreeSet::from(["e"]), BTreeSet::new()), (top, arrows)];
    assert_eq!(drawn(page), expect);
}
