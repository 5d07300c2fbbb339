//! For tests of tools and hosts: a bench, an approver with scripted answers, a sink that records in memory, a tool of any risk.
//!
//! [`Bench`] suffices for tests of tools; the other parts are for tests of approvers, sinks and entry points.

mod bench;
pub mod rendering;

pub use bench::{Bench, BenchOutcome, OnAsk};

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::approval::preview::FileChange;
use crate::approval::{
    ApprovalId, ApprovalRequest, Approver, ApproverReply, CallSnapshot, Decision, fingerprint,
};
use crate::arguments::Arguments;
use crate::audit::{AuditError, AuditEvent, AuditSink, EventKind};
use crate::call::{CallId, Origin, Principal, RunId};
use crate::clock;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::json::canonical::args_digest;
use crate::permission::{Condition, PathClaim, Permission, Verdict};
use crate::policy::{
    Cause, CauseKind, CommandLine, JudgedCall, Policy, RedirectTarget, RunHistory, Safeguards,
};
use crate::result::ToolResult;
use crate::spec::{Risk, ToolClass, ToolName, ToolSpec};
use crate::tool::{Depth, Intent, PreparedCall, Tool};
use crate::workspace::Workspace;

/// Creates a request of risk high for a call of this tool by the local user, valid for an hour.
pub fn approval_request(tool: &str, arguments: &str) -> Option<ApprovalRequest> {
    let principal = Principal::local("user");
    let tool = ToolName::new(tool).ok()?;
    let created = clock::now();
    Some(ApprovalRequest {
        id: ApprovalId::generate()?,
        run: RunId::generate(),
        call: CallId::new("call-1"),
        parent: None,
        origin: Origin::Mcp,
        entry_point: "library".to_owned(),
        client: None,
        workspace: String::new(),
        arguments: arguments.to_owned(),
        args_digest: args_digest(arguments),
        bound: Map::new(),
        unstated: args_digest(arguments),
        snapshot: CallSnapshot::default(),
        risk: Risk::High,
        reason: "Profile `workspace` requires approval to write".to_owned(),
        rule: "profile workspace".to_owned(),
        causes: vec![Cause::new(CauseKind::Profile, "workspace")],
        safeguards: Safeguards::default(),
        rule_of_two: None,
        review: None,
        suggested: Vec::new(),
        verdicts: Vec::new(),
        form: None,
        spec_hash: String::new(),
        fingerprint: fingerprint(&tool, "", &principal, "", arguments),
        tool,
        principal,
        created,
        expires: created + 3_600_000_000_000,
        waits_until: None,
    })
}

/// A person who agrees to everything, also to what a guard asks; no request is stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConsentingPerson;

impl Approver for ConsentingPerson {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async { ApproverReply::Nobody })
    }

    fn existing_decision(&self, request: &ApprovalRequest) -> Option<Decision> {
        (!request.is_question()).then(|| Decision::approve("ann", "test"))
    }
}

/// Gives its answers in order; `Nobody` when there are none left.
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    answers: Mutex<VecDeque<ApproverReply>>,
    /// The requests it was asked about.
    pub asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl ScriptedApprover {
    /// Creates an approver with these answers.
    pub fn new(answers: impl IntoIterator<Item = ApproverReply>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Arc::default(),
        }
    }
}

impl Approver for ScriptedApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.asked.lock().push(request.clone());
        let next = self.answers.lock().pop_front();
        Box::pin(async move { next.unwrap_or(ApproverReply::Nobody) })
    }
}

/// Records every event in memory; can be set to fail from a given event on.
#[derive(Debug, Default)]
pub struct MemoryAudit {
    events: Mutex<Vec<AuditEvent>>,
    fail_from: Option<usize>,
}

impl MemoryAudit {
    /// Creates a sink that never fails.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a sink whose disk is full after this many events.
    pub fn failing_after(events: usize) -> Self {
        Self {
            fail_from: Some(events),
            ..Self::default()
        }
    }

    /// Returns one word per event: `run`, `started`, `ended:STATUS`, `closed`.
    pub fn words(&self) -> Vec<String> {
        let events = self.events.lock();
        let word = |event: &AuditEvent| match &event.what {
            EventKind::RunStarted(_) => "run".to_owned(),
            EventKind::RunResumed(_) => "resumed".to_owned(),
            EventKind::CallStarted(_) => "started".to_owned(),
            EventKind::CallEnded(_, end) => format!("ended:{}", end.status.as_str()),
            EventKind::RunClosed => "closed".to_owned(),
        };
        events.iter().map(word).collect()
    }

    /// Returns all events, in order.
    pub fn events(&self) -> Vec<AuditEvent> {
        self.events.lock().clone()
    }
}

impl AuditSink for MemoryAudit {
    fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        let mut events = self.events.lock();
        if self.fail_from.is_some_and(|from| events.len() >= from) {
            return Err(AuditError::new("no space left on device"));
        }
        events.push(event);
        Ok(())
    }
}

type TestToolBody =
    dyn Fn(Value, CallContext) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// A tool with any spec whose body is a closure over the parsed arguments.
pub struct TestTool {
    spec: Arc<ToolSpec>,
    permissions: Vec<Permission>,
    conditions: Vec<Condition>,
    preview: Vec<FileChange>,
    body: Box<TestToolBody>,
}

impl TestTool {
    /// Returns the spec of a safe tool that accepts any object and returns its arguments.
    pub fn echo(name: &str) -> ToolSpec {
        let name =
            ToolName::new(name).unwrap_or_else(|_| unreachable!("test tools have plain names"));
        ToolSpec::new(name, "gives its arguments back", json!({"type": "object"}))
    }

    /// Creates a tool with this spec that returns its arguments.
    pub fn of(spec: ToolSpec) -> Self {
        Self::with_body(spec, |value, _| {
            Box::pin(async move { ToolResult::data(&value) })
        })
    }

    /// Creates a tool of this risk that returns its arguments.
    pub fn risky(name: &str, risk: Risk) -> Self {
        Self::of(ToolSpec {
            risk,
            ..Self::echo(name)
        })
    }

    /// Creates a tool with this spec and body.
    pub fn with_body(
        spec: ToolSpec,
        body: impl Fn(Value, CallContext) -> BoxFuture<'static, Result<ToolResult, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            spec: Arc::new(spec),
            permissions: Vec::new(),
            conditions: Vec::new(),
            preview: Vec::new(),
            body: Box::new(body),
        }
    }

    /// Sets the permissions that its calls need.
    pub fn wanting(mut self, permissions: Vec<Permission>) -> Self {
        self.permissions = permissions;
        self
    }

    /// Sets the conditions of its calls.
    pub fn under(mut self, conditions: Vec<Condition>) -> Self {
        self.conditions = conditions;
        self
    }

    /// Sets the changes of files that requests show for its calls.
    pub fn showing(mut self, preview: Vec<FileChange>) -> Self {
        self.preview = preview;
        self
    }

    /// Converts it for a registry.
    pub fn arc(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl std::fmt::Debug for TestTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestTool")
            .field("spec", &self.spec.name)
            .finish_non_exhaustive()
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(TestCall {
            arguments: arguments.value(),
            tool: self,
        }))
    }
}

/// A call of a [`TestTool`].
struct TestCall {
    tool: Arc<TestTool>,
    arguments: Value,
}

impl PreparedCall for TestCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        let intent = Intent::of(self.tool.permissions.clone());
        let intent = intent.with_conditions(depth, || self.tool.conditions.clone());
        Ok(intent.with_preview(depth, || self.tool.preview.clone()))
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        (self.tool.body)(self.arguments, context.clone())
    }
}

/// Returns the verdict on a `run_command` call with this line, in the jail and at the workspace's root; links are not followed.
pub fn line_verdict(policy: &Policy, line: &str) -> Verdict {
    command_verdict(policy, CommandLine::new(line))
}

/// Returns the verdict on a line that is already parsed, or on a command that needs no shell.
pub fn command_verdict(policy: &Policy, read: CommandLine) -> Verdict {
    let claim = |target: &RedirectTarget| PathClaim::plain(target.path.clone());
    let writes: Vec<Permission> = read
        .writes
        .iter()
        .map(claim)
        .map(Permission::write)
        .collect();
    let reads: Vec<Permission> = read.reads.iter().map(claim).map(Permission::read).collect();
    let permissions: Vec<Permission> = read.runs(true, false).chain(writes).chain(reads).collect();
    stated_verdict(policy, &permissions)
}

/// Returns the verdict on a call that runs a command and declares these effects.
pub fn stated_verdict(policy: &Policy, permissions: &[Permission]) -> Verdict {
    let spec = ToolSpec {
        class: Some(ToolClass::Bash),
        ..TestTool::echo("run_command")
    };
    let run = RunHistory::none();
    let ruling = policy.judge(&JudgedCall::new(&spec, "{}", permissions, &run));
    ruling.verdict
}
