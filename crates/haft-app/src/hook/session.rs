//! `AgentSession`: the run of one session of an agent, and its calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::{Origin, ToolCall};
use haft::permission::Verdict;
use haft::result::{Outcome, Status};
use haft::tool::Tool as _;
use haft::toolset::registry::ToolRegistry;
use haft_hook::Report;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use crate::app::App;
use crate::hook::foreign::{ForeignTool, Surroundings};
use crate::hook::kept_run::SameCall;
use crate::hook::key::Key;
use crate::hook::name::Named;
use crate::hook::open_call::{Made, Waiting};
use crate::hook::prompt::AgentPrompt;
use crate::hook::readings::Readings;
use crate::hook::session_runs::{ChosenRun, SessionRuns};
use crate::problem::Problem;
use crate::run::{CallTerms, RunOptions};

/// Most tools of an agent that a session keeps apart.
const MOST_TOOLS: usize = 2_000;
/// By how much a wait for a person ends before the hook answers.
const BEFORE: Duration = Duration::from_secs(1);

/// One session of an agent.
#[derive(Debug)]
pub(super) struct AgentSession {
    runs: SessionRuns,
    tools: Arc<ToolRegistry>,
    at: Surroundings,
    app: App,
    /// Held while a call is looked for and made: of two that are alike each sees the other.
    entering: AsyncMutex<()>,
    used: Mutex<Instant>,
}

/// How a call is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The agent's own prompt asks what is to be asked.
    pub(super) by_agent: bool,
    /// The agent is about to ask its user about a call of which it told before.
    pub(super) again: bool,
    /// How long the answer may take.
    pub(super) within: Duration,
}

impl AgentSession {
    /// Starts the session's run, or resumes it where a person was still to decide about a call of it.
    pub(super) async fn start(app: &App, key: &Key, at: Surroundings) -> Result<Self, Problem> {
        let tools = Arc::new(ToolRegistry::new());
        let options = RunOptions {
            client: Some(at.agent.title().to_owned()),
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

    /// Whether another run has to take its place. One that a person stopped stays: the agent's calls are denied.
    pub(super) fn is_spent(&self) -> bool {
        self.runs.first().session().is_spent()
    }

    /// How long nothing has come from the agent; none while a call waits for a decision.
    pub(super) fn idle(&self) -> Option<Duration> {
        (!self.at.calls.waits()).then(|| self.used.lock().elapsed())
    }

    /// What is answered about a call; none where that is not known in time.
    pub(super) async fn judge(
        self: &Arc<Self>,
        named: Readings,
        made: Made<'_>,
        terms: Terms,
    ) -> Result<Option<haft_hook::Verdict>, Problem> {
        *self.used.lock() = Instant::now();
        let named = self.tool(self.strictest(named, &made), made.tool)?;
        let tool = named.name.as_str();
        let calls = &self.at.calls;
        let known = terms.again.then(|| calls.known(tool, &made)).flatten();
        let open = match known {
            Some(open) => open,
            None => self.enter(&named, &made, terms).await?,
        };
        Ok(open.verdict(terms.within).await)
    }

    /// What the agent says of how a call ended. False where no such call runs.
    pub(super) fn report(&self, arguments: Option<&str>, report: Report) -> bool {
        *self.used.lock() = Instant::now();
        self.at.calls.report(arguments, report)
    }

    /// Nothing more comes from the agent. With this value the run is finished, or suspended where a person is still to decide.
    pub(super) async fn end(&self) {
        self.at.calls.hang_up();
        self.runs.suspend().await;
    }

    /// The one of these tools under whose name the call is judged most strictly.
    fn strictest(&self, named: Readings, made: &Made<'_>) -> Named {
        if named.others.is_empty() {
            return named.first;
        }
        let start = (self.verdict(&named.first, made), named.first);
        let others = named.others.into_iter();
        let others = others.map(|one| (self.verdict(&one, made), one));
        let (_, strictest) = others.fold(
            start,
            |known, other| {
                if other.0 > known.0 { other } else { known }
            },
        );
        strictest
    }

    /// What the policy says of a call of this tool, before it is made.
    fn verdict(&self, named: &Named, made: &Made<'_>) -> Verdict {
        let tool = ForeignTool::new(named, made.tool, self.at.clone());
        let Ok(wanted) = tool.wanted(&made.about()) else {
            // A call whose effects cannot be stated is refused when it is made.
            return Verdict::Deny;
        };
        let policy = self.app.executor().policy();
        policy.verdict(tool.spec(), made.arguments, &wanted)
    }

    /// What rules say of an agent's tool by its name and its input, whatever it does.
    pub(super) fn verdict_by_name(&self, named: &Named, theirs: &str, input: &str) -> Verdict {
        let tool = ForeignTool::new(named, theirs, self.at.clone());
        let policy = self.app.executor().policy();
        policy.verdict(tool.spec(), input, &[])
    }

    /// The name under which a tool is known in this session, once it is.
    fn tool(&self, named: Named, theirs: &str) -> Result<Named, Problem> {
        let known = haft::toolset::Toolset::snapshot(&*self.tools);
        let taken = |named: &Named| {
            let entry = known.entry(named.name.as_str());
            entry.map(|entry| entry.spec().class == named.class)
        };
        let named = match taken(&named) {
            Some(true) => return Ok(named),
            Some(false) => named.apart()?,
            None => named,
        };
        if taken(&named).is_some() {
            return Ok(named);
        }
        if known.entries().len() >= MOST_TOOLS {
            let what = format!("the session has more than {MOST_TOOLS} tools");
            return Err(Problem::failed(what).advise("start a new session of the agent"));
        }
        let tool = ForeignTool::new(&named, theirs, self.at.clone());
        let added = self.tools.upsert(Arc::new(tool));
        added.map_err(|e| Problem::failed(e.to_string()))?;
        Ok(named)
    }

    /// Waits for the very call, where it is open; makes it in a run of the session otherwise, whether or not its hook goes on waiting.
    async fn enter(
        self: &Arc<Self>,
        named: &Named,
        made: &Made<'_>,
        terms: Terms,
    ) -> Result<Waiting, Problem> {
        let _one = self.entering.lock().await;
        let (calls, tool) = (&self.at.calls, named.name.as_str());
        if let Some(open) = calls.take_up(tool, made) {
            return Ok(open);
        }
        let same = SameCall {
            tool,
            arguments: made.arguments,
        };
        let busy = calls.runs_of(same);
        let shares =
            busy.is_empty() || terms.by_agent || self.verdict(named, made) == Verdict::Allow;
        let chosen = self.runs.choose(same, &busy, shares).await?;
        let open = calls.begin(tool, made, chosen.run.id()).ok_or_else(|| {
            Problem::failed("too many calls of this session are open")
                .advise("let some of them end first")
        })?;
        let call = ToolCall::new(tool, made.arguments).from_origin(Origin::Hook);
        let (at, of) = (Arc::clone(self), Arc::clone(open.call()));
        tokio::spawn(async move {
            let outcome = at.call(call, terms, chosen).await;
            at.at.calls.end(&outcome.call, &of, why_not(&outcome));
            *at.used.lock() = Instant::now();
        });
        Ok(open)
    }

    async fn call(&self, call: ToolCall, terms: Terms, chosen: ChosenRun) -> Outcome {
        let prompt = || {
            Arc::new(AgentPrompt {
                agent: self.at.agent,
                calls: Arc::clone(&self.at.calls),
            })
        };
        let wait = terms.within;
        let terms = CallTerms {
            wait: Some(wait.saturating_sub(BEFORE.min(wait / 4))),
            approver: terms.by_agent.then(|| prompt() as _),
            asked_in: chosen.asked_in,
        };
        chosen.run.call_on(call, terms).await
    }
}

/// What an agent hears of a call that was never cleared.
fn why_not(outcome: &Outcome) -> String {
    match (&outcome.status, &outcome.approval) {
        (Status::Suspended, Some(approval)) => format!(
            "a person has to decide about this call (approval {approval}), and no decision is left for it: it did not run. Do something else, and \
             make the same call again later: it is answered by what was decided"
        ),
        // It was asked about in the name of one that another process made.
        (Status::Ok, _) => format!(
            "this call did not run: the one approval that was given was used by the same call, made at the same moment, which has ended. Make it \
             again if it is to run again. What came of the other: {}",
            outcome.to_model()
        ),
        _ => outcome.to_model(),
    }
}
