//! `AgentSession`: the run of one session of an agent, and its calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::{Origin, ToolCall};
use haft::result::{Outcome, Status};
use haft::toolset::registry::ToolRegistry;
use haft_hook::{Report, Verdict};
use parking_lot::Mutex;

use crate::app::App;
use crate::hook::foreign::{ForeignTool, Surroundings};
use crate::hook::kept_run::KeptRun;
use crate::hook::key::Key;
use crate::hook::name::Named;
use crate::hook::open_call::{Made, Waiting};
use crate::hook::prompt::AgentPrompt;
use crate::problem::Problem;
use crate::run::{ApprovalWait, RunHandle, RunOptions};

/// Most tools of an agent that a session keeps apart.
const MOST_TOOLS: usize = 2_000;
/// By how much a wait for a person ends before the hook answers.
const BEFORE: Duration = Duration::from_secs(1);

/// One session of an agent.
#[derive(Debug)]
pub(super) struct AgentSession {
    run: RunHandle,
    tools: Arc<ToolRegistry>,
    at: Surroundings,
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
    pub(super) async fn start(
        app: &App,
        key: &Key,
        at: Surroundings,
        wait: Duration,
    ) -> Result<Self, Problem> {
        let tools = Arc::new(ToolRegistry::new());
        let options = RunOptions {
            client: Some(at.agent.title().to_owned()),
            progress: app.watched(),
            wait: ApprovalWait::For(wait.saturating_sub(BEFORE.min(wait / 4))),
            tools: Some(Arc::clone(&tools) as _),
            is_foreign: true,
            ..RunOptions::new("hook")
        };
        let kept = KeptRun::of(app, key);
        let run = if let Some(run) = kept.resume(app, &options).await {
            run
        } else {
            let run = app.runs().start(options).await?;
            kept.note(run.id());
            run
        };
        Ok(Self {
            run,
            tools,
            at,
            used: Mutex::new(Instant::now()),
        })
    }

    /// Whether another run has to take its place. One that a person stopped stays: the agent's calls are denied.
    pub(super) fn is_spent(&self) -> bool {
        self.run.session().is_spent()
    }

    /// How long nothing has come from the agent; none while a call waits for a decision.
    pub(super) fn idle(&self) -> Option<Duration> {
        (!self.at.calls.waits()).then(|| self.used.lock().elapsed())
    }

    /// What is answered about a call; none where that is not known in time.
    pub(super) async fn judge(
        self: &Arc<Self>,
        named: Named,
        made: Made<'_>,
        terms: Terms,
    ) -> Result<Option<Verdict>, Problem> {
        *self.used.lock() = Instant::now();
        let named = self.tool(named, made.tool)?;
        let tool = named.name.as_str();
        let calls = &self.at.calls;
        let known = if terms.again {
            calls.known(tool, &made)
        } else {
            calls.take_up(tool, &made)
        };
        let open = match known {
            Some(open) => open,
            None => self.begin(tool, &made, terms.by_agent)?,
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
        self.run.session().suspend();
        self.run.session().idle().await;
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

    /// Makes the call in the session's run, whether or not its hook goes on waiting.
    fn begin(
        self: &Arc<Self>,
        tool: &str,
        made: &Made<'_>,
        by_agent: bool,
    ) -> Result<Waiting, Problem> {
        let open = self.at.calls.begin(tool, made).ok_or_else(|| {
            Problem::failed("too many calls of this session are open")
                .advise("let some of them end first")
        })?;
        let call = ToolCall::new(tool, made.arguments).from_origin(Origin::Hook);
        let (at, of) = (Arc::clone(self), Arc::clone(open.call()));
        tokio::spawn(async move {
            let outcome = at.call(call, by_agent).await;
            at.at.calls.end(&outcome.call, &of, why_not(&outcome));
            *at.used.lock() = Instant::now();
        });
        Ok(open)
    }

    async fn call(&self, call: ToolCall, by_agent: bool) -> Outcome {
        if !by_agent {
            return self.run.call(call).await;
        }
        let prompt = AgentPrompt {
            agent: self.at.agent,
            calls: Arc::clone(&self.at.calls),
        };
        self.run.call_asking(call, Arc::new(prompt)).await
    }
}

/// What an agent hears of a call that was never cleared.
fn why_not(outcome: &Outcome) -> String {
    match (&outcome.status, &outcome.approval) {
        (Status::Suspended, Some(approval)) => format!(
            "a person has to decide about this call (approval {approval}), and no decision is left for it: it did not run. Do something else, and \
             make the same call again later: it is answered by what was decided"
        ),
        _ => outcome.to_model(),
    }
}
