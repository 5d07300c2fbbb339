//! A full disk: the write fails with a clear error, and the old text is still there.

use std::fs;
use std::process::Command;

use haft::ErrorKind::Failed;
use serde_json::json;

use crate::scene::Scene;

/// Names the folder for the inner test, which runs in a mount namespace of its own.
const INNER: &str = "HAFT_TEST_FULL_DISK";

#[tokio::test]
async fn a_full_disk_loses_nothing() {
    if std::env::var_os(INNER).is_some() {
        return on_a_small_disk().await;
    }
    let program = std::env::current_exe().unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "no tool's process: this test, once more"
    )]
    let mut inner = Command::new("unshare");
    inner.args(["--user", "--map-root-user", "--mount", "--"]);
    inner
        .arg(program)
        .arg("--exact")
        .arg("full_disk::a_full_disk_loses_nothing");
    let output = match inner.env(INNER, "1").output() {
        Ok(output) => output,
        Err(error) => return skipped(&error.to_string()),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare:") {
        return skipped(&said);
    }
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{words}{said}");
    assert!(
        words.contains("1 passed"),
        "the inner test did not run: {words}"
    );
}

#[expect(clippy::print_stderr, reason = "what was skipped is said aloud")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: no small disk can be mounted here: {why}");
}

async fn on_a_small_disk() {
    let scene = Scene::new();
    let disk = scene.at("disk");
    fs::create_dir(&disk).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("small", &disk, "tmpfs", flags, Some(c"size=64k")).unwrap();
    scene.put("disk/kept.txt", "old text\n");
    let big = "x".repeat(100_000);
    for (path, mode) in [
        ("disk/kept.txt", "overwrite"),
        ("disk/kept.txt", "append"),
        ("disk/new/f", "create"),
    ] {
        let args = json!({"path": path, "content": big, "mode": mode});
        scene
            .fails("write_file", args, Failed, "no space left")
            .await;
    }
    let edits = json!([{"find": "old", "replace": big}]);
    let args = json!({"path": "disk/kept.txt", "edits": edits});
    scene
        .fails("edit_file", args, Failed, "nothing was changed")
        .await;
    // Two files of a patch fit, the third does not: none is changed.
    scene.put("a.txt", "old\n");
    let add = |path: &str, bytes: usize| format!("*** Add File: {path}\n+{}\n", "x".repeat(bytes));
    let files = [
        add("disk/one", 20_000),
        add("disk/sub/two", 20_000),
        add("disk/three", 40_000),
    ];
    let patch = format!(
        "*** Begin Patch\n*** Update File: a.txt\n-old\n+new\n{}*** End Patch",
        files.concat()
    );
    let args = json!({"patch": patch});
    scene
        .fails("apply_patch", args, Failed, "nothing was changed")
        .await;
    assert_eq!(scene.text("a.txt"), "old\n");
    assert!(!scene.at("disk/sub").exists());
    assert_eq!(scene.text("disk/kept.txt"), "old text\n");
    a_file_that_cannot_be_replaced(&scene).await;
    let mut left = fs::read_dir(&disk).unwrap().map(|e| e.unwrap().file_name());
    assert!(left.all(|name| name == "kept.txt" || name == "new"));
    assert!(!scene.at("disk/new/f").exists());
}

/// A file that is a mount point is read and staged like any other, and its replacement fails only at the very end.
async fn a_file_that_cannot_be_replaced(scene: &Scene) {
    for name in ["dir/mounted", "dir/b", "below"] {
        scene.put(name, "old\n");
    }
    rustix::mount::mount_bind(scene.at("below"), scene.at("dir/mounted")).unwrap();
    let change = |path: &str| format!("*** Update File: {path}\n-old\n+new\n");
    let patch = format!(
        "*** Begin Patch\n{}*** Delete File: dir/b\n*** Add File: dir/c/d\n+x\n{}*** End Patch",
        change("a.txt"),
        change("dir/mounted")
    );
    let args = json!({"patch": patch});
    scene.fails("apply_patch", args, Failed, "busy").await;
    for name in ["a.txt", "dir/mounted", "dir/b", "below"] {
        assert_eq!(scene.text(name), "old\n", "{name}");
    }
    let left = fs::read_dir(scene.at("dir")).unwrap();
    assert_eq!(left.count(), 2);
}
