//! What rules deny and what is protected holds for the file tools by every name by which links reach a file.

use std::fs;
use std::future::{Future as _, poll_fn};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use haft::ErrorKind::{self, Conflict, Denied};
use haft::Executor;
use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::call::ToolCall;
use haft::change::ChangeLog;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::policy::{Policy, PolicyBuilder, Profile};
use haft::result::ToolResult;
use haft::session::Session;
use haft::spec::ToolClass;
use haft::testing::ConsentingPerson;
use haft::tool::{Depth, Intent, TypedTool};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft_builtins::Builtins;
use haft_builtins::files::undo::UndoChanges;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::scene::Scene;

/// A workspace with links, and calls that try to change what one of them guards.
struct Row {
    name: &'static str,
    /// `path` or `link -> text`; `ROOT` is the workspace's path, `OUT` a folder beside it.
    tree: &'static [&'static str],
    deny: &'static [&'static str],
    /// Tool and arguments.
    calls: &'static [(&'static str, &'static str)],
}

const MIGRATIONS: &[&str] = &["Edit(/migrations/**)"];

const ROWS: &[Row] = &[
    Row {
        name: "a link to a folder",
        tree: &["db/1.sql", "c/x", "migrations -> db"],
        deny: MIGRATIONS,
        calls: &[
            ("write_file", r#"{"path":"db/1.sql","content":"evil"}"#),
            ("write_file", r#"{"path":"db/2.sql","content":"evil"}"#),
            (
                "write_file",
                r#"{"path":"db/1.sql","content":"evil","mode":"append"}"#,
            ),
            (
                "edit_file",
                r#"{"path":"db/1.sql","edits":[{"find":"old","replace":"evil"}]}"#,
            ),
            ("apply_patch", "*** Update File: db/1.sql\n@@\n-old\n+evil"),
            ("apply_patch", "*** Add File: db/2.sql\n+evil"),
            ("apply_patch", "*** Delete File: db/1.sql"),
            (
                "apply_patch",
                "*** Update File: c/x\n*** Move to: db/x.sql\n@@\n-old\n+evil",
            ),
            (
                "move_file",
                r#"{"from":"c/x","to":"db/1.sql","overwrite":true}"#,
            ),
            ("move_file", r#"{"from":"db/1.sql","to":"c/y"}"#),
            ("move_file", r#"{"from":"db","to":"gone"}"#),
            ("move_file", r#"{"from":"c","to":"db/c"}"#),
            ("delete_file", r#"{"path":"db/1.sql"}"#),
            ("delete_file", r#"{"path":"db","recursive":true}"#),
        ],
    },
    Row {
        name: "a rule for one tool",
        tree: &["db/1.sql", "migrations -> db"],
        deny: &["write_file(/migrations/**)"],
        calls: &[("write_file", r#"{"path":"db/1.sql","content":"evil"}"#)],
    },
    Row {
        name: "a link in the middle",
        tree: &[
            "db/1.sql",
            "db2/1.sql",
            "l2 -> db2",
            "mid -> db",
            "migrations -> mid",
        ],
        deny: MIGRATIONS,
        calls: &[
            ("move_file", r#"{"from":"l2","to":"mid","overwrite":true}"#),
            ("move_file", r#"{"from":"mid","to":"gone"}"#),
            ("delete_file", r#"{"path":"mid"}"#),
            ("write_file", r#"{"path":"db/1.sql","content":"evil"}"#),
        ],
    },
    Row {
        name: "a link in the middle that is not there yet",
        tree: &["db2/1.sql", "l2 -> db2", "migrations -> mid"],
        deny: MIGRATIONS,
        calls: &[
            ("move_file", r#"{"from":"l2","to":"mid"}"#),
            ("move_file", r#"{"from":"db2","to":"mid"}"#),
            ("write_file", r#"{"path":"mid/1.sql","content":"evil"}"#),
        ],
    },
    Row {
        name: "a link in a folder that moves",
        tree: &["db/1.sql", "in/mid -> ../db", "migrations -> in/mid"],
        deny: MIGRATIONS,
        calls: &[
            ("move_file", r#"{"from":"in","to":"gone"}"#),
            ("delete_file", r#"{"path":"in","recursive":true}"#),
        ],
    },
    Row {
        name: "a link that a move puts on a way that leads nowhere yet",
        tree: &[
            "z/cur -> ../v2",
            "c/l -> ../v2",
            "x2/keep",
            "v2/db/1.sql",
            "migrations -> x/cur/db",
            "b/migrations -> ../x2/cur/db",
        ],
        deny: &["Edit(**/migrations/**)"],
        calls: &[
            ("move_file", r#"{"from":"z","to":"x"}"#),
            ("move_file", r#"{"from":"z/cur","to":"x/cur"}"#),
            ("move_file", r#"{"from":"c/l","to":"x2/cur"}"#),
        ],
    },
    Row {
        name: "a link that a move puts where a way passes through a folder",
        tree: &[
            "q/z/e -> ../q/r/s",
            "q/r/s/x",
            "q/db/1.sql",
            "db/1.sql",
            "migrations -> d/e/../../db",
        ],
        deny: MIGRATIONS,
        calls: &[("move_file", r#"{"from":"q/z","to":"d"}"#)],
    },
    Row {
        name: "a link that a move puts on the way of a protected name",
        tree: &[
            "z/cur -> ../v2",
            "v2/db/m",
            ".mcp.json -> x/cur/db/m",
            "y -> v2",
            ".vscode -> w/db",
        ],
        deny: &[],
        calls: &[
            ("move_file", r#"{"from":"z","to":"x"}"#),
            ("move_file", r#"{"from":"y","to":"w"}"#),
        ],
    },
    Row {
        name: "protected names",
        tree: &[
            "ign/x",
            ".mcp.json -> ign/m",
            ".vscode -> ign",
            "a/.envrc -> ../b/env.sh",
        ],
        deny: &[],
        calls: &[
            ("write_file", r#"{"path":"ign/m","content":"evil"}"#),
            (
                "write_file",
                r#"{"path":"ign/settings.json","content":"evil"}"#,
            ),
            ("apply_patch", "*** Add File: ign/tasks.json\n+evil"),
            ("write_file", r#"{"path":"b/env.sh","content":"evil"}"#),
        ],
    },
    Row {
        name: "a link that leads out and back",
        tree: &[
            "db/1.sql",
            "OUT/back -> ROOT/mid",
            "mid -> db",
            "migrations -> OUT/back",
        ],
        deny: MIGRATIONS,
        calls: &[
            ("write_file", r#"{"path":"db/1.sql","content":"evil"}"#),
            ("delete_file", r#"{"path":"mid"}"#),
        ],
    },
    Row {
        name: "a folder elsewhere with a link into the workspace",
        tree: &[
            "db/1.sql",
            "OUT/sub/1.sql -> ROOT/db/1.sql",
            "migrations -> OUT",
        ],
        deny: MIGRATIONS,
        calls: &[("write_file", r#"{"path":"db/1.sql","content":"evil"}"#)],
    },
];

fn make(scene: &Scene, tree: &[&str]) {
    let root = scene.at("").canonicalize().unwrap();
    let out = root.with_file_name("out");
    let real = |path: &str| {
        let path = path.replace("ROOT", root.to_str().unwrap());
        path.replace("OUT", out.to_str().unwrap())
    };
    for path in tree {
        let (path, text) = path.split_once(" -> ").unwrap_or((path, ""));
        let path = root.join(real(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if text.is_empty() {
            fs::write(path, "old\n").unwrap();
        } else {
            symlink(real(text), path).unwrap();
        }
    }
}

fn policy(scene: &Scene, deny: &[&str]) -> PolicyBuilder {
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let policy = Policy::builder(Profile::Trusted).workspace(&workspace);
    let policy = policy.classes([("write_file", ToolClass::Edit)]);
    deny.iter().fold(policy, |policy, rule| policy.deny(*rule))
}

fn arguments(tool: &str, args: &str) -> Value {
    if tool == "apply_patch" {
        return json!({"patch": format!("*** Begin Patch\n{args}\n*** End Patch")});
    }
    serde_json::from_str(args).unwrap()
}

/// Returns every path below a folder with its content or where it leads.
fn tree(at: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(at).unwrap().flatten() {
        let path = entry.path();
        let what = match (fs::read_link(&path), fs::read_to_string(&path)) {
            (Ok(text), _) => text.display().to_string(),
            (_, Ok(text)) => text,
            _ => String::new(),
        };
        found.push(format!("{} {what}", path.display()));
        if entry.file_type().unwrap().is_dir() {
            tree(&path, found);
        }
    }
    found.sort();
}

fn look(scene: &Scene) -> Vec<String> {
    let mut found = Vec::new();
    tree(&scene.at(""), &mut found);
    found
}

#[tokio::test]
async fn links_hold_for_the_file_tools() {
    for row in ROWS {
        let mut scene = Scene::new();
        make(&scene, row.tree);
        scene.judged_by(policy(&scene, row.deny));
        let before = look(&scene);
        for (tool, args) in row.calls {
            let outcome = scene.call(tool, arguments(tool, args)).await;
            let name = row.name;
            let error = outcome.error.as_ref().map(|error| error.kind);
            assert_eq!(error, Some(Denied), "{name}: {tool} {args}: {outcome:?}");
            assert_eq!(look(&scene), before, "{name}: {tool} {args}");
        }
    }
}

#[tokio::test]
async fn links_that_name_nothing_guarded_stop_no_file_tool() {
    let mut scene = Scene::new();
    let tree = [
        "packages/a/x",
        "node_modules/a -> ../packages/a",
        "all -> .",
        "migrations -> db",
    ];
    make(&scene, &tree);
    scene.judged_by(policy(
        &scene,
        &["Edit(/migrations/**)", "Edit(**/secret/**)"],
    ));
    let args = json!({"path": "packages/a/x", "content": "new\n"});
    let outcome = scene.call("write_file", args).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(scene.text("node_modules/a/x"), "new\n");
}

#[tokio::test]
async fn a_name_does_not_spread_from_a_link_on_its_way() {
    let mut scene = Scene::new();
    let tree = [
        "releases/1/db/1.sql",
        "current -> releases/1",
        "migrations -> current/db",
        "s/key",
        "loop -> .",
        "secret -> loop/s",
        "z/l -> ../s",
    ];
    make(&scene, &tree);
    scene.judged_by(policy(
        &scene,
        &["Edit(/migrations/**)", "Read(/secret/**)"],
    ));
    for (tool, args, denied) in [
        (
            "write_file",
            r#"{"path":"releases/1/n","content":"x"}"#,
            false,
        ),
        ("read_file", r#"{"path":"releases/1/n"}"#, false),
        ("move_file", r#"{"from":"z","to":"y"}"#, false),
        ("delete_file", r#"{"path":"current"}"#, true),
        (
            "write_file",
            r#"{"path":"releases/1/db/2.sql","content":"x"}"#,
            true,
        ),
        ("read_file", r#"{"path":"s/key"}"#, true),
    ] {
        let outcome = scene.call(tool, arguments(tool, args)).await;
        let error = outcome.error.as_ref().map(|error| error.kind);
        let expect = denied.then_some(Denied);
        assert_eq!(error, expect, "{tool} {args}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_file_that_a_link_names_as_secret_or_denied_is_not_read() {
    let mut scene = Scene::new();
    make(
        &scene,
        &["conf/key", "open/x", ".env -> conf/key", "secret -> open"],
    );
    scene.judged_by(policy(&scene, &["Read(/secret/**)", "Read(.env)"]));
    for path in ["conf/key", "open/x"] {
        let outcome = scene.call("read_file", json!({"path": path})).await;
        let error = outcome.error.as_ref().map(|error| error.kind);
        assert_eq!(error, Some(Denied), "{path}: {outcome:?}");
    }
    let found = scene.data("grep_files", json!({"pattern": "old"})).await;
    assert!(!found.to_string().contains("old"), "{found}");
}

/// A chain of folders elsewhere, each with a link to the next: longer than haft follows.
fn long_chain() -> Vec<String> {
    let links = (1..=12).map(|at| format!("OUT/{at}/x -> OUT/{}", at + 1));
    links.chain(["migrations -> OUT/1".to_owned()]).collect()
}

/// A person who notes the reasons of requests and refuses them.
#[derive(Debug, Clone, Default)]
struct Refusing(Arc<Mutex<Vec<String>>>);

impl Approver for Refusing {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.0.lock().push(request.reason.clone());
        Box::pin(async { Decision::deny("ada", "test").into() })
    }
}

#[tokio::test]
async fn a_change_is_asked_about_where_not_all_names_are_known() {
    let mut scene = Scene::new();
    let chain = long_chain();
    let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
    make(
        &scene,
        &[&["a", "db/1.sql", "prod -> db"], &chain[..]].concat(),
    );
    let policy = policy(&scene, &["Edit(/migrations/**)", "Edit(/prod/**)"]);
    let policy = policy.allow("write_file").allow("Edit(**)");
    let person = Refusing::default();
    scene.executor = Executor::new(policy.build().unwrap()).with_approver(person.clone());
    for (path, asks) in [("a", 1), ("db/1.sql", 0)] {
        let args = json!({"path": path, "content": "evil"});
        let outcome = scene.call("write_file", args).await;
        let error = outcome.error.as_ref().map(|error| error.kind);
        assert_eq!(error, Some(Denied), "{path}: {outcome:?}");
        let asked = std::mem::take(&mut *person.0.lock());
        assert_eq!(asked.len(), asks, "{path}: {asked:?}");
        let says = |why: &String| why.contains("leads to more places than haft follows");
        assert!(asked.iter().all(says), "{asked:?}");
    }
    let outcome = scene.call("read_file", json!({"path": "a"})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// A person who makes a link in the workspace before approving.
#[derive(Debug)]
struct Linking(PathBuf);

impl Approver for Linking {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        symlink("db", self.0.join("migrations")).unwrap();
        Box::pin(async { Decision::approve("ada", "test").into() })
    }
}

#[tokio::test]
async fn a_link_made_after_the_request_stops_the_call() {
    for (list, expect) in [("deny", Denied), ("ask", Conflict)] {
        let mut scene = Scene::new();
        make(&scene, &["db/1.sql"]);
        let policy = policy(&scene, &[]).ask("Edit(/db/**)");
        let policy = match list {
            "deny" => policy.deny("Edit(/migrations/**)"),
            _ => policy.ask("Edit(/migrations/**)"),
        };
        scene.executor =
            Executor::new(policy.build().unwrap()).with_approver(Linking(scene.at("")));
        let args = json!({"path": "db/1.sql", "content": "evil"});
        let outcome = scene.call("write_file", args).await;
        let error: Option<ErrorKind> = outcome.error.as_ref().map(|error| error.kind);
        assert_eq!(error, Some(expect), "{list}: {outcome:?}");
        assert_eq!(scene.text("db/1.sql"), "old\n");
    }
}

#[tokio::test]
async fn an_undo_puts_no_link_on_the_way_of_a_denied_name() {
    for (tool, args) in [
        ("delete_file", r#"{"path":"x","recursive":true}"#),
        ("delete_file", r#"{"path":"x/cur"}"#),
        ("move_file", r#"{"from":"x","to":"y"}"#),
    ] {
        for denied in [false, true] {
            let scene = Scene::new();
            make(&scene, &["x/cur -> ../v2", "x/keep", "v2/db/1.sql"]);
            let workspace = Workspace::open(&scene.at("")).unwrap();
            let home = scene.dir.path().join("home");
            let log = Arc::new(ChangeLog::new(&home));
            let undo = UndoChanges::new(workspace.clone(), Arc::clone(&log));
            let files = Builtins::new(workspace).tools().unwrap().into_iter();
            let tools = ToolRegistry::new();
            let undo = undo.into_tool().unwrap();
            tools
                .add_all(files.map(|one| one.tool).chain([undo]))
                .unwrap();
            let session = Session::builder(Arc::new(tools)).build().unwrap();
            fs::create_dir_all(home.join("runs").join(session.run().as_str())).unwrap();
            let judged_by = |deny: &[&str]| {
                Executor::new(policy(&scene, deny).build().unwrap())
                    .with_approver(ConsentingPerson)
                    .with_changes(Arc::clone(&log))
            };
            let call = ToolCall::new(tool, args);
            let done = judged_by(&[]).execute(&session, call).await;
            assert!(done.is_ok(), "{tool} {args}: {done:?}");
            if denied {
                symlink("x/cur/db", scene.at("migrations")).unwrap();
            }
            let args = json!({"run": done.run.as_str(), "call": done.call.as_str()});
            let call = ToolCall::new("undo_changes", args.to_string());
            let undone = judged_by(MIGRATIONS).execute(&session, call).await;
            let error = undone.error.as_ref().map(|error| error.kind);
            assert_eq!(error, denied.then_some(Denied), "{tool}: {undone:?}");
            assert_eq!(scene.at("x/cur").is_symlink(), !denied, "{tool}");
        }
    }
}

/// A tool that other calls of its session wait for.
struct Hold(Arc<Notify>);

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

impl TypedTool for Hold {
    const NAME: &'static str = "hold";
    const DESCRIPTION: &'static str = "Wait.";
    type Input = Nothing;

    fn intent(&self, _: &Nothing, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, _: Nothing, _: &CallContext) -> Result<ToolResult, ToolError> {
        self.0.notified().await;
        Ok(ToolResult::text("held"))
    }
}

#[tokio::test]
async fn a_link_made_while_a_call_waits_for_its_turn_stops_it() {
    let scene = Scene::new();
    make(&scene, &["db/1.sql"]);
    let builtins = Builtins::new(Workspace::open(&scene.at("")).unwrap());
    let (tools, end) = (ToolRegistry::new(), Arc::new(Notify::new()));
    let files = builtins.tools().unwrap().into_iter().map(|one| one.tool);
    let hold = Hold(Arc::clone(&end)).into_tool().unwrap();
    tools.add_all(files.chain([hold])).unwrap();
    let session = Session::builder(Arc::new(tools)).build().unwrap();
    let policy = policy(&scene, MIGRATIONS).allow("hold");
    let executor = Executor::new(policy.build().unwrap());
    let call =
        |tool: &str, args: Value| executor.execute(&session, ToolCall::new(tool, args.to_string()));
    let mut held = pin!(call("hold", json!({})));
    let args = json!({"path": "db/1.sql", "content": "evil"});
    let mut write = pin!(call("write_file", args));
    poll_fn(|cx| {
        assert!(held.as_mut().poll(cx).is_pending());
        assert!(write.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    symlink("db", scene.at("migrations")).unwrap();
    end.notify_one();
    assert!(held.await.is_ok());
    let outcome = write.await;
    let error = outcome.error.as_ref().map(|error| error.kind);
    assert_eq!(error, Some(Conflict), "{outcome:?}");
    assert_eq!(scene.text("db/1.sql"), "old\n");
}
