//! The session of a coding agent as all its runs know it: each of its commands is a run, and a process of its own. Its name is the key of
//! everything that holds for the session; what is kept for it lies below haft's state folder.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft::clock;
use haft::session::RunGroup;

mod grants;
pub(crate) mod identity;

use grants::SessionGrants;

/// The folder below haft's state folder.
const FOLDER: &str = "hooks";
/// How long after its last call a session counts as ended if its agent does not say so: as long as a command in the background may run.
const LIFETIME: Duration = Duration::from_hours(12);

/// Whether a text can be the name of a session.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the runs of the session of this name. `None` if it is no such name.
pub(crate) fn named(home: &Path, name: &str) -> Option<Arc<RunGroup>> {
    let grants = is_name(name).then(|| SessionGrants::at(file(home, name, "grants")))?;
    Some(Arc::new(RunGroup::new(name, Arc::new(grants))))
}

/// Ends what a user allowed for the session of this name.
///
/// # Errors
/// It is kept and cannot be removed.
pub(crate) fn end(home: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(file(home, name, "grants")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file of this kind that a session has.
pub(crate) fn file(home: &Path, name: &str, kind: &str) -> PathBuf {
    home.join(FOLDER).join(format!("{name}.{kind}"))
}

/// Notes that the session uses a file that is kept for it.
pub(crate) fn touch(path: &Path) {
    let file = OpenOptions::new().append(true).open(path);
    let _ = file.and_then(|file| file.set_modified(clock::wall()));
}
