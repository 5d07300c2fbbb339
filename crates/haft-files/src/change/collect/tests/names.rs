//! Odd names, links and files: what can be applied is applied, everything else is reported.

use super::*;
use crate::preview::Aspect;

fn dropped(collected: &CollectedChanges) -> Vec<(String, &'static str)> {
    let all = collected.dropped.iter();
    all.map(|dropped| (dropped.path.to_string_lossy().into_owned(), dropped.why))
        .collect()
}

#[test]
fn names_of_any_bytes_are_applied_or_named() {
    let mut scene = Scene::new();
    scene.prepare("mkdir d; echo x > d/x; touch $'d/\\xff'; touch $'del\\xfe'");
    let command =
        "echo 1 > $'new\\nline'; echo 2 > ' -rf *'; echo 3 > $'\\xff'; rm -r d; rm $'del\\xfe'";
    if !scene.run(command) {
        return;
    }
    let collected = scene.collect();
    assert_eq!(
        actions(&collected),
        ["create  -rf *", "delete d/x", "create new\nline"]
    );
    let names: Vec<_> = dropped(&collected)
        .into_iter()
        .map(|(_, why)| why)
        .collect();
    let text = "its name is not UTF-8";
    assert_eq!(
        names,
        ["it holds something that is not deleted", text, text, text]
    );
    scene.apply(&collected).unwrap();
    assert_eq!(fs::read_to_string(scene.work("new\nline")).unwrap(), "1\n");
    assert!(scene.work("d").exists());
}

#[test]
fn chains_of_folders_are_applied_as_deep_as_they_are_judged() {
    let mut scene = Scene::new();
    let line = "d=$(printf 'e/%.0s' $(seq 1500)); mkdir -p $d; echo 1 > ${d:0:1024}file";
    if !scene.run(line) {
        return;
    }
    let collected = scene.collect();
    let deep = "it lies in more than 512 folders within each other";
    let end = format!("{}e", "e/".repeat(513));
    assert_eq!(dropped(&collected), [(end, deep)]);
    scene.apply(&collected).unwrap();
    assert!(scene.work(&format!("{}file", "e/".repeat(512))).exists());
}

#[test]
fn links_are_never_followed_and_second_names_become_files() {
    let mut scene = Scene::new();
    scene.prepare(
        "mkdir d; echo x > d/x; ln -s d in; ln -s /etc out; echo h > h1; ln h1 h2; ln h1 h3",
    );
    let command = "mkdir farm; for i in 1 2 3 4 5; do ln -s ../d farm/$i; done; ln -s /etc/passwd p; \
        echo 1 > one; ln one two; ln one farm/three; ln -sfn /etc in; rm h2; echo new > h3; ln -s loop loop";
    if !scene.run(command) {
        return;
    }
    let before = scene.tree();
    let collected = scene.collect();
    assert!(collected.dropped.is_empty());
    scene.apply(&collected).unwrap();
    assert_eq!(scene.tree(), scene.copy());
    fs::write(scene.work("one"), "other").unwrap();
    assert_eq!(fs::read_to_string(scene.work("two")).unwrap(), "1\n");
    fs::write(scene.work("one"), "1\n").unwrap();
    scene.undo_and_redo(&before);
}

#[test]
fn all_names_of_one_file_are_deleted_and_replaced() {
    let mut scene = Scene::new();
    scene.prepare("echo h > h1; for i in 2 3 4 5 6; do ln h1 h$i; done");
    if !scene.run("rm h1 h2 h3; for i in 4 5; do echo $i > h$i; done; chmod 600 h6") {
        return;
    }
    let collected = scene.collect();
    scene.apply(&collected).unwrap();
    assert_eq!(scene.tree(), scene.copy());
}

#[test]
fn sparse_set_id_and_empty_files_are_applied() {
    let mut scene = Scene::new();
    scene.prepare("echo s > s; chmod 4755 s");
    let command = "truncate -s 3G sparse; printf x | dd of=sparse bs=1 seek=1G conv=notrunc 2>/dev/null; \
        ln sparse again; echo t > s; echo u > u; chmod 6755 u; echo z > z; chmod 400 z; : > empty; mkdir -m 1777 m; mkdir -m 500 o";
    scene.begin();
    assert!(shell(&scene.upper(""), command));
    let collected = scene.collect();
    assert_eq!(collected.changes.len(), 8);
    scene.apply(&collected).unwrap();
    let mode = |path: &str| {
        fs::symlink_metadata(scene.work(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        ["u", "z", "empty", "m", "o"].map(mode),
        [0o755, 0o400, 0o644, 0o777, 0o500]
    );
    for path in ["sparse", "again"] {
        let meta = fs::metadata(scene.work(path)).unwrap();
        assert_eq!(meta.len(), 3 << 30);
        assert!(
            std::os::unix::fs::MetadataExt::blocks(&meta) < 1 << 12,
            "{meta:?}"
        );
    }
    // Too large to undo, and different from what is there.
    assert_eq!(scene.collect().changes.len(), 0);
    let other = fs::OpenOptions::new()
        .write(true)
        .open(scene.work("again"))
        .unwrap();
    std::os::unix::fs::FileExt::write_at(&other, b"y", 2 << 30).unwrap();
    assert_eq!(actions(&scene.collect()), ["!modify again"]);
}

#[test]
fn what_its_owner_may_not_read_is_applied() {
    let mut scene = Scene::new();
    scene.prepare("echo s > s; mkdir d; echo x > d/x; echo r > r");
    let command = "echo new > s; chmod 000 s; echo new > r; chmod 444 r; mkdir -p o/p; echo q > o/p/q; chmod 200 o/p/q; \
        chmod 000 o/p; chmod 000 o; echo y > d/y; chmod 644 d";
    if !scene.run(command) {
        return;
    }
    let collected = scene.collect();
    assert_eq!(
        actions(&collected),
        [
            "chmod d",
            "create d/y",
            "create o",
            "create o/p",
            "create o/p/q",
            "modify r",
            "modify s"
        ]
    );
    assert_eq!(
        scene.collect().sha256(&|_| true),
        collected.sha256(&|_| true)
    );
    scene.apply(&collected).unwrap();
    let open = "stat -c %a s o d; chmod 700 o d; stat -c %a o/p; chmod 700 o/p; stat -c %a o/p/q; \
        chmod 400 o/p/q s; cat o/p/q s d/y > all";
    scene.prepare(&format!("{{ {open}; }} > modes"));
    let read = |path: &str| fs::read_to_string(scene.work(path)).unwrap();
    assert_eq!(read("modes"), "0\n0\n644\n0\n200\n");
    assert_eq!(read("all"), "q\nnew\ny\n");
}

#[test]
fn deep_trees_and_the_whole_root_are_deleted_and_made() {
    let mut scene = Scene::new();
    let deep = vec!["d"; 300].join("/");
    scene.prepare(&format!("mkdir -p {deep}; echo x > {deep}/x; echo a > a; ln -s a l; mkdir -p n/.git; echo r > n/.git/HEAD"));
    if !scene.run("rm -rf -- * .??*") {
        return;
    }
    let before = scene.tree();
    let collected = scene.collect();
    assert_eq!(collected.changes.len(), before.len());
    scene.apply(&collected).unwrap();
    assert!(scene.tree().is_empty());
    let mut scene = Scene::new();
    if !scene.run(&format!("mkdir -p {deep}; echo x > {deep}/x")) {
        return;
    }
    let before = scene.tree();
    scene.apply(&scene.collect()).unwrap();
    assert_eq!(scene.tree(), scene.copy());
    scene.undo_and_redo(&before);
}

#[test]
fn folders_that_their_owner_may_not_write_to_are_changed() {
    let mut scene = Scene::new();
    scene.prepare("mkdir -p r/s; echo x > r/x; echo y > r/s/y; chmod 555 r r/s");
    if !scene.run("chmod -R u+w r; rm -r r/s; echo new > r/x; echo n > r/n; chmod 555 r") {
        return;
    }
    let before = scene.tree();
    scene.apply(&scene.collect()).unwrap();
    assert_eq!(scene.tree(), scene.copy());
    scene.undo_and_redo(&before);
}

#[test]
fn what_is_hidden_is_neither_read_nor_changed() {
    let mut scene = Scene::new();
    scene.prepare("mkdir -p d/.haft e; echo s > d/.haft/s; echo x > d/x");
    scene.workspace = scene
        .workspace
        .clone()
        .with_hidden([PathBuf::from("d/.haft"), PathBuf::from("e/own")]);
    if !scene.run("rm -r d; echo 1 > e/own; echo 2 > e/other") {
        return;
    }
    let collected = scene.collect();
    assert_eq!(actions(&collected), ["delete d/x", "create e/other"]);
    let own = "it is haft's own";
    let expect = [
        ("d", "it holds something that is not deleted"),
        ("d/.haft", own),
        ("e/own", own),
    ];
    assert_eq!(
        dropped(&collected),
        expect.map(|(path, why)| (path.to_owned(), why))
    );
    scene.apply(&collected).unwrap();
    assert_eq!(fs::read_to_string(scene.work("d/.haft/s")).unwrap(), "s\n");
}

#[test]
fn more_files_than_the_bound_are_refused() {
    let mut scene = Scene::new();
    scene.begin();
    // In memory if possible, and all as hard links, so they are created quickly.
    let fast = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let fast = fast.unwrap();
    let mut file = PathBuf::new();
    for number in 0..=MAX_ENTRIES {
        let folder = fast.path().join((number / 1_000).to_string());
        if number % 1_000 == 0 {
            fs::create_dir(&folder).unwrap();
            file = folder.join("first");
            fs::write(&file, "").unwrap();
        } else {
            fs::hard_link(&file, folder.join(number.to_string())).unwrap();
        }
    }
    let since = scene.since.unwrap();
    let error = CollectedChanges::collect(&scene.workspace, fast.path(), since).unwrap_err();
    assert!(matches!(error, CollectError::TooMany), "{error}");
    assert!(scene.tree().is_empty());
}

#[test]
fn a_mount_point_is_refused() {
    let mut scene = Scene::new();
    scene.prepare("mkdir -p d/m");
    scene.begin();
    fs::create_dir(scene.upper("proc")).unwrap();
    let root = Workspace::open(Path::new("/")).unwrap();
    let upper = scene.upper("");
    let error = CollectedChanges::collect(&root, &upper, scene.since.unwrap()).unwrap_err();
    assert!(matches!(error, CollectError::Mount { .. }), "{error}");
}

#[test]
fn the_user_sees_texts_targets_and_modes() {
    use Aspect::{BecomesLink, Content, Folder, Link, Mode, WasLink};

    let mut scene = Scene::new();
    scene.prepare("echo a > a; echo b > b; chmod 644 a b; echo c > c; mkdir gone held; ln -s a was; echo x > held/x; chmod 644 held/x");
    if !scene.run("echo new > a; chmod 755 b; chmod 777 a; rm c; ln -s /etc/passwd l; ln -sf a held/x; rm was; echo f > was; rmdir gone; echo n > 'a (mode)'; mkdir -p empty/in d; head -c 400000 /dev/zero | tr '\\0' x > d/long") {
        return;
    }
    let collected = scene.collect();
    let shown = collected.preview(
        &scene.workspace,
        &|path| path != Path::new("c"),
        &|_| false,
        &|_| false,
    );
    let long = shown.iter().find(|one| one.path == "d/long").unwrap();
    assert_eq!(long.pieces()[0].after, "x".repeat(400_000));
    let shown: Vec<_> = shown
        .iter()
        .map(|one| {
            let cut = |text: &Option<String>| {
                text.as_ref()
                    .map(|text| text.chars().take(20).collect::<String>())
            };
            (
                one.path.as_str(),
                one.aspect,
                cut(&one.before),
                cut(&one.after),
                one.clipped,
            )
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown,
        [
            ("a", Content, some("a\n"), some("new\n"), false),
            ("a", Mode, some("mode 0644\n"), some("mode 0777\n"), false),
            ("a (mode)", Content, None, some("n\n"), false),
            ("b", Mode, some("mode 0644\n"), some("mode 0755\n"), false),
            ("d/long", Content, None, None, false),
            (
                "held/x",
                BecomesLink,
                some("x\n"),
                some("link to a\n"),
                false
            ),
            ("l", Link, None, some("link to /etc/passwd\n"), false),
            ("was", WasLink, some("link to a\n"), some("f\n"), false),
            ("empty/in", Folder, None, None, false),
            ("gone", Folder, None, None, false),
        ]
    );
}

#[test]
fn a_view_on_another_file_system_is_copied() {
    use std::os::unix::fs::MetadataExt as _;
    let mut scene = Scene::new();
    scene.prepare("echo a > a; chmod 640 a; echo b > b");
    scene.begin();
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let own = device(&scene.work(""));
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let others = [Path::new("/dev/shm"), &target];
    let mut others = others.into_iter().filter(|path| device(path) != own);
    let Some(upper) = others.find_map(|path| tempfile::tempdir_in(path).ok()) else {
        eprintln!("SKIPPED: there is one file system only");
        return;
    };
    let command =
        "echo new > a; chmod 4640 a; echo c > c; truncate -s 5M c; echo b > b; chmod 600 b";
    assert!(shell(upper.path(), command));
    let collected =
        CollectedChanges::collect(&scene.workspace, upper.path(), scene.since.unwrap()).unwrap();
    assert_eq!(actions(&collected), ["modify a", "chmod b", "create c"]);
    let before = scene.tree();
    scene.apply(&collected).unwrap();
    scene.apply(&collected).unwrap();
    let mut expect = tree(upper.path());
    expect
        .get_mut(Path::new("a"))
        .unwrap()
        .replace_range(..3, "640");
    assert_eq!(scene.tree(), expect);
    scene.undo_and_redo(&before);
}
