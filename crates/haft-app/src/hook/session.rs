//! `AgentSession`: one session of an agent, with its runs, its tools and its open calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::{Origin, RunId, ToolCall};
use haft::permission::Verdict;
use haft::result::{Outcome, Status};
use haft::tool::Tool as _;
use haft::toolset::registry::ToolRegistry;
use haft_hook::CallReport;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use crate::app::App;
use crate::hook::foreign::{ForeignTool, ForeignToolContext};
use crate::hook::key::SessionKey;
use crate::hook::open_call::{AgentCall, CallKey, WaitingHook};
use crate::hook::prompt::AgentPrompt;
use crate::hook::reading::ToolInterpretation;
use crate::hook::readings::ToolInterpretations;
use crate::hook::session_runs::{ChosenRun, SessionRuns};
use crate::problem::Problem;
use crate::run::{CallOptions, RunOptions};
use crate::session_group;

/// Maximum number of tools per session; a call of a further one is denied.
const MOST_TOOLS: usize = 2_000;
/// How long before the hook's answer the wait for a decision ends.
const BEFORE: Duration = Duration::from_secs(1);

/// One session of an agent.
#[derive(Debug)]
pub(super) struct AgentSession {
    runs: SessionRuns,
    tools: Arc<ToolRegistry>,
    at: ForeignToolContext,
    app: App,
    /// Held while a call is looked up and begun, so that two alike calls see each other.
    entering: AsyncMutex<()>,
    /// When the agent's last event came, or its last call ended.
    used: Mutex<Instant>,
}

/// How a call is to be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerTerms {
    /// Whether the agent's own prompt asks what a person has to decide.
    pub(super) by_agent: bool,
    /// Whether the agent is about to ask its user about a call that an earlier event has announced.
    pub(super) again: bool,
    /// How long a person may take to decide.
    pub(super) within: Duration,
    /// How long the answer may take: the agent's time limit, less a margin.
    pub(super) answer_within: Duration,
}

impl AgentSession {
    /// Starts the session's run, or resumes it if one of its calls was still to be decided.
    pub(super) async fn start(
        app: &App,
        key: &SessionKey,
        at: ForeignToolContext,
    ) -> Result<Self, Problem> {
        at.marks.keep();
        let identity = key.identity();
        identity
            .keep(app.home(), at.marks.name())
            .map_err(|error| {
                Problem::failed(format!("cannot note the session of the agent: {error}")).advise(
                    "make the state folder writable; if it keeps failing, run `haft doctor`",
                )
            })?;
        let tools = Arc::new(ToolRegistry::new());
        let options = RunOptions {
            client: Some(identity.client()),
            group: session_group::named(app.home(), at.marks.name()),
            progress: app.watched(),
            tools: Some(Arc::clone(&tools) as _),
            is_foreign: true,
            ..RunOptions::new("hook")
        };
        Ok(Self {
            runs: SessionRuns::start(app, key, options).await?,
            tools,
            at,
            app: app.clone(),
            entering: AsyncMutex::default(),
            used: Mutex::new(Instant::now()),
        })
    }

    /// The name by which the session's commands find what holds for it.
    pub(super) fn name(&self) -> &str {
        self.at.marks.name()
    }

    /// Whether another session has to take its place. A session whose run the user stopped stays: the agent's calls are denied.
    pub(super) fn is_spent(&self) -> bool {
        self.runs.first().session().is_spent()
    }

    /// How long the agent has sent nothing; `None` while a call waits for a decision.
    pub(super) fn idle(&self) -> Option<Duration> {
        (!self.at.calls.has_undecided()).then(|| self.used.lock().elapsed())
    }

    /// Returns the verdict about a call; `None` if there is none in time.
    pub(super) async fn judge(
        self: &Arc<Self>,
        readings: ToolInterpretations,
        call: AgentCall<'_>,
        terms: AnswerTerms,
    ) -> Result<Option<haft_hook::HookVerdict>, Problem> {
        *self.used.lock() = Instant::now();
        // Another process of the session may have noted more.
        self.runs.recall(&self.at.marks)?;
        let tool = self.register(self.strictest(readings, &call), call.tool)?;
        let name = tool.name.as_str();
        let calls = &self.at.calls;
        let known = terms.again.then(|| calls.rejoin(name, &call)).flatten();
        let hook = match known {
            Some(hook) => hook,
            None => self.enter(&tool, &call, terms).await?,
        };
        let run = hook.call().run().clone();
        let verdict = hook.verdict(terms.answer_within).await;
        if !matches!(verdict, None | Some(haft_hook::HookVerdict::Deny { .. })) {
            self.write_record(&run).await?;
        }
        Ok(verdict)
    }

    /// Waits until the record of a call that may run is written. The agent acts on the answer, and this process may be killed the next
    /// moment.
    async fn write_record(&self, run: &RunId) -> Result<(), Problem> {
        let written = self.app.0.kept.archive.holds(run).await;
        written.map_err(|e| {
            Problem::failed(format!("the record of this call cannot be written: {e}"))
                .advise("make the call again; if it keeps failing, run `haft doctor`")
        })
    }

    /// Passes on what the agent reports about a call that ended. False if no such call runs.
    pub(super) fn report(&self, arguments: Option<&str>, report: CallReport) -> bool {
        *self.used.lock() = Instant::now();
        self.at.calls.report(arguments, report)
    }

    /// Ends the session: the agent sends nothing more. When this value is dropped its runs are finished, or suspended where a decision is
    /// pending.
    pub(super) async fn end(&self) {
        self.at.calls.stop_waiting_for_reports();
        self.runs.suspend().await;
    }

    /// Returns the tool under whose name the call is judged most strictly.
    fn strictest(&self, readings: ToolInterpretations, call: &AgentCall<'_>) -> ToolInterpretation {
        if readings.others.is_empty() {
            return readings.first;
        }
        let start = (self.verdict(&readings.first, call), readings.first);
        let others = readings.others.into_iter();
        let others = others.map(|one| (self.verdict(&one, call), one));
        let (_, strictest) = others.fold(
            start,
            |known, other| {
                if other.0 > known.0 { other } else { known }
            },
        );
        strictest
    }

    /// Returns what the policy says about a call of this tool, before the call is made.
    fn verdict(&self, reading: &ToolInterpretation, call: &AgentCall<'_>) -> Verdict {
        let tool = ForeignTool::new(reading, call.tool, self.at.clone());
        let Ok(effects) = tool.effects(&call.details()) else {
            // A call whose effects cannot be stated is refused when it is made.
            return Verdict::Deny;
        };
        let policy = self.app.executor().policy();
        let run = self.runs.first().session().history();
        policy.verdict(tool.spec(), call.arguments, &effects, &run)
    }

    /// Returns what rules say about an agent's tool by its name and its input, whatever the call does.
    pub(super) fn verdict_by_name(
        &self,
        reading: &ToolInterpretation,
        tool: &str,
        input: &str,
    ) -> Verdict {
        let tool = ForeignTool::new(reading, tool, self.at.clone());
        let policy = self.app.executor().policy();
        let run = self.runs.first().session().history();
        policy.verdict(tool.spec(), input, &[], &run)
    }

    /// Adds the tool that the agent calls `agent_tool` to the session, unless it has it. Returns the tool with the name
    /// that it has there: if the session has a tool of this name with another class, the class becomes part of the
    /// name.
    fn register(
        &self,
        reading: ToolInterpretation,
        agent_tool: &str,
    ) -> Result<ToolInterpretation, Problem> {
        let known = haft::toolset::Toolset::snapshot(&*self.tools);
        let has_same_class = |reading: &ToolInterpretation| {
            let entry = known.entry(reading.name.as_str());
            entry.map(|entry| entry.spec().class == reading.class)
        };
        let reading = match has_same_class(&reading) {
            Some(true) => return Ok(reading),
            Some(false) => reading.with_class_in_name()?,
            None => reading,
        };
        if has_same_class(&reading).is_some() {
            return Ok(reading);
        }
        if known.entries().len() >= MOST_TOOLS {
            let what = format!("the session has more than {MOST_TOOLS} tools");
            return Err(Problem::failed(what).advise("start a new session of the agent"));
        }
        let tool = ForeignTool::new(&reading, agent_tool, self.at.clone());
        let added = self.tools.upsert(Arc::new(tool));
        added.map_err(|e| Problem::failed(e.to_string()))?;
        Ok(reading)
    }

    /// Joins the call if it is open already; begins it in a run of the session otherwise. The call continues if its hook stops waiting.
    async fn enter(
        self: &Arc<Self>,
        reading: &ToolInterpretation,
        call: &AgentCall<'_>,
        terms: AnswerTerms,
    ) -> Result<WaitingHook, Problem> {
        let _one = self.entering.lock().await;
        let (calls, tool) = (&self.at.calls, reading.name.as_str());
        if let Some(hook) = calls.join(tool, call) {
            return Ok(hook);
        }
        let key = CallKey {
            tool,
            arguments: call.arguments,
        };
        let busy = calls.runs_of(key);
        let shares =
            busy.is_empty() || terms.by_agent || self.verdict(reading, call) == Verdict::Allow;
        let chosen = self.runs.choose(key, &busy, shares).await?;
        self.at.marks.recall(chosen.run.session())?;
        let hook = calls.begin(tool, call, chosen.run.id()).ok_or_else(|| {
            Problem::failed("too many calls of this session are open")
                .advise("let some of them end first")
        })?;
        let tool_call = ToolCall::new(tool, call.arguments).from_origin(Origin::Hook);
        let (session, open) = (Arc::clone(self), Arc::clone(hook.call()));
        tokio::spawn(async move {
            let outcome = session.call(tool_call, terms, chosen).await;
            let calls = &session.at.calls;
            calls.end(&outcome.call, &open, refusal(&outcome));
            *session.used.lock() = Instant::now();
        });
        Ok(hook)
    }

    async fn call(&self, call: ToolCall, terms: AnswerTerms, chosen: ChosenRun) -> Outcome {
        let prompt = || {
            Arc::new(AgentPrompt {
                agent: self.at.agent,
                calls: Arc::clone(&self.at.calls),
            })
        };
        let wait = terms.within;
        let terms = CallOptions {
            wait: Some(wait.saturating_sub(BEFORE.min(wait / 4))),
            approver: terms.by_agent.then(|| prompt() as _),
            asked_in: chosen.asked_in,
        };
        chosen.run.call_on(call, terms).await
    }
}

/// The reason that the agent gets for a call that was never cleared.
fn refusal(outcome: &Outcome) -> String {
    match (&outcome.status, &outcome.approval) {
        (Status::Suspended, Some(approval)) => format!(
            "a person has not yet decided about this call (approval {approval}), so it did not run. Do something else, and make the same call \
             again later: it then gets the decision"
        ),
        // It shared the request of a call that another process made.
        (Status::Ok, _) => format!(
            "this call did not run: an identical call, made at the same moment, used the one approval and has ended. Make the call again if it \
             is to run again. The outcome of the other call: {}",
            outcome.to_model()
        ),
        _ => outcome.to_model(),
    }
}
