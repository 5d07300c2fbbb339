//! `KeptRun`: which run a session of an agent has, kept so that a call made again finds what was decided about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::call::RunId;
use haft::text::hex;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::hook::key::Key;
use crate::plain_file;
use crate::run::{RunHandle, RunOptions};

/// The folder below haft's state folder.
const FOLDER: &str = "hooks";
/// Longest id of a run, in bytes.
const ID: u64 = 256;
/// How long a note may be of use: no request stands longer.
const STANDS: Duration = haft::approval::STANDS;
/// Most notes that are looked at for those that are of no use.
const MOST: usize = 4_096;

/// The note of a session's run.
#[derive(Debug)]
pub(super) struct KeptRun {
    path: PathBuf,
}

impl KeptRun {
    /// The note of this session in the application's folder.
    pub(super) fn of(app: &App, key: &Key) -> Self {
        let mut hasher = Sha256::new();
        for part in [app.workspace(), key.agent.name(), &key.session] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let name = hex(&hasher.finalize());
        Self {
            path: app.home().join(FOLDER).join(name),
        }
    }

    /// The session's run, resumed; none where there is none that can be.
    pub(super) async fn resume(&self, app: &App, options: &RunOptions) -> Option<RunHandle> {
        let run = plain_file::read(&self.path, ID).ok()?;
        let run = RunId::new(run.trim());
        // A run that is finished has nothing that waits.
        app.runs().resume(&run, 0, options.clone()).await.ok()
    }

    /// Notes the session's run. Without the note a call that is made again is asked about again.
    pub(super) fn note(&self, run: &RunId) {
        let Some(folder) = self.path.parent() else {
            return;
        };
        remove_old(folder);
        let written = plain_file::private_folder(folder)
            .and_then(|()| plain_file::write_private(&self.path, run.as_str()));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.path.display(), "note the run of an agent's session");
        }
    }
}

/// Removes notes that are of no use any more.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.take(MOST).flatten() {
        let changed = entry.metadata().and_then(|meta| meta.modified());
        let age = changed.ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > STANDS) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
