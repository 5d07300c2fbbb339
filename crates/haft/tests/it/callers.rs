//! A running tool sends requests to the client that made its call: which get an answer, which do not, and whose time the wait takes.

use std::sync::Arc;
use std::time::Duration;

use haft::caller::{Caller, CallerError, CallerRequest, LogLevel, RequestKind};
use haft::future::BoxFuture;
use haft::{
    CallContext, Executor, Policy, RunLimits, Session, Status, ToolCall, ToolRegistry, tool,
};
use parking_lot::Mutex;
use serde_json::value::RawValue;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A client that answers roots after a while, declines forms, and supports no other request.
#[derive(Default)]
struct Slow {
    logged: Mutex<Vec<String>>,
    dropped: Arc<Mutex<usize>>,
}

struct Dropped(Arc<Mutex<usize>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.0.lock() += 1;
    }
}

impl Caller for Slow {
    fn can(&self, kind: RequestKind) -> bool {
        matches!(
            kind,
            RequestKind::Roots | RequestKind::Form | RequestKind::Url
        )
    }

    fn ask(&self, request: CallerRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallerError>> {
        let kind = request.kind;
        let dropped = Dropped(Arc::clone(&self.dropped));
        Box::pin(async move {
            let _dropped = dropped;
            match kind {
                RequestKind::Roots => {
                    // slow on purpose: the clock is paused, and jumps.
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    Ok(raw(r#"{"roots":[], "x":12345678901234567890123}"#))
                }
                RequestKind::Form => Err(CallerError::Refused {
                    kind,
                    error: raw(r#"{"code":-1,"message":"not now"}"#),
                }),
                RequestKind::Url => std::future::pending().await,
                RequestKind::Sampling => Err(CallerError::Unsupported(kind)),
            }
        })
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        level >= LogLevel::Warning
    }

    fn log(&self, _: LogLevel, params: Box<RawValue>) {
        self.logged.lock().push(params.get().to_owned());
    }
}

/// Ask the caller.
#[tool(concurrency_safe)]
async fn asks(what: String, context: &CallContext) -> haft::Result<String> {
    let kind = match what.as_str() {
        "roots" => RequestKind::Roots,
        "form" => RequestKind::Form,
        "url" => RequestKind::Url,
        _ => RequestKind::Sampling,
    };
    let caller = context.caller();
    let caller = caller.ok_or_else(|| haft::ToolError::unavailable("no caller"))?;
    caller.log(LogLevel::Info, None, "too mild");
    caller.log(LogLevel::Error, Some("tool"), &[1, 2]);
    let answer = caller.ask(CallerRequest::new(kind, raw("{}"))).await?;
    Ok(answer.get().to_owned())
}

fn session() -> Session {
    let tools = ToolRegistry::new().with(asks).unwrap();
    let limits = RunLimits {
        call_timeout: Duration::from_secs(10),
        approval_timeout: Duration::from_secs(60),
        ..RunLimits::default()
    };
    let session = Session::builder(Arc::new(tools)).with_limits(limits);
    session.build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tool_gets_its_callers_answer_as_it_came_and_the_wait_is_not_its_time() {
    for (what, status, says) in [
        // The answer takes thirty seconds; the tool has a limit of ten.
        ("roots", Status::Ok, "12345678901234567890123"),
        ("form", Status::Error, "not now"),
        (
            "sampling",
            Status::Error,
            "did not declare the capability `sampling`",
        ),
        (
            "url",
            Status::Timeout,
            "did not answer elicitation/create in time",
        ),
    ] {
        let caller = Arc::new(Slow::default());
        let session = session().with_caller(Arc::clone(&caller) as _);
        let call = ToolCall::new("asks", format!(r#"{{"what":"{what}"}}"#));
        let outcome = Executor::new(Policy::trusted())
            .execute(&session, call)
            .await;
        let text = outcome.to_model();
        assert_eq!(outcome.status, status, "{what}: {text}");
        assert!(text.contains(says), "{what}: {text}");
        assert_eq!(*caller.dropped.lock(), 1);
        let logged = caller.logged.lock().join("\n");
        assert_eq!(logged, r#"{"level":"error","logger":"tool","data":[1,2]}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_session_ends_what_a_caller_is_asked() {
    let caller = Arc::new(Slow::default());
    let session = session();
    let asking = session.with_caller(Arc::clone(&caller) as _);
    let executor = Executor::new(Policy::trusted());
    let call = ToolCall::new("asks", r#"{"what":"url"}"#);
    let called = executor.execute(&asking, call);
    let cancelled = async {
        // slow on purpose: the clock is paused, and jumps.
        tokio::time::sleep(Duration::from_secs(1)).await;
        session.cancel();
    };
    let (outcome, ()) = tokio::join!(called, cancelled);
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(*caller.dropped.lock(), 1);
}

/// Change something.
#[tool]
fn changes() -> &'static str {
    "changed"
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_caller_keeps_no_other_call_waiting() {
    let tools = ToolRegistry::new()
        .with(asks)
        .unwrap()
        .with(changes)
        .unwrap();
    let session = Session::new(tools);
    let asking = session.with_caller(Arc::new(Slow::default()) as _);
    let executor = Executor::new(Policy::trusted());
    let waits = executor.execute(&asking, ToolCall::new("asks", r#"{"what":"roots"}"#));
    let beside = async {
        // slow on purpose: the clock is paused, and jumps.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = tokio::time::Instant::now();
        let outcome = executor
            .execute(&session, ToolCall::new("changes", "{}"))
            .await;
        (outcome.to_model(), begun.elapsed())
    };
    let (outcome, (changed, took)) = tokio::join!(waits, beside);
    assert_eq!((changed.as_str(), took), ("changed", Duration::ZERO));
    assert_eq!(outcome.status, Status::Ok);
}

/// Count on being called by the host alone.
#[tool(concurrency_safe)]
fn hidden() -> &'static str {
    "read"
}

#[tokio::test]
async fn a_host_calls_an_internal_tool_by_the_same_path_and_from_the_same_budget() {
    let internal = ToolRegistry::new().with(hidden).unwrap();
    let executor = Executor::new(Policy::trusted()).with_internal_tools(Arc::new(internal));
    let session = || {
        let limits = RunLimits {
            max_calls: 1,
            ..RunLimits::default()
        };
        let session = Session::builder(Arc::new(ToolRegistry::new())).with_limits(limits);
        session.build().unwrap()
    };
    let call = || ToolCall::new("hidden", "{}");
    let unseen = executor.execute(&session(), call()).await;
    assert!(
        unseen.to_model().contains("not_found"),
        "{}",
        unseen.to_model()
    );
    let read = session();
    assert_eq!(
        executor.execute_internal(&read, call()).await.to_model(),
        "read"
    );
    let spent = executor.execute_internal(&read, call()).await;
    assert!(
        spent.to_model().starts_with("budget"),
        "{}",
        spent.to_model()
    );
}
