//! The tool receives and runs exactly what the policy judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::approval::{ApproverReply, Decision};
use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use haft::permission::{PathClaim, Permission, Verdict};
use haft::policy::Policy;
use haft::result::{Status, ToolResult};
use haft::session::Session;
use haft::testing::{ScriptedApprover, TestTool};
use haft::tool::{Depth, Intent, Tool, TypedTool};
use haft::toolset::registry::ToolRegistry;
use haft::{Executor, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

fn reads() -> Permission {
    Permission::read(PathClaim::plain("a"))
}

fn writes() -> Permission {
    Permission::write(PathClaim::plain("a"))
}

/// Returns a tool that declares one permission, reports in its result what was judged, and also tries what it did not declare.
fn judged(says: Permission, other: Permission) -> Arc<dyn Tool> {
    let says_again = says.clone();
    TestTool::with_body(TestTool::echo("judged"), move |_, context| {
        let (says, other) = (says_again.clone(), other.clone());
        Box::pin(async move {
            context.cleared(&says.effect)?;
            let refused = context.cleared(&other.effect).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied);
            let judgement = context.judgement();
            ToolResult::data(&json!({
                "permissions": judgement.permissions(),
                "verdict": judgement.ruling().verdict,
                "by": judgement.decision().map(|consent| consent.by.clone()),
                "asked": judgement.is_approved(),
                "shown": judgement.approved_snapshot().map(|shown| &shown.permissions),
            }))
        })
    })
    .wanting(vec![says])
    .arc()
}

#[tokio::test]
async fn a_running_tool_has_the_judgement_of_its_call() {
    let rows = [
        (reads(), writes(), Verdict::Allow, None),
        (writes(), reads(), Verdict::Ask, Some("ann")),
    ];
    for (says, other, verdict, by) in rows {
        let registry = ToolRegistry::new()
            .with(judged(says.clone(), other))
            .unwrap();
        let approver =
            ScriptedApprover::new([ApproverReply::Decided(Decision::approve("ann", "test"))]);
        let executor = Executor::new(Policy::workspace()).with_approver(approver);
        let session = Session::new(registry);
        let outcome = executor
            .execute(&session, ToolCall::new("judged", "{}"))
            .await;
        assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
        let data: serde_json::Value =
            serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
        let expect = json!({
            "permissions": [&says],
            "verdict": verdict,
            "by": by,
            "asked": by.is_some(),
            "shown": by.map(|_| [&says]),
        });
        assert_eq!(data, expect);
    }
}

/// The number of times that [`Counted`] was deserialized.
static READ: AtomicUsize = AtomicUsize::new(0);

/// Counts its deserializations.
#[derive(Debug)]
struct Counted(String);

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        READ.fetch_add(1, Ordering::Relaxed);
        String::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Counted {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WriteInput {
    path: Counted,
}

struct Write;

impl TypedTool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = "Write a file.";
    type Input = WriteInput;

    fn intent(&self, input: &WriteInput, _: Depth) -> Result<Intent, ToolError> {
        let claim = PathClaim::plain(input.path.0.as_str());
        Ok(Intent::of([Permission::write(claim)]))
    }

    async fn run(&self, input: WriteInput, context: &CallContext) -> Result<ToolResult, ToolError> {
        context.cleared(&Permission::write(PathClaim::plain(input.path.0)).effect)?;
        Ok(ToolResult::text("written"))
    }
}

#[tokio::test]
async fn what_is_judged_is_read_once_and_runs() {
    let registry = ToolRegistry::new()
        .with(Write.into_tool().unwrap())
        .unwrap();
    let approver =
        ScriptedApprover::new([ApproverReply::Decided(Decision::approve("ann", "test"))]);
    let executor = Executor::new(Policy::workspace()).with_approver(approver);
    let call = ToolCall::new("write", r#"{"path":"a"}"#);
    let outcome = executor.execute(&Session::new(registry), call).await;
    assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
    assert_eq!(READ.load(Ordering::Relaxed), 1);
}
