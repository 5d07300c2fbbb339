//! Dispatch by agentkit-tools-core as shipped: no schema check, one permission request per call.

use std::any::Any;
use std::hint::black_box;
use std::sync::Arc;

use agentkit_capabilities::CapabilityContext;
use agentkit_core::{MetadataMap, SessionId, ToolCallId, ToolOutput, ToolResultPart, TurnId};
use agentkit_tools_core::{
    BasicToolExecutor, CompositePermissionChecker, CustomKindPolicy, PermissionChecker,
    PermissionDecision, PermissionRequest, Tool, ToolContext, ToolError, ToolExecutionOutcome,
    ToolExecutor, ToolName, ToolRegistry, ToolRequest, ToolResult, ToolSpec,
};
use async_trait::async_trait;
use measure::{Row, Step, case, each, fact, interleave};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The permission that each call requests.
struct Search(MetadataMap);

impl PermissionRequest for Search {
    fn kind(&self) -> &'static str {
        "custom.search"
    }

    fn summary(&self) -> String {
        "search".into()
    }

    fn metadata(&self) -> &MetadataMap {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A tool over a JSON value.
struct ValueTool(ToolSpec);

#[async_trait]
impl Tool for ValueTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn proposed_requests(
        &self,
        _: &ToolRequest,
    ) -> Result<Vec<Box<dyn PermissionRequest>>, ToolError> {
        Ok(vec![Box::new(Search(MetadataMap::new()))])
    }

    async fn invoke(
        &self,
        request: ToolRequest,
        _: &mut ToolContext<'_>,
    ) -> Result<ToolResult, ToolError> {
        let matches = request.input["limit"].as_u64().unwrap_or_default();
        let output = ToolOutput::structured(json!({ "ok": true, "matches": matches }));
        Ok(ToolResult::new(ToolResultPart::success(
            request.call_id,
            output,
        )))
    }
}

/// A registry of a number of tools, and the names to call.
struct Bench {
    executor: BasicToolExecutor,
    names: Vec<String>,
}

impl Bench {
    fn new(tools: usize) -> Self {
        let schema: Value = serde_json::from_str(case::SCHEMA).expect("a schema");
        let mut registry = ToolRegistry::new();
        for n in 0..tools {
            let name = ToolName::new(case::name(n));
            let spec = ToolSpec::new(name, case::DESCRIPTION, schema.clone());
            registry.register_arc(Arc::new(ValueTool(spec)));
        }
        Self {
            executor: BasicToolExecutor::from_registry(registry),
            names: case::draws(tools),
        }
    }

    async fn all(&self, permissions: &dyn PermissionChecker) {
        let (session, turn, metadata) = (
            SessionId::new("s"),
            TurnId::new("t"),
            MetadataMap::default(),
        );
        let mut context = ToolContext {
            capability: CapabilityContext {
                session_id: Some(&session),
                turn_id: Some(&turn),
                metadata: &metadata,
            },
            permissions,
            resources: &(),
            cancellation: None,
            execution_scope: None,
            approved_request: None,
        };
        for name in &self.names {
            let input: Value = serde_json::from_str(case::ARGUMENTS).expect("arguments");
            let request = ToolRequest::new(
                ToolCallId::new("call-1"),
                ToolName::new(name.as_str()),
                input,
                session.clone(),
                turn.clone(),
            );
            let ToolExecutionOutcome::Completed(result) =
                self.executor.execute(request, &mut context).await
            else {
                panic!("the call did not complete");
            };
            let ToolOutput::Structured(value) = &result.result.output else {
                panic!("no structured output");
            };
            black_box(value.to_string());
        }
    }
}

fn main() {
    fact("agentkit-tools-core", "0.10.5");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let permissions = CompositePermissionChecker::new(PermissionDecision::Allow)
        .with_policy(CustomKindPolicy::new(true).allow_kind("custom.search"));
    let benches: Vec<_> = case::SIZES.map(|n| (n, Bench::new(n))).into();
    let steps = benches
        .iter()
        .map(|(n, bench)| step(&runtime, &permissions, *n, bench));
    interleave(measure::rounds(9), steps.collect());
}

fn step<'a>(
    runtime: &'a Runtime,
    permissions: &'a dyn PermissionChecker,
    tools: usize,
    bench: &'a Bench,
) -> Step<'a> {
    let once = move || {
        each(case::DRAWS, || {
            runtime.block_on(bench.all(permissions));
        })
    };
    (
        Row::new(format!("agentkit/value/{tools}"), "ns"),
        Box::new(once),
    )
}
