//! Runs of the agent loop: a model from the settings, the application's tools, and a conversation stored next to the run's record.
//!
//! ```no_run
//! use haft_app::Haft;
//! use haft_app::agent::AgentTask;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let haft = Haft::builder().build()?;
//! let mut run = haft.agent(AgentTask::of_model("anthropic:claude-sonnet-4-6")).await?;
//! let finished = run.run("Which files are here?").await?;
//! println!("{}", finished.text);
//! run.release().await;
//! haft.shut_down().await;
//! # Ok(()) }
//! ```

use std::sync::Arc;

use haft::call::{Principal, RunId};
use haft::skill::Skill;
use haft_agent::conversation::{Conversation as _, FileConversation};
use haft_agent::{
    Agent, AgentError, ConversationEntry, Model, ModelError, RunResult, Watcher, suggest,
};

use crate::agent::model::ModelChoice;
use crate::app::App;
use crate::config::Settings;
use crate::problem::{Problem, ProblemKind};
use crate::run::{RunHandle, RunOptions};

mod instructions;
mod kept;
mod model;
mod options;

pub use crate::conversation_file::is_kept;
pub use kept::{ConversationItem, ConversationPage, kept_runs};

/// The entry point of an agent's run, as recorded.
pub const ENTRY: &str = "run";

/// The configuration of an agent's run.
#[derive(Debug, Default)]
pub struct AgentTask {
    /// The model as `PROVIDER:MODEL`; `None` for `model.default`.
    pub model: Option<String>,
    /// A model of the embedding program, used instead of a named one.
    pub own_model: Option<Arc<dyn Model>>,
    /// An address to use instead of the provider's own; `None` for `model.base_url`.
    pub base_url: Option<String>,
    /// Skills to load before the first prompt.
    pub skills: Vec<String>,
    /// The run to resume, whatever its state.
    pub resume: Option<RunId>,
    /// Maximum number of replies to one prompt; `None` for `agent.max_turns`.
    pub max_turns: Option<u32>,
    /// A watcher that is notified of the agent's progress.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// The options of its run; `None` for those of a run with the entry point `run`.
    pub run: Option<RunOptions>,
}

impl AgentTask {
    /// Returns a task for this model.
    pub fn of_model(model: impl Into<String>) -> Self {
        Self {
            model: Some(model.into()),
            ..Self::default()
        }
    }

    /// Sets the principal, which the program must have authenticated; without it, the run is for the user of this process.
    #[must_use]
    pub fn for_principal(mut self, principal: Principal) -> Self {
        let run = self.run.get_or_insert_with(|| RunOptions::new(ENTRY));
        run.principal = Some(principal);
        self
    }
}

/// An agent in a run of its own. Release it when you are done, so that a run with pending approvals can be resumed.
#[derive(Debug)]
pub struct AgentRun {
    agent: Agent,
    run: RunHandle,
    conversation: Arc<FileConversation>,
    /// The model's name.
    model: String,
    notices: Vec<String>,
    /// The server of the scenario, if the model is a scenario.
    _served: Option<haft_scripted::ScenarioServer>,
}

impl AgentRun {
    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.run.id()
    }

    /// Returns the model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns what the user should know about how the run began, one sentence each: what its skills ask for and forbid.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Performs a task: asks the model and runs its calls until it answers, a call needs a decision or a budget is used up.
    ///
    /// # Errors
    /// The model does not answer, or the conversation cannot be stored: [`Agent::run`].
    pub async fn run(&mut self, prompt: impl Into<String>) -> Result<RunResult, Problem> {
        let finished = self.agent.run(prompt).await;
        finished.map_err(|error| problem(&error))
    }

    /// Resumes what is unfinished: calls that were pending approval, a turn that was interrupted.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn resume(&mut self) -> Result<RunResult, Problem> {
        let finished = self.agent.resume().await;
        finished.map_err(|error| problem(&error))
    }

    /// Returns the agent, mutably.
    pub fn agent_mut(&mut self) -> &mut Agent {
        &mut self.agent
    }

    /// Returns every entry of the conversation so far, including those of earlier runs.
    ///
    /// # Errors
    /// The conversation cannot be read.
    pub async fn entries(&self) -> Result<Vec<ConversationEntry>, Problem> {
        let entries = self.conversation.entries().await;
        entries.map_err(|e| Problem::failed(format!("cannot read the conversation: {e}")))
    }

    /// Ends this process's part in the run: suspends it if calls are pending approval or have no answer yet, finishes
    /// it otherwise. It can be resumed in either case.
    pub async fn release(self) {
        drop(self.agent);
        self.run.release().await;
    }
}

impl App {
    /// Creates an agent in a run of its own, or resumes an earlier one. `settings` are those that the application was built with.
    ///
    /// # Errors
    /// The model, its key, a skill or a setting of the agent is missing or wrong; or the run cannot be started or resumed.
    pub async fn agent(&self, settings: &Settings, task: AgentTask) -> Result<AgentRun, Problem> {
        let ModelChoice {
            name,
            model,
            served,
        } = self.model(settings, &task).await?;
        let options = options::options(self, settings, &name, task.max_turns)?;
        let mut run_options = task.run.unwrap_or_else(|| RunOptions::new(ENTRY));
        if options.suggest && run_options.tools.is_none() && run_options.served.is_none() {
            let tools = suggest::view(Arc::clone(self.tools()));
            run_options.served = Some(Arc::new(tools));
        }
        let (run, conversation) = match &task.resume {
            Some(earlier) => self.resume_conversation(earlier, run_options).await?,
            None => self.begin(run_options).await?,
        };
        let agent = Agent::new(model, self.executor().clone(), run.session().clone());
        let agent = agent.with_options(options);
        let mut agent = agent.with_skills(Arc::clone(self.skills()));
        if let Some(watcher) = task.watcher {
            agent = agent.with_watcher(watcher);
        }
        let conversation = Arc::new(conversation);
        let agent = agent.keep_in(Arc::clone(&conversation) as _).await;
        let mut agent = agent.map_err(|error| problem(&error))?;
        let mut notices = Vec::new();
        for name in &task.skills {
            agent
                .load_skill(name)
                .await
                .map_err(|error| problem(&error))?;
            notices.extend(self.skills().current().find(name).map(skill_notice));
        }
        Ok(AgentRun {
            agent,
            run,
            conversation,
            model: name,
            notices,
            _served: served,
        })
    }
}

/// Converts the error that ended an agent's run into a problem.
pub fn problem(error: &AgentError) -> Problem {
    match error {
        AgentError::Model(error) => of_model(error),
        AgentError::Open(_) | AgentError::Empty => Problem::usage(error.to_string()),
        AgentError::Skill { .. } => {
            Problem::usage(error.to_string()).advise("`haft skills` lists the skills")
        }
        _ => Problem::failed(error.to_string()),
    }
}

/// Converts a model's error into a problem.
fn of_model(error: &ModelError) -> Problem {
    let kind = match error {
        ModelError::Setting(_) => ProblemKind::Settings,
        _ => ProblemKind::Failed,
    };
    let problem = Problem::new(kind, error.to_string());
    match error {
        ModelError::Status {
            status: 401 | 403, ..
        } => problem
            .advise("the provider refuses the key: set another one, or name another provider"),
        ModelError::Status { status: 404, .. } => problem.advise(
            "the provider does not know the model or the address: see --model and --base-url",
        ),
        _ => problem,
    }
}

/// Returns what the user should know about an active skill.
fn skill_notice(skill: &Skill) -> String {
    let mut text = format!("the skill {} is active", skill.name());
    let lists = [
        ("; it asks for ", skill.requests(), ", which grants nothing"),
        (
            "; only these calls are left: ",
            skill.restricts_to().unwrap_or_default(),
            "",
        ),
        ("; no call may be ", skill.excludes(), ""),
    ];
    for (before, rules, after) in lists {
        if !rules.is_empty() {
            text.push_str(before);
            text.push_str(&rules.join(", "));
            text.push_str(after);
        }
    }
    text
}
