//! A call is denied if its tool fails while it states the call's effects.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::future::BoxFuture;
use haft::permission::{PathClaim, Permission};
use haft::spec::ToolSpec;
use haft::testing::{ScriptedApprover, TestTool};
use haft::tool::{Depth, Intent, PreparedCall};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{
    ApproverReply, Decision, Executor, Policy, Session, Status, Tool, ToolCall, ToolError,
    ToolResult,
};

/// A tool that fails at one of the questions that the executor asks before it runs.
#[derive(Debug)]
struct Faulty {
    spec: Arc<ToolSpec>,
    over: &'static str,
}

impl Faulty {
    fn fail_at(&self, question: &str) {
        assert_ne!(self.over, question);
    }
}

impl Tool for Faulty {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        self.fail_at("workspace");
        None
    }

    fn prepare(self: Arc<Self>, _: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        self.fail_at("prepare");
        Ok(Box::new(FaultyCall(self)))
    }
}

struct FaultyCall(Arc<Faulty>);

impl FaultyCall {
    /// Fails if this is what the tool fails at, or else has nothing to show.
    fn nothing<T>(&self, question: &str) -> Vec<T> {
        self.0.fail_at(question);
        Vec::new()
    }
}

impl PreparedCall for FaultyCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        self.0.fail_at("permissions");
        let intent = Intent::of([Permission::write(PathClaim::plain("a"))])
            .with_conditions(depth, || self.nothing("conditions"))
            .with_preview(depth, || self.nothing("preview"))
            .with_meanings(depth, || self.nothing("meanings"));
        Ok(intent)
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(ToolResult::text("done")) })
    }
}

#[tokio::test]
async fn p20_a_tool_that_panics_over_what_it_would_do_is_denied() {
    for (over, expect) in [
        ("prepare", Status::Denied),
        ("workspace", Status::Denied),
        ("permissions", Status::Denied),
        ("conditions", Status::Denied),
        ("preview", Status::Denied),
        ("meanings", Status::Denied),
        ("nothing", Status::Ok),
    ] {
        let spec = Arc::new(TestTool::echo("writes"));
        let registry = ToolRegistry::new()
            .with(Arc::new(Faulty { spec, over }) as Arc<dyn Tool>)
            .unwrap();
        let approver =
            ScriptedApprover::new([ApproverReply::Decided(Decision::approve("ann", "test"))]);
        let executor = Executor::new(Policy::workspace()).with_approver(approver);
        let call = ToolCall::new("writes", "{}");
        let outcome = executor.execute(&Session::new(registry), call).await;
        assert_eq!(outcome.status, expect, "{over}: {:?}", outcome.error);
    }
}
