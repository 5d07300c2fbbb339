//! What follows a decision whose asker does not wait any more: the call is run, or the chain gone on with, in its run.

use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{Entry, InboxError, RequestStatus};
use haft::audit::runs;
use haft::call::{RunId, ToolCall};
use haft::error::ErrorKind;
use haft::result::Outcome;
use haft::session::Session;
use haft_chain::TOOL_CHAIN;

use crate::app::App;
use crate::decide::Refused;
use crate::problem::Problem;
use crate::run::RunOptions;

/// How long a decided request is left to the process that waits for it, before somebody else takes it.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(25);

/// What became of a decided request.
#[derive(Debug)]
pub enum Followed {
    /// It ran here; a chain's outcome where it was nested in one.
    Ran(Box<Outcome>),
    /// Another process runs it or has: the inbox says how it goes.
    Elsewhere,
    /// It belongs to another workspace.
    Foreign,
}

impl App {
    /// Sees to it that a decided request is acted on, exactly once: by whoever waits for it, else here.
    pub async fn follow(&self, id: &ApprovalId, door: RunOptions) -> Result<Followed, Problem> {
        let entry = self.unattended(id).await?;
        let taken = entry.claimed || entry.status == RequestStatus::Pending;
        if taken {
            return Ok(Followed::Elsewhere);
        }
        if entry.request.workspace != self.workspace() {
            return Ok(Followed::Foreign);
        }
        if entry.status == RequestStatus::Approved {
            // Seen before the run is opened: an approval that does not hold here leaves no trace in it.
            self.check_request(&entry.request)
                .map_err(Refused::problem)?;
        }
        let run = entry.request.run.clone();
        if let Some(session) = self.live(&run) {
            return self.go_on(&session.going_on(), &entry).await;
        }
        let session = match self.pick_up(&run, door).await {
            Ok(session) => session,
            // Whoever has the run open goes on with it.
            Err(problem) => return self.elsewhere(id).await?.ok_or(problem),
        };
        // Another machine's run is resumed like one of this machine: its script does not start over.
        let followed = self.go_on(&session.going_on(), &entry).await;
        self.close(&session).await;
        followed
    }

    /// The request, once nobody waits for it, or once whoever does had time to take it.
    async fn unattended(&self, id: &ApprovalId) -> Result<Entry, Problem> {
        let begun = std::time::Instant::now();
        loop {
            let entry = self.entry(id).await?;
            let theirs = entry.attended && !entry.claimed && begun.elapsed() < GRACE;
            if !theirs {
                return Ok(entry);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What another process made of the request within a while, if it did anything.
    async fn elsewhere(&self, id: &ApprovalId) -> Result<Option<Followed>, Problem> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < GRACE {
            let entry = self.entry(id).await?;
            if entry.claimed {
                return Ok(Some(Followed::Elsewhere));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(None)
    }

    /// A request of the inbox.
    pub async fn entry(&self, id: &ApprovalId) -> Result<Entry, Problem> {
        let entry = self.executor().inbox().get(id).await;
        let entry = entry.map_err(|e| Problem::failed(e.to_string()))?;
        entry.ok_or_else(|| unknown(id))
    }

    /// The run of another process, or of a session that ended, opened again.
    pub async fn pick_up(&self, run: &RunId, door: RunOptions) -> Result<Session, Problem> {
        let told = |e: runs::RunsError| Problem::failed(e.to_string());
        let folder = runs::run_dir(self.home(), run.as_str()).map_err(told)?;
        if !folder.is_dir() {
            // Another machine keeps the run's record; what happens here is recorded here, under the same name.
            return self.open_as(door, run.clone()).await;
        }
        let calls = runs::last_call(self.home(), run.as_str()).map_err(told)?;
        self.reopen(door, run.clone(), calls).await
    }

    /// Acts on the decision: the request's own call, or the chain that made it.
    async fn go_on(&self, session: &Session, entry: &Entry) -> Result<Followed, Problem> {
        let id = &entry.request.id;
        if entry.request.parent.is_some() {
            return self.go_on_with_chain(session, entry).await;
        }
        match self.executor().resume(session, id).await {
            Ok(outcome) => Ok(Followed::Ran(Box::new(outcome))),
            Err(InboxError::Claimed(_)) => Ok(Followed::Elsewhere),
            Err(error) => Err(Problem::failed(error.to_string())),
        }
    }

    /// Whether the chain that made a request is known to be suspended.
    async fn noted(&self, entry: &Entry) -> Result<bool, Problem> {
        let Some(chain) = &entry.request.parent else {
            return Ok(false);
        };
        let suspended = self.executor().suspended();
        let noted = suspended.get(&entry.request.run, chain).await;
        let noted = noted.map_err(|e| Problem::failed(e.to_string()))?;
        Ok(noted.is_some_and(|call| call.outcome.is_none()))
    }

    async fn go_on_with_chain(
        &self,
        session: &Session,
        entry: &Entry,
    ) -> Result<Followed, Problem> {
        let run = &entry.request.run;
        // Before the journal is looked at: whoever made the call may make it again meanwhile, and resume it.
        let noted = self.noted(entry).await?;
        let recorded = self
            .journal()
            .interrupted(run, entry.request.parent.as_ref());
        let recorded = recorded.map_err(|e| Problem::failed(e.to_string()))?;
        let Some(recorded) = recorded else {
            if noted {
                return Ok(Followed::Elsewhere);
            }
            let gone = format!("run {run} has no chain to go on with");
            return Err(Problem::usage(gone)
                .advise(format!("`haft runs show {run}` shows what became of it")));
        };
        // Under its own id: the record's open call is the one that ends.
        let asked =
            ToolCall::new(TOOL_CHAIN, recorded.start.arguments).with_id(recorded.chain.as_str());
        let executor = self.executor();
        let outcome = if noted {
            executor.go_on(session, asked).await
        } else {
            // An older haft left it.
            executor.recover(session, asked).await
        };
        let conflict = outcome.error.as_ref().map(|e| e.kind) == Some(ErrorKind::Conflict);
        if conflict && !self.noted(entry).await? {
            return Ok(Followed::Elsewhere);
        }
        if let Ok(text) = serde_json::to_string(&outcome) {
            // The nested call's own outcome says less than the script's.
            let noted = self
                .executor()
                .inbox()
                .finish(&entry.request.id, &text, false);
            if let Err(error) = noted.await {
                tracing::warn!(%error, "keep a chain's outcome with its approval");
            }
        }
        Ok(Followed::Ran(Box::new(outcome)))
    }
}

/// There is no such request.
pub fn unknown(id: &ApprovalId) -> Problem {
    Problem::usage(format!("no approval {id}")).advise("`haft approvals list` shows what waits")
}
