//! What no tool may reach: haft's own files, filtered files, another place than the one that was cleared.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use haft::ErrorKind::Denied;
use haft::approval::{Answer, ApprovalRequest, Approver, Scope};
use haft::audit::BoxFuture;
use haft::call::ToolCall;
use haft::policy::Policy;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{ErrorKind, Executor, Session};
use haft_builtins::Builtins;
use serde_json::json;

use crate::scene::Scene;

fn guarded() -> Scene {
    let scene = Scene::with(|mut builtins| {
        let root = builtins.workspace.root().to_path_buf();
        fs::create_dir_all(root.join("state/runs")).unwrap();
        let filter = |path: &str| path != "secret.txt";
        builtins.workspace = builtins
            .workspace
            .with_denied([PathBuf::from("state"), root.join("haft.secret")])
            .with_filter(Arc::new(filter));
        builtins
    });
    scene.put("state/token", "needle");
    scene.put("haft.secret", "needle");
    scene.put("secret.txt", "needle");
    scene.put("plain.txt", "needle");
    scene
}

#[tokio::test]
async fn haft_s_own_files_are_out_of_reach_for_every_tool() {
    let scene = guarded();
    symlink("state", scene.at("link")).unwrap();
    let patch = |body: &str| json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")});
    let paths = [
        "state/token",
        "link/token",
        "./state/../state/token",
        "haft.secret",
        "state/new",
    ];
    for path in paths {
        let rows = [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": ""})),
            ("move_file", json!({"from": path, "to": "x"})),
            ("move_file", json!({"from": "plain.txt", "to": path})),
            ("grep_files", json!({"pattern": "n", "path": path})),
            ("delete_file", json!({"path": path})),
            ("apply_patch", patch(&format!("*** Add File: {path}\n+x"))),
            ("apply_patch", patch(&format!("*** Delete File: {path}"))),
            (
                "apply_patch",
                patch(&format!("*** Update File: plain.txt\n*** Move to: {path}")),
            ),
        ];
        for (tool, args) in rows {
            scene.fails(tool, args, Denied, "haft's own").await;
        }
    }
    let whole = json!({"path": "state", "recursive": true});
    scene
        .fails("delete_file", whole, Denied, "haft's own")
        .await;
    let list = json!({"path": "state"});
    scene.fails("list_files", list, Denied, "haft's own").await;
    assert_eq!(scene.text("state/token"), "needle");
}

#[tokio::test]
async fn lists_and_searches_show_neither_own_nor_filtered_files() {
    let scene = guarded();
    for (tool, args) in [
        ("list_files", json!({"hidden": true})),
        ("glob_files", json!({"pattern": "*"})),
        ("grep_files", json!({"pattern": "needle"})),
    ] {
        let text = scene.data(tool, args).await.to_string();
        assert!(text.contains("plain.txt"), "{tool}: {text}");
        for hidden in ["token", "haft.secret", "secret.txt"] {
            assert!(!text.contains(hidden), "{tool}: {text}");
        }
    }
}

/// A person who takes long enough to answer for somebody to move a link.
#[derive(Debug)]
struct SlowPerson(PathBuf);

impl Approver for SlowPerson {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        let link = self.0.join("link");
        fs::remove_file(&link).unwrap();
        symlink("b", &link).unwrap();
        let by = "person".to_owned();
        Box::pin(async move {
            Answer::Approved {
                scope: Scope::Once,
                edited: None,
                by,
            }
        })
    }
}

/// Seed fault 27: checked, then used by name.
#[tokio::test]
async fn a_link_moved_between_the_clearing_and_the_writing_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["a", "b"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    symlink("a", dir.path().join("link")).unwrap();
    let builtins = Builtins::new(Workspace::open(dir.path()).unwrap());
    let registry = ToolRegistry::new();
    registry
        .replace_all(
            "builtin",
            builtins.tools().unwrap().into_iter().map(|t| t.tool),
        )
        .unwrap();
    let executor =
        Executor::new(Policy::workspace()).with_approver(SlowPerson(dir.path().to_path_buf()));
    let session = Session::builder(Arc::new(registry)).build().unwrap();
    let args = json!({"path": "link/f", "content": "x"}).to_string();
    let outcome = executor
        .execute(&session, ToolCall::new("write_file", args))
        .await;
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict);
    assert!(!dir.path().join("b/f").exists() && !dir.path().join("a/f").exists());
}

/// Seed fault 20: a large result is kept whole and read back in slices.
#[tokio::test]
async fn a_result_over_the_limit_is_read_back_whole_by_its_ref() {
    let scene = Scene::new();
    let text = (0..20_000).map(|n| format!("line {n} é\n"));
    let text = text.collect::<Vec<_>>().concat();
    scene.put("big.txt", &text);
    let outcome = scene
        .call("read_file", json!({"path": "big.txt", "max_lines": 20_000}))
        .await;
    let artifact = &outcome.artifacts[0];
    let (mut back, mut offset) = (String::new(), 0);
    loop {
        let args = json!({"ref": artifact.reference, "offset": offset, "limit": 10_007});
        let slice = scene.call("read_artifact", args).await;
        assert!(slice.is_ok(), "{:?}", slice.error);
        back.push_str(&slice.text());
        let data = crate::scene::data(&slice);
        offset = data["next_offset"].as_u64().unwrap();
        if data["eof"] == true {
            break;
        }
    }
    assert!(
        back.contains("line 19999 é"),
        "{} bytes came back",
        back.len()
    );
    // Another session's ref is no ref.
    let other = scene.other_session();
    let args = json!({"ref": artifact.reference});
    let theirs = scene
        .call_in(&other, haft::Origin::Host, "read_artifact", args)
        .await;
    assert_eq!(theirs.error.unwrap().kind, ErrorKind::NotFound);
}
