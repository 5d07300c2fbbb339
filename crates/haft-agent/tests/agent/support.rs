//! Helpers of the tests: tools that record calls, an agent with them, what it told its model.

use std::sync::Arc;

use haft::approval::Decision;
use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, StoredApproval, Submission, WaitingCalls,
    WaitingLimits,
};
use haft::approval::memory::MemoryInbox;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::{ApprovalId, ApprovalRequest};
use haft::call::{CallId, RunId};
use haft::future::BoxFuture;
use haft::result::ToolResult;
use haft::spec::ToolSpec;
use haft::testing::TestTool;
use haft::tool::Tool;
use haft::{Executor, Policy, Risk, Session, ToolError, ToolRegistry};
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentEvent};
use haft_wire::{ContentPart, Message, ToolOutput};
use parking_lot::Mutex;

/// A log of what happened, one word each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, word: impl Into<String>) {
        self.0.lock().push(word.into());
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// Returns a tool that records its call and returns its arguments; it fails if they contain `"fail": true`.
pub(crate) fn noting(spec: ToolSpec, log: &Log) -> Arc<dyn Tool> {
    let log = log.clone();
    let name = spec.name.to_string();
    let body = move |arguments: serde_json::Value, _| {
        log.note(format!("{name} {arguments}"));
        let failed = arguments["fail"] == true;
        Box::pin(async move {
            if failed {
                return Err(ToolError::failed("it failed as it was told"));
            }
            ToolResult::data(&arguments)
        }) as BoxFuture<'static, _>
    };
    TestTool::with_body(spec, body).arc()
}

/// Returns `safe`, which may run in parallel, `plain`, and `risky`, which needs approval.
pub(crate) fn tools(log: &Log) -> ToolRegistry {
    let safe = ToolSpec {
        concurrency_safe: true,
        ..TestTool::echo("safe")
    };
    let risky = ToolSpec {
        risk: Risk::High,
        ..TestTool::echo("risky")
    };
    let registry = ToolRegistry::new();
    for spec in [
        safe,
        risky,
        TestTool::echo("plain"),
        TestTool::echo("docs.search"),
    ] {
        registry.add_all([noting(spec, log)]).unwrap();
    }
    registry
}

/// Returns an agent with these tools.
pub(crate) fn agent(model: &ScriptedModel, log: &Log) -> Agent {
    agent_of(model.clone(), log)
}

/// Returns an agent with these tools and any model.
pub(crate) fn agent_of(model: impl haft_agent::Model + 'static, log: &Log) -> Agent {
    let session = Session::new(tools(log));
    Agent::new(model, Executor::new(Policy::workspace()), session)
}

/// Returns the answers that the model read last.
pub(crate) fn last_answers(model: &ScriptedModel) -> Vec<ToolOutput> {
    let requests = model.requests();
    let messages = requests.last().unwrap().messages.clone();
    let results = messages
        .into_iter()
        .rev()
        .find_map(|message| match message {
            Message::Results(answers) => Some(answers),
            _ => None,
        });
    results.unwrap()
}

/// Returns all text of an answer.
pub(crate) fn text(answer: &ToolOutput) -> String {
    let texts = answer.parts.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns a watcher that records events, one word each.
pub(crate) fn watcher(log: &Log) -> Arc<dyn haft_agent::Watcher> {
    let log = log.clone();
    Arc::new(move |event: AgentEvent<'_>| {
        log.note(match event {
            AgentEvent::Delta(_) => "delta".to_owned(),
            AgentEvent::Message { text } => format!("message {text}"),
            AgentEvent::ToolCall { tool, .. } => format!("call {tool}"),
            AgentEvent::ToolResult { tool, is_error, .. } => format!("result {tool} {is_error}"),
            AgentEvent::Approval { tool, .. } => format!("approval {tool}"),
            AgentEvent::Usage { .. } => "usage".to_owned(),
            AgentEvent::Done(finished) => format!("done {}", finished.end.as_str()),
            _ => "other".to_owned(),
        });
    })
}

/// An in-memory inbox that claims to outlive the process: a test's process is both the old one and the new one.
#[derive(Debug, Default)]
pub(crate) struct Durable(MemoryInbox);

impl WaitingCalls for Durable {
    fn is_durable(&self) -> bool {
        true
    }

    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>> {
        self.0.submit(request)
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        self.0.has_room(request, limits)
    }

    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        self.0.get(id)
    }

    fn find<'a>(
        &'a self,
        run: &'a haft::call::RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        self.0.find(run, fingerprint)
    }

    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>> {
        self.0.list(filter)
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        self.0.decide(id, decision)
    }

    fn claim<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        self.0.claim(id)
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        self.0.finish(id, outcome, delivered)
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>> {
        self.0.deliver(id)
    }

    fn set_attended<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        self.0.set_attended(id, attended)
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        self.0.end(id, ending, why)
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), InboxError>> {
        self.0.suspend(call)
    }

    fn find_suspended<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedEntry>, InboxError>> {
        self.0.find_suspended(key)
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedEntry>, InboxError>> {
        self.0.get_suspended(run, call)
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        self.0.end_suspended(run, call, outcome)
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<CollectedCall>, InboxError>> {
        self.0.collect(run, call)
    }

    fn changes(&self) -> tokio::sync::broadcast::Receiver<ApprovalId> {
        self.0.changes()
    }
}
