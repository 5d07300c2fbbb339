//! `Bench`: tools under test, in a complete executor, with scripted approvals.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;

use crate::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use crate::call::ToolCall;
use crate::error::ErrorKind;
use crate::executor::Executor;
use crate::future::BoxFuture;
use crate::policy::Policy;
use crate::result::{Outcome, Status};
use crate::session::Session;
use crate::testing::MemoryAudit;
use crate::tool::into_tool::{IntoTool, IntoTools};
use crate::toolset::registry::{RegistryError, ToolRegistry};

/// Tools under test: every call takes the same path as in production, with all checks.
///
/// Its methods panic when the test cannot continue.
///
/// ```
/// use haft::{Policy, testing::Bench, tool};
/// use serde_json::json;
///
/// /// Refund an order.
/// #[tool(risk = "high")]
/// fn refund(order: String, cents: u64) -> String {
///     format!("refunded {cents} of {order}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let bench = Bench::new().tool(refund).policy(Policy::workspace());
/// bench.on_ask("refund").approve_with(json!({"order": "o-1", "cents": 1}));
/// let outcome = bench.call("refund", json!({"order": "o-1", "cents": 5})).await;
/// outcome.assert_ok().assert_text("refunded 1 of o-1");
/// bench.assert_asked(["refund"]).assert_audit(["run", "started", "ended:ok"]);
/// # }
/// ```
#[derive(Debug)]
pub struct Bench {
    tools: Arc<ToolRegistry>,
    policy: Arc<Policy>,
    script: Arc<BenchScript>,
    audit: Arc<MemoryAudit>,
    /// Created at the first call.
    at_work: OnceLock<(Executor, Session)>,
}

/// The answers per tool, and the requests made.
#[derive(Debug, Default)]
struct BenchScript {
    answers: Mutex<HashMap<String, VecDeque<ApproverReply>>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for BenchScript {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.asked.lock().push(request.clone());
        let mut answers = self.answers.lock();
        let next = answers.get_mut(request.tool.as_str());
        let next = next.and_then(VecDeque::pop_front);
        Box::pin(async move { next.unwrap_or(ApproverReply::Nobody) })
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// Creates a bench with no tools, the profile `workspace`, and no answers: calls that need approval are denied.
    pub fn new() -> Self {
        Self {
            tools: Arc::new(ToolRegistry::new()),
            policy: Arc::new(Policy::workspace()),
            script: Arc::default(),
            audit: Arc::new(MemoryAudit::new()),
            at_work: OnceLock::new(),
        }
    }

    /// Adds a tool.
    #[track_caller]
    pub fn tool<Form>(self, tool: impl IntoTool<Form>) -> Self {
        self.add(tool.into_dyn_tool().map(|tool| vec![tool]))
    }

    /// Adds the tools of a value.
    #[track_caller]
    pub fn tools<Form>(self, tools: impl IntoTools<Form>) -> Self {
        self.add(tools.into_dyn_tools())
    }

    #[track_caller]
    fn add(self, tools: Result<Vec<Arc<dyn crate::tool::Tool>>, RegistryError>) -> Self {
        let added = tools.and_then(|tools| self.tools.add_all(tools));
        if let Err(error) = added {
            panic!("cannot add the tool: {error}");
        }
        self
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Sets the answer for a call of this tool that needs approval. Answers are given in the order in which they are set, each once.
    pub fn on_ask<'a>(&'a self, tool: &'a str) -> OnAsk<'a> {
        OnAsk {
            script: &self.script,
            tool,
        }
    }

    /// Calls a tool, as a model would.
    pub async fn call(&self, tool: &str, arguments: Value) -> BenchOutcome {
        let (executor, session) = self.at_work.get_or_init(|| self.assemble());
        let call = ToolCall::new(tool, arguments.to_string());
        BenchOutcome(executor.execute(session, call).await)
    }

    fn assemble(&self) -> (Executor, Session) {
        let executor = Executor::new(Arc::clone(&self.policy))
            .with_approver(Arc::clone(&self.script))
            .with_audit(Arc::clone(&self.audit) as Arc<dyn crate::audit::AuditSink>);
        let tools: Arc<dyn crate::toolset::Toolset> = Arc::clone(&self.tools) as _;
        let session = Session::builder(tools).build();
        (executor, session.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Returns the requests that were made, in order.
    pub fn requests(&self) -> Vec<ApprovalRequest> {
        self.script.asked.lock().clone()
    }

    /// Asserts that calls of exactly these tools needed approval, in this order.
    #[track_caller]
    pub fn assert_asked<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> &Self {
        let asked = self.requests();
        let asked: Vec<&str> = asked.iter().map(|request| request.tool.as_str()).collect();
        assert_eq!(asked, tools.into_iter().collect::<Vec<_>>(), "asked about");
        self
    }

    /// Asserts that exactly these events were recorded: `run`, `started`, `ended:STATUS`; see [`MemoryAudit::words`].
    #[track_caller]
    pub fn assert_audit<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> &Self {
        let recorded = self.audit.words();
        assert_eq!(recorded, words.into_iter().collect::<Vec<_>>(), "recorded");
        self
    }
}

/// The answer for a tool; created by [`Bench::on_ask`].
#[derive(Debug, Clone, Copy)]
#[must_use = "say what is answered"]
pub struct OnAsk<'a> {
    script: &'a BenchScript,
    tool: &'a str,
}

impl OnAsk<'_> {
    /// Approves the call unedited.
    pub fn approve(self) {
        self.answer(Decision::approve("bench", "test"));
    }

    /// Approves the call with other arguments.
    pub fn approve_with(self, arguments: impl Into<Value>) {
        let edited = arguments.into().to_string();
        self.answer(Decision::approve("bench", "test").with_arguments(edited));
    }

    /// Denies the call with this message for the caller.
    pub fn deny(self, message: &str) {
        self.answer(Decision::deny("bench", "test").with_message(message));
    }

    /// Gives this answer.
    pub fn answer(self, answer: impl Into<ApproverReply>) {
        let mut answers = self.script.answers.lock();
        let of_tool = answers.entry(self.tool.to_owned()).or_default();
        of_tool.push_back(answer.into());
    }
}

/// The outcome of a call on the bench: an [`Outcome`] with assertions, which print the outcome when they fail.
#[derive(Debug)]
pub struct BenchOutcome(Outcome);

impl std::ops::Deref for BenchOutcome {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.0
    }
}

impl BenchOutcome {
    /// Returns the plain outcome.
    pub fn into_inner(self) -> Outcome {
        self.0
    }

    /// Asserts that the call succeeded.
    #[track_caller]
    pub fn assert_ok(&self) -> &Self {
        self.assert_status(Status::Ok)
    }

    /// Asserts that the call was denied.
    #[track_caller]
    pub fn assert_denied(&self) -> &Self {
        self.assert_status(Status::Denied)
    }

    /// Asserts that the call has this status.
    #[track_caller]
    pub fn assert_status(&self, status: Status) -> &Self {
        assert_eq!(self.0.status, status, "{}", self.0.to_model());
        self
    }

    /// Asserts that the call failed with this kind of error.
    #[track_caller]
    pub fn assert_error(&self, kind: ErrorKind) -> &Self {
        let failed = self.0.error.as_ref().map(|error| error.kind);
        assert_eq!(failed, Some(kind), "{}", self.0.to_model());
        self
    }

    /// Asserts that all texts of the content together equal this one.
    #[track_caller]
    pub fn assert_text(&self, text: &str) -> &Self {
        assert_eq!(self.0.text(), text, "{}", self.0.to_model());
        self
    }

    /// Asserts that the structured content equals this; a value that is not an object is in `{"result": value}`.
    #[track_caller]
    pub fn assert_data(&self, expected: impl Into<Value>) -> &Self {
        let data = self.0.data.as_ref().map(|raw| raw.get());
        let data: Option<Value> = data.and_then(|raw| serde_json::from_str(raw).ok());
        assert_eq!(data, Some(expected.into()), "{}", self.0.to_model());
        self
    }
}
