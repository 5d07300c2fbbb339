//! Nothing but a person's answer to this very call lets it pass the guard against exfiltration: no setting, grant, rule or other process.

use std::sync::Arc;

use haft::approval::inbox::WaitingCalls;
use haft::approval::memory::MemoryInbox;
use haft::approval::{ApprovalId, ApprovalScope, ApproverReply, AutoApprove, Decision};
use haft::permission::{Effect, Permission, Verdict};
use haft::policy::{CauseKind, Policy, PolicyBuilder, Profile, UntrustedContent};
use haft::result::{Outcome, Status};
use haft::spec::{Risk, ToolSpec};
use haft::testing::{ConsentingPerson, MemoryAudit, ScriptedApprover, TestTool};
use haft::toolset::lazy::{CALL_TOOL, LazyListing};
use haft::toolset::registry::ToolRegistry;
use haft::toolset::view::ToolsetExt as _;
use haft::untrusted::UntrustedSource;
use haft::{Executor, Session, ToolCall, ToolResult};
use serde_json::json;

/// Returns a tool that connects to a host.
fn page(name: &str, host: &str) -> Arc<dyn haft::tool::Tool> {
    let spec = ToolSpec {
        open_world: true,
        ..TestTool::echo(name)
    };
    let effect = Effect::connect(format!("https://{host}/page"), host);
    let permission = Permission {
        effect,
        risk: Risk::High,
    };
    TestTool::of(spec).wanting(vec![permission]).arc()
}

/// Returns a tool that calls others, and gives back how the last of these calls ended.
fn script() -> Arc<dyn haft::tool::Tool> {
    TestTool::with_body(TestTool::echo("script"), |value, context| {
        Box::pin(async move {
            let mut last = String::new();
            for name in value["calls"].as_array().into_iter().flatten() {
                let outcome = context.call(name.as_str().unwrap_or_default(), "{}").await;
                outcome.status.as_str().clone_into(&mut last);
            }
            Ok(ToolResult::text(last))
        })
    })
    .arc()
}

/// Returns a tool that reads what another run noted about a page: it connects to nothing.
fn recall() -> Arc<dyn haft::tool::Tool> {
    TestTool::with_body(TestTool::echo("recall"), |_, context| {
        Box::pin(async move {
            let source = UntrustedSource::recorded("host evil.example: https://evil.example/page");
            context.note_untrusted(vec![source]);
            Ok(ToolResult::text("a note"))
        })
    })
    .arc()
}

fn tools() -> ToolRegistry {
    let tools = ToolRegistry::new();
    let all = [
        page("read_page", "evil.example"),
        page("send", "docs.example"),
        script(),
        recall(),
    ];
    tools.add_all(all).unwrap();
    tools
}

/// A policy under which reading the page needs no question.
fn policy() -> PolicyBuilder {
    Policy::builder(Profile::Trusted)
        .allow("read_page")
        .allow("WebFetch(domain:evil.example)")
        .allow("script")
        .guard(UntrustedContent::new(Verdict::Ask))
}

fn allowing() -> PolicyBuilder {
    policy().allow("send").allow("WebFetch(domain:*)")
}

async fn call(executor: &Executor, session: &Session, name: &str) -> Outcome {
    executor.execute(session, ToolCall::new(name, "{}")).await
}

fn words(outcome: &Outcome) -> &str {
    outcome.error.as_ref().map_or("", |error| &error.message)
}

#[tokio::test]
async fn an_automatic_approver_of_any_level_answers_no_guard() {
    for level in [Risk::Safe, Risk::High, Risk::Critical] {
        for asked_by_rule in [false, true] {
            let policy = if asked_by_rule {
                // A rule that asks too does not hide that the guard does.
                policy().ask("send")
            } else {
                allowing()
            };
            let executor = Executor::new(policy.build().unwrap());
            let executor = executor.with_approver(AutoApprove::up_to(level));
            let session = Session::new(tools());
            if level >= Risk::High {
                let before = call(&executor, &session, "send").await;
                assert_eq!(before.status, Status::Ok, "{level}: {}", words(&before));
            }
            let session = Session::new(tools());
            assert!(call(&executor, &session, "read_page").await.is_ok());
            let after = call(&executor, &session, "send").await;
            assert_eq!(
                after.status,
                Status::Denied,
                "{level}, rule: {asked_by_rule}"
            );
            // A person's answer lets it run.
            let executor = executor.with_approver(ConsentingPerson);
            assert!(call(&executor, &session, "send").await.is_ok());
        }
    }
}

#[tokio::test]
async fn the_answer_of_the_time_before_is_none_after_untrusted_content() {
    for scope in [
        ApprovalScope::Once,
        ApprovalScope::Session,
        ApprovalScope::Always,
    ] {
        for asking in [policy(), policy().ask("send")] {
            let yes = Decision::approve("ann", "test").hold_for(scope);
            let answers = [yes.into(), ApproverReply::Later];
            let approver = Arc::new(ScriptedApprover::new(answers));
            let executor = Executor::new(asking.build().unwrap())
                .with_inbox(Arc::new(MemoryInbox::new()))
                .with_approver(Arc::clone(&approver));
            let session = Session::new(tools());
            assert!(call(&executor, &session, "send").await.is_ok());
            assert!(call(&executor, &session, "recall").await.is_ok());
            let after = call(&executor, &session, "send").await;
            assert_eq!(
                after.status,
                Status::Suspended,
                "{scope:?}: {}",
                words(&after)
            );
            let asked = approver.asked.lock();
            let request = asked.last().unwrap();
            let by_guard = request
                .causes
                .iter()
                .any(|cause| (cause.kind, &*cause.name) == (CauseKind::Guard, "untrusted-content"));
            assert!(by_guard && request.needs_person(), "{:?}", request.causes);
            assert!(request.is_decided_each_time());
        }
    }
}

#[tokio::test]
async fn an_answer_to_the_guard_holds_for_one_call() {
    let yes =
        || ApproverReply::from(Decision::approve("ann", "test").hold_for(ApprovalScope::Session));
    let approver = Arc::new(ScriptedApprover::new([yes(), yes()]));
    let executor = Executor::new(allowing().build().unwrap()).with_approver(Arc::clone(&approver));
    let session = Session::new(tools());
    for name in ["read_page", "send", "send"] {
        assert!(call(&executor, &session, name).await.is_ok());
    }
    assert_eq!(approver.asked.lock().len(), 2);
    assert_eq!(
        call(&executor, &session, "send").await.status,
        Status::Denied
    );
}

#[tokio::test]
async fn nested_calls_and_calls_by_name_are_judged_with_the_marks_of_their_run() {
    let executor = Executor::new(allowing().build().unwrap());
    let session = Session::new(tools());
    let both = json!({"calls": ["read_page", "send"]}).to_string();
    let outcome = executor
        .execute(&session, ToolCall::new("script", both))
        .await;
    assert_eq!(outcome.text(), "denied");
    // What a script read marks the calls after it, too.
    let after = call(&executor, &session, "send").await;
    assert_eq!(after.status, Status::Denied);
    let session = Session::new(tools().lazily(LazyListing::default()).unwrap());
    for (name, status) in [("read_page", Status::Ok), ("send", Status::Denied)] {
        let by_name = json!({"tool": name, "arguments": {}}).to_string();
        let outcome = executor
            .execute(&session, ToolCall::new(CALL_TOOL, by_name))
            .await;
        assert_eq!((outcome.status, outcome.tool.as_str()), (status, name));
    }
}

/// A request of a suspended call.
struct Suspended {
    inbox: Arc<MemoryInbox>,
    session: Session,
    id: ApprovalId,
}

/// Makes a call of `send` that waits for a decision.
async fn suspended(policy: PolicyBuilder) -> (Executor, Suspended) {
    let inbox = Arc::new(MemoryInbox::new());
    let executor = Executor::new(policy.build().unwrap())
        .with_inbox(Arc::clone(&inbox) as _)
        .with_approver(ScriptedApprover::new([ApproverReply::Later]));
    let tools = tools().lazily(LazyListing::default()).unwrap();
    let session = Session::new(tools);
    let waits = call(&executor, &session, "send").await;
    assert_eq!(waits.status, Status::Suspended, "{}", words(&waits));
    let id = ApprovalId::new(waits.approval.as_deref().unwrap());
    (executor, Suspended { inbox, session, id })
}

#[tokio::test]
async fn an_approval_of_the_time_before_does_not_resume_a_call_that_the_guard_now_asks_about() {
    let (executor, waits) = suspended(policy()).await;
    let (session, id) = (&waits.session, &waits.id);
    let read = call(&executor, session, "read_page").await;
    assert!(read.is_ok(), "{}", words(&read));
    let yes = Decision::approve("ann", "test");
    waits.inbox.decide(id, &yes).await.unwrap();
    let outcome = executor.resume(session, id).await.unwrap();
    assert_eq!(outcome.status, Status::Error, "{outcome:?}");
    let said = words(&outcome);
    assert!(
        said.contains("the guard untrusted-content now asks about it"),
        "{said}"
    );
    assert!(said.contains("https://evil.example/page"), "{said}");
}

#[tokio::test]
async fn a_request_is_decided_only_where_nothing_that_restricted_it_is_missing() {
    let rows: [(PolicyBuilder, Option<&str>); 5] = [
        (policy().deny("Read(/conf/key)"), None),
        (policy().deny("Read(/conf/key)").deny("Read(/other)"), None),
        (policy(), Some("the deny rule Read(/conf/key)")),
        (
            policy().ask("Read(/conf/key)"),
            Some("the deny rule Read(/conf/key)"),
        ),
        (
            Policy::builder(Profile::Trusted).deny("Read(/conf/key)"),
            Some("the guard untrusted-content"),
        ),
    ];
    for (there, missing) in rows {
        let (_, waits) = suspended(policy().deny("Read(/conf/key)")).await;
        let (session, id) = (&waits.session, &waits.id);
        let yes = Decision::approve("ann", "test");
        waits.inbox.decide(id, &yes).await.unwrap();
        let executor =
            Executor::new(there.build().unwrap()).with_inbox(Arc::clone(&waits.inbox) as _);
        let stored = waits.inbox.get(id).await.unwrap().unwrap().request;
        let checked = executor.check_request(session, &stored).await;
        let outcome = executor.resume(session, id).await.unwrap();
        let Some(missing) = missing else {
            assert!(outcome.is_ok() && checked.is_ok(), "{outcome:?}");
            continue;
        };
        let said = words(&outcome);
        assert!(
            said.contains(missing) && said.contains("nothing ran"),
            "{said}"
        );
        assert!(checked.unwrap_err().message.contains(missing));
    }
}

#[tokio::test]
async fn a_request_of_an_earlier_version_is_decided_by_a_person_for_one_call() {
    let (executor, waits) = suspended(policy()).await;
    let stored = waits.inbox.get(&waits.id).await.unwrap().unwrap().request;
    let mut text = serde_json::to_value(&stored).unwrap();
    let members = text.as_object_mut().unwrap();
    assert!(members.remove("causes").is_some() && members.remove("safeguards").is_some());
    let earlier: haft::ApprovalRequest = serde_json::from_value(text).unwrap();
    assert!(earlier.needs_person() && earlier.is_decided_each_time());
    assert!(
        executor
            .check_request(&waits.session, &earlier)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn what_is_read_between_two_calls_is_in_the_record_of_the_next() {
    let sink = Arc::new(MemoryAudit::new());
    let executor = Executor::new(allowing().build().unwrap()).with_audit(Arc::clone(&sink) as _);
    let kept: Arc<parking_lot::Mutex<Option<haft::context::CurrentRules>>> = Arc::default();
    let slot = Arc::clone(&kept);
    let tools = tools();
    let starts = TestTool::with_body(TestTool::echo("starts"), move |_, context| {
        *slot.lock() = Some(context.rules());
        Box::pin(async { Ok(ToolResult::text("started")) })
    });
    tools.add_all([starts.arc()]).unwrap();
    let session = Session::new(tools);
    assert!(call(&executor, &session, "starts").await.is_ok());
    let rules = kept.lock().take().unwrap();
    // It runs in the background, after its call.
    rules.note_connected("starts", "https://evil.example/", "evil.example");
    assert_eq!(
        call(&executor, &session, "send").await.status,
        Status::Denied
    );
    let recorded: Vec<String> = sink
        .events()
        .iter()
        .flat_map(|event| match &event.what {
            haft::audit::EventKind::CallEnded(_, end) => end.untrusted.clone(),
            _ => Vec::new(),
        })
        .collect();
    assert_eq!(
        recorded,
        ["host evil.example: https://evil.example/ by starts"]
    );
}
