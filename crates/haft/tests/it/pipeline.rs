//! The pipeline table: what a call comes to, and which lines it leaves, by every door inside the library.

use std::sync::Arc;
use std::time::Duration;

use haft::session::Activation;
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::toolset::registry::ToolRegistry;
use haft::{
    Answer, Decision, Executor, Limits, Outcome, Policy, Risk, Session, Status, ToolCall,
    ToolError, ToolResult,
};
use serde_json::json;

/// A row: what is set up, what is called, what must come of it.
struct Row {
    name: &'static str,
    policy: Policy,
    tool: &'static str,
    arguments: &'static str,
    answer: Option<Answer>,
    limits: Limits,
    /// What a skill that is active restricts the run to, where one is.
    skill: Option<&'static [&'static str]>,
    expect: Status,
    lines: &'static [&'static str],
}

fn row(
    name: &'static str,
    policy: Policy,
    tool: &'static str,
    expect: Status,
    lines: &'static [&'static str],
) -> Row {
    Row {
        name,
        policy,
        tool,
        arguments: "{}",
        answer: None,
        limits: Limits::default(),
        skill: None,
        expect,
        lines,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a row's answer is optional")]
fn yes(edited: Option<&str>) -> Option<Answer> {
    let yes = Decision::approve("ann", "test");
    Some(match edited {
        Some(edited) => yes.editing(edited).into(),
        None => yes.into(),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a row's answer is optional")]
fn no() -> Option<Answer> {
    Some(Decision::deny("ann", "test").saying("not today").into())
}

const RAN: &[&str] = &["run", "started", "ended:ok"];
const REFUSED: &[&str] = &["run", "ended:error"];
const DENIED: &[&str] = &["run", "ended:denied"];

#[expect(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Row> {
    let ms = |n| Limits {
        call_timeout: Duration::from_millis(n),
        ..Limits::default()
    };
    vec![
        row("safe runs", Policy::workspace(), "safe", Status::Ok, RAN),
        row(
            "safe runs read-only",
            Policy::read_only(),
            "safe",
            Status::Ok,
            RAN,
        ),
        row(
            "high is denied read-only",
            Policy::read_only(),
            "high",
            Status::Denied,
            DENIED,
        ),
        row(
            "high without approver is denied",
            Policy::workspace(),
            "high",
            Status::Denied,
            DENIED,
        ),
        Row {
            answer: yes(None),
            ..row(
                "high approved runs",
                Policy::workspace(),
                "high",
                Status::Ok,
                RAN,
            )
        },
        Row {
            answer: no(),
            ..row(
                "high refused is denied",
                Policy::workspace(),
                "high",
                Status::Denied,
                DENIED,
            )
        },
        row(
            "critical is asked when trusted",
            Policy::trusted(),
            "critical",
            Status::Denied,
            DENIED,
        ),
        Row {
            answer: yes(None),
            ..row(
                "critical approved runs",
                Policy::trusted(),
                "critical",
                Status::Ok,
                RAN,
            )
        },
        Row {
            answer: yes(Some(r#"{"n":"x"}"#)),
            arguments: r#"{"n":1}"#,
            ..row(
                "edited arguments are checked again",
                Policy::workspace(),
                "strict_high",
                Status::Error,
                REFUSED,
            )
        },
        row(
            "unknown tool",
            Policy::workspace(),
            "saef",
            Status::Error,
            REFUSED,
        ),
        Row {
            arguments: r#"{"n":"five"}"#,
            ..row(
                "wrong arguments",
                Policy::workspace(),
                "strict",
                Status::Error,
                REFUSED,
            )
        },
        Row {
            arguments: r#"{"n":1,"n":2}"#,
            ..row(
                "duplicate keys",
                Policy::workspace(),
                "strict",
                Status::Error,
                REFUSED,
            )
        },
        Row {
            arguments: "{",
            ..row(
                "truncated arguments",
                Policy::workspace(),
                "strict",
                Status::Error,
                REFUSED,
            )
        },
        Row {
            arguments: r#"{"n":"5"}"#,
            ..row(
                "an obvious mistype is coerced",
                Policy::workspace(),
                "strict",
                Status::Ok,
                RAN,
            )
        },
        row(
            "a failing tool is an error",
            Policy::workspace(),
            "fails",
            Status::Error,
            &["run", "started", "ended:error"],
        ),
        row(
            "a panic is an error",
            Policy::workspace(),
            "panics",
            Status::Error,
            &["run", "started", "ended:error"],
        ),
        Row {
            limits: ms(20),
            ..row(
                "a slow tool times out",
                Policy::workspace(),
                "sleeps",
                Status::Timeout,
                &["run", "started", "ended:timeout"],
            )
        },
        row(
            "a wrong output is an error",
            Policy::workspace(),
            "lies",
            Status::Error,
            &["run", "started", "ended:error"],
        ),
        row(
            "a hidden tool is unknown",
            Policy::workspace(),
            "hidden",
            Status::Error,
            REFUSED,
        ),
        row(
            "an unlisted tool runs",
            Policy::workspace(),
            "unlisted",
            Status::Ok,
            RAN,
        ),
        row(
            "a deferred tool must be expanded",
            Policy::workspace(),
            "deferred",
            Status::Error,
            REFUSED,
        ),
        Row {
            skill: Some(&["nest", "safe"]),
            ..row(
                "what the active skill works with runs",
                Policy::workspace(),
                "safe",
                Status::Ok,
                RAN,
            )
        },
        Row {
            skill: Some(&["nest", "strict"]),
            ..row(
                "a safe tool outside the active skill is denied",
                Policy::trusted(),
                "safe",
                Status::Denied,
                DENIED,
            )
        },
        Row {
            skill: Some(&["nest", "safe"]),
            answer: yes(None),
            ..row(
                "nobody is asked about a tool outside the active skill",
                Policy::workspace(),
                "high",
                Status::Denied,
                DENIED,
            )
        },
        Row {
            skill: Some(&["nest", "high"]),
            ..row(
                "a skill grants nothing",
                Policy::workspace(),
                "high",
                Status::Denied,
                DENIED,
            )
        },
        Row {
            skill: Some(&["nest", "strict_high(n:1)"]),
            answer: yes(Some(r#"{"n":2}"#)),
            arguments: r#"{"n":1}"#,
            ..row(
                "no edit leads out of the active skill",
                Policy::workspace(),
                "strict_high",
                Status::Denied,
                DENIED,
            )
        },
        Row {
            skill: Some(&["nest"]),
            ..row(
                "an unknown tool stays unknown under a skill",
                Policy::workspace(),
                "saef",
                Status::Error,
                REFUSED,
            )
        },
    ]
}

fn tools() -> ToolRegistry {
    let strict = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let spec = |name: &str| TestTool::echo(name);
    let strict_spec = |name: &str| haft::ToolSpec {
        input_schema: Arc::new(strict.clone()),
        ..spec(name)
    };
    let exposed = |name: &str, exposure| {
        TestTool::of(haft::ToolSpec {
            exposure,
            ..spec(name)
        })
        .arc()
    };
    let tools = ToolRegistry::new();
    let all = [
        TestTool::risky("safe", Risk::Safe).arc(),
        TestTool::risky("high", Risk::High).arc(),
        TestTool::risky("critical", Risk::Critical).arc(),
        TestTool::of(strict_spec("strict")).arc(),
        TestTool::of(haft::ToolSpec {
            risk: Risk::High,
            ..strict_spec("strict_high")
        })
        .arc(),
        TestTool::with_body(spec("fails"), |_, _| {
            Box::pin(async { Err(ToolError::failed("no luck")) })
        })
        .arc(),
        TestTool::with_body(spec("panics"), |_, _| Box::pin(async { panic!("oh") })).arc(),
        TestTool::with_body(spec("sleeps"), |_, _| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(ToolResult::text("late"))
            })
        })
        .arc(),
        TestTool::of(haft::ToolSpec {
            output_schema: Some(Arc::new(json!({"type": "object", "required": ["x"]}))),
            ..spec("lies")
        })
        .arc(),
        exposed("hidden", haft::Exposure::Hidden),
        exposed("unlisted", haft::Exposure::Unlisted),
        exposed("deferred", haft::Exposure::Deferred),
        nest(),
    ];
    tools.add_all(all).unwrap();
    tools
}

/// A tool that makes the call it is told to make, through its context.
fn nest() -> Arc<dyn haft::Tool> {
    TestTool::with_body(TestTool::echo("nest"), |value, context| {
        Box::pin(async move {
            let (tool, arguments) = (
                value["tool"].as_str().unwrap(),
                value["arguments"].as_str().unwrap(),
            );
            let outcome = context.call(tool, arguments).await;
            ToolResult::data(&json!({"status": outcome.status.as_str()}))
        })
    })
    .arc()
}

fn setup(row: &Row, broken: bool) -> (Executor, Session, Arc<MemoryAudit>) {
    let audit = Arc::new(MemoryAudit::new());
    let mut executor = Executor::new(row.policy.clone()).with_audit(Arc::clone(&audit) as _);
    if let Some(answer) = &row.answer {
        executor = executor.with_approver(ScriptedApprover::new([answer.clone()]));
    }
    if broken {
        executor = executor.broken_without_clear();
    }
    let session = Session::builder(Arc::new(tools()))
        .with_limits(row.limits.clone())
        .build()
        .unwrap();
    if let Some(rules) = row.skill {
        let rules = strings(rules);
        let skill = Activation {
            name: "narrow",
            restricts_to: Some(&rules),
            ..Activation::default()
        };
        executor.activate(&session, &skill);
    }
    (executor, session, audit)
}

async fn execute(row: &Row, broken: bool) -> (Status, Vec<String>) {
    let (executor, session, audit) = setup(row, broken);
    let outcome: Outcome = executor
        .execute(&session, ToolCall::new(row.tool, row.arguments))
        .await;
    assert_eq!(
        outcome.is_ok(),
        outcome.error.is_none(),
        "{}: ok and error disagree",
        row.name
    );
    (outcome.status, audit.words())
}

async fn nested(row: &Row, broken: bool) -> (Status, Vec<String>) {
    let row = Row {
        limits: Limits {
            call_timeout: row.limits.call_timeout,
            ..Limits::default()
        },
        ..copy(row)
    };
    let (executor, session, audit) = setup(&row, broken);
    let arguments = json!({"tool": row.tool, "arguments": row.arguments}).to_string();
    let outer = executor
        .execute(&session, ToolCall::new("nest", arguments))
        .await;
    let words = audit.words();
    // The outer call's own lines stand round those of the inner one.
    let inner: Vec<String> = words
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != 1 && *i + 1 != words.len())
        .map(|(_, w)| w.clone())
        .collect();
    let status = outer
        .data
        .as_ref()
        .map(|raw| serde_json::from_str::<serde_json::Value>(raw.get()).unwrap());
    let word = status
        .and_then(|value| value["status"].as_str().map(str::to_owned))
        .unwrap_or_else(|| outer.status.as_str().to_owned());
    let all = [
        Status::Ok,
        Status::Error,
        Status::Denied,
        Status::Timeout,
        Status::Cancelled,
        Status::Suspended,
    ];
    (all.into_iter().find(|s| s.as_str() == word).unwrap(), inner)
}

fn copy(row: &Row) -> Row {
    Row {
        answer: row.answer.clone(),
        policy: row.policy.clone(),
        limits: row.limits.clone(),
        ..*row
    }
}

#[tokio::test]
async fn every_row_holds_for_a_direct_call() {
    for row in rows() {
        let (status, lines) = execute(&row, false).await;
        assert_eq!(
            (status, lines.as_slice()),
            (row.expect, strings(row.lines).as_slice()),
            "{}",
            row.name
        );
    }
}

#[tokio::test]
async fn every_row_holds_for_a_nested_call() {
    for row in rows() {
        if row.expect == Status::Timeout {
            // The outer call has the same limit and ends first: the timeout is its own.
            continue;
        }
        let (status, lines) = nested(&row, false).await;
        assert_eq!(
            (status, lines.as_slice()),
            (row.expect, strings(row.lines).as_slice()),
            "{}",
            row.name
        );
    }
}

#[tokio::test]
async fn an_executor_that_skips_clear_is_noticed_by_both_doors() {
    let mut noticed = (0, 0);
    for row in rows() {
        noticed.0 += usize::from(execute(&row, true).await.0 != row.expect);
        noticed.1 +=
            usize::from(row.expect != Status::Timeout && nested(&row, true).await.0 != row.expect);
    }
    assert!(noticed.0 >= 4 && noticed.1 >= 4, "{noticed:?}");
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}
