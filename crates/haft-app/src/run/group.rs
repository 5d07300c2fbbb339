//! The name of the agent's session that a run belongs to: stored next to its record, so that what a user allows for the session once the run
//! is resumed, by whichever process, holds in the session.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use haft::audit::index::{IndexError, RunFilter};
use haft::audit::runs::run_dir;
use haft::call::RunId;
use haft::session::RunGroup;

use crate::plain_file;
use crate::run::Runs;
use crate::session_group;

/// The file's name in the run's folder.
const FILE_NAME: &str = "session";
/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 256;

/// Stores the name in the folder of the run's record.
pub(super) fn keep(folder: &Path, group: &RunGroup) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(FILE_NAME))?;
    file.write_all(group.name().as_bytes())
}

/// Number of runs that are listed at a time, and how often at most.
const PAGE: u32 = 500;
const MOST_PAGES: usize = 40;

impl Runs {
    /// Returns the runs of the agent's session that a run belongs to, in this workspace, newest first; `None` if it belongs to none.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub(crate) async fn of_session(&self, of: &RunId) -> Result<Option<Vec<RunId>>, IndexError> {
        let home = self.parts.archive.home();
        let session = |run: &RunId| name(&run_dir(home, run.as_str()).ok()?);
        let Some(wanted) = session(of) else {
            return Ok(None);
        };
        let mut filter = RunFilter {
            workspace: Some(self.parts.terms().workspace.clone()),
            ..RunFilter::newest(PAGE)
        };
        let mut found = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = self.parts.index.list(&filter).await?;
            filter.after = page.last().map(|entry| entry.run.clone());
            let is_last = page.len() < PAGE as usize;
            let runs = page.into_iter().map(|entry| entry.run);
            found.extend(runs.filter(|run| session(run).as_ref() == Some(&wanted)));
            if is_last {
                break;
            }
        }
        Ok(Some(found))
    }
}

/// Returns the name of the session that the run with this folder belongs to.
fn name(folder: &Path) -> Option<String> {
    plain_file::read(&folder.join(FILE_NAME), MAX_FILE_BYTES).ok()
}

/// Returns the group of a run that is resumed. Without the file, what a user allows for the session holds in the run alone.
pub(super) fn read(home: &Path, folder: &Path) -> Option<Arc<RunGroup>> {
    session_group::named(home, &name(folder)?)
}
