//! The pipeline table: the outcome of a call and the events that it leaves, through every entry point of the library.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::session::Activation;
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::{
    ApproverReply, Decision, Executor, Outcome, Policy, Risk, RunLimits, Session, Status, ToolCall,
    ToolError, ToolResult,
};
use serde_json::{Value, json};

mod by_name;

/// A row: the setup, the call and the expected result.
struct Row {
    name: &'static str,
    policy: Policy,
    tool: &'static str,
    arguments: &'static str,
    answer: Option<ApproverReply>,
    limits: RunLimits,
    /// The tools that the active skill restricts the run to, if a skill is active.
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
        limits: RunLimits::default(),
        skill: None,
        expect,
        lines,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a row's answer is optional")]
fn yes(edited: Option<&str>) -> Option<ApproverReply> {
    let yes = Decision::approve("ann", "test");
    Some(match edited {
        Some(edited) => yes.with_arguments(edited).into(),
        None => yes.into(),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a row's answer is optional")]
fn no() -> Option<ApproverReply> {
    Some(
        Decision::deny("ann", "test")
            .with_message("not today")
            .into(),
    )
}

const RAN: &[&str] = &["run", "started", "ended:ok"];
const REFUSED: &[&str] = &["run", "ended:error"];
const DENIED: &[&str] = &["run", "ended:denied"];

#[expect(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Row> {
    let ms = |n| RunLimits {
        call_timeout: Duration::from_millis(n),
        ..RunLimits::default()
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

/// The number of times that a tool ran, as the tool itself counts it.
type Ran = Arc<AtomicUsize>;

/// Returns a tool that counts its runs and then does `body`.
fn noting(
    spec: haft::ToolSpec,
    ran: &Ran,
    body: impl Fn(Value) -> Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send>>
    + Send
    + Sync
    + 'static,
) -> Arc<dyn haft::Tool> {
    let ran = Arc::clone(ran);
    TestTool::with_body(spec, move |value, _| {
        ran.fetch_add(1, Ordering::SeqCst);
        body(value)
    })
    .arc()
}

fn tools(ran: &Ran) -> ToolRegistry {
    let strict = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let spec = |name: &str| TestTool::echo(name);
    let echo = |spec| {
        noting(spec, ran, |value| {
            Box::pin(async move { ToolResult::data(&value) })
        })
    };
    let risky = |name: &str, risk| {
        echo(haft::ToolSpec {
            risk,
            ..TestTool::echo(name)
        })
    };
    let strict_spec = |name: &str| haft::ToolSpec {
        input_schema: Arc::new(strict.clone()),
        ..spec(name)
    };
    let exposed = |name: &str, exposure| {
        echo(haft::ToolSpec {
            exposure,
            ..spec(name)
        })
    };
    let tools = ToolRegistry::new();
    let all = [
        risky("safe", Risk::Safe),
        risky("high", Risk::High),
        risky("critical", Risk::Critical),
        echo(strict_spec("strict")),
        echo(haft::ToolSpec {
            risk: Risk::High,
            ..strict_spec("strict_high")
        }),
        noting(spec("fails"), ran, |_| {
            Box::pin(async { Err(ToolError::failed("no luck")) })
        }),
        noting(spec("panics"), ran, |_| Box::pin(async { panic!("oh") })),
        noting(spec("sleeps"), ran, |_| Box::pin(std::future::pending())),
        echo(haft::ToolSpec {
            output_schema: Some(Arc::new(json!({"type": "object", "required": ["x"]}))),
            ..spec("lies")
        }),
        exposed("hidden", haft::Exposure::Hidden),
        exposed("unlisted", haft::Exposure::Unlisted),
        exposed("deferred", haft::Exposure::Deferred),
        nest(),
    ];
    tools.add_all(all).unwrap();
    tools
}

/// Returns a tool that makes the call named in its arguments, through its context.
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

/// The environment of a row.
struct Scene {
    executor: Executor,
    session: Session,
    audit: Arc<MemoryAudit>,
    ran: Ran,
}

fn scene(row: &Row) -> Scene {
    scene_of(row, |tools| Arc::new(tools))
}

fn scene_of(row: &Row, served: impl Fn(ToolRegistry) -> Arc<dyn Toolset>) -> Scene {
    let audit = Arc::new(MemoryAudit::new());
    let mut executor = Executor::new(row.policy.clone()).with_audit(Arc::clone(&audit) as _);
    if let Some(answer) = &row.answer {
        executor = executor.with_approver(ScriptedApprover::new([answer.clone()]));
    }
    let ran = Ran::default();
    let session = Session::builder(served(tools(&ran)))
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
    Scene {
        executor,
        session,
        audit,
        ran,
    }
}

/// The result of a call: its status, its events, and how often the tool counted a run.
type Came = (Status, Vec<String>, usize);

fn expected(row: &Row) -> Came {
    let lines = strings(row.lines);
    let started = lines.iter().filter(|line| *line == "started").count();
    (row.expect, lines, started)
}

async fn execute(row: &Row) -> Came {
    let scene = scene(row);
    let outcome: Outcome = scene
        .executor
        .execute(&scene.session, ToolCall::new(row.tool, row.arguments))
        .await;
    assert_eq!(
        outcome.is_ok(),
        outcome.error.is_none(),
        "{}: ok and error disagree",
        row.name
    );
    let ran = scene.ran.load(Ordering::SeqCst);
    (outcome.status, scene.audit.words(), ran)
}

async fn nested(row: &Row) -> Came {
    let row = Row {
        limits: RunLimits {
            call_timeout: row.limits.call_timeout,
            ..RunLimits::default()
        },
        ..copy(row)
    };
    let scene = scene(&row);
    let arguments = json!({"tool": row.tool, "arguments": row.arguments}).to_string();
    let outer = scene
        .executor
        .execute(&scene.session, ToolCall::new("nest", arguments))
        .await;
    let words = scene.audit.words();
    // The outer call's events surround those of the inner call.
    let inner: Vec<String> = words
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != 1 && *i + 1 != words.len())
        .map(|(_, w)| w.clone())
        .collect();
    let status = outer
        .data
        .as_ref()
        .map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap());
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
    let status = all.into_iter().find(|s| s.as_str() == word).unwrap();
    (status, inner, scene.ran.load(Ordering::SeqCst))
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
        assert_eq!(execute(&row).await, expected(&row), "{}", row.name);
    }
}

#[tokio::test]
async fn every_row_holds_for_a_nested_call() {
    for row in rows() {
        if row.expect == Status::Timeout {
            // The outer call has the same limit and ends first: the timeout is its own.
            continue;
        }
        assert_eq!(nested(&row).await, expected(&row), "{}", row.name);
    }
}

#[tokio::test]
async fn e6_no_entry_point_runs_a_tool_past_a_rule_that_denies_it() {
    // The tools' own counts depend on no stage, so an entry point that skips clearing fails here.
    let tools = ["safe", "high", "critical", "fails", "panics", "unlisted"];
    for tool in tools {
        let denying = |profile| {
            let rules = haft::policy::RuleSet {
                deny: vec![tool.into()],
                allow: vec!["*".into()],
                ..haft::policy::RuleSet::default()
            };
            haft::Policy::new(profile).with_rules(rules).unwrap()
        };
        for profile in [haft::Profile::Trusted, haft::Profile::ReadOnly] {
            let denied = Row {
                answer: yes(None),
                ..row("denied", denying(profile), tool, Status::Denied, DENIED)
            };
            assert_eq!(execute(&denied).await, expected(&denied), "{tool}");
            assert_eq!(nested(&denied).await, expected(&denied), "{tool}");
        }
        let allowed = haft::policy::RuleSet {
            allow: vec!["*".into()],
            ..haft::policy::RuleSet::default()
        };
        let allowed = haft::Policy::trusted().with_rules(allowed).unwrap();
        let allowed = row("allowed", allowed, tool, Status::Ok, RAN);
        assert_eq!(
            (execute(&allowed).await.2, nested(&allowed).await.2),
            (1, 1)
        );
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}
