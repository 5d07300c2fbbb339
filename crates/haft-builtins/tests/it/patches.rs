//! `apply_patch` on real files: what it does, and that a failing patch changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use haft::ErrorKind::{self, Conflict, Denied, Failed, InvalidArguments, NotFound};
use proptest::prelude::*;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::scene::{Scene, data};

/// Returns everything below a folder: links as their targets, files as mode and bytes, folders as nothing.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if meta.is_dir() {
                todo.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            all.insert(path, (meta.permissions().mode(), bytes));
        }
    }
    all
}

fn v4a(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch\n")})
}

/// Returns a scene with files `a` to `e`, a folder with a file, a link to `a`, and a link out of the workspace.
fn scene() -> Scene {
    let scene = Scene::new();
    for name in ["a", "b", "c", "d", "e"] {
        scene.put(name, format!("{name} 1\n{name} 2\n{name} 3\n"));
    }
    scene.put("dir/f.json", "{\n  \"x\": 1\n}\n");
    scene.put(".git/config", "[core]\n");
    symlink("a", scene.at("link")).unwrap();
    symlink("/etc", scene.at("out")).unwrap();
    scene
}

const MIXED: &str = "*** Add File: new/deep/n.toml\n+x = 1\n*** Update File: b\n@@\n b 1\n-b 2\n+b two\n\
        *** Update File: c\n*** Move to: moved/c\n@@\n-c 3\n+c three\n*** Update File: d\n*** Move to: dir/d\n\
        *** Delete File: e\n*** Update File: dir/f.json\n@@\n-  \"x\": 1\n+  \"x\": 1,";

#[tokio::test]
async fn one_patch_adds_changes_moves_and_deletes() {
    let scene = scene();
    fs::set_permissions(scene.at("c"), fs::Permissions::from_mode(0o751)).unwrap();
    scene.data("apply_patch", v4a(MIXED)).await;
    assert_eq!(scene.text("new/deep/n.toml"), "x = 1\n");
    assert_eq!(scene.text("b"), "b 1\nb two\nb 3\n");
    assert_eq!(scene.text("moved/c"), "c 1\nc 2\nc three\n");
    assert_eq!(scene.text("dir/d"), "d 1\nd 2\nd 3\n");
    let mode = fs::metadata(scene.at("moved/c"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o751);
    for gone in ["c", "d", "e"] {
        assert!(!scene.at(gone).exists(), "{gone}");
    }
    let left = tree(&scene.at(""));
    assert!(
        left.keys()
            .all(|path| !path.to_string_lossy().contains(".haft-")),
        "{left:?}"
    );
}

#[tokio::test]
async fn the_result_tells_what_became_of_each_file() {
    let scene = scene();
    let outcome = scene.call("apply_patch", v4a(MIXED)).await;
    assert!(outcome.is_ok(), "{:?}", outcome.error);
    let files = data(&outcome)["files"].clone();
    let said: Vec<(&str, &str)> = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["action"].as_str().unwrap(),
            )
        })
        .collect();
    let expect = [
        ("new/deep/n.toml", "added"),
        ("b", "updated"),
        ("moved/c", "moved"),
        ("dir/d", "moved"),
        ("e", "deleted"),
        ("dir/f.json", "updated"),
    ];
    assert_eq!(said, expect);
    assert_eq!(files[0]["check"], json!({"ok": true}));
    assert_eq!(
        files[1]["diff"],
        "--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n b 1\n-b 2\n+b two\n b 3\n"
    );
    assert_eq!(files[2]["from"], "c");
    assert_eq!(
        (&files[1]["added"], &files[1]["removed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (&files[4]["sha256"], &files[4]["diff"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(files[5]["check"]["line"], 3);
    let text = outcome.text();
    for line in [
        "added new/deep/n.toml (+1 -0)",
        "moved c to moved/c (+1 -1)",
        "deleted e",
        "syntax is wrong at line 3",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn a_git_diff_does_the_same() {
    let scene = scene();
    let patch = "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
        diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n b 1\n-b 2\n+b two\n b 3\n\
        diff --git a/c b/dir/c\nsimilarity index 100%\nrename from c\nrename to dir/c\n\
        diff --git a/e b/e\ndeleted file mode 100644\n--- a/e\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-e 1\n-e 2\n-e 3\n";
    let got = scene.data("apply_patch", json!({"patch": patch})).await;
    assert_eq!(
        got["files"][0]["notes"],
        json!(["its mode is not set to 100755"])
    );
    assert_eq!(scene.text("n"), "x");
    assert_eq!(scene.text("b"), "b 1\nb two\nb 3\n");
    assert_eq!(scene.text("dir/c"), "c 1\nc 2\nc 3\n");
    assert!(!scene.at("c").exists() && !scene.at("e").exists());
}

/// patch body, error kind, words of the message or the advice
#[tokio::test]
async fn a_patch_that_fails_changes_no_byte() {
    let long = "x".repeat(300);
    let rows: Vec<(String, ErrorKind, &str)> = [
        // The first file is already written and is restored when the third name fails.
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Delete File: b\n*** Add File: new/LONG\n+x", InvalidArguments, "255 bytes"),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Add File: n\n+x\n*** Add File: n/below\n+x", Failed, "no file was changed"),
        ("*** Update File: c\n*** Move to: new/c\n*** Update File: a\n@@\n-a 1\n+A\n*** Add File: new/LONG\n+x", InvalidArguments, "255 bytes"),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Update File: b\n@@\n-b 9\n+x", Failed, "not in the file"),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Update File: z\n@@\n-z\n+x", NotFound, "no file or folder \"z\""),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Delete File: z", NotFound, "no file or folder \"z\""),
        ("*** Add File: a\n+x", Conflict, "exists already"),
        ("*** Add File: link\n+x", Conflict, "exists already"),
        ("*** Add File: dir\n+x", Conflict, "exists already"),
        ("*** Update File: a\n*** Move to: b", Conflict, "exists already"),
        ("*** Update File: a\n*** Move to: dir", Conflict, "exists already"),
        ("*** Update File: a\n*** Move to: ./a\n@@\n-a 1\n+A", InvalidArguments, "moved onto itself"),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Update File: ./a\n@@\n-a 2\n+A", InvalidArguments, "in the section at line 2, too"),
        ("*** Update File: a\n@@\n-a 1\n+A\n*** Update File: link\n@@\n-a 2\n+A", InvalidArguments, "in the section at line 2, too"),
        ("*** Delete File: a\n*** Add File: a\n+x", InvalidArguments, "in the section at line 2, too"),
        ("*** Update File: a\n*** Move to: n\n*** Update File: b\n*** Move to: a", InvalidArguments, "in the section at line 2, too"),
        ("*** Delete File: link", Failed, "is a link"),
        ("*** Delete File: dir", Failed, "a folder, not a regular file"),
        ("*** Update File: dir\n@@\n-a\n+b", Failed, "a folder, not a regular file"),
        ("*** Add File: ../n\n+x", Denied, "leaves the workspace"),
        ("*** Add File: /etc/n\n+x", Denied, "leaves the workspace"),
        ("*** Update File: out/passwd\n@@\n-a\n+b", Denied, "leaves the workspace"),
        ("*** Update File: a\n*** Move to: out/n", Denied, "leaves the workspace"),
        ("*** Update File: .git/config\n@@\n-[core]\n+x", Denied, ".git"),
        ("*** Add File: sub/.git/hooks/x\n+x", Denied, ".git"),
        ("*** Add File: n\0\n+x", InvalidArguments, "NUL"),
    ]
    .map(|(body, kind, says)| (body.replace("LONG", &long), kind, says))
    .into();
    let scene = scene();
    let before = tree(&scene.at(""));
    for (body, kind, says) in rows {
        scene.fails("apply_patch", v4a(&body), kind, says).await;
        assert_eq!(tree(&scene.at("")), before, "{body}");
    }
    let deleted = "--- a/e\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-e 1\n-e 2\n";
    let args = json!({"patch": deleted});
    scene
        .fails("apply_patch", args, Failed, "holds more than the lines")
        .await;
    assert_eq!(tree(&scene.at("")), before);
}

#[tokio::test]
async fn a_model_must_have_read_what_it_changes_or_deletes() {
    let scene = scene();
    for body in [
        "*** Update File: a\n@@\n-a 1\n+A",
        "*** Delete File: a",
        "*** Update File: a\n*** Move to: n",
    ] {
        let outcome = scene.model("apply_patch", v4a(body)).await;
        let error = outcome.error.unwrap();
        assert_eq!(error.kind, Conflict, "{body}");
        assert!(
            error.message.contains("was not read in this run"),
            "{}",
            error.message
        );
    }
    let made = scene.model("apply_patch", v4a("*** Add File: n\n+x")).await;
    assert!(made.is_ok(), "{:?}", made.error);
    scene.model("read_file", json!({"path": "a"})).await;
    // A run knows what it wrote, under the new name, too.
    for body in [
        "*** Update File: a\n*** Move to: m\n@@\n-a 1\n+A",
        "*** Update File: m\n@@\n-A\n+B",
        "*** Delete File: n",
    ] {
        let outcome = scene.model("apply_patch", v4a(body)).await;
        assert!(outcome.is_ok(), "{body}: {:?}", outcome.error);
    }
    assert_eq!(scene.text("m"), "B\na 2\na 3\n");
    fs::write(scene.at("m"), "other\n").unwrap();
    let outcome = scene.model("apply_patch", v4a("*** Delete File: m")).await;
    assert!(
        outcome
            .error
            .unwrap()
            .message
            .contains("changed since it was read")
    );
}

#[tokio::test]
async fn a_link_s_target_is_changed_and_the_link_stays() {
    let scene = scene();
    let body = "*** Update File: link\n@@\n-a 1\n+A";
    scene.data("apply_patch", v4a(body)).await;
    assert_eq!(scene.text("a"), "A\na 2\na 3\n");
    assert!(fs::symlink_metadata(scene.at("link")).unwrap().is_symlink());
}

/// A file's text before and after; `None` if the file does not exist.
type Change = (Option<String>, Option<String>);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let text = || {
        let line = prop_oneof![Just("a\n"), Just("b\n"), Just("\n"), Just("c\r\n")];
        let lines = proptest::collection::vec(line, 1..12).prop_map(|lines| lines.concat());
        (lines, prop_oneof![Just(""), Just("z")]).prop_map(|(lines, last)| lines + last)
    };
    let change = (proptest::option::of(text()), proptest::option::of(text()));
    proptest::collection::vec(change, 1..5)
}

fn git_diff(changes: &[Change]) -> String {
    let one = |(number, (old, new)): (usize, &Change)| {
        let name = |side: &str, text: &Option<String>| match text {
            Some(_) => format!("{side}/f{number}"),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (old.as_deref().unwrap_or(""), new.as_deref().unwrap_or(""));
        let diff = TextDiff::from_lines(before, after);
        diff.unified_diff()
            .header(&name("a", old), &name("b", new))
            .to_string()
    };
    changes.iter().enumerate().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_diff_of_files_gives_the_new_files_and_one_bad_section_nothing(changes in changes()) {
        let scene = Scene::new();
        for (number, (old, _)) in changes.iter().enumerate() {
            if let Some(old) = old {
                scene.put(&format!("f{number}"), old);
            }
        }
        let patch = git_diff(&changes);
        prop_assume!(!patch.is_empty());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let before = tree(&scene.at(""));
        let bad = format!("{patch}--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n");
        let outcome = runtime.block_on(scene.call("apply_patch", json!({"patch": bad})));
        prop_assert_eq!(outcome.error.unwrap().kind, NotFound);
        prop_assert_eq!(tree(&scene.at("")), before);
        let outcome = runtime.block_on(scene.call("apply_patch", json!({"patch": patch})));
        prop_assert!(outcome.is_ok(), "{:?}\n{}", outcome.error, patch);
        for (number, (old, new)) in changes.iter().enumerate() {
            let now = fs::read_to_string(scene.at(&format!("f{number}"))).ok();
            prop_assert_eq!(&now, new, "{:?}\n{}", old, patch);
        }
    }
}
