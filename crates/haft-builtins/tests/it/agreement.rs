//! One workspace for tools and policy: root, hidden paths and visibility rules hold without further setup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::call::ToolCall;
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::result::Outcome;
use haft::spec::ToolClass;
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{ErrorKind, Executor, Session};
use haft_builtins::Builtins;
use haft_sandbox::{Config, Sandbox};
use serde_json::json;

/// Creates a folder with a file that a rule withholds, one that is hidden, and a plain one.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for path in ["keys/prod.pem", ".env", "state/token", "plain.txt"] {
        std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(dir.path().join(path), "needle").unwrap();
    }
    dir
}

fn opened(root: &Path) -> Workspace {
    Workspace::open(root).unwrap()
}

fn tools(workspace: Workspace) -> Arc<ToolRegistry> {
    let mut builtins = Builtins::new(workspace);
    builtins.sandbox = Some(Sandbox::new(Config::default()));
    let registry = ToolRegistry::new();
    let all = builtins.tools().unwrap().into_iter().map(|one| one.tool);
    registry.add_all(all).unwrap();
    Arc::new(registry)
}

async fn call(
    policy: &Policy,
    workspace: &Workspace,
    tool: &str,
    args: &serde_json::Value,
) -> Outcome {
    let session = Session::builder(tools(workspace.clone())).build().unwrap();
    let call = ToolCall::new(tool, args.to_string());
    Executor::new(policy.clone()).execute(&session, call).await
}

#[tokio::test]
async fn e1_what_a_rule_keeps_from_being_read_is_in_no_list_search_or_near_name() {
    let dir = folder();
    let workspace = opened(dir.path());
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    for rules in [
        RuleSet {
            deny: texts(&["Read(keys/**)", "Read(.env)"]),
            ..RuleSet::default()
        },
        // A file whose reading needs an approval is not shown without one either.
        RuleSet {
            ask: texts(&["Read(keys/**)", "Read(.env)"]),
            ..RuleSet::default()
        },
    ] {
        let policy = Policy::builder(Profile::Workspace).rules(rules);
        let policy = policy.workspace(&workspace).build().unwrap();
        for (tool, args) in [
            ("list_files", json!({"hidden": true})),
            ("glob_files", json!({"pattern": "*"})),
            ("glob_files", json!({"pattern": ".*"})),
            ("grep_files", json!({"pattern": "needle"})),
        ] {
            let outcome = call(&policy, &workspace, tool, &args).await;
            assert!(outcome.is_ok(), "{tool}: {:?}", outcome.error);
            let data = outcome.data.unwrap().get().to_owned();
            for secret in ["prod.pem", ".env"] {
                assert!(!data.contains(secret), "{tool} {args}: {data}");
            }
        }
        for (tool, args) in [
            ("read_file", json!({"path": "kyes"})),
            ("read_file", json!({"path": ".emv"})),
        ] {
            let error = call(&policy, &workspace, tool, &args).await.error.unwrap();
            assert_eq!(error.kind, ErrorKind::NotFound, "{tool}");
            let advice = error.advice.unwrap_or_default();
            assert!(
                !advice.contains("keys") && !advice.contains(".env"),
                "{advice}"
            );
        }
    }
}

/// the policy's workspace → a word of the refusal
#[tokio::test]
async fn e5_a_tool_in_another_workspace_than_the_policy_s_does_not_run() {
    let (dir, other) = (folder(), folder());
    let hidden = || [PathBuf::from("state")];
    let workspace = opened(dir.path()).with_hidden(hidden());
    let over = |workspace: &Workspace| Policy::trusted().with_workspace(workspace).unwrap();
    let root_alone = Policy::builder(Profile::Trusted).workspace_root(workspace.root());
    for (policy, says) in [
        (Policy::trusted(), "the policy has no workspace"),
        (
            over(&opened(other.path()).with_hidden(hidden())),
            "judges paths in",
        ),
        (over(&opened(dir.path())), "hide different paths"),
        (root_alone.build().unwrap(), "hide different paths"),
    ] {
        for (tool, args) in [
            ("read_file", json!({"path": "plain.txt"})),
            ("grep_files", json!({"pattern": "needle"})),
            ("write_file", json!({"path": "new", "content": "x"})),
            ("run_command", json!({"command": "touch new"})),
        ] {
            let error = call(&policy, &workspace, tool, &args).await.error.unwrap();
            assert_eq!(error.kind, ErrorKind::Unavailable, "{tool} {error:?}");
            assert!(error.message.contains(says), "{tool} {error:?}");
            let snapshot = tools(workspace.clone()).snapshot();
            let entry = snapshot.entry(tool).unwrap();
            let explained = Executor::new(policy.clone()).explain(entry, &args.to_string());
            assert!(explained.unwrap_err().message.contains(says), "{tool}");
        }
    }
    assert!(!dir.path().join("new").exists());
    let outcome = call(
        &over(&workspace),
        &workspace,
        "read_file",
        &json!({"path": "plain.txt"}),
    )
    .await;
    assert!(outcome.is_ok(), "{:?}", outcome.error);
}

#[tokio::test]
async fn e5_the_policy_takes_root_and_hidden_paths_from_the_workspace() {
    let dir = folder();
    let workspace =
        opened(dir.path()).with_hidden([PathBuf::from("state"), "/srv/app/token".into()]);
    let rules = RuleSet {
        deny: vec![RuleText::new(format!(
            "Read(/{}/plain.txt)",
            workspace.root().display()
        ))],
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Trusted).rules(rules);
    let policy = policy.workspace(&workspace).build().unwrap();
    for (tool, args) in [
        ("read_file", json!({"path": "plain.txt"})),
        ("run_command", json!({"command": "cat state/token"})),
        ("run_command", json!({"command": "cat /srv/app/token"})),
        ("read_file", json!({"path": "state/token"})),
    ] {
        let error = call(&policy, &workspace, tool, &args).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Denied, "{tool} {args}: {error:?}");
    }
}

#[test]
fn e5_every_standard_tool_on_files_or_commands_names_its_workspace() {
    let dir = folder();
    let mut builtins = Builtins::new(opened(dir.path()));
    builtins.sandbox = Some(Sandbox::new(Config::default()));
    for builtin in builtins.tools().unwrap() {
        let name = builtin.tool.spec().name.clone();
        let starts = builtin.bundle == "files" || name.as_str() == "run_command";
        assert_eq!(builtin.tool.workspace().is_some(), starts, "{name}");
    }
}

#[test]
fn the_class_that_a_tool_declares_is_the_one_that_policies_know_beforehand() {
    let dir = folder();
    let mut builtins = Builtins::new(opened(dir.path()));
    builtins.sandbox = Some(Sandbox::new(Config::default()));
    let tools = builtins.tools().unwrap();
    let specs: Vec<_> = tools.iter().map(|one| one.tool.spec()).collect();
    let known: BTreeMap<&str, ToolClass> = haft_builtins::classes().collect();
    let declared: BTreeMap<&str, ToolClass> = specs
        .iter()
        .filter_map(|spec| Some((spec.name.as_str(), spec.class?)))
        .collect();
    for (name, class) in &declared {
        assert_eq!(known.get(name), Some(class), "{name}");
    }
    // Tools that need the web or an image model, and the host's own, are made elsewhere.
    let elsewhere = ["fetch_url", "view_image", "connect", "sign"];
    let missing = known.keys().filter(|name| !declared.contains_key(*name));
    let missing: Vec<&str> = missing
        .copied()
        .filter(|name| !elsewhere.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test]
async fn a_deny_rule_holds_for_a_tool_whose_class_the_policy_did_not_know() {
    let dir = folder();
    let workspace = opened(dir.path());
    let rules = RuleSet {
        deny: vec![RuleText::new("read_file(state/**)")],
        ..RuleSet::default()
    };
    let args = json!({"path": "plain.txt"});
    for (knows, denied) in [(true, false), (false, true)] {
        let mut policy = Policy::builder(Profile::Trusted).rules(rules.clone());
        if knows {
            policy = policy.classes(haft_builtins::classes());
        }
        let policy = policy.workspace(&workspace).build().unwrap();
        let outcome = call(&policy, &workspace, "read_file", &args).await;
        let kind = outcome.error.map(|error| error.kind);
        assert_eq!(kind == Some(ErrorKind::Denied), denied, "{knows}: {kind:?}");
    }
}
