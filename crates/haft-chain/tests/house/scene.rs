//! The setup for tests: an executor, some tools, and `tool_chain` over the real jail.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use haft::approval::{ApprovalRequest, Approver, ApproverReply};
use haft::artifact::memory::MemoryArtifacts;
use haft::call::{RunId, ToolCall};
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::journal::Journal;
use haft::policy::Policy;
use haft::result::Outcome;
use haft::session::{RunLimits, Session};
use haft::spec::{Declaration, ToolSpec};
use haft::testing::MemoryAudit;
use haft::tool::Tool;
use haft::toolset::registry::ToolRegistry;
use haft_chain::engine::Engine;
use haft_chain::python::PythonEngine;
use haft_chain::toolset::chain_tools;
use haft_chain::{ChainTool, RUNTIME};
use haft_sandbox::code::{CodeConfig, CodeJail};
use haft_sandbox::{Config, Sandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::tools::{any, tools};

/// Returns the only runtime: jails live in it.
pub(crate) fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    })
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// Returns the only engine: its pool serves all tests.
pub(crate) fn engine() -> Arc<PythonEngine> {
    static ENGINE: OnceLock<Arc<PythonEngine>> = OnceLock::new();
    let made = || made(Config::default(), CodeConfig::default());
    Arc::clone(ENGINE.get_or_init(made))
}

/// Returns an engine with another kind of jail.
pub(crate) fn made(config: Config, code: CodeConfig) -> Arc<PythonEngine> {
    let code = CodeConfig {
        runtime: RUNTIME.into(),
        ..code
    };
    let jail = CodeJail::new(&Sandbox::new(config), code);
    Arc::new(PythonEngine::new(jail))
}

/// The variable parts of a scene; everything else is the same for all.
pub(crate) struct Parts {
    pub(crate) limits: RunLimits,
    pub(crate) policy: Policy,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) run: Option<RunId>,
    pub(crate) resumed: bool,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) artifacts: Option<Arc<MemoryArtifacts>>,
    pub(crate) engine: Arc<dyn Engine>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            limits: RunLimits::chain(),
            policy: Policy::trusted(),
            journal: None,
            folder: None,
            tools: Vec::new(),
            run: None,
            resumed: false,
            approver: None,
            artifacts: None,
            engine: engine(),
        }
    }
}

/// A session with tools, and what they recorded.
pub(crate) struct Scene {
    resumed: bool,
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) audit: Arc<MemoryAudit>,
    pub(crate) marks: Arc<Mutex<Vec<String>>>,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
}

/// An approver shared with the test.
#[derive(Debug)]
struct SharedApprover(Arc<dyn Approver>);

impl Approver for SharedApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.0.ask(request)
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::of(Parts::default())
    }

    pub(crate) fn of(parts: Parts) -> Self {
        let marks = Arc::<Mutex<Vec<String>>>::default();
        let registry = ToolRegistry::new();
        let mut all = tools(&marks);
        all.extend(parts.tools);
        registry.add_all(all).unwrap();
        let hosted = ToolSpec {
            declaration: Declaration::Provider {
                specs: [("anthropic".to_owned(), json!({}))].into(),
                call_types: Vec::new(),
            },
            ..any("hosted")
        };
        registry.add_hosted(hosted).unwrap();
        let folder = parts.folder;
        let folders = Arc::new(move |_: &RunId| folder.clone());
        let chain = ChainTool::new(parts.engine, parts.limits, parts.journal, folders).unwrap();
        let tools = chain_tools(Arc::new(registry), chain).unwrap();
        let audit = Arc::new(MemoryAudit::new());
        let artifacts = parts.artifacts.unwrap_or_else(|| {
            // Enough for what is passed by ref.
            Arc::new(MemoryArtifacts::new().with_quota(1 << 30))
        });
        let mut executor = Executor::new(parts.policy)
            .with_audit(Arc::clone(&audit) as _)
            .with_artifacts(Arc::clone(&artifacts) as _);
        if let Some(approver) = parts.approver {
            executor = executor.with_approver(SharedApprover(approver));
        }
        let mut session = Session::builder(Arc::new(tools));
        if let Some(run) = parts.run {
            session = if parts.resumed {
                session.resume(run, 100)
            } else {
                session.with_run(run)
            };
        }
        Self {
            resumed: parts.resumed,
            executor,
            session: session.build().unwrap(),
            audit,
            marks,
            artifacts,
        }
    }

    /// Runs a script.
    pub(crate) async fn chain(&self, code: &str) -> Outcome {
        self.chain_with(json!({"code": code})).await
    }

    /// Runs a script with these arguments.
    pub(crate) async fn chain_with(&self, arguments: Value) -> Outcome {
        let mut call = ToolCall::new("tool_chain", arguments.to_string());
        if self.resumed {
            // The interrupted one.
            call = call.with_id("call-1");
        }
        self.executor.execute(&self.session, call).await
    }

    /// Returns the arguments of the calls of `mark`.
    pub(crate) fn marks(&self) -> Vec<String> {
        self.marks.lock().clone()
    }
}

/// Returns the whole outcome, for a failing test to print.
pub(crate) fn pretty(outcome: &Outcome) -> String {
    serde_json::to_string_pretty(outcome).unwrap()
}

/// Returns the data, or null.
pub(crate) fn data(outcome: &Outcome) -> Value {
    let raw = outcome.data.as_ref().map_or("null", |raw| raw.get());
    serde_json::from_str(raw).unwrap()
}

/// Returns the value of a script: data that is not an object is wrapped.
pub(crate) fn value(outcome: &Outcome) -> Value {
    match data(outcome) {
        Value::Object(mut object) if object.len() == 1 && object.contains_key("result") => {
            object.remove("result").unwrap_or_default()
        }
        other => other,
    }
}

/// Returns `tool:status` of each call of a chain.
pub(crate) fn trace(outcome: &Outcome) -> Vec<String> {
    let calls = outcome.calls.iter();
    calls
        .map(|call| format!("{}:{}", call.tool, call.status.as_str()))
        .collect()
}
