//! A house for tests: an executor, some tools, and `tool_chain` over the real jail.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::artifact::memory::MemoryArtifacts;
use haft::call::{RunId, ToolCall};
use haft::executor::Executor;
use haft::journal::Journal;
use haft::policy::Policy;
use haft::result::{Content, Outcome, ToolResult};
use haft::session::{Limits, Session};
use haft::spec::{Risk, ToolSpec};
use haft::testing::{MemoryAudit, TestTool};
use haft::tool::Tool;
use haft::toolset::registry::ToolRegistry;
use haft_chain::python::PythonEngine;
use haft_chain::toolset::chain_tools;
use haft_chain::{ChainTool, RUNTIME};
use haft_sandbox::code::{CodeConfig, CodeJail};
use haft_sandbox::{Config, Sandbox};
use serde_json::{Value, json};

/// The one runtime: jails live in it.
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

/// The one engine: its pool serves all tests.
pub(crate) fn engine() -> Arc<PythonEngine> {
    static ENGINE: OnceLock<Arc<PythonEngine>> = OnceLock::new();
    let made = || {
        let sandbox = Sandbox::new(Config::default());
        let config = CodeConfig {
            runtime: RUNTIME.into(),
            ..CodeConfig::default()
        };
        let jail = CodeJail::new(&sandbox, config);
        Arc::new(wait(PythonEngine::open(jail)).unwrap_or_else(|error| panic!("{error}")))
    };
    Arc::clone(ENGINE.get_or_init(made))
}

/// What a scene is made of; the rest is the same for all.
pub(crate) struct Parts {
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) run: Option<RunId>,
    pub(crate) resumed: bool,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            limits: Limits::chain(),
            policy: Policy::trusted(),
            journal: None,
            folder: None,
            tools: Vec::new(),
            run: None,
            resumed: false,
        }
    }
}

/// A session with tools, and what they saw.
pub(crate) struct Scene {
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) audit: Arc<MemoryAudit>,
    pub(crate) marks: Arc<Mutex<Vec<String>>>,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
}

/// What is common to the tools of a scene.
fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        input_schema: Arc::new(schema),
        concurrency_safe: true,
        ..TestTool::echo(name)
    }
}

fn any(name: &str) -> ToolSpec {
    spec(name, json!({"type": "object"}))
}

fn tools(marks: &Arc<Mutex<Vec<String>>>) -> Vec<Arc<dyn Tool>> {
    let mark = Arc::clone(marks);
    let needs_x = json!({
        "type": "object",
        "properties": {"x": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["x"],
        "additionalProperties": false,
    });
    let gate = Arc::new(tokio::sync::Barrier::new(3));
    vec![
        TestTool::of(any("echo")).arc(),
        TestTool::of(any("server.tool")).arc(),
        TestTool::of(spec("strict", needs_x)).arc(),
        TestTool::of(ToolSpec {
            risk: Risk::Critical,
            ..any("critical")
        })
        .arc(),
        TestTool::with_body(any("say"), |value, _| {
            let text = value["text"].as_str().unwrap_or_default().to_owned();
            Box::pin(async move { Ok(ToolResult::text(text)) })
        })
        .arc(),
        TestTool::with_body(any("fail"), |_, _| {
            Box::pin(async {
                Err(haft::ToolError::not_found("no such thing").with_advice("look elsewhere"))
            })
        })
        .arc(),
        // Ends only when three of it are under way.
        TestTool::with_body(any("together"), move |value, _| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.wait().await;
                ToolResult::data(&value)
            })
        })
        .arc(),
        TestTool::with_body(any("sleep"), |value, _| {
            let seconds = value["s"].as_f64().unwrap_or(60.0);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                Ok(ToolResult::text("slept"))
            })
        })
        .arc(),
        TestTool::with_body(any("large"), |value, _| {
            let bytes = usize::try_from(value["bytes"].as_u64().unwrap_or(0)).unwrap();
            Box::pin(async move { Ok(ToolResult::text("0123456789abcde\n".repeat(bytes / 16))) })
        })
        .arc(),
        TestTool::with_body(any("count"), |value, _| {
            let length = value["text"].as_str().map(str::len);
            Box::pin(async move { ToolResult::data(&json!({"length": length})) })
        })
        .arc(),
        TestTool::with_body(any("picture"), |value, _| {
            let bytes = value["bytes"].as_str().unwrap_or("pixels").to_owned();
            Box::pin(async move {
                let image = Content::Image {
                    data: STANDARD.encode(bytes),
                    mime_type: "image/png".into(),
                };
                let sound = Content::Audio {
                    data: STANDARD.encode("la"),
                    mime_type: "audio/mpeg".into(),
                };
                Ok(ToolResult {
                    content: vec![Content::text("two"), image, sound],
                    ..ToolResult::default()
                })
            })
        })
        .arc(),
        TestTool::with_body(any("mark"), move |value, _| {
            let mark = Arc::clone(&mark);
            Box::pin(async move {
                mark.lock()
                    .unwrap()
                    .push(value["text"].as_str().unwrap_or("?").to_owned());
                ToolResult::data(&value)
            })
        })
        .arc(),
    ]
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
        let folder = parts.folder;
        let folders = Arc::new(move |_: &RunId| folder.clone());
        let chain = ChainTool::new(engine(), parts.limits, parts.journal, folders).unwrap();
        let tools = chain_tools(Arc::new(registry), chain).unwrap();
        let (audit, artifacts) = (
            Arc::new(MemoryAudit::new()),
            Arc::new(MemoryArtifacts::new()),
        );
        let executor = Executor::new(parts.policy)
            .with_audit(Arc::clone(&audit) as _)
            .with_artifacts(Arc::clone(&artifacts) as _);
        let mut session = Session::builder(Arc::new(tools));
        if let Some(run) = parts.run {
            session = if parts.resumed {
                session.resuming(run)
            } else {
                session.with_run(run)
            };
        }
        Self {
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
        let call = ToolCall::new("tool_chain", arguments.to_string());
        self.executor.execute(&self.session, call).await
    }

    /// What `mark` was called with.
    pub(crate) fn marks(&self) -> Vec<String> {
        self.marks.lock().unwrap().clone()
    }
}

/// The whole outcome, for a failing test to show.
pub(crate) fn shown(outcome: &Outcome) -> String {
    serde_json::to_string_pretty(outcome).unwrap()
}

/// The data, or null.
pub(crate) fn data(outcome: &Outcome) -> Value {
    let raw = outcome.data.as_ref().map_or("null", |raw| raw.get());
    serde_json::from_str(raw).unwrap()
}

/// The value that a script came to: data that is no object is wrapped.
pub(crate) fn value(outcome: &Outcome) -> Value {
    match data(outcome) {
        Value::Object(mut object) if object.len() == 1 && object.contains_key("result") => {
            object.remove("result").unwrap_or_default()
        }
        other => other,
    }
}

/// `tool:status` of each call of a chain.
pub(crate) fn trace(outcome: &Outcome) -> Vec<String> {
    let calls = outcome.calls.iter();
    calls
        .map(|call| format!("{}:{}", call.tool, call.status.as_str()))
        .collect()
}

/// A number that no other test of this process has.
pub(crate) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
