//! `Haft`: the application embedded in a program, created by a builder.

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::call::{Principal, RunId};
use haft::result::Outcome;
use haft::toolset::Toolset;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use crate::agent::{AgentRun, AgentTask};
use crate::app::App;
use crate::config::Settings;
use crate::follower;
use crate::problem::Problem;
use crate::resume::ResumeResult;
use crate::run::RunOptions;
use crate::view::timeline;

mod approvals;
mod builder;
mod deciding;
mod entry;
mod new_run;
mod standard;

pub use approvals::Approvals;
pub use builder::HaftBuilder;
pub use entry::{enter, main};
pub use new_run::NewRun;
pub use standard::Standard;

use new_run::ENTRY;

/// An application in a program: tools, policy, sandbox, records and inbox, wired as the `haft` command wires them. Clones share it.
///
/// ```
/// use haft::{Principal, Profile, ToolCall, tool};
/// use haft_app::Haft;
///
/// /// Add two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let haft = Haft::builder().tool(add).policy(Profile::ReadOnly).build()?;
/// let run = haft.run(Principal::local("ann")).await?;
/// for outcome in run.call_all(vec![ToolCall::new("add", r#"{"a":2,"b":3}"#)]).await {
///     assert_eq!(outcome.to_model(), r#"{"result":5}"#);
/// }
/// run.finish().await?;
/// haft.shut_down().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Haft(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    app: App,
    settings: Settings,
    /// Removes what commands left behind, until dropped.
    sweeping: Option<AbortHandle>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(sweeping) = &self.sweeping {
            sweeping.abort();
        }
    }
}

impl Haft {
    /// Returns a builder for an application with no tools yet and a temporary state folder.
    pub fn builder() -> HaftBuilder {
        HaftBuilder::default()
    }

    /// Starts a run for this principal when awaited. Suspend or finish it when done: a dropped run is suspended or finished in the
    /// background, if the runtime lives long enough.
    pub fn run(&self, principal: Principal) -> NewRun {
        NewRun::new(self.clone(), principal)
    }

    /// Creates an agent in a run of its own, or resumes an earlier one.
    ///
    /// # Errors
    /// As for [`App::agent`].
    pub async fn agent(&self, task: AgentTask) -> Result<AgentRun, Problem> {
        self.0.app.agent(&self.0.settings, task).await
    }

    /// Returns the calls of a run as recorded, in the order in which they were made: `tool`, `arguments`, `status`, the `rule` that judged
    /// it, who decided (`decided_by`), `result` or `error`, times.
    ///
    /// # Errors
    /// There is no such run, or its record cannot be read.
    pub async fn calls(&self, run: &RunId) -> Result<Vec<Value>, Problem> {
        timeline::calls(&self.0.app, run.as_str()).await
    }

    /// Returns the approval requests.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals::new(&self.0.app)
    }

    /// Acts on a decision about a suspended call of this or another process, and returns the outcome; for a call in a script, that of the
    /// script. Its run is found, resumed for the principal that it was started for, and suspended or finished afterwards.
    ///
    /// # Errors
    /// The request is undecided or over, another process acts on it, or the call would not do here what was approved, because tools, policy
    /// or workspace differ. In the last case nothing ran, and the approval still holds.
    pub async fn resume(&self, id: &ApprovalId) -> Result<Outcome, Problem> {
        self.0.app.resume_request(id, RunOptions::new(ENTRY)).await
    }

    /// Resumes a run: acts on the decisions in it, or else reruns the script that was interrupted when its process exited.
    ///
    /// # Errors
    /// There is no such run, it is finished, of another workspace or an agent's run with a conversation,
    /// another process holds it, or nothing in it can be resumed.
    pub async fn resume_run(&self, run: &RunId) -> Result<ResumeResult, Problem> {
        let never = std::future::pending();
        self.0.app.resume(run, RunOptions::new(ENTRY), never).await
    }

    /// Acts on every decision about a suspended call of this workspace, wherever it is made, starting with approvals
    /// that are already there, until the returned handle is stopped or dropped.
    pub fn follow(&self) -> DecisionFollower {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(follower::follow(self.0.app.clone(), stopped));
        DecisionFollower { stop, task }
    }

    /// Returns the tools that callers see.
    pub fn tools(&self) -> &Arc<dyn Toolset> {
        self.0.app.tools()
    }

    /// Returns the application itself: data for screens, stores, sandbox, runs.
    pub fn app(&self) -> &App {
        &self.0.app
    }

    /// Returns its settings, each with its origin.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Suspends or finishes the remaining runs and writes what is buffered. Nothing is recorded afterwards: a program calls it once, when
    /// it exits.
    pub async fn shut_down(&self) {
        self.0.app.shut_down().await;
    }
}

/// A task that acts on decisions.
#[derive(Debug)]
#[must_use = "dropped, it stops"]
pub struct DecisionFollower {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl DecisionFollower {
    /// Stops the task, and waits briefly for calls that it resumed to end or be suspended.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "stop following decisions");
        }
    }
}
