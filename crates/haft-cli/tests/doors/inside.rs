//! The entry points inside a program that embeds the library: `execute`, and a call made by another tool.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::audit::EventKind;
use haft::policy::{RuleSet, RuleText};
use haft::testing::{MemoryAudit, TestTool};
use haft::toolset::view::ToolsetExt;
use haft::workspace::Workspace;
use haft::{
    AutoApprove, Executor, Policy, Profile, Risk, RunLimits, Session, ToolCall, ToolRegistry,
    ToolResult,
};
use haft_builtins::Builtins;
use serde_json::{Value, json};

use crate::table::{Got, Row};

/// Makes a direct call.
pub(crate) fn execute(scene: &tempfile::TempDir, row: &Row) -> Got {
    let house = House::build(scene.path(), row);
    let outcome = house.execute(row.tool, row.arguments);
    Got {
        status: outcome.status.as_str().into(),
        lines: house.lines(),
    }
}

/// Makes the same call by a tool through its context.
pub(crate) fn nested(scene: &tempfile::TempDir, row: &Row) -> Got {
    // The outer call outlives the inner one, whose deadline the row tests.
    let house = House::bounded(scene.path(), row, Duration::from_secs(600));
    let arguments = json!({"tool": row.tool, "arguments": row.arguments}).to_string();
    let outcome = house.execute("nest", &arguments);
    let data = outcome.data.as_ref();
    let data = data.unwrap_or_else(|| panic!("{}: {:?}", row.name, outcome.error));
    let inner: Value = serde_json::from_str(data.get()).unwrap();
    Got {
        status: inner["status"].as_str().unwrap().into(),
        lines: house.lines(),
    }
}

struct House {
    runtime: tokio::runtime::Runtime,
    executor: Executor,
    session: Session,
    audit: Arc<MemoryAudit>,
}

impl House {
    fn build(scene: &Path, row: &Row) -> Self {
        Self::bounded(scene, row, Duration::from_secs_f64(row.call_timeout_s))
    }

    fn bounded(scene: &Path, row: &Row, call_timeout: Duration) -> Self {
        let ws = scene.join("ws");
        let audit = Arc::new(MemoryAudit::new());
        let mut executor = Executor::new(policy(&ws, row)).with_audit(Arc::clone(&audit) as _);
        if let Some(risk) = row.auto {
            let risk = if risk == "high" {
                Risk::High
            } else {
                Risk::Safe
            };
            executor = executor.with_approver(AutoApprove::up_to(risk));
        }
        let limits = RunLimits {
            call_timeout,
            ..RunLimits::default()
        };
        let session = Session::builder(Arc::new(tools(&ws, row)))
            .with_limits(limits)
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            runtime,
            executor,
            session,
            audit,
        }
    }

    fn execute(&self, tool: &str, arguments: &str) -> haft::Outcome {
        self.runtime.block_on(
            self.executor
                .execute(&self.session, ToolCall::new(tool, arguments)),
        )
    }

    fn lines(&self) -> Vec<String> {
        let word = |what: &EventKind| match what {
            EventKind::CallStarted(call) => (call.tool != "nest").then(|| "started".to_owned()),
            EventKind::CallEnded(call, end) => {
                (call.tool != "nest").then(|| format!("ended:{}", end.status.as_str()))
            }
            EventKind::RunStarted(_) | EventKind::RunResumed(_) | EventKind::RunClosed => None,
        };
        self.audit
            .events()
            .iter()
            .filter_map(|event| word(&event.what))
            .collect()
    }
}

fn policy(ws: &Path, row: &Row) -> Policy {
    let profile = match row.profile {
        "read-only" => Profile::ReadOnly,
        "trusted" => Profile::Trusted,
        _ => Profile::Workspace,
    };
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    let rules = RuleSet {
        allow: texts(row.allow),
        ask: texts(row.ask),
        deny: texts(row.deny),
    };
    Policy::builder(profile)
        .rules(rules)
        .workspace(&Workspace::open(ws).unwrap())
        .build()
        .unwrap()
}

fn tools(ws: &Path, row: &Row) -> impl haft::Toolset + 'static {
    let builtins = Builtins::new(Workspace::open(ws).unwrap()).tools().unwrap();
    let on =
        |b: &haft_builtins::Builtin| b.default || row.enable.contains(&b.tool.spec().name.as_str());
    let registry = ToolRegistry::new();
    registry
        .add_all(builtins.into_iter().filter(on).map(|b| b.tool))
        .unwrap();
    let limits = RunLimits {
        call_timeout: Duration::from_secs_f64(row.call_timeout_s),
        ..RunLimits::default()
    };
    let nest = TestTool::with_body(TestTool::echo("nest"), move |value, context| {
        let scope = context.scope(limits.clone(), None);
        Box::pin(async move {
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            let outcome = scope.call(text("tool"), text("arguments")).await;
            ToolResult::data(&json!({"status": outcome.status.as_str()}))
        })
    });
    registry.add_all([nest.arc()]).unwrap();
    registry.except(Vec::<&str>::new())
}
