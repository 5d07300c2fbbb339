//! Times that a command leaves on files which it only touched, or wrote again as they were.

use std::os::unix::fs::MetadataExt as _;

use super::*;

const SCENE: &str = "echo a > a; echo b > b; mkdir d e .git; echo x > d/x; echo r > .git/HEAD; ln b hard; \
    find . -exec touch -d @1000000 {} +";

/// Returns when each path below a folder was modified.
fn times(root: &Path) -> BTreeMap<PathBuf, (i64, i64)> {
    let time = |path: &PathBuf| {
        let meta = fs::symlink_metadata(root.join(path)).unwrap();
        (meta.mtime(), meta.mtime_nsec())
    };
    let paths = tree(root).into_keys();
    paths.map(|path| (path.clone(), time(&path))).collect()
}

/// A command, and the paths whose times are set.
const ROWS: [(&str, &[&str]); 16] = [
    ("true", &[]),
    ("touch a", &["a"]),
    ("touch -d @-100 a", &["a"]),
    ("touch -d 2400-01-01 a", &["a"]),
    ("cat a > t; cat t > a; rm t", &["a"]),
    ("cp a t; mv t a", &["a"]),
    ("touch d", &["d"]),
    ("touch d d/x", &["d", "d/x"]),
    ("rm -r d; mkdir d; echo x > d/x", &["d", "d/x"]),
    // What changes has its time with that.
    ("echo new > a; touch d/x", &["d/x"]),
    ("touch d; echo y > d/y", &[]),
    ("chmod 600 a; touch a", &[]),
    ("chmod 600 a", &[]),
    // Another name of the file may lie elsewhere.
    ("touch b", &[]),
    ("touch .git .git/HEAD", &[]),
    // Links have no time of their own that counts.
    ("ln -s a l; touch -h l", &[]),
];

#[test]
fn time_of_what_was_only_touched_is_set_as_the_command_left_it() {
    for (command, expect) in ROWS {
        let mut scene = Scene::new();
        scene.prepare(SCENE);
        if !scene.run(command) {
            return;
        }
        let collected = scene.collect();
        let touched: Vec<&Path> = collected.only_touched().list().paths().collect();
        let expect: Vec<&Path> = expect.iter().map(Path::new).collect();
        assert_eq!(touched, expect, "{command}");
        scene.apply(&collected).unwrap();
        let set = collected.set_times(&scene.changer("r1"), &|_| true);
        assert_eq!(set, expect.len() as u64, "{command}");
        let (now, left) = (
            times(&scene.work("")),
            times(&scene.base.path().join("copy")),
        );
        for path in &expect {
            assert_eq!(
                now.get(*path),
                left.get(*path),
                "{command}: {}",
                path.display()
            );
        }
        // Files that changed have theirs, too.
        for change in collected.changes.iter() {
            if matches!(change.after, Some(EntryState::File { .. })) {
                let path = change.path;
                assert_eq!(
                    now.get(path),
                    left.get(path),
                    "{command}: {}",
                    path.display()
                );
            }
        }
        assert_eq!(
            scene.collect_again().only_touched().list().len(),
            0,
            "{command}"
        );
    }
}

#[test]
fn time_of_what_another_program_changed_is_kept() {
    for (meanwhile, then) in [
        ("echo mine > a", "true"),
        ("touch -d @5 a", "true"),
        ("chmod 600 a", "true"),
        ("true", "echo mine > a"),
        ("true", "touch -d @5 a"),
        ("true", "ln a other"),
        ("true", "mv a t; cp -p t a"),
        ("true", "mv a t; ln -s t a"),
        ("true", "rm a; mkdir a"),
        ("true", "rm a; mkfifo a"),
        ("true", "rm a"),
    ] {
        let mut scene = Scene::new();
        scene.prepare(SCENE);
        if !scene.run("touch a") {
            return;
        }
        scene.prepare(meanwhile);
        let collected = scene.collect();
        scene.prepare(then);
        let theirs = times(&scene.work(""));
        let set = collected.set_times(&scene.changer("r1"), &|_| true);
        assert_eq!(set, 0, "{meanwhile} / {then}");
        assert_eq!(times(&scene.work("")), theirs, "{meanwhile} / {then}");
    }
}

#[test]
fn time_is_set_only_where_it_is_selected() {
    let mut scene = Scene::new();
    scene.prepare(SCENE);
    if !scene.run("touch a d/x") {
        return;
    }
    let collected = scene.collect();
    let select = |path: &Path| path == Path::new("a");
    assert_eq!(collected.set_times(&scene.changer("r1"), &select), 1);
    let now = times(&scene.work(""));
    assert_eq!(now[Path::new("d/x")], (1_000_000, 0));
}
