//! Random scripts on random trees: applied, the workspace equals the view; undone, it is as before; redone, as after.

use proptest::prelude::*;

use super::*;

const PATHS: [&str; 12] = [
    "a",
    "b",
    "d",
    "d/x",
    "d/e",
    "d/e/y",
    "d/e/z",
    "n/m",
    "n/m/k",
    "l",
    "d/l",
    ".git/HEAD",
];

/// Generates a line of a script; impossible operations do nothing.
fn line() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(&PATHS[..]);
    let text = prop::sample::select(&["one", "two", ""][..]);
    let mode = prop::sample::select(&["644", "600", "755", "700", "4755"][..]);
    prop_oneof![
        4 => (path(), text).prop_map(|(path, text)| format!("echo -n '{text}' > {path}")),
        2 => path().prop_map(|path| format!("mkdir -p {path}")),
        3 => path().prop_map(|path| format!("rm -rf {path}")),
        1 => path().prop_map(|path| format!("mkdir -p {path} && echo -n in > {path}/in")),
        2 => (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("cp -rT {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("ln -sfT {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("ln -f {from} {to}")),
        2 => (mode, path()).prop_map(|(mode, path)| format!("test -f {path} && test ! -L {path} && chmod {mode} {path}")),
        1 => path().prop_map(|path| format!("touch {path}")),
        1 => path().prop_map(|path| format!("test -d {path} && test ! -L {path} && chmod 711 {path}")),
    ]
}

fn script(most: usize) -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(line(), 1..most);
    lines.prop_map(|lines| format!("{{ {}\n}} 2>/dev/null; true", lines.join("\n")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn applied_changes_make_the_workspace_the_view(before in script(16), command in script(12)) {
        let mut scene = Scene::new();
        scene.prepare("mkdir -p d/e .git; echo -n 1 > a; echo -n 2 > d/e/y; echo -n ref > .git/HEAD");
        scene.prepare(&before);
        if !scene.run(&command) {
            return Ok(());
        }
        let before = scene.tree();
        let collected = scene.collect();
        prop_assert!(collected.dropped.is_empty(), "{:?}", collected.dropped);
        let conflicts = collected.changes.iter().filter(|change| change.conflict.is_some());
        prop_assert_eq!(conflicts.count(), 0);
        scene.apply(&collected).unwrap();
        prop_assert_eq!(scene.tree(), scene.copy(), "{:?}", actions(&collected));
        // Applying again does nothing, for these changes and for those collected again.
        scene.apply(&collected).unwrap();
        let again = scene.collect_again();
        prop_assert_eq!(actions(&again), Vec::<String>::new());
        prop_assert_eq!(scene.log.read(&RunId::new("r1")).unwrap().len(), usize::from(!collected.changes.is_empty()));
        if !collected.changes.iter().any(|change| change.path.starts_with(".git")) {
            scene.undo_and_redo(&before);
        }
    }
}
