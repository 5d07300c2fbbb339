//! What a tool states about a call: it holds through every wrapper, and only what is needed is read.

use std::sync::Arc;

use haft::approval::ApprovalScope;
use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::future::BoxFuture;
use haft::permission::{Condition, PathClaim, Permission};
use haft::spec::ToolSpec;
use haft::testing::{ScriptedApprover, TestTool};
use haft::tool::{Depth, Intent, PreparedCall};
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{
    ApproverReply, Decision, Executor, Policy, Session, Status, Tool, ToolCall, ToolError,
    ToolResult,
};
use parking_lot::Mutex;

/// A wrapper that forwards nothing but what it must.
struct Wrapper(Arc<dyn Tool>);

impl Tool for Wrapper {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.0.spec()
    }

    fn workspace(&self) -> Option<&Workspace> {
        self.0.workspace()
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Arc::clone(&self.0).prepare(arguments)
    }
}

/// A tool that notes which parts of its intent are read.
struct Noting {
    spec: Arc<ToolSpec>,
    permission: Permission,
    read: Arc<Mutex<Vec<&'static str>>>,
}

impl Tool for Noting {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, _: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(NotingCall(self)))
    }
}

struct NotingCall(Arc<Noting>);

impl PreparedCall for NotingCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        let note = |what| self.0.read.lock().push(what);
        note("permissions");
        let intent = Intent::of([self.0.permission.clone()])
            .with_conditions(depth, || {
                note("conditions");
                vec![Condition::new("mode", "plain")]
            })
            .with_preview(depth, || {
                note("preview");
                Vec::new()
            })
            .with_meanings(depth, || {
                note("meanings");
                Vec::new()
            });
        Ok(intent)
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        self.0.read.lock().push("run");
        Box::pin(async { Ok(ToolResult::text("done")) })
    }
}

fn reads() -> Permission {
    Permission::read(PathClaim::plain("a"))
}

fn writes() -> Permission {
    Permission::write(PathClaim::plain("a"))
}

#[tokio::test]
async fn wrapper_that_forwards_only_prepare_keeps_the_permissions_of_its_tool() {
    for (permission, expect) in [(reads(), Status::Ok), (writes(), Status::Denied)] {
        let inner = TestTool::of(TestTool::echo("wrapped")).wanting(vec![permission]);
        let wrapper: Arc<dyn Tool> = Arc::new(Wrapper(inner.arc()));
        let registry = ToolRegistry::new().with(wrapper).unwrap();
        let executor = Executor::new(Policy::workspace());
        let call = ToolCall::new("wrapped", "{}");
        let outcome = executor.execute(&Session::new(registry), call).await;
        assert_eq!(outcome.status, expect, "{:?}", outcome.error);
    }
}

#[tokio::test]
async fn intent_is_read_only_as_deep_as_it_is_needed() {
    for (permission, hold_for, expect) in [
        (reads(), ApprovalScope::Once, vec!["permissions", "run"]),
        // The grant of an earlier call covers this one.
        (
            writes(),
            ApprovalScope::Session,
            vec!["permissions", "permissions", "conditions", "run"],
        ),
    ] {
        let read = Arc::default();
        let tool: Arc<dyn Tool> = Arc::new(Noting {
            spec: Arc::new(TestTool::echo("notes")),
            permission,
            read: Arc::clone(&read),
        });
        let session = Session::new(ToolRegistry::new().with(tool).unwrap());
        let approve = Decision::approve("ann", "test").hold_for(hold_for);
        let approver = ScriptedApprover::new([ApproverReply::Decided(approve)]);
        let executor = Executor::new(Policy::workspace()).with_approver(approver);
        for _ in 0..2 {
            read.lock().clear();
            let call = ToolCall::new("notes", "{}");
            let outcome = executor.execute(&session, call).await;
            assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
        }
        assert_eq!(*read.lock(), expect, "{hold_for:?}");
    }
}
