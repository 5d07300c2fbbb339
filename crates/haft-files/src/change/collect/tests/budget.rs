//! The request for very many, very long and sparse files stays within its budget.

use std::fs::File;

use super::*;
use crate::preview::{MAX_LISTED, MAX_TEXT};

fn preview(scene: &Scene) -> Vec<FileChange> {
    let first = |path: &Path| path == Path::new("z/last");
    scene
        .collect()
        .preview(&scene.workspace, &|_| true, &first, &|_| false)
}

fn text(shown: &[FileChange]) -> usize {
    shown.iter().map(FileChange::text_bytes).sum()
}

#[test]
fn files_beyond_those_that_a_request_names_are_counted_by_folder() {
    let mut scene = Scene::new();
    scene.begin();
    for folder in ["a", "b", "z"] {
        fs::create_dir(scene.upper(folder)).unwrap();
    }
    for nth in 0..1_500 {
        fs::write(scene.upper(&format!("a/{nth:04}")), format!("{nth}\n")).unwrap();
        fs::write(scene.upper(&format!("b/{nth:04}")), format!("{nth}\n")).unwrap();
    }
    fs::write(scene.upper("z/last"), "important\n").unwrap();
    let first = preview(&scene);
    let rest: Vec<_> = first
        .iter()
        .filter_map(|one| Some((one.path.as_str(), one.files?)))
        .collect();
    assert_eq!(rest, [("b", 1_001)]);
    assert_eq!(first.len(), MAX_LISTED + 1);
    let last = first.iter().find(|one| one.path == "z/last").unwrap();
    assert_eq!(last.after.as_deref(), Some("important\n"));
    assert!(text(&first) <= MAX_TEXT);
    // The digest covers what is only counted.
    fs::write(scene.upper("b/1499"), "other\n").unwrap();
    let second = preview(&scene);
    let pairs = first.iter().zip(&second);
    let other: Vec<_> = pairs.filter(|(one, other)| !one.is_same(other)).collect();
    assert_eq!(other.len(), 1);
    assert_eq!(other[0].0.path, "b");
}

#[test]
fn many_long_files_when_previewed_share_the_budget() {
    let mut scene = Scene::new();
    scene.begin();
    let line = "a line of a generated file\n".repeat(10_000);
    for nth in 0..300 {
        fs::write(scene.work(&format!("{nth:04}")), &line).unwrap();
        fs::write(scene.upper(&format!("{nth:04}")), format!("{nth}\n{line}")).unwrap();
    }
    let shown = preview(&scene);
    assert_eq!(shown.len(), 300);
    assert!(text(&shown) <= MAX_TEXT, "{}", text(&shown));
    for one in &shown {
        assert!(
            one.text_bytes() > 0 && one.after_sha256.is_some(),
            "{}",
            one.path
        );
    }
}

#[test]
fn sparse_files_when_collected_are_neither_read_nor_shown_whole() {
    let mut scene = Scene::new();
    scene.begin();
    let sparse = |name: &str, bytes| {
        let Ok(()) = File::create(scene.upper(name)).unwrap().set_len(bytes) else {
            return false;
        };
        true
    };
    // Some file systems have a lower limit.
    let huge = sparse("huge", 1 << 40) || sparse("huge", 1 << 36);
    assert!(huge);
    for nth in 0..1_000 {
        assert!(sparse(&format!("sparse{nth:04}"), 60 << 20));
    }
    let collected = scene.collect();
    let unhashed = collected
        .changes
        .iter()
        .filter(|change| matches!(change.after, Some(EntryState::File { sha256: None, .. })));
    assert!(unhashed.count() > 990);
    let shown = collected.preview(&scene.workspace, &|_| true, &|_| false, &|_| false);
    assert_eq!(shown.len(), 1_001);
    assert_eq!(text(&shown), 0);
    let is_named = |one: &FileChange| one.binary || one.folded.is_some();
    assert!(
        shown
            .iter()
            .all(|one| is_named(one) && one.after_bytes.is_some())
    );
    assert_eq!(
        collected.sha256(&|_| true),
        scene.collect().sha256(&|_| true)
    );
}
