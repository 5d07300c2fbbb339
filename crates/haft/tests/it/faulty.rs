//! A call is denied if its tool fails while it states the call's effects.

use std::sync::Arc;

use haft::approval::preview::FileChange;
use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::future::BoxFuture;
use haft::permission::{Condition, PathClaim, Permission};
use haft::spec::ToolSpec;
use haft::testing::{ScriptedApprover, TestTool};
use haft::toolset::registry::ToolRegistry;
use haft::{
    Answer, Decision, Executor, Policy, Session, Status, Tool, ToolCall, ToolError, ToolResult,
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

    fn permissions(&self, _: &Arguments) -> Result<Vec<Permission>, ToolError> {
        self.fail_at("permissions");
        Ok(vec![Permission::write(PathClaim::plain("a"))])
    }

    fn stated(&self, _: &Arguments, _: &[Permission]) -> &'static [&'static str] {
        self.fail_at("stated");
        &[]
    }

    fn conditions(&self, _: &Arguments) -> Vec<Condition> {
        self.fail_at("conditions");
        Vec::new()
    }

    fn preview(&self, _: &Arguments) -> Vec<FileChange> {
        self.fail_at("preview");
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        _: &'a Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(ToolResult::text("done")) })
    }
}

#[tokio::test]
async fn p20_a_tool_that_panics_over_what_it_would_do_is_denied() {
    for (over, expect) in [
        ("permissions", Status::Denied),
        ("stated", Status::Denied),
        ("conditions", Status::Denied),
        ("preview", Status::Denied),
        ("nothing", Status::Ok),
    ] {
        let spec = Arc::new(TestTool::echo("writes"));
        let registry = ToolRegistry::new()
            .with(Arc::new(Faulty { spec, over }) as Arc<dyn Tool>)
            .unwrap();
        let approver = ScriptedApprover::new([Answer::Decided(Decision::approve("ann", "test"))]);
        let executor = Executor::new(Policy::workspace()).with_approver(approver);
        let call = ToolCall::new("writes", "{}");
        let outcome = executor.execute(&Session::new(registry), call).await;
        assert_eq!(outcome.status, expect, "{over}: {:?}", outcome.error);
    }
}
