//! Runs of this app: begun, gone on with, left while they wait for people, ended.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::{Filter, RequestStatus};
use haft::audit::{AuditSink, CallEnd, CallRecord, Event, RunStart, What};
use haft::bounds::Class;
use haft::call::{CallId, Origin, Principal, RunId, ToolCall};
use haft::clock;
use haft::error::ErrorKind;
use haft::progress;
use haft::result::{Outcome, Status};
use haft::session::{Patience, Session, SessionBuilder};
use haft::toolset::Toolset;

use crate::app::App;
use crate::problem::Problem;

/// How long the calls of a run that is left may take to note that they wait.
const LEAVE: Duration = Duration::from_millis(500);

/// How long the calls of an ending run may take to end.
const SETTLE: Duration = Duration::from_secs(3);

/// By which door a run is opened.
#[derive(Debug)]
pub struct RunOptions {
    /// Its name in the record.
    pub name: &'static str,
    /// For whom, where the door has checked that.
    pub principal: Option<Principal>,
    /// Whose share of bounded resources it uses.
    pub class: Class,
    /// The client's own name, where there is one: shown, never trusted.
    pub client: Option<String>,
    /// Who shows progress.
    pub progress: Option<Arc<dyn progress::ProgressSink>>,
    /// Whether its calls wait for people.
    pub waits: ApprovalWait,
}

impl RunOptions {
    /// Whether the run is for one call alone.
    fn is_for_one_call(&self) -> bool {
        matches!(self.name, "call" | "chain")
    }

    /// The same once more.
    pub fn again(&self) -> Self {
        Self {
            principal: self.principal.clone(),
            client: self.client.clone(),
            progress: self.progress.clone(),
            ..*self
        }
    }
}

/// Whether the calls of a run wait for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalWait {
    /// As long as settings say.
    #[default]
    Limit,
    /// For so long.
    For(Duration),
    /// Not at all: nobody is at the terminal.
    Never,
}

fn not_begun(why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("begin the run: {why}"))
        .advise("`haft doctor` says what is wrong with the state folder")
}

impl App {
    /// Begins a run: its record and its line in the index.
    pub async fn open(&self, door: RunOptions) -> Result<Session, Problem> {
        let session = self.prepare(door)?;
        self.begin(&session).await?;
        Ok(session)
    }

    /// Begins a run that has these tools alone.
    pub async fn open_with(
        &self,
        door: RunOptions,
        tools: Arc<dyn Toolset>,
    ) -> Result<Session, Problem> {
        let built = self.session_with(door, tools).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        self.begin(&session).await?;
        Ok(session)
    }

    /// A run that is in memory alone: nothing is kept of it before it begins.
    pub fn prepare(&self, door: RunOptions) -> Result<Session, Problem> {
        let built = self.session(door).build();
        built.map_err(|e| Problem::settings(e.to_string()))
    }

    /// Begins a run that was prepared.
    pub async fn begin(&self, session: &Session) -> Result<(), Problem> {
        let parts = &self.0;
        let start = RunStart {
            principal: session.principal().clone(),
            door: session.door().to_owned(),
            workspace: Some(parts.workspace.clone()),
            profile: parts.profile.clone(),
        };
        self.record_opening(session).await?;
        self.0.live.add(session);
        let indexed = parts.index.open(session.run(), &start, clock::now()).await;
        indexed.map_err(not_begun)
    }

    /// Begins the record of a run here that another machine began.
    pub async fn open_as(&self, door: RunOptions, run: RunId) -> Result<Session, Problem> {
        let built = self.session(door).with_run(run).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        self.record_opening(&session).await?;
        self.0.live.add(&session);
        Ok(session)
    }

    /// Goes on with a run that another process began and did not end. `calls` is the highest number its calls had.
    pub async fn reopen(
        &self,
        door: RunOptions,
        run: RunId,
        calls: u64,
    ) -> Result<Session, Problem> {
        let built = self.session(door).resuming(run, calls).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        self.record_opening(&session).await?;
        self.0.live.add(&session);
        let working = self.0.index.progress(session.run(), calls, false).await;
        if let Err(error) = working {
            tracing::warn!(run = %session.run(), %error, "note that a run goes on");
        }
        Ok(session)
    }

    fn session(&self, door: RunOptions) -> SessionBuilder {
        self.session_with(door, Arc::clone(&self.0.tools))
    }

    fn session_with(&self, door: RunOptions, tools: Arc<dyn Toolset>) -> SessionBuilder {
        let parts = &self.0;
        let mut limits = parts.limits.clone();
        let alone = door.is_for_one_call();
        let patience = match door.waits {
            ApprovalWait::Never if parts.durable => Patience::SuspendAtOnce,
            ApprovalWait::For(limit) => {
                limits.approval_timeout = limit;
                parts.on_timeout
            }
            ApprovalWait::Limit | ApprovalWait::Never => parts.on_timeout,
        };
        let mut builder = Session::builder(tools)
            .with_patience(patience)
            .with_principal(door.principal.unwrap_or_else(|| parts.principal.clone()))
            .with_class(door.class)
            .with_door(door.name)
            .with_client(door.client)
            .with_limits(limits)
            .with_pace(parts.pace)
            .with_other_runs(Arc::clone(&parts.live) as _)
            .with_absent(self.absent());
        if alone {
            builder = builder.for_one_call();
        }
        if let Some(tokens) = parts.skill_tokens {
            builder = builder.with_skill_tokens(usize::try_from(tokens).unwrap_or(usize::MAX));
        }
        if let Some(sink) = door.progress {
            builder = builder.with_progress(sink);
        }
        builder
    }

    /// The record's first line is safe before anybody else knows of the run.
    async fn record_opening(&self, session: &Session) -> Result<(), Problem> {
        let parts = &self.0;
        parts.executor.open(session).map_err(not_begun)?;
        let held = parts.archive.holds(session.run()).await;
        if held.is_err() {
            // Another process has it: this one forgets that it tried.
            let _ = parts.archive.leave(session.run()).await;
        }
        held.map_err(not_begun)
    }

    /// One call through the executor.
    pub async fn call(&self, session: &Session, call: ToolCall) -> Outcome {
        self.0.executor.execute(session, call).await
    }

    /// A run that is open here.
    pub fn live(&self, run: &RunId) -> Option<Session> {
        self.0.live.get(run)
    }

    /// Every run that is open here.
    pub fn all_live(&self) -> Vec<Session> {
        self.0.live.all()
    }

    /// Ends this process's part in a run: what waits for a person goes on waiting, and the run with it; any other run is
    /// ended for good.
    pub async fn close(&self, session: &Session) {
        self.0.live.remove(session.run());
        if session.has_asked() && self.leave(session).await {
            return;
        }
        self.end(session).await;
    }

    /// Leaves a run that waits for people; false where it waits for nobody.
    async fn leave(&self, session: &Session) -> bool {
        let parts = &self.0;
        session.leave();
        // Waits end at once; a call that runs has its own time.
        let _ = tokio::time::timeout(LEAVE, session.idle()).await;
        let waiting = Filter {
            tenant: parts.principal.tenant.to_string(),
            status: vec![RequestStatus::Pending, RequestStatus::Approved],
            run: Some(session.run().clone()),
            limit: 1,
            ..Filter::default()
        };
        let waiting = parts.executor.inbox().list(&waiting).await;
        let none = waiting.as_ref().is_ok_and(Vec::is_empty);
        if (none && !session.has_resumable()) || !parts.durable {
            return false;
        }
        if !parts.executor.leave(session) {
            return true;
        }
        let _ = tokio::time::timeout(SETTLE, session.idle()).await;
        let left = parts.archive.leave(session.run()).await;
        let noted = match left {
            Ok(()) => {
                let noted = parts
                    .index
                    .progress(session.run(), session.calls(), true)
                    .await;
                noted.map_err(|e| e.to_string())
            }
            Err(e) => Err(e.to_string()),
        };
        if let Err(e) = noted {
            tracing::warn!(run = %session.run(), error = %e, "note that a run waits");
        }
        parts.feed.suspended(session.run());
        true
    }

    /// Ends a run: cancels what runs, seals its record, notes that in the index.
    async fn end(&self, session: &Session) {
        let parts = &self.0;
        let ended = parts.executor.close(session);
        // A cancelled call ends at once unless it hangs where nothing can reach it; then it stays in doubt.
        if tokio::time::timeout(SETTLE, session.settled())
            .await
            .is_err()
        {
            tracing::warn!(run = %session.run(), "a call did not end");
        }
        let closed = parts.archive.close(session.run()).await;
        let noted = match (ended, closed) {
            (Ok(()), Ok(closed)) => {
                let noted = parts
                    .index
                    .close(session.run(), &closed, clock::now())
                    .await;
                noted.map_err(|e| e.to_string())
            }
            (Err(e), _) | (_, Err(e)) => Err(e.to_string()),
        };
        if let Err(e) = noted {
            parts.notices.warn(&format!(
                "the record of run {} stays open: {e}",
                session.run()
            ));
        }
    }

    /// Leaves a line about a message that was refused before it was a call.
    pub fn record_refusal(&self, session: &Session, number: u64, reason: &str) {
        let record = CallRecord {
            call: CallId::new(format!("refused-{number}")),
            parent: None,
            tool: String::new(),
            origin: Origin::Mcp,
            principal: session.principal().clone(),
            arguments: Arc::from(""),
            coerced: Vec::new(),
            verdict: None,
            rule: None,
            decided_by: None,
            approval: None,
        };
        let end = CallEnd {
            status: Status::Error,
            error: Some((ErrorKind::InvalidArguments, reason.to_owned())),
            duration: Duration::ZERO,
            artifacts: Vec::new(),
            summary: "message refused".to_owned(),
            strength: None,
        };
        let event = Event {
            run: session.run().clone(),
            at: clock::now(),
            what: What::CallEnded(Arc::new(record), end),
        };
        if let Err(e) = self.0.archive.record(event) {
            tracing::warn!(error = %e, "record a refused message");
        }
    }
}
