//! `Haft`: the application as a program embeds it, made by a builder.

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
use crate::resume::Resumed;
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
/// haft.shut().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Haft(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    app: App,
    settings: Settings,
    /// Removes what commands left, while this lives.
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
    /// An application with no tools yet, whose state goes with it.
    pub fn builder() -> HaftBuilder {
        HaftBuilder::default()
    }

    /// Starts a run for this principal, once it is awaited. Suspend or finish it when it is done: a run that is dropped is so in the
    /// background, if the runtime lives long enough.
    pub fn run(&self, principal: Principal) -> NewRun {
        NewRun::new(self.clone(), principal)
    }

    /// Makes an agent in a run of its own, or goes on with an earlier one.
    ///
    /// # Errors
    /// As for [`App::agent`].
    pub async fn agent(&self, task: AgentTask) -> Result<AgentRun, Problem> {
        self.0.app.agent(&self.0.settings, task).await
    }

    /// The calls of a run as its record has them, in the order in which they came: `tool`, `arguments`, `status`, the `rule` that
    /// judged it, who decided (`decided_by`), `result` or `error`, times.
    ///
    /// # Errors
    /// There is no such run, or its record cannot be read.
    pub async fn calls(&self, run: &RunId) -> Result<Vec<Value>, Problem> {
        timeline::calls(&self.0.app, run.as_str()).await
    }

    /// The requests to those who decide.
    pub fn approvals(&self) -> Approvals<'_> {
        Approvals::new(&self.0.app)
    }

    /// Acts on a decision about a call that was suspended, in this process or another, and returns how the call ended; for a call of a
    /// script, how the script did. Its run is found, resumed for the principal that it was started for, and suspended or finished after.
    ///
    /// # Errors
    /// The request is not decided, or over, or another process acts on it; or the call would not do here what was approved, as other
    /// tools, another policy or another workspace make it. Nothing ran then, and the approval holds as before.
    pub async fn resume(&self, id: &ApprovalId) -> Result<Outcome, Problem> {
        self.0.app.resume_request(id, RunOptions::new(ENTRY)).await
    }

    /// Resumes a run: acts on what was decided in it, else runs the script again that was interrupted when its process ended.
    ///
    /// # Errors
    /// There is no such run, it is finished or of another workspace, another process holds it, or nothing in it can be resumed.
    pub async fn resume_run(&self, run: &RunId) -> Result<Resumed, Problem> {
        let never = std::future::pending();
        self.0.app.resume(run, RunOptions::new(ENTRY), never).await
    }

    /// Acts on every decision about a suspended call of this workspace, wherever it is made, starting with those already made, until the
    /// returned handle is stopped or dropped.
    pub fn follow(&self) -> Following {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(follower::follow(self.0.app.clone(), stopped));
        Following { stop, task }
    }

    /// The tools that callers see.
    pub fn tools(&self) -> &Arc<dyn Toolset> {
        self.0.app.tools()
    }

    /// The application itself: what screens show, stores, sandbox, the life of runs.
    pub fn app(&self) -> &App {
        &self.0.app
    }

    /// Its settings, each with where it comes from.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Suspends or finishes the runs that are left, and writes what is not written yet. Nothing is recorded after: a program calls it
    /// once, at its end.
    pub async fn shut(&self) {
        self.0.app.shut().await;
    }
}

/// A task that acts on decisions.
#[derive(Debug)]
#[must_use = "dropped, it stops"]
pub struct Following {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Following {
    /// Stops it, and waits a moment until calls that it resumed have ended or are suspended.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "stop following decisions");
        }
    }
}
