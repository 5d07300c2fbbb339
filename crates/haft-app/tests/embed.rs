//! The application in a program: what the builder sets holds everywhere, its defaults are safe, and an approval is bound to the
//! application that asked for it.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use haft::approval::inbox::RequestStatus;
use haft::approval::{ApprovalId, ApprovalScope, Choice, channel};
use haft::policy::MinimumVerdict;
use haft::toolset::Toolset as _;
use haft::{
    Decision, Outcome, Permission, Policy, Principal, Profile, Status, ToolCall, ToolsetExt as _,
    tool,
};
use haft_app::environment::Environment;
use haft_app::run::RunOptions;
use haft_app::{Haft, HaftBuilder, PendingCallMode, Problem, Standard};
use tempfile::TempDir;

#[path = "embed/questions.rs"]
mod questions;

/// Close an account.
#[tool(risk = "high")]
fn close(account: String) -> String {
    format!("closed {account}")
}

/// Another tool of the same name.
mod other {
    use haft::tool;

    /// Close an account and all that belongs to it.
    #[tool(risk = "high")]
    pub(crate) fn close(account: String) -> String {
        format!("closed all of {account}")
    }
}

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Not a tool: it has no `#[tool]`.
fn plain() {}

fn ann() -> Principal {
    Principal::local("ann")
}

fn of_ann() -> ToolCall {
    ToolCall::new("close", r#"{"account":"ann"}"#)
}

/// Creates a folder with a workspace of one file.
fn scene() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("ws")).unwrap();
    fs::write(folder.path().join("ws/a.txt"), "hello\n").unwrap();
    folder
}

/// Returns a builder on the scene's workspace and state, without environment variables.
fn on(folder: &Path) -> HaftBuilder {
    Haft::builder()
        .workspace(folder.join("ws"))
        .state(folder.join("state"))
        .environment(Environment::default())
}

/// Returns the outcome of one call in a run of its own, which is then suspended or finished.
async fn call(haft: &Haft, call: ToolCall) -> Outcome {
    let run = haft.run(ann()).await.unwrap();
    let outcome = run.call(call).await;
    run.suspend().await.unwrap();
    outcome
}

fn approval(outcome: &Outcome) -> ApprovalId {
    ApprovalId::new(outcome.approval.as_deref().unwrap())
}

#[tokio::test]
async fn without_an_approver_a_call_that_needs_approval_is_denied_at_once() {
    let haft = Haft::builder().tool(close).tool(add).build().unwrap();
    let denied = call(&haft, of_ann()).await;
    assert_eq!(denied.status, Status::Denied, "{denied:?}");
    assert_eq!(denied.approval, None);
    let sum = call(&haft, ToolCall::new("add", r#"{"a":1,"b":2}"#)).await;
    assert_eq!(sum.to_model(), r#"{"result":3}"#);
    assert!(haft.approvals().pending().await.unwrap().is_empty());

    // An approver who is present is not asked if the program forbids it.
    let (approver, mut requests) = channel(1);
    let never = Haft::builder()
        .tool(close)
        .approver(approver)
        .when_asked(PendingCallMode::Deny)
        .build()
        .unwrap();
    assert_eq!(call(&never, of_ann()).await.status, Status::Denied);
    never.shut_down().await;
    drop(never);
    assert!(requests.next().await.is_none());
    haft.shut_down().await;
}

#[tokio::test]
async fn an_approver_decides_while_the_call_waits_and_no_request_outlives_it() {
    let folder = scene();
    let (approver, mut requests) = channel(1);
    let build = || on(folder.path()).tool(close);
    let haft = build().approver(approver).build().unwrap();
    let (outcome, ()) = tokio::join!(call(&haft, of_ann()), async {
        let pending = requests.next().await.unwrap();
        // Another window of the program finds it, too.
        assert_eq!(haft.approvals().pending().await.unwrap().len(), 1);
        assert!(pending.decide(Decision::approve("ann", "chat")));
    });
    assert_eq!(outcome.to_model(), "closed ann");
    haft.shut_down().await;
    let later = build()
        .when_asked(PendingCallMode::Suspend)
        .build()
        .unwrap();
    assert!(later.approvals().pending().await.unwrap().is_empty());
    later.shut_down().await;
}

#[tokio::test]
async fn an_approval_holds_only_in_the_application_it_was_asked_for_in() {
    let folder = scene();
    let at = folder.path();
    let build = || on(at).when_asked(PendingCallMode::Suspend);
    let asking = build().tool(close).build().unwrap();
    let asked = call(&asking, of_ann()).await;
    assert_eq!(asked.status, Status::Suspended, "{asked:?}");
    let id = approval(&asked);
    let decision = || Decision::approve("ann", "chat");
    asking.approvals().decide(&id, decision()).await.unwrap();
    asking.shut_down().await;

    fs::create_dir(at.join("elsewhere")).unwrap();
    let denying = Policy::builder(Profile::Workspace).deny("close(account:ann)");
    let others: [(&str, HaftBuilder); 5] = [
        ("no such tool", build()),
        ("another tool", build().tool(other::close)),
        ("a rule that denies", build().tool(close).policy(denying)),
        (
            "another profile",
            build().tool(close).policy(Profile::ReadOnly),
        ),
        (
            "another workspace",
            build().tool(close).workspace(at.join("elsewhere")),
        ),
    ];
    for (what, other) in others {
        let other = other.build().unwrap();
        let refused = other.resume(&id).await.unwrap_err();
        let advice = refused.advice().unwrap_or_default();
        assert!(advice.contains("nothing ran"), "{what}: {refused} {advice}");
        let entry = other.approvals().get(&id).await.unwrap();
        assert!(
            entry.status == RequestStatus::Approved && !entry.claimed,
            "{what}: {entry:?}"
        );
        // The refusal did not touch the run. Resuming the whole run is refused as well.
        other.resume_run(&asked.run).await.unwrap_err();
        let entry = other.approvals().get(&id).await.unwrap();
        assert!(
            entry.status == RequestStatus::Approved && !entry.claimed,
            "{what}: {entry:?}"
        );
        other.shut_down().await;
    }

    let same = build().tool(close).tool(add).build().unwrap();
    let outcome = same.resume(&id).await.unwrap();
    assert_eq!(outcome.to_model(), "closed ann");
    assert_eq!(outcome.run, asked.run);
    let twice = same.resume(&id).await.unwrap_err();
    assert!(twice.to_string().contains("has already run"), "{twice}");
    same.shut_down().await;
}

#[tokio::test]
async fn a_decision_is_checked_when_it_is_made() {
    let folder = scene();
    let build = || on(folder.path()).when_asked(PendingCallMode::Suspend);
    let haft = build().tool(close).build().unwrap();
    let asked = call(&haft, of_ann()).await;
    haft.shut_down().await;
    let id = approval(&asked);
    let other = build().tool(other::close).build().unwrap();
    let pending = other.resume(&id).await.unwrap_err();
    assert!(pending.to_string().contains("is pending"), "{pending}");
    let decision = Decision::approve("ann", "chat");
    other.approvals().decide(&id, decision).await.unwrap_err();
    let entry = other.approvals().get(&id).await.unwrap();
    assert_eq!(entry.status, RequestStatus::Pending);
    let none = ApprovalId::new("ap-none");
    other.resume(&none).await.unwrap_err();
    other.shut_down().await;
}

#[tokio::test]
async fn a_follower_acts_on_decisions_about_suspended_calls() {
    let folder = scene();
    let haft = on(folder.path())
        .tool(close)
        .when_asked(PendingCallMode::Suspend);
    let haft = haft.build().unwrap();
    let asked = call(&haft, of_ann()).await;
    let id = approval(&asked);
    let following = haft.follow();
    let mut changes = haft.app().executor().inbox().changes();
    let decision = Decision::approve("ann", "chat");
    haft.approvals().decide(&id, decision).await.unwrap();
    loop {
        let entry = haft.approvals().get(&id).await.unwrap();
        if entry.status == RequestStatus::Done {
            break;
        }
        changes.recv().await.unwrap();
    }
    following.stop().await;
    haft.shut_down().await;
}

#[tokio::test]
async fn an_identical_call_of_another_run_is_suspended_at_once_while_the_first_is_approved_and_not_resumed()
 {
    let folder = scene();
    let haft = on(folder.path())
        .tool(close)
        .when_asked(PendingCallMode::Suspend);
    let haft = haft.build().unwrap();
    let first = haft.run(ann()).await.unwrap();
    let id = approval(&first.call(of_ann()).await);
    drop(first);
    let decision = Decision::approve("ann", "chat");
    haft.approvals().decide(&id, decision).await.unwrap();
    let second = haft.run(ann()).await.unwrap();
    // The time-out for approvals is 300 s.
    let limit = std::time::Duration::from_secs(100);
    let asked = tokio::time::timeout(limit, second.call(of_ann())).await;
    let asked = asked.expect("it does not wait");
    assert_eq!(asked.status, Status::Suspended, "{asked:?}");
    drop(second);
    assert_eq!(haft.resume(&id).await.unwrap().to_model(), "closed ann");
    haft.shut_down().await;
}

#[tokio::test]
async fn a_dropped_run_is_suspended_where_it_waits() {
    let folder = scene();
    let haft = on(folder.path())
        .tool(close)
        .when_asked(PendingCallMode::Suspend);
    let haft = haft.build().unwrap();
    let run = haft.run(ann()).await.unwrap();
    let asked = run.call(of_ann()).await;
    drop(run);
    haft.shut_down().await;
    drop(haft);
    let haft = on(folder.path())
        .tool(close)
        .when_asked(PendingCallMode::Suspend);
    let haft = haft.build().unwrap();
    let id = approval(&asked);
    let decision = Decision::approve("ann", "chat");
    haft.approvals().decide(&id, decision).await.unwrap();
    assert_eq!(haft.resume(&id).await.unwrap().to_model(), "closed ann");
    haft.shut_down().await;
}

#[tokio::test]
async fn a_tool_has_a_name_of_its_own() {
    /// Not the standard one.
    #[tool]
    fn read_file() -> i64 {
        1
    }
    /// Not the standard one.
    #[tool]
    fn tool_chain() -> i64 {
        1
    }
    /// Not the standard one, which is not even configured.
    #[tool]
    fn web_search() -> i64 {
        1
    }
    let clashes: [(&str, HaftBuilder); 4] = [
        ("read_file", Haft::builder().tool(read_file)),
        ("tool_chain", Haft::builder().tool(tool_chain)),
        ("web_search", Haft::builder().tool(web_search)),
        ("close", Haft::builder().tool(close).tool(other::close)),
    ];
    for (name, builder) in clashes {
        let problem = builder.build().unwrap_err();
        let says = format!("there is already a tool `{name}`");
        assert!(problem.to_string().contains(&says), "{problem}");
    }
    let problem = Haft::builder().tool(plain).build().unwrap_err();
    assert!(problem.to_string().contains("not a tool"), "{problem}");
}

#[tokio::test]
async fn no_tool_reads_or_changes_the_state_folder_in_the_workspace() {
    let folder = scene();
    let ws = folder.path().join("ws");
    let haft = Haft::builder()
        .workspace(&ws)
        .state(ws.join("state"))
        .standard(Standard::FILES)
        .policy(Profile::Trusted)
        .build()
        .unwrap();
    let found = call(&haft, ToolCall::new("read_file", r#"{"path":"a.txt"}"#)).await;
    assert_eq!(found.status, Status::Ok, "{found:?}");
    fs::write(ws.join("state/token"), "needle").unwrap();
    let refused = [
        ("read_file", r#"{"path":"state/token"}"#),
        ("write_file", r#"{"path":"state/token","content":"x"}"#),
        ("write_file", r#"{"path":"state/new","content":"x"}"#),
        ("list_files", r#"{"path":"state"}"#),
    ];
    for (tool, arguments) in refused {
        let outcome = call(&haft, ToolCall::new(tool, arguments)).await;
        assert_eq!(outcome.status, Status::Denied, "{tool} {outcome:?}");
    }
    for (tool, arguments) in [
        ("grep_files", r#"{"pattern":"needle"}"#),
        ("list_files", "{}"),
        ("glob_files", r#"{"pattern":"**"}"#),
    ] {
        let outcome = call(&haft, ToolCall::new(tool, arguments)).await;
        let reply = outcome.to_model();
        assert!(
            !reply.contains("token") && !reply.contains("state"),
            "{tool}: {reply}"
        );
    }
    assert_eq!(
        fs::read_to_string(ws.join("state/token")).unwrap(),
        "needle"
    );
    haft.shut_down().await;
}

#[tokio::test]
async fn the_machine_s_settings_count_where_the_program_wants_them() {
    let folder = scene();
    let at = folder.path();
    fs::write(
        at.join("ws/haft.toml"),
        "[policy]\ndeny = [\"close(account:ann)\"]\n[limits]\nmax_calls = 2\n",
    )
    .unwrap();
    let build = || on(at).tool(close).policy(Profile::Trusted);
    let alone = build().build().unwrap();
    assert_eq!(call(&alone, of_ann()).await.to_model(), "closed ann");
    assert_eq!(alone.settings().whole("limits.max_calls"), Some(10_000));
    let profile = alone.settings().entry(&["policy", "profile"]).unwrap();
    assert_eq!(profile.layer().as_str(), "program");
    alone.shut_down().await;

    let both = build().machine_settings().set("limits.call_timeout_s", 9);
    let both = both.build().unwrap();
    assert_eq!(call(&both, of_ann()).await.status, Status::Denied);
    assert_eq!(both.settings().whole("limits.max_calls"), Some(2));
    both.shut_down().await;
}

#[tokio::test]
async fn rules_and_guards_of_the_program_s_policy_hold() {
    #[derive(Debug)]
    struct Closed;
    impl haft::policy::Guard for Closed {
        fn name(&self) -> &'static str {
            "closed"
        }
        fn floor(
            &self,
            call: &haft::policy::JudgedCall<'_>,
            _: &Permission,
        ) -> Result<MinimumVerdict, String> {
            Ok(match call.spec.name.as_str() {
                "close" => MinimumVerdict::deny("the bank is closed"),
                _ => MinimumVerdict::NONE,
            })
        }
    }
    let policy = Policy::builder(Profile::Trusted).guard(Closed).deny("add");
    let haft = Haft::builder().tool(close).tool(add).policy(policy);
    let haft = haft.build().unwrap();
    let closed = call(&haft, of_ann()).await;
    assert!(
        closed.to_model().contains("the bank is closed"),
        "{closed:?}"
    );
    let sum = call(&haft, ToolCall::new("add", r#"{"a":1,"b":2}"#)).await;
    assert_eq!(sum.status, Status::Denied);
    // A tool that no call may reach appears in no list.
    assert!(
        haft.tools()
            .snapshot()
            .listed()
            .all(|entry| entry.spec().name.as_str() != "add")
    );
    let policy = haft_app::view::policy::overview(haft.app());
    let rules = serde_json::to_string(&policy).unwrap();
    assert!(rules.contains(r#""layer":"program""#), "{rules}");
    haft.shut_down().await;
}

#[tokio::test]
async fn what_does_not_fit_together_is_an_error_that_says_what_to_do() {
    let folder = scene();
    let at = folder.path();
    let rule = Policy::builder(Profile::Workspace).deny("clsoe");
    let rooted = Policy::builder(Profile::Workspace).workspace_root(at);
    let rows: [(HaftBuilder, &str, &str); 8] = [
        (
            Haft::builder().standard(Standard::FILES),
            "need a folder",
            ".workspace(",
        ),
        (
            Haft::builder().when_asked(PendingCallMode::Suspend),
            "no state folder",
            ".state(",
        ),
        (
            Haft::builder().workspace(at.join("none")),
            "not a folder",
            "make it first",
        ),
        (
            Haft::builder().workspace(at.join("ws")).state(at),
            "lies in the state folder",
            "apart",
        ),
        (on(at).tool(close).policy(rule), "clsoe", ""),
        (on(at).policy(rooted), "names a workspace", "once"),
        (
            on(at).set("limits.max_cals", 1),
            "limits.max_cals",
            "limits.max_calls",
        ),
        (on(at).set("store.url", "mysql://x"), "store.url", "sqlite"),
    ];
    for (builder, says, advice) in rows {
        let problem: Problem = builder.build().unwrap_err();
        assert!(problem.to_string().contains(says), "{problem}");
        let given = problem.advice().unwrap_or_default();
        assert!(given.contains(advice), "{problem}: {given}");
    }
}

#[tokio::test]
async fn a_state_that_was_not_named_goes_with_the_application() {
    let haft = Haft::builder().tool(add).build().unwrap();
    let home = haft.app().home().to_owned();
    let run = haft.run(ann()).await.unwrap();
    run.call(ToolCall::new("add", r#"{"a":1,"b":2}"#)).await;
    haft.shut_down().await;
    drop(haft);
    assert!(home.is_dir(), "a run still stands in it");
    drop(run);
    assert!(!home.exists());
}

#[tokio::test]
async fn standard_tools_are_there_by_bundle() {
    let folder = scene();
    let names = |haft: &Haft| {
        let snapshot = haft.tools().snapshot();
        let names = snapshot.listed().map(|entry| entry.spec().name.to_string());
        names.collect::<Vec<_>>()
    };
    let none = on(folder.path()).tool(add).build().unwrap();
    assert_eq!(names(&none), ["add"]);
    let some = on(folder.path()).standard(Standard::TODO).tool(add);
    let some = some.set("tools.add.enabled", false).build().unwrap();
    assert_eq!(names(&some), ["read_artifact", "todo_read", "todo_write"]);
    let files = on(folder.path()).standard(Standard::FILES).build().unwrap();
    assert!(names(&files).iter().any(|name| name == "grep_files"));
    assert!(!names(&files).iter().any(|name| name == "run_command"));
    let view = Arc::clone(files.tools()).only(["list_files"]);
    let run = files.run(ann()).tools(Arc::new(view)).await.unwrap();
    let hidden = run.call(ToolCall::new("read_file", r#"{"path":"a.txt"}"#));
    assert_eq!(hidden.await.status, Status::Error);
    let listed = run.call(ToolCall::new("list_files", "{}")).await;
    assert_eq!(listed.status, Status::Ok, "{listed:?}");
    run.finish().await.unwrap();
}

#[tokio::test]
async fn a_run_of_few_tools_is_resumed_with_those_alone() {
    let folder = scene();
    let program = || {
        on(folder.path())
            .tool(close)
            .tool(add)
            .when_asked(PendingCallMode::Suspend)
            .build()
            .unwrap()
    };
    let haft = program();
    let few = Arc::new(Arc::clone(haft.tools()).only(["close"]));
    let run = haft.run(ann()).tools(few).await.unwrap();
    let sum = ToolCall::new("add", r#"{"a":1,"b":2}"#);
    assert!(!run.call(sum.clone()).await.is_ok());
    approval(&run.call(of_ann()).await);
    let id = run.id().clone();
    run.suspend().await.unwrap();
    haft.shut_down().await;

    let again = program();
    let options = RunOptions::new("test");
    let resumed = again.app().runs().resume(&id, 0, options).await.unwrap();
    assert!(!resumed.call(sum).await.is_ok(), "it has all tools now");
    let asked = resumed.call(of_ann()).await;
    assert_eq!(asked.status, Status::Suspended, "{asked:?}");
    resumed.suspend().await.unwrap();

    // Without the names of its tools it could only be resumed with all of them.
    let kept = folder
        .path()
        .join("state/runs")
        .join(id.as_str())
        .join("tools.json");
    fs::write(kept, "[").unwrap();
    let options = RunOptions::new("test");
    let refused = again.app().runs().resume(&id, 0, options).await;
    assert!(refused.is_err_and(|e| e.to_string().contains("which tools run")));
    again.shut_down().await;
}

#[tokio::test]
async fn a_rule_for_good_is_not_taken_from_another_tenant_s_request() {
    let folder = scene();
    let haft = on(folder.path())
        .tool(close)
        .when_asked(PendingCallMode::Suspend)
        .build()
        .unwrap();
    let theirs = Principal::new("acme", "bob");
    let run = haft.run(theirs).await.unwrap();
    let id = approval(&run.call(of_ann()).await);
    run.suspend().await.unwrap();
    let always = Decision::approve("eve", "chat").hold_for(ApprovalScope::Always);
    let refused = haft.approvals().decide(&id, always).await.unwrap_err();
    assert!(refused.to_string().contains("another tenant"), "{refused}");
    // The request is still undecided and can be approved once.
    let once = Decision::approve("eve", "chat");
    haft.approvals().decide(&id, once).await.unwrap();
    haft.shut_down().await;
}
