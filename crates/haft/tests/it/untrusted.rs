//! After a run has read untrusted content, haft asks before a call sends data out, whatever rules allow.

use std::sync::Arc;

use haft::approval::ApproverReply;
use haft::approval::inbox::WaitingCalls as _;
use haft::approval::memory::MemoryInbox;
use haft::permission::{Effect, PathClaim, Permission, Verdict};
use haft::policy::{Policy, UntrustedContent};
use haft::result::Status;
use haft::session::Session;
use haft::spec::Risk;
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::toolset::Toolset as _;
use haft::toolset::registry::ToolRegistry;
use haft::untrusted::{SERVER_EFFECT, UntrustedSource};
use haft::{Executor, ToolCall};

fn tool(name: &str, open_world: bool, effects: Vec<Effect>) -> Arc<dyn haft::tool::Tool> {
    let spec = haft::spec::ToolSpec {
        open_world,
        ..TestTool::echo(name)
    };
    let permission = |effect| Permission {
        effect,
        risk: Risk::High,
    };
    TestTool::of(spec)
        .wanting(effects.into_iter().map(permission).collect())
        .arc()
}

fn page(host: &str) -> Effect {
    Effect::connect(format!("https://{host}/page"), host)
}

fn server(name: &str) -> Effect {
    Effect::Other {
        kind: SERVER_EFFECT.to_owned(),
        value: name.to_owned(),
    }
}

fn command(jailed: bool, on_copy: bool) -> Effect {
    Effect::Run {
        command: "make".to_owned(),
        argv: None,
        jailed,
        on_copy,
    }
}

fn write(path: &str) -> Effect {
    Effect::Write(PathClaim::plain(path))
}

/// Returns every tool of the table under its own name. A rule allows each of them.
fn tools() -> ToolRegistry {
    let rows = [
        ("read", false, vec![Effect::Read(PathClaim::plain("a"))]),
        ("page", true, vec![page("evil.example")]),
        ("other", true, vec![page("docs.example")]),
        ("docs", true, vec![server("docs")]),
        ("docs_again", true, vec![server("docs")]),
        ("read_docs", true, vec![server("docs")]),
        ("closed", false, vec![server("closed")]),
        ("feed", true, vec![]),
        ("unjailed", false, vec![command(false, false)]),
        ("jailed", false, vec![command(true, false)]),
        ("on_copy", false, vec![command(true, true)]),
        ("inside", false, vec![write("src/a")]),
    ];
    rows.into_iter()
        .fold(ToolRegistry::new(), |all, (name, open, effects)| {
            all.with(tool(name, open, effects)).unwrap()
        })
}

fn policy(guard: UntrustedContent) -> Policy {
    let names: Vec<String> = tools()
        .snapshot()
        .entries()
        .iter()
        .map(|entry| entry.spec().name.to_string())
        .collect();
    let all = names
        .iter()
        .fold(Policy::builder(haft::Profile::Trusted), |builder, name| {
            builder.allow(name.as_str())
        });
    let all = ["Bash", "Edit(//**)", "Edit(**)", "WebFetch(domain:*)"]
        .iter()
        .fold(all, |builder, rule| builder.allow(*rule));
    all.build().unwrap().with_guard(guard)
}

/// Returns the outcome of the second call after the first, under this guard.
async fn after(first: &str, second: &str, guard: UntrustedContent) -> (Status, String) {
    let executor = Executor::new(policy(guard)).with_approver(ScriptedApprover::new([]));
    let session = Session::new(tools());
    for name in [first, second] {
        let outcome = executor.execute(&session, ToolCall::new(name, "{}")).await;
        if name == second {
            let said = outcome.error.map(|error| error.message).unwrap_or_default();
            return (outcome.status, said);
        }
        assert_eq!(outcome.status, Status::Ok, "{first}: {outcome:?}");
    }
    unreachable!("the second call returns")
}

#[tokio::test]
async fn what_could_carry_something_out_is_denied_or_asked_about_after_untrusted_content() {
    let rows = [
        // The run has read nothing untrusted.
        ("read", "other", true),
        ("closed", "other", true),
        // A page, then each way out.
        ("page", "other", false),
        ("page", "docs", false),
        ("page", "feed", false),
        ("page", "unjailed", false),
        ("docs", "other", false),
        ("feed", "page", false),
        ("docs", "docs_again", false),
        // Calls that stay inside run, and so does what only looks something up where the content came from.
        ("page", "read", true),
        ("page", "inside", true),
        ("page", "on_copy", true),
        ("page", "jailed", true),
        ("page", "closed", true),
        ("docs", "read_docs", true),
    ];
    for (first, second, runs) in rows {
        let guard = UntrustedContent::new(Verdict::Deny);
        let (status, said) = after(first, second, guard).await;
        let expected = if runs { Status::Ok } else { Status::Denied };
        assert_eq!(status, expected, "{first}, then {second}: {said}");
    }
    let open = UntrustedContent::new(Verdict::Deny).commands_reach_out(true);
    assert_eq!(after("page", "jailed", open).await.0, Status::Denied);
    assert_eq!(after("page", "on_copy", open).await.0, Status::Ok);
    let (_, said) = after("page", "other", UntrustedContent::new(Verdict::Deny)).await;
    assert!(said.contains("https://evil.example/page"), "{said}");
}

#[tokio::test]
async fn the_request_names_what_was_read() {
    let inbox = Arc::new(MemoryInbox::new());
    let executor = Executor::new(policy(UntrustedContent::new(Verdict::Ask)));
    let executor = executor
        .with_inbox(Arc::clone(&inbox) as _)
        .with_approver(ScriptedApprover::new([ApproverReply::Later]));
    let session = Session::new(tools());
    let page = executor
        .execute(&session, ToolCall::new("page", "{}"))
        .await;
    assert_eq!(page.status, Status::Ok);
    let other = executor
        .execute(&session, ToolCall::new("other", "{}"))
        .await;
    assert_eq!(other.status, Status::Suspended, "{other:?}");
    let id = haft::approval::ApprovalId::new(other.approval.as_deref().unwrap());
    let stored = inbox.get(&id).await.unwrap().unwrap();
    let reason = stored.request.reason;
    assert!(
        reason.contains("https://evil.example/page by page"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_resumed_run_knows_what_it_had_read() {
    let sink = Arc::new(MemoryAudit::new());
    let executor = Executor::new(policy(UntrustedContent::new(Verdict::Deny)));
    let executor = executor.with_audit(Arc::clone(&sink) as _);
    let session = Session::new(tools());
    executor
        .execute(&session, ToolCall::new("page", "{}"))
        .await;
    let recorded: Vec<String> = sink
        .events()
        .iter()
        .flat_map(|event| match &event.what {
            haft::audit::EventKind::CallStarted(record) => record.untrusted.clone(),
            _ => Vec::new(),
        })
        .collect();
    let sources: Vec<_> = recorded
        .iter()
        .map(|text| UntrustedSource::recorded(text))
        .collect();
    assert_eq!(sources, session.untrusted().to_vec());
    let resumed = Session::builder(Arc::new(tools()))
        .resume(session.run().clone(), 1)
        .with_untrusted(sources)
        .build()
        .unwrap();
    let other = executor
        .execute(&resumed, ToolCall::new("other", "{}"))
        .await;
    assert_eq!(other.status, Status::Denied);
}
