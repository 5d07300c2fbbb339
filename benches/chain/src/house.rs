//! An executor with a trivial tool and `tool_chain`, connected as in the product.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::audit::archive::Archive;
use haft::audit::redact::Redactor;
use haft::journal::Journal;
use haft::journal::dir::DirJournal;
use haft::result::Content;
use haft::{
    CallContext, Depth, Executor, Intent, Outcome, Policy, RunLimits, Session, ToolCall, ToolError,
    ToolRegistry, ToolResult, Toolset, TypedTool,
};
use haft_chain::python::PythonEngine;
use haft_chain::toolset::chain_tools;
use haft_chain::{ChainTool, RUNTIME};
use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
use haft_sandbox::{Config, Sandbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Number of calls in a round of nested calls; a chain may make no more.
const NESTED: u32 = 50;
/// The time limit of a script that never ends.
const DEADLINE: Duration = Duration::from_millis(300);
/// How long a new child may take to become idle.
const SETTLE: Duration = Duration::from_millis(300);

/// What is recorded of a chain besides its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Nothing.
    Nothing,
    /// The archive's events, and the journal with which it could be resumed.
    Everything,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Debug, Serialize)]
struct Sum {
    sum: i64,
}

/// The trivial tool.
struct Add;

impl TypedTool for Add {
    const NAME: &'static str = "add";
    const DESCRIPTION: &'static str = "Adds two numbers.";
    type Input = Pair;

    fn intent(&self, _: &Pair, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, input: Pair, _: &CallContext) -> Result<ToolResult, ToolError> {
        ToolResult::data(&Sum {
            sum: input.a + input.b,
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

/// Calls it as a chain does, without a script and a bridge, and returns how long that took.
struct Nest;

impl TypedTool for Nest {
    const NAME: &'static str = "nest";
    const DESCRIPTION: &'static str = "Adds often.";
    type Input = Count;

    fn intent(&self, _: &Count, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, input: Count, context: &CallContext) -> Result<ToolResult, ToolError> {
        let scope = context.scope(RunLimits::chain(), None);
        let begun = Instant::now();
        for n in 0..input.count {
            let outcome = scope
                .call("add", json!({ "a": n, "b": 1 }).to_string())
                .await;
            assert!(outcome.is_ok(), "{:?}", outcome.error);
        }
        let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(input.count);
        ToolResult::data(&json!({ "each": each }))
    }
}

/// The caller of scripts.
struct Caller {
    executor: Executor,
    session: Session,
    /// The same with a short time limit.
    hurried: Session,
}

/// The parts, and the runtime that they run in.
pub(crate) struct House {
    runtime: Runtime,
    jail: CodeJail,
    caller: Arc<Caller>,
    described: String,
    _home: TempDir,
}

impl House {
    /// Creates them with `idle` warm children.
    pub(crate) fn new(idle: usize, kept: Recording) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let home = tempfile::tempdir().expect("a folder");
        let config = CodeConfig {
            runtime: RUNTIME.into(),
            idle,
            ..CodeConfig::default()
        };
        let jail = CodeJail::new(&Sandbox::new(Config::default()), config);
        let engine = Arc::new(PythonEngine::new(jail.clone()));
        let probe = runtime.block_on(jail.probe());
        let described = format!("{}, {}", probe.version, probe.strength);
        let everything = kept == Recording::Everything;
        let journal = || -> Option<Arc<dyn Journal>> {
            everything.then(|| Arc::new(DirJournal::new(home.path())) as _)
        };
        let mut executor = Executor::new(Policy::workspace());
        if everything {
            let no_secrets: [&str; 0] = [];
            let archive = Archive::new(home.path(), Redactor::new(no_secrets));
            executor = executor.with_audit(Arc::new(archive.expect("an archive")) as _);
        }
        let session = |limits: RunLimits| {
            let registry = ToolRegistry::new().with(Add).and_then(|all| all.with(Nest));
            let registry = Arc::new(registry.expect("two names"));
            let folders = Arc::new(|_: &haft::RunId| None);
            let chain = ChainTool::new(Arc::clone(&engine) as _, limits, journal(), folders);
            let tools = chain_tools(registry, chain.expect("limits")).expect("three names");
            let session = endless(Arc::new(tools));
            if everything {
                executor.open(&session).expect("a run");
            }
            session
        };
        let hurried = session(RunLimits {
            approval_timeout: DEADLINE / 4,
            call_timeout: DEADLINE / 2,
            total_timeout: DEADLINE,
            ..RunLimits::chain()
        });
        let session = session(RunLimits::chain());
        warm(&runtime, &jail);
        Self {
            runtime,
            jail,
            caller: Arc::new(Caller {
                executor,
                session,
                hurried,
            }),
            described,
            _home: home,
        }
    }

    pub(crate) fn described(&self) -> &str {
        &self.described
    }

    /// Returns the microseconds of the job: a script of `calls` calls, whose output must be right. It is a task of the runtime,
    /// as a server's calls are: code that blocks on a runtime is woken by another thread at every step.
    pub(crate) fn script(&self, calls: u32) -> f64 {
        let caller = Arc::clone(&self.caller);
        let timed = async move {
            let begun = Instant::now();
            caller.job(calls).await;
            begun.elapsed().as_secs_f64() * 1e6
        };
        self.runtime
            .block_on(self.runtime.spawn(timed))
            .expect("a job")
    }

    /// Returns the microseconds of a nested call without a script.
    pub(crate) fn nested(&self) -> f64 {
        let call = ToolCall::new("nest", json!({ "count": NESTED }).to_string());
        let outcome = self
            .runtime
            .block_on(self.caller.executor.execute(&self.caller.session, call));
        let data: serde_json::Value = outcome
            .data
            .and_then(|data| serde_json::from_str(data.get()).ok())
            .expect("data");
        data["each"].as_f64().expect("a time")
    }

    /// Returns the scripts per second over `count` scripts, `at_once` of them in parallel.
    pub(crate) fn rate(&self, count: usize, at_once: usize) -> f64 {
        let begun = Instant::now();
        let some = || {
            let caller = Arc::clone(&self.caller);
            self.runtime.spawn(async move {
                for _ in 0..count / at_once {
                    caller.job(0).await;
                }
            })
        };
        let tasks: Vec<_> = (0..at_once).map(|_| some()).collect();
        for task in tasks {
            self.runtime.block_on(task).expect("jobs");
        }
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// Returns how many milliseconds after its time limit an endless script is completely gone.
    pub(crate) fn late(&self) -> f64 {
        let begun = Instant::now();
        let outcome = self
            .runtime
            .block_on(self.caller.run(&self.caller.hurried, "while True: pass"));
        let took = begun.elapsed();
        assert_eq!(outcome.status.as_str(), "timeout", "{outcome:?}");
        (took.as_secs_f64() - DEADLINE.as_secs_f64()) * 1e3
    }

    /// Returns the private memory of a warmed child in KiB.
    pub(crate) fn idle_child(&self) -> f64 {
        self.runtime.block_on(async {
            let script = self.jail.take(LibrarySet::Plain).await.expect("a child");
            tokio::time::sleep(SETTLE).await;
            let rollup = format!("/proc/{}/smaps_rollup", script.pid());
            let text = std::fs::read_to_string(&rollup).expect("the child's memory, as root");
            let of = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
            let lines = text.lines().filter(|line| line.starts_with("Private_"));
            lines.filter_map(of).sum()
        })
    }
}

impl Caller {
    async fn job(&self, calls: u32) {
        let code = code(calls);
        let outcome = self.run(&self.session, &code).await;
        let total: u32 = (0..calls).sum();
        let said = outcome.content.iter().find_map(|content| match content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        assert!(outcome.is_ok(), "{:?}", outcome.error);
        assert_eq!(
            said.map(str::trim),
            Some(total.to_string().as_str()),
            "{outcome:?}"
        );
        assert_eq!(
            outcome.calls.len(),
            usize::try_from(calls).unwrap_or_default()
        );
    }

    async fn run(&self, session: &Session, code: &str) -> Outcome {
        let call = ToolCall::new("tool_chain", json!({ "code": code }).to_string());
        self.executor.execute(session, call).await
    }
}

/// Returns a session that measurements never use up.
fn endless(tools: Arc<dyn Toolset>) -> Session {
    let limits = RunLimits {
        max_calls: u64::MAX,
        total_timeout: Duration::from_hours(100),
        ..RunLimits::default()
    };
    let session = Session::builder(tools).with_limits(limits);
    session.build().expect("a session")
}

/// Lets the pool fill before the first job.
fn warm(runtime: &Runtime, jail: &CodeJail) {
    runtime.block_on(async {
        jail.warm();
        tokio::time::sleep(SETTLE).await;
    });
}

fn code(calls: u32) -> String {
    let mut code = "total = 0\n".to_owned();
    if calls > 0 {
        let _ = writeln!(
            code,
            "for i in range({calls}):\n    total = tools.add(a=total, b=i).data['sum']"
        );
    }
    code.push_str("print(total)\n");
    code
}
