//! The names of files and folders in a run's folder, and which process has it locked.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::file_lock::FileLock;

pub(super) const RECORD: &str = "events.jsonl";
/// The view of calls, one line each, in the order in which they ended.
pub(super) const TOOLS: &str = "logs/tools.jsonl";
/// The view of unsuccessful calls.
pub(super) const ERRORS: &str = "logs/errors.jsonl";
pub(super) const FOLDERS: [&str; 4] = ["logs", "workspace", "deliverables", "archive"];

/// The folder that only the process that started the run locks as well, not one that resumes it.
pub(super) const STARTER_FOLDER: &str = "logs";

/// Which process of this machine currently writes a run's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// No process.
    Free,
    /// The process that started the run.
    Owner,
    /// A process that resumed it.
    Resumer,
}

/// Finds the process that has locked the folder of a run.
pub(super) fn holder(dir: &Path) -> io::Result<Holder> {
    let is_locked =
        |dir: &Path| Ok::<_, io::Error>(FileLock::try_shared(File::open(dir)?)?.is_none());
    if is_locked(&dir.join(STARTER_FOLDER))? {
        return Ok(Holder::Owner);
    }
    Ok(if is_locked(dir)? {
        Holder::Resumer
    } else {
        Holder::Free
    })
}
