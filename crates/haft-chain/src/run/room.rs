//! `ScriptFolder`: the script's folder, filled from the run's own folder before it runs and copied back afterwards.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use crate::engine::Worker;
use crate::files::{self, CopyReport, FolderSnapshot};

/// How long the process tree of an ended script may take to be gone; the kernel needs a fraction of it.
const GONE: Duration = Duration::from_secs(5);

/// The script's folder after it was filled: the run's own folder, and the files that were copied from there.
pub(super) struct ScriptFolder {
    folder: Option<PathBuf>,
    known: FolderSnapshot,
}

/// Fills the script's folder; a missing run folder counts as empty.
pub(super) async fn fill(worker: &dyn Worker, folder: Option<PathBuf>) -> ScriptFolder {
    let own = folder.as_deref().and_then(|path| files::folder(path).ok());
    let own = own.filter(|own| !files::is_empty(own.as_fd()));
    let known = match (own, worker.folder().try_clone_to_owned()) {
        (Some(own), Ok(scripts)) => copied(own, scripts, FolderSnapshot::new()).await.known,
        _ => FolderSnapshot::new(),
    };
    ScriptFolder { folder, known }
}

impl ScriptFolder {
    /// Copies back what the script left; returns why something was not kept.
    pub(super) async fn empty(self, worker: &dyn Worker) -> Option<String> {
        let path = self.folder?;
        if files::is_empty(worker.folder()) {
            return None;
        }
        // Once its process tree is gone, nothing can write there any more.
        gone(worker).await;
        let scripts = worker.folder().try_clone_to_owned();
        let made = std::fs::create_dir_all(&path).and_then(|()| files::folder(&path));
        match (scripts, made) {
            (Ok(scripts), Ok(own)) => copied(scripts, own, self.known).await.reasons(),
            (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        }
    }
}

/// Waits until the script's whole process tree is gone.
pub(super) async fn gone(worker: &dyn Worker) {
    if tokio::time::timeout(GONE, worker.ended()).await.is_err() {
        tracing::error!("a script that was ended is still there");
    }
}

/// Copies on a blocking thread: there may be a lot.
async fn copied(from: OwnedFd, to: OwnedFd, known: FolderSnapshot) -> CopyReport {
    let copy = move || files::copy(from.as_fd(), to.as_fd(), &known);
    let copied = tokio::task::spawn_blocking(copy).await;
    copied.unwrap_or_default()
}
