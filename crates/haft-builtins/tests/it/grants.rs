//! Grants: never wider than what the request showed, whichever argument of the call changes.

use std::fs;
use std::sync::Arc;

use haft::approval::{ApprovalRequest, ApprovalScope, ApproverReply, Decision};
use haft::error::ErrorKind;
use haft::permission::{PathClaim, Permission};
use haft::policy::Policy;
use haft::testing::{MemoryAudit, ScriptedApprover};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Session, ToolCall, Toolset};
use haft_builtins::Builtins;
use haft_builtins::files::patch::{ApplyPatchInput, apply_patch};
use haft_builtins::files::{FileCaller, FileOptions, Files};
use haft_sandbox::{Config, Sandbox};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// All tools over a workspace with a few files; the first request becomes a grant, and no other is answered.
struct Desk {
    dir: tempfile::TempDir,
    tools: Arc<ToolRegistry>,
    executor: Executor,
    session: Session,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
    audit: Arc<MemoryAudit>,
}

impl Desk {
    fn new(scope: ApprovalScope) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.txt", "old\n"),
            ("b.txt", "old\n"),
            ("Makefile", "all:\n"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        fs::create_dir(dir.path().join("evil")).unwrap();
        let mut builtins = Builtins::new(Workspace::open(dir.path()).unwrap());
        builtins.sandbox = Some(Sandbox::new(Config::default()));
        let tools = Arc::new(ToolRegistry::new());
        let all = builtins.tools().unwrap().into_iter().map(|one| one.tool);
        tools.replace_all("builtin", all).unwrap();
        let policy = Policy::workspace().with_workspace(&builtins.workspace);
        let yes = Decision::approve("ann", "test").hold_for(scope);
        let approver = ScriptedApprover::new([ApproverReply::from(yes)]);
        let asked = Arc::clone(&approver.asked);
        let audit = Arc::new(MemoryAudit::new());
        Self {
            session: Session::builder(Arc::clone(&tools) as _).build().unwrap(),
            executor: Executor::new(policy.unwrap())
                .with_approver(approver)
                .with_audit(Arc::clone(&audit) as _),
            audit,
            dir,
            tools,
            asked,
        }
    }

    /// Returns the number of approval requests for this call; `None` if it was rejected before that.
    async fn asks(&self, tool: &str, arguments: &Value) -> Option<usize> {
        let asked = || self.asked.lock().len();
        let started = || {
            let words = self.audit.words();
            words.iter().filter(|word| *word == "started").count()
        };
        let before = (asked(), started());
        let call = ToolCall::new(tool, arguments.to_string());
        self.executor.execute(&self.session, call).await;
        let (asked, started) = (asked() - before.0, started() - before.1);
        (asked + started > 0).then_some(asked)
    }

    /// Restores the files, and starts another session if the grant is permanent.
    fn restore(&mut self, scope: ApprovalScope) {
        if scope == ApprovalScope::Always {
            self.session = Session::builder(Arc::clone(&self.tools) as _)
                .build()
                .unwrap();
        }
        fs::write(self.dir.path().join("a.txt"), "old\n").unwrap();
    }
}

/// A call that is approved, and the arguments whose other values are approved with it.
struct Approved {
    tool: &'static str,
    arguments: Value,
    free: &'static [&'static str],
}

fn approved() -> Vec<Approved> {
    let row = |tool, arguments, free| Approved {
        tool,
        arguments,
        free,
    };
    vec![
        row(
            "write_file",
            json!({"path": "a.txt", "content": "one", "mode": "append"}),
            &["content"],
        ),
        row(
            "write_file",
            json!({"path": "new.txt", "content": "one"}),
            &["content"],
        ),
        row(
            "edit_file",
            json!({"path": "a.txt", "edits": [{"find": "old", "replace": "new"}]}),
            &["edits"],
        ),
        row("run_command", json!({"command": "make"}), &[]),
        row(
            "run_command",
            json!({"argv": ["make", "-s"], "timeout_s": 5}),
            &[],
        ),
        row("run_command", json!({"command": "make | tail -1"}), &[]),
        row(
            "run_command",
            json!({"command": "python3 - <<'E'\nprint(1)\nE"}),
            &[],
        ),
        row("run_command", json!({"command": "bash <<< 'ls'"}), &[]),
        row("run_command", json!({"command": "python3 < a.txt"}), &[]),
        row(
            "fetch_url",
            json!({"url": "https://nowhere.invalid/a"}),
            &[],
        ),
    ]
}

/// Returns another value for an argument of this schema; `None` leaves the argument out.
fn other(schema: &Value, seed: u32) -> Option<Value> {
    let pick = |values: &[Value]| values[seed as usize % values.len()].clone();
    let texts = [
        "evil",
        "b.txt",
        "",
        ".",
        "touch pwn",
        "make evil",
        "https://nowhere.invalid/b",
    ];
    if seed.is_multiple_of(11) {
        return None;
    }
    if let Some(choices) = schema["enum"].as_array() {
        return Some(pick(choices));
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str());
    Some(match kind {
        Some("integer" | "number") => json!(1 + seed % 500),
        Some("boolean") => json!(seed.is_multiple_of(2)),
        Some("array") if schema["items"]["type"] == "string" => {
            json!([pick(&texts.map(Value::from)), "x"])
        }
        Some("array") => json!([{"find": "old", "replace": format!("{seed}")}]),
        Some("object") => json!({"X": pick(&texts.map(Value::from))}),
        _ => pick(&texts.map(Value::from)),
    })
}

/// Which argument of the call is changed, and the seed of its new value.
#[derive(Debug, Clone, Copy)]
struct Change {
    nth: usize,
    seed: u32,
}

fn changed(desk: &Desk, call: &Approved, change: Change) -> (String, Value, bool) {
    let Change { nth, seed } = change;
    let tools = desk.tools.snapshot();
    let schema = &tools.entry(call.tool).unwrap().spec().input_schema;
    let properties = schema["properties"].as_object().unwrap();
    let (name, schema) = properties.iter().nth(nth % properties.len()).unwrap();
    let mut arguments: Map<String, Value> = call.arguments.as_object().unwrap().clone();
    match other(schema, seed) {
        Some(value) => arguments.insert(name.clone(), value),
        None => arguments.remove(name),
    };
    let arguments = Value::Object(arguments);
    let differs = arguments != call.arguments;
    (name.clone(), arguments, differs)
}

fn holds(scope: ApprovalScope, row: usize, change: Change) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let rows = approved();
        let call = &rows[row % rows.len()];
        let mut desk = Desk::new(scope);
        prop_assert_eq!(desk.asks(call.tool, &call.arguments).await, Some(1));
        desk.restore(scope);
        let kept = scope == ApprovalScope::Session || !desk.asked.lock()[0].suggested.is_empty();
        let again = desk.asks(call.tool, &call.arguments).await;
        prop_assert_eq!(
            again,
            Some(usize::from(!kept)),
            "{} {}",
            call.tool,
            call.arguments
        );
        desk.restore(scope);
        let (name, arguments, differs) = changed(&desk, call, change);
        let Some(asked) = desk.asks(call.tool, &arguments).await else {
            return Ok(());
        };
        // A permanent grant is a rule for the host, which covers its other pages; the request says so.
        let by_rule = scope == ApprovalScope::Always && call.tool == "fetch_url" && name == "url";
        let covered = kept && (!differs || call.free.contains(&name.as_str()) || by_rule);
        let expect = usize::from(!covered);
        prop_assert_eq!(asked, expect, "{:?} {} {}", scope, call.tool, arguments);
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn p5_a_call_that_differs_from_the_approved_one_is_asked_about_again(
        row in 0_usize..100, nth in 0_usize..100, seed in any::<u32>(), always in any::<bool>(),
    ) {
        let scope = if always { ApprovalScope::Always } else { ApprovalScope::Session };
        holds(scope, row, Change { nth, seed })?;
    }
}

#[tokio::test]
async fn p5_an_approved_patch_covers_no_other_file_and_no_removal() {
    let update = |path: &str, to: &str| {
        format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+{to}\n*** End Patch")
    };
    let moved = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n@@\n-old\n+new\n*** End Patch";
    let deleted = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    let added = "*** Begin Patch\n*** Add File: c.txt\n+new\n*** End Patch";
    for scope in [ApprovalScope::Session, ApprovalScope::Always] {
        for (patch, asks) in [
            (update("a.txt", "other"), 0),
            (update("b.txt", "other"), 1),
            (deleted.to_owned(), 1),
            (moved.to_owned(), 1),
            (added.to_owned(), 1),
        ] {
            let mut desk = Desk::new(scope);
            let first = json!({"patch": update("a.txt", "new")});
            assert_eq!(desk.asks("apply_patch", &first).await, Some(1));
            desk.restore(scope);
            let arguments = json!({ "patch": patch });
            let asked = desk.asks("apply_patch", &arguments).await;
            assert_eq!(asked, Some(asks), "{scope:?} {patch}");
        }
    }
}

#[tokio::test]
async fn p18_a_critical_call_is_approved_each_time() {
    for scope in [ApprovalScope::Session, ApprovalScope::Always] {
        let mut desk = Desk::new(scope);
        let arguments = json!({"path": "a.txt"});
        assert_eq!(desk.asks("delete_file", &arguments).await, Some(1));
        desk.restore(scope);
        assert_eq!(desk.asks("delete_file", &arguments).await, Some(1));
        assert!(desk.asked.lock()[0].suggested.is_empty());
        // A grant for a write does not cover a deletion.
        let desk = Desk::new(scope);
        let write = json!({"path": "a.txt", "content": "x"});
        assert_eq!(desk.asks("write_file", &write).await, Some(1));
        assert_eq!(desk.asks("delete_file", &arguments).await, Some(1));
        assert!(desk.dir.path().join("a.txt").exists());
    }
}

#[test]
fn p20_a_call_that_was_cleared_for_nothing_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path()).unwrap();
    let files = Files::new(workspace, FileOptions::default(), None);
    let input = ApplyPatchInput {
        patch: "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch".to_owned(),
    };
    let elsewhere = Permission::write(PathClaim::plain("b"));
    for cleared in [vec![], vec![elsewhere]] {
        let caller = FileCaller::cleared_for(cleared, &files);
        let error = apply_patch(&files, &input, &caller, &|| false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!dir.path().join("a").exists());
    }
}
