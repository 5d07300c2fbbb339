//! The life of a run: budget, cancellation, dropped calls, failing sinks, order of a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::audit::{AuditError, AuditEvent, AuditSink, EventKind};
use haft::testing::{MemoryAudit, TestTool};
use haft::toolset::registry::ToolRegistry;
use haft::{
    ErrorKind, Executor, Policy, Risk, RunLimits, Session, Status, ToolCall, ToolError, ToolResult,
    ToolSpec,
};
use tokio::sync::{Barrier, Notify};

fn session(tools: impl IntoIterator<Item = Arc<dyn haft::Tool>>, limits: RunLimits) -> Session {
    let registry = ToolRegistry::new();
    registry.add_all(tools).unwrap();
    Session::builder(Arc::new(registry))
        .with_limits(limits)
        .build()
        .unwrap()
}

/// Returns a tool that never finishes by itself and signals when it has started.
fn sleeper(begun: &Arc<Notify>) -> Arc<dyn haft::Tool> {
    let begun = Arc::clone(begun);
    TestTool::with_body(TestTool::echo("sleep"), move |_, _| {
        begun.notify_one();
        Box::pin(std::future::pending())
    })
    .arc()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_spend_the_budget_exactly() {
    let limits = RunLimits {
        max_calls: 6_000,
        ..RunLimits::default()
    };
    let spec = ToolSpec {
        concurrency_safe: true,
        ..TestTool::echo("echo")
    };
    let session = session([TestTool::of(spec).arc()], limits);
    let executor = Executor::new(Policy::workspace());
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..10_000 {
        let (executor, session) = (executor.clone(), session.clone());
        running.spawn(async move {
            executor
                .execute(&session, ToolCall::new("echo", "{}"))
                .await
        });
    }
    let outcomes = running.join_all().await;
    let ok = outcomes.iter().filter(|o| o.is_ok()).count();
    let over = outcomes
        .iter()
        .filter_map(|o| o.error.as_ref())
        .filter(|e| e.kind == ErrorKind::Budget);
    assert_eq!((ok, over.count()), (6_000, 4_000));
}

#[tokio::test]
async fn a_dropped_call_is_recorded_as_cancelled() {
    let audit = Arc::new(MemoryAudit::new());
    let executor = Executor::new(Policy::workspace()).with_audit(Arc::clone(&audit) as _);
    let begun = Arc::new(Notify::new());
    let session = session([sleeper(&begun)], RunLimits::default());
    tokio::select! {
        outcome = executor.execute(&session, ToolCall::new("sleep", "{}")) => panic!("{outcome:?}"),
        () = begun.notified() => {}
    }
    assert_eq!(audit.words(), ["run", "started", "ended:cancelled"]);
}

#[tokio::test]
async fn a_cancelled_session_ends_its_calls_and_refuses_more() {
    let executor = Executor::new(Policy::workspace());
    let begun = Arc::new(Notify::new());
    let session = session([sleeper(&begun)], RunLimits::default());
    let later = session.clone();
    tokio::spawn(async move {
        begun.notified().await;
        later.cancel();
    });
    let outcome = executor
        .execute(&session, ToolCall::new("sleep", "{}"))
        .await;
    assert_eq!(outcome.status, Status::Cancelled);
    let outcome = executor
        .execute(&session, ToolCall::new("sleep", "{}"))
        .await;
    assert_eq!(outcome.status, Status::Cancelled);
}

#[tokio::test]
async fn a_sink_that_fails_refuses_the_call_before_it_runs() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ran);
    let tool = TestTool::with_body(
        ToolSpec {
            risk: Risk::High,
            ..TestTool::echo("write")
        },
        move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(ToolResult::default()) })
        },
    );
    let executor =
        Executor::new(Policy::trusted()).with_audit(Arc::new(MemoryAudit::failing_after(1)));
    let outcome = executor
        .execute(
            &session([tool.arc()], RunLimits::default()),
            ToolCall::new("write", "{}"),
        )
        .await;
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Unavailable);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_batch_runs_only_concurrency_safe_calls_side_by_side() {
    let at_once = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let all = Arc::new(Barrier::new(4));
    let tool = |name: &str, concurrency_safe| {
        let (seen, all) = (Arc::clone(&at_once), Arc::clone(&all));
        TestTool::with_body(
            ToolSpec {
                concurrency_safe,
                ..TestTool::echo(name)
            },
            move |_, _| {
                let (seen, all) = (Arc::clone(&seen), Arc::clone(&all));
                Box::pin(async move {
                    let now = seen.0.fetch_add(1, Ordering::SeqCst) + 1;
                    seen.1.fetch_max(now, Ordering::SeqCst);
                    if concurrency_safe {
                        // Finishes only once all of them have started.
                        all.wait().await;
                    }
                    // Lets everything else run that can.
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    seen.0.fetch_sub(1, Ordering::SeqCst);
                    Ok(ToolResult::default())
                })
            },
        )
        .arc()
    };
    let session = session(
        [tool("safe", true), tool("alone", false)],
        RunLimits::default(),
    );
    let executor = Executor::new(Policy::workspace());
    let calls = |name: &str| {
        (0..4)
            .map(|n| ToolCall::new(name, "{}").with_id(n.to_string()))
            .collect()
    };
    let outcomes = executor.execute_all(&session, calls("alone")).await;
    assert_eq!(at_once.1.swap(0, Ordering::SeqCst), 1);
    assert_eq!(
        outcomes.iter().map(|o| o.call.as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "3"]
    );
    executor.execute_all(&session, calls("safe")).await;
    assert_eq!(at_once.1.load(Ordering::SeqCst), 4);
}

#[test]
fn limits_that_make_no_sense_are_refused_when_built() {
    let check = |limits: RunLimits| {
        Session::builder(Arc::new(ToolRegistry::new()))
            .with_limits(limits)
            .build()
            .is_err()
    };
    assert!(check(RunLimits {
        max_calls: 0,
        ..RunLimits::default()
    }));
    assert!(check(RunLimits {
        inline_tokens: 0,
        ..RunLimits::default()
    }));
    assert!(check(RunLimits {
        call_timeout: Duration::from_secs(7200),
        ..RunLimits::default()
    }));
    assert!(!check(RunLimits::default()));
}

/// Returns a tool whose own time limit is far beyond the run's.
fn slow(name: &'static str) -> ToolSpec {
    ToolSpec {
        timeout: Some(Duration::from_hours(1)),
        ..TestTool::echo(name)
    }
}

#[tokio::test]
async fn f4_the_limit_of_a_call_bounds_every_tool_and_keeps_what_it_has() {
    let deaf = TestTool::with_body(slow("deaf"), |_, _| {
        Box::pin(async { std::future::pending().await })
    });
    let listening = TestTool::with_body(slow("listening"), |_, context| {
        Box::pin(async move {
            let ending = context.ending().await;
            Ok(ToolResult::text(format!("so far ({ending:?})")))
        })
    });
    let blocking = TestTool::with_body(slow("blocking"), |_, context| {
        // slow on purpose: it blocks its thread for longer than its limit.
        std::thread::sleep(context.limit() * 2);
        Box::pin(async { Ok(ToolResult::text("too late")) })
    });
    let limits = RunLimits {
        call_timeout: Duration::from_millis(150),
        ..RunLimits::default()
    };
    let session = session([deaf.arc(), listening.arc(), blocking.arc()], limits);
    let executor = Executor::new(Policy::workspace());
    for (tool, text) in [
        ("deaf", ""),
        ("listening", "so far (Late)"),
        ("blocking", "too late"),
    ] {
        let outcome = executor.execute(&session, ToolCall::new(tool, "{}")).await;
        assert_eq!(outcome.status, Status::Timeout, "{tool}");
        assert_eq!(outcome.text(), text, "{tool}");
        let said = outcome.error.unwrap().message;
        // U6: only the operator is told the name of the setting.
        let expect = "the call was stopped after 0.15 s by the time limit of each call";
        assert_eq!(said, expect, "{tool}");
        let raise = outcome.operator.unwrap();
        assert_eq!(raise, "raise limits.call_timeout_s", "{tool}");
    }
}

#[tokio::test]
async fn j12_a_cancelled_tool_that_listens_gives_what_it_has() {
    let (begun, waits) = tokio::sync::oneshot::channel();
    let begun = parking_lot::Mutex::new(Some(begun));
    let listening = TestTool::with_body(slow("listening"), move |_, context| {
        let begun = begun.lock().take();
        Box::pin(async move {
            let ending = std::pin::pin!(context.ending());
            begun.unwrap().send(()).unwrap();
            Ok(ToolResult::text(format!("so far ({:?})", ending.await)))
        })
    });
    let session = session([listening.arc()], RunLimits::default());
    let executor = Executor::new(Policy::workspace());
    let cancel = async {
        waits.await.unwrap();
        session.cancel();
    };
    let call = executor.execute(&session, ToolCall::new("listening", "{}"));
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(outcome.text(), "so far (Cancelled)");
}

/// A sink that panics at every event that matches.
#[derive(Debug)]
struct Breaking(At);

type At = fn(&EventKind) -> bool;

impl AuditSink for Breaking {
    fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        assert!(!(self.0)(&event.what), "the sink is broken");
        Ok(())
    }
}

#[tokio::test]
async fn row45_a_sink_that_panics_costs_no_answer_and_lets_nothing_run_unrecorded() {
    // The event at which it panics, the tool's risk, and whether the call runs.
    let rows: [(At, Risk, bool); 5] = [
        (
            |what| matches!(what, EventKind::RunStarted(_)),
            Risk::Safe,
            false,
        ),
        (
            |what| matches!(what, EventKind::CallStarted(_)),
            Risk::Safe,
            false,
        ),
        (
            |what| matches!(what, EventKind::CallStarted(_)),
            Risk::High,
            false,
        ),
        (
            |what| matches!(what, EventKind::CallEnded(..)),
            Risk::Safe,
            true,
        ),
        (
            |what| matches!(what, EventKind::CallEnded(..)),
            Risk::High,
            true,
        ),
    ];
    for (nth, (breaks, risk, runs)) in rows.into_iter().enumerate() {
        let spec = ToolSpec {
            risk,
            ..TestTool::echo("echo")
        };
        let session = session([TestTool::of(spec).arc()], RunLimits::default());
        let executor = Executor::new(Policy::trusted()).with_audit(Arc::new(Breaking(breaks)));
        let outcome = executor
            .execute(&session, ToolCall::new("echo", "{}"))
            .await;
        assert_eq!(outcome.is_ok(), runs, "row {nth}: {outcome:?}");
        let kind = outcome.error.map(|error| error.kind);
        assert_eq!(kind, (!runs).then_some(ErrorKind::Unavailable), "row {nth}");
        executor.close(&session).unwrap();
    }
}

#[tokio::test]
async fn a_tool_that_sees_the_cancellation_first_is_cancelled_not_failed() {
    let body = |gives: fn() -> Result<ToolResult, ToolError>| {
        TestTool::with_body(TestTool::echo("see"), move |_, context| {
            Box::pin(async move {
                context.cancelled().await;
                gives()
            })
        })
    };
    let rows = [
        (
            body(|| Err(ToolError::failed("interrupted"))),
            Status::Cancelled,
        ),
        (
            body(|| Ok(ToolResult::text("half").with_error(ToolError::failed("interrupted")))),
            Status::Cancelled,
        ),
        (body(|| Ok(ToolResult::text("whole"))), Status::Ok),
    ];
    for (tool, expected) in rows {
        let session = session([tool.arc()], RunLimits::default());
        let executor = Executor::new(Policy::workspace());
        let call = executor.execute(&session, ToolCall::new("see", "{}"));
        let cancel = async { session.cancel() };
        let (outcome, ()) = tokio::join!(call, cancel);
        assert_eq!(outcome.status, expected, "{outcome:?}");
    }
}
