//! An undo that sets aside later changes: the run's changes are reverted, and nothing of other programs is lost.

use super::super::undo::LaterChangePolicy;
use super::*;

/// Writes or removes a path of the workspace as another program; impossible operations do nothing.
fn by_others(scene: &Scene, path: &str, text: Option<String>) {
    let path = scene.work.path().join(path);
    let _ = match text {
        Some(text) => fs::write(&path, text),
        None => fs::remove_file(&path),
    };
}

/// Returns what other programs wrote, sorted.
fn contents(tree: &BTreeMap<PathBuf, String>) -> Vec<&String> {
    let mut all: Vec<_> = tree.values().filter(|what| what.contains("mine")).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_forced_undo_loses_nothing_of_others_and_is_taken_back(
        all in prop::collection::vec(does(), 1..6),
        others in prop::collection::vec((prop::sample::select(&PATHS[..]), prop::bool::weighted(0.8)), 1..4),
    ) {
        let scene = Scene::new();
        let changer = scene.changer("r1");
        for one in &all {
            one.it(&scene, &changer);
        }
        for (number, (path, writes)) in others.iter().enumerate() {
            by_others(&scene, path, writes.then(|| format!("mine {number}\n")));
        }
        let after = scene.tree();
        let undo = scene.plan_with("r1", LaterChangePolicy::SetAside);
        // What another program put beside a folder that was moved into itself is not set aside.
        if undo.conflicts.is_empty() && !undo.is_empty() && undo.moves.is_empty() {
            undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
            let now = scene.tree();
            let mut kept = contents(&now);
            for text in contents(&after) {
                let at = kept.iter().position(|other| *other == text);
                prop_assert!(at.is_some(), "{text} is lost: {undo:?}");
                kept.remove(at.unwrap_or_default());
            }
            let again = scene.plan("r2");
            prop_assert!(again.conflicts.is_empty(), "{:?} after {:?}", again.conflicts, undo);
            again.apply(&scene.workspace, &scene.changer("r3")).unwrap();
            prop_assert_eq!(scene.tree(), after);
        }
    }
}

#[test]
fn what_was_changed_since_is_kept_beside_and_nothing_is_overwritten() {
    let scene = Scene::new();
    let changer = scene.changer("r1");
    for one in [
        Does::Write("a", "new\n"),
        Does::Remove("b"),
        Does::Write("c", "new\n"),
    ] {
        one.it(&scene, &changer);
    }
    for path in ["a", "b", "c", "a.before-undo"] {
        by_others(&scene, path, Some(format!("mine in {path}\n")));
    }
    assert_eq!(scene.plan("r1").conflicts.len(), 3);
    let undo = scene.plan_with("r1", LaterChangePolicy::SetAside);
    assert!(undo.conflicts.is_empty(), "{:?}", undo.conflicts);
    undo.apply(&scene.workspace, &scene.changer("r2")).unwrap();
    let text = |path: &str| fs::read_to_string(scene.work.path().join(path)).ok();
    for (path, expect) in [
        ("a", Some("one\n")),
        ("a.before-undo", Some("mine in a.before-undo\n")),
        ("a.before-undo.2", Some("mine in a\n")),
        ("b", Some("two\n")),
        ("b.before-undo", Some("mine in b\n")),
        ("c", None),
        ("c.before-undo", Some("mine in c\n")),
    ] {
        assert_eq!(text(path).as_deref(), expect, "{path}");
    }
}

#[test]
fn what_cannot_be_restored_stays_as_it_is() {
    // Only the file itself had the moved text.
    let scene = Scene::new();
    Does::Move("d/x", "x").it(&scene, &scene.changer("r1"));
    by_others(&scene, "x", Some("mine\n".to_owned()));
    let undo = scene.plan_with("r1", LaterChangePolicy::SetAside);
    assert!(undo.conflicts.is_empty() && undo.is_empty(), "{undo:?}");
    let why = "its earlier state was not saved";
    assert_eq!((undo.stays[0].why, undo.stays[0].lost), (why, true));
    // A folder is not set aside with its content, and stays a conflict.
    let scene = Scene::new();
    Does::Write("c", "new\n").it(&scene, &scene.changer("r1"));
    fs::remove_file(scene.work.path().join("c")).unwrap();
    fs::create_dir(scene.work.path().join("c")).unwrap();
    let undo = scene.plan_with("r1", LaterChangePolicy::SetAside);
    assert_eq!(undo.conflicts.len(), 1, "{undo:?}");
}
