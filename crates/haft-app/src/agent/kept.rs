//! Stored conversations of agents: listed, and resumed: in their run, or, if that is finished, in the one run that continues it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::audit::index::RunFilter;
use haft::audit::runs::{self, Holder};
use haft::call::RunId;
use haft::future::run_blocking;
use haft_agent::conversation::{Conversation as _, FileConversation};
use haft_agent::{RunResult, over};
use haft_builtins::files::continue_reads;

use crate::agent::{AgentTask, model, options};
use crate::app::App;
use crate::config::Settings;
use crate::conversation_file::{self, is_kept};
use crate::plain_file;
use crate::problem::Problem;
use crate::requests::visit;
use crate::run::continued::{self, MAX_CHAIN};
use crate::run::refusal::principal_of;
use crate::run::{ApprovalWait, RunHandle, RunOptions};
use crate::site::Site;
use crate::wiring::{parts, stores};

/// How long a resumed run waits for a process that acts on a decision in it, even where it waits for no decision.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An agent's run in a list of conversations.
#[derive(Debug, Clone)]
pub struct ConversationItem {
    /// The run's id.
    pub run: RunId,
    /// The folder that it works in.
    pub workspace: String,
    /// When it started, or ended if it has: RFC 3339 UTC.
    pub last: String,
    /// The beginning of the first prompt.
    pub prompt: Option<String>,
    /// The folder of its record.
    pub folder: PathBuf,
}

/// A page of agents' runs, newest first.
#[derive(Debug, Clone)]
pub struct ConversationPage {
    /// The runs.
    pub runs: Vec<ConversationItem>,
    /// The run after which the next page starts, if there is one.
    pub next: Option<RunId>,
}

/// Returns the agents' runs of this process's user on one page of the index.
///
/// # Errors
/// The index cannot be read, or the one in the settings is invalid.
pub async fn kept_runs(
    at: &Site,
    settings: &Settings,
    filter: RunFilter,
) -> Result<ConversationPage, Problem> {
    let index = stores::stores(at, settings)?.index;
    let filter = RunFilter {
        principal: Some(parts::principal(&at.environment)),
        ..filter
    };
    let page = index.list(&filter).await;
    let page = page.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))?;
    let is_full = page.len() >= usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let next = page.last().filter(|_| is_full).map(|last| last.run.clone());
    let mut kept = Vec::new();
    for entry in page {
        let Ok(folder) = runs::run_dir(at.home.path(), entry.run.as_str()) else {
            continue;
        };
        let Some(workspace) = entry.start.workspace.filter(|_| is_kept(&folder)) else {
            continue;
        };
        kept.push(ConversationItem {
            prompt: conversation_file::task(&folder)
                .map(|text| settings.redactor.redact(&text).into_owned()),
            run: entry.run,
            workspace,
            last: entry.ended.unwrap_or(entry.started),
            folder,
        });
    }
    Ok(ConversationPage { runs: kept, next })
}

/// A run whose conversation is resumed.
struct EarlierRun {
    run: RunId,
    folder: PathBuf,
}

impl EarlierRun {
    fn is_finished(&self) -> Result<bool, Problem> {
        let closed = runs::closed(&self.folder).map_err(|e| self.unreadable(&e))?;
        Ok(closed.is_some())
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        Problem::failed(format!(
            "cannot read the record of run {}: {error}",
            self.run
        ))
    }
}

impl App {
    /// Starts a new run with an empty conversation.
    pub(super) async fn begin(
        &self,
        options: RunOptions,
    ) -> Result<(RunHandle, FileConversation), Problem> {
        let run = self.runs().start(options).await?;
        let conversation = open(&run.folder()?)?;
        Ok((run, conversation))
    }

    /// Opens the conversation of an earlier run: in that run, resumed, or, if it is finished, in the run that continues it. There is only
    /// one such run, whichever of them is resumed.
    pub(super) async fn resume_conversation(
        &self,
        earlier: &RunId,
        options: RunOptions,
    ) -> Result<(RunHandle, FileConversation), Problem> {
        let folder = runs::run_dir(self.home(), earlier.as_str())?;
        if !folder.is_dir() {
            return Err(runs::RunsError::NotFound(earlier.to_string()).into());
        }
        if !is_kept(&folder) {
            let other =
                format!("run {earlier} is not an agent's run: it has no conversation to resume");
            return Err(Problem::usage(other)
                .advise(format!("`haft runs show {earlier}` shows what it did")));
        }
        self.check_folder(earlier).await?;
        loop {
            let last = self.last_of(earlier, folder.clone())?;
            if !last.is_finished()? {
                let run = self.resume_when_free(&last.run, options).await?;
                let conversation = open(&last.folder)?;
                return Ok((run, conversation));
            }
            // Of several processes, one makes the run that continues this one, and the others find it.
            let locked = last.folder.clone();
            let lock = run_blocking(move || plain_file::lock_folder(&locked)).await;
            let _lock = lock
                .and_then(|lock| lock)
                .map_err(|e| last.unreadable(&e))?;
            if self.next(&last.folder)?.is_none() {
                return self.continue_finished(&last, options).await;
            }
        }
    }

    /// Resumes a run once no other process acts on a decision in it, which takes moments unless that process is
    /// stopped. If another process resumes the run, it is refused at once.
    async fn resume_when_free(
        &self,
        run: &RunId,
        options: RunOptions,
    ) -> Result<RunHandle, Problem> {
        let patience = match options.wait {
            ApprovalWait::For(limit) => limit,
            ApprovalWait::Limit => self.runs().approval_limit(),
            ApprovalWait::Never => Duration::ZERO,
        };
        let deadline = Instant::now() + patience.max(LEAST_PATIENCE);
        let mut was_free = false;
        loop {
            let problem = match self.runs().resume(run, 0, options.clone()).await {
                Ok(run) => return Ok(run),
                Err(problem) => problem,
            };
            match runs::holder(self.home(), run.as_str()) {
                // The other process may have released it since.
                Ok(Holder::Free) if !was_free => {
                    was_free = true;
                    continue;
                }
                Ok(Holder::Free) | Err(_) => return Err(problem),
                Ok(Holder::Owner | Holder::Resumer) => was_free = false,
            }
            let Some(id) = self.acted_on(run).await? else {
                return Err(problem);
            };
            if Instant::now() >= deadline {
                let what = format!("another haft process acts on the decision about {id}");
                return Err(Problem::usage(what).advise(format!(
                    "nothing ran here; `haft run --resume {run}` resumes it once that process is done, or has exited"
                )));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns a request of the run that is decided and that a process may be acting on.
    async fn acted_on(&self, run: &RunId) -> Result<Option<ApprovalId>, Problem> {
        let filter = RequestFilter {
            status: vec![
                RequestStatus::Approved,
                RequestStatus::Denied,
                RequestStatus::Answered,
                RequestStatus::Running,
                RequestStatus::InDoubt,
                RequestStatus::Done,
            ],
            run: Some(run.clone()),
            ..RequestFilter::default()
        };
        let mut found = None;
        let keep = |entry: StoredApproval| {
            // A process that is stopped looks as if it had exited.
            let acts = match entry.status {
                RequestStatus::Running => true,
                // The conversation does not have the outcome yet, and that process still has the run.
                RequestStatus::InDoubt | RequestStatus::Done => !entry.delivered,
                _ => !entry.claimed,
            };
            if acts {
                found = Some(entry.request.id);
            }
        };
        visit(self, filter, keep).await?;
        Ok(found)
    }

    /// Returns how the finished run that this task resumes has ended, and the run that holds its conversation now; `None` if anything is
    /// left to do in it. An agent that resumed it would do nothing without another prompt.
    ///
    /// # Errors
    /// The run's record or its conversation cannot be read.
    pub async fn end_of(
        &self,
        settings: &Settings,
        task: &AgentTask,
    ) -> Result<Option<(RunId, RunResult)>, Problem> {
        let Some(run) = &task.resume else {
            return Ok(None);
        };
        let folder = runs::run_dir(self.home(), run.as_str())?;
        if !is_kept(&folder) {
            return Ok(None);
        }
        let last = self.last_of(run, folder)?;
        if !last.is_finished()? {
            return Ok(None);
        }
        let entries = open(&last.folder)?.entries().await;
        let entries =
            entries.map_err(|e| Problem::failed(format!("cannot read the conversation: {e}")))?;
        let name = model::name_of(settings, task).unwrap_or_default();
        // Wrong settings are reported when the agent is made.
        let options = options::options(self, settings, &name, task.max_turns);
        let over = over(entries, &options.unwrap_or_default());
        Ok(over.map(|finished| (last.run, finished)))
    }

    /// Continues a finished run in a new one, with a copy of its conversation.
    async fn continue_finished(
        &self,
        last: &EarlierRun,
        options: RunOptions,
    ) -> Result<(RunHandle, FileConversation), Problem> {
        let known = self.index().get(&last.run).await;
        let known = known.map_err(|e| Problem::failed(format!("cannot look the run up: {e}")))?;
        let options = RunOptions {
            principal: principal_of(&last.run, known.as_ref(), options.principal)?,
            continues: Some(last.run.clone()),
            ..options
        };
        let run = self.runs().start(options).await?;
        let new = run.folder()?;
        // The model has seen these files in the conversation.
        if let Err(error) = continue_reads(self.home(), &last.run, run.id()) {
            tracing::warn!(run = %run.id(), %error, "continue with the files that a run has read");
        }
        // Linked once it is whole, and before anything runs in it: of a process that ends in between, only an empty run is left.
        let copied = copy(&last.folder, &new)
            .and_then(|()| continued::keep_successor(&last.folder, run.id()));
        copied.map_err(|e| {
            Problem::failed(format!(
                "cannot copy the conversation of run {}: {e}",
                last.run
            ))
        })?;
        Ok((run, open(&new)?))
    }

    /// Returns the last of the runs that continue this one, one after the other; itself if there is none.
    fn last_of(&self, run: &RunId, folder: PathBuf) -> Result<EarlierRun, Problem> {
        let mut last = EarlierRun {
            run: run.clone(),
            folder,
        };
        for _ in 0..MAX_CHAIN {
            match self.next(&last.folder)? {
                Some(next) => last = next,
                None => return Ok(last),
            }
        }
        Err(Problem::failed(format!(
            "run {run} is continued by more than {MAX_CHAIN} runs, one after the other"
        ))
        .advise("resume the newest of them"))
    }

    /// Returns the run that continues the one with this folder, if it has its conversation.
    fn next(&self, folder: &Path) -> Result<Option<EarlierRun>, Problem> {
        let later = continued::successor(folder).map_err(|e| {
            Problem::failed(format!(
                "read which run continues {}: {e}",
                folder.display()
            ))
        })?;
        let Some(run) = later else { return Ok(None) };
        let folder = runs::run_dir(self.home(), run.as_str())?;
        Ok(is_kept(&folder).then_some(EarlierRun { run, folder }))
    }

    /// Refuses a run of another folder: its conversation is about other files.
    async fn check_folder(&self, run: &RunId) -> Result<(), Problem> {
        let known = self.index().get(run).await;
        let known = known.map_err(|e| Problem::failed(format!("cannot look the run up: {e}")))?;
        let began = known.and_then(|entry| entry.start.workspace);
        match began.filter(|began| began != self.workspace()) {
            None => Ok(()),
            Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
                .advise(format!("haft run --resume {run} --workspace {began}"))),
        }
    }
}

fn open(folder: &Path) -> Result<FileConversation, Problem> {
    FileConversation::open(conversation_file::path(folder))
        .map_err(|e| Problem::failed(format!("cannot open the conversation: {e}")))
}

/// Copies a conversation, completely or not at all.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.join("conversation.part");
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut new = options.open(&part)?;
    io::copy(&mut File::open(conversation_file::path(from))?, &mut new)?;
    new.sync_all()?;
    std::fs::rename(part, conversation_file::path(to))
}
