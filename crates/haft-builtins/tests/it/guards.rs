//! What no tool may reach: haft's own files, filtered files, and any place other than the one that was judged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::ErrorKind::Denied;
use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::call::ToolCall;
use haft::future::BoxFuture;
use haft::policy::{Policy, PolicyBuilder, Profile, RuleSet, RuleText};
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{ErrorKind, Executor, Session};
use haft_builtins::Builtins;
use serde_json::json;

use crate::scene::Scene;

fn guarded() -> Scene {
    let mut scene = Scene::with(|mut builtins| {
        let root = builtins.workspace.root().to_path_buf();
        fs::create_dir_all(root.join("state/runs")).unwrap();
        let hidden = [PathBuf::from("state"), root.join("haft.secret")];
        builtins.workspace = builtins.workspace.with_hidden(hidden);
        builtins
    });
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let hidden = [PathBuf::from("state"), scene.at("haft.secret")];
    scene.judged_by(rules(&["Read(secret.txt)"]).workspace(&workspace.with_hidden(hidden)));
    scene.put("state/token", "needle");
    scene.put("haft.secret", "needle");
    scene.put("secret.txt", "needle");
    scene.put("plain.txt", "needle");
    scene
}

/// Returns a policy builder with these deny rules.
fn rules(deny: &[&str]) -> PolicyBuilder {
    Policy::builder(Profile::Trusted).rules(RuleSet {
        deny: deny.iter().map(|rule| RuleText::new(*rule)).collect(),
        ..RuleSet::default()
    })
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

/// An approver who answers slowly enough for a link to be moved meanwhile.
#[derive(Debug)]
struct SlowPerson(PathBuf);

impl Approver for SlowPerson {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        let link = self.0.join("link");
        fs::remove_file(&link).unwrap();
        symlink("b", &link).unwrap();
        Box::pin(async { Decision::approve("person", "test").into() })
    }
}

/// Seed fault 27: checked, then used by name.
#[tokio::test]
async fn a_link_moved_between_the_clearing_and_the_writing_is_a_conflict() {
    let patch = "*** Begin Patch\n*** Add File: x\n+x\n*** Add File: link/f\n+x\n*** End Patch";
    for (tool, args) in [
        ("write_file", json!({"path": "link/f", "content": "x"})),
        ("apply_patch", json!({"patch": patch})),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a", "b"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        symlink("a", dir.path().join("link")).unwrap();
        let slow = SlowPerson(dir.path().to_path_buf());
        let policy = Policy::workspace().with_workspace(&opened(dir.path()));
        let executor = Executor::new(policy.unwrap()).with_approver(slow);
        let session = session(dir.path());
        let call = ToolCall::new(tool, args.to_string());
        let outcome = executor.execute(&session, call).await;
        assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict, "{tool}");
        for path in ["a/f", "b/f", "x"] {
            assert!(!dir.path().join(path).exists(), "{tool} {path}");
        }
    }
}

fn opened(root: &Path) -> Workspace {
    Workspace::open(root).unwrap()
}

/// Returns a session with the standard tools on a folder.
fn session(root: &Path) -> Session {
    let builtins = Builtins::new(opened(root));
    let registry = ToolRegistry::new();
    let tools = builtins.tools().unwrap().into_iter().map(|t| t.tool);
    registry.replace_all("builtin", tools).unwrap();
    Session::builder(Arc::new(registry)).build().unwrap()
}

/// section → the words of the denial; the other section alone is allowed
const JUDGED: &[(&str, &str)] = &[
    ("*** Add File: lib/n\n+x", "Edit(/lib/**)"),
    ("*** Update File: lib/l\n@@\n-l\n+x", "Edit(/lib/**)"),
    (
        "*** Update File: lib/l\n*** Move to: src/l",
        "Edit(/lib/**)",
    ),
    (
        "*** Update File: src/s\n*** Move to: lib/s",
        "Edit(/lib/**)",
    ),
    ("*** Delete File: lib/l", "Edit(/lib/**)"),
    ("*** Update File: secret\n@@\n-s\n+x", "Read(secret)"),
    ("*** Delete File: secret", "Read(secret)"),
    (
        "*** Update File: secret\n*** Move to: src/open",
        "Read(secret)",
    ),
    ("*** Add File: .claude/settings.json\n+{}", "protected"),
    ("*** Update File: src/s\n*** Move to: .envrc", "protected"),
    ("*** Add File: ../n\n+x", "leaves the workspace"),
];

#[tokio::test]
async fn every_file_of_a_patch_is_judged_and_one_denial_stops_it_all() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [("lib/l", "l\n"), ("src/s", "s\n"), ("secret", "s\n")] {
        fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(path), text).unwrap();
    }
    let rules = RuleSet {
        deny: ["Edit(/lib/**)", "Read(secret)"].map(RuleText::new).into(),
        allow: vec![RuleText::new("Edit(/**)")],
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Workspace).rules(rules);
    let policy = policy.workspace(&opened(dir.path())).build();
    let executor = Executor::new(policy.unwrap());
    let session = session(dir.path());
    let apply = async |sections: &str| {
        let patch = format!("*** Begin Patch\n*** Add File: src/good\n+x\n{sections}*** End Patch");
        let args = json!({"patch": patch}).to_string();
        executor
            .execute(&session, ToolCall::new("apply_patch", args))
            .await
    };
    for (section, says) in JUDGED {
        let outcome = apply(&format!("{section}\n")).await;
        let error = outcome.error.unwrap();
        let words = format!("{} {}", error.message, error.advice.unwrap_or_default());
        assert_eq!(error.kind, Denied, "{section}: {words}");
        assert!(words.contains(says), "{section}: {words}");
        assert!(!dir.path().join("src/good").exists(), "{section}");
    }
    let outcome = apply("").await;
    assert!(outcome.is_ok(), "{:?}", outcome.error);
}

/// Seed fault 20: a large result is stored whole and read back in slices.
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
    // Another session's ref is unknown.
    let other = scene.other_session();
    let args = json!({"ref": artifact.reference});
    let theirs = scene
        .call_in(&other, haft::Origin::Host, "read_artifact", args)
        .await;
    assert_eq!(theirs.error.unwrap().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn p8_a_search_shows_no_file_that_a_rule_keeps_from_it() {
    let searches = [
        ("grep_files", json!({"pattern": "needle"})),
        (
            "grep_files",
            json!({"pattern": "needle", "glob": "secret.txt"}),
        ),
        (
            "grep_files",
            json!({"pattern": "needle", "output": "files"}),
        ),
        (
            "grep_files",
            json!({"pattern": "needle", "output": "count"}),
        ),
        ("glob_files", json!({"pattern": "*.txt"})),
        ("list_files", json!({})),
    ];
    // The rules, and the tools that they apply to. No filter is set: the policy gives it to every program that has one.
    let all = &["grep_files", "glob_files", "list_files"][..];
    for (list, rule, withheld) in [
        ("deny", "Read(secret.txt)", all),
        ("ask", "Read(secret.txt)", all),
        ("deny", "grep_files(secret.txt)", &["grep_files"]),
        ("ask", "glob_files(*.txt)", &["glob_files"]),
        ("allow", "Read(secret.txt)", &[]),
    ] {
        let scene = Scene::new();
        scene.put("sub/secret.txt", "needle");
        let mut rules = RuleSet::default();
        let rule_text = RuleText::new(rule);
        match list {
            "deny" => rules.deny.push(rule_text),
            "ask" => rules.ask.push(rule_text),
            _ => rules.allow.push(rule_text),
        }
        let workspace = opened(&scene.at(""));
        let builder = Policy::builder(Profile::Workspace).rules(rules);
        let builder = builder.workspace(&workspace);
        let registry = ToolRegistry::new();
        let tools = Builtins::new(workspace);
        let tools = tools.tools().unwrap().into_iter().map(|one| one.tool);
        registry.add_all(tools).unwrap();
        let policy = builder.for_tools(registry.snapshot().specs()).build();
        let executor = Executor::new(policy.unwrap());
        let session = Session::new(registry);
        for (tool, arguments) in &searches {
            let call = ToolCall::new(*tool, arguments.to_string());
            let outcome = executor.execute(&session, call).await;
            assert!(outcome.is_ok(), "{rule} {tool}: {:?}", outcome.error);
            let shown = serde_json::to_string(&outcome).unwrap();
            let hidden = !shown.contains("secret.txt") && !shown.contains("needle");
            assert_eq!(
                hidden,
                withheld.contains(tool),
                "{list} {rule} {tool} {arguments}: {shown}"
            );
        }
    }
}
