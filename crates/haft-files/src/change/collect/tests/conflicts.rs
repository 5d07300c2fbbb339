//! Changes by other programs in the workspace while a command runs are not overwritten.

use super::*;

/// What the command does, what another program does meanwhile, and the changes; `!` marks a conflict.
const ROWS: [(&str, &str, &[&str]); 18] = [
    ("echo new > a", "echo mine > a", &["!modify a"]),
    ("echo new > a", "echo mine > t; mv t a", &["!modify a"]),
    ("rm a", "echo mine > a", &["!delete a"]),
    ("rm a", "echo mine > t; mv t a", &["!delete a"]),
    ("rm a", "rm a", &[]),
    ("echo new > a", "echo new > a", &[]),
    ("echo new > c", "echo mine > c", &["!modify c"]),
    ("echo new > c", "mkdir c", &["!replace c"]),
    ("ln -s new c", "ln -s mine c", &["!modify c"]),
    (
        "rm -r d",
        "echo mine > d/new",
        &["!delete d", "!delete d/new", "delete d/x"],
    ),
    (
        "rm -r d; echo new > d",
        "echo mine > d/x",
        &["!replace d", "!delete d/x"],
    ),
    (
        "echo new > d/x; echo new > b",
        "mv d e; ln -s e d",
        &["modify b", "!replace d", "!create d/x"],
    ),
    ("echo new > d/x", "mv d e; mkdir d", &["!create d/x"]),
    // A different file was changed.
    ("echo new > a", "echo mine > b", &["modify a"]),
    // Another program changed the folder's mode and times; the folder was not moved.
    (
        "echo new > d/x",
        "chmod 700 d; echo mine > d/new",
        &["!chmod d", "modify d/x"],
    ),
    ("echo new > d/x", "chmod 700 d", &["!chmod d", "modify d/x"]),
    ("echo new > d/x", "touch -d 2020-01-01 d", &["modify d/x"]),
    (
        "rm -r d",
        "chmod 700 d; chmod 755 d",
        &["delete d", "delete d/x"],
    ),
];

#[test]
fn what_another_program_changed_meanwhile_is_a_conflict() {
    for (command, meanwhile, expect) in ROWS {
        let mut scene = Scene::new();
        scene.prepare("echo a > a; echo b > b; mkdir d; echo x > d/x");
        if !scene.run(command) {
            return;
        }
        scene.prepare(meanwhile);
        let theirs = scene.tree();
        let collected = scene.collect();
        let found = actions(&collected);
        assert_eq!(found, expect, "{command} / {meanwhile}");
        scene.apply(&collected).unwrap();
        for change in collected
            .changes
            .iter()
            .filter(|change| change.conflict.is_some())
        {
            let now = scene.tree();
            assert_eq!(now.get(change.path), theirs.get(change.path), "{command}");
        }
        let conflicts = expect.iter().filter(|line| line.starts_with('!')).count();
        assert_eq!(collected.left_out(&|_| true).len(), conflicts);
    }
}

/// The same for deletions by another program.
const DELETIONS: [(&str, &str, &[&str]); 18] = [
    ("echo new > a", "rm a", &["!create a"]),
    (
        "echo new >> a; echo c > c; mkdir n",
        "rm a",
        &["!create a", "create c", "create n"],
    ),
    ("echo new > a", "mv a e", &["!create a"]),
    ("chmod 600 a", "rm a", &["!create a"]),
    ("echo new > d/x", "rm -r d", &["!create d", "!create d/x"]),
    ("echo new > d/x", "mv d e", &["!create d", "!create d/x"]),
    ("chmod 700 d", "rm -r d", &["!create d"]),
    (
        "echo new > d/x; echo y > d/y",
        "rm -r d",
        &["create d", "!create d/x", "create d/y"],
    ),
    // New files, with these names or others.
    ("echo new > c", "rm a", &["create c"]),
    ("rm a; echo new > a", "rm a", &["create a"]),
    (
        "rm -r d; mkdir d; echo new > d/x",
        "rm -r d",
        &["create d", "create d/x"],
    ),
    // Moved, not deleted: whatever is deleted beside it, and even if it was changed.
    ("mv a e; echo more >> e", "rm b", &["delete a", "create e"]),
    ("mv a e; echo more >> e; echo a > a", "rm b", &["create e"]),
    (
        "mkdir n; mv a n; echo more >> n/a",
        "rm b",
        &["delete a", "create n", "create n/a"],
    ),
    ("ln a e; echo more >> e", "rm b", &["modify a", "create e"]),
    (
        "mv a t; mv d/x a; mv t d/x; echo more >> a",
        "rm b",
        &["modify a", "modify d/x"],
    ),
    // If a moved file is recognized by its content, so is a deleted one; otherwise it is not.
    (
        "mv a e; echo new > b",
        "rm b",
        &["delete a", "!create b", "create e"],
    ),
    (
        "mv a e; echo more >> e; echo new > b",
        "rm b",
        &["delete a", "create b", "create e"],
    ),
];

#[test]
fn what_another_program_deleted_meanwhile_is_a_conflict() {
    for (command, meanwhile, expect) in DELETIONS {
        let mut scene = Scene::new();
        scene.prepare("echo a > a; echo b > b; mkdir d; echo x > d/x; chmod 755 d; chmod 644 a");
        if !scene.run(command) {
            return;
        }
        scene.prepare(meanwhile);
        let collected = scene.collect();
        assert_eq!(actions(&collected), expect, "{command} / {meanwhile}");
        scene.apply(&collected).unwrap();
        for change in collected.changes.iter() {
            let there = scene.work("").join(change.path).exists();
            let expected = change.after.is_some() && change.conflict.is_none();
            assert_eq!(there, expected, "{command}: {}", change.path.display());
        }
        assert!(
            scene
                .collect_again()
                .changes
                .iter()
                .all(|change| change.after.is_some())
        );
    }
}

#[test]
fn what_changes_between_collecting_and_applying_is_not_overwritten() {
    for (command, then) in [
        ("echo new > a", "echo mine > a"),
        ("echo new > a", "echo mine > t; mv t a"),
        ("rm a", "echo mine > a"),
        ("echo new > a", "rm a"),
        ("chmod 600 a", "rm a"),
        ("chmod 700 d", "rm -r d"),
        ("echo new > c", "echo mine > c"),
        ("echo new > c", "mkdir c"),
        ("echo new > c", "ln -s a c"),
        ("chmod 600 a", "echo mine > a"),
        ("ln -sf b l", "ln -sfT c l"),
        ("rm l", "rm l; echo mine > l"),
        ("echo new > d/x", "mv d e; ln -s e d"),
        ("rm -r d", "rm -r d; echo mine > d"),
    ] {
        let mut scene = Scene::new();
        scene.prepare("echo a > a; echo b > b; mkdir d; echo x > d/x; ln -s a l");
        if !scene.run(command) {
            return;
        }
        let collected = scene.collect();
        assert!(!collected.changes.is_empty());
        scene.prepare(then);
        let theirs = scene.tree();
        let error = scene.apply(&collected).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::Changed(_)),
            "{command}: {error}"
        );
        assert_eq!(scene.tree(), theirs, "{command}");
        assert!(scene.log.read(&RunId::new("r1")).unwrap().is_empty());
    }
}

#[test]
fn a_part_that_is_applied_already_is_completed() {
    let command = "rm -r d; mkdir d; echo n > d/n; echo new > a; rm b; ln -sf b l; mkdir -m 700 e; \
        echo f > e/f; rm -r g; echo g > g; rm h; mkdir h; echo i > h/i; ln a k; chmod 600 m";
    let prepare = "echo a > a; echo b > b; mkdir d g; echo x > d/x; ln -s a l; echo x > g/x; \
        echo h > h; echo m > m";
    let mut scene = Scene::new();
    scene.prepare(prepare);
    if !scene.run(command) {
        return;
    }
    let all = scene.collect().changes;
    for count in 0..all.len() {
        let mut scene = Scene::new();
        scene.prepare(prepare);
        assert!(scene.run(command));
        let collected = scene.collect();
        let first: Vec<_> = all.iter().take(count).map(|change| change.path).collect();
        let changer = scene.workspace.unrecorded();
        let select = |path: &Path| first.contains(&path);
        collected
            .apply(&scene.workspace, &changer, &select)
            .unwrap();
        // By the same process, and by another one that collects again.
        if count % 2 == 0 {
            scene.apply(&collected).unwrap();
        } else {
            let again = scene.collect_again();
            let conflicts = again
                .changes
                .iter()
                .filter(|change| change.conflict.is_some());
            assert_eq!(conflicts.count(), 0, "{count}: {:?}", actions(&again));
            scene.apply(&again).unwrap();
        }
        assert_eq!(scene.tree(), scene.copy(), "{count}");
    }
}

#[test]
fn what_is_selected_is_applied_and_nothing_else() {
    let mut scene = Scene::new();
    scene.prepare(
        "echo a > a; mkdir -p d/e g; echo x > d/e/x; echo y > d/y; echo g > g/g; echo h > h",
    );
    let command = "echo new > a; rm -r d; rm -r g; echo g > g; rm h; mkdir h; echo i > h/i; \
        mkdir -p n/m; echo k > n/m/k";
    if !scene.run(command) {
        return;
    }
    let collected = scene.collect();
    let select = |path: &Path| !["a", "d/y", "g/g", "h", "n"].map(Path::new).contains(&path);
    let left_out = collected.left_out(&select);
    let left_out: Vec<_> = left_out
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!(left_out, ["d", "g", "h/i"]);
    let before = scene.tree();
    collected
        .apply(&scene.workspace, &scene.changer("r1"), &select)
        .unwrap();
    let is = |path: &str| fs::read_to_string(scene.work(path)).unwrap_or_default();
    assert_eq!(
        [is("a"), is("d/y"), is("g/g"), is("h"), is("n/m/k")],
        ["a\n", "y\n", "g\n", "h\n", "k\n"]
    );
    assert!(!scene.work("d/e").exists());
    scene.undo_and_redo(&before);
}

#[test]
fn the_hash_is_bound_to_every_change() {
    let hash = |command: &str| {
        let mut scene = Scene::new();
        scene.prepare("echo a > a; chmod 644 a; ln -s a l");
        scene
            .run(command)
            .then(|| scene.collect().sha256(&|_| true))
    };
    let commands = [
        "true",
        "echo b > a",
        "echo c > a",
        "chmod 600 a",
        "rm a",
        "echo b > b",
        "ln -sfT b l",
        "ln -sfT c l",
        "mkdir b",
        "mkdir -m 700 b",
    ];
    let hashes: Vec<_> = commands.iter().map(|command| hash(command)).collect();
    if hashes.contains(&None) {
        return;
    }
    assert_eq!(hash("echo b > a"), hashes[1]);
    let mut different = hashes.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), hashes.len());
}

#[test]
fn f1_what_another_program_moved_into_a_deleted_folder_stays() {
    for opaque in [false, true] {
        let mut scene = Scene::new();
        for (folder, file) in [("build", "build/old"), ("own", "own/precious")] {
            fs::create_dir(scene.work(folder)).unwrap();
            fs::write(scene.work(file), "text").unwrap();
        }
        scene.begin();
        if opaque {
            fs::create_dir(scene.upper("build")).unwrap();
            fs::write(scene.upper("build/new"), "new").unwrap();
            let (path, flags) = (scene.upper("build"), rustix::fs::XattrFlags::empty());
            rustix::fs::setxattr(path, "user.overlay.opaque", b"y", flags).unwrap();
        } else {
            let device = rustix::fs::FileType::CharacterDevice;
            let (path, mode) = (scene.upper("build"), rustix::fs::Mode::empty());
            rustix::fs::mknodat(rustix::fs::CWD, path, device, mode, 0).unwrap();
        }
        fs::rename(scene.work("own"), scene.work("build/own")).unwrap();
        let collected = scene.collect();
        let moved = |change: &ViewChange<'_>| change.path.starts_with("build/own");
        let moved: Vec<_> = collected.changes.iter().filter(moved).collect();
        assert_eq!(moved.len(), 2, "{opaque}");
        for change in moved {
            assert!(
                change.conflict.is_some(),
                "{opaque}: {}",
                change.path.display()
            );
        }
        scene.apply(&collected).unwrap();
        let kept = fs::read_to_string(scene.work("build/own/precious"));
        assert_eq!(kept.unwrap(), "text", "{opaque}");
    }
}
