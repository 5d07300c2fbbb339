//! Stored conversations of agents: where they are, and how they are resumed: in their run, or, if that is finished, in a new one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft::audit::index::RunFilter;
use haft::audit::runs;
use haft::call::RunId;
use haft_agent::conversation::FileConversation;

use crate::app::App;
use crate::config::Settings;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions, task};
use crate::site::Site;
use crate::view::runs as view;
use crate::wiring::{parts, stores};

/// Returns whether a run is an agent's, so that its conversation can be resumed.
pub fn is_kept(folder: &Path) -> bool {
    folder.join(task::FILE_NAME).is_file()
}

/// An agent's run in a list of conversations.
#[derive(Debug, Clone)]
pub struct KeptRun {
    /// The run.
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
pub struct KeptRuns {
    /// The runs.
    pub runs: Vec<KeptRun>,
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
) -> Result<KeptRuns, Problem> {
    let index = stores::stores(at, settings)?.index;
    let filter = RunFilter {
        principal: Some(parts::principal(&at.environment)),
        ..filter
    };
    let page = index.list(&filter).await;
    let page = page.map_err(|e| Problem::failed(format!("list the runs: {e}")))?;
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
        kept.push(KeptRun {
            prompt: task::of(&folder).map(|text| settings.redactor.redact(&text).into_owned()),
            run: entry.run,
            workspace,
            last: entry.ended.unwrap_or(entry.started),
            folder,
        });
    }
    Ok(KeptRuns { runs: kept, next })
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

    /// Opens the conversation of an earlier run: in that run, resumed, or in a new one if it is finished.
    pub(super) async fn resume_conversation(
        &self,
        earlier: &RunId,
        options: RunOptions,
    ) -> Result<(RunHandle, FileConversation), Problem> {
        let folder = runs::run_dir(self.home(), earlier.as_str()).map_err(|e| view::problem(&e))?;
        if !folder.is_dir() {
            return Err(view::problem(&runs::RunsError::NotFound(
                earlier.to_string(),
            )));
        }
        if !is_kept(&folder) {
            let other =
                format!("run {earlier} is not an agent's run: it has no conversation to resume");
            return Err(Problem::usage(other)
                .advise(format!("`haft runs show {earlier}` shows what it did")));
        }
        self.check_folder(earlier).await?;
        let unreadable =
            |e: io::Error| Problem::failed(format!("read the record of run {earlier}: {e}"));
        if runs::closed(&folder).map_err(unreadable)?.is_none() {
            let run = self.runs().resume(earlier, 0, options).await?;
            let conversation = open(&folder)?;
            return Ok((run, conversation));
        }
        let options = RunOptions {
            continues: Some(earlier.clone()),
            ..options
        };
        let run = self.runs().start(options).await?;
        let new = run.folder()?;
        copy(&folder, &new)
            .map_err(|e| Problem::failed(format!("copy the conversation of run {earlier}: {e}")))?;
        Ok((run, open(&new)?))
    }

    /// Refuses a run of another folder: its conversation is about other files.
    async fn check_folder(&self, run: &RunId) -> Result<(), Problem> {
        let known = self.index().get(run).await;
        let known = known.map_err(|e| Problem::failed(format!("look the run up: {e}")))?;
        let began = known.and_then(|entry| entry.start.workspace);
        match began.filter(|began| began != self.workspace()) {
            None => Ok(()),
            Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
                .advise(format!("haft run --resume {run} --workspace {began}"))),
        }
    }
}

fn open(folder: &Path) -> Result<FileConversation, Problem> {
    FileConversation::open(folder.join(task::FILE_NAME))
        .map_err(|e| Problem::failed(format!("open the conversation: {e}")))
}

/// Copies a conversation, completely or not at all.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.join("conversation.part");
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut new = options.open(&part)?;
    io::copy(&mut File::open(from.join(task::FILE_NAME))?, &mut new)?;
    new.sync_all()?;
    std::fs::rename(part, to.join(task::FILE_NAME))
}
