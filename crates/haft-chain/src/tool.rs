//! `tool_chain`: runs a script that calls tools.

use std::sync::Arc;
use std::time::Duration;

use haft::arguments::Arguments;
use haft::clock;
use haft::context::{CallContext, ChildRun, Resumption};
use haft::error::{ErrorKind, ToolError};
use haft::future::BoxFuture;
use haft::journal::{ChainStart, Journal, JournalError, RecordedChain};
use haft::result::ToolResult;
use haft::session::{LimitsError, RunLimits};
use haft::spec::{Annotations, NameError, Suspension, ToolName, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::toolset::Toolset;
use haft::toolset::registry::BUILTIN;
use haft::toolset::view::ToolsetExt as _;
use haft::workspace::Workspace;
use haft_sandbox::Spool;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Deserialize;
use serde_json::json;

use crate::engine::{Engine, EngineError, Worker};
use crate::run::{
    ChainRecord, ChainRun, ChainScript, PollPolicy, ScriptOutput, ScriptTerms, WorkspaceLookup,
};

/// The tool's name.
pub const TOOL_CHAIN: &str = "tool_chain";
/// The category of tools that run chains; chains cannot see these tools.
pub const CATEGORY: &str = "chain";
/// Maximum length of a script, in characters.
pub const MAX_CODE: usize = 1 << 20;

/// The state shared by all versions of the tool.
#[derive(Clone)]
struct ChainToolState {
    engine: Arc<dyn Engine>,
    limits: RunLimits,
    journal: Option<Arc<dyn Journal>>,
    folders: WorkspaceLookup,
    looking: PollPolicy,
    spool: Option<Arc<Spool>>,
}

/// The tool `tool_chain`.
pub struct ChainTool {
    shared: Arc<ChainToolState>,
    spec: Arc<ToolSpec>,
}

/// The reason why the tool cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The limits are invalid for a chain.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The tool's name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
}

#[derive(Deserialize)]
struct ChainInput {
    code: String,
    timeout_s: Option<u64>,
}

impl ChainTool {
    /// Creates the tool over this engine. `journal` records what a chain does, so that it can be resumed; `folders` returns
    /// the workspace folder of a run.
    ///
    /// # Errors
    /// [`ChainError::Limits`] if the limits contradict each other.
    pub fn new(
        engine: Arc<dyn Engine>,
        limits: RunLimits,
        journal: Option<Arc<dyn Journal>>,
        folders: WorkspaceLookup,
    ) -> Result<Self, ChainError> {
        limits.check_chain()?;
        let spec = Arc::new(spec(&*engine, &limits, "")?);
        let shared = Arc::new(ChainToolState {
            engine,
            limits,
            journal,
            folders,
            looking: PollPolicy::new(),
            spool: None,
        });
        Ok(Self { shared, spec })
    }

    /// Sets a spool for scripts that print more than memory should hold.
    pub fn with_spool(mut self, spool: Arc<Spool>) -> Self {
        let shared = ChainToolState {
            spool: Some(spool),
            ..ChainToolState::clone(&self.shared)
        };
        self.shared = Arc::new(shared);
        self
    }

    /// Returns the same tool with these tools in its description (see [`stub`](crate::stub::stub)).
    ///
    /// # Errors
    /// [`NameError`] if the name `tool_chain` is invalid, which cannot happen in a release.
    pub fn with_stub(&self, stub: &str) -> Result<Self, NameError> {
        let spec = spec(&*self.shared.engine, &self.shared.limits, stub)?;
        Ok(Self {
            shared: Arc::clone(&self.shared),
            spec: Arc::new(spec),
        })
    }
}

fn spec(engine: &dyn Engine, limits: &RunLimits, stub: &str) -> Result<ToolSpec, NameError> {
    let total = limits.total_timeout.as_secs().max(1);
    let schema = json!({
        "type": "object",
        "properties": {
            "code": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_CODE,
                "description": "the Python script",
            },
            "timeout_s": {
                "type": "integer",
                "minimum": 1,
                "maximum": total,
                "default": total,
                "description": "ends the script after so many seconds; waiting for approvals does not count",
            },
        },
        "required": ["code"],
        "additionalProperties": false,
    });
    let description = description(engine, limits, stub);
    Ok(ToolSpec {
        title: Some("Run a script that calls tools".to_owned()),
        category: Some(CATEGORY.to_owned()),
        source: BUILTIN.to_owned(),
        suspension: Suspension::Within,
        annotations: Annotations {
            // The calls it makes are judged separately.
            read_only_hint: Some(false),
            open_world_hint: Some(false),
            ..Annotations::default()
        },
        tags: [
            "run a python script that calls tools",
            "many calls in one step, batch, loop over results",
        ]
        .map(str::to_owned)
        .into(),
        ..ToolSpec::new(ToolName::new(TOOL_CHAIN)?, description, schema)
    })
}

fn description(engine: &dyn Engine, limits: &RunLimits, stub: &str) -> String {
    let engine = engine.describe();
    let (calls, inline) = (limits.max_calls, limits.inline_bytes.unwrap_or(4096));
    let mut text = format!(
        "Run a Python script that calls tools, in one step. Only what it prints or returns comes back. \
        `tools.NAME(key=value)` gives a result: .text, .data (dict), .ref, .files, .status; str(r) is its text. \
        A failed call raises ToolError (.kind, .message, .advice), a denied one PermissionError. \
        Inside `async def` or with a top-level await: `await tools.NAME(...)`, asyncio.gather runs calls side by side. \
        The last expression or a `return` is the result's data; print goes to its text. At most {calls} calls, each judged as if made directly. \
        A result over {inline} bytes has a .ref and a preview: .read(offset, n), .lines(), .json() fetch it; \
        pass the result itself as an argument to hand all of it on. artifacts.put(bytes|text|Path) keeps data. \
        Each script starts afresh: only files in /workspace (the working folder) and artifacts outlive it. \
        No network, no processes, no files but /tmp and /workspace; the user's files only by tools. {engine}"
    );
    if !stub.is_empty() {
        text.push_str("\nTools:\n");
        text.push_str(stub.trim_end());
    }
    text
}

impl Tool for ChainTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(ChainCall {
            shared: Arc::clone(&self.shared),
            input: arguments.parse()?,
            arguments: arguments.clone(),
        }))
    }
}

/// A call of `tool_chain`.
struct ChainCall {
    shared: Arc<ChainToolState>,
    input: ChainInput,
    /// As the journal keeps them.
    arguments: Arguments,
}

impl PreparedCall for ChainCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        // The calls of the script are judged one by one.
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self {
                shared,
                input,
                arguments,
            } = *self;
            shared.run(input, arguments.as_str(), context).await
        })
    }
}

impl ChainToolState {
    async fn run(
        &self,
        input: ChainInput,
        arguments: &str,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let limit = input.timeout_s.map(Duration::from_secs);
        let limit = limit.map_or(self.limits.total_timeout, |limit| {
            limit.min(self.limits.total_timeout)
        });
        let _present = self.looking.enter();
        let scope = context.scope(self.limits.clone(), Some(within(context)));
        // Recorded first: if the process is killed while the interpreter starts, there is a chain to resume.
        let (mut record, seed) = self.record(context, &scope, &input.code, arguments).await?;
        let worker = tokio::select! {
            worker = self.engine.start(&input.code) => worker.map_err(|error| absent(&error)),
            () = scope.elapsed(limit) => Err(late(limit)),
        };
        let worker = match worker {
            Ok(worker) => worker,
            Err(error) => {
                record.not_begun().await;
                return Err(error);
            }
        };
        let script = ChainScript {
            code: &input.code,
            seed,
        };
        let worker: &dyn Worker = &*worker;
        let folder = (self.folders)(context.run());
        let terms = ScriptTerms {
            record,
            output: ScriptOutput::new(context.progress(), self.spool.as_ref()),
            limit,
            looking: self.looking.clone(),
        };
        let chain = ChainRun::new(context, scope, worker, terms);
        chain.run(&script, folder).await
    }

    /// Returns the chain's record, new or resumed, and the seed of the script's random numbers.
    async fn record(
        &self,
        context: &CallContext,
        scope: &ChildRun,
        code: &str,
        arguments: &str,
    ) -> Result<(ChainRecord, u64), ToolError> {
        let (run, chain) = (context.run().clone(), context.call_id().clone());
        let Some(journal) = &self.journal else {
            return Ok((ChainRecord::none(run, chain), fresh_seed()));
        };
        let journal = Arc::clone(journal);
        if let Some(recorded) = self.recorded(context, code).await? {
            let seed = recorded.start.seed;
            let tools = scope.session().tools();
            let resumption = context.resumption();
            let record = ChainRecord::resume(journal, run, recorded, &tools, resumption).await?;
            return Ok((record, seed));
        }
        let seed = fresh_seed();
        let start = ChainStart {
            code: code.to_owned(),
            arguments: arguments.to_owned(),
            seed,
            started_ns: clock::now(),
        };
        Ok((ChainRecord::begin(journal, run, chain, &start).await?, seed))
    }

    /// Returns the interrupted chain that this call resumes: in a resumed run, under the same id, with exactly this script.
    async fn recorded(
        &self,
        context: &CallContext,
        code: &str,
    ) -> Result<Option<RecordedChain>, ToolError> {
        let Some(journal) = self.journal.as_ref().filter(|_| context.is_resumed()) else {
            return context.resumption().map_or(Ok(None), |it| Err(ended(it)));
        };
        let run = context.run();
        let own = journal.interrupted(run, Some(context.call_id())).await;
        let own = own
            .map_err(|error| unread(&error))?
            .filter(|own| own.start.code == code);
        if own.is_some() {
            return Ok(own);
        }
        if let Some(resumption) = context.resumption() {
            return Err(ended(resumption));
        }
        // The journal and the run's record know its calls by the id that it had.
        let others = journal.abandoned(run).await.map_err(|e| unread(&e))?;
        match others.iter().find(|other| other.start.code == code) {
            None => Ok(None),
            Some(other) => Err(ToolError::conflict(format!(
                "this script was interrupted as {} of run {run}; as another call it would run from its start",
                other.chain
            ))
            .with_advice("nothing ran; the user has to resume this script")
            .for_operator(format!("`haft runs resume {run}`"))),
        }
    }
}

fn unread(error: &JournalError) -> ToolError {
    ToolError::unavailable(format!("read the chain's journal: {error}"))
        .with_advice("nothing was run: what the script did before is not known")
}

/// Returns the error for a resumed call for which the journal has nothing to resume: its script has ended, in a process that
/// exited before it could record how.
fn ended(resumption: &Resumption) -> ToolError {
    resumption.over();
    let message = "this script was suspended and has ended since; its outcome is lost";
    ToolError::unavailable(message)
        .with_advice("check what it changed; calling again runs it from the start")
        .for_operator("`haft runs show` says what the run did")
}

/// Returns the tools that a chain sees: its session's, without provider tools and without those that run chains.
fn within(context: &CallContext) -> Arc<dyn Toolset> {
    let all = context.toolset();
    let snapshot = all.snapshot();
    let chains = snapshot.entries().iter().map(|entry| entry.spec());
    let chains = chains.filter(|spec| spec.category.as_deref() == Some(CATEGORY));
    let names: Vec<String> = chains.map(|spec| spec.name.to_string()).collect();
    Arc::new(all.except(names).local())
}

fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        // Below 2^53, so that JSON readers of the journal keep it exact.
        Ok(_) => u64::from_le_bytes(bytes) >> 11,
        Err(_) => u64::try_from(clock::now() & 0xffff_ffff).unwrap_or_default(),
    }
}

fn absent(error: &EngineError) -> ToolError {
    let advice = error.advice.as_deref();
    ToolError::unavailable(error.to_string())
        .for_operator(advice.unwrap_or("haft doctor says what is missing"))
}

fn late(limit: Duration) -> ToolError {
    let message = format!("no interpreter was ready within {} s", limit.as_secs_f64());
    ToolError::new(ErrorKind::Timeout, message).with_advice("run the script again; nothing ran")
}

impl std::fmt::Debug for ChainTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainTool")
            .field("engine", &self.shared.engine)
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}
