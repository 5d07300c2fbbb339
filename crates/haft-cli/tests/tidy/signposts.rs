//! What readers are told about places is true: the files named in CONTRIBUTING.md and the walks of ARCHITECTURE.md exist and contain
//! what is claimed, and a walk names each file once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

#[test]
fn a_walk_names_each_file_once_and_every_file_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let sources: Vec<String> = crate::sources().into_iter().map(|(name, _)| name).collect();
    for walk in ["## Walk A", "## Walk B", "## Walk C"] {
        let mut named = BTreeSet::new();
        for place in quoted(section(&page, walk)) {
            let file = place.split(':').next().unwrap();
            if Path::new(file)
                .extension()
                .is_none_or(|ending| ending != "rs")
            {
                continue;
            }
            assert!(named.insert(file), "{walk} names `{file}` twice");
            let end = format!(
                "/{}",
                file.replace("haft-json/src/", "")
                    .replace("haft-chain/src/", "")
                    .replace("haft-app/src/", "")
            );
            let exists = sources.iter().any(|name| name.ends_with(&end));
            assert!(exists, "{walk} names `{file}`, which does not exist");
        }
        assert!(named.len() >= 4, "{walk} names {} files", named.len());
    }
}
