//! Where an agent's conversation is kept, and how it is gone on with: in its run, or, where that has ended, in a new one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use haft::audit::runs;
use haft::call::RunId;
use haft_agent::conversation::FileConversation;

use crate::app::App;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};
use crate::view::runs as view;

/// The file in the run's folder.
const FILE: &str = "conversation.jsonl";

/// Whether a run is an agent's, so that its conversation can be gone on with.
pub fn is_kept(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

impl App {
    /// A new run, with nothing said yet.
    pub(super) async fn begin(
        &self,
        options: RunOptions,
    ) -> Result<(RunHandle, FileConversation), Problem> {
        let run = self.runs().start(options).await?;
        let conversation = open(&run.folder()?)?;
        Ok((run, conversation))
    }

    /// The conversation of an earlier run: in that run, resumed, or in a new one where it is finished.
    pub(super) async fn go_on_with(
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
            let other = format!(
                "run {earlier} is no run of an agent: there is no conversation to go on with"
            );
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
    FileConversation::open(folder.join(FILE))
        .map_err(|e| Problem::failed(format!("open the conversation: {e}")))
}

/// Copies a conversation: whole, or not at all.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.join("conversation.part");
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut new = options.open(&part)?;
    io::copy(&mut File::open(from.join(FILE))?, &mut new)?;
    new.sync_all()?;
    std::fs::rename(part, to.join(FILE))
}
