//! Resuming a run: acts on the decisions in it, or else reruns its interrupted chain from the journal.

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::audit::runs::{self, Holder};
use haft::call::RunId;
use haft::journal::JournalError;
use haft::result::Outcome;
use haft::spec::CallPhrases;

use crate::agent;
use crate::app::App;
use crate::follow::FollowResult;
use crate::problem::{Problem, ProblemKind};
use crate::requests::visit;
use crate::run::RunOptions;
use crate::run::refusal::busy;
use crate::run::selection::check_workspace;
use crate::run::verify::verify;

/// The outcome of resuming a run.
#[derive(Debug)]
pub enum ResumeResult {
    /// The call that was decided, or the chain that was interrupted, ran to this outcome.
    Ran(Box<Outcome>),
    /// Nothing ran: this request is still pending.
    Pending(ApprovalId),
}

impl App {
    /// Resumes a run that is suspended, or that was interrupted when its process ended. `stop` cancels a rerun of an interrupted chain,
    /// which its outcome then says.
    ///
    /// # Errors
    /// There is no such run, it is finished, of another workspace or an agent's run with a conversation,
    /// another process holds it, its request expired, or nothing in it can be resumed.
    pub async fn resume(
        &self,
        run: &RunId,
        options: RunOptions,
        stop: impl Future<Output = ()>,
    ) -> Result<ResumeResult, Problem> {
        let folder = runs::run_dir(self.home(), run.as_str())?;
        if !folder.is_dir() {
            return Err(runs::RunsError::NotFound(run.to_string()).into());
        }
        if matches!(runs::closed(&folder), Ok(Some(_))) && !agent::is_kept(&folder) {
            let over = format!("run {run} has ended: there is nothing to resume");
            return Err(
                Problem::usage(over).advise(format!("`haft runs show {run}` shows what it did"))
            );
        }
        if agent::is_kept(&folder) {
            let other = format!("run {run} is an agent's run with a conversation");
            return Err(
                Problem::usage(other).advise(format!("`haft run --resume {run}` resumes it"))
            );
        }
        if let Some(resumed) = self.resume_decided(run, &options).await? {
            return Ok(resumed);
        }
        match self.journal().interrupted(run, None).await {
            Ok(None) => return Err(self.nothing_to_resume(run).await?),
            Ok(Some(recorded)) => {
                check_workspace(self.runs(), run, "resume").await?;
                let outcome = self.resume_chain(run, recorded, options, stop).await?;
                Ok(ResumeResult::Ran(Box::new(outcome)))
            }
            Err(JournalError::Busy(_)) => Err(busy(self.home(), run)),
            Err(error) => Err(Problem::failed(error.to_string())),
        }
    }

    /// Acts on the decision about one request, in its run, which is resumed for the principal that it was started for.
    ///
    /// # Errors
    /// There is no such request, it is undecided, over, of another workspace or already acted on; or its call would not do here what was
    /// approved. Nothing ran then, and the decision still holds.
    pub async fn resume_request(
        &self,
        id: &ApprovalId,
        options: RunOptions,
    ) -> Result<Outcome, Problem> {
        let entry = self.entry(id).await?;
        check_decided(&entry, self.executor().phrases(&entry.request))?;
        match self.follow(id, options).await? {
            FollowResult::Ran(outcome) => Ok(*outcome),
            FollowResult::Foreign => {
                let other = &entry.request.workspace;
                Err(
                    Problem::usage(format!("approval {id} is about the workspace {other}"))
                        .advise("nothing ran; resume it there"),
                )
            }
            FollowResult::Elsewhere => Err(Problem::usage(format!(
                "another process is acting on approval {id}, or has already done so"
            ))
            .advise("nothing ran here; the request says how it ended")),
            FollowResult::Agents => Err(agents(&format!("approval {id} is about a call"))),
        }
    }

    /// Acts on a decision in this run. Returns `None` if no request of the run is left.
    async fn resume_decided(
        &self,
        run: &RunId,
        options: &RunOptions,
    ) -> Result<Option<ResumeResult>, Problem> {
        let filter = RequestFilter {
            run: Some(run.clone()),
            ..RequestFilter::default()
        };
        let mut requests = Vec::new();
        let keep = |entry: StoredApproval| {
            if !entry.claimed {
                requests.push(entry);
            }
        };
        visit(self, filter, keep).await?;
        let of = |status| requests.iter().filter(move |entry| entry.status == status);
        let is_decided = |entry: &&StoredApproval| {
            matches!(
                entry.status,
                RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
            )
        };
        if let Some(entry) = requests.iter().find(is_decided) {
            check_workspace(self.runs(), run, "resume").await?;
            return match self.follow(&entry.request.id, options.clone()).await? {
                FollowResult::Ran(outcome) => Ok(Some(ResumeResult::Ran(outcome))),
                FollowResult::Elsewhere | FollowResult::Foreign => Err(busy(self.home(), run)),
                FollowResult::Agents => Err(agents(&format!("run {run} is a session"))),
            };
        }
        if let Some(entry) = of(RequestStatus::Pending).next() {
            return Ok(Some(ResumeResult::Pending(entry.request.id.clone())));
        }
        // A resumed chain learns that no decision came; a direct call has nothing to resume.
        let direct = |entry: &&StoredApproval| entry.request.parent.is_none();
        if let Some(entry) = of(RequestStatus::Expired).find(direct) {
            let id = &entry.request.id;
            let what = format!("approval {id} expired before it was decided");
            return Err(
                Problem::new(ProblemKind::Denied, what).advise("make the call again to ask again")
            );
        }
        Ok(None)
    }

    /// Returns why there is no chain: a call that cannot be resumed may have run, or nothing was interrupted.
    async fn nothing_to_resume(&self, run: &RunId) -> Result<Problem, Problem> {
        let holder = runs::holder(self.home(), run.as_str())?;
        if holder != Holder::Free {
            return Ok(busy(self.home(), run));
        }
        let report = verify(self.runs(), run.as_str()).await?;
        let calls = report.in_doubt.iter();
        let calls: Vec<String> = calls
            .map(|call| format!("call {} of {}", call.call, call.tool))
            .collect();
        if !calls.is_empty() {
            let message = format!(
                "{} began and did not end: it may have run",
                calls.join(", ")
            );
            let advice = format!(
                "check what it changed (`haft runs show {run}` shows the call), then make it again if it did not run"
            );
            return Ok(Problem::failed(message).advise(advice));
        }
        Ok(Problem::usage(format!("run {run} has nothing to resume"))
            .advise("only a chain whose haft process exited while it ran can be resumed"))
    }
}

/// Checks that a request is decided and that no call has run on it.
fn check_decided(entry: &StoredApproval, phrases: CallPhrases) -> Result<(), Problem> {
    let id = &entry.request.id;
    let what = match entry.status {
        RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
            if !entry.claimed =>
        {
            return Ok(());
        }
        RequestStatus::Pending => {
            return Err(Problem::usage(format!("approval {id} is pending"))
                .advise(format!("{}; decide it first", phrases.undone)));
        }
        RequestStatus::Expired => format!("approval {id} expired: no one decided in time"),
        RequestStatus::Withdrawn => {
            let why = entry.why.as_deref().map(|why| format!(": {why}"));
            format!("approval {id} was withdrawn{}", why.unwrap_or_default())
        }
        RequestStatus::InDoubt => {
            let may_have = phrases.in_doubt;
            format!("approval {id} was claimed by a process that exited; {may_have}")
        }
        _ => format!("the call of approval {id} has already run, or is running"),
    };
    Err(Problem::usage(what)
        .advise("if the call is still needed, make it again to request approval again"))
}

/// Returns the refusal to resume what belongs to a coding agent.
fn agents(what: &str) -> Problem {
    Problem::usage(format!(
        "{what} of a coding agent, which runs its calls itself"
    ))
    .advise("nothing ran here; the agent finds the decision when it makes the call again")
}
