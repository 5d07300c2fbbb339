//! What a run's folder holds, by name, and which process has it locked.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::file_lock;

/// The record.
pub(super) const RECORD: &str = "events.jsonl";
/// The view of calls, one line each, as they ended.
pub(super) const TOOLS: &str = "logs/tools.jsonl";
/// The view of calls that did not succeed.
pub(super) const ERRORS: &str = "logs/errors.jsonl";
/// The folders of a run.
pub(super) const FOLDERS: [&str; 4] = ["logs", "workspace", "deliverables", "archive"];

/// The folder that the process which started the run locks as well; a process that resumes it does not.
pub(super) const BEGINNER: &str = "logs";

/// Which process of this machine writes a run's record now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// No process.
    Free,
    /// The process that began the run.
    Owner,
    /// A process that resumes it.
    Resumer,
}

/// Finds the process that has locked the folder of a run.
pub(super) fn holder(dir: &Path) -> io::Result<Holder> {
    let is_locked = |dir: &Path| Ok::<_, io::Error>(!file_lock::try_lock_shared(File::open(dir)?)?);
    if is_locked(&dir.join(BEGINNER))? {
        return Ok(Holder::Owner);
    }
    Ok(if is_locked(dir)? {
        Holder::Resumer
    } else {
        Holder::Free
    })
}
