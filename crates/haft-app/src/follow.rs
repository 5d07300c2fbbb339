//! Resuming: acts on decided requests whose client is gone, and resumes suspended or interrupted runs.

use std::time::{Duration, Instant};

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, ApprovalRequest};
use haft::call::{CallId, Origin, RunId, ToolCall};
use haft::error::ErrorKind;
use haft::journal::RecordedChain;
use haft::result::Outcome;
use haft::session::Session;
use haft_chain::TOOL_CHAIN;

use crate::app::App;
use crate::decide::DecisionError;
use crate::problem::Problem;
use crate::run::RunOptions;

/// How long a decided request is left to the process that waits for it before another one claims it.
const CLIENT_GRACE: Duration = Duration::from_secs(5);

/// How often the request is checked meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// What happened to a decided request.
#[derive(Debug)]
pub enum FollowResult {
    /// It ran here; for a call nested in a chain, this is the chain's outcome.
    Ran(Box<Outcome>),
    /// Another process runs it or has run it; the inbox has its state.
    Elsewhere,
    /// It belongs to another workspace.
    Foreign,
    /// It is about a call of a coding agent, which makes the call itself.
    Agents,
}

impl App {
    /// Makes sure that a decided request is acted on exactly once: by the client that waits for it, or else here.
    ///
    /// # Errors
    /// There is no such request, its call cannot run here, or its run can be resumed neither here nor elsewhere.
    pub async fn follow(
        &self,
        id: &ApprovalId,
        options: RunOptions,
    ) -> Result<FollowResult, Problem> {
        // A coding agent runs its call itself, now or when it makes it again.
        if self.entry(id).await?.request.origin == Origin::Hook {
            return Ok(FollowResult::Agents);
        }
        let entry = self.wait_until_unattended(id).await?;
        let is_over = matches!(
            entry.status,
            RequestStatus::Pending | RequestStatus::Withdrawn
        );
        if entry.claimed || is_over {
            return Ok(FollowResult::Elsewhere);
        }
        if entry.request.workspace != self.workspace() {
            return Ok(FollowResult::Foreign);
        }
        if entry.status == RequestStatus::Approved {
            // Checked before the run is resumed: an approval that does not hold here leaves no trace in it.
            let undone = self.executor().phrases(&entry.request).undone;
            self.check_request(&entry.request)
                .await
                .map_err(|refused| does_not_apply(refused, undone))?;
        }
        // The answer is claimed before the call looks for it.
        if entry.status == RequestStatus::Answered {
            self.check_tool(&entry.request)?;
        }
        let run = &entry.request.run;
        if let Some(session) = self.runs().session(run) {
            return self.act_on(&session.continuing(), &entry).await;
        }
        let resumed = match self.runs().resume(run, 0, options).await {
            Ok(resumed) => resumed,
            // Another process that holds the run acts on it.
            Err(problem) => return self.followed_elsewhere(id).await?.ok_or(problem),
        };
        // A run of another machine is resumed like a local one: its script does not start over.
        let followed = self.act_on(&resumed.session().continuing(), &entry).await;
        resumed.release().await;
        followed
    }

    /// Refuses a request whose tool this application does not have.
    fn check_tool(&self, request: &ApprovalRequest) -> Result<(), Problem> {
        let tool = request.tool.as_str();
        let is_internal = self.executor().is_internal(request);
        if is_internal || self.tools().snapshot().entry(tool).is_some() {
            return Ok(());
        }
        let missing = format!(
            "approval {} is for the tool {tool}, which does not exist here",
            request.id
        );
        Err(Problem::usage(missing).advise("resume it in the application that made the request"))
    }

    /// Resumes the run of an interrupted chain and reruns the chain. `stop` cancels the chain, which the outcome then says.
    pub(crate) async fn resume_chain(
        &self,
        run: &RunId,
        recorded: RecordedChain,
        options: RunOptions,
        stop: impl Future<Output = ()>,
    ) -> Result<Outcome, Problem> {
        // The chain's own line may not have reached the disk.
        let own = recorded.chain.as_str().strip_prefix("call-");
        let least = own.and_then(|number| number.parse().ok());
        let least = least.unwrap_or_default();
        let resumed = self.runs().resume(run, least, options).await?;
        let outcome = {
            let running = self.rerun(resumed.session(), recorded, false);
            tokio::pin!(running);
            tokio::select! {
                outcome = &mut running => outcome,
                () = stop => {
                    resumed.session().cancel();
                    running.await
                }
            }
        };
        resumed.release().await;
        Ok(outcome)
    }

    /// Returns the request once no client waits for it, or once a waiting client has had time to claim it.
    async fn wait_until_unattended(&self, id: &ApprovalId) -> Result<StoredApproval, Problem> {
        let started = Instant::now();
        loop {
            let entry = self.entry(id).await?;
            let is_over = entry.status == RequestStatus::Withdrawn;
            let theirs = entry.attended && !entry.claimed && !is_over;
            let theirs = theirs && started.elapsed() < CLIENT_GRACE;
            if !theirs {
                return Ok(entry);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns what another process did about the request within the grace period, if anything.
    async fn followed_elsewhere(&self, id: &ApprovalId) -> Result<Option<FollowResult>, Problem> {
        let started = Instant::now();
        while started.elapsed() < CLIENT_GRACE {
            let entry = self.entry(id).await?;
            if entry.claimed || entry.status == RequestStatus::Withdrawn {
                return Ok(Some(FollowResult::Elsewhere));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(None)
    }

    /// Acts on the decision: the request's own call, or the chain that made it.
    async fn act_on(
        &self,
        session: &Session,
        entry: &StoredApproval,
    ) -> Result<FollowResult, Problem> {
        let id = &entry.request.id;
        if let Some(chain) = &entry.request.parent {
            return self.act_in_chain(session, entry, chain).await;
        }
        match self.executor().resume(session, id).await {
            Ok(outcome) => Ok(FollowResult::Ran(Box::new(outcome))),
            // Another call acts on it, has done so, or has withdrawn it meanwhile: the inbox has its state.
            Err(InboxError::Claimed(_) | InboxError::Decided { .. } | InboxError::Over { .. }) => {
                Ok(FollowResult::Elsewhere)
            }
            Err(error) => Err(Problem::failed(error.to_string())),
        }
    }

    async fn act_in_chain(
        &self,
        session: &Session,
        entry: &StoredApproval,
        chain: &CallId,
    ) -> Result<FollowResult, Problem> {
        let run = &entry.request.run;
        // Checked before the journal is read: the client may make the call again meanwhile, and resume it.
        let suspended = self.is_suspended(run, chain).await?;
        let Some(recorded) = self.interrupted(run, chain).await? else {
            if suspended {
                return Ok(FollowResult::Elsewhere);
            }
            let message = format!("run {run} has no chain to resume");
            return Err(
                Problem::usage(message).advise(format!("`haft runs show {run}` shows its outcome"))
            );
        };
        let outcome = self.rerun(session, recorded, suspended).await;
        let conflict = outcome.error.as_ref().map(|e| e.kind) == Some(ErrorKind::Conflict);
        if conflict && !self.is_suspended(run, chain).await? {
            return Ok(FollowResult::Elsewhere);
        }
        if let Ok(text) = serde_json::to_string(&outcome) {
            // The nested call's own outcome says less than the script's.
            let inbox = self.executor().inbox();
            if let Err(error) = inbox.finish(&entry.request.id, &text, false).await {
                tracing::warn!(%error, "store a chain's outcome with its approval");
            }
        }
        Ok(FollowResult::Ran(Box::new(outcome)))
    }

    /// Returns whether a chain is known to be suspended.
    async fn is_suspended(&self, run: &RunId, chain: &CallId) -> Result<bool, Problem> {
        let noted = self.executor().inbox().get_suspended(run, chain).await;
        let noted = noted.map_err(|e| Problem::failed(e.to_string()))?;
        Ok(noted.is_some_and(|noted| !noted.has_ended()))
    }

    /// Returns the journal's record of an interrupted chain.
    async fn interrupted(
        &self,
        run: &RunId,
        chain: &CallId,
    ) -> Result<Option<RecordedChain>, Problem> {
        let found = self.journal().interrupted(run, Some(chain)).await;
        found.map_err(|e| Problem::failed(e.to_string()))
    }

    /// Reruns an interrupted chain from its journal, under its own id, so that it ends the call that is open in the record. `suspended`
    /// says whether the chain is known to be suspended; an older haft left no note of that.
    async fn rerun(&self, session: &Session, recorded: RecordedChain, suspended: bool) -> Outcome {
        let call =
            ToolCall::new(TOOL_CHAIN, recorded.start.arguments).with_id(recorded.chain.as_str());
        if suspended {
            self.executor().resume_suspended(session, call).await
        } else {
            self.executor().recover(session, call).await
        }
    }

    /// Returns a request from the inbox.
    ///
    /// # Errors
    /// There is no request with this id, or the inbox cannot be read.
    pub async fn entry(&self, id: &ApprovalId) -> Result<StoredApproval, Problem> {
        let entry = self.executor().inbox().get(id).await;
        let entry = entry.map_err(|e| Problem::failed(e.to_string()))?;
        entry.ok_or_else(|| unknown(id))
    }
}

/// Returns the problem that an approval does not hold here. It still holds wherever the call is what the request showed.
fn does_not_apply(refused: DecisionError, undone: &str) -> Problem {
    refused.problem().advise(format!(
        "{undone}; the approval is still valid: resume the run with the options of the process that asked (--profile, --config, -c)"
    ))
}

/// Returns the problem that there is no such request.
pub fn unknown(id: &ApprovalId) -> Problem {
    Problem::usage(format!("no approval {id}"))
        .advise("`haft approvals list --all` shows all requests")
}
